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
  let summary = "Reject ops, types and attributes that kernels may not contain";
  let description = [{
    Kernels may come from untrusted authors, and run in the process that compiles
    them. The pass accepts only what later passes check. It reports an error, with
    the source line, for:

    - every op, type and attribute in a kernel that is not on the list in
      `lowering/analysis/UncheckedOps.cpp` (docs/Spec.md, "What a kernel holds");
    - everything outside the kernels, except functions of the func dialect, which
      no kernel calls and the pass removes;
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
    Replaces each collective by the program of an algorithm: sends and receives of
    tiles over channels, with the regions `produce` and `consume` around them. If
    a region uses a row as a whole, or the arrays differ in row length, a tile is
    a row. Otherwise the pass flattens the arrays, splits them into tiles of a
    size that keeps every rank busy, and changes the types of the regions to
    match.

    Algorithm and protocol come from the options, otherwise from the op, otherwise
    from the cost model. The pass reports the choice as a remark and in the
    kernel's attribute `comms.choices`. Each algorithm is one file in
    `lowering/collectives/algorithm`; `docs/AddAnAlgorithm.md` shows how to add
    one.

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
    Option<"blocks", "blocks", "int64_t", "0", "Blocks per rank; 0: the kernel's own `blocks`, otherwise known only at run time">,
    Option<"algorithm", "algorithm", "std::string", "\"\"", "Algorithm for all collectives; empty: each op's own, else the cheapest">,
    Option<"protocol", "protocol", "std::string", "\"\"", "Protocol for all channels; empty: each op's own, else the cheapest">,
    Option<"tileSize", "tile-size", "int64_t", "0", "Elements of a flat tile, rounded up to the protocol's unit; 0: the pass chooses">,
    Option<"threads", "threads", "int64_t", "0", "Threads of a CTA: a flat tile is one vector per thread of a block; 0: not for a GPU">,
    Option<"cluster", "cluster", "int64_t", "1", "CTAs of a block">,
  ];
}

def CheckSync : Pass<"comms-check-sync", "::mlir::comms::KernelOp"> {
  let summary = "Prove that a kernel cannot deadlock or race, and that accesses are in bounds";
  let description = [{
    Executes the kernel symbolically on every rank and block for several launches:
    integers are known, data are not. It reports an error if
    - a wait is never satisfied, or ranks wait for each other in a cycle
      (deadlock);
    - a participant does not reach a barrier;
    - a tile is sent and not received, or received and not sent, or a slot carries
      two tiles in a launch;
    - an access, peer, slot or cell is out of range;
    - ranks race: one writes shared memory while another may access it, in the
      same launch or an earlier one, or a signal of an earlier launch satisfies a
      wait.

    If synchronization depends on data, the verdict is "not decided". Errors name
    the ranks and blocks that wait, the observed and expected values, the missing
    peer, and a fix. The pass does not change the kernel, which must not contain
    collectives: expand them first. `docs/Checker.md` lists what the pass proves
    and what it does not.

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

    It reports:

    ```
    error: deadlock: rank 0, block 0 waits for signal s[0] >= 1; observed 0 (launch 1)
    note: no rank has signaled it in this launch
    note: rank 1 block 0 has ended launch 1 without it
    ```
  }];
  let options = [
    Option<"ranks", "ranks", "int64_t", "0", "Number of ranks; 0: the kernel's own `ranks`">,
    Option<"blocks", "blocks", "int64_t", "0", "Blocks per rank; 0: the kernel's own, otherwise `default-blocks`, or 1 if all blocks do the same">,
    Option<"defaultBlocks", "default-blocks", "int64_t", "2", "Blocks per rank if nothing sets them and the kernel depends on the block number; roles may need more. Pipelines use 1, as a run does">,
    Option<"launches", "launches", "int64_t", "0", "Launches to follow; 0: 3, or as many as the decisions that depend on comms.epoch need to repeat, at most 64">,
    Option<"runLaunches", "run-launches", "int64_t", "0", "Launches of the planned run: if `launches` is 0, the pass follows at least as many, at most 64">,
    Option<"maxEvents", "max-events", "int64_t", "0", "Limit on events; 0: about a third of a second. Beyond it the pass follows fewer ranks and reports that in a remark">,
    Option<"requireProof", "require-proof", "bool", "false", "Report an error if the verdict is not \"proven\"">,
    Option<"tell", "tell", "bool", "false", "Add the contents of arrays after the first launch to the verdict">,
  ];
}

