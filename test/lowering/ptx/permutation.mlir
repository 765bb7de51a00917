// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=128 check=false algorithm=permutation protocol=push" \
// RUN:   --each "ranks=4 threads=1024|ranks=3 threads=256 chip=sm_100" | FileCheck %s
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=4 blocks=128 check=false algorithm=permutation protocol=push threads=1024" \
// RUN:   | FileCheck %s --check-prefix=PTX

// Messages that go in steps, in rounds and in a pipeline.
// CHECK: 2 variants assemble

// A step ends in a barrier that publishes what was written.
// PTX-LABEL: .visible .entry sum(
// PTX: st.global.v4
// PTX: st.release.sys.global.b32
// PTX: ld.acquire.sys.global.b32
// PTX: st.global.v4
// PTX: st.release.sys.global.b32
// PTX: ld.acquire.sys.global.b32

comms.kernel @sum(%z: !comms.window<201326592xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%z : !comms.window<201326592xbf16>) outs(%z : !comms.window<201326592xbf16>)
  comms.return
}
comms.kernel @tell(%x: !comms.window<50331648xbf16>, %y: !comms.window<50331648xbf16>) {
  %team = comms.team world
  comms.broadcast root 1 %team ins(%x : !comms.window<50331648xbf16>) outs(%y : !comms.window<50331648xbf16>)
  comms.return
}
comms.kernel @cut(%x: !comms.window<201326592xbf16>, %y: !comms.window<201326592xbf16>) {
  %team = comms.team world
  comms.all_to_all %team ins(%x : !comms.window<201326592xbf16>) outs(%y : !comms.window<201326592xbf16>)
  comms.return
}
