// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A count of all peers' signals, of which one never comes.

comms.kernel @one_forgets(%s: !comms.signal<1>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %c3_i64 = arith.constant 3 : i64
  %want = arith.muli %e, %c3_i64 : i64
  %me = comms.rank %world
  comms.for_peers %world as %p {
    // Rank 3 forgets rank 0.
    %c3 = arith.constant 3 : index
    %is3 = arith.cmpi eq, %me, %c3 : index
    %is0 = arith.cmpi eq, %p, %c0 : index
    %forget = arith.andi %is3, %is0 : i1
    scf.if %forget {
    } else {
      comms.signal inc %s[%c0] at %p of %world : !comms.signal<1>
    }
  }
  // expected-error @below {{deadlock: rank 0, block 0 waits for signal s[0] >= 3; observed 2 (launch 1)}}
  // expected-note @below {{signaled in this launch by ranks 1, 2}}
  // expected-note @below {{rank 3 block 0 has ended launch 1 without it}}
  // expected-note @below {{every rank that the wait counts must signal this cell in every launch: look for a signal under a condition, to another cell or to another rank}}
  %t = comms.wait_signal %s[%c0] ge %want : !comms.signal<1>
  comms.return
}

// -----

// Every rank signals every peer.

comms.kernel @all_signal(%s: !comms.signal<1>)
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
