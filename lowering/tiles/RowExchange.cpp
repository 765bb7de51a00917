//===- RowExchange.cpp - Rows that threads combine together ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/RowExchange.h"

#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Values of a single row that a thread combines alone in the last levels; of
/// more, each lane takes one of 32.
static constexpr int64_t maxAlone = 32;
/// Bytes of several rows' values that a thread reads at most: lanes share the
/// rest, for one more step of shuffles costs less than to read as much again.
/// Where one of the rows takes a single instruction, each lane reads one value.
static constexpr int64_t maxBytesAlone = 64;
/// In a CTA of so many threads every lane takes one value: all of its warps
/// read at once then, and wait for shared memory longer than for shuffles.
/// Measured on H200: 0.3 to 0.4 µs of a kernel.
static constexpr int64_t manyThreads = 1024;
/// Words that one access of shared memory reads or writes.
static constexpr int64_t wordsOfAccess = 4;

RowExchange::RowExchange(SmallVector<RowReduceOp> rowOps, Threads &threads)
    : threads(threads), ops(std::move(rowOps)), loc(ops.front().getLoc()),
      length(
          cast<ShapedType>(ops.front().getTile().getType()).getNumElements()),
      trips(threads.getTrips(length)), values(trips * threads.getWarps()) {
  for (RowReduceOp op : ops)
    rows.emplace_back(op, threads);
}

void RowExchange::begin(OpBuilder &builder, bool direct) {
  for (ThreadReduction &row : rows)
    row.begin(builder, direct);
}

void RowExchange::add(OpBuilder &builder, RowReduceOp op, Value vector,
                      Value trip, Value mask) {
  rows[llvm::find(ops, op) - ops.begin()].add(builder, vector, trip, mask);
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

/// A row alone has words of its own size; those of several rows are of 32 bits,
/// as many as one store carries, rounded up to what a store can carry.
void RowExchange::makeRecords(OpBuilder &builder) {
  if (rows.size() == 1) {
    Type word = builder.getIntegerType(8 * rows.front().getWordBytes());
    records.push_back({0, 1, /*words=*/1, word, {}, {}});
    return;
  }
  for (auto [index, row] : llvm::enumerate(rows)) {
    int64_t words = row.getWordBytes() / 4;
    if (records.empty() || records.back().words + words > wordsOfAccess)
      records.push_back({index, index, 0, builder.getI32Type(), {}, {}});
    records.back().words += words;
    records.back().last = index + 1;
  }
  for (Record &record : records)
    record.words = llvm::PowerOf2Ceil(record.words);
}

void RowExchange::takeMemory(OpBuilder &builder) {
  Value turn = threads.takeTurn(builder, loc);
  for (Record &record : records) {
    int64_t half = llvm::alignTo(values * record.words, wordsOfAccess);
    record.shared =
        threads.makeShared(loc, turn ? 2 * half : half, record.word);
    if (turn)
      record.base = arith::MulIOp::create(builder, loc, turn,
                                          getIndex(builder, loc, half));
  }
}

SmallVector<Value> RowExchange::pack(OpBuilder &builder, const Record &record,
                                     const Values &values) const {
  SmallVector<Value> words;
  for (size_t i = record.first; i < record.last; ++i) {
    Value word = rows[i].toWord(builder, values[i]);
    if (word.getType() == record.word) {
      words.push_back(word);
      continue;
    }
    Value high = arith::ShRUIOp::create(
        builder, loc, word,
        arith::ConstantIntOp::create(builder, loc, word.getType(), 32));
    for (Value half : {word, high})
      words.push_back(arith::TruncIOp::create(builder, loc, record.word, half));
  }
  while (int64_t(words.size()) < record.words)
    words.push_back(arith::ConstantIntOp::create(builder, loc, record.word, 0));
  return words;
}

void RowExchange::unpack(OpBuilder &builder, const Record &record,
                         ValueRange words, Values &values) const {
  size_t at = 0;
  for (size_t i = record.first; i < record.last; ++i) {
    Value word = words[at++];
    if (record.word.isInteger(32) && rows[i].getWordBytes() == 8) {
      Type i64 = builder.getI64Type();
      Value low = arith::ExtUIOp::create(builder, loc, i64, word);
      Value high = arith::ExtUIOp::create(builder, loc, i64, words[at++]);
      high = arith::ShLIOp::create(
          builder, loc, high,
          arith::ConstantIntOp::create(builder, loc, i64, 32));
      word = arith::OrIOp::create(builder, loc, low, high);
    }
    values[i] = rows[i].fromWord(builder, word);
  }
}

//===----------------------------------------------------------------------===//
// Combination
//===----------------------------------------------------------------------===//

RowExchange::Values RowExchange::combine(OpBuilder &builder, const Values &left,
                                         const Values &right) const {
  Values both;
  for (auto [row, a, b] : llvm::zip_equal(rows, left, right))
    both.push_back(row.combine(builder, a, b));
  return both;
}

/// Both lanes of a pair combine the same two values; the order of operands
/// does not change the bits of any kind (NaN are made canonical where they are
/// seen).
void RowExchange::combineLanes(OpBuilder &builder, Values &values,
                               int64_t lanes) const {
  SmallVector<size_t> rest;
  for (auto [index, row] : llvm::enumerate(rows)) {
    if (Value all = row.combineAtOnce(builder, values[index], lanes))
      values[index] = all;
    else
      rest.push_back(index);
  }
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    Values others;
    for (size_t index : rest)
      others.push_back(rows[index].shuffle(builder, values[index], distance));
    for (auto [index, other] : llvm::zip_equal(rest, others))
      values[index] = rows[index].combine(builder, values[index], other);
  }
}

