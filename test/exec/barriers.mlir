// EXEC: comms.barrier comms.barrier_arrive comms.barrier_wait
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'y = np.array([(r + 1) % n + 100, (r + 1) % n + 200, (r + 1) % n + 300], np.int32)'
// RUN: comms-run %s --ranks 4 --blocks 3 --launches 3 --expect y=%t/y-%r.npy --fuzz-schedules 8 --quiet

// Block b of each rank writes its cell; after a barrier, block b+1 (mod 3) of the
// rank before it reads it: the barrier of the grid, in one piece and in halves.
comms.kernel @barriers(%x: !comms.window<3xi32>, %y: memref<3xi32>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c100 = arith.constant 100 : index
  %me = comms.rank %team
  %n = comms.size %team
  %b = comms.block_id
  %up = arith.addi %me, %c1 : index
  %next = arith.remui %up, %n : index
  %b1 = arith.addi %b, %c1 : index
  %other = arith.remui %b1, %c3 : index
  %hundred = arith.muli %b1, %c100 : index
  %value = arith.addi %hundred, %me : index
  %int = arith.index_cast %value : index to i32
  %tile = comms.splat %int : i32 -> tensor<1xi32>
  %own = comms.local %x : !comms.window<3xi32> -> memref<3xi32>
  comms.tile_store %tile, %own[%b] : tensor<1xi32>, memref<3xi32>
  comms.barrier %team grid
  %view = comms.peer %x at %next of %team : !comms.window<3xi32> -> memref<3xi32>
  %seen = comms.tile_load %view[%other] : memref<3xi32> -> tensor<1xi32>
  comms.tile_store %seen, %y[%other] : tensor<1xi32>, memref<3xi32>
  // Nobody overwrites in the next launch what a peer has yet to read.
  %arrived = comms.barrier_arrive %team grid
  %all = comms.barrier_wait %arrived
  comms.return
}
