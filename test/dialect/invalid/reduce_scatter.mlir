// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: !comms.team, %x: memref<8xf32>) {
  // expected-error @+1 {{C1: must be in the body of a comms.kernel or comms.role, not inside other control flow: every block must run it exactly once}}
  comms.reduce_scatter sum %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  comms.for_peers %t as %p {
    // expected-error @+1 {{C1: must be in the body of a comms.kernel or comms.role, not inside other control flow: every block must run it exactly once}}
    comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>)
  }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C2: must have at least one input and one output}}
  comms.reduce_scatter sum %t ins() outs(%y : memref<1x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C2: must have at least one input and one output}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs()
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %m = comms.scratch : memref<4xi1>
  // expected-error @+1 {{C3: the input is 'memref<4xi1>'; arrays have rank 1 or more and fewer than 2^63 elements, floats or signless integers of 8 to 64 bits}}
  comms.reduce_scatter sum %t ins(%m : memref<4xi1>) outs(%y : memref<1x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>, %z: memref<64x8xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C4: inputs 'memref<8x64xbf16>' and 'memref<64x8xbf16>' differ in their rows}}
  comms.reduce_scatter sum %t ins(%x, %z : memref<8x64xbf16>, memref<64x8xbf16>) outs(%y : memref<1x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 'produce' has 2 arguments for 1 inputs}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>)
    produce(%a: tensor<64xbf16>, %b: tensor<64xbf16>) {
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 'produce' argument 0 is 'tensor<8xbf16>'; it must be 'tensor<64xbf16>'}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>)
    produce(%a: tensor<8xbf16>) {
      comms.yield %a : tensor<8xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C6: 'produce' must yield at least one tile to exchange}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      comms.yield
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C7: 'consume' has 2 arguments; 1 tile arrives and 0 rows of args (...) follow}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>)
    consume(%w: tensor<64xf32>, %b: tensor<64xf32>) {
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>, %g: memref<64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C7: 'consume' argument 1 is 'tensor<64xf32>'; it must be 'tensor<64xbf16>'}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>) args(%g : memref<64xbf16>)
    consume(%w: tensor<64xf32>, %v: tensor<64xf32>) {
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C8: 'consume' yields 0 tiles for 1 outputs}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>)
    consume(%w: tensor<64xf32>) {
      comms.yield
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>, %g: memref<64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C9: args need a 'consume' region that reads them}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>) args(%g : memref<64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<3x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C10: output 'memref<3x64xbf16>' has 192 elements; the result has 64, in rows of 64}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<3x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>, %g: memref<1x32xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C11: arg 'memref<1x32xbf16>' has 32 elements; the result has 64, in rows of 64, and one row that all share has 64}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>) args(%g : memref<1x32xbf16>)
    consume(%w: tensor<64xf32>, %v: tensor<64xbf16>) {
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>, %g: memref<8xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C11: arg 'memref<8xbf16>' has rank 1, so that all rows share it, but its tile in 'consume' has 1 elements; give it the shape [rows, 1] if each row has its own}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>) args(%g : memref<8xbf16>)
    consume(%w: tensor<64xf32>, %v: tensor<1xbf16>) {
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C12: 'produce' has an op that is not arithmetic on tiles; regions hold arith and math on tiles of rank 1 and scalars, constants, comms.row_reduce, splat, broadcast_row and iota, tensor.extract from a tile of one, and tensor.extract_slice and concat of constant lengths}}
  comms.reduce_scatter sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      // expected-note @+1 {{the op is comms.rank}}
      %v = comms.rank %t
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C13: and of elements of 'bf16'; bitwise reductions need integers}}
  comms.reduce_scatter and %t ins(%x : memref<8x64xbf16>) outs(%y : memref<1x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<12x64xbf16>, %y: memref<1x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C14: 12 rows cannot be cut into 8 equal parts, one a rank; pad the input}}
  comms.reduce_scatter sum %t ins(%x : memref<12x64xbf16>) outs(%y : memref<1x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<60xbf16>, %y: memref<8xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C14: 60 elements cannot be cut into 8 equal parts, one a rank; pad the input}}
  comms.reduce_scatter sum %t ins(%x : memref<60xbf16>) outs(%y : memref<8xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<64xbf16>, %y: memref<8xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C15: cuts a row into parts, but a region needs the whole row; give the input one row or more for each rank}}
  comms.reduce_scatter sum %t ins(%x : memref<64xbf16>) outs(%y : memref<8xbf16>)
    consume(%w: tensor<64xf32>) {
      %s = comms.row_reduce max %w : tensor<64xf32> -> tensor<1xf32>
      %b = comms.broadcast_row %s : tensor<1xf32> -> tensor<64xf32>
      %r = arith.truncf %b : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}
