// The repaired twin of: A put copies a slice; bad: its count reaches into the next rank's part.
// From: counts of puts
// META {"ranks": 3}
comms.kernel @k(%w: !comms.window<48xf32>, %x: memref<32xf32>) attributes {ranks = 3, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %n = arith.constant 16 : index
  %team = comms.team world
  %me = comms.rank %team
  %at = arith.muli %me, %c16 : index
  %two = arith.constant 2 : index
  %low = arith.cmpi ult, %me, %two : index
  comms.barrier %team block
  %count = arith.select %low, %n, %c16 : index
  comms.put %x[%c0] to %w[%at] count %count at %c0 of %team : memref<32xf32>, !comms.window<48xf32>
  comms.barrier %team block
  comms.return
}
