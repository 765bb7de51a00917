// Two puts by GIN that a counter counts, then their source is written again.
// run.py sets lsa_size.
comms.kernel @counted(%x: !comms.window<256xi32>,
                      %in: !comms.window<2x256xi32>,
                      %y: memref<256xi32>,
                      %n: memref<2xi64>,
                      %s: !comms.signal<2>,
                      %c: !comms.counter<2>) attributes {lsa_size = 2 : i64} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %two = arith.constant 2 : i64
  %me = comms.rank %team
  %ranks = comms.size %team
  %up = arith.addi %me, %c1 : index
  %next = arith.remui %up, %ranks : index
  %down = arith.addi %me, %ranks : index
  %down1 = arith.subi %down, %c1 : index
  %previous = arith.remui %down1, %ranks : index
  %epoch = comms.epoch
  %half = arith.remui %epoch, %c2 : index
  %to = arith.muli %half, %c256 : index
  %to128 = arith.addi %to, %c128 : index
  %launch = arith.index_cast %epoch : index to i64
  %own = comms.local %x : !comms.window<256xi32> -> memref<256xi32>
  comms.put %own[%c0] to %in[%to] count %c128 at %next of %team counted %c[%c1] : !comms.counter<2> gin <context_id = 1>
    : memref<256xi32>, !comms.window<2x256xi32>
  comms.put %own[%c128] to %in[%to128] count %c128 at %next of %team counted %c[%c1] : !comms.counter<2> gin <context_id = 1>
    : memref<256xi32>, !comms.window<2x256xi32>
  comms.signal inc %s[%c0] at %next of %team gin <context_id = 1> : !comms.signal<2>
  %left = comms.wait_counter %c[%c1] ge %two : !comms.counter<2>
  %seen = comms.read_counter %c[%c1] : !comms.counter<2>
  comms.reset_counter %c[%c1] : !comms.counter<2>
  %zero = comms.read_counter %c[%c1] : !comms.counter<2>
  // The source may be written: it has left.
  %old = comms.tile_load %own[%c0] : memref<256xi32> -> tensor<256xi32>
  %three = arith.constant dense<3> : tensor<256xi32>
  %new = arith.muli %old, %three : tensor<256xi32>
  comms.tile_store %new, %own[%c0] : tensor<256xi32>, memref<256xi32>
  %came = comms.wait_signal_from %s[%c0] ge %launch from %previous of %team : !comms.signal<2>
  %here = comms.local %in : !comms.window<2x256xi32> -> memref<2x256xi32>
  %got = comms.tile_load %here[%to] : memref<2x256xi32> -> tensor<256xi32>
  comms.tile_store %got, %y[%c0] : tensor<256xi32>, memref<256xi32>
  %a = comms.splat %seen : i64 -> tensor<1xi64>
  %b = comms.splat %zero : i64 -> tensor<1xi64>
  comms.tile_store %a, %n[%c0] : tensor<1xi64>, memref<2xi64>
  comms.tile_store %b, %n[%c1] : tensor<1xi64>, memref<2xi64>
  comms.signal inc %s[%c1] at %previous of %team gin <context_id = 1> : !comms.signal<2>
  %read = comms.wait_signal_from %s[%c1] ge %launch from %next of %team : !comms.signal<2>
  comms.return
}