RowExchange::Values RowExchange::combinePairs(OpBuilder &builder,
                                              SmallVector<Values> left) const {
  while (left.size() > 1) {
    SmallVector<Values> next;
    for (size_t i = 0; i + 1 < left.size(); i += 2)
      next.push_back(combine(builder, left[i], left[i + 1]));
    if (left.size() % 2)
      next.push_back(left.back());
    left = std::move(next);
  }
  return left.front();
}

//===----------------------------------------------------------------------===//
// From warps to all
//===----------------------------------------------------------------------===//

void RowExchange::publish(OpBuilder &builder, const Values &values,
                          Value trip) const {
  auto constant = [&](int64_t number) {
    return getIndex(builder, loc, number);
  };
  SmallVector<SmallVector<Value>> words;
  for (const Record &record : records)
    words.push_back(pack(builder, record, values));
  Value warp = arith::DivUIOp::create(builder, loc, threads.getNumber(),
                                      constant(kWarp));
  Value before =
      arith::MulIOp::create(builder, loc, trip, constant(threads.getWarps()));
  Value number = arith::AddIOp::create(builder, loc, before, warp);
  SmallVector<Value> places;
  for (const Record &record : records) {
    Value place = number;
    if (record.words > 1)
      place =
          arith::MulIOp::create(builder, loc, place, constant(record.words));
    if (record.base)
      place = arith::AddIOp::create(builder, loc, record.base, place);
    places.push_back(place);
  }
  // Lane c writes to CTA c.
  Value writes =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                            threads.getLane(), constant(threads.getCluster()));
  auto branch =
      scf::IfOp::create(builder, loc, writes, /*withElseRegion=*/false);
  OpBuilder inner = OpBuilder::atBlockTerminator(branch.thenBlock());
  for (auto [record, some, place] : llvm::zip_equal(records, words, places))
    publishRecord(inner, record, some, place);
}

