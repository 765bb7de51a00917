// By GIN: every block passes its row on to the next rank, by a put and by one
// with a signal, which says that both have come. run.py sets lsa_size.
comms.kernel @pass(%x: !comms.window<3x1024xf32>,
                   %in: !comms.window<2x3x1024xf32>,
                   %y: memref<3x1024xf32>,
                   %s: !comms.signal<6>) attributes {lsa_size = 2 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %c3072 = arith.constant 3072 : index
  %three = arith.constant 3 : i64
  %me = comms.rank %team
  %n = comms.size %team
  %block = comms.block_id
  %up = arith.addi %me, %c1 : index
  %next = arith.remui %up, %n : index
  %down = arith.addi %me, %n : index
  %down1 = arith.subi %down, %c1 : index
  %previous = arith.remui %down1, %n : index
  %epoch = comms.epoch
  %half = arith.remui %epoch, %c2 : index
  %start = arith.muli %half, %c3072 : index
  %row = arith.muli %block, %c1024 : index
  %middle = arith.addi %row, %c512 : index
  %to = arith.addi %start, %row : index
  %to512 = arith.addi %to, %c512 : index
  %launch = arith.index_cast %epoch : index to i64
  %least = arith.muli %launch, %three : i64
  %told = arith.addi %block, %c3 : index
  %own = comms.local %x : !comms.window<3x1024xf32> -> memref<3x1024xf32>
  %old = comms.tile_load %own[%row] : memref<3x1024xf32> -> tensor<1024xf32>
  %two = arith.constant dense<2.0> : tensor<1024xf32>
  %new = arith.divf %old, %two : tensor<1024xf32>
  comms.tile_store %new, %own[%row] : tensor<1024xf32>, memref<3x1024xf32>
  // The signal of the second comes after the first, too.
  comms.put %own[%row] to %in[%to] count %c512 at %next of %team gin <>
    : memref<3x1024xf32>, !comms.window<2x3x1024xf32>
  comms.put_signal %own[%middle] to %in[%to512] count %c512 at %next of %team then add %s[%block] value %three gin <>
    : memref<3x1024xf32>, !comms.window<2x3x1024xf32>, !comms.signal<6>
  %came = comms.wait_signal_from %s[%block] ge %least from %previous of %team : !comms.signal<6>
  %here = comms.local %in : !comms.window<2x3x1024xf32> -> memref<2x3x1024xf32>
  %seen = comms.tile_load %here[%to] : memref<2x3x1024xf32> -> tensor<1024xf32>
  comms.tile_store %seen, %y[%row] : tensor<1024xf32>, memref<3x1024xf32>
  // The next launch writes its source again, and the one after it this half.
  comms.flush %team gin <>
  comms.signal inc %s[%told] at %previous of %team gin <> : !comms.signal<6>
  %read = comms.wait_signal_from %s[%told] ge %launch from %next of %team : !comms.signal<6>
  comms.return
}
