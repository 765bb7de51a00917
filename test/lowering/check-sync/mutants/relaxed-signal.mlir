// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A relaxed signal may overtake the put that it announces.

comms.kernel @relaxed(%s: !comms.signal<1>, %w: !comms.window<64xf32>, %x: memref<64xf32>)
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
  %c64 = arith.constant 64 : index
  // expected-note @below {{the write}}
  comms.put %x[%c0] to %w[%c0] count %c64 at %right of %world : memref<64xf32>, !comms.window<64xf32>
  comms.signal inc %s[%c0] at %right of %world order relaxed : !comms.signal<1>
  %t = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  // expected-error @below {{'comms.tile_load' op reads [0, 64) of 'w' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 3 block 0 in launch 1}}
  // expected-note @below {{order them: a signal that releases and a wait that acquires, or a barrier}}
  %got = comms.tile_load %here[%c0] after %t : memref<64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// A signal that releases comes after the put.

comms.kernel @release(%s: !comms.signal<1>, %w: !comms.window<64xf32>, %x: memref<64xf32>)
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
  %c64 = arith.constant 64 : index
  comms.put %x[%c0] to %w[%c0] count %c64 at %right of %world : memref<64xf32>, !comms.window<64xf32>
  comms.signal inc %s[%c0] at %right of %world order release : !comms.signal<1>
  %t = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %got = comms.tile_load %here[%c0] after %t : memref<64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}
