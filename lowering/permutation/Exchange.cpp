//===- Exchange.cpp - Parts, rounds and steps of a permutation ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/permutation/Exchange.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::permutation;

//===----------------------------------------------------------------------===//
// Tiles, rounds and steps
//===----------------------------------------------------------------------===//

Deal permutation::makeDeal(CollectiveBuilder &b, int64_t pieces, int64_t rows) {
  const Problem &problem = b.problem();
  Deal deal;
  deal.pieces = pieces;
  deal.tiles = llvm::divideCeil(problem.tiles, pieces);
  deal.slots = deal.tiles;
  if (!b.canReuseSlots())
    return deal;
  int64_t bytes = 0;
  for (const WireTile &wire : problem.wires)
    bytes += wire.length *
             llvm::divideCeil(wire.elementType.getIntOrFloatBitWidth(), 8);
  int64_t most = std::max<int64_t>(
      problem.roundBytes / std::max<int64_t>(bytes, 1) / rows, 1);
  deal.rounds = llvm::divideCeil(deal.tiles, most);
  deal.slots = llvm::divideCeil(deal.tiles, deal.rounds);
  return deal;
}

Deal permutation::makeWhole(CollectiveBuilder &b) {
  Deal deal;
  deal.tiles = deal.slots = b.problem().tiles;
  return deal;
}

std::pair<Value, Value> Exchange::tileOf(Value part, Value round, Value slot) {
  Value tile = b.add(b.mul(round, b.constant(deal.slots)), slot);
  Value exists;
  if (deal.slots * deal.rounds > deal.tiles)
    exists = b.less(tile, b.constant(deal.tiles));
  if (deal.pieces == 1)
    return {tile, exists};
  tile = b.add(b.mul(part, b.constant(deal.tiles)), tile);
  if (deal.pieces * deal.tiles > b.problem().tiles) {
    Value isInside = b.less(tile, b.constant(b.problem().tiles));
    exists = exists ? b.both(exists, isInside) : isInside;
  }
  return {tile, exists};
}

void Exchange::forSlots(function_ref<void(Value)> body) {
  b.loop(b.block(), b.constant(deal.slots), b.blocks(), {},
         [&](Value slot, ValueRange) {
           body(slot);
           return Tiles();
         });
}

void Exchange::forTiles(Value part, Value round,
                        function_ref<void(Value, Value)> body) {
  forSlots([&](Value slot) {
    auto [tile, exists] = tileOf(part, round, slot);
    if (exists)
      b.ifThen(exists, [&, tile = tile] { body(slot, tile); });
    else
      body(slot, tile);
  });
}

void Exchange::forTiles(ArrayRef<Job> jobs) {
  forSlots([&](Value slot) {
    SmallVector<std::pair<const Job *, Value>> certain;
    for (const Job &job : jobs) {
      auto [tile, exists] = tileOf(job.part, job.round, slot);
      if (exists)
        b.ifThen(exists, [&, tile = tile] {
          job.store(slot, tile, job.load(slot, tile));
        });
      else
        certain.push_back({&job, tile});
    }
    SmallVector<Tiles> loaded;
    for (auto [job, tile] : certain)
      loaded.push_back(job->load(slot, tile));
    for (auto [index, one] : llvm::enumerate(certain))
      one.first->store(slot, one.second, loaded[index]);
  });
}

/// More tiles than a thread has registers for.
static constexpr int64_t mostHeld = 32;

bool Exchange::holdsTiles() const {
  std::optional<int64_t> blocks = b.constantBlocks();
  return blocks && *blocks > 0 && deal.rounds == 1 &&
         deal.slots % *blocks == 0 &&
         deal.pieces * deal.tiles <= b.problem().tiles &&
         deal.slots / *blocks <= std::min(b.problem().heldTiles, mostHeld);
}

SmallVector<Held>
Exchange::hold(Value part, Value round,
               function_ref<Tiles(Value slot, Value tile)> load) {
  SmallVector<Held> held;
  for (int64_t slot = 0; slot < deal.slots; slot += *b.constantBlocks()) {
    Value own = b.add(b.block(), b.constant(slot));
    Value tile = tileOf(part, round, own).first;
    held.push_back({own, tile, load(own, tile)});
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
  if (deal.rounds == 1)
    return body(b.constant(0));
  b.loop(b.constant(deal.rounds), body);
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

bool permutation::goesInSteps(const Problem &problem, double parts) {
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
  sendToAll(e, channels, round, goesInSteps(e.b.problem(), e.deal.pieces),
            beside);
  e.b.endRound(channels);
}

//===----------------------------------------------------------------------===//
// Straight into outputs
//===----------------------------------------------------------------------===//

void permutation::storeToBoth(CollectiveBuilder &b, ValueRange outputs,
                              Value part, Value tile, Value peer) {
  b.storeOutputs(outputs, part, tile);
  if (b.ranks() > 1)
    b.storeOutputs(outputs, part, tile, peer);
}

void permutation::storeHeld(Exchange &e, ArrayRef<Held> held, Value part) {
  e.forSteps([&](const Step &step) {
    for (const Held &one : held) {
      if (step.isFirst)
        storeToBoth(e.b, one.tiles, part, one.tile, step.peer);
      else
        e.b.storeOutputs(one.tiles, part, one.tile, step.peer);
    }
  });
}

void permutation::gatherDirectly(
    Exchange &e, Value round, function_ref<Tiles(Value slot, Value tile)> get) {
  CollectiveBuilder &b = e.b;
  auto outputs = [&](Value slot, Value tile) {
    return b.makeOutputs(get(slot, tile), {}, tile);
  };
  // The sends of this round have been made: outputs may be written.
  b.barrier();
  if (!goesInSteps(b.problem(), e.deal.pieces))
    e.forTiles(b.rank(), round, [&](Value slot, Value tile) {
      Tiles made = outputs(slot, tile);
      b.forRanksRotated(
          [&](Value peer) { b.storeOutputs(made, {}, tile, peer); });
    });
  else if (e.holdsTiles())
    storeHeld(e, e.hold(b.rank(), round, outputs), {});
  else
    e.forSteps([&](const Step &step) {
      e.forTiles(b.rank(), round, [&](Value slot, Value tile) {
        if (step.isFirst)
          return storeToBoth(b, outputs(slot, tile), {}, tile, step.peer);
        b.storeOutputs(b.loadOutputs({}, tile), {}, tile, step.peer);
      });
    });
  b.barrier();
}

void permutation::writeToAll(Exchange &e, Value part) {
  CollectiveBuilder &b = e.b;
  e.forTiles(b.constant(0), b.constant(0), [&](Value, Value tile) {
    Tiles outputs = b.makeOutputs(b.produce({}, tile), part, tile);
    b.forRanksRotated(
        [&](Value peer) { b.storeOutputs(outputs, part, tile, peer); });
  });
}
