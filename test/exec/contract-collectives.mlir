// EXEC: comms.contract
// RUN: rm -rf %t && %python %S/arrays.py %t --ranks 4 \
// RUN:   'x = random((8, 24)).astype(np.float32)' \
// RUN:   'w = random((24, 40)).astype(np.float32)' \
// RUN:   'v = random((40, 16)).astype(np.float32)' \
// RUN:   'residual = random((8, 16)).astype(np.float32)' \
// RUN:   'rows = np.concatenate(xs).clip(0).astype(float)' \
// RUN:   'part = rows @ w.astype(float) @ v.astype(float)' \
// RUN:   'y = sum(parts).reshape(n, 8, 16)[r] + residual'
// RUN: %python %S/sweep.py --protocols pull,push,ll --blocks 1,3 %s --ranks 4 --launches 2 \
// RUN:   --input x=%t/x-%r.npy --input w=%t/w-%r.npy --input v=%t/v-%r.npy --input residual=%t/residual-%r.npy \
// RUN:   --expect y=%t/y-%r.npy
// RUN: sed '/[g]athered/d' %s > %t/early.mlir
// RUN: not comms-run %t/early.mlir --ranks 4 --blocks 3 --quiet 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: sed '/[m]ultiplied/d' %s > %t/unfinished.mlir
// RUN: not comms-run %t/unfinished.mlir --ranks 4 --blocks 3 --quiet 2>&1 | FileCheck %s --check-prefix=UNFINISHED

// EARLY: 'comms.contract' op reads {{.*}} of 'rows' {{.*}} no order between it and the write
// UNFINISHED: 'comms.contract' op writes {{.*}} of 'part' {{.*}} no order between it and the read
// A feed-forward layer in one kernel: produce changes rows before they are sent
// to all ranks, which multiply them; products are summed up and shared out, and
// consume adds a residual. Blocks multiply rows that others have
// received, and send sums that others have made: between a collective and a
// product all blocks of a rank meet.
comms.kernel @layer(%x: !comms.window<8x24xf32>, %w: memref<24x40xf32>, %v: memref<40x16xf32>, %residual: memref<8x16xf32>,
                    %rows: memref<32x24xf32>, %h: memref<32x40xf32>, %part: !comms.window<32x16xf32>, %y: memref<8x16xf32>) {
  %world = comms.team world
  %own = comms.team_split %world inner 1
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  comms.all_gather %world ins(%x : !comms.window<8x24xf32>) outs(%rows : memref<32x24xf32>)
  produce (%a: tensor<24xf32>) {
    %zero = arith.constant dense<0.0> : tensor<24xf32>
    %relu = arith.maximumf %a, %zero : tensor<24xf32>
    comms.yield %relu : tensor<24xf32>
  }
  comms.barrier %own grid // Rows are gathered.
  %block = comms.block_id
  %blocks = comms.num_blocks
  %first = arith.muli %block, %c16 : index
  %step = arith.muli %blocks, %c16 : index
  %mine = comms.local %part : !comms.window<32x16xf32> -> memref<32x16xf32>
  scf.for %i = %first to %c32 step %step {
    comms.contract %rows[%i, %c0], %w[%c0, %c0] to %h[%i, %c0] tile [16, 40] depth %c24
      : memref<32x24xf32>, memref<24x40xf32>, memref<32x40xf32>
    comms.contract %h[%i, %c0], %v[%c0, %c0] to %mine[%i, %c0] tile [16, 16] depth %c40
      : memref<32x40xf32>, memref<40x16xf32>, memref<32x16xf32>
  }
  comms.barrier %own grid // Rows are multiplied.
  comms.reduce_scatter sum %world ins(%part : !comms.window<32x16xf32>) outs(%y : memref<8x16xf32>) args(%residual : memref<8x16xf32>)
  consume (%sum: tensor<16xf32>, %rest: tensor<16xf32>) {
    %total = arith.addf %sum, %rest : tensor<16xf32>
    comms.yield %total : tensor<16xf32>
  }
  comms.return
}
