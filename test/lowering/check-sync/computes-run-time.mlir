// What kernels compute whose sizes or roots are known at launch only, over every algorithm that takes them.
// RUN: comms-opt %s -split-input-file "-comms-expand-collectives=algorithm=one_shot protocol=ll blocks=2" "-comms-check-sync=require-proof" | FileCheck %s
// RUN: comms-opt %s -split-input-file "-comms-expand-collectives=algorithm=one_shot protocol=push blocks=2" -comms-lower-channels "-comms-check-sync=require-proof" | FileCheck %s
// RUN: sed 's/sum, x)"/max, x)"/; s/all_gather(x)/all_to_all(x)/; s/"broadcast(x)"/"broadcast(root 1, x)"/' %s | not comms-opt -split-input-file "-comms-expand-collectives=algorithm=one_shot protocol=ll blocks=2" -comms-check-sync 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK: comms.proof = {{.*}}computes = ["y"]{{.*}}verdict = "proven"
// WRONG: writes x(0) + x(1) + x(2) + x(3) to 'y'
comms.kernel @sum(%x: memref<250xf32>, %y: memref<250xf32>)
    attributes {ranks = 4, comms.run_time_extent = 1 : i64, comms.computes = {y = "all_reduce(sum, x)"}} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<250xf32>) outs(%y : memref<250xf32>)
  comms.return
}

// -----

// CHECK: comms.proof = {{.*}}computes = ["y"]{{.*}}verdict = "proven"
// WRONG: expected is max(
comms.kernel @part(%x: memref<256xf32>, %y: memref<64xf32>)
    attributes {ranks = 4, comms.run_time_extent = 16 : i64, comms.computes = {y = "reduce_scatter(sum, x)"}} {
  %team = comms.team world
  comms.reduce_scatter sum %team ins(%x : memref<256xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

// CHECK: comms.proof = {{.*}}computes = ["y"]{{.*}}verdict = "proven"
// WRONG: says what 'y' holds, except for its element
comms.kernel @gather(%x: memref<64xf32>, %y: memref<256xf32>)
    attributes {ranks = 4, comms.run_time_extent = 1 : i64, comms.computes = {y = "all_gather(x)"}} {
  %team = comms.team world
  comms.all_gather %team ins(%x : memref<64xf32>) outs(%y : memref<256xf32>)
  comms.return
}

// -----

// CHECK: comms.proof = {{.*}}computes = ["y"]{{.*}}verdict = "proven"
// WRONG: expected is x(1)
comms.kernel @broadcast(%x: memref<64xf32>, %y: memref<64xf32>, %root: index {comms.run_time_root})
    attributes {ranks = 4, comms.computes = {y = "broadcast(x)"}} {
  %team = comms.team world
  comms.broadcast root 0 %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}

// -----

// CHECK: comms.proof = {{.*}}computes = ["y"]{{.*}}verdict = "proven"
// WRONG: expected is max(
comms.kernel @reduce(%x: memref<64xf32>, %y: memref<64xf32>, %root: index {comms.run_time_root})
    attributes {ranks = 4, comms.run_time_extent = 1 : i64, comms.computes = {y = "reduce(sum, x)"}} {
  %team = comms.team world
  comms.reduce sum root 0 %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}
