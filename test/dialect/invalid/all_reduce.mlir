// RUN: comms-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: !comms.team, %x: memref<8xf32>) {
  // expected-error @+1 {{C1: must be in the body of a comms.kernel or comms.role, not inside other control flow: every block must run it exactly once}}
  comms.all_reduce sum %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  comms.for_peers %t as %p {
    // expected-error @+1 {{C1: must be in the body of a comms.kernel or comms.role, not inside other control flow: every block must run it exactly once}}
    comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C2: must have at least one input and one output}}
  comms.all_reduce sum %t ins() outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C2: must have at least one input and one output}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs()
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %m = comms.scratch : memref<4xi1>
  // expected-error @+1 {{C3: the input is 'memref<4xi1>'; arrays have rank 1 or more and fewer than 2^63 elements, floats or signless integers of 8 to 64 bits}}
  comms.all_reduce sum %t ins(%m : memref<4xi1>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>, %z: memref<64x8xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C4: inputs 'memref<8x64xbf16>' and 'memref<64x8xbf16>' differ in their rows}}
  comms.all_reduce sum %t ins(%x, %z : memref<8x64xbf16>, memref<64x8xbf16>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 'produce' has 2 arguments for 1 inputs}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>, %b: tensor<64xbf16>) {
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 'produce' argument 0 is 'tensor<8xbf16>'; it must be 'tensor<64xbf16>'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<8xbf16>) {
      comms.yield %a : tensor<8xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C6: 'produce' must yield at least one tile to exchange}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      comms.yield
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C7: 'consume' has 2 arguments; 1 tile arrives and 0 rows of args (...) follow}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    consume(%w: tensor<64xf32>, %b: tensor<64xf32>) {
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>, %g: memref<64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C7: 'consume' argument 1 is 'tensor<64xf32>'; it must be 'tensor<64xbf16>'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>) args(%g : memref<64xbf16>)
    consume(%w: tensor<64xf32>, %v: tensor<64xf32>) {
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C8: 'consume' yields 0 tiles for 1 outputs}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    consume(%w: tensor<64xf32>) {
      comms.yield
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>, %g: memref<64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C9: args need a 'consume' region that reads them}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>) args(%g : memref<64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<3x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C10: output 'memref<3x64xbf16>' has 192 elements; the result has 512, in rows of 64}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<3x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>, %g: memref<1x32xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C11: arg 'memref<1x32xbf16>' has 32 elements; the result has 512, in rows of 64, and one row that all share has 64}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>) args(%g : memref<1x32xbf16>)
    consume(%w: tensor<64xf32>, %v: tensor<64xbf16>) {
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>, %g: memref<8xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C11: arg 'memref<8xbf16>' has rank 1, so that all rows share it, but its tile in 'consume' has 1 elements; give it the shape [rows, 1] if each row has its own}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>) args(%g : memref<8xbf16>)
    consume(%w: tensor<64xf32>, %v: tensor<1xbf16>) {
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C12: 'produce' has an op that is not arithmetic on tiles; regions hold arith and math on tiles of rank 1 and scalars, constants, comms.row_reduce, splat, broadcast_row and iota, tensor.extract from a tile of one, and tensor.extract_slice and concat of constant lengths}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      // expected-note @+1 {{the op is comms.rank}}
      %v = comms.rank %t
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C13: and of elements of 'bf16'; bitwise reductions need integers}}
  comms.all_reduce and %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @+1 {{C1: must be in the body of a comms.kernel or comms.role, not inside other control flow: every block must run it exactly once}}
    comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
  }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %w = comms.scratch : memref<8x64xbf16>
  %m = memref.memory_space_cast %w : memref<8x64xbf16> to memref<8x64xbf16, #comms.space<multimem>>
  // expected-error @+1 {{C3: the input is a multimem view; use the comms.multimem_* ops}}
  comms.all_reduce sum %t ins(%m : memref<8x64xbf16, #comms.space<multimem>>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %c0 = arith.constant 0 : index
  %m = memref.subview %x[%c0, 0] [4, 64] [2, 1] : memref<8x64xbf16> to memref<4x64xbf16, strided<[128, 1], offset: ?>>
  // expected-error @+1 {{C3: the output is 'memref<4x64xbf16, strided<[128, 1], offset: ?>>', which is not contiguous; copy it to contiguous memory first}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%m : memref<4x64xbf16, strided<[128, 1], offset: ?>>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %m = memref.alloca() : memref<f32>
  // expected-error @+1 {{C3: the arg is 'memref<f32>'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>) args(%m : memref<f32>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  %m = memref.alloc() : memref<4294967296x4294967296xf32>
  // expected-error @+1 {{C3: the input is 'memref<4294967296x4294967296xf32>'}}
  comms.all_reduce sum %t ins(%m : memref<4294967296x4294967296xf32>) outs(%y : memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 'produce' argument 0 is 'tensor<64xf32>'; it must be 'tensor<64xbf16>'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xf32>) {
      comms.yield %a : tensor<64xf32>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 'produce' argument 0 is 'bf16'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: bf16) {
      comms.yield %a : bf16
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C5: 'produce' is one block that ends in comms.yield}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      cf.br ^next
    ^next:
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C6: 'produce' yields 'tensor<64xi1>'; a tile is a tensor of rank 1 of at least one float or signless integer of 8 to 64 bits}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      %c = arith.constant dense<0> : tensor<64xi1>
      comms.yield %c : tensor<64xi1>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C6: 'produce' yields 'f32'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      %c = arith.constant 1.0 : f32
      comms.yield %c : f32
    }
  comms.return
}

