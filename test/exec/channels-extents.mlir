// The extent of a tile grows and shrinks from launch to launch, and in some
// launches nothing is sent: what an earlier launch left must not be taken for
// this one's.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = (np.arange(16) + 100 * r).astype(np.float32)' \
// RUN:   'y = sum((np.arange(16) < k * 7 %% 17) * (k %% 4 != 0) * (sum(xs) + 3 * k) for k in range(1, 24)).astype(np.float32)'
// RUN: sed 's/PROTOCOL/pull/' %s > %t/pull.mlir
// RUN: sed 's/PROTOCOL/push/' %s > %t/push.mlir
// RUN: sed 's/PROTOCOL/ll/' %s > %t/ll.mlir
// RUN: sed 's/PROTOCOL/lamport/' %s > %t/lamport.mlir
// RUN: comms-run %t/pull.mlir --ranks 3 --blocks 2 --launches 23 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise --quiet --fuzz-schedules 10
// RUN: comms-run %t/push.mlir --ranks 3 --blocks 2 --launches 23 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise --quiet --fuzz-schedules 10
// RUN: comms-run %t/ll.mlir --ranks 3 --blocks 2 --launches 23 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise --quiet --fuzz-schedules 10
// RUN: comms-run %t/lamport.mlir --ranks 3 --blocks 2 --launches 23 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise --quiet --fuzz-schedules 10

// At launch k a tile has (7 k) mod 17 elements (0 … 16), and none is sent when
// k mod 4 is 0.
comms.kernel @extents(%x: memref<16xf32>, %y: memref<16xf32>) attributes {ranks = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c17 = arith.constant 17 : index
  %team = comms.team world
  %block = comms.block_id
  %epoch = comms.epoch
  %i = arith.index_cast %epoch : index to i32
  %f = arith.sitofp %i : i32 to f32
  %launch = comms.splat %f : f32 -> tensor<16xf32>
  %long = arith.muli %epoch, %c7 : index
  %n = arith.remui %long, %c17 : index
  %turn = arith.remui %epoch, %c4 : index
  %on = arith.cmpi ne, %turn, %c0 : index
  %first = arith.cmpi eq, %block, %c0 : index
  %ch = comms.channel 4 multicast over %team slots 1 : !comms.channel<PROTOCOL, 16xf32>
  %runs = arith.andi %on, %first : i1
  scf.if %runs {
    %tile = comms.tile_load %x[%c0] valid %n : memref<16xf32> -> tensor<16xf32>
    %sent = arith.addf %tile, %launch : tensor<16xf32>
    comms.send %sent on %ch[%c0] valid %n : tensor<16xf32>, !comms.channel<PROTOCOL, 16xf32>
  }
  comms.channel_barrier %ch : !comms.channel<PROTOCOL, 16xf32>
  scf.if %runs {
    %old = comms.tile_load %y[%c0] valid %n : memref<16xf32> -> tensor<16xf32>
    %sum = scf.for %p = %c0 to %c3 step %c1 iter_args(%part = %old) -> tensor<16xf32> {
      %got = comms.recv %ch[%c0] from %p valid %n : !comms.channel<PROTOCOL, 16xf32> -> tensor<16xf32>
      %more = arith.addf %part, %got : tensor<16xf32>
      scf.yield %more : tensor<16xf32>
    }
    comms.tile_store %sum, %y[%c0] valid %n : tensor<16xf32>, memref<16xf32>
  }
  // A launch in which nothing is exchanged keeps nobody from running ahead.
  comms.barrier %team block
  comms.return
}
