// Ranks pass barriers of their teams more or less often, and all meet in one of the world behind them.
// RUN: %python %S/emulate.py %s --ranks 4 --launches 3 --gpu "threads=32 chip=sm_80" --gpu "threads=1 chip=sm_90"

comms.kernel @teams(%w: !comms.window<16xi64>, %y: memref<16xi64>) attributes {ranks = 4, blocks = 2} {
  %world = comms.team world
  %pair = comms.team_split %world inner 2
  %far = comms.team_split %world outer 2
  %me = comms.rank %world
  %block = comms.block_id
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %at = arith.muli %block, %c8 : index
  %low = arith.cmpi ult, %me, %c2 : index
  %rest = arith.remui %me, %c2 : index
  %even = arith.cmpi eq, %rest, %c0 : index
  %own = comms.local %w : !comms.window<16xi64> -> memref<16xi64>
  %number = arith.index_cast %me : index to i64
  %tile = comms.splat %number : i64 -> tensor<8xi64>
  comms.tile_store %tile, %own[%at] : tensor<8xi64>, memref<16xi64>
  scf.if %low {
    comms.barrier %pair block
    comms.barrier %pair grid
  }
  scf.if %even {
    comms.barrier %far grid
    comms.barrier %far block
    comms.barrier %far block
  }
  comms.barrier %world block
  %peer = arith.subi %c3, %me : index
  %part = comms.peer %w at %peer of %world : !comms.window<16xi64> -> memref<16xi64>
  %theirs = comms.tile_load %part[%at] : memref<16xi64> -> tensor<8xi64>
  comms.tile_store %theirs, %y[%at] : tensor<8xi64>, memref<16xi64>
  comms.barrier %world grid
  comms.return
}
