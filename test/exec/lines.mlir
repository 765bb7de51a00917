// Lines of packets whose number grows and shrinks from launch to launch; in
// some launches nothing is sent. Three lines hold 96 elements: the last line
// may have one element, or its rest alone be missing, and what an earlier
// launch left must not be taken for this one's.
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = (np.arange(96) + 100 * r).astype(np.float32)' \
// RUN:   'y = sum((np.arange(96) < k * 41 %% 97) * (k %% 4 != 0) * (sum(xs) + 3 * k) for k in range(1, 24)).astype(np.float32)'
// RUN: comms-run %s --ranks 3 --blocks 2 --launches 23 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise --quiet --fuzz-schedules 20

// Elements of 8 and of 64 bits, of which one vector is a part of a line or a
// whole one.
// RUN: sed -e 's/96xf32/384xi8/g' -e 's/sitofp %i : i32 to f32/trunci %i : i32 to i8/' -e 's/addf/addi/' -e 's/: f32 ->/: i8 ->/' -e 's/constant 97/constant 385/' -e 's/constant 41/constant 171/' %s > %t/i8.mlir
// RUN: %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = (np.arange(384) + 100 * r).astype(np.int8)' \
// RUN:   'y = sum((np.arange(384) < k * 171 %% 385) * (k %% 4 != 0) * (sum(x.astype(int) for x in xs) + 3 * k) for k in range(1, 24)).astype(np.int8)'
// RUN: comms-run %t/i8.mlir --ranks 3 --blocks 2 --launches 23 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise --quiet --fuzz-schedules 10
// RUN: sed -e 's/96xf32/48xf64/g' -e 's/i32 to f32/i32 to f64/' -e 's/: f32 ->/: f64 ->/' -e 's/constant 97/constant 49/' -e 's/constant 41/constant 23/' %s > %t/f64.mlir
// RUN: %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = (np.arange(48) + 100.0 * r)' \
// RUN:   'y = sum((np.arange(48) < k * 23 %% 49) * (k %% 4 != 0) * (sum(xs) + 3 * k) for k in range(1, 24))'
// RUN: comms-run %t/f64.mlir --ranks 3 --blocks 2 --launches 23 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --bitwise --quiet --fuzz-schedules 10

comms.kernel @lines(%x: memref<96xf32>, %y: memref<96xf32>) attributes {ranks = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c41 = arith.constant 41 : index
  %c97 = arith.constant 97 : index
  %team = comms.team world
  %block = comms.block_id
  %epoch = comms.epoch
  %i = arith.index_cast %epoch : index to i32
  %f = arith.sitofp %i : i32 to f32
  %launch = comms.splat %f : f32 -> tensor<96xf32>
  %long = arith.muli %epoch, %c41 : index
  %n = arith.remui %long, %c97 : index
  %turn = arith.remui %epoch, %c4 : index
  %on = arith.cmpi ne, %turn, %c0 : index
  %first = arith.cmpi eq, %block, %c0 : index
  %ch = comms.channel 4 multicast over %team slots 1 : !comms.channel<ll128, 96xf32>
  %runs = arith.andi %on, %first : i1
  scf.if %runs {
    %tile = comms.tile_load %x[%c0] valid %n : memref<96xf32> -> tensor<96xf32>
    %sent = arith.addf %tile, %launch : tensor<96xf32>
    comms.send %sent on %ch[%c0] valid %n : tensor<96xf32>, !comms.channel<ll128, 96xf32>
  }
  comms.channel_barrier %ch : !comms.channel<ll128, 96xf32>
  scf.if %runs {
    %old = comms.tile_load %y[%c0] valid %n : memref<96xf32> -> tensor<96xf32>
    %sum = scf.for %p = %c0 to %c3 step %c1 iter_args(%part = %old) -> tensor<96xf32> {
      %got = comms.recv %ch[%c0] from %p valid %n : !comms.channel<ll128, 96xf32> -> tensor<96xf32>
      %more = arith.addf %part, %got : tensor<96xf32>
      scf.yield %more : tensor<96xf32>
    }
    comms.tile_store %sum, %y[%c0] valid %n : tensor<96xf32>, memref<96xf32>
  }
  // A launch in which nothing is exchanged keeps nobody from running ahead.
  comms.barrier %team block
  comms.return
}
