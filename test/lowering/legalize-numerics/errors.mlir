// RUN: comms-opt %s -comms-legalize-numerics -split-input-file -verify-diagnostics

comms.kernel @log10(%x: memref<16xf32>, %a: f32, %i: index) {
  // expected-error @+1 {{has no expansion that gives the same bits on every target; supported are math.absf}}
  %b = math.log10 %a : f32
  memref.store %b, %x[%i] : memref<16xf32>
  comms.return
}

// -----

comms.kernel @wide(%x: memref<16xf64>, %a: f64, %i: index) {
  // expected-error @+1 {{is approximated in f32 only: convert the f64 operand to f32 first}}
  %b = math.exp %a : f64
  memref.store %b, %x[%i] : memref<16xf64>
  comms.return
}

// -----

comms.kernel @remainder(%x: memref<16xf32>, %a: f32, %i: index) {
  // expected-error @+1 {{would call a function of libm; write it with floor or trunc}}
  %b = arith.remf %a, %a : f32
  memref.store %b, %x[%i] : memref<16xf32>
  comms.return
}

// -----

comms.kernel @mode(%x: memref<16xbf16>, %a: f32, %i: index) {
  // expected-error @+1 {{rounding mode other than to nearest even}}
  %b = arith.truncf %a to_nearest_away : f32 to bf16
  memref.store %b, %x[%i] : memref<16xbf16>
  comms.return
}

// -----

comms.kernel @twice(%x: memref<16xbf16>, %a: f64, %i: index) {
  // expected-error @+1 {{rounds f64 to 'bf16': round to f32 first, and say so}}
  %b = arith.truncf %a : f64 to bf16
  memref.store %b, %x[%i] : memref<16xbf16>
  comms.return
}

// -----

comms.kernel @type(%x: memref<16xf32>, %a: f8E4M3B11FNUZ, %i: index) {
  // expected-error @+1 {{uses 'f8E4M3B11FNUZ': supported floats are f8E4M3FN, f8E5M2, bf16, f16, f32 and f64}}
  %b = arith.extf %a : f8E4M3B11FNUZ to f32
  memref.store %b, %x[%i] : memref<16xf32>
  comms.return
}

// -----

// Functions are expanded of vectors, not of tiles.
comms.kernel @tile(%x: memref<16xf32>, %i: index) {
  %tile = comms.tile_load %x[%i] : memref<16xf32> -> tensor<2xf32>
  // expected-error @+1 {{is of a tile, and functions are expanded thread by thread: run comms-distribute-tiles before}}
  %power = math.exp %tile : tensor<2xf32>
  comms.tile_store %power, %x[%i] : tensor<2xf32>, memref<16xf32>
  comms.return
}