void RowExchange::publishRecord(OpBuilder &builder, const Record &record,
                                ValueRange words, Value place) const {
  if (threads.getCluster() == 1) {
    if (record.words == 1) {
      memref::StoreOp::create(builder, loc, words[0], record.shared,
                              ValueRange(place));
      return;
    }
    Value vector = vector::FromElementsOp::create(
        builder, loc, VectorType::get({record.words}, record.word), words);
    vector::StoreOp::create(builder, loc, vector, record.shared,
                            ValueRange(place), /*nontemporal=*/false,
                            llvm::MaybeAlign(record.getBytes()));
    return;
  }
  ImplicitLocOpBuilder b(loc, builder);
  bool wide = record.word.isInteger(64);
  Value start =
      memref::ExtractAlignedPointerAsIndexOp::create(b, record.shared);
  Value bytes = arith::MulIOp::create(b, place, getIndex(b, loc, wide ? 8 : 4));
  Value address = arith::IndexCastOp::create(
      b, b.getI32Type(), arith::AddIOp::create(b, start, bytes).getResult());
  Value cta = arith::IndexCastOp::create(b, b.getI32Type(), threads.getLane());
  threads.getTarget().emitStoreToCta(b, address, cta, words, arrival);
}

//===----------------------------------------------------------------------===//
// The last levels
//===----------------------------------------------------------------------===//

void RowExchange::readRecords(OpBuilder &builder, const Record &record,
                              Value first, MutableArrayRef<Values> values,
                              bool byLane) const {
  Value start = first;
  if (record.words > 1)
    start = arith::MulIOp::create(builder, loc, start,
                                  getIndex(builder, loc, record.words));
  if (record.base)
    start = arith::AddIOp::create(builder, loc, record.base, start);
  int64_t count = values.size() * record.words;
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; i += wordsOfAccess) {
    int64_t lanes = std::min(wordsOfAccess, count - i);
    Value index =
        arith::AddIOp::create(builder, loc, start, getIndex(builder, loc, i));
    if (lanes == 1 && byLane) {
      words.push_back(memref::LoadOp::create(builder, loc, record.shared,
                                             ValueRange(index)));
      continue;
    }
    llvm::MaybeAlign alignment;
    if (lanes == wordsOfAccess)
      alignment = llvm::Align(16);
    else if (record.words > 1)
      alignment = llvm::Align(record.getBytes());
    Value vector = vector::LoadOp::create(
        builder, loc, VectorType::get({lanes}, record.word), record.shared,
        ValueRange(index), /*nontemporal=*/false, alignment);
    for (int64_t lane = 0; lane < lanes; ++lane)
      words.push_back(vector::ExtractOp::create(builder, loc, vector, lane));
  }
  for (auto [i, value] : llvm::enumerate(values))
    unpack(builder, record,
           ArrayRef(words).slice(i * record.words, record.words), value);
}

SmallVector<RowExchange::Values> RowExchange::read(OpBuilder &builder,
                                                   Value first, int64_t count,
                                                   bool byLane) const {
  SmallVector<Values> values(count, Values(rows.size()));
  for (const Record &record : records)
    readRecords(builder, record, first, values, byLane);
  return values;
}

int64_t RowExchange::getAlone(int64_t count) const {
  if (threads.getThreads() >= manyThreads)
    return 1;
  int64_t lanes = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(count));
  if (rows.size() > 1 && llvm::any_of(rows, [&](const ThreadReduction &row) {
        return row.combinesAtOnce(lanes);
      }))
    return 1;
  if (rows.size() == 1)
    return count <= maxAlone ? count : 1;
  int64_t bytes = 0;
  for (const Record &record : records)
    bytes += record.getBytes();
  int64_t most = std::max<int64_t>(maxBytesAlone / bytes, 1);
  if (count <= most)
    return count;
  // Neighbors of one lane are a whole part of the tree.
  return std::min<int64_t>(llvm::bit_floor(uint64_t(most)), count & -count);
}

