// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "ranks=2 blocks=4 check=false" --each "threads=128 cluster=4|threads=1024|threads=256 chip=sm_100" | FileCheck %s
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=2 blocks=4 threads=128 chip=sm_90" | FileCheck %s --check-prefix=PTX
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=2 blocks=4 threads=128 chip=sm_80" | FileCheck %s --check-prefix=OLD
// CHECK: 3 variants assemble

// What the next matmul reads is brought into L2 before anything is waited for: 2 MiB by 4 * 128 threads are 4096 bytes each. The
// kernel reads nothing of it, on no chip and in no loop.
// PTX-LABEL:  .entry next(
// PTX:        min.u64 %rd{{[0-9]+}}, %rd{{[0-9]+}}, 4096
// PTX:        cp.async.bulk.prefetch.L2.global [%rd{{[0-9]+}}], %r{{[0-9]+}};
// PTX:        griddepcontrol.wait
// PTX-NOT:    cp.async.bulk
// OLD-NOT:    cp.async
comms.kernel @next(%x: !comms.window<4x512xf32>, %weight: memref<1048576xbf16>, %y: memref<4x512xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4x512xf32>) outs(%y : memref<4x512xf32>)
      args(%weight : memref<1048576xbf16>)
  consume (%m: tensor<512xf32>, %next: tensor<1048576xbf16>) {
    %s = comms.row_reduce sum %m : tensor<512xf32> -> tensor<1xf32>
    %t = comms.broadcast_row %s : tensor<1xf32> -> tensor<512xf32>
    %u = arith.divf %m, %t : tensor<512xf32>
    comms.yield %u : tensor<512xf32>
  }
  comms.return
}
