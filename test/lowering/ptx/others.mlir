// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=2 check=false ranks=4" --each "threads=128|threads=32 chip=sm_100" | FileCheck %s
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=2 check=false ranks=4 algorithm=permutation protocol=push" --each "threads=512|threads=32 chip=sm_80" | FileCheck %s
// CHECK: 2 variants assemble

comms.kernel @gather(%x: !comms.window<2048xf32>, %y: !comms.window<8192xf32>) {
  %team = comms.team world
  comms.all_gather %team ins(%x : !comms.window<2048xf32>) outs(%y : !comms.window<8192xf32>)
  comms.return
}
comms.kernel @scatter(%x: !comms.window<8192xf16>, %y: !comms.window<2048xf16>) {
  %team = comms.team world
  comms.reduce_scatter sum %team ins(%x : !comms.window<8192xf16>) outs(%y : !comms.window<2048xf16>)
  comms.return
}
comms.kernel @exchange(%x: !comms.window<8192xi32>, %y: !comms.window<8192xi32>) {
  %team = comms.team world
  comms.all_to_all %team ins(%x : !comms.window<8192xi32>) outs(%y : !comms.window<8192xi32>)
  comms.return
}
comms.kernel @tell(%x: !comms.window<2048xbf16>, %y: !comms.window<2048xbf16>) {
  %team = comms.team world
  comms.broadcast root 1 %team ins(%x : !comms.window<2048xbf16>) outs(%y : !comms.window<2048xbf16>)
  comms.return
}
