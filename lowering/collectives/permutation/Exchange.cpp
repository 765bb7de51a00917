//===- Exchange.cpp - Parts, rounds and steps of a permutation ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/permutation/Exchange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::permutation;

//===----------------------------------------------------------------------===//
// Tiles, rounds and steps
//===----------------------------------------------------------------------===//

TileAssignment permutation::assignTiles(CollectiveBuilder &b, int64_t pieces,
                                        int64_t rows) {
  const CollectiveInfo &problem = b.problem();
  TileAssignment assignment;
  assignment.pieces = pieces;
  assignment.tiles = llvm::divideCeil(problem.tiles, pieces);
  assignment.slots = assignment.tiles;
  if (!b.canReuseSlots())
    return assignment;
  int64_t bytes = 0;
  for (const WireTile &wire : problem.wires)
    bytes += wire.length *
             llvm::divideCeil(wire.elementType.getIntOrFloatBitWidth(), 8);
  int64_t most = std::max<int64_t>(
      problem.roundBytes / std::max<int64_t>(bytes, 1) / rows, 1);
  assignment.rounds = llvm::divideCeil(assignment.tiles, most);
  assignment.slots = llvm::divideCeil(assignment.tiles, assignment.rounds);
  return assignment;
}

TileAssignment permutation::assignOneRound(CollectiveBuilder &b) {
  TileAssignment assignment;
  assignment.tiles = assignment.slots = b.problem().tiles;
  return assignment;
}

Value Exchange::firstTile(Value part, Value round) {
  Value first = b.mul(round, b.constant(assignment.slots));
  if (assignment.pieces == 1)
    return first;
  return b.add(b.mul(part, b.constant(assignment.tiles)), first);
}

Value Exchange::exists(Value part, Value round, Value slot) {
  Value result;
  auto require = [&](Value isInside) {
    result = result ? b.both(result, isInside) : isInside;
  };
  if (roundsExceed())
    require(b.less(b.add(b.mul(round, b.constant(assignment.slots)), slot),
                   b.constant(assignment.tiles)));
  if (partsExceed(b.problem().tiles))
    require(b.less(tileOf(part, round, slot), b.constant(b.problem().tiles)));
  return result;
}

/// Combines numbers that may be negative, and folds constants.
template <typename OpT>
static Value combine(CollectiveBuilder &b, Value lhs, Value rhs) {
  return b.builder().createOrFold<OpT>(b.loc(), lhs, rhs);
}

Value Exchange::countWhole(ArrayRef<Job> jobs) {
  Value count = b.constant(assignment.slots);
  auto limit = [&](int64_t tiles, Value first) {
    Value left = combine<arith::SubIOp>(b, b.constant(tiles), first);
    count = combine<arith::MinSIOp>(b, count, left);
  };
  int64_t whole = b.problem().countWholeTiles();
  for (const Job &job : jobs) {
    if (roundsExceed())
      limit(assignment.tiles, b.mul(job.round, b.constant(assignment.slots)));
    if (partsExceed(whole))
      limit(whole, firstTile(job.part, job.round));
  }
  return count;
}

void Exchange::forSlots(Value first, function_ref<void(Value)> body) {
  b.loop(first, b.constant(assignment.slots), b.blocks(), {},
         [&](Value slot, ValueRange) {
           body(slot);
           return Tiles();
         });
}

void Exchange::runJobs(ArrayRef<Job> jobs, ValueRange slots) {
  struct BegunSlots {
    const Job *job;
    Value slot, tile;
    Tiles loaded;
  };
  SmallVector<BegunSlots> begun;
  for (Value slot : slots)
    for (const Job &job : jobs)
      begun.push_back({&job, slot, tileOf(job.part, job.round, slot), {}});
  for (BegunSlots &one : begun)
    one.loaded = one.job->load(one.slot, one.tile);
  for (BegunSlots &one : begun)
    one.job->store(one.slot, one.tile, one.loaded);
}

void Exchange::forTiles(ArrayRef<Job> jobs) {
  int64_t batch = batchOf(jobs);
  Value rest = batch > 1 ? forBatches(jobs, batch) : b.block();
  if (!rest)
    return;
  forSlots(rest, [&](Value slot) {
    if (!hasEmptySlots())
      return runJobs(jobs, slot);
    for (const Job &job : jobs)
      b.ifThen(exists(job.part, job.round, slot), [&] { runJobs(job, slot); });
  });
}

