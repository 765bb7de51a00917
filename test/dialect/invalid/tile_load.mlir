// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%m: memref<8xf32, strided<[2]>>, %i: index) {
  // expected-error @+1 {{C1: the memory is 'memref<8xf32, strided<[2]>>', which is not contiguous; copy it to contiguous memory first}}
  %a = comms.tile_load %m[%i] : memref<8xf32, strided<[2]>> -> tensor<4xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32, #comms.space<multimem>>, %i: index) {
  // expected-error @+1 {{C1: the memory is a multimem view; use the comms.multimem_* ops}}
  %a = comms.tile_load %m[%i] : memref<8xf32, #comms.space<multimem>> -> tensor<4xf32>
  return
}

// -----

func.func @f(%m: memref<8xbf16>, %i: index) {
  // expected-error @+1 {{C2: the tile has elements of 'f32', the memory of 'bf16'; convert the tile with arith}}
  %a = comms.tile_load %m[%i] : memref<8xbf16> -> tensor<4xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %i: index) {
  // expected-error @+1 {{C3: the tile is 'tensor<?xf32>'; it needs a fixed number of elements, at least one}}
  %a = comms.tile_load %m[%i] : memref<8xf32> -> tensor<?xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %i: index) {
  // expected-error @+1 {{C3: the tile is 'tensor<0xf32>'}}
  %a = comms.tile_load %m[%i] : memref<8xf32> -> tensor<0xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %i: index) {
  // expected-error @+1 {{C3: the tile is 'vector<[4]xf32>'}}
  %a = comms.tile_load %m[%i] : memref<8xf32> -> vector<[4]xf32>
  return
}
