// REQUIRES: ptxas
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=2 check=false" --each "ranks=2|ranks=8" \
// RUN:   --each "algorithm=one_shot|algorithm=two_shot|algorithm=ring" \
// RUN:   --each "protocol=pull|protocol=ll|protocol=lamport" --each "threads=128|threads=32 chip=sm_80" | FileCheck %s
// RUN: %python %S/sweep.py %ptxas %s --each "blocks=2 check=false algorithm=permutation protocol=push" --each "ranks=2|ranks=8" \
// RUN:   --each "threads=1024|threads=32 chip=sm_80" | FileCheck %s --check-prefix=PUSH
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=4 blocks=4 check=false algorithm=one_shot protocol=lamport threads=128" \
// RUN:   | FileCheck %s --check-prefix=LAMPORT
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=4 blocks=4 check=false algorithm=two_shot protocol=lamport threads=32" \
// RUN:   | FileCheck %s --check-prefix=TURNS
// RUN: comms-translate --comms-to-ptx %s --gpu="ranks=4 blocks=4 check=false algorithm=one_shot protocol=pull threads=64 cluster=2" \
// RUN:   | FileCheck %s --check-prefix=PULL
// RUN: comms-translate --comms-to-nvptx %s --gpu="ranks=4 blocks=4 check=false algorithm=two_shot protocol=ll threads=64" \
// RUN:   | FileCheck %s --check-prefix=LLVM --implicit-check-not=atomicrmw --implicit-check-not="asm \"" --implicit-check-not=" fma"

// Each algorithm by each protocol.
// PUSH: 4 variants assemble
// CHECK: 36 variants assemble

// The message of a thread moves in one access a peer, and the loads of all four
// polls are in flight before the first is looked at.
// LAMPORT-LABEL: .visible .entry all_reduce(
// LAMPORT: .param .align 8 .b8 all_reduce_param_0[144]
// LAMPORT: .reqntid 128
// LAMPORT: griddepcontrol.launch_dependents;
// LAMPORT: griddepcontrol.wait;
// LAMPORT: ld.global.v4.b32
// LAMPORT: fma.rn.bf16x2
// LAMPORT: min.s16x2
// LAMPORT-COUNT-4: st.relaxed.sys.global.v4.b32
// LAMPORT: ld.relaxed.sys.global.v4.b32
// LAMPORT-NOT: setp
// LAMPORT: ld.relaxed.sys.global.v4.b32
// LAMPORT-NOT: setp
// LAMPORT: ld.relaxed.sys.global.v4.b32
// LAMPORT-NOT: setp
// LAMPORT: ld.relaxed.sys.global.v4.b32
// LAMPORT: max.u16x2
// LAMPORT: setp
// LAMPORT: call{{.*}} commsir_stop
// LAMPORT: add.rn.f32
// LAMPORT: cvt.rn.bf16x2.f32
// LAMPORT: min.s16x2
// LAMPORT: st.global.v4.b32
// LAMPORT: bar{{.*}}sync

// All loads of a block's four tiles are on the way before the first is sent, and
// the owner pushes one of the four.
// TURNS-LABEL: .visible .entry all_reduce(
// TURNS-NOT: st.relaxed
// TURNS: ld.global.v4.b32
// TURNS-NOT: st.relaxed
// TURNS: ld.global.v4.b32
// TURNS-NOT: st.relaxed
// TURNS: ld.global.v4.b32
// TURNS-NOT: st.relaxed
// TURNS: ld.global.v4.b32
// TURNS-COUNT-4: st.relaxed.sys.global.v4.b32
// TURNS-COUNT-4: ld.relaxed.sys.global.v4.b32
// TURNS-COUNT-4: st.relaxed.sys.global.v4.b32
// TURNS-COUNT-4: ld.relaxed.sys.global.v4.b32
// TURNS-NOT: ld.relaxed.sys.global.v4.b32
// TURNS: bar{{.*}}sync

// PULL-LABEL: .visible .entry all_reduce(
// PULL: .reqntid 64
// PULL: .reqnctapercluster 2
// PULL: barrier.cluster.arrive
// PULL: barrier.cluster.wait
// PULL: st.release.sys.global.b32
// PULL: ld.acquire.sys.global.b32
// PULL: barrier.cluster.arrive

// Every inline assembly has side effects and clobbers memory.
// LLVM: call void asm sideeffect "griddepcontrol.wait;", "~{memory}"
// Two packets of 8 bytes travel in one access.
// LLVM: asm sideeffect "st.relaxed.sys.global.v4.b32 [$0], {$1, $2, $3, $4};", "l,r,r,r,r,~{memory}"
// LLVM: asm sideeffect "ld.relaxed.sys.global.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l,~{memory}"

comms.kernel @all_reduce(%x: !comms.window<4096xbf16>, %y: !comms.window<4096xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4096xbf16>) outs(%y : !comms.window<4096xbf16>)
  comms.return
}
