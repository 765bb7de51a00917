// The repaired twin of: A counter's wait may be met by the put of another block.
// From: NCCL GIN: a counter counts puts of all blocks
// META {"ranks": 2}
comms.kernel @k(%x: !comms.window<64xf32>, %w: !comms.window<64xf32>, %n: !comms.counter<2>, %s: !comms.signal<2>) attributes {ranks = 2, blocks = 2} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %team = comms.team world
  %me = comms.rank %team
  %b = comms.block_id
  %other = arith.subi %c1, %me : index
  %epoch = comms.epoch
  %e = arith.index_cast %epoch : index to i64
  %t = arith.muli %epoch, %c2 : index
  %t1 = arith.subi %t, %c1 : index
  %want = arith.index_cast %t1 : index to i64
  %at = arith.muli %b, %c16 : index
  %mine = comms.local %x : !comms.window<64xf32> -> memref<64xf32>
  comms.put %mine[%at] to %w[%at] count %c16 at %other of %team counted %n[%b] : !comms.counter<2> gin <> : memref<64xf32>, !comms.window<64xf32>
  %first = arith.cmpi eq, %b, %c0 : index
  scf.if %first {
    comms.wait_counter %n[%c0] ge %e : !comms.counter<2>
    comms.tile_store %one, %mine[%at] : tensor<16xf32>, memref<64xf32>
  }
  comms.signal inc %s[%b] at %other of %team gin <> : !comms.signal<2>
  %z = comms.wait_signal %s[%b] ge %e : !comms.signal<2>
  comms.flush %team gin <>
  comms.barrier %team grid
  comms.return
}
