// EXEC: comms.multimem comms.multimem_load_reduce comms.multimem_store comms.multimem_reduce
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = np.arange(16, dtype=np.float32) * (r + 1)' \
// RUN:   'sum = np.arange(16, dtype=np.float32) * 10' \
// RUN:   'start = np.arange(16, dtype=np.int32)' \
// RUN:   'count = np.arange(16, dtype=np.int32) + 7'
// RUN: comms-run %s --ranks 4 --input x=%t/x-%r.npy --input count=%t/start-%r.npy \
// RUN:   --expect y=%t/sum-%r.npy --expect all=%t/sum-%r.npy --expect count=%t/count-%r.npy --fuzz-schedules 4 --quiet

// A rank reduces its quarter over all ranks and stores it to all of them, and
// adds to its quarter of `count` on all of them.
comms.kernel @multimem(%x: !comms.window<16xf32>, %all: !comms.window<16xf32>,
                       %count: !comms.window<16xi32>, %y: memref<16xf32>) {
  %team = comms.team lsa
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %me = comms.rank %team
  %mine = arith.muli %me, %c4 : index
  %xs = comms.multimem %x of %team : !comms.window<16xf32> -> memref<16xf32, #comms.space<multimem>>
  %ys = comms.multimem %all of %team : !comms.window<16xf32> -> memref<16xf32, #comms.space<multimem>>
  %cs = comms.multimem %count of %team : !comms.window<16xi32> -> memref<16xi32, #comms.space<multimem>>
  comms.barrier %team block
  %part = comms.multimem_load_reduce sum %xs[%mine] : memref<16xf32, #comms.space<multimem>> -> tensor<4xf32>
  comms.multimem_store %part, %ys[%mine] : tensor<4xf32>, memref<16xf32, #comms.space<multimem>>
  %seven = arith.constant dense<7> : tensor<4xi32>
  comms.multimem_reduce sum %seven, %cs[%mine] : tensor<4xi32>, memref<16xi32, #comms.space<multimem>>
  comms.fence acq_rel sys proxy alias
  comms.barrier %team block
  comms.fence acq_rel sys proxy alias
  %own = comms.local %all : !comms.window<16xf32> -> memref<16xf32>
  %data = comms.tile_load %own[%c0] : memref<16xf32> -> tensor<16xf32>
  comms.tile_store %data, %y[%c0] : tensor<16xf32>, memref<16xf32>
  comms.return
}
