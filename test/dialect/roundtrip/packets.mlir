// RUN: comms-opt %s | comms-opt | FileCheck %s
// RUN: comms-opt %s --mlir-print-op-generic | comms-opt | FileCheck %s
// RUN: comms-opt %s --emit-bytecode | comms-opt | FileCheck %s

// CHECK-LABEL: comms.kernel @packets
comms.kernel @packets(%m: memref<64xi64>, %grid: memref<2x2x4x8xi64>, %dyn: memref<?xi64>, %flag: i32, %n: index) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<16xf32>
  %h = arith.constant dense<1.0> : tensor<17xbf16>
  %q = arith.constant dense<1> : vector<5xi8>
  // CHECK: comms.packet_store %{{.*}}, %{{.*}}[%c0] flag %{{[^ ]*}} : tensor<16xf32>, memref<64xi64>
  comms.packet_store %x, %m[%c0] flag %flag assumes store8_whole : tensor<16xf32>, memref<64xi64>
  // CHECK: comms.packet_store %{{.*}}, %{{.*}}[%{{.*}}] flag %{{[^ ]*}} valid %{{[^ ]*}} assumes store16_whole : tensor<17xbf16>, memref<?xi64>
  comms.packet_store %h, %dyn[%n] flag %flag valid %n assumes store16_whole : tensor<17xbf16>, memref<?xi64>
  // CHECK: comms.packet_store {{.*}} : vector<5xi8>, memref<64xi64>
  comms.packet_store %q, %m[%c0] flag %flag : vector<5xi8>, memref<64xi64>
  // CHECK: comms.packet_load %{{.*}}[%{{.*}}] flag %{{[^ ]*}} : memref<2x2x4x8xi64> -> tensor<4xf64>
  %w = comms.packet_load %grid[%n] flag %flag : memref<2x2x4x8xi64> -> tensor<4xf64>
  // CHECK: comms.packet_load %{{.*}}[%c0] flag %{{[^ ]*}} : memref<64xi64> -> tensor<16xf32>
  %a = comms.packet_load %m[%c0] flag %flag : memref<64xi64> -> tensor<16xf32>
  // CHECK: comms.packet_load %{{.*}}[%{{.*}}] flag %{{[^ ]*}} valid %{{[^ ]*}} assumes store16_whole : memref<?xi64> -> vector<16xf16>
  %b = comms.packet_load %dyn[%n] flag %flag valid %n assumes store16_whole : memref<?xi64> -> vector<16xf16>
  comms.return
}

// CHECK-LABEL: comms.kernel @lines
comms.kernel @lines(%m: memref<2x36xi64>, %flag: i32, %n: index) {
  %x = arith.constant dense<1.0> : tensor<32xf32>
  // CHECK: comms.packet_store %{{.*}}, %{{.*}}[%{{.*}}] flag %{{[^ ]*}} valid %{{[^ ]*}} assumes store128_whole : tensor<32xf32>, memref<2x36xi64>
  comms.packet_store %x, %m[%n] flag %flag valid %n assumes store128_whole : tensor<32xf32>, memref<2x36xi64>
  // CHECK: comms.packet_load %{{.*}}[%{{.*}}] flag %{{[^ ]*}} assumes store128_whole : memref<2x36xi64> -> tensor<64xi16>
  %a = comms.packet_load %m[%n] flag %flag assumes store128_whole : memref<2x36xi64> -> tensor<64xi16>
  comms.return
}

// CHECK-LABEL: comms.kernel @poison
comms.kernel @poison(%m: memref<2x32xf32>, %h: memref<?xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<16xf32>
  %y = arith.constant dense<1.0> : vector<16xf16>
  // CHECK: comms.poison_store %{{.*}}, %{{.*}}[%c0] : tensor<16xf32>, memref<2x32xf32>
  comms.poison_store %x, %m[%c0] : tensor<16xf32>, memref<2x32xf32>
  // CHECK: comms.poison_store %{{.*}}, %{{.*}}[%{{.*}}] valid %{{[^ ]*}} : vector<16xf16>, memref<?xf16>
  comms.poison_store %y, %h[%n] valid %n : vector<16xf16>, memref<?xf16>
  // CHECK: comms.poison_load %{{.*}}[%c0] : memref<2x32xf32> -> tensor<16xf32>
  %a = comms.poison_load %m[%c0] : memref<2x32xf32> -> tensor<16xf32>
  // CHECK: comms.poison_load %{{.*}}[%{{.*}}] valid %{{[^ ]*}} : memref<?xf16> -> tensor<8xf16>
  %b = comms.poison_load %h[%n] valid %n : memref<?xf16> -> tensor<8xf16>
  // CHECK: comms.poison_fill %{{.*}}[%c0] count %{{[^ ]*}} : memref<2x32xf32>
  comms.poison_fill %m[%c0] count %n : memref<2x32xf32>
  comms.return
}
