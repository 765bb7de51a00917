// REQUIRES: ptxas
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=8 threads=256 chip=sm_80" -o %t80
// RUN: FileCheck %s --check-prefixes=CHECK,WARPS < %t80
// RUN: %ptxas -arch=sm_80 -v %t80 -o %t80.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=8 threads=256 chip=sm_90" -o %t90
// RUN: FileCheck %s --check-prefixes=CHECK,GROUPS --implicit-check-not=ldmatrix < %t90
// RUN: %ptxas -arch=sm_90a -v %t90 -o %t90.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: %ptxas -arch=sm_90a -c -v %t90 -o %t90.o 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=1 blocks=8 threads=256 chip=sm_100" -o %t100
// RUN: FileCheck %s --check-prefixes=CHECK,WARPS < %t100
// RUN: %ptxas -arch=sm_100 -v %t100 -o %t100.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS

// A product by the instructions of each chip: operands come ahead through shared
// memory, sums stay in registers. Groups of four warps multiply where sm_90 has
// them, without ptxas making them wait for each other (C7509 and the like), in
// code that is linked (-c), as nvJitLink links it, as well. C7519 is no fault.
// WARPS-NOT: sm_90a
// GROUPS: .target sm_90a
// CHECK-LABEL: .entry product(
// One more warp than the 256 threads copies, and is in no barrier of theirs.
// GROUPS: .reqntid 288
// WARPS: cp.async.cg.shared.global
// WARPS: cp.async.commit_group
// GROUPS: tensormap.replace.tile.global_address
// GROUPS-DAG: cp.async.bulk.tensor.2d.shared::cluster.global
// WARPS: ldmatrix.sync.aligned.m8n8.x4
// WARPS: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// GROUPS-DAG: wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16
// GROUPS-DAG: wgmma.wait_group.sync.aligned 1
// GROUPS-DAG: bar.sync 1, 256;
// GROUPS-DAG: elect.sync
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
// SPILLS: 0 bytes spill stores, 0 bytes spill loads
// SPILLS-NOT: C75{{0[0-9]|1[0-8]}}
comms.kernel @product(%a: memref<512x512xbf16>, %b: memref<512x512xbf16>, %c: memref<512x512xbf16>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %block = comms.block_id
  %row = arith.divui %block, %c2 : index
  %column = arith.remui %block, %c2 : index
  %i = arith.muli %row, %c128 : index
  %j = arith.muli %column, %c256 : index
  comms.contract %a[%i, %c0], %b[%c0, %j] to %c[%i, %j] tile [128, 256] depth %c512
    : memref<512x512xbf16>, memref<512x512xbf16>, memref<512x512xbf16>
  comms.return
}