// -----

// A sum of bf16 is kept in f32.
comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C7: 'consume' argument 0 is 'tensor<64xbf16>'; it must be 'tensor<64xf32>'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    consume(%w: tensor<64xbf16>) {
      comms.yield %w : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C7: 'consume' is one block that ends in comms.yield}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    consume(%w: tensor<64xf32>) {
      cf.br ^next
    ^next:
      %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C8: 'consume' yields 'tensor<64xf32>' for output 0, which has elements of 'bf16'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    consume(%w: tensor<64xf32>) {
      comms.yield %w : tensor<64xf32>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C8: 'consume' yields 'bf16'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    consume(%w: tensor<64xf32>) {
      %c = arith.constant 1.0 : bf16
      comms.yield %c : bf16
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C9: 1 tiles arrive for 2 outputs; give each its own, or write 'consume'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y, %y : memref<8x64xbf16>, memref<8x64xbf16>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xi32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C9: 'f32' arrives for an output of 'i32'; convert it in 'consume'}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xi32>)
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C10: output 'memref<8x64xbf16>' has 512 elements; the result has 8, in rows of 1}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    consume(%w: tensor<64xf32>) {
      %r = comms.row_reduce max %w : tensor<64xf32> -> tensor<1xf32>
      %s = arith.truncf %r : tensor<1xf32> to tensor<1xbf16>
      comms.yield %s : tensor<1xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C12: 'produce' has an op that is not arithmetic on tiles}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      %c0 = arith.constant 0 : index
      // expected-note @+1 {{the op is memref.load}}
      %v = memref.load %x[%c0, %c0] : memref<8x64xbf16>
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C12: 'produce' has an op that is not arithmetic on tiles}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      %c3 = arith.constant 3 : index
      // expected-note @+1 {{the op is tensor.extract}}
      %v = tensor.extract %a[%c3] : tensor<64xbf16>
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>, %s: f32) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C12: 'consume' uses a value from outside; pass an array in args instead}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    consume(%w: tensor<64xf32>) {
      // expected-note @+1 {{it is used here}}
      %b = comms.splat %s : f32 -> tensor<64xf32>
      %v = arith.mulf %w, %b : tensor<64xf32>
      %r = arith.truncf %v : tensor<64xf32> to tensor<64xbf16>
      comms.yield %r : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C12: 'produce' has an op that is not arithmetic on tiles}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      %n = arith.constant 3 : index
      %m = arith.constant dense<true> : tensor<64xi1>
      // expected-note @+1 {{, which takes parts of tiles, or joins them, only where they are tensors of rank 1 with constant lengths}}
      %b = tensor.extract_slice %a[0] [%n] [1] : tensor<64xbf16> to tensor<?xbf16>
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C12: 'produce' has an op that is not arithmetic on tiles}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      %n = arith.constant 3 : index
      %m = arith.constant dense<true> : tensor<64xi1>
      // expected-note @+1 {{, which has a stride; a part of a tile is contiguous}}
      %b = tensor.extract_slice %a[0] [32] [2] : tensor<64xbf16> to tensor<32xbf16>
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}

// -----

comms.kernel @k(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  // expected-error @+1 {{C12: 'produce' has an op that is not arithmetic on tiles}}
  comms.all_reduce sum %t ins(%x : memref<8x64xbf16>) outs(%y : memref<8x64xbf16>)
    produce(%a: tensor<64xbf16>) {
      %n = arith.constant 3 : index
      %m = arith.constant dense<true> : tensor<64xi1>
      // expected-note @+1 {{, which takes parts of tiles, or joins them, only where they are tensors of rank 1 with constant lengths}}
      %b = tensor.concat dim(0) %m, %m : (tensor<64xi1>, tensor<64xi1>) -> tensor<128xi1>
      comms.yield %a : tensor<64xbf16>
    }
  comms.return
}
