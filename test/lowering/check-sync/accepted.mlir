// Programs that are right, and that a checker could take for wrong.
// RUN: comms-opt %s -comms-check-sync -split-input-file -verify-diagnostics -o %t

// A barrier in two halves, on a part of the ranks.
comms.kernel @halves() attributes {ranks = 8 : i64, lsa_size = 4 : i64, blocks = 2 : i64} {
  %lsa = comms.team lsa
  %pairs = comms.team_split %lsa inner 2
  %rail = comms.team rail
  %a = comms.barrier_arrive %pairs block
  %t = comms.barrier_wait %a
  comms.barrier %rail block
  comms.barrier %lsa grid
  comms.return
}

// -----

// Half of the ranks meet more often than the others: each team by itself.
comms.kernel @teams_differ() attributes {ranks = 4 : i64, lsa_size = 2 : i64} {
  %c2 = arith.constant 2 : index
  %world = comms.team world
  %lsa = comms.team lsa
  %rank = comms.rank %world
  %low = arith.cmpi ult, %rank, %c2 : index
  scf.if %low {
    comms.barrier %lsa block
  }
  comms.barrier %world block
  comms.return
}

// -----

// Different barrier ops may meet: what counts is the team and how often.
comms.kernel @two_places() attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %rank = comms.rank %world
  %root = arith.cmpi eq, %rank, %c0 : index
  scf.if %root {
    comms.barrier %world block
  } else {
    comms.barrier %world block
  }
  comms.return
}

// -----

// One block produces, another consumes, with a credit that comes back.
comms.kernel @roles(%full: !comms.signal<1>, %free: !comms.signal<1>, %w: !comms.window<64xf32>, %x: memref<64xf32>)
    attributes {ranks = 2 : i64, blocks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %world = comms.team world
  %rank = comms.rank %world
  %peer = arith.subi %c1, %rank : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %last = arith.subi %launch, %one : i64
  comms.role "producer" blocks 0 to 1 {
    %t = comms.wait_signal_from %free[%c0] ge %last from %peer of %world : !comms.signal<1>
    %c64 = arith.constant 64 : index
    comms.put_signal %x[%c0] to %w[%c0] count %c64 at %peer of %world then inc %full[%c0] : memref<64xf32>, !comms.window<64xf32>, !comms.signal<1>
  }
  comms.role "consumer" blocks 1 to 2 {
    %t = comms.wait_signal_from %full[%c0] ge %launch from %peer of %world : !comms.signal<1>
    %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
    %tile = comms.tile_load %here[%c0] after %t : memref<64xf32> -> tensor<64xf32>
    comms.signal inc %free[%c0] at %peer of %world : !comms.signal<1>
  }
  comms.return
}

// -----

// A chain: rank 0 begins, each hands on to the next, the last tells all.
comms.kernel @chain(%s: !comms.signal<2>) attributes {ranks = 5 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  %n = comms.size %world
  %rank = comms.rank %world
  %last = arith.subi %n, %c1 : index
  %next = arith.addi %rank, %c1 : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %not_first = arith.cmpi ne, %rank, %c0 : index
  scf.if %not_first {
    %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<2>
  }
  %not_last = arith.cmpi ne, %rank, %last : index
  scf.if %not_last {
    comms.signal inc %s[%c0] at %next of %world : !comms.signal<2>
    %t = comms.wait_signal_from %s[%c1] ge %launch from %last of %world : !comms.signal<2>
  } else {
    comms.for_peers %world reversed as %p {
      comms.signal inc %s[%c1] at %p of %world : !comms.signal<2>
    }
  }
  comms.return
}

// -----

