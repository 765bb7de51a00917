// The repaired twin of: Two ranks copy columns of a matrix through subviews with strides; bad: the strided columns meet.
// From: column-parallel writes through views
// META {"ranks": 2}
comms.kernel @k(%x: memref<4x8xf32>, %w: !comms.window<4x16xf32>, %y: memref<4x16xf32>) attributes {ranks = 2, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %team = comms.team world
  %n = comms.size %team
  %me = comms.rank %team
  %up = arith.addi %me, %c1 : index
  %nxt = arith.remui %up, %n : index
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  comms.barrier %team block
  %to = comms.peer %w at %c0 of %team : !comms.window<4x16xf32> -> memref<4x16xf32>
  %first = arith.cmpi eq, %me, %c0 : index
  scf.if %first {
    %v = memref.subview %to[0, 0] [4, 8] [1, 2] : memref<4x16xf32> to memref<4x8xf32, strided<[16, 2]>>
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %a = memref.load %x[%i, %j] : memref<4x8xf32>
        memref.store %a, %v[%i, %j] : memref<4x8xf32, strided<[16, 2]>>
      }
    }
  } else {
    %v = memref.subview %to[0, 1] [4, 8] [1, 2] : memref<4x16xf32> to memref<4x8xf32, strided<[16, 2], offset: 1>>
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %a = memref.load %x[%i, %j] : memref<4x8xf32>
        memref.store %a, %v[%i, %j] : memref<4x8xf32, strided<[16, 2], offset: 1>>
      }
    }
  }
  comms.barrier %team block
  %own = comms.local %w : !comms.window<4x16xf32> -> memref<4x16xf32>
  memref.copy %own, %y : memref<4x16xf32> to memref<4x16xf32>
  comms.barrier %team block
  comms.return
}
