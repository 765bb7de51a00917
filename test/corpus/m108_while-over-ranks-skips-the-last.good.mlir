// The repaired twin of: A while loop signals all ranks; bad: it ends one rank early.
// From: scf.while
// META {"ranks": 3}
comms.kernel @k(%w: !comms.window<16xf32>, %s: !comms.signal<1>, %y: memref<16xf32>) attributes {ranks = 3, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = arith.constant 3 : i64
  %team = comms.team world
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %want = arith.muli %e, %n : i64
  %end = scf.while (%p = %c0) : (index) -> index {
    %more = arith.cmpi ult, %p, %c3 : index
    scf.condition(%more) %p : index
  } do {
  ^bb0(%p: index):
    comms.signal inc %s[%c0] at %p of %team : !comms.signal<1>
    %next = arith.addi %p, %c1 : index
    scf.yield %next : index
  }
  %z = comms.wait_signal %s[%c0] ge %want : !comms.signal<1>
  comms.return
}
