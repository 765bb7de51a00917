// RUN: comms-opt %s --convert-comms-to-nvvm="threads=1" -canonicalize -split-input-file | FileCheck %s

// The second poll joins the first across arithmetic and a store to other
// memory.
// CHECK-LABEL: llvm.func @together(
// CHECK: ld.relaxed.sys.global.v4.b32
// CHECK-NEXT: llvm.extractvalue
// CHECK-NOT: llvm.cond_br
// CHECK: ld.relaxed.sys.global.v4.b32
// CHECK: llvm.call @commsir_stop
// CHECK-NOT: ld.relaxed
// CHECK: llvm.return
comms.kernel @together(%w: !comms.window<64xf32>, %y: memref<8xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %a = comms.poison_load %own[%c0] : memref<64xf32> -> vector<4xf32>
  vector.store %a, %y[%c0] : memref<8xf32>, vector<4xf32>
  %at = arith.addi %c4, %c4 : index
  %b = comms.poison_load %own[%at] : memref<64xf32> -> vector<4xf32>
  %sum = arith.addf %a, %b : vector<4xf32>
  vector.store %sum, %y[%c4] : memref<8xf32>, vector<4xf32>
  comms.return
}

// -----

// A peer may wait for what is sent between two polls before it sends itself.
// CHECK-LABEL: llvm.func @apart(
// CHECK: ld.relaxed.sys.global.v4.b32
// CHECK: llvm.call @commsir_stop
// CHECK: st.relaxed.sys.global.v4.b32
// CHECK: ld.relaxed.sys.global.v4.b32
// CHECK: llvm.call @commsir_stop
comms.kernel @apart(%w: !comms.window<64xf32>, %y: memref<8xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %theirs = comms.peer %w at %c1 of %team : !comms.window<64xf32> -> memref<64xf32>
  %a = comms.poison_load %own[%c0] : memref<64xf32> -> vector<4xf32>
  comms.poison_store %a, %theirs[%c8] : vector<4xf32>, memref<64xf32>
  %b = comms.poison_load %own[%c8] : memref<64xf32> -> vector<4xf32>
  %sum = arith.addf %a, %b : vector<4xf32>
  vector.store %sum, %y[%c0] : memref<8xf32>, vector<4xf32>
  comms.return
}

// -----

// An offset that is not known to be a multiple of anything: word by word.
// CHECK-LABEL: llvm.func @unaligned(
// CHECK-COUNT-4: ld.relaxed.sys.global.b32
// CHECK-COUNT-4: st.relaxed.sys.global.v2.b32
comms.kernel @unaligned(%w: !comms.window<64xf32>, %p: !comms.window<64xi64>, %i: index) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %flag = arith.constant 7 : i32
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %packets = comms.local %p : !comms.window<64xi64> -> memref<64xi64>
  %a = comms.poison_load %own[%i] : memref<64xf32> -> vector<4xf32>
  comms.packet_store %a, %packets[%i] flag %flag : vector<4xf32>, memref<64xi64>
  comms.return
}

// -----

// Lanes from `valid` on are neither read nor written.
// CHECK-LABEL: llvm.func @tail(
// CHECK-COUNT-4: @p ld.relaxed.sys.global.v2.b32
// CHECK: st.relaxed.sys.global.v4.b32
// CHECK-COUNT-4: @p st.relaxed.sys.global.b32
comms.kernel @tail(%w: !comms.window<64xf32>, %p: !comms.window<64xi64>, %n: index) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %flag = arith.constant 7 : i32
  %own = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %packets = comms.local %p : !comms.window<64xi64> -> memref<64xi64>
  %a = comms.packet_load %packets[%c0] flag %flag valid %n : memref<64xi64> -> vector<4xf32>
  comms.poison_store %a, %own[%c0] valid %n : vector<4xf32>, memref<64xf32>
  comms.return
}