RowExchange::Values RowExchange::combineShared(OpBuilder &builder, Value first,
                                               int64_t count,
                                               int64_t alone) const {
  auto constant = [&](int64_t number) {
    return getIndex(builder, loc, number);
  };
  SmallVector<Values> left;
  for (int64_t i = 0; i < count; i += kWarp * alone) {
    int64_t parts = std::min(kWarp, (count - i) / alone);
    int64_t lanes =
        rows.size() == 1 ? kWarp : int64_t(llvm::PowerOf2Ceil(parts));
    Value mine = threads.getLane();
    if (lanes < kWarp)
      mine = arith::AndIOp::create(builder, loc, mine, constant(lanes - 1));
    if (alone > 1)
      mine = arith::MulIOp::create(builder, loc, mine, constant(alone));
    mine = arith::AddIOp::create(builder, loc, mine, constant(i));
    Value exists;
    if (parts < lanes) {
      Value last = constant(i + (parts - 1) * alone);
      exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                                     mine, last);
      mine = arith::MinUIOp::create(builder, loc, mine, last);
    }
    Value index = arith::AddIOp::create(builder, loc, first, mine);
    Values values =
        combinePairs(builder, read(builder, index, alone, /*byLane=*/true));
    if (exists)
      for (auto [row, value] : llvm::zip_equal(rows, values))
        value = arith::SelectOp::create(builder, loc, exists, value,
                                        row.getExchangedIdentity(builder));
    combineLanes(builder, values, lanes);
    left.push_back(std::move(values));
  }
  return combinePairs(builder, std::move(left));
}

RowExchange::Values RowExchange::combineValues(OpBuilder &builder, Value first,
                                               int64_t count) const {
  int64_t alone = getAlone(count);
  return alone == count ? combinePairs(builder, read(builder, first, count,
                                                     /*byLane=*/false))
                        : combineShared(builder, first, count, alone);
}

void RowExchange::finish(OpBuilder &builder,
                         llvm::function_ref<void(RowReduceOp, Value)> result) {
  auto constant = [&](int64_t number) {
    return getIndex(builder, loc, number);
  };
  makeRecords(builder);
  takeMemory(builder);
  int64_t bytes = 0;
  for (const Record &record : records)
    bytes += values * record.getBytes();
  arrival = threads.takeArrival(builder, loc, bytes);
  auto publishTrip = [&](OpBuilder &b, Value trip) {
    Values parts;
    for (const ThreadReduction &row : rows)
      parts.push_back(row.getPart(b, trip));
    combineLanes(b, parts, kWarp);
    publish(b, parts, trip);
  };
  if (trips > kMaxUnrolledTrips)
    emitLoop(builder, loc, constant(0), constant(trips), 1, publishTrip);
  else
    for (int64_t trip = 0; trip < trips; ++trip)
      publishTrip(builder, constant(trip));
  if (arrival) {
    ImplicitLocOpBuilder b(loc, builder);
    threads.getTarget().emitAwaitBytes(b, arrival);
  } else {
    threads.emitBarrier(builder, loc);
  }

  // Values that hold elements of the row, and those of a chunk.
  int64_t width = std::min<int64_t>(kMaxChunk, llvm::PowerOf2Ceil(length));
  int64_t ofWarp = kWarp * threads.getLanes(length);
  int64_t used = llvm::divideCeil(length, ofWarp);
  int64_t ofChunk = std::max<int64_t>(width / ofWarp, 1);
  Values all = combineValues(builder, constant(0), std::min(used, ofChunk));
  int64_t whole = used / ofChunk;
  if (whole > 1) {
    auto loop = scf::ForOp::create(
        builder, loc, constant(ofChunk), constant(whole * ofChunk),
        constant(ofChunk), all,
        [&](OpBuilder &inner, Location, Value first, ValueRange left) {
          Values chunk = combineValues(inner, first, ofChunk);
          scf::YieldOp::create(inner, loc, combine(inner, Values(left), chunk));
        });
    loop->setAttr(kTileLoopAttr, builder.getUnitAttr());
    all = Values(loop.getResults().begin(), loop.getResults().end());
  }
  if (int64_t rest = used % ofChunk; rest && whole > 0)
    all = combine(builder, all,
                  combineValues(builder, constant(whole * ofChunk), rest));
  for (auto [op, row, value] : llvm::zip_equal(ops, rows, all))
    result(op, row.finishRow(builder, row.fromExchanged(builder, value)));
}
