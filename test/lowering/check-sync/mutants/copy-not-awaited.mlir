// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// On all ranks but one the kernel may end before its copy.

comms.kernel @never_awaited(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %c64 = arith.constant 64 : index
  // expected-error @below {{'comms.bulk_copy' op starts a copy that rank 1 block 0 never waits for in launch 1}}
  // expected-note @below {{pass its token to comms.bulk_wait, on every path}}
  %t = comms.bulk_copy %x[%c0] to %y[%c0] count %c64 : memref<64xf32>, memref<64xf32>
  %me = comms.rank %world
  %root = arith.cmpi eq, %me, %c0 : index
  scf.if %root {
    %done = comms.bulk_wait %t
  }
  comms.return
}

// -----

// bulk_wait ends when the copy has been made.

comms.kernel @awaited(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %c64 = arith.constant 64 : index
  %t = comms.bulk_copy %x[%c0] to %y[%c0] count %c64 : memref<64xf32>, memref<64xf32>
  %done = comms.bulk_wait %t
  comms.return
}
