// Kernels that take the memory of channels in turn: a window is the one buffer of the launch, and nothing is cleared.
// RUN: comms-opt %s --pass-pipeline='builtin.module(comms.kernel(comms-lower-channels{shared=true}))' --split-input-file | FileCheck %s

// CHECK-LABEL: comms.kernel @poison
// CHECK-SAME: %channel0.lamport: !comms.window<1x2x3x64xf32> {comms.hidden, comms.init = "poison", comms.shared_slots = "poison"}
// CHECK-SAME: comms.shared_channels
// CHECK-NOT: comms.epoch
// CHECK-NOT: comms.poison_fill
// CHECK: comms.poison_store
// CHECK-NOT: comms.poison_fill
// CHECK: comms.poison_load
// CHECK-NOT: comms.poison_fill
comms.kernel @poison(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %rank = comms.rank %team
  %peer = arith.subi %c1, %rank : index
  %ch = comms.channel 0 pairwise over %team slots 3 : !comms.channel<lamport, 64xf32>
  %mine = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.send %mine on %ch[%c0] to %peer : tensor<64xf32>, !comms.channel<lamport, 64xf32>
  %theirs = comms.recv %ch[%c0] from %peer : !comms.channel<lamport, 64xf32> -> tensor<64xf32>
  comms.tile_store %theirs, %x[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}

// -----

// CHECK-LABEL: comms.kernel @others
// CHECK-SAME: %channel0.ll: !comms.window<1x2x1x64xi64> {comms.hidden, comms.init = "zero", comms.shared_slots = "packets"}
// CHECK-SAME: %channel1.ll128: !comms.window<1x2x1x36xi64> {comms.hidden, comms.init = "zero", comms.shared_slots = "lines"}
// CHECK-SAME: %channel2.push: !comms.window<1x2x1x64xf32> {comms.hidden, comms.init = "zero", comms.shared_slots = "data"}
comms.kernel @others(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %team = comms.team world
  %rank = comms.rank %team
  %peer = arith.subi %c1, %rank : index
  %a = comms.channel 0 pairwise over %team slots 1 : !comms.channel<ll, 64xf32>
  %b = comms.channel 1 pairwise over %team slots 1 : !comms.channel<ll128, 64xf32>
  %c = comms.channel 2 pairwise over %team slots 1 : !comms.channel<push, 64xf32>
  %mine = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.send %mine on %a[%c0] to %peer : tensor<64xf32>, !comms.channel<ll, 64xf32>
  comms.send %mine on %b[%c0] to %peer : tensor<64xf32>, !comms.channel<ll128, 64xf32>
  comms.send %mine on %c[%c0] to %peer : tensor<64xf32>, !comms.channel<push, 64xf32>
  comms.channel_barrier %c : !comms.channel<push, 64xf32>
  %one = comms.recv %a[%c0] from %peer : !comms.channel<ll, 64xf32> -> tensor<64xf32>
  %two = comms.recv %b[%c0] from %peer : !comms.channel<ll128, 64xf32> -> tensor<64xf32>
  %three = comms.recv %c[%c0] from %peer : !comms.channel<push, 64xf32> -> tensor<64xf32>
  %sum = arith.addf %one, %two : tensor<64xf32>
  %all = arith.addf %sum, %three : tensor<64xf32>
  comms.tile_store %all, %x[%c0] : tensor<64xf32>, memref<64xf32>
  comms.return
}
