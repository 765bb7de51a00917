// EXEC: comms.role comms.put comms.signal comms.wait_signal
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 3 \
// RUN:   'x = np.arange(8, dtype=np.float32) + 10 * r' \
// RUN:   'y = 2 * xs[(r - 1) % n]'
// RUN: comms-run %s --ranks 3 --blocks 2 --launches 4 --input x=%t/x-%r.npy --expect y=%t/y-%r.npy --fuzz-schedules 4 --quiet

// Block 0 of a rank sends to the next rank, block 1 waits and doubles what came.
comms.kernel @role(%x: memref<8xf32>, %in: !comms.window<8xf32>, %y: memref<8xf32>,
                   %came: !comms.signal<1>, %taken: !comms.signal<1>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %me = comms.rank %team
  %n = comms.size %team
  %up = arith.addi %me, %c1 : index
  %next = arith.remui %up, %n : index
  %down = arith.addi %me, %n : index
  %down1 = arith.subi %down, %c1 : index
  %previous = arith.remui %down1, %n : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %one = arith.constant 1 : i64
  %before = arith.subi %launch, %one : i64
  comms.role "sender" blocks 0 to 1 {
    // The receiver has taken the last launch's data.
    %free = comms.wait_signal %taken[%c0] ge %before : !comms.signal<1>
    comms.put %x[%c0] to %in[%c0] count %c8 at %next of %team : memref<8xf32>, !comms.window<8xf32>
    comms.signal inc %came[%c0] at %next of %team : !comms.signal<1>
  }
  comms.role "receiver" blocks 1 to 2 {
    %there = comms.wait_signal %came[%c0] ge %launch : !comms.signal<1>
    %own = comms.local %in : !comms.window<8xf32> -> memref<8xf32>
    %data = comms.tile_load %own[%c0] after %there : memref<8xf32> -> tensor<8xf32>
    %twice = arith.addf %data, %data : tensor<8xf32>
    comms.tile_store %twice, %y[%c0] : tensor<8xf32>, memref<8xf32>
    comms.signal inc %taken[%c0] at %previous of %team : !comms.signal<1>
  }
  comms.return
}
