// RUN: comms-opt %s | comms-opt | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @barriers
comms.kernel @barriers() {
  %team = comms.team world
  // CHECK: comms.barrier %{{[^ ]*}} block{{$}}
  comms.barrier %team block order acq_rel
  // CHECK: comms.barrier %{{[^ ]*}} grid{{$}}
  comms.barrier %team grid
  // CHECK: comms.barrier %{{[^ ]*}} grid order relaxed
  comms.barrier %team grid order relaxed
  // CHECK: comms.barrier %{{[^ ]*}} block order acquire
  comms.barrier %team block order acquire
  // CHECK: comms.barrier %{{[^ ]*}} block order release
  comms.barrier %team block order release
  // CHECK: %[[A:.*]] = comms.barrier_arrive %{{[^ ]*}} block{{$}}
  %a = comms.barrier_arrive %team block
  // CHECK: %[[B:.*]] = comms.barrier_arrive %{{[^ ]*}} grid order relaxed
  %b = comms.barrier_arrive %team grid order relaxed
  // CHECK: comms.barrier_wait %[[A]]{{$}}
  %t = comms.barrier_wait %a
  // CHECK: comms.barrier_wait %[[B]] order relaxed
  %u = comms.barrier_wait %b order relaxed
  comms.role "consumer" blocks 0 to 1 {
    // CHECK: comms.role
    // CHECK: comms.barrier %{{[^ ]*}} block{{$}}
    comms.barrier %team block
  }
  comms.return
}