// `set` to the launch's number, by loops of every kind.
comms.kernel @loops(%s: !comms.signal<4>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %world = comms.team world
  %rank = comms.rank %world
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  %end = scf.while (%p = %c0) : (index) -> index {
    %more = arith.cmpi slt, %p, %c4 : index
    scf.condition(%more) %p : index
  } do {
  ^bb0(%p: index):
    comms.signal set %s[%rank] value %launch at %p of %world : !comms.signal<4>
    %next = arith.addi %p, %c1 : index
    scf.yield %next : index
  }
  // %end is 4: every cell is waited for, in turn, from the last.
  %left = scf.for %i = %c0 to %end step %c1 iter_args(%at = %end) -> index {
    %from = arith.subi %at, %c1 : index
    %t = comms.wait_signal_from %s[%from] ge %launch from %from of %world : !comms.signal<4>
    scf.yield %from : index
  }
  // %left is 0.
  scf.index_switch %left
  case 0 {
    comms.barrier %world block
    scf.yield
  }
  default {
  }
  comms.return
}

// -----

// A fence before a relaxed signal and one after a relaxed wait do what release
// and acquire do.
comms.kernel @fences(%s: !comms.signal<1>, %w: !comms.window<64xf32>, %x: memref<64xf32>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %rank = comms.rank %world
  %peer = arith.subi %c1, %rank : index
  %epoch = comms.epoch
  %launch = arith.index_cast %epoch : index to i64
  comms.put %x[%c0] to %w[%c0] count %c64 at %peer of %world : memref<64xf32>, !comms.window<64xf32>
  comms.fence release sys
  comms.signal inc %s[%c0] at %peer of %world order relaxed : !comms.signal<1>
  %t = comms.wait_signal %s[%c0] ge %launch order relaxed : !comms.signal<1>
  comms.fence acquire sys
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %tile = comms.tile_load %here[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Offsets, counts and conditions that depend on data, where nothing synchronizes.
comms.kernel @data(%x: memref<64xi64>, %y: memref<64xf32>, %n: index) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %world = comms.team world
  scf.for %i = %c0 to %n step %c1 {
    %tile = comms.tile_load %y[%i] : memref<64xf32> -> tensor<8xf32>
    comms.tile_store %tile, %y[%i] valid %n : tensor<8xf32>, memref<64xf32>
  }
  comms.barrier %world block
  comms.return
}

// -----

// Two buffers by parity: one barrier a launch is enough.
comms.kernel @double_buffer(%w: !comms.window<128xf32>, %x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %epoch = comms.epoch
  %parity = arith.remui %epoch, %c2 : index
  %at = arith.muli %parity, %c64 : index
  %mine = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  %here = comms.local %w : !comms.window<128xf32> -> memref<128xf32>
  comms.tile_store %mine, %here[%at] : tensor<64xf32>, memref<128xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %there = comms.peer %w at %p of %world : !comms.window<128xf32> -> memref<128xf32>
    %tile = comms.tile_load %there[%at] : memref<128xf32> -> tensor<64xf32>
    comms.tile_store %tile, %y[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.return
}

// -----

// Reductions in memory may meet one another.
comms.kernel @reductions(%w: !comms.window<64xf32>, %y: memref<64xf32>) attributes {ranks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %world = comms.team world
  %tile = comms.iota : tensor<64xf32>
  %all = comms.multimem %w of %world : !comms.window<64xf32> -> memref<64xf32, #comms.space<multimem>>
  comms.multimem_reduce sum %tile, %all[%c0] : tensor<64xf32>, memref<64xf32, #comms.space<multimem>>
  comms.fence acq_rel sys proxy alias
  comms.barrier %world block
  comms.fence acq_rel sys proxy alias
  %here = comms.local %w : !comms.window<64xf32> -> memref<64xf32>
  %sum = comms.tile_load %here[%c0] : memref<64xf32> -> tensor<64xf32>
  comms.tile_store %sum, %y[%c0] : tensor<64xf32>, memref<64xf32>
  comms.barrier %world block
  comms.return
}

// -----

// Numbers by the index dialect.
comms.kernel @index_dialect(%s: !comms.signal<1>) attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %team = comms.team world
  %me = comms.rank %team
  %c0 = index.constant 0
  %c1 = index.constant 1
  %c4 = index.constant 4
  %up = index.add %me, %c1
  %next = index.remu %up, %c4
  %low = index.cmp slt(%me, %c4)
  scf.if %low {
    comms.signal inc %s[%c0] at %next of %team : !comms.signal<1>
  }
  %epoch = comms.epoch
  %launch = index.casts %epoch : index to i64
  %t = comms.wait_signal %s[%c0] ge %launch : !comms.signal<1>
  comms.barrier %team block
  comms.return
}

// -----

// Counts come from data, and are at most a row: by how they are calculated, and by a check before.
comms.kernel @rows_of_data(%x: memref<8xf32>, %n: memref<2xi64>, %w: !comms.window<4x8xf32>)
    attributes {ranks = 2 : i64, blocks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %none = arith.constant 0 : i64
  %row = arith.constant 8 : i64
  %team = comms.team world
  %me = comms.rank %team
  %mine = arith.muli %me, %c8 : index
  %first = memref.load %n[%c0] : memref<2xi64>
  %low = arith.maxsi %first, %none : i64
  %held = arith.minsi %low, %row : i64
  %some = arith.index_cast %held : i64 to index
  comms.put %x[%c0] to %w[%mine] count %some at %c0 of %team : memref<8xf32>, !comms.window<4x8xf32>
  %second = memref.load %n[%c1] : memref<2xi64>
  %others = arith.index_cast %second : i64 to index
  comms.check_bounds "a row" %c0, %others in %c8
  %there = arith.addi %mine, %c16 : index
  comms.put %x[%c0] to %w[%there] count %others at %c1 of %team : memref<8xf32>, !comms.window<4x8xf32>
  comms.barrier %team block
  comms.return
}

// -----

// Data say which of a pair is put to: the flush is of both.
comms.kernel @flush_of_all_that_it_may_be(%n: memref<1xi64>, %data: !comms.window<4x32xf32>, %mine: memref<32xf32>)
    attributes {ranks = 4 : i64, blocks = 1 : i64} {
  %world = comms.team world
  %pair = comms.team_split %world inner 2
  %me = comms.rank %world
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %row = arith.muli %me, %c32 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %number = memref.load %n[%c0] : memref<1xi64>
  %peer = arith.index_cast %number : i64 to index
  comms.put %mine[%c0] to %data[%row] count %c32 at %peer of %pair : memref<32xf32>, !comms.window<4x32xf32>
  comms.flush %pair
  comms.tile_store %zero, %mine[%c0] : tensor<32xf32>, memref<32xf32>
  comms.barrier %world block
  comms.return
}

// -----

// All is cell 0 of one: true is the least i1, and only signed quotients of the
// least number by -1 have no value.
comms.kernel @ends_of_integers(%s: !comms.signal<1>) attributes {ranks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %false = arith.constant false
  %true = arith.constant true
  %zero = arith.constant 0 : i8
  %least = arith.constant -128 : i8
  %ones = arith.constant -1 : i8
  %team = comms.team world
  %min = arith.minsi %true, %false : i1
  %max = arith.maxsi %true, %false : i1
  %one = arith.index_castui %min : i1 to index
  %first = arith.subi %c1, %one : index
  %second = arith.index_castui %max : i1 to index
  %unsigned = arith.divui %least, %ones : i8
  %third = arith.index_cast %unsigned : i8 to index
  %signed = arith.divsi %zero, %ones : i8
  %fourth = arith.index_cast %signed : i8 to index
  comms.signal inc %s[%first] at %c0 of %team : !comms.signal<1>
  comms.signal inc %s[%second] at %c0 of %team : !comms.signal<1>
  comms.signal inc %s[%third] at %c0 of %team : !comms.signal<1>
  comms.signal inc %s[%fourth] at %c0 of %team : !comms.signal<1>
  comms.return
}
