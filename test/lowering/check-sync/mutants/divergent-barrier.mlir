// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Only rank 0 reaches the barrier.

comms.kernel @rank_0_alone()
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %me = comms.rank %world
  %root = arith.cmpi eq, %me, %c0 : index
  scf.if %root {
    // expected-error @below {{deadlock: rank 0, block 0 waits for all 4 blocks of the barrier; 1 arrived (launch 1)}}
    // expected-note @below {{rank 1 block 0 has ended launch 1 without it}}
    // expected-note @below {{rank 2 block 0 has ended launch 1 without it}}
    // expected-note @below {{rank 3 block 0 has ended launch 1 without it}}
    // expected-note @below {{every member must reach the barrier: move it out of conditions and roles that leave some out, or use a smaller team or extent}}
    comms.barrier %world block
  }
  comms.return
}

// -----

// All ranks reach it.

comms.kernel @all_ranks()
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  comms.barrier %world block
  comms.return
}
