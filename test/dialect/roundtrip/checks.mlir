// RUN: comms-opt %s | comms-opt | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @checks
comms.kernel @checks(%m: memref<64xf32>, %offset: index, %count: index, %limit: index) {
  // CHECK: comms.check_bounds "tile_load of m" %{{[^ ]*}}, %{{[^ ]*}} in %{{[^ ]*}}{{$}}
  comms.check_bounds "tile_load of m" %offset, %count in %limit
  // CHECK: comms.record_access read %{{.*}}[%{{.*}}] count %{{[^ ]*}} : memref<64xf32>
  comms.record_access read %m[%offset] count %count : memref<64xf32>
  // CHECK: comms.record_access write %{{.*}}[%{{.*}}] count %{{[^ ]*}} : memref<64xf32>
  comms.record_access write %m[%offset] count %count : memref<64xf32>
  // CHECK: comms.record_sync "barrier"{{$}}
  comms.record_sync "barrier"
  // CHECK: comms.record_sync "signal"(%{{[^ ]*}}, %{{[^ ]*}})
  comms.record_sync "signal" (%offset, %count)
  comms.return
}
