//===- Permutation.cpp - At step k every rank turns to the k-th after it --===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For large messages. An exchange of all with all goes in ranks - 1 steps: at
// step k rank r writes to rank r + k, so every link carries one stream in each
// direction, and a barrier of block b of all ranks after each step keeps it so.
// Where all write to all at once a host of four H200 moves 290 GB/s a GPU, in
// step 360. That barrier orders nothing where the exchange ends in one that
// does; it may be relaxed, so that nobody waits for stores on their way
// (`comms.step_fence`).
//
// What is final is written straight into the receiver's output where that is a
// window, and crosses memory once: the parts of all_gather, all_to_all and
// broadcast, and the sums of all_reduce. What is still to be summed goes
// through slots of a channel, and through a channel goes everything where an
// output is no window, or where the receiver's own arguments take part.
//
// Direct writes are ordered by barriers:
//   - a rank writes into a peer's output behind a barrier that the peer has
//     joined in this launch: whoever read the output before, has read it, and
//     what the peer's input held there, if input and output are one array, has
//     been sent (all_to_all sends until its last step, so it does not write
//     directly into an input);
//   - the collective ends in a barrier, behind which all of the own output has
//     been written.
//
// Slots are bounded: a message that is larger goes in rounds, each of which
// uses all slots. A round's sends come behind the barrier that ends the round
// before it, before which all have received. That takes a protocol whose
// channels can be reused; over the others every tile has a slot.
//
// What came through slots is copied out of them while links are idle, or in the
// next step (`comms.late_copies`): see Reductions.cpp.
//
// The programs are in lowering/collectives/permutation.
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/permutation/Exchange.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::permutation;

namespace {
/// Cost of an exchange: hops over channels, barriers of all ranks (including
/// those between steps), and how many copies of a part cross a link through
/// channels and straight into outputs.
struct Load {
  double hops = 0, barriers = 0, copies = 0, direct = 0;
  bool inStep = false;
};

struct Row {
  StringRef kind;
  void (*expand)(CollectiveBuilder &);
  Load (*load)(const CollectiveInfo &);
};
} // namespace

/// Whether each rank has one peer at a time: there is one, or barriers see to
/// it.
static bool isInStep(const CollectiveInfo &problem, double parts) {
  return problem.ranks == 2 || usesSteps(problem, parts);
}

/// Barriers between the steps of one exchange of all with all.
static double countSteps(const CollectiveInfo &problem, double parts) {
  return problem.ranks > 2 && usesSteps(problem, parts)
             ? double(problem.ranks - 2)
             : 0;
}

static Load loadOfAllReduce(const CollectiveInfo &problem) {
  double ranks = double(problem.ranks), steps = countSteps(problem, ranks);
  bool inStep = isInStep(problem, ranks);
  double copies = (ranks - 1) / ranks;
  if (!problem.storesToPeers())
    return {2, steps, 2 * copies, 0, inStep};
  return {1, 2 + 2 * steps, copies, copies, inStep};
}

static Load loadOfReduceScatter(const CollectiveInfo &problem) {
  return {1, countSteps(problem, 1), double(problem.ranks - 1), 0,
          isInStep(problem, 1)};
}

static Load loadOfCopies(const CollectiveInfo &problem) {
  double copies = double(problem.ranks - 1), steps = countSteps(problem, 1);
  if (!problem.storesToPeers())
    return {1, steps, copies, 0, isInStep(problem, 1)};
  return {0, 2 + steps, 0, copies, isInStep(problem, 1)};
}

static Load loadOfBroadcast(const CollectiveInfo &problem) {
  double ranks = double(problem.ranks);
  if (isSmallBroadcast(problem))
    return {0, 2, 0, ranks - 1, ranks == 2};
  double copies = (ranks - 1) / ranks;
  if (!isPipelined(problem))
    return {1, 2, copies, copies, false};
  double chunks = double(countChunks(problem));
  return {0, 2 + chunks, 0, 1 + 1 / chunks, true};
}

static constexpr Row rows[] = {
    {"all_reduce", expandAllReduce, loadOfAllReduce},
    {"reduce_scatter", expandReduceScatter, loadOfReduceScatter},
    {"all_gather", expandCopies, loadOfCopies},
    {"all_to_all", expandCopies, loadOfCopies},
    {"broadcast", expandBroadcast, loadOfBroadcast},
};

static const Row *findRow(const CollectiveInfo &problem) {
  for (const Row &row : rows)
    if (row.kind == problem.kind->name)
      return &row;
  return nullptr;
}

static bool supports(const CollectiveInfo &problem, std::string &why) {
  if (problem.isSized()) {
    why = CollectiveInfo::whyNotSized;
    return false;
  }
  if (!findRow(problem)) {
    why = "it implements all_reduce, reduce_scatter, all_gather, all_to_all "
          "and broadcast";
    return false;
  }
  if (problem.kind->direction == Direction::RootToAll &&
      !problem.storesToPeers()) {
    why = "a broadcast in permutations writes into the outputs of others: give "
          "it windows, and no args";
    return false;
  }
  return true;
}

static double cost(const CollectiveInfo &problem) {
  Load load = findRow(problem)->load(problem);
  // What is written into outputs is written as it is.
  double copies = load.copies + load.direct / problem.overhead;
  return load.hops * problem.hop + load.barriers * problem.barrier +
         problem.transfer(copies, load.inStep);
}

static LogicalResult expand(CollectiveBuilder &b) {
  findRow(b.problem())->expand(b);
  return success();
}

static int64_t pieces(const CollectiveInfo &problem) {
  return problem.kind->movement == Movement::Same ? problem.ranks : 1;
}

/// Data that is written straight into outputs needs no wait.
static double waiting(const CollectiveInfo &problem) {
  bool whole = problem.kind->movement == Movement::Same;
  bool direct = whole || !problem.kind->reduces;
  if (direct && problem.storesToPeers())
    return 0;
  return whole ? problem.partBytes() : problem.allBytes();
}

namespace mlir::comms {
const Algorithm &getPermutationAlgorithm();
} // namespace mlir::comms

const Algorithm &mlir::comms::getPermutationAlgorithm() {
  static constexpr Algorithm algorithm = {
      "permutation",
      "at step k every rank writes to the k-th after it, all in step",
      supports,
      cost,
      expand,
      pieces,
      /*dealsTiles=*/false,
      waiting,
      /*isChain=*/false,
      /*keepsStep=*/true};
  return algorithm;
}
