// The litmus tests of the memory model (docs/Spec.md): exactly these outcomes are allowed.
// RUN: comms-opt %s -split-input-file -o %t
// RUN: %python %S/Inputs/litmus.py %s | FileCheck %s
// CHECK: litmus tests, 0 wrong

// Message passing without any order.
comms.kernel @mp_relaxed(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 10 11

// -----

// Message passing (M5).
comms.kernel @mp(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 11

// -----

// Nobody acquires.
comms.kernel @mp_release_alone(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 10 11

// -----

// Nobody releases.
comms.kernel @mp_acquire_alone(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 10 11

// -----

// Fences and relaxed accesses are patterns, too (M5).
comms.kernel @mp_fences(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 11

// -----

// The weakest fences that do.
comms.kernel @mp_fence_release_acquire(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.fence release sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.fence acquire sys
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 11

// -----

// The fence stands behind the flag.
comms.kernel @mp_fence_late(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 10 11

// -----

// The reader's fence stands before the flag.
comms.kernel @mp_fence_early(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.fence acq_rel sys
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 10 11

// -----

// An acquire does not release, nor a release acquire.
comms.kernel @mp_fence_wrong_order(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.fence acquire sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.fence release sys
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 10 11

// -----

// The writer's fence does not reach the other rank (M6).
comms.kernel @mp_fence_gpu(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel gpu
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 10 11

// -----

// Nor does the reader's.
comms.kernel @mp_fence_gpu_reader(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.fence acq_rel gpu
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:y 1:x in 00 01 10 11

// -----

// Between blocks of a rank, gpu reaches far enough.
comms.kernel @mp_blocks_gpu(%s: !comms.signal<3>) attributes {ranks = 1, blocks = 2} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %block = comms.block_id
  %at0_0r = arith.cmpi eq, %rank, %c0 : index
  %at0_0b = arith.cmpi eq, %block, %c0 : index
  %at0_0 = arith.andi %at0_0r, %at0_0b : i1
  scf.if %at0_0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel gpu
    comms.signal set %s[%c1] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  %at0_1r = arith.cmpi eq, %rank, %c0 : index
  %at0_1b = arith.cmpi eq, %block, %c1 : index
  %at0_1 = arith.andi %at0_1r, %at0_1b : i1
  scf.if %at0_1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.fence acq_rel gpu
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0.1:y 0.1:x in 00 01 11

// -----

// Data behind a wait that acquires.
comms.kernel @mp_data(%s: !comms.signal<3>, %w: !comms.window<1xf32>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %there = comms.peer %w at %c1 of %team : !comms.window<1xf32> -> memref<1xf32>
    comms.tile_store %one, %there[%c0] : tensor<1xf32>, memref<1xf32>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %t = comms.wait_signal %s[%c1] ge %v1 order acquire : !comms.signal<3>
    %own = comms.local %w : !comms.window<1xf32> -> memref<1xf32>
    %d = comms.tile_load %own[%c0] : memref<1xf32> -> tensor<1xf32>
  }
  comms.return
}
// outcomes: 1:d in 1

// -----

// Data behind a wait that does not (M14).
comms.kernel @mp_data_relaxed(%s: !comms.signal<3>, %w: !comms.window<1xf32>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %there = comms.peer %w at %c1 of %team : !comms.window<1xf32> -> memref<1xf32>
    comms.tile_store %one, %there[%c0] : tensor<1xf32>, memref<1xf32>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %t = comms.wait_signal %s[%c1] ge %v1 order relaxed : !comms.signal<3>
    %own = comms.local %w : !comms.window<1xf32> -> memref<1xf32>
    %d = comms.tile_load %own[%c0] : memref<1xf32> -> tensor<1xf32>
  }
  comms.return
}
// race

// -----

// Data behind a relaxed wait and a fence.
comms.kernel @mp_data_fence(%s: !comms.signal<3>, %w: !comms.window<1xf32>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %there = comms.peer %w at %c1 of %team : !comms.window<1xf32> -> memref<1xf32>
    comms.tile_store %one, %there[%c0] : tensor<1xf32>, memref<1xf32>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %t = comms.wait_signal %s[%c1] ge %v1 order relaxed : !comms.signal<3>
    comms.fence acquire sys
    %own = comms.local %w : !comms.window<1xf32> -> memref<1xf32>
    %d = comms.tile_load %own[%c0] : memref<1xf32> -> tensor<1xf32>
  }
  comms.return
}
// outcomes: 1:d in 1

// -----

// Store buffering.
comms.kernel @sb_relaxed(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:x 1:y in 00 01 10 11

// -----

// Release and acquire do not forbid it.
comms.kernel @sb(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order acquire : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order release : !comms.signal<3>
    %y = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:x 1:y in 00 01 10 11

// -----

// Nor do these fences: there is none that is sequentially consistent.
comms.kernel @sb_fences(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:x 1:y in 00 01 10 11

// -----

// Load buffering.
comms.kernel @lb_relaxed(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:x 1:y in 00 01 10 11

// -----

// Load buffering with release and acquire.
comms.kernel @lb(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %x = comms.read_signal %s[%c0] order acquire : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    comms.signal set %s[%c0] value %v1 at %c0 of %team order release : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:x 1:y in 00 01 10

// -----

// One side alone does not forbid it.
comms.kernel @lb_one_side(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %x = comms.read_signal %s[%c0] order acquire : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:x 1:y in 00 01 10 11

// -----

// Load buffering with fences.
comms.kernel @lb_fences(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %y = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:x 1:y in 00 01 10

// -----

// Independent reads of independent writes.
comms.kernel @iriw_relaxed(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 2} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %block = comms.block_id
  %at0_0r = arith.cmpi eq, %rank, %c0 : index
  %at0_0b = arith.cmpi eq, %block, %c0 : index
  %at0_0 = arith.andi %at0_0r, %at0_0b : i1
  scf.if %at0_0 {
    %a = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    %b = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
  }
  %at0_1r = arith.cmpi eq, %rank, %c0 : index
  %at0_1b = arith.cmpi eq, %block, %c1 : index
  %at0_1 = arith.andi %at0_1r, %at0_1b : i1
  scf.if %at0_1 {
    %c = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    %d = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at1_0r = arith.cmpi eq, %rank, %c1 : index
  %at1_0b = arith.cmpi eq, %block, %c0 : index
  %at1_0 = arith.andi %at1_0r, %at1_0b : i1
  scf.if %at1_0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  %at2_0r = arith.cmpi eq, %rank, %c2 : index
  %at2_0b = arith.cmpi eq, %block, %c0 : index
  %at2_0 = arith.andi %at2_0r, %at2_0b : i1
  scf.if %at2_0 {
    comms.signal set %s[%c1] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0.0:a 0.0:b 0.1:c 0.1:d in 0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1010 1011 1100 1101 1110 1111

// -----

// Release and acquire do not forbid that readers disagree.
comms.kernel @iriw(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 2} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %block = comms.block_id
  %at0_0r = arith.cmpi eq, %rank, %c0 : index
  %at0_0b = arith.cmpi eq, %block, %c0 : index
  %at0_0 = arith.andi %at0_0r, %at0_0b : i1
  scf.if %at0_0 {
    %a = comms.read_signal %s[%c0] order acquire : !comms.signal<3>
    %b = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
  }
  %at0_1r = arith.cmpi eq, %rank, %c0 : index
  %at0_1b = arith.cmpi eq, %block, %c1 : index
  %at0_1 = arith.andi %at0_1r, %at0_1b : i1
  scf.if %at0_1 {
    %c = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    %d = comms.read_signal %s[%c0] order acquire : !comms.signal<3>
  }
  %at1_0r = arith.cmpi eq, %rank, %c1 : index
  %at1_0b = arith.cmpi eq, %block, %c0 : index
  %at1_0 = arith.andi %at1_0r, %at1_0b : i1
  scf.if %at1_0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order release : !comms.signal<3>
  }
  %at2_0r = arith.cmpi eq, %rank, %c2 : index
  %at2_0b = arith.cmpi eq, %block, %c0 : index
  %at2_0 = arith.andi %at2_0r, %at2_0b : i1
  scf.if %at2_0 {
    comms.signal set %s[%c1] value %v1 at %c0 of %team order release : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0.0:a 0.0:b 0.1:c 0.1:d in 0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1010 1011 1100 1101 1110 1111

// -----

// 2+2W: both cells may end with the first write.
comms.kernel @w22_relaxed(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    comms.signal set %s[%c1] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// final: 0:s[0] 0:s[1] in 11 12 21 22

// -----

// Releases that nobody acquires order nothing.
comms.kernel @w22_release(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order release : !comms.signal<3>
    comms.signal set %s[%c1] value %v2 at %c0 of %team order release : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    comms.signal set %s[%c1] value %v1 at %c0 of %team order release : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c0 of %team order release : !comms.signal<3>
  }
  comms.return
}
// final: 0:s[0] 0:s[1] in 11 12 21 22

// -----

// Nor do fences.
comms.kernel @w22_fences(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c1] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    comms.signal set %s[%c1] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// final: 0:s[0] 0:s[1] in 11 12 21 22

// -----

// Write-to-read causality.
comms.kernel @wrc_relaxed(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 2} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %block = comms.block_id
  %at0_0r = arith.cmpi eq, %rank, %c0 : index
  %at0_0b = arith.cmpi eq, %block, %c0 : index
  %at0_0 = arith.andi %at0_0r, %at0_0b : i1
  scf.if %at0_0 {
    %a = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  %at0_1r = arith.cmpi eq, %rank, %c0 : index
  %at0_1b = arith.cmpi eq, %block, %c1 : index
  %at0_1 = arith.andi %at0_1r, %at0_1b : i1
  scf.if %at0_1 {
    %b = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    %c = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at1_0r = arith.cmpi eq, %rank, %c1 : index
  %at1_0b = arith.cmpi eq, %block, %c0 : index
  %at1_0 = arith.andi %at1_0r, %at1_0b : i1
  scf.if %at1_0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0.0:a 0.1:b 0.1:c in 000 001 010 011 100 101 110 111

// -----

// With release and acquire on the way it is kept (M12).
comms.kernel @wrc(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 2} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %block = comms.block_id
  %at0_0r = arith.cmpi eq, %rank, %c0 : index
  %at0_0b = arith.cmpi eq, %block, %c0 : index
  %at0_0 = arith.andi %at0_0r, %at0_0b : i1
  scf.if %at0_0 {
    %a = comms.read_signal %s[%c0] order acquire : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c0 of %team order release : !comms.signal<3>
  }
  %at0_1r = arith.cmpi eq, %rank, %c0 : index
  %at0_1b = arith.cmpi eq, %block, %c1 : index
  %at0_1 = arith.andi %at0_1r, %at0_1b : i1
  scf.if %at0_1 {
    %b = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    %c = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at1_0r = arith.cmpi eq, %rank, %c1 : index
  %at1_0b = arith.cmpi eq, %block, %c0 : index
  %at1_0 = arith.andi %at1_0r, %at1_0b : i1
  scf.if %at1_0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order release : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0.0:a 0.1:b 0.1:c in 000 001 010 011 100 101 111

// -----

// What the one in the middle reads comes first for whom it tells, though it acquires nothing (M13).
comms.kernel @wrc_middle(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 2} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %block = comms.block_id
  %at0_0r = arith.cmpi eq, %rank, %c0 : index
  %at0_0b = arith.cmpi eq, %block, %c0 : index
  %at0_0 = arith.andi %at0_0r, %at0_0b : i1
  scf.if %at0_0 {
    %a = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c0 of %team order release : !comms.signal<3>
  }
  %at0_1r = arith.cmpi eq, %rank, %c0 : index
  %at0_1b = arith.cmpi eq, %block, %c1 : index
  %at0_1 = arith.andi %at0_1r, %at0_1b : i1
  scf.if %at0_1 {
    %b = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    %c = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at1_0r = arith.cmpi eq, %rank, %c1 : index
  %at1_0b = arith.cmpi eq, %block, %c0 : index
  %at1_0 = arith.andi %at1_0r, %at1_0b : i1
  scf.if %at1_0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order release : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0.0:a 0.1:b 0.1:c in 000 001 010 011 100 101 111

// -----

// ISA2: a chain over three ranks.
comms.kernel @isa2_relaxed(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %a = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.signal set %s[%c2] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %b = comms.read_signal %s[%c2] order relaxed : !comms.signal<3>
    %c = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:a 2:b 2:c in 000 001 010 011 100 101 110 111

// -----

// Each link releases and acquires.
comms.kernel @isa2(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %a = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    comms.signal set %s[%c2] value %v1 at %c2 of %team order release : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %b = comms.read_signal %s[%c2] order acquire : !comms.signal<3>
    %c = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:a 2:b 2:c in 000 001 010 011 100 101 111

// -----

// A link that does not, breaks the chain.
comms.kernel @isa2_broken(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %a = comms.read_signal %s[%c1] order relaxed : !comms.signal<3>
    comms.signal set %s[%c2] value %v1 at %c2 of %team order release : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %b = comms.read_signal %s[%c2] order acquire : !comms.signal<3>
    %c = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:a 2:b 2:c in 000 001 010 011 100 101 110 111

// -----

// CoRR: later reads do not see earlier values.
comms.kernel @corr(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %a = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    %b = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 1:a 1:b in 00 01 02 11 12 22

// -----

// Nor do two readers see writes of one cell in two orders.
comms.kernel @corr_two_readers(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 2} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %block = comms.block_id
  %at0_0r = arith.cmpi eq, %rank, %c0 : index
  %at0_0b = arith.cmpi eq, %block, %c0 : index
  %at0_0 = arith.andi %at0_0r, %at0_0b : i1
  scf.if %at0_0 {
    %a = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    %b = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at0_1r = arith.cmpi eq, %rank, %c0 : index
  %at0_1b = arith.cmpi eq, %block, %c1 : index
  %at0_1 = arith.andi %at0_1r, %at0_1b : i1
  scf.if %at0_1 {
    %c = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    %d = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at1_0r = arith.cmpi eq, %rank, %c1 : index
  %at1_0b = arith.cmpi eq, %block, %c0 : index
  %at1_0 = arith.andi %at1_0r, %at1_0b : i1
  scf.if %at1_0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  %at2_0r = arith.cmpi eq, %rank, %c2 : index
  %at2_0b = arith.cmpi eq, %block, %c0 : index
  %at2_0 = arith.andi %at2_0r, %at2_0b : i1
  scf.if %at2_0 {
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0.0:a 0.0:b 0.1:c 0.1:d in 0000 0001 0002 0011 0012 0021 0022 0100 0101 0102 0111 0112 0121 0122 0200 0201 0202 0211 0212 0221 0222 1100 1101 1102 1111 1112 1121 1122 1200 1201 1202 1211 1212 1222 2100 2101 2102 2111 2121 2122 2200 2201 2202 2211 2212 2221 2222

// -----

// CoRW: a read does not see the own write that follows it.
comms.kernel @corw(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %a = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:a in 0 2

// -----

// CoWR: a read sees its own write, or a later one.
comms.kernel @cowr(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    %a = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 0:a in 1 2

// -----

// CoWW: the own writes of one cell stay in order.
comms.kernel @coww(%s: !comms.signal<3>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
  }
  comms.return
}
// final: 1:s[0] in 2

// -----

// Who reads a sum acquires from all that added to it (M5).
comms.kernel @sum(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
    comms.signal inc %s[%c1] at %c2 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal inc %s[%c1] at %c2 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %n = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 2:n 2:x in 00 01 10 11 21

// -----

// A set that comes between ends the sum.
comms.kernel @sum_is_set(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v5 = arith.constant 5 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
    comms.signal inc %s[%c1] at %c2 of %team order release : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.signal set %s[%c1] value %v5 at %c2 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %n = comms.read_signal %s[%c1] order acquire : !comms.signal<3>
    %x = comms.read_signal %s[%c0] order relaxed : !comms.signal<3>
  }
  comms.return
}
// outcomes: 2:n 2:x in 00 01 11 50 51 61

// -----

// A barrier orders all before it with all behind it (M8).
comms.kernel @barrier(%s: !comms.signal<3>, %w: !comms.window<1xf32>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %there = comms.peer %w at %c1 of %team : !comms.window<1xf32> -> memref<1xf32>
    comms.tile_store %one, %there[%c0] : tensor<1xf32>, memref<1xf32>
    comms.barrier %team block
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.barrier %team block
    %own = comms.local %w : !comms.window<1xf32> -> memref<1xf32>
    %d = comms.tile_load %own[%c0] : memref<1xf32> -> tensor<1xf32>
  }
  comms.return
}
// outcomes: 1:d in 1

// -----

// A relaxed one does not.
comms.kernel @barrier_relaxed(%s: !comms.signal<3>, %w: !comms.window<1xf32>) attributes {ranks = 2, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    %there = comms.peer %w at %c1 of %team : !comms.window<1xf32> -> memref<1xf32>
    comms.tile_store %one, %there[%c0] : tensor<1xf32>, memref<1xf32>
    comms.barrier %team block order relaxed
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    comms.barrier %team block order relaxed
    %own = comms.local %w : !comms.window<1xf32> -> memref<1xf32>
    %d = comms.tile_load %own[%c0] : memref<1xf32> -> tensor<1xf32>
  }
  comms.return
}
// race

// -----

// The owner of a cell has read the first value and tells the next writer by relaxed ops: any of the two may come last (M13).
comms.kernel @written_again_relaxed(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %x = comms.wait_signal %s[%c0] ge %v1 order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %y = comms.wait_signal %s[%c1] ge %v1 order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c1 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// final: 1:s[0] in 1 2

// -----

// The same with a release and an acquire: what has been read comes first (M13).
comms.kernel @written_again(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %x = comms.wait_signal %s[%c0] ge %v1 order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c2 of %team order release : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %y = comms.wait_signal %s[%c1] ge %v1 order acquire : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c1 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// final: 1:s[0] in 2

// -----

// A cell is filled, a chain of two relaxed messages follows, and the last rank writes the cell: the fill may come last.
comms.kernel @chain_relaxed(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %x = comms.wait_signal %s[%c1] ge %v1 order relaxed : !comms.signal<3>
    comms.signal set %s[%c2] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %y = comms.wait_signal %s[%c2] ge %v1 order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// final: 0:s[0] in 1 2

// -----

// A release fence of the first rank alone does not help (M25 would).
comms.kernel @chain_released(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.fence release sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %x = comms.wait_signal %s[%c1] ge %v1 order relaxed : !comms.signal<3>
    comms.signal set %s[%c2] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %y = comms.wait_signal %s[%c2] ge %v1 order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// final: 0:s[0] in 1 2

// -----

// Nor does a fence of the second, if the last has none.
comms.kernel @chain_half(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.fence release sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %x = comms.wait_signal %s[%c1] ge %v1 order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c2] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %y = comms.wait_signal %s[%c2] ge %v1 order relaxed : !comms.signal<3>
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// final: 0:s[0] in 1 2

// -----

// With a fence of each rank, the fill comes first (M5, M12).
comms.kernel @chain_fenced(%s: !comms.signal<3>) attributes {ranks = 3, blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v1 = arith.constant 1 : i64
  %v2 = arith.constant 2 : i64
  %rank = comms.rank %team
  %at0 = arith.cmpi eq, %rank, %c0 : index
  scf.if %at0 {
    comms.signal set %s[%c0] value %v1 at %c0 of %team order relaxed : !comms.signal<3>
    comms.fence release sys
    comms.signal set %s[%c1] value %v1 at %c1 of %team order relaxed : !comms.signal<3>
  }
  %at1 = arith.cmpi eq, %rank, %c1 : index
  scf.if %at1 {
    %x = comms.wait_signal %s[%c1] ge %v1 order relaxed : !comms.signal<3>
    comms.fence acq_rel sys
    comms.signal set %s[%c2] value %v1 at %c2 of %team order relaxed : !comms.signal<3>
  }
  %at2 = arith.cmpi eq, %rank, %c2 : index
  scf.if %at2 {
    %y = comms.wait_signal %s[%c2] ge %v1 order relaxed : !comms.signal<3>
    comms.fence acquire sys
    comms.signal set %s[%c0] value %v2 at %c0 of %team order relaxed : !comms.signal<3>
  }
  comms.return
}
// final: 0:s[0] in 2
