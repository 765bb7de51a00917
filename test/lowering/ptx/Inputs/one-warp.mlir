// The first thread stores before the loop and at its end, which LLVM must not
// join: the thread would have barriers of its own, and its warp wait forever.
comms.kernel @one_warp(%window: !comms.window<320xi64>, %array: memref<288xi64>, %seen: memref<1024xi64>)
    attributes {blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %c16 = arith.constant 16 : index
  %c40 = arith.constant 40 : index
  %c229 = arith.constant 229 : index
  %c243 = arith.constant 243 : index
  %c269 = arith.constant 269 : index
  %c319 = arith.constant 319 : index
  %none = arith.constant 0 : i64
  %team = comms.team world
  %me = comms.rank %team
  %epoch = comms.epoch
  %zero = arith.shrui %epoch, %c40 : index
  %self = arith.addi %me, %zero : index
  %own = comms.local %window : !comms.window<320xi64> -> memref<320xi64>
  %peer = comms.peer %window at %self of %team : !comms.window<320xi64> -> memref<320xi64>
  %scratch = comms.scratch : memref<272xi64>
  %clear = comms.splat %none : i64 -> tensor<272xi64>
  comms.tile_store %clear, %scratch[%c0] : tensor<272xi64>, memref<272xi64>
  %one = comms.tile_load %own[%c269] : memref<320xi64> -> tensor<1xi64>
  %valid = arith.addi %c16, %zero : index
  %rounds = scf.while (%before = %c0) : (index) -> index {
    %parked = memref.load %scratch[%c229] : memref<272xi64>
    %some = arith.cmpi sgt, %parked, %none : i64
    %at = arith.select %some, %c0, %c269 : index
    %tile = comms.tile_load %peer[%at] valid %valid : memref<320xi64> -> tensor<17xi64>
    comms.tile_store %tile, %seen[%c16] : tensor<17xi64>, memref<1024xi64>
    %more = arith.cmpi slt, %before, %c3 : index
    scf.condition(%more) %before : index
  } do {
  ^bb0(%after: index):
    %moved = memref.load %own[%c243] : memref<320xi64>
    %other = arith.cmpi ne, %after, %c1 : index
    %to = arith.select %other, %c0, %c6 : index
    memref.store %moved, %peer[%to] : memref<320xi64>
    comms.tile_store %one, %peer[%c319] valid %c1 : tensor<1xi64>, memref<320xi64>
    comms.tile_store %one, %array[%c1] valid %c1 : tensor<1xi64>, memref<288xi64>
    %next = arith.addi %after, %c1 : index
    scf.yield %next : index
  }
  comms.return
}
