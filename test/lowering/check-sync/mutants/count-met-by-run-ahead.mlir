// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Rank 0 counts three signals. A rank that does not wait may send two of them.

comms.kernel @others_run_ahead(%s: !comms.signal<1>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %c3_i64 = arith.constant 3 : i64
  %want = arith.muli %e, %c3_i64 : i64
  comms.for_peers %world as %p {
    // expected-note @below {{the signal that may run ahead}}
    comms.signal inc %s[%c0] at %p of %world : !comms.signal<1>
  }
  %me = comms.rank %world
  %root = arith.cmpi eq, %me, %c0 : index
  // Only rank 0 waits for the count: the others run ahead.
  scf.if %root {
    // expected-error @below {{'comms.wait_signal' op counts signals on signal s[0] of rank 0 up to 3 in launch 1, but a signal of launch 2 by rank 1 block 0 may come before that of rank 2 block 0 and be counted in its place}}
    // expected-note @below {{give each sender a cell of its own, or keep senders from running ahead with a barrier}}
    %t = comms.wait_signal %s[%c0] ge %want : !comms.signal<1>
  }
  comms.return
}

// -----

// Whoever signals again has heard from everybody first.

comms.kernel @all_wait(%s: !comms.signal<1>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %c3_i64 = arith.constant 3 : i64
  %want = arith.muli %e, %c3_i64 : i64
  comms.for_peers %world as %p {
    comms.signal inc %s[%c0] at %p of %world : !comms.signal<1>
  }
  %t = comms.wait_signal %s[%c0] ge %want : !comms.signal<1>
  comms.return
}
