// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A barrier of the whole grid that the blocks of one role reach alone.

comms.kernel @block_0_alone()
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %b = comms.block_id
  %first = arith.cmpi eq, %b, %c0 : index
  scf.if %first {
    // expected-error @below {{deadlock: rank 0, block 0 waits for all 4 blocks of the barrier; 2 arrived (launch 1)}}
    // expected-note @below {{rank 0 block 1 has ended launch 1 without it}}
    // expected-note @below {{rank 1 block 1 has ended launch 1 without it}}
    // expected-note @below {{rank 1, block 0 waits here too, for all 4 blocks of the barrier; 2 arrived (launch 1)}}
    // expected-note @below {{every member must reach the barrier: move it out of conditions and roles that leave some out, or use a smaller team or extent}}
    comms.barrier %world grid
  }
  comms.return
}

// -----

// Every block of every rank reaches it.

comms.kernel @whole_grid()
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  comms.barrier %world grid
  comms.return
}
