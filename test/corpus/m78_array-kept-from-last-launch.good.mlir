// The repaired twin of: The kernel relies on what it left in an array in the last launch.
// From: arrays belong to the host: a launch may be given others
// META {"ranks": 4}
comms.kernel @k(%state: memref<4xi64>, %x: !comms.window<16xf32>) attributes {ranks = 4, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i64
  %five = arith.constant 5 : i64
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %late = arith.cmpi sgt, %e, %c1 : i64
  %root = arith.cmpi eq, %me, %c0 : index
  memref.store %five, %state[%c0] : memref<4xi64>
  scf.if %late {
    %v = memref.load %state[%c0] : memref<4xi64>
    %other = arith.cmpi ne, %v, %five : i64
    %b = arith.andi %root, %other : i1
    scf.if %b {
      comms.barrier %team block
    }
  }
  comms.return
}
