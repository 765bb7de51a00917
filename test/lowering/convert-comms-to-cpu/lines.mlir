// Lines of packets: what stands where the flag is goes to the line's rest.
// RUN: comms-opt %s -split-input-file --convert-comms-to-cpu --canonicalize --cse | FileCheck %s

// A quarter of a line is stored in front of its flags: that of the rest, then
// the line's own, if it is the last quarter.
// CHECK-LABEL: llvm.func @store
// CHECK:       llvm.intr.masked.store {{.*}} : vector<4xi64>, vector<4xi1> into !llvm.ptr
// CHECK:       %[[LAST:.*]] = llvm.extractelement %{{.*}} : vector<4xi64>
// CHECK:       llvm.cond_br %{{.*}}, ^[[END:.*]], ^[[WITHIN:.*]]
// CHECK:       ^[[END]]:
// CHECK:       llvm.store volatile %[[LAST]]
// CHECK:       llvm.store volatile %[[FLAG:.*]], %{{.*}} atomic release
// CHECK:       llvm.store volatile %[[FLAG]], %{{.*}} atomic release
// CHECK:       ^[[WITHIN]]:
// CHECK-NEXT:  llvm.store volatile %[[LAST]]
// CHECK:       llvm.call @commsir_cpu_stored
comms.kernel @store(%w: !comms.window<36xi64>, %flag: i32, %at: index) attributes {ranks = 2 : i64} {
  %tile = arith.constant dense<1.0> : vector<8xf32>
  %own = comms.local %w : !comms.window<36xi64> -> memref<36xi64>
  comms.packet_store %tile, %own[%at] flag %flag assumes store128_whole : vector<8xf32>, memref<36xi64>
  comms.return
}

// -----

// The flag is looked at before any data is.
// CHECK-LABEL: llvm.func @load
// CHECK-SAME:  comms.sites = {{\[\[}}"comms.packet_load",
// CHECK:       %[[FOUND:.*]] = llvm.load volatile %[[FLAG:.*]] atomic acquire
// CHECK:       llvm.cond_br %{{.*}}, ^[[WAIT:.*]], ^[[THERE:.*]]
// CHECK:       ^[[WAIT]]:
// CHECK:       llvm.call @commsir_cpu_wait_line(%arg0, %{{.*}}, %[[FLAG]],
// CHECK:       ^[[THERE]]:
// CHECK:       llvm.load volatile
// CHECK:       llvm.intr.masked.load
comms.kernel @load(%w: !comms.window<36xi64>, %flag: i32, %at: index, %y: memref<16xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %own = comms.local %w : !comms.window<36xi64> -> memref<36xi64>
  %got = comms.packet_load %own[%at] flag %flag assumes store128_whole : memref<36xi64> -> vector<16xf32>
  vector.store %got, %y[%c0] : memref<16xf32>, vector<16xf32>
  comms.return
}
