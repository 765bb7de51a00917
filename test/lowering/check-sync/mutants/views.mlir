// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// Views and copies at known places are known: rows of one window by two ranks.

comms.kernel @same_row(%x: memref<16xf32>, %w: !comms.window<4x16xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %at0 = comms.peer %w at %c0 of %team : !comms.window<4x16xf32> -> memref<4x16xf32>
  %row = memref.subview %at0[2, 0] [1, 16] [1, 1] : memref<4x16xf32> to memref<16xf32, strided<[1], offset: 32>>
  comms.barrier %team block
  // expected-error @below {{'memref.copy' op writes [32, 48) of 'w' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0 in launch 1}}
  // expected-note @below {{the write}}
  // expected-note @below {{order them}}
  memref.copy %x, %row : memref<16xf32> to memref<16xf32, strided<[1], offset: 32>>
  comms.barrier %team block
  comms.return
}

// -----

comms.kernel @own_rows(%x: memref<16xf32>, %w: !comms.window<4x16xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %me = comms.rank %team
  %at0 = comms.peer %w at %c0 of %team : !comms.window<4x16xf32> -> memref<4x16xf32>
  %row = memref.subview %at0[%me, 0] [1, 16] [1, 1] : memref<4x16xf32> to memref<16xf32, strided<[1], offset: ?>>
  comms.barrier %team block
  memref.copy %x, %row : memref<16xf32> to memref<16xf32, strided<[1], offset: ?>>
  comms.barrier %team block
  comms.return
}

// -----

// Columns: pieces at one distance.

comms.kernel @columns(%x: memref<4x8xf32>, %w: !comms.window<4x16xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %me = comms.rank %team
  %first = arith.muli %me, %c8 : index
  %at0 = comms.peer %w at %c0 of %team : !comms.window<4x16xf32> -> memref<4x16xf32>
  %half = memref.subview %at0[0, %first] [4, 8] [1, 1] : memref<4x16xf32> to memref<4x8xf32, strided<[16, 1], offset: ?>>
  comms.barrier %team block
  memref.copy %x, %half : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1], offset: ?>>
  comms.barrier %team block
  comms.return
}

// -----

comms.kernel @columns_meet(%x: memref<4x9xf32>, %w: !comms.window<4x17xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %team = comms.team world
  %me = comms.rank %team
  %first = arith.muli %me, %c8 : index
  %at0 = comms.peer %w at %c0 of %team : !comms.window<4x17xf32> -> memref<4x17xf32>
  %half = memref.subview %at0[0, %first] [4, 9] [1, 1] : memref<4x17xf32> to memref<4x9xf32, strided<[17, 1], offset: ?>>
  comms.barrier %team block
  // expected-error @below {{'memref.copy' op writes [8, 9) of 'w' at rank 0 on rank 0 block 0 in launch 1, with no order between it and the write by rank 1 block 0 in launch 1}}
  // expected-note @below {{the write}}
  // expected-note @below {{order them}}
  memref.copy %x, %half : memref<4x9xf32> to memref<4x9xf32, strided<[17, 1], offset: ?>>
  comms.barrier %team block
  comms.return
}
