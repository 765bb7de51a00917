// Packets and poison are looked at in the kernel; the runtime waits.
// RUN: comms-opt %s -split-input-file --convert-comms-to-cpu --canonicalize --cse | FileCheck %s

// Three bf16 are two words, the last padded; the flag is the high half; what
// does not exist is neither stored nor waited for.
// CHECK-LABEL: llvm.func @narrow
// CHECK:       llvm.shufflevector %{{.*}} [0, 1, 2, 3] : vector<3xi16>
// CHECK:       llvm.bitcast %{{.*}} : vector<4xi16> to vector<2xi32>
// CHECK:       %[[DATA:.*]] = llvm.zext %{{.*}} : vector<2xi32> to vector<2xi64>
// CHECK:       %[[HIGH:.*]] = llvm.shl
// CHECK:       llvm.or %[[DATA]]
// CHECK:       llvm.intr.masked.store {{.*}} : vector<2xi64>, vector<2xi1> into !llvm.ptr
// CHECK:       llvm.call @commsir_cpu_stored
comms.kernel @narrow(%w: !comms.window<32xi64>, %flag: i32, %n: index) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %tile = arith.constant dense<1.0> : vector<3xbf16>
  %own = comms.local %w : !comms.window<32xi64> -> memref<32xi64>
  comms.packet_store %tile, %own[%c0] flag %flag valid %n : vector<3xbf16>, memref<32xi64>
  comms.return
}

// -----

// CHECK-LABEL: llvm.func @load
// CHECK-SAME:  comms.sites = {{\[\[}}"comms.packet_load",
// CHECK:       %[[FIRST:.*]] = llvm.load volatile %[[AT:.*]] {alignment = 8 : i64} : !llvm.ptr -> vector<16xi64>
// CHECK:       llvm.icmp "eq" {{.*}} : vector<16xi32>
// CHECK:       llvm.cond_br %{{.*}}, ^[[WAIT:.*]], ^[[THERE:.*]]
// CHECK:       ^[[WAIT]]:
// CHECK:       llvm.call @commsir_cpu_wait_packets(%arg0, %{{.*}}, %[[AT]],
// CHECK:       llvm.load volatile %[[AT]]
comms.kernel @load(%w: !comms.window<32xi64>, %flag: i32, %y: memref<16xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %own = comms.local %w : !comms.window<32xi64> -> memref<32xi64>
  %got = comms.packet_load %own[%c0] flag %flag : memref<32xi64> -> vector<16xf32>
  vector.store %got, %y[%c0] : memref<16xf32>, vector<16xf32>
  comms.return
}

// -----

// NaN is made canonical before it is stored; 0xFFFAFFFA is poison.
// CHECK-LABEL: llvm.func @poison
// CHECK-DAG:   %[[POISON:.*]] = llvm.mlir.constant(dense<-327686> : vector<16xi32>)
// CHECK-DAG:   %[[NAN:.*]] = llvm.mlir.constant(dense<2143289344> : vector<16xi32>)
// CHECK:       llvm.icmp "ne" %{{.*}}, %[[POISON]]
// CHECK:       llvm.call @commsir_cpu_wait_poison
// CHECK:       llvm.select %{{.*}}, %[[NAN]], %{{.*}} : vector<16xi1>, vector<16xi32>
// CHECK:       llvm.store volatile
// CHECK:       llvm.call @commsir_cpu_stored
// CHECK:       llvm.call @commsir_cpu_fill_poison
comms.kernel @poison(%w: !comms.window<32xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %own = comms.local %w : !comms.window<32xf32> -> memref<32xf32>
  %got = comms.poison_load %own[%c0] : memref<32xf32> -> vector<16xf32>
  comms.poison_store %got, %own[%c16] : vector<16xf32>, memref<32xf32>
  comms.poison_fill %own[%c0] count %c16 : memref<32xf32>
  comms.return
}
