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
  scf.if %go {
    comms.signal inc %s[%c0] at %right of %world : !comms.signal<1>
    %t = comms.wait_signal %s[%c0] ge %e : !comms.signal<1>
  }
  comms.return
}
