// RUN: comms-opt %s | comms-opt | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @channels
comms.kernel @channels(%n: index, %p: index) attributes {ranks = 4 : i64} {
  %team = comms.team world
  %x = arith.constant dense<1.0> : tensor<16xf32>
  // CHECK: %[[M:.*]] = comms.channel 0 multicast over %{{[^ ]*}} slots 2 : <ll, 16xf32>
  %m = comms.channel 0 multicast over %team slots 2 : !comms.channel<ll, 16xf32>
  // CHECK: %[[P:.*]] = comms.channel 1 pairwise over %{{[^ ]*}} slots 2 : <pull, 16xf32>
  %pw = comms.channel 1 pairwise over %team slots 2 : !comms.channel<pull, 16xf32>
  // CHECK: %[[S:.*]] = comms.channel 2 single over %{{[^ ]*}} slots 1 : <lamport, 16xf32>
  %s = comms.channel 2 single over %team slots 1 : !comms.channel<lamport, 16xf32>
  // CHECK: comms.send %{{.*}} on %[[M]][%{{.*}}] : tensor<16xf32>, <ll, 16xf32>
  comms.send %x on %m[%n] : tensor<16xf32>, !comms.channel<ll, 16xf32>
  // CHECK: comms.send %{{.*}} on %[[M]][%{{.*}}] valid %{{[^ ]*}} : tensor<16xf32>
  comms.send %x on %m[%n] valid %n : tensor<16xf32>, !comms.channel<ll, 16xf32>
  // CHECK: comms.send %{{.*}} on %[[P]][%{{.*}}] to %{{[^ ]*}} : tensor<16xf32>
  comms.send %x on %pw[%n] to %p : tensor<16xf32>, !comms.channel<pull, 16xf32>
  // CHECK: comms.send %{{.*}} on %[[S]][%{{.*}}] to %{{[^ ]*}} valid %{{[^ ]*}} : tensor<16xf32>
  comms.send %x on %s[%n] to %p valid %n : tensor<16xf32>, !comms.channel<lamport, 16xf32>
  // CHECK: comms.channel_barrier %[[P]] : <pull, 16xf32>
  comms.channel_barrier %pw : !comms.channel<pull, 16xf32>
  // CHECK: comms.recv %[[P]][%{{.*}}] from %{{[^ ]*}} : <pull, 16xf32> -> tensor<16xf32>
  %a = comms.recv %pw[%n] from %p : !comms.channel<pull, 16xf32> -> tensor<16xf32>
  // CHECK: comms.recv %[[M]][%{{.*}}] from %{{[^ ]*}} valid %{{[^ ]*}} : <ll, 16xf32> -> tensor<16xf32>
  %b = comms.recv %m[%n] from %p valid %n : !comms.channel<ll, 16xf32> -> tensor<16xf32>
  // CHECK: comms.role
  comms.role "sender" blocks 0 to 1 {
    // CHECK: comms.channel 3
    %r = comms.channel 3 single over %team slots 1 : !comms.channel<ll, 16xf32>
  }
  comms.return
}
