//===- Passes.td - The passes of CommsIR -------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_PASSES_TD
#define COMMSIR_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckOps : Pass<"comms-check-ops", "::mlir::ModuleOp"> {
  let summary = "Refuse what kernels do not hold, and what stands beside them";
  let description = [{
    Kernels may come from untrusted authors and run in the process that compiles
    them. The pass accepts what is checked and refuses the rest, with its line:

    - in a kernel, every op, type and attribute that is not on the list of
      `lowering/analysis/UncheckedOps.cpp` (docs/Spec.md, "What a kernel holds");
    - beside the kernels, everything but functions of func, which no kernel
      calls and the pass removes;
    - attributes of other dialects on the module, a kernel or its arguments.

    Before:

    ```mlir
    func.func private @unused()
    comms.kernel @nothing() {
      comms.return
    }
    ```

    After:

    ```mlir
    comms.kernel @nothing() {
      comms.return
    }
    ```
  }];
}

def ExpandCollectives : Pass<"comms-expand-collectives", "::mlir::comms::KernelOp"> {
  let summary = "Expand collectives into programs over channels";
  let description = [{
    Replaces each collective by the program of an algorithm: sends and receives
    of tiles over channels, with the regions `produce` and `consume` around
    them. A tile is a row if a region uses a row as a whole or arrays differ in
    their row length; otherwise the arrays are cut flat, into tiles of a size
    that keeps every rank busy, and the regions are retyped to it.

    Algorithm and protocol come from the options, else from the op, else from a
    cost rule. The choice is reported as a remark and as an entry of the
    kernel's attribute `comms.choices`. An algorithm is one file of
    `lowering/collectives/algorithm`; `docs/AddAnAlgorithm.md` adds one.

    Before:

    ```mlir
    comms.kernel @sum(%x: memref<512xf32>, %y: memref<512xf32>) attributes {ranks = 2 : i64} {
      %team = comms.team world
      comms.all_reduce sum %team ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
          {algorithm = "one_shot", protocol = "ll"}
      comms.return
    }
    ```

    After (and `canonicalize`):

    ```mlir
    %block = comms.block_id
    %blocks = comms.num_blocks
    %channel = comms.channel 0 multicast over %team slots 2 : <ll, 256xf32>
    scf.for %t = %block to %c2 step %blocks {
      %offset = arith.muli %t, %c256 : index
      %tile = comms.tile_load %x[%offset] : memref<512xf32> -> tensor<256xf32>
      comms.send %tile on %channel[%t] : tensor<256xf32>, <ll, 256xf32>
    }
    comms.channel_barrier %channel : <ll, 256xf32>
    scf.for %t = %block to %c2 step %blocks {
      %a = comms.recv %channel[%t] from %c0 : <ll, 256xf32> -> tensor<256xf32>
      %b = comms.recv %channel[%t] from %c1 : <ll, 256xf32> -> tensor<256xf32>
      %sum = arith.addf %a, %b : tensor<256xf32>
      %offset = arith.muli %t, %c256 : index
      comms.tile_store %sum, %y[%offset] : tensor<256xf32>, memref<512xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let options = [
    Option<"ranks", "ranks", "int64_t", "0", "Number of ranks; 0: the kernel's own `ranks`">,
    Option<"blocks", "blocks", "int64_t", "0", "Blocks of each rank; 0: the kernel's own `blocks`, else known at run time">,
    Option<"algorithm", "algorithm", "std::string", "\"\"", "Algorithm for all collectives; empty: each op's own, else the cheapest">,
    Option<"protocol", "protocol", "std::string", "\"\"", "Protocol for all channels; empty: each op's own, else the cheapest">,
    Option<"tileSize", "tile-size", "int64_t", "0", "Elements of a flat tile, rounded up to what the protocol moves at a time; 0: chosen">,
    Option<"threads", "threads", "int64_t", "0", "Threads of a GPU's CTA: a flat tile is one vector of each thread of a block; 0: no GPU">,
    Option<"cluster", "cluster", "int64_t", "1", "CTAs of a block">,
  ];
}

def CheckSync : Pass<"comms-check-sync", "::mlir::comms::KernelOp"> {
  let summary = "Prove that waits are met, barriers reached by all and accesses in bounds";
  let description = [{
    Follows the kernel on every rank and block through a number of launches,
    with known integers and unknown data, and refuses it when
    - a wait is never met, or ranks wait for each other in a cycle (deadlock);
    - some block that a barrier joins does not reach it;
    - a sent tile is not received, a received one not sent, or a slot carries
      two tiles in a launch;
    - an access leaves its memory, a peer its team, a slot its channel, a cell
      its signal;
    - ranks race: one writes shared memory while another may access it, in the
      same launch or in an earlier one, or a wait is met by what an earlier
      launch left behind.

    Where data decide what synchronizes, the verdict is "not decided". Errors
    name the ranks and blocks that wait, the observed and the expected value, the
    missing peer, and what to change. The kernel is not changed and must not
    contain whole collectives. `docs/Checker.md` says what is proven and what is
    not.

    Before and after (the pass changes nothing):

    ```mlir
    comms.kernel @forgets(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %one = arith.constant 1 : i64
      %team = comms.team world
      %rank = comms.rank %team
      %first = arith.cmpi eq, %rank, %c0 : index
      scf.if %first {
        comms.signal inc %s[%c0] at %c1 of %team : !comms.signal<1>
      }
      %t = comms.wait_signal %s[%c0] ge %one : !comms.signal<1>
      comms.return
    }
    ```

    What it says:

    ```
    error: deadlock: rank 0, block 0 waits for signal s[0] >= 1; observed 0 (launch 1)
    note: no rank has signaled it in this launch
    note: rank 1 block 0 has ended launch 1 without it
    ```
  }];
  let options = [
    Option<"ranks", "ranks", "int64_t", "0", "Number of ranks; 0: the kernel's own `ranks`">,
    Option<"blocks", "blocks", "int64_t", "0", "Blocks of each rank; 0: the kernel's own, else `default-blocks`, or 1 when the kernel does not tell blocks apart">,
    Option<"defaultBlocks", "default-blocks", "int64_t", "2", "Blocks of each rank where nothing says how many and the kernel tells blocks apart; roles may need more. Pipelines take 1, as a run does">,
    Option<"launches", "launches", "int64_t", "0", "Launches to follow; 0: 3, or as many as show that what comms.epoch decides repeats, up to 64">,
    Option<"runLaunches", "run-launches", "int64_t", "0", "Launches that a run will make: where `launches` is 0, so many are followed if they are more, up to 64">,
    Option<"maxEvents", "max-events", "int64_t", "0", "Budget of events; 0: a default of a third of a second. Beyond it fewer ranks are followed, and a remark says so">,
    Option<"requireProof", "require-proof", "bool", "false", "Refuse what is not proven">,
    Option<"tell", "tell", "bool", "false", "Write down what arrays hold after the first launch">,
  ];
}

def CheckExpansion : Pass<"comms-check-expansion", "::mlir::ModuleOp"> {
  let summary = "Prove that the expansion of collectives computes what they say";
  let description = [{
    Expands the collectives of each kernel, follows the result on all ranks for
    three launches with the terms of what elements hold, and compares each
    argument with what the collectives mean: every contribution once, on every
    rank, in one order where ranks hold the same. The kernel is not changed.

    A remark says that it is proven; a warning, why it is not decided; an error
    shows a difference. Kernels of collectives over all ranks alone are decided.

    Before (and after: the pass only judges):

    ```mlir
    comms.kernel @sum(%x: memref<512xf32>, %y: memref<512xf32>) attributes {ranks = 2 : i64} {
      %team = comms.team world
      comms.all_reduce sum %team ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
      comms.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let options = [
    Option<"ranks", "ranks", "int64_t", "0", "Number of ranks; 0: the kernel's own `ranks`">,
    Option<"blocks", "blocks", "int64_t", "1", "Blocks of each rank">,
    Option<"algorithm", "algorithm", "std::string", "\"\"", "Algorithm for all collectives; empty: each op's own, else the cheapest">,
    Option<"protocol", "protocol", "std::string", "\"\"", "Protocol for all channels; empty: each op's own, else the cheapest">,
    Option<"tileSize", "tile-size", "int64_t", "0", "Elements of a flat tile; 0: chosen">,
    Option<"lowerChannels", "lower-channels", "bool", "false", "Follow what the protocol makes of channels, instead of these">,
  ];
}

def LowerChannels : Pass<"comms-lower-channels", "::mlir::comms::KernelOp"> {
  let summary = "Lower channels to memory operations, each by its protocol";
  let description = [{
    Gives every channel memory, a window that becomes the kernel's last
    argument, and lowers sends and receives as the channel's protocol says. The
    new argument is marked `comms.hidden`: the runtime allocates it once, filled
    as `comms.init` says, and keeps it from launch to launch. Values that are
    constant within a launch (the buffer in use, the own row, the flag) are
    computed once, at the channel. No operation over a channel is left.

    With the option `shared`, the kernels of a group share channel memory. The
    kernel gets the attribute `comms.shared_channels`; a new argument is the
    buffer of this launch, and `comms.shared_slots` says what its slots hold
    ("data", "packets", "lines", "poison"). Then no protocol clears slots: the
    prologue of the next launch does.

    Before:

    ```mlir
    comms.kernel @swap(%x: memref<64xf32>) attributes {ranks = 2 : i64} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %team = comms.team world
      %rank = comms.rank %team
      %peer = arith.subi %c1, %rank : index
      %ch = comms.channel 0 pairwise over %team slots 1 : !comms.channel<ll, 64xf32>
      %mine = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
      comms.send %mine on %ch[%c0] to %peer : tensor<64xf32>, !comms.channel<ll, 64xf32>
      %theirs = comms.recv %ch[%c0] from %peer : !comms.channel<ll, 64xf32> -> tensor<64xf32>
      comms.tile_store %theirs, %x[%c0] : tensor<64xf32>, memref<64xf32>
      comms.return
    }
    ```

    After, with constants folded:

    ```mlir
    comms.kernel @swap(%x: memref<64xf32>,
        %channel0.ll: !comms.window<2x2x1x64xi64> {comms.hidden, comms.init = "zero"})
        attributes {ranks = 2 : i64} {
      %team = comms.team world
      %rank = comms.rank %team
      %peer = arith.subi %c1, %rank : index
      %epoch = comms.epoch
      %turn = arith.remui %epoch, %c2 : index
      %buffer = arith.muli %turn, %c128 : index
      %mine = arith.muli %rank, %c64 : index
      %own_row = arith.addi %buffer, %mine : index
      %flag = arith.index_cast %epoch : index to i32
      %own = comms.local %channel0.ll : !comms.window<2x2x1x64xi64> -> memref<2x2x1x64xi64>
      %tile = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
      %part = comms.peer %channel0.ll at %peer of %team : !comms.window<2x2x1x64xi64> -> memref<2x2x1x64xi64>
      comms.packet_store %tile, %part[%own_row] flag %flag : tensor<64xf32>, memref<2x2x1x64xi64>
      %theirs = arith.muli %peer, %c64 : index
      %row = arith.addi %buffer, %theirs : index
      %got = comms.packet_load %own[%row] flag %flag : memref<2x2x1x64xi64> -> tensor<64xf32>
      comms.tile_store %got, %x[%c0] : tensor<64xf32>, memref<64xf32>
      comms.return
    }
    ```
  }];
  let options = [
    Option<"shared", "shared", "bool", "false", "The kernels of a group take the memory of channels in turn">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def EliminateBarriers : Pass<"comms-eliminate-barriers", "::mlir::comms::KernelOp"> {
  let summary = "Remove barriers that another barrier makes redundant";
  let description = [{
    Removes the second of two barriers of one team and one extent in the same
    block of IR if nothing that the barrier orders happens between them: no other
    synchronization, and no access to memory that another block can see (parts of
    windows, and the rank's memory if the rank has more than one block). The
    remaining barrier has the order of both. The last barrier of a kernel stays.
    A barrier that is reached under a condition on the rank or on data stays too,
    because it may pair with another op on another rank.

    Before:

    ```mlir
    comms.kernel @two_channels(%x: memref<8xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
      %c0 = arith.constant 0 : index
      %team = comms.team world
      comms.barrier %team block
      %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
      comms.barrier %team block
      comms.tile_store %tile, %x[%c0] : tensor<8xf32>, memref<8xf32>
      comms.return
    }
    ```

    After:

    ```mlir
    comms.kernel @two_channels(%x: memref<8xf32>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
      %c0 = arith.constant 0 : index
      %team = comms.team world
      comms.barrier %team block
      %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
      comms.tile_store %tile, %x[%c0] : tensor<8xf32>, memref<8xf32>
      comms.return
    }
    ```
  }];
  let statistics = [Statistic<"numRemoved", "num-removed", "Barriers removed">];
}

def Instrument : Pass<"comms-instrument", "::mlir::comms::KernelOp"> {
  let summary = "Record every window access and synchronization for the race detector";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let description = [{
    Inserts a `comms.record_access` before every access to memory that other
    ranks can see, and a `comms.record_sync` before every op that synchronizes.
    The latter names the op and, if it has them, its cell and its peer, or the
    first element. For an op that does both (a packet, a put with a signal), the
    record of its synchronization comes first.

    With `everything`, for a run with weak memory, accesses to this rank's own
    memory are recorded too (and to the block's, where something is copied later),
    to each part of a multimem view, and to windows that the host uses between
    launches. The record of a synchronization then says the op's order, scope,
    proxy, GIN context and assumption.

    Before:

    ```mlir
    comms.kernel @publish(%w: !comms.window<8xf32>, %x: memref<8xf32>) attributes {ranks = 2 : i64} {
      %c0 = arith.constant 0 : index
      %team = comms.team world
      %own = comms.local %w : !comms.window<8xf32> -> memref<8xf32>
      %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
      comms.tile_store %tile, %own[%c0] : tensor<8xf32>, memref<8xf32>
      comms.barrier %team block
      comms.return
    }
    ```

    After:

    ```mlir
    comms.kernel @publish(%w: !comms.window<8xf32>, %x: memref<8xf32>) attributes {ranks = 2 : i64} {
      %c0 = arith.constant 0 : index
      %team = comms.team world
      %own = comms.local %w : !comms.window<8xf32> -> memref<8xf32>
      %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
      %c8 = arith.constant 8 : index
      comms.record_access write %own[%c0] count %c8 : memref<8xf32>
      comms.tile_store %tile, %own[%c0] : tensor<8xf32>, memref<8xf32>
      comms.record_sync "barrier"
      comms.barrier %team block
      comms.return
    }
    ```
  }];
  let options = [
    Option<"everything", "everything", "bool", "false",
           "Record what a run with weak memory needs">
  ];
}

def AssertBounds : Pass<"comms-assert-bounds", "::mlir::comms::KernelOp"> {
  let summary = "Check at run time the offsets that cannot be proven in bounds";
  let description = [{
    For every access to memory by an offset, and for every cell of a signal or
    counter, the pass refuses the kernel if the access cannot be in bounds, does
    nothing if it is proved in bounds, and otherwise inserts a
    `comms.check_bounds` before it. Proofs use ranges of values, loop bounds,
    minima and maxima, enclosing conditions, and terms that cancel between an
    offset and a count. The programs that collectives expand to need no checks.

    Operations that no check can guard are refused, as by comms-check-ops: ops of
    the LLVM dialect, calls, `cf.assert`, views with offsets that are not
    constant, gathers, and memory that a kernel would have to free. Vector loads
    and stores are checked in memory of one dimension; views and copies are
    compared with the memory if its shape is not in its type.

    Before:

    ```mlir
    comms.kernel @rows(%x: memref<1000xf32>, %y: memref<1000xf32>, %at: index) {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %c256 = arith.constant 256 : index
      %c1000 = arith.constant 1000 : index
      %block = comms.block_id
      %blocks = comms.num_blocks
      scf.for %t = %block to %c4 step %blocks {
        %offset = arith.muli %t, %c256 : index
        %left = arith.subi %c1000, %offset : index
        %valid = arith.minsi %left, %c256 : index
        %tile = comms.tile_load %x[%offset] valid %valid : memref<1000xf32> -> tensor<256xf32>
        comms.tile_store %tile, %y[%at] valid %valid : tensor<256xf32>, memref<1000xf32>
      }
      comms.return
    }
    ```

    After, in the loop:

    ```mlir
        %tile = comms.tile_load %x[%offset] valid %valid : memref<1000xf32> -> tensor<256xf32>
        comms.check_bounds "write of y" %at, %valid in %c1000
        comms.tile_store %tile, %y[%at] valid %valid : tensor<256xf32>, memref<1000xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def DistributeTiles : Pass<"comms-distribute-tiles", "::mlir::comms::KernelOp"> {
  let summary = "Distribute tiles over the threads and lanes of a block";
  let description = [{
    Turns tiles, which are tensors so far, into loops over vectors of at most
    `lanes` elements. Runs of tile ops of one length share a loop, loads and
    stores included, unless an address, another block or another rank could
    observe that they ran element by element:

    - two accesses of which one writes share a loop when they cannot overlap
      (distinct arguments of the kernel, parts of distinct constant peers,
      constant ranges apart) or name the same element at each step (same memory,
      same offset);
    - packets and poison keep their order: nothing that peers see follows a wait
      in its loop, no wait follows a store that peers see, and a store of packets
      or poison follows no plain store that peers see.

    Full vectors have no mask. The rest of a tile is one shorter vector, or, where
    an op has `valid`, a masked loop. A tile of one element becomes a scalar. A
    tile that several loops need, or that `scf.for` or `scf.if` carries, lies in
    `comms.scratch` memory, which is used again when the tile is dead; constants,
    `comms.splat`, `comms.broadcast_row` and `comms.iota` are made again at each
    use. A loop that folds tiles of up to 16 peers into one is unrolled first: the
    sum stays in registers. Rows are combined by the tree of docs/Spec.md
    ("Bits"), in loops: code does not grow with the row. Stored NaN that
    arithmetic made are the canonical ones.

    Vectors of a line of packets (`store128_whole`) are all made or none is, with
    a mask for what `valid` leaves out: up to the end of a line, and with threads
    in whole warps. `lanes` is at least 8 then, and threads move 16 bytes of a
    line, or of each of several.

    Loops made here carry `comms.tile`. The pass fails when a tensor, or a vector
    of more than 16 elements, would be left.

    **Threads.** With `threads`, a block is `cluster` CTAs of that many threads,
    and the kernel gets the attributes `comms.threads` and `comms.cluster`. Lanes
    are as many as the narrowest memory element of tiles of one length allows in
    16 bytes, or fewer, down to those of the widest, where threads would have no
    work (of one warp: down to 32 bits of the narrowest, so that none branches);
    a thread has one such vector in each trip, the same in every stage.
    Up to 16 trips are unrolled. What several stages need stays in registers where
    every trip is whole, else in memory of the thread (`memref.alloca`); only the
    last vector of a tail has a mask. Loads come first in a stage, then all polls
    together. Tiles of one element are computed by all threads and stored by one,
    after the stores of longer tiles that may come before: the warp of that
    thread would store its part late.
    Each warp gives one value of a row to the `#comms.space<shared>` memory of
    every CTA (by shuffles, and stores through `mapa`); after one barrier all
    threads combine these; in loops two halves of the memory alternate. Integers,
    and floats of which the greatest or the least is sought, travel as i32 in
    their order, which a warp combines at once (`gpu.subgroup_reduce`). Where
    a row is reduced once in a kernel, CTAs of a cluster need no barrier, which
    would fence all memory: an mbarrier of each counts the bytes that come
    (`count-arrivals=false` has the barrier there too), and orders nothing else. A
    barrier of the threads also stands where an element changes its owner: where
    another thread may touch what one has written, or write what one has read.

    Before:
    ```mlir
    comms.kernel @scale(%x: memref<64xf32>, %y: memref<64xf32>) {
      %c0 = arith.constant 0 : index
      %two = arith.constant dense<2.0> : tensor<64xf32>
      %tile = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
      %twice = arith.mulf %tile, %two : tensor<64xf32>
      %most = comms.row_reduce max %tile : tensor<64xf32> -> tensor<1xf32>
      %row = comms.broadcast_row %most : tensor<1xf32> -> tensor<64xf32>
      %less = arith.subf %twice, %row : tensor<64xf32>
      comms.tile_store %less, %y[%c0] : tensor<64xf32>, memref<64xf32>
      comms.return
    }
    ```
    After, canonicalized (`…`: the tree's last levels and the test for NaN):
    ```mlir
    comms.kernel @scale(%x: memref<64xf32>, %y: memref<64xf32>) {
      %lanes = comms.scratch : memref<64xf32>
      %twice = comms.scratch : memref<64xf32>
      scf.for %i = %c0 to %c64 step %c16 {
        %0 = vector.load %x[%i] : memref<64xf32>, vector<16xf32>
        %1 = arith.mulf %0, %two : vector<16xf32>
        vector.store %0, %lanes[%i] : memref<64xf32>, vector<16xf32>
        vector.store %1, %twice[%i] : memref<64xf32>, vector<16xf32>
      } {comms.tile}
      scf.for %level = %c0 to %c2 step %c1 {
        %0 = arith.shrui %c1, %level : index
        %1 = arith.addi %0, %c1 : index
        %end = arith.muli %1, %c16 : index
        scf.for %i = %c0 to %end step %c16 {
          %first = arith.addi %i, %i : index
          %second = arith.addi %first, %c16 : index
          %2 = vector.load %lanes[%first] : memref<64xf32>, vector<16xf32>
          %3 = vector.load %lanes[%second] : memref<64xf32>, vector<16xf32>
          %4 = vector.shuffle %2, %3 [0, 2, 4, …] : vector<16xf32>, vector<16xf32>
          %5 = vector.shuffle %2, %3 [1, 3, 5, …] : vector<16xf32>, vector<16xf32>
          %6 = arith.maximumf %4, %5 : vector<16xf32>
          vector.store %6, %lanes[%i] : memref<64xf32>, vector<16xf32>
        } {comms.tile}
        vector.store %least, %lanes[%end] : memref<64xf32>, vector<16xf32>
      } {comms.tile}
      …
      scf.for %i = %c0 to %c64 step %c16 {
        %0 = vector.load %twice[%i] : memref<64xf32>, vector<16xf32>
        %1 = vector.broadcast %most : f32 to vector<16xf32>
        %2 = arith.subf %0, %1 : vector<16xf32>
        …
        vector.store %3, %y[%i] : memref<64xf32>, vector<16xf32>
      } {comms.tile}
      comms.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::gpu::GPUDialect"];
  let options = [
    Option<"lanes", "lanes", "int64_t", "16", "Elements of a vector of one thread, at most 16; with `threads`, 16 bytes decide">,
    Option<"threads", "threads", "int64_t", "0", "Threads of a CTA, a power of two from 32 to 1024; 0: a block is one thread">,
    Option<"cluster", "cluster", "int64_t", "1", "CTAs of a block: a power of two up to 16">,
    Option<"countArrivals", "count-arrivals", "bool", "true", "Rows over a cluster wait for bytes that an mbarrier counts, not for a barrier">,
    Option<"target", "target", "std::string", "\"nvvm\"", "Kind of GPU that the threads are of">,
  ];
}

def StripFastMath : Pass<"comms-strip-fast-math", "::mlir::comms::KernelOp"> {
  let summary = "Drop flags that permit other bits";
  let description = [{
    Removes fast-math flags, promises that an integer does not overflow or a
    division is exact, alignments of accesses, and attributes that an op does not
    define. So every optimizer gives the kernel the same meaning, and bounds are
    proved of the arithmetic that runs. Ops of the index dialect, `affine.apply`,
    `affine.min` and `affine.max` become ops of arith, and loops that compare
    unsigned become signed ones, so that each operation has one meaning. A cast of `index` to fewer than 64
    bits becomes one to `i64` and `arith.trunci`, because MLIR's canonicalizer folds an
    `index` cast to any integer and back to the `index`. Functions of `math` that
    are expanded later become `comms.math`, because folders compute functions of
    constants with the host's libm. Integers become narrow floats through `f32`,
    and f8E4M3FN is added, multiplied and divided in `f32`; folders would compute
    in the type itself, where overflow gives a NaN.

    Before:
    ```mlir
    comms.kernel @again(%x: memref<1xf32>, %y: memref<1xf32>) {
      %c0 = arith.constant 0 : index
      %0 = memref.load %x[%c0] : memref<1xf32>
      %1 = arith.truncf %0 fastmath<contract> : f32 to bf16
      %2 = arith.extf %1 fastmath<contract> : bf16 to f32
      memref.store %2, %y[%c0] : memref<1xf32>
      comms.return
    }
    ```
    After:
    ```mlir
    comms.kernel @again(%x: memref<1xf32>, %y: memref<1xf32>) {
      %c0 = arith.constant 0 : index
      %0 = memref.load %x[%c0] : memref<1xf32>
      %1 = arith.truncf %0 : f32 to bf16
      %2 = arith.extf %1 : bf16 to f32
      memref.store %2, %y[%c0] : memref<1xf32>
      comms.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def LegalizeNumerics : Pass<"comms-legalize-numerics", "::mlir::comms::KernelOp"> {
  let summary = "Expand math and narrow conversions, so that every target gives the same bits";
  let description = [{
    Leaves only operations whose bits IEEE 754 or two's complement arithmetic
    fixes, so that no target, libm or optimizer decides them:

    - functions of `math`, and `comms.math`, become the expansions of
      `lowering/numerics`, which are right to 4 units in the last place of f32
      (`rsqrt` is 1 / sqrt); those that have none are refused, with a list of
      those that do; f64 has exact functions, `rsqrt` and `round`;
    - `sqrt` keeps its operand's NaN from deciding which one it gives; for the GPU
      `chip`, f32's `sqrt` and 1 / sqrt become the GPU's approximations and steps
      that round them rightly, without a branch;
    - `scf.index_switch`, which MLIR lowers to 32 bits, gets an argument and cases
      that fit them;
    - bf16, f16, f8E4M3FN and f8E5M2 are computed in f32 and rounded once for
      each operation; conversions of bf16 and fp8 are integer arithmetic, or what
      the GPU `chip` has for pairs, to nearest even, with canonical NaN,
      saturating to ±448 in f8E4M3FN;
    - float to integer saturates, NaN becomes 0; x / 0 is -1 and x rem 0 is x; the
      least number / -1 is itself; shifts by the width or more leave the sign;
    - `maxnumf` and `minnumf` order zeros by sign;
    - flags that `comms-strip-fast-math` removes are removed again, wherever they
      came from.

    Folders of the math dialect, which ask the host's libm, are not run.

    Before:
    ```mlir
    comms.kernel @narrow(%x: memref<16xf32>, %y: memref<16xbf16>) {
      %c0 = arith.constant 0 : index
      %0 = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
      %1 = math.rsqrt %0 fastmath<fast> : vector<16xf32>
      %2 = arith.truncf %1 : vector<16xf32> to vector<16xbf16>
      vector.store %2, %y[%c0] : memref<16xbf16>, vector<16xbf16>
      comms.return
    }
    ```
    After, canonicalized:
    ```mlir
    comms.kernel @narrow(%x: memref<16xf32>, %y: memref<16xbf16>) {
      %0 = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
      %1 = math.absf %0 : vector<16xf32>
      %2 = math.sqrt %1 : vector<16xf32>
      %3 = arith.cmpf ult, %0, %zeros : vector<16xf32>
      %4 = math.copysign %2, %0 : vector<16xf32>
      %5 = arith.select %3, %nans, %4 : vector<16xi1>, vector<16xf32>
      %6 = arith.divf %ones, %5 : vector<16xf32>
      %7 = arith.cmpf uno, %6, %6 : vector<16xf32>
      %8 = arith.bitcast %6 : vector<16xf32> to vector<16xi32>
      %9 = arith.select %7, %nan, %8 : vector<16xi1>, vector<16xi32>
      %10 = arith.shrui %9, %sixteen : vector<16xi32>
      %11 = arith.andi %10, %one : vector<16xi32>
      %12 = arith.addi %9, %half : vector<16xi32>
      %13 = arith.addi %12, %11 : vector<16xi32>
      %14 = arith.shrui %13, %sixteen : vector<16xi32>
      %15 = arith.trunci %14 : vector<16xi32> to vector<16xi16>
      %16 = arith.bitcast %15 : vector<16xi16> to vector<16xbf16>
      vector.store %16, %y[%c0] : memref<16xbf16>, vector<16xbf16>
      comms.return
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "Convert narrow floats, and take roots, by the instructions of this GPU, as sm_90; empty: by integer arithmetic, and as IEEE 754 has them">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def ConvertCommsToCPU : Pass<"convert-comms-to-cpu", "::mlir::ModuleOp"> {
  let summary = "Convert kernels to LLVM functions that the CPU world calls";
  let description = [{
    Converts every kernel to a function `void kernel(Context *)` in the LLVM
    dialect. Tiles must be vectors (`comms-distribute-tiles`) and
    shapes static. One function serves all ranks: the context (see
    `lowering/cpu/Abi.h`) says which rank, block and launch it is, and where the
    parts of each argument lie, that of rank r at `base + r * stride`. Ops that may
    wait or fail call a function `commsir_cpu_*` of the runtime, with the number
    of their source site; packets and poison are polled in the kernel first. Loops
    that are not marked `comms.tile` check in each iteration whether to stop. The
    attributes of the function describe the arguments, the sites and the scratch
    memory that a block needs.

    Before:

    ```mlir
    comms.kernel @fill(%x: !comms.window<16xf32>) attributes {ranks = 2 : i64} {
      %c0 = arith.constant 0 : index
      %ones = arith.constant dense<1.0> : vector<16xf32>
      %team = comms.team world
      %own = comms.local %x : !comms.window<16xf32> -> memref<16xf32>
      vector.store %ones, %own[%c0] : memref<16xf32>, vector<16xf32>
      comms.barrier %team block
      comms.return
    }
    ```

    After, canonicalized:

    ```mlir
    llvm.func @fill(%context: !llvm.ptr) attributes {
        comms.args = [{bytes = 4 : i64, element = "f32", kind = "window", name = "x", shape = array<i64: 16>} ],
        comms.arena_bytes = 0 : i64, comms.ranks = 2 : i64,
        comms.sites = [["comms.barrier", "fill.mlir:7:3", ""]]} {
      %zero = llvm.mlir.constant(0 : i64) : i64
      %one = llvm.mlir.constant(1 : i64) : i64
      %two = llvm.mlir.constant(2 : i64) : i64
      %site = llvm.mlir.constant(0 : i32) : i32
      %ones = llvm.mlir.constant(dense<1.000000e+00> : vector<16xf32>) : vector<16xf32>
      %rank = llvm.load %context : !llvm.ptr -> i64
      %args_at = llvm.getelementptr %context[48] : (!llvm.ptr) -> !llvm.ptr, i8
      %args = llvm.load %args_at : !llvm.ptr -> !llvm.ptr
      %base = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %stride_at = llvm.getelementptr %args[8] : (!llvm.ptr) -> !llvm.ptr, i8
      %stride = llvm.load %stride_at : !llvm.ptr -> i64
      %bytes = llvm.mul %rank, %stride : i64
      %own = llvm.getelementptr %base[%bytes] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      llvm.store %ones, %own {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
      %handle = llvm.call @commsir_cpu_arrive(%context, %site, %zero, %one, %two, %zero) : (!llvm.ptr, i32, i64, i64, i64, i64) -> i64
      llvm.call @commsir_cpu_barrier_wait(%context, %site, %handle) : (!llvm.ptr, i32, i64) -> ()
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CallNccl : Pass<"comms-call-nccl", "::mlir::ModuleOp"> {
  let summary = "Make operations that NCCL does calls into its device library";
  let description = [{
    Operations with `gin`, and waits on the cells that they change, become calls
    of the functions of `lowering/nvvm/device/NcclDevice.cu`; without
    `only-gin` also numbers of teams, parts of windows, their multicast
    addresses, and barriers, for comparison with generated code. The Spec has
    the table. The communicator, windows and first signals are further arguments
    of the kernel, whose attribute `comms.nccl` says what the communicator must
    have. NCCL's waits have neither a timeout nor an abort: a kernel that calls
    them can hang.

    Refused are what NCCL 2.28 cannot do (a get over GIN, a wait for one value,
    barriers of a grid or of a part of a team), and clusters.

    Before:

    ```mlir
    comms.kernel @tell(%cells: !comms.signal<4>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
      %c0 = arith.constant 0 : index
      %team = comms.team world
      comms.signal inc %cells[%c0] at %c0 of %team gin <> : !comms.signal<4>
      comms.return
    }
    ```

    After, canonicalized:

    ```mlir
    llvm.func @commsir_nccl_gin_signal_inc(!llvm.ptr, i32, i32, i32)
    comms.kernel @tell(%cells: !comms.signal<4>, %nccl.first.cells: i64 {comms.nccl}, %nccl.comm: i64 {comms.nccl})
        attributes {comms.nccl = {contexts = 1 : i64, signals = 4 : i64, …}, …} {
      …
      comms.fence acq_rel sys
      scf.if %first {
        llvm.call @commsir_nccl_gin_signal_inc(%comm, %c0_i32, %peer, %signal) : (!llvm.ptr, i32, i32, i32) -> ()
      }
      comms.return
    }
    ```
  }];
  let options = [
    Option<"onlyGin", "only-gin", "bool", "false", "Leave teams, windows and barriers to generated code">,
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ConvertCommsToNVVM : Pass<"convert-comms-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Convert kernels to LLVM functions for NVIDIA GPUs";
  let description = [{
    Makes of every kernel a GPU entry with one parameter, the struct that
    `lowering/nvvm/Abi.h` lays out, and of everything in it the LLVM and nvvm
    dialects. Ranks, blocks and shapes must be static and tiles vectors of one
    thread (`comms-distribute-tiles`). A block is a cluster of `cluster` CTAs of
    `threads` threads, from the kernel's attributes or these options.

    - Bases of all parts are parameters; the epoch is read at the start and told
      at the end, by the leader after a barrier of the threads.
    - Copies and clearing are spread over the threads; signals, waits and cells
      are the leader's, between barriers of the threads.
    - A barrier across ranks is a release store to each peer's cell and an
      acquire load of each own cell, in a hidden window that is added.
    - What is stored behind a wait for other CTAs' parts of a row, and needs
      nothing of the row, is stored before it.
    - Polls of one block of IR whose order no peer can tell are made together:
      all loads, then the checks. A poll that lasts asks, out of line, for the
      abort word and the clock, and leaves an error record.
    - What LLVM cannot say is inline PTX of one table (`lowering/nvvm/Ptx.inc`),
      always with side effects and a memory clobber; there is no atomicrmw.

    Operations that travel by GIN are refused (`comms-call-nccl` leaves none),
    and multimem instructions where the chip has none.

    Before:

    ```mlir
    comms.kernel @tell(%cells: !comms.signal<4>) attributes {ranks = 2 : i64, blocks = 1 : i64} {
      %c0 = arith.constant 0 : index
      %team = comms.team world
      comms.signal inc %cells[%c0] at %c0 of %team : !comms.signal<4>
      comms.return
    }
    ```

    After, canonicalized (threads=1):

    ```mlir
    llvm.func @tell(%params: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.struct<(array<8 x i64>)>, nvvm.grid_constant})
        attributes {comms.param_bytes = 64 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 1>} {
      …
      %cell_at = llvm.getelementptr %params[48] : (!llvm.ptr) -> !llvm.ptr, i8
      %cell = llvm.load %cell_at invariant {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr<1>
      llvm.inline_asm has_side_effects "red.release.sys.global.add.u64 [$0], $1;", "l,l,~{memory}" %cell, %one : (!llvm.ptr<1>, i64) -> ()
      …
      llvm.return
    }
    ```
  }];
  let options = [
    Option<"threads", "threads", "int64_t", "1", "Threads of a CTA, a power of two up to 1024, where the kernel does not say">,
    Option<"cluster", "cluster", "int64_t", "1", "CTAs of a block, a power of two up to 16, where the kernel does not say">,
    Option<"chip", "chip", "std::string", "\"sm_90\"", "sm_80, sm_90, sm_100 or later">,
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::mlir::affine::AffineDialect"];
}

def ConvertCommsToROCDL : Pass<"convert-comms-to-rocdl", "::mlir::ModuleOp"> {
  let summary = "Convert kernels to functions for AMD GPUs (a skeleton: nothing runs them)";
  let description = [{
    Makes of every kernel an `amdgpu_kernel` function that takes the address of
    the context of `lowering/rocdl/Abi.h`, and of its windows, plain memory,
    scalars, threads and barriers of the world the LLVM and rocdl dialects. It
    is there to hold the seam between targets: other ops are refused by name,
    and there is no runtime. docs/AddATarget.md says what a target adds.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"gfx942\"", "Processor, as LLVM names it">,
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::ROCDL::ROCDLDialect", "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::mlir::affine::AffineDialect"];
}

def UnrollRanks : Pass<"comms-unroll-ranks", "::mlir::comms::KernelOp"> {
  let summary = "Unroll loops over ranks and tiles, and clear slots behind the waits";
  let description = [{
    Loops of at most `limit` turns with constant bounds that reach peers, and
    `comms.for_peers` of a team of that many ranks, become straight code: what
    goes to every peer is computed once and stays in registers, and polls of all
    peers can be in flight together. So do loops over a block's own tiles, where
    every block has as many of them: up to eight turns wholly, more by two or four
    as far as the loads of a turn are few. A `comms.poison_fill` of slots that nobody
    waits for in this launch (the unit attribute `comms.stale` says so) moves down
    to the next synchronization, or the end, of its block of IR: behind what is
    waited for, stored and sent. Branches on constants are taken.

    Before:

    ```mlir
    comms.kernel @push(%x: memref<8xf32>, %w: !comms.window<8xf32>) attributes {ranks = 2 : i64} {
      %c0 = arith.constant 0 : index
      %team = comms.team world
      %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
      comms.for_peers %team as %peer {
        %part = comms.peer %w at %peer of %team : !comms.window<8xf32> -> memref<8xf32>
        comms.tile_store %tile, %part[%c0] : tensor<8xf32>, memref<8xf32>
      }
      comms.return
    }
    ```

    After, canonicalized:

    ```mlir
    comms.kernel @push(%x: memref<8xf32>, %w: !comms.window<8xf32>) attributes {ranks = 2 : i64} {
      %team = comms.team world
      %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
      %rank = comms.rank %team
      %next = arith.addi %rank, %c1 : index
      %peer = arith.remui %next, %c2 : index
      %part = comms.peer %w at %peer of %team : !comms.window<8xf32> -> memref<8xf32>
      comms.tile_store %tile, %part[%c0] : tensor<8xf32>, memref<8xf32>
      comms.return
    }
    ```
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "16", "Most turns of a loop that is unrolled">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // COMMSIR_LOWERING_PASSES_TD
