// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%m: memref<8xf32, strided<[2]>>, %i: index, %a: tensor<4xf32>) {
  // expected-error @+1 {{C1: the memory is 'memref<8xf32, strided<[2]>>', which is not contiguous; copy it to contiguous memory first}}
  comms.tile_store %a, %m[%i] : tensor<4xf32>, memref<8xf32, strided<[2]>>
  return
}

// -----

func.func @f(%m: memref<8xf32, #comms.space<multimem>>, %i: index, %a: tensor<4xf32>) {
  // expected-error @+1 {{C1: the memory is a multimem view; use the comms.multimem_* ops}}
  comms.tile_store %a, %m[%i] : tensor<4xf32>, memref<8xf32, #comms.space<multimem>>
  return
}

// -----

func.func @f(%m: memref<8xbf16>, %i: index, %a: tensor<4xf32>) {
  // expected-error @+1 {{C2: the tile has elements of 'f32', the memory of 'bf16'; convert the tile with arith}}
  comms.tile_store %a, %m[%i] : tensor<4xf32>, memref<8xbf16>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %i: index, %a: tensor<?xf32>) {
  // expected-error @+1 {{C3: the tile is 'tensor<?xf32>'; it needs a fixed number of elements, at least one}}
  comms.tile_store %a, %m[%i] : tensor<?xf32>, memref<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %i: index, %a: tensor<0xf32>) {
  // expected-error @+1 {{C3: the tile is 'tensor<0xf32>'}}
  comms.tile_store %a, %m[%i] : tensor<0xf32>, memref<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %i: index, %a: vector<[4]xf32>) {
  // expected-error @+1 {{C3: the tile is 'vector<[4]xf32>'}}
  comms.tile_store %a, %m[%i] : vector<[4]xf32>, memref<8xf32>
  return
}
