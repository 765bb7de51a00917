// Teams of load/store reach that GIN joins: barriers of all, of a team and of a
// rail, a read in reach and a put beyond it. run.py sets lsa_size.
comms.kernel @teams(%x: !comms.window<2x512xf32>,
                    %far: !comms.window<2x2x512xf32>,
                    %y: memref<2x512xf32>,
                    %z: memref<2x512xf32>,
                    %n: memref<2x6xi64>,
                    %s: !comms.signal<2>) attributes {lsa_size = 2 : i64} {
  %world = comms.team world
  %lsa = comms.team lsa
  %rail = comms.team rail
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %block = comms.block_id
  %a = comms.rank %world
  %b = comms.size %world
  %c = comms.rank %lsa
  %d = comms.size %lsa
  %e = comms.rank %rail
  %f = comms.size %rail
  %at = arith.muli %block, %c512 : index
  %epoch = comms.epoch
  %half = arith.remui %epoch, %c2 : index
  %start = arith.muli %half, %c1024 : index
  %to = arith.addi %start, %at : index
  %launch = arith.index_cast %epoch : index to i64
  %own = comms.local %x : !comms.window<2x512xf32> -> memref<2x512xf32>
  %old = comms.tile_load %own[%at] : memref<2x512xf32> -> tensor<512xf32>
  %two = arith.constant dense<2.0> : tensor<512xf32>
  %new = arith.divf %old, %two : tensor<512xf32>
  comms.tile_store %new, %own[%at] : tensor<512xf32>, memref<2x512xf32>
  // The other of this team is read after a barrier of all; the other team gets it by GIN.
  comms.barrier %world block
  %up = arith.addi %c, %c1 : index
  %neighbor = arith.remui %up, %d : index
  %view = comms.peer %x at %neighbor of %lsa : !comms.window<2x512xf32> -> memref<2x512xf32>
  %near = comms.tile_load %view[%at] : memref<2x512xf32> -> tensor<512xf32>
  comms.tile_store %near, %y[%at] : tensor<512xf32>, memref<2x512xf32>
  %over = arith.addi %e, %c1 : index
  %across = arith.remui %over, %f : index
  %back = arith.addi %e, %f : index
  %back1 = arith.subi %back, %c1 : index
  %behind = arith.remui %back1, %f : index
  comms.put_signal %own[%at] to %far[%to] count %c512 at %across of %rail then inc %s[%block] gin <>
    : memref<2x512xf32>, !comms.window<2x2x512xf32>, !comms.signal<2>
  %came = comms.wait_signal_from %s[%block] ge %launch from %behind of %rail : !comms.signal<2>
  %here = comms.local %far : !comms.window<2x2x512xf32> -> memref<2x2x512xf32>
  %got = comms.tile_load %here[%to] : memref<2x2x512xf32> -> tensor<512xf32>
  comms.tile_store %got, %z[%at] : tensor<512xf32>, memref<2x512xf32>
  %row = arith.muli %block, %c6 : index
  %ai = arith.index_cast %a : index to i64
  %bi = arith.index_cast %b : index to i64
  %ci = arith.index_cast %c : index to i64
  %di = arith.index_cast %d : index to i64
  %ei = arith.index_cast %e : index to i64
  %fi = arith.index_cast %f : index to i64
  %ta = comms.splat %ai : i64 -> tensor<1xi64>
  %tb = comms.splat %bi : i64 -> tensor<1xi64>
  %tc = comms.splat %ci : i64 -> tensor<1xi64>
  %td = comms.splat %di : i64 -> tensor<1xi64>
  %te = comms.splat %ei : i64 -> tensor<1xi64>
  %tf = comms.splat %fi : i64 -> tensor<1xi64>
  %r1 = arith.addi %row, %c1 : index
  %r2 = arith.addi %r1, %c1 : index
  %r3 = arith.addi %r2, %c1 : index
  %r4 = arith.addi %r3, %c1 : index
  %r5 = arith.addi %r4, %c1 : index
  comms.tile_store %ta, %n[%row] : tensor<1xi64>, memref<2x6xi64>
  comms.tile_store %tb, %n[%r1] : tensor<1xi64>, memref<2x6xi64>
  comms.tile_store %tc, %n[%r2] : tensor<1xi64>, memref<2x6xi64>
  comms.tile_store %td, %n[%r3] : tensor<1xi64>, memref<2x6xi64>
  comms.tile_store %te, %n[%r4] : tensor<1xi64>, memref<2x6xi64>
  comms.tile_store %tf, %n[%r5] : tensor<1xi64>, memref<2x6xi64>
  comms.flush %rail gin <>
  // All have read before the next launch writes.
  comms.barrier %lsa block
  comms.barrier %rail block
  comms.return
}
