// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=2 check=false protocol=ll128 ranks=2|blocks=2 check=false protocol=ll128 ranks=8 cluster=2" \
// RUN:   --each "algorithm=one_shot|algorithm=ring" --each "threads=64 chip=sm_100|threads=256 chip=sm_90" | FileCheck %s
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=2 check=false protocol=ll128 ranks=4 threads=32 chip=sm_80" | FileCheck %s --check-prefix=OLD
// RUN: sed 's/1000xbf16/2048xi8/g' %s > %t.mlir
// RUN: %python %S/sweep.py %ptxas %t.mlir --each "blocks=2 check=false protocol=ll128 ranks=3" \
// RUN:   --each "algorithm=one_shot|algorithm=two_shot" --each "threads=64" | FileCheck %s --check-prefix=WIDE
// RUN: sed 's/1000/1024/g' %s > %t.whole.mlir
// RUN: comms-translate --comms-to-ptx %t.whole.mlir --gpu="ranks=2 blocks=1 check=false algorithm=one_shot protocol=ll128 threads=64" \
// RUN:   | FileCheck %s --check-prefix=LINES

// CHECK: 8 variants assemble
// OLD: 1 variants assemble
// Sums of i8 travel as i32 in the second half: a thread moves its part of four
// lines.
// WIDE: 2 variants assemble

// A warp is in one place when its eight-thread groups store or load a line, and
// agrees before it looks again. The part of the flag's thread goes to the rest.
// LINES-LABEL: .visible .entry lines(
// LINES: bar.warp.sync -1
// LINES-NOT: bra
// LINES: {{^}} st.relaxed.sys.global.v4.b32
// LINES-NOT: bra
// LINES: @p st.relaxed.sys.global.v4.b32
// LINES: bar.warp.sync -1
// LINES-NOT: bra
// LINES: {{^}} ld.relaxed.sys.global.v4.b32
// LINES-NOT: bra
// LINES: @p ld.relaxed.sys.global.v4.b32
// LINES-NOT: bra
// LINES: vote.sync.all.pred
// LINES: vote.sync.all.pred
// LINES: shfl.sync.idx.b32
// LINES: call{{.*}} commsir_stop
// LINES: vote.sync.all.pred

comms.kernel @lines(%x: !comms.window<1000xbf16>, %y: !comms.window<1000xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<1000xbf16>) outs(%y : !comms.window<1000xbf16>)
  comms.return
}
