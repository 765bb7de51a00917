// RUN: not comms-opt %s -split-input-file --canonicalize 2>&1 | FileCheck %s

// Broken IR ends in an error: no loop, no crash.

// A team made of itself.
// CHECK: does not dominate
comms.kernel @cycle() attributes {ranks = 8 : i64} {
  %0 = "comms.team_split"(%0) <{kind = #comms<split_kind outer>, factor = 1 : i64}> : (!comms.team) -> !comms.team
  %1 = comms.size %0
  comms.return
}

// -----

// Two that are made of each other, in a collective.
// CHECK: does not dominate
comms.kernel @circle(%x: memref<8xf32>) attributes {ranks = 8 : i64} {
  comms.reduce_scatter sum %0 ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  %0 = comms.team_split %1 outer 2
  %1 = comms.team_split %0 outer 2
  comms.return
}

// -----

// Arithmetic on its own result.
// CHECK: does not dominate
comms.kernel @tile(%x: memref<8xf32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  comms.all_reduce sum %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  consume(%w: tensor<8xf32>) {
    %a = arith.addf %a, %w : tensor<8xf32>
    comms.yield %a : tensor<8xf32>
  }
  comms.return
}

// -----

// The largest factor.
// CHECK: C2: factor 9223372036854775807 does not divide the team's 8 ranks
comms.kernel @factor() attributes {ranks = 8 : i64} {
  %t = comms.team world
  %0 = comms.team_split %t inner 9223372036854775807
  %1 = comms.size %0
  comms.return
}

// -----

// Fewer attributes than arguments.
// CHECK: error: {{.*}}arg
"comms.kernel"() <{sym_name = "k", function_type = (i32, i32) -> (), arg_attrs = [{comms.name = "x"}]}> ({
^bb0(%x: i32, %y: i32):
  comms.return
}) : () -> ()

// -----

// The body's arguments are not those of the type.
// CHECK: error:
"comms.kernel"() <{sym_name = "k", function_type = (i32) -> (), arg_attrs = [{comms.name = "x"}]}> ({
  comms.return
}) : () -> ()

// -----

// An array without elements and a yield of another region's shape.
// CHECK: C6: 'produce' yields 'tensor<0xf32>'
comms.kernel @empty(%x: memref<0x0xf32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  comms.reduce_scatter sum %t ins(%x : memref<0x0xf32>) outs(%x : memref<0x0xf32>)
  produce(%a: tensor<0xf32>) {
    comms.yield %a : tensor<0xf32>
  }
  comms.return
}

// -----

// Another terminator in the region.
// CHECK: C5: 'produce' is one block that ends in comms.yield
comms.kernel @terminator(%x: memref<8xf32>) attributes {ranks = 8 : i64} {
  %t = comms.team world
  comms.all_reduce sum %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  produce(%a: tensor<8xf32>) {
    llvm.unreachable
  }
  comms.return
}

// -----

// A region of the op's text is empty.
// CHECK: error:
comms.kernel @braces(%x: memref<8xf32>) {
  %t = comms.team world
  comms.all_reduce sum %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  produce() {
  }
  comms.return
}

// -----

// A kernel in a kernel.
// CHECK: symbol's parent must have the SymbolTable trait
comms.kernel @outer() {
  comms.kernel @inner() {
    comms.return
  }
  comms.return
}