def CheckExpansion : Pass<"comms-check-expansion", "::mlir::ModuleOp"> {
  let summary = "Prove that expanded collectives compute the right result";
  let description = [{
    Expands the collectives of a copy of each kernel, executes it symbolically on
    all ranks for three launches, and compares the term of each element with the
    definition of the collectives: each contribution exactly once, on every rank,
    and in the same order on all ranks that hold the same element. The pass does
    not change the kernel.

    The pass emits a remark if the kernel is proven, a warning with the reason if
    it is not decided, and an error if there is a difference. It decides kernels
    that contain only collectives over all ranks.

    Before and after (the pass changes nothing):

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
    Option<"lowerChannels", "lower-channels", "bool", "false", "Check the kernel after comms-lower-channels instead of before it">,
  ];
}

def LowerChannels : Pass<"comms-lower-channels", "::mlir::comms::KernelOp"> {
  let summary = "Lower channels to memory operations, as their protocols define";
  let description = [{
    Gives every channel memory: a window that becomes the kernel's last argument.
    Then lowers sends and receives as the channel's protocol defines. The new
    argument has the attribute `comms.hidden`: the runtime allocates it once,
    initializes it as `comms.init` says, and keeps it between launches. Values
    that are constant within a launch (the current buffer, the rank's own row, the
    flag) are computed once, where the channel op was. No op on a channel remains.

    With the option `shared`, the kernels of a group share channel memory. The
    kernel gets the attribute `comms.shared_channels`. The new argument is then
    this launch's buffer, and `comms.shared_slots` names the contents of its slots
    ("data", "packets", "lines", "poison"). Protocols do not clear slots; the next
    launch's prologue does.

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
    Option<"shared", "shared", "bool", "false", "The kernels of a group share the memory of channels">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def EliminateBarriers : Pass<"comms-eliminate-barriers", "::mlir::comms::KernelOp"> {
  let summary = "Remove barriers that another barrier makes redundant";
  let description = [{
    Two barriers of the same team and extent in one IR block are redundant if
    nothing between them needs an order: no other synchronization, and no access
    to memory that another block can access (parts of windows, and the rank's own
    memory if the rank has several blocks). The pass then removes the second, and
    gives the first the order of both. It keeps the last barrier of a kernel. It
    also keeps a barrier under a condition on the rank or on data, because another
    rank may pair it with a different op.

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
    Inserts a `comms.record_access` before every access to memory that other ranks
    can access, and a `comms.record_sync` before every op that synchronizes. The
    latter gives the op and, if it has them, its cell and peer, or its first
    element. If an op does both (a packet, a put with a signal), its
    `comms.record_sync` comes first.

    With `everything`, for a run with weak memory, the pass also records accesses
    to this rank's own memory (and to the block's, if a later copy reads it), to
    each part of a multimem view, and to windows that the host uses between
    launches. `comms.record_sync` then also gives the op's order, scope, proxy,
    GIN context and assumption.

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
           "Record all accesses that a run with weak memory needs">
  ];
}

def AssertBounds : Pass<"comms-assert-bounds", "::mlir::comms::KernelOp"> {
  let summary = "Insert run-time checks for offsets that are not provably in bounds";
  let description = [{
    Examines every memory access with an offset, and every cell of a signal or
    counter. If the access is provably out of bounds, the pass reports an error.
    If it is provably in bounds, the pass does nothing. Otherwise it inserts a
    `comms.check_bounds` before the access. Proofs use value ranges, loop bounds,
    minima and maxima, enclosing conditions, and terms that cancel between an
    offset and a count. Expanded collectives need no checks.

    Like comms-check-ops, the pass rejects ops that no check can guard: ops of the
    LLVM dialect, calls, `cf.assert`, views with offsets that are not constant,
    gathers, and memory that a kernel would have to free. It checks vector loads
    and stores only in one-dimensional memory. If a memory's type lacks its shape,
    the pass compares views and copies with the memory itself.

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
    Turns tiles, which are tensors before this pass, into loops over vectors of at
    most `lanes` elements. Consecutive tile ops of the same length share a loop,
    including loads and stores, unless an aliasing access, another block or
    another rank could observe that they run element by element:

    - two accesses, at least one a write, share a loop only if they cannot overlap
      (distinct kernel arguments, parts of distinct constant peers, disjoint
      constant ranges) or access the same element in each step (same memory, same
      offset);
    - packets and poison keep their order. Within a loop, no store that peers can
      see follows a wait, no wait follows such a store, and no store of packets or
      poison follows a plain store that peers can see.

    Full vectors have no mask. The remainder of a tile is one shorter vector or,
    if an op has `valid`, a masked loop. A one-element tile becomes a scalar. A
    tile that several loops use, or that `scf.for` or `scf.if` carries, is stored
    in `comms.scratch` memory, which is reused once the tile is dead. Constants,
    `comms.splat`, `comms.broadcast_row` and `comms.iota` are recomputed at each
    use. The pass first unrolls loops that reduce tiles of up to 16 peers, so that
    the sum stays in registers. Row reductions use the tree of docs/Spec.md
    ("Bits") in loops, so the code size does not depend on the row. Stores write
    NaNs that arithmetic produced in canonical form.

    For a line of packets (`store128_whole`), either all vectors of the line run
    or none. A mask excludes the elements beyond `valid`, up to the end of the
    line; with threads, whole warps run. `lanes` is then at least 8, and each
    thread moves 16 bytes of a line, or of each of several lines.

    The new loops have the attribute `comms.tile`. The pass fails if a tensor, or
    a vector of more than 16 elements, would remain.

    **Threads.** With `threads`, a block is `cluster` CTAs of that many threads,
    and the kernel gets the attributes `comms.threads` and `comms.cluster`. For
    tiles of one length, a vector has as many lanes as 16 bytes hold of the
    narrowest memory element. It has fewer if threads would otherwise have no
    work: at least as many as 16 bytes hold of the widest element or, in a block
    of one warp, as 32 bits hold of the narrowest, so that no thread branches. A
    thread processes one vector per trip, the same one in every stage. Up to 16
    trips are unrolled. Values that several stages use stay in registers if all
    threads run every trip, otherwise in the thread's memory (`memref.alloca`).
    Only the last vector of a tail has a mask. In a stage, loads come first, then
    all polls together. All threads compute one-element tiles, and one thread
    stores them, after the stores of longer tiles that may come before; otherwise
    that thread's warp would store its part late. In a row reduction, each warp
    writes one value to the `#comms.space<shared>` memory of every CTA (by
    shuffles, and stores through `mapa`). After one barrier, all threads combine
    these values. In loops, two halves of the memory alternate. Integers, and
    floats in a minimum or maximum, are converted to order-preserving i32 values,
    which a warp reduces in one step (`gpu.subgroup_reduce`). If a kernel reduces
    a row only once, the CTAs of a cluster need no barrier, which would fence all
    memory: an mbarrier per CTA counts the arriving bytes and orders nothing else.
    `count-arrivals=false` uses the barrier here, too. The pass also inserts a
    thread barrier where an element changes its owner: another thread may access
    an element after the owner's write, or write it after the owner's read.

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
    After, canonicalized (`…` omits the tree's last levels and the NaN test):
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
    Option<"lanes", "lanes", "int64_t", "16", "Elements of a thread's vector, at most 16; with `threads`, vectors have up to 16 bytes">,
    Option<"threads", "threads", "int64_t", "0", "Threads of a CTA, a power of 2 from 32 to 1024; 0: a block is one thread">,
    Option<"cluster", "cluster", "int64_t", "1", "CTAs of a block, a power of 2 up to 16">,
    Option<"countArrivals", "count-arrivals", "bool", "true", "Row reductions in a cluster wait for an mbarrier's byte count instead of a barrier">,
    Option<"target", "target", "std::string", "\"nvvm\"", "Target whose threads run the loops">,
  ];
}

def StripFastMath : Pass<"comms-strip-fast-math", "::mlir::comms::KernelOp"> {
  let summary = "Remove flags that let optimizers change result bits";
  let description = [{
    Removes fast-math flags, flags that promise no integer overflow or an exact
    division, alignments of accesses, and attributes that an op does not define.
    Then every optimizer gives the kernel the same meaning, and bounds proofs hold
    for the arithmetic that runs. Ops of the index dialect, `affine.apply`,
    `affine.min` and `affine.max` become arith ops, and loops with unsigned
    comparison become signed ones, so that each operation has one form. A cast of
    `index` to fewer than 64 bits becomes one to `i64` and `arith.trunci`, because
    MLIR's canonicalizer folds an `index` cast to any integer and back to the
    `index`. `math` ops that a later pass expands become `comms.math`, because
    folders evaluate them on constants with the host's libm. Conversions of
    integers to narrow floats go through `f32`, and f8E4M3FN is added, multiplied
    and divided in `f32`. Folders would compute in the narrow type, where overflow
    gives a NaN.

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
    Leaves only operations whose result bits IEEE 754 or two's complement
    arithmetic defines, so that no target, libm or optimizer can change them:

    - `math` ops and `comms.math` become the expansions in `lowering/numerics`,
      with an error of at most 4 units in the last place of f32 (`rsqrt` is
      1 / sqrt). For a function without an expansion, the pass reports an error
      that lists the supported ones. In f64 it supports exact functions, `rsqrt`
      and `round`.
    - The NaN that `sqrt` returns does not depend on its operand's NaN. For the
      GPU `chip`, `sqrt` and 1 / sqrt in f32 become the GPU's approximations and
      branch-free steps that round them correctly.
    - `scf.index_switch`, which MLIR lowers to 32 bits, gets an argument and cases
      that fit in 32 bits.
    - Operations in bf16, f16, f8E4M3FN and f8E5M2 compute in f32 and round once
      each. Conversions to bf16 and fp8 use integer arithmetic, or the paired
      conversions of the GPU `chip`. They round to nearest even, return canonical
      NaNs, and saturate to ±448 in f8E4M3FN.
    - Conversions from float to integer saturate, and NaN becomes 0. x / 0 is -1
      and x rem 0 is x. The least integer divided by -1 is itself. Shifts by the
      width or more leave only the sign.
    - `maxnumf` and `minnumf` order zeros by their sign.
    - The pass again removes the flags that `comms-strip-fast-math` removes.

    The pass does not run folders of the math dialect, because they call the
    host's libm.

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
           "GPU whose instructions convert narrow floats and compute roots, such as sm_90; empty: integer arithmetic, and IEEE 754 roots">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def ConvertCommsToCPU : Pass<"convert-comms-to-cpu", "::mlir::ModuleOp"> {
  let summary = "Convert kernels to LLVM functions that the CPU world calls";
  let description = [{
    Converts every kernel to a function `void kernel(Context *)` in the LLVM
    dialect. Tiles must be vectors (`comms-distribute-tiles`) and shapes static.
    One function serves all ranks. The context (`lowering/cpu/Abi.h`) holds the
    numbers of the rank, block and launch, and the addresses of each argument's
    parts: rank r's part is at `base + r * stride`. Ops that may wait or fail call
    a runtime function `commsir_cpu_*` with the number of their source location.
    For packets and poison, the kernel polls before it calls. Loops without
    `comms.tile` check in each iteration whether to stop. The function's
    attributes describe the arguments, the source locations, and the scratch
    memory per block.

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
        comms.args = [{bytes = 4 : i64, element = "f32", kind = "window", name = "x", shape = array<i64: 16>, written} ],
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
  let summary = "Lower operations to calls of NCCL's device library";
  let description = [{
    Operations with `gin`, and waits for the cells that they change, become calls
    of functions in `lowering/nvvm/device/NcclDevice.cu`. Without `only-gin`, so
    do ranks and sizes of teams, parts of windows, their multicast addresses, and
    barriers, which allows a comparison with generated code. The Spec has the
    table. The communicator, windows and first signals become additional arguments
    of the kernel, and its attribute `comms.nccl` lists what the communicator must
    provide. NCCL's waits have neither a timeout nor an abort: a kernel that calls
    them can hang.

    The pass reports an error for operations that NCCL 2.28 does not have (a get
    over GIN, a wait with `eq`, barriers of a grid or of a part of a team), and
    for clusters.

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
    Converts every kernel to a GPU entry function in the LLVM and nvvm dialects.
    Its one parameter is the struct that `lowering/nvvm/Abi.h` defines. Ranks,
    blocks and shapes must be static, and tiles must be vectors of one thread
    (`comms-distribute-tiles`). A block is a cluster of `cluster` CTAs of
    `threads` threads, from the kernel's attributes or these options.

    - The addresses of all parts are parameters. The kernel computes the epoch at
      the start. At the end, after a barrier of the threads, the leader stores it
      for the next launch.
    - All threads share copies and clearing. Only the leader executes signals,
      waits and accesses to cells, between barriers of the threads.
    - A barrier across ranks is a release store to a cell of each peer and acquire
      loads of the rank's own cells. The pass adds a hidden window for these
      cells.
    - A store that follows a wait for other CTAs' parts of a row, and does not
      depend on the row, moves before the wait.
    - Polls in one IR block whose order no peer can observe are merged: first all
      loads, then the checks. A long poll checks the abort word and the clock in
      out-of-line code, and writes an error record.
    - Instructions that LLVM cannot express are inline PTX from one table
      (`lowering/nvvm/Ptx.inc`), always with side effects and a memory clobber.
      The pass emits no atomicrmw.

    The pass reports an error for operations over GIN (run `comms-call-nccl`
    first), and for multimem ops if the chip does not have them.

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
    Option<"threads", "threads", "int64_t", "1", "Threads of a CTA, a power of 2 up to 1024, if the kernel does not set them">,
    Option<"cluster", "cluster", "int64_t", "1", "CTAs of a block, a power of 2 up to 16, if the kernel does not set them">,
    Option<"chip", "chip", "std::string", "\"sm_90\"", "sm_80, sm_90, sm_100 or later">,
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::mlir::affine::AffineDialect"];
}

def ConvertCommsToROCDL : Pass<"convert-comms-to-rocdl", "::mlir::ModuleOp"> {
  let summary = "Convert kernels to functions for AMD GPUs (a skeleton: nothing runs them)";
  let description = [{
    Converts every kernel to an `amdgpu_kernel` function in the LLVM and rocdl
    dialects, which takes the address of the context that `lowering/rocdl/Abi.h`
    defines. The pass supports windows, plain memory, scalars, threads and
    barriers of the world, and reports an error for other ops. It exists to test
    the interface between targets; there is no runtime. docs/AddATarget.md lists
    what a target adds.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"gfx942\"", "LLVM's name of the processor">,
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::ROCDL::ROCDLDialect", "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::mlir::affine::AffineDialect"];
}

def UnrollRanks : Pass<"comms-unroll-ranks", "::mlir::comms::KernelOp"> {
  let summary = "Unroll loops over ranks and tiles, and move clearing of slots after waits";
  let description = [{
    Fully unrolls loops that access peers and have constant bounds and at most
    `limit` iterations, and `comms.for_peers` of a team of at most that many
    ranks. Then values for all peers are computed once and stay in registers, and
    polls of all peers can be in flight together. The pass also unrolls loops over
    a block's own tiles if every block has the same number of tiles: fully up to 8
    iterations, otherwise by 2 or 4 if an iteration has few loads. A loop with a
    `comms.contract` stays a loop. A `comms.poison_fill` with the attribute
    `comms.stale` clears slots that no rank waits for in this launch. The pass
    moves it down to the next synchronization, or the end, of its IR block, so
    that waits, stores and sends come first. It folds branches on constants.

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
    Option<"limit", "limit", "int64_t", "16", "Largest number of iterations of a loop to unroll">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // COMMSIR_LOWERING_PASSES_TD