int64_t Exchange::batchOf(ArrayRef<Job> jobs) const {
  if (!b.problem().flat) // A row is many vectors of a thread.
    return 1;
  int64_t loads = 0;
  for (const Job &job : jobs)
    loads += job.loads * static_cast<int64_t>(b.problem().wires.size());
  int64_t most = b.problem().batchLoads / std::max<int64_t>(loads, 1);
  std::optional<int64_t> blocks = b.constantBlocks();
  if (!blocks)
    return most;
  // Of what each block has at least; as it divides that, if it can be.
  int64_t own = assignment.slots / *blocks;
  most = std::min(most, own);
  for (int64_t batch = most; batch > most / 2; --batch)
    if (own % batch == 0)
      return batch;
  return most;
}

Value Exchange::forBatches(ArrayRef<Job> jobs, int64_t batch) {
  Value count = countWhole(jobs), blocks = b.blocks();
  Value stride = b.mul(blocks, b.constant(batch));
  Value others = b.mul(blocks, b.constant(batch - 1));
  b.loop(b.block(), combine<arith::SubIOp>(b, count, others), stride, {},
         [&](Value slot, ValueRange) {
           Tiles slots;
           for (int64_t i = 0; i < batch; ++i)
             slots.push_back(b.add(slot, b.mul(blocks, b.constant(i))));
           b.withWholeTiles([&] { runJobs(jobs, slots); });
           return Tiles();
         });
  std::optional<int64_t> known = b.constantBlocks();
  if (known && !hasPartSlots() && assignment.slots % (*known * batch) == 0)
    return {};
  // Behind the batches that this block's slots of `count` have filled.
  Value first = combine<arith::MaxSIOp>(b, count, b.constant(0));
  Value own = b.div(
      b.add(first, b.sub(blocks, b.add(b.block(), b.constant(1)))), blocks);
  return b.add(b.block(), b.mul(b.div(own, b.constant(batch)), stride));
}

/// More tiles than a thread has registers for.
static constexpr int64_t mostHeld = 32;

bool Exchange::holdsTiles() const {
  std::optional<int64_t> blocks = b.constantBlocks();
  return blocks && *blocks > 0 && assignment.rounds == 1 &&
         assignment.slots % *blocks == 0 && !partsExceed(b.problem().tiles) &&
         assignment.slots / *blocks <=
             std::min(b.problem().heldTiles, mostHeld);
}

SmallVector<HeldTile> Exchange::hold(const Job &get) {
  SmallVector<HeldTile> held;
  for (int64_t slot = 0; slot < assignment.slots; slot += *b.constantBlocks()) {
    Value own = b.add(b.block(), b.constant(slot));
    Value tile = tileOf(get.part, get.round, own);
    held.push_back({own, tile, get.load(own, tile)});
  }
  return held;
}

void Exchange::forSteps(function_ref<void(const Step &)> body,
                        function_ref<void()> between) {
  int64_t last = b.ranks() - 1;
  Value one = b.constant(1);
  body({b.rankAfter(one), one, /*isFirst=*/true});
  auto step = [&](Value distance) {
    between();
    body({b.rankAfter(distance), distance});
  };
  if (last > 2)
    b.loop(b.constant(2), b.constant(last), b.constant(1), {},
           [&](Value distance, ValueRange) {
             step(distance);
             return Tiles();
           });
  if (last > 1)
    step(b.constant(last));
}

void Exchange::forSteps(function_ref<void(const Step &)> body, bool inStep) {
  // What it orders is ordered by the barrier that ends the exchange, too.
  MemoryOrder order =
      b.problem().stepFence ? MemoryOrder::AcqRel : MemoryOrder::Relaxed;
  forSteps(body, [&] {
    if (inStep)
      b.barrier(order);
  });
}

void Exchange::forRounds(function_ref<void(Value)> body) {
  if (assignment.rounds == 1)
    return body(b.constant(0));
  b.loop(b.constant(assignment.rounds), body);
}

