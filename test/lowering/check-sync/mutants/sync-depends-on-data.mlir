// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Whether ranks synchronize depends on a value in memory, which may differ from rank to rank. It goes well where it does not.

comms.kernel @guarded_by_data(%s: !comms.signal<1>, %x: memref<4xi64>, %y: memref<64xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  %enough = memref.load %x[%c0] : memref<4xi64>
  %zero = arith.constant 0 : i64
  %go = arith.cmpi sgt, %enough, %zero : i64
  // expected-warning @below {{not decided: 'scf.if' op decides whether a synchronization runs by a value that is not known: it depends on data or on an argument}}
  // expected-note @below {{nothing was found with 0, 1, 2 or 3 for every integer of data and every scalar}}
  // expected-note @below {{synchronize on every path, and make only the data or the element count depend on data}}
  // expected-note @below {{it depends on 'x': if its integers are the same on all ranks, state same_on_ranks(…) in comms.assumes (Python: assumes=)}}
  scf.if %go {
    // expected-note @below {{synchronization is here}}
    comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
    %t = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  }
  comms.return
}

// -----

// They always do.

comms.kernel @always(%s: !comms.signal<1>, %x: memref<4xi64>, %y: memref<64xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %n = comms.size %world
  %me = comms.rank %world
  %next = arith.addi %me, %c1 : index
  %right = arith.remui %next, %n : index
  %before = arith.addi %me, %n : index
  %back = arith.subi %before, %c1 : index
  %left = arith.remui %back, %n : index
  %enough = memref.load %x[%c0] : memref<4xi64>
  %zero = arith.constant 0 : i64
  %go = arith.cmpi sgt, %enough, %zero : i64
  comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
  %t = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  // What does not synchronize may depend on data.
  scf.if %go {
    %tile = comms.tile_load %y[%c0] after %t : memref<64xf32> -> tensor<64xf32>
    comms.tile_store %tile, %y[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.return
}
