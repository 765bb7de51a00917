// EXEC: comms.channel comms.send comms.recv comms.channel_barrier comms.epoch
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = (np.arange(50) + 100 * r).astype(np.float32)' \
// RUN:   'all = np.stack([7 * a + 28 for a in xs]).astype(np.float32)' \
// RUN:   'pairs = np.stack([7 * (a + 1000 * r) + 28 for a in xs]).astype(np.float32)' \
// RUN:   'one = (7 * xs[(r + 3) %% 4] + 28).astype(np.float32)'
// RUN: sed 's/PROTOCOL/pull/' %s > %t/pull.mlir
// RUN: sed 's/PROTOCOL/push/' %s > %t/push.mlir
// RUN: sed 's/PROTOCOL/ll/' %s > %t/ll.mlir
// RUN: sed 's/PROTOCOL/lamport/' %s > %t/lamport.mlir
// RUN: comms-run %t/pull.mlir --ranks 4 --blocks 1 --launches 7 --input x=%t/x-%r.npy --expect all=%t/all-%r.npy --expect pairs=%t/pairs-%r.npy --expect one=%t/one-%r.npy --bitwise --quiet
// RUN: comms-run %t/push.mlir --ranks 4 --blocks 1 --launches 7 --input x=%t/x-%r.npy --expect all=%t/all-%r.npy --expect pairs=%t/pairs-%r.npy --expect one=%t/one-%r.npy --bitwise --quiet
// RUN: comms-run %t/pull.mlir --ranks 4 --blocks 3 --launches 7 --input x=%t/x-%r.npy --expect all=%t/all-%r.npy --expect pairs=%t/pairs-%r.npy --expect one=%t/one-%r.npy --bitwise --quiet --fuzz-schedules 20
// RUN: comms-run %t/push.mlir --ranks 4 --blocks 3 --launches 7 --input x=%t/x-%r.npy --expect all=%t/all-%r.npy --expect pairs=%t/pairs-%r.npy --expect one=%t/one-%r.npy --bitwise --quiet --fuzz-schedules 20
// RUN: comms-run %t/ll.mlir --ranks 4 --blocks 1 --launches 7 --input x=%t/x-%r.npy --expect all=%t/all-%r.npy --expect pairs=%t/pairs-%r.npy --expect one=%t/one-%r.npy --bitwise --quiet
// RUN: comms-run %t/ll.mlir --ranks 4 --blocks 3 --launches 7 --input x=%t/x-%r.npy --expect all=%t/all-%r.npy --expect pairs=%t/pairs-%r.npy --expect one=%t/one-%r.npy --bitwise --quiet --fuzz-schedules 20
// RUN: comms-run %t/lamport.mlir --ranks 4 --blocks 1 --launches 7 --input x=%t/x-%r.npy --expect all=%t/all-%r.npy --expect pairs=%t/pairs-%r.npy --expect one=%t/one-%r.npy --bitwise --quiet
// RUN: comms-run %t/lamport.mlir --ranks 4 --blocks 9 --launches 7 --input x=%t/x-%r.npy --expect all=%t/all-%r.npy --expect pairs=%t/pairs-%r.npy --expect one=%t/one-%r.npy --bitwise --quiet --fuzz-schedules 20

// What is sent has the launch's number in it, and what is received is added up
// over seven launches: a tile of another launch would show in the sum. 50
// elements are six tiles and a quarter.
comms.kernel @channels(%x: memref<50xf32>, %all: memref<4x50xf32>, %pairs: memref<4x50xf32>, %one: memref<50xf32>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c50 = arith.constant 50 : index
  %c1000 = arith.constant 1000 : index
  %team = comms.team world
  %rank = comms.rank %team
  %epoch = comms.epoch
  %i = arith.index_cast %epoch : index to i32
  %f = arith.sitofp %i : i32 to f32
  %launch = comms.splat %f : f32 -> tensor<8xf32>
  %next0 = arith.addi %rank, %c1 : index
  %next = arith.remui %next0, %c4 : index
  %previous0 = arith.addi %rank, %c3 : index
  %previous = arith.remui %previous0, %c4 : index
  %multicast = comms.channel 0 multicast over %team slots 7 : !comms.channel<PROTOCOL, 8xf32>
  %pairwise = comms.channel 1 pairwise over %team slots 7 : !comms.channel<PROTOCOL, 8xf32>
  %single = comms.channel 2 single over %team slots 7 : !comms.channel<PROTOCOL, 8xf32>
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %t = %block to %c7 step %blocks {
    %off = arith.muli %t, %c8 : index
    %left = arith.subi %c50, %off : index
    %n = arith.minui %left, %c8 : index
    %tile = comms.tile_load %x[%off] valid %n : memref<50xf32> -> tensor<8xf32>
    %sent = arith.addf %tile, %launch : tensor<8xf32>
    comms.send %sent on %multicast[%t] valid %n : tensor<8xf32>, !comms.channel<PROTOCOL, 8xf32>
    comms.send %sent on %single[%t] to %next valid %n : tensor<8xf32>, !comms.channel<PROTOCOL, 8xf32>
    scf.for %p = %c0 to %c4 step %c1 {
      %mark0 = arith.muli %p, %c1000 : index
      %mark1 = arith.index_cast %mark0 : index to i32
      %mark2 = arith.sitofp %mark1 : i32 to f32
      %mark = comms.splat %mark2 : f32 -> tensor<8xf32>
      %marked = arith.addf %sent, %mark : tensor<8xf32>
      comms.send %marked on %pairwise[%t] to %p valid %n : tensor<8xf32>, !comms.channel<PROTOCOL, 8xf32>
    }
  }
  comms.channel_barrier %multicast : !comms.channel<PROTOCOL, 8xf32>
  comms.channel_barrier %pairwise : !comms.channel<PROTOCOL, 8xf32>
  comms.channel_barrier %single : !comms.channel<PROTOCOL, 8xf32>
  scf.for %t = %block to %c7 step %blocks {
    %off = arith.muli %t, %c8 : index
    %left = arith.subi %c50, %off : index
    %n = arith.minui %left, %c8 : index
    scf.for %p = %c0 to %c4 step %c1 {
      %row = arith.muli %p, %c50 : index
      %at = arith.addi %row, %off : index
      %a = comms.recv %multicast[%t] from %p valid %n : !comms.channel<PROTOCOL, 8xf32> -> tensor<8xf32>
      %b = comms.tile_load %all[%at] valid %n : memref<4x50xf32> -> tensor<8xf32>
      %c = arith.addf %a, %b : tensor<8xf32>
      comms.tile_store %c, %all[%at] valid %n : tensor<8xf32>, memref<4x50xf32>
      %d = comms.recv %pairwise[%t] from %p valid %n : !comms.channel<PROTOCOL, 8xf32> -> tensor<8xf32>
      %e = comms.tile_load %pairs[%at] valid %n : memref<4x50xf32> -> tensor<8xf32>
      %g = arith.addf %d, %e : tensor<8xf32>
      comms.tile_store %g, %pairs[%at] valid %n : tensor<8xf32>, memref<4x50xf32>
    }
    %h = comms.recv %single[%t] from %previous valid %n : !comms.channel<PROTOCOL, 8xf32> -> tensor<8xf32>
    %j = comms.tile_load %one[%off] valid %n : memref<50xf32> -> tensor<8xf32>
    %k = arith.addf %h, %j : tensor<8xf32>
    comms.tile_store %k, %one[%off] valid %n : tensor<8xf32>, memref<50xf32>
  }
  comms.return
}