SmallVector<Job> Exchange::makeSends(const Channels &channels, Value round,
                                     ValueRange peers) {
  bool parts = b.problem().inputParts() > 1;
  return llvm::map_to_vector(peers, [&](Value peer) {
    return Job{peer, round,
               [this, parts, peer](Value, Value tile) {
                 return b.produce(parts ? peer : Value(), tile);
               },
               [this, channels, peer](Value slot, Value tile, ValueRange made) {
                 b.send(channels, made, slot, peer, tile);
               }};
  });
}

Value Exchange::sourceAt(Value distance) {
  return b.rankAfter(b.sub(b.numRanks(), distance));
}

//===----------------------------------------------------------------------===//
// Everyone to everyone
//===----------------------------------------------------------------------===//

Tiles permutation::everyone(CollectiveBuilder &b) {
  Tiles ranks;
  for (int64_t distance = 1; distance <= b.ranks(); ++distance)
    ranks.push_back(b.rankAfter(b.constant(distance)));
  return ranks;
}

Tiles permutation::withOwn(CollectiveBuilder &b, Value peer) {
  return b.ranks() > 1 ? Tiles{peer, b.rank()} : Tiles{peer};
}

bool permutation::usesSteps(const CollectiveInfo &problem, double parts) {
  return problem.partBytes() / parts >= double(problem.stepBytes);
}

void permutation::sendToAll(Exchange &e, const Channels &channels, Value round,
                            bool inSteps, ArrayRef<Job> beside) {
  CollectiveBuilder &b = e.b;
  if (!inSteps && b.ranks() <= mostTogether)
    return e.forTiles(e.makeSends(channels, round, everyone(b)));
  e.forSteps(
      [&](const Step &step) {
        Tiles peers = step.isFirst ? withOwn(b, step.peer) : Tiles{step.peer};
        SmallVector<Job> jobs = e.makeSends(channels, round, peers);
        if (step.isFirst)
          llvm::append_range(jobs, beside);
        e.forTiles(jobs);
      },
      inSteps);
}

void permutation::scatterRound(Exchange &e, const Channels &channels,
                               Value round, ArrayRef<Job> beside) {
  sendToAll(e, channels, round, usesSteps(e.b.problem(), e.assignment.pieces),
            beside);
  e.b.endRound(channels);
}

//===----------------------------------------------------------------------===//
// Straight into outputs
//===----------------------------------------------------------------------===//

/// Into the outputs of the step's peer, and in the first step the own ones.
static void storeInStep(CollectiveBuilder &b, ValueRange outputs, Value part,
                        Value tile, const Step &step) {
  if (step.isFirst)
    b.storeOutputs(outputs, part, tile);
  if (!step.isFirst || b.ranks() > 1)
    b.storeOutputs(outputs, part, tile, step.peer);
}

Job permutation::readOutputs(CollectiveBuilder &b, Value part, Value round) {
  return {part, round,
          [&b](Value, Value tile) { return b.loadOutputs({}, tile); }, nullptr};
}

Job permutation::writeInStep(CollectiveBuilder &b, Job get, Value part,
                             const Step &step) {
  get.store = [&b, part, step](Value, Value tile, ValueRange outputs) {
    storeInStep(b, outputs, part, tile, step);
  };
  return get;
}

Job permutation::writeToAll(CollectiveBuilder &b, Job get, Value part) {
  get.store = [&b, part](Value, Value tile, ValueRange outputs) {
    b.forRanksRotated(
        [&](Value peer) { b.storeOutputs(outputs, part, tile, peer); });
  };
  return get;
}

void permutation::storeHeld(Exchange &e, ArrayRef<HeldTile> held, Value part) {
  e.forSteps([&](const Step &step) {
    for (const HeldTile &one : held)
      storeInStep(e.b, one.tiles, part, one.tile, step);
  });
}

void permutation::gatherDirectly(Exchange &e, const Job &get) {
  CollectiveBuilder &b = e.b;
  Job again = readOutputs(b, get.part, get.round);
  // The sends of this round have been made: outputs may be written.
  b.barrier();
  if (!usesSteps(b.problem(), e.assignment.pieces))
    e.forTiles(writeToAll(b, get, {}));
  else if (e.holdsTiles())
    storeHeld(e, e.hold(get), {});
  else
    e.forSteps([&](const Step &step) {
      e.forTiles(writeInStep(b, step.isFirst ? get : again, {}, step));
    });
  b.barrier();
}
