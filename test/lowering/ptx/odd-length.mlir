// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=2 check=false ranks=4 threads=64" \
// RUN:   --each "algorithm=one_shot|algorithm=two_shot|algorithm=ring" --each "protocol=pull|protocol=ll|protocol=lamport" | FileCheck %s

// A length that no vector divides.
// CHECK: 9 variants assemble

comms.kernel @odd(%x: !comms.window<1003xbf16>, %y: !comms.window<1003xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<1003xbf16>) outs(%y : !comms.window<1003xbf16>)
  comms.return
}
