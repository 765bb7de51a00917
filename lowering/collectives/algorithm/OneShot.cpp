//===- OneShot.cpp - Every rank sends to every rank -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One step: each rank sends each tile straight to the ranks that want it. The
// fewest hops, and with reductions the most bytes: best for small messages.
// Sums are made by each receiver in rank order, from the same tiles: the same
// bits on every rank.
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/Accesses.h"
#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/CollectiveBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::comms;

/// Which ranks receive the same tile from a sender.
static ChannelPattern getPattern(const CollectiveInfo &problem) {
  if (problem.kind->direction == Direction::OneToOne)
    return ChannelPattern::Single;
  bool toAll = problem.kind->direction != Direction::AllToRoot;
  return toAll && problem.inputParts() == 1 ? ChannelPattern::Multicast
                                            : ChannelPattern::Pairwise;
}

/// `body` on the ranks that have something to send.
static void onSenders(CollectiveBuilder &b, function_ref<void()> body) {
  Direction direction = b.problem().kind->direction;
  if (direction == Direction::RootToAll || direction == Direction::OneToOne)
    b.ifThen(b.isRank(b.root()), body);
  else
    body();
}

/// `body` on the ranks that get something.
static void onReceivers(CollectiveBuilder &b, function_ref<void()> body) {
  const CollectiveInfo &problem = b.problem();
  if (problem.kind->direction == Direction::AllToRoot)
    b.ifThen(b.isRank(b.root()), body);
  else if (problem.kind->direction == Direction::OneToOne)
    b.ifThen(b.isRank(b.constant(problem.dest)), body);
  else
    body();
}

static void sendTile(CollectiveBuilder &b, const Channels &channels,
                     Value tile) {
  const CollectiveInfo &problem = b.problem();
  if (problem.inputParts() > 1) {
    b.forRanksRotated([&](Value peer) {
      b.send(channels, b.produce(peer, tile), tile, peer, tile);
    });
    return;
  }
  Value peer;
  if (problem.kind->direction == Direction::AllToRoot)
    peer = b.root();
  else if (problem.kind->direction == Direction::OneToOne)
    peer = b.constant(problem.dest);
  b.send(channels, b.produce({}, tile), tile, peer, tile);
}

static void receiveTile(CollectiveBuilder &b, const Channels &channels,
                        Value tile) {
  const CollectiveInfo &problem = b.problem();
  auto from = [&](Value peer) { return b.receive(channels, tile, peer, tile); };
  if (problem.kind->reduces)
    b.consume(b.foldRanks(from), {}, tile);
  else if (problem.outputParts() > 1)
    b.loop(b.numRanks(),
           [&](Value peer) { b.consume(from(peer), peer, tile); });
  else
    b.consume(from(b.root()), {}, tile);
}

//===----------------------------------------------------------------------===//
// Rows whose number is known at run time
//===----------------------------------------------------------------------===//

namespace {
/// A slot of an exchange of rows: whether a row is in it is known at run time.
struct RowSlot {
  Value peer, slot;
  /// Offset of the row in elements; 0 if there is none.
  Value offset;
  /// Elements of it: a row's length, or 0.
  Value valid;
};
} // namespace

/// Visits every slot of every rank. Slots without a row are visited too, with
/// no element to move: so who meets whom does not depend on data, and can be
/// proven.
static void forRowSlots(CollectiveBuilder &b, Value counts, StringRef what,
                        function_ref<void(const RowSlot &)> body) {
  OpBuilder &builder = b.builder();
  Value zero = b.constant(0);
  Value length = b.constant(b.problem().inputs[0].tileLength);
  b.loop(zero, b.numRanks(), b.constant(1), {zero},
         [&](Value peer, ValueRange start) {
           Value count = memref::LoadOp::create(builder, b.loc(), counts, peer);
           Value rows = arith::IndexCastOp::create(
               builder, b.loc(), builder.getIndexType(), count);
           CheckBoundsOp::create(builder, b.loc(), zero, rows,
                                 b.constant(b.problem().tiles), what);
           b.forOwnTiles([&](Value slot) {
             Value isThere = b.less(slot, rows);
             Value offset = b.mul(b.add(start[0], slot), length);
             body({peer, slot, b.select(isThere, offset, zero),
                   b.select(isThere, length, zero)});
           });
           return Tiles{b.add(start[0], rows)};
         });
}

static void expandRows(CollectiveBuilder &b) {
  const CollectiveInfo &problem = b.problem();
  const TileArray &input = problem.inputs[0], &output = problem.outputs[0];
  Value channel = b.channels(ChannelPattern::Pairwise, problem.tiles).front();
  channel.getDefiningOp()->setAttr(kCountsAgreeAttr, b.builder().getUnitAttr());
  b.beginCollective();
  forRowSlots(b, problem.sendRows, "send_rows of all_to_all_v",
              [&](const RowSlot &row) {
                Value tile = b.load(input, row.offset, row.valid);
                SendOp::create(b.builder(), b.loc(), tile, channel, row.slot,
                               row.peer, row.valid);
              });
  b.endRound({channel});
  forRowSlots(b, problem.recvRows, "recv_rows of all_to_all_v",
              [&](const RowSlot &row) {
                auto type = cast<ChannelType>(channel.getType()).getTileType();
                Value tile = RecvOp::create(b.builder(), b.loc(), type, channel,
                                            row.slot, row.peer, row.valid);
                b.store(
                    convertTile(b.builder(), b.loc(), tile, output.elementType),
                    output, row.offset, row.valid);
              });
  b.endCollective();
}

//===----------------------------------------------------------------------===//
// The algorithm
//===----------------------------------------------------------------------===//

static LogicalResult expand(CollectiveBuilder &b) {
  const CollectiveInfo &problem = b.problem();
  if (problem.kind->rowsVary) {
    expandRows(b);
    return success();
  }
  Channels channels = b.channels(getPattern(problem), problem.tiles);
  bool isHeard = problem.kind->direction == Direction::AllToAll;
  if (!isHeard)
    b.beginCollective();
  onSenders(b, [&] {
    b.forOwnTiles([&](Value tile) { sendTile(b, channels, tile); });
  });
  b.endRound(channels);
  onReceivers(b, [&] {
    b.forOwnTiles([&](Value tile) { receiveTile(b, channels, tile); });
  });
  if (!isHeard)
    b.endCollective();
  return success();
}

static bool supports(const CollectiveInfo &problem, std::string &why) {
  if (!problem.isSized() || !problem.kind->rowsVary)
    return true;
  why = "its row counts are arrays, which are not launch parameters";
  return false;
}

static double cost(const CollectiveInfo &problem) {
  return problem.hop + problem.transfer(double(problem.ranks - 1));
}

/// Bytes that a rank waits for before it is done: all of them.
static double waiting(const CollectiveInfo &problem) {
  return problem.allBytes();
}

namespace mlir::comms {
const Algorithm &getOneShotAlgorithm();
} // namespace mlir::comms

const Algorithm &mlir::comms::getOneShotAlgorithm() {
  static constexpr Algorithm algorithm = {
      "one_shot",
      "every rank sends each tile straight to all that want it",
      supports,
      cost,
      expand,
      /*pieces=*/nullptr,
      /*dealsTiles=*/true,
      waiting};
  return algorithm;
}
