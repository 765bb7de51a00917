//===- ContractStore.cpp - Sums and memory --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The place of a thread's sums in memory: what they begin with, the addends
// that threads read, and the stores of the product.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractSteps.h"
#include "lowering/nvvm/Ptx.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// An element of memory in the place of a sum, as f32; 0 where none exists.
static Value loadSum(ImplicitLocOpBuilder &b, const ProductPart &part,
                     const ContractMemory &memory, Int row, Int column) {
  Value exists = arith::AndIOp::create(b, row.isBelow(part.rows),
                                       column.isBelow(part.columns));
  auto branch = scf::IfOp::create(b, TypeRange{b.getF32Type()}, exists, true);
  ImplicitLocOpBuilder yes(b), no(b);
  yes.setInsertionPointToStart(branch.getBody(0));
  no.setInsertionPointToStart(branch.getBody(1));
  Int one(yes, row.value), other(yes, column.value);
  Value held = LLVM::LoadOp::create(yes, memory.element,
                                    addressOfSum(yes, part, memory, one, other),
                                    memory.element.getIntOrFloatBitWidth() / 8);
  scf::YieldOp::create(yes, widen(yes, held));
  scf::YieldOp::create(
      no, arith::ConstantOp::create(no, no.getF32FloatAttr(0)).getResult());
  return branch.getResult(0);
}

void nvvm::combineSums(ImplicitLocOpBuilder &b, const ProductPart &part,
                       const ContractMemory &memory, Sums &sums,
                       bool replaces) {
  forSums(
      b, part, [&](ImplicitLocOpBuilder &b, int64_t at, Int row, Int column) {
        for (int64_t i = 0; i < 2; ++i) {
          Value held = loadSum(b, part, memory, row, column + i);
          sums[at + i] =
              replaces ? held : arith::AddFOp::create(b, sums[at + i], held);
        }
      });
}

Sums nvvm::beginSums(ImplicitLocOpBuilder &b, const ProductPart &part) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Sums sums(part.shape.rowBlocks * part.shape.columnBlocks * 8, zero);
  if (part.product.accumulate && !isScaled(part))
    combineSums(b, part, part.product.acc, sums, /*replaces=*/true);
  return sums;
}

/// Two sums that are neighbors, as they are stored.
static Value narrowPair(ImplicitLocOpBuilder &b, const ProductPart &part,
                        ArrayRef<Value> sums, int64_t at) {
  Value pair =
      vector::FromElementsOp::create(b, VectorType::get({2}, b.getF32Type()),
                                     ValueRange{sums[at], sums[at + 1]});
  Type element = part.product.acc.element;
  if (element.isF32())
    return pair;
  return LLVM::FPTruncOp::create(b, VectorType::get({2}, element), pair);
}

/// Stores what exists of a pair.
static void storePair(ImplicitLocOpBuilder &b, const ProductPart &part,
                      Value pair, Int row, Int column) {
  unsigned bytes = part.product.acc.element.getIntOrFloatBitWidth() / 8;
  emitWhen(b, row.isBelow(part.rows), [&](ImplicitLocOpBuilder &in) {
    Int one(in, row.value), first(in, column.value);
    auto storeOne = [&](ImplicitLocOpBuilder &inner, int64_t i) {
      Int place(inner, row.value), next(inner, column.value);
      LLVM::StoreOp::create(
          inner, vector::ExtractOp::create(inner, pair, i),
          addressOfSum(inner, part, part.product.acc, place, next + i), bytes);
    };
    Value alone = first.isBelow(part.columns),
          both = (first + 1).isBelow(part.columns);
    if (!part.product.acc.paired) {
      emitWhen(in, alone,
               [&](ImplicitLocOpBuilder &inner) { storeOne(inner, 0); });
      emitWhen(in, both,
               [&](ImplicitLocOpBuilder &inner) { storeOne(inner, 1); });
      return;
    }
    auto branch = scf::IfOp::create(in, both, /*withElseRegion=*/true);
    ImplicitLocOpBuilder yes(b.getLoc(), branch.thenYield()),
        no(b.getLoc(), branch.elseYield());
    Int place(yes, row.value), next(yes, column.value);
    LLVM::StoreOp::create(
        yes, pair, addressOfSum(yes, part, part.product.acc, place, next),
        2 * bytes);
    emitWhen(no, alone,
             [&](ImplicitLocOpBuilder &inner) { storeOne(inner, 0); });
  });
}

/// Of four blocks of eight columns each of four lanes has two columns of
/// each: gives each lane one whole block, by exchanges between lanes at
/// distances 1 and 2.
static SmallVector<Value> turnBlocks(ImplicitLocOpBuilder &b,
                                     const ProductPart &part,
                                     ArrayRef<Value> words) {
  auto isSet = [&](int64_t bit) {
    Value masked = arith::AndIOp::create(b, part.lane, emitNumber(b, bit));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, masked,
                                 emitNumber(b, 0));
  };
  auto exchange = [&](Value word, int64_t distance) {
    return emitOneText(b,
                       "shfl.sync.bfly.b32 $0, $1, " +
                           std::to_string(distance) + ", 31, -1;",
                       "=r,r", {word}, b.getI32Type());
  };
  auto choose = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, condition, yes, no);
  };
  Value odd = isSet(1), high = isSet(2);
  SmallVector<Value> halves(4), result(4);
  for (int64_t i = 0; i < 4; i += 2) {
    Value got = exchange(choose(odd, words[i], words[i + 1]), 1);
    halves[i] = choose(odd, got, words[i]);
    halves[i + 1] = choose(odd, words[i + 1], got);
  }
  for (int64_t i = 0; i < 2; ++i) {
    Value got = exchange(choose(high, halves[i], halves[i + 2]), 2);
    result[i] = choose(high, got, halves[i]);
    result[i + 2] = choose(high, halves[i + 2], got);
  }
  return result;
}

/// The 16 bytes of a lane's block.
static Value turnToBlock(ImplicitLocOpBuilder &b, const ProductPart &part,
                         ArrayRef<Value> words) {
  return vector::FromElementsOp::create(b, VectorType::get({4}, b.getI32Type()),
                                        turnBlocks(b, part, words));
}

/// Stores four pairs of a row, of blocks that are neighbors: where all
/// columns exist, each lane 16 bytes of one block.
static void storeBlocks(ImplicitLocOpBuilder &b, const ProductPart &part,
                        ArrayRef<Value> pairs, Int row, Int column) {
  Int quad = Int(b, part.lane) % 4, first = column - quad * 2;
  Value whole = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                      (first + 32).value, part.columns);
  auto branch = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  ImplicitLocOpBuilder yes(b.getLoc(), branch.thenYield()),
      no(b.getLoc(), branch.elseYield());
  SmallVector<Value> words;
  for (Value pair : pairs)
    words.push_back(LLVM::BitcastOp::create(yes, b.getI32Type(), pair));
  Value turned = turnToBlock(yes, part, words);
  emitWhen(yes, Int(yes, row.value).isBelow(part.rows),
           [&](ImplicitLocOpBuilder &in) {
             Int place(in, row.value), own = Int(in, quad.value) * 8;
             LLVM::StoreOp::create(in, turned,
                                   addressOfSum(in, part, part.product.acc,
                                                place,
                                                own + Int(in, first.value)),
                                   16);
           });
  for (auto [number, pair] : llvm::enumerate(pairs))
    storePair(no, part, pair, Int(no, row.value),
              Int(no, column.value) + 8 * int64_t(number));
}

bool nvvm::holdsBlocks(const ProductPart &part, const ContractMemory &memory) {
  return memory.aligned && part.shape.columnBlocks % 2 == 0 &&
         memory.element.getIntOrFloatBitWidth() == 16;
}

/// Stores the sums, whose addends are in them.
static void storeSums(ImplicitLocOpBuilder &b, const ProductPart &part,
                      ArrayRef<Value> sums) {
  bool byBlocks = holdsBlocks(part, part.product.acc);
  SmallVector<Value> pairs;
  forSums(b, part,
          [&](ImplicitLocOpBuilder &b, int64_t at, Int row, Int column) {
            Value pair = narrowPair(b, part, sums, at);
            if (!byBlocks)
              return storePair(b, part, pair, row, column);
            pairs.push_back(pair);
            if (pairs.size() < 4)
              return;
            storeBlocks(b, part, pairs, row, column - 24);
            pairs.clear();
          });
}

namespace {
/// The sums of four neighboring blocks, the rows and columns from the first
/// four to them, and what the thread has read of each addend.
struct FourBlocks {
  int64_t row, column;
  Sums sums, held;
};
} // namespace

/// The sums by four blocks that are neighbors in a row, and where each four lie
/// behind the first four.
static SmallVector<FourBlocks> getFourBlocks(ImplicitLocOpBuilder &b,
                                             const ProductPart &part,
                                             ArrayRef<Value> sums) {
  SmallVector<FourBlocks> all;
  int64_t across = 2 * part.shape.columnBlocks;
  forSums(b, part,
          [&](ImplicitLocOpBuilder &, int64_t at, Int row, Int column) {
            int64_t block = at / 4;
            if (all.empty() || all.back().sums.size() == 8)
              all.push_back(
                  {block / across * part.shape.getBlockRows() + at % 4 / 2 * 8,
                   block % across * 8,
                   {},
                   {}});
            all.back().sums.append({sums[at], sums[at + 1]});
          });
  return all;
}

/// The address of what is in the place of this lane's block of the first four.
static Value addressOfBlock(ImplicitLocOpBuilder &b, const ProductPart &part,
                            const ContractMemory &memory) {
  std::optional<Value> address;
  forSums(b, part, [&](ImplicitLocOpBuilder &, int64_t, Int row, Int column) {
    if (!address)
      address = addressOfSum(b, part, memory, row,
                             column + Int(b, part.lane) % 4 * 6);
  });
  return *address;
}

/// As far behind an address of `addressOfBlock` as four blocks are.
static Value getBehind(ImplicitLocOpBuilder &b, Value first,
                       const ContractMemory &memory, const FourBlocks &blocks) {
  int64_t elements = blocks.row * memory.stride + blocks.column;
  return addBytes(
      b, first,
      arith::ConstantOp::create(
          b, b.getI64IntegerAttr(
                 elements * (memory.element.getIntOrFloatBitWidth() / 8))));
}

/// The eight sums of this lane's block, of pairs of four blocks.
static Sums turnSums(ImplicitLocOpBuilder &b, const ProductPart &part,
                     ArrayRef<Value> sums) {
  Sums own(8);
  for (int64_t odd = 0; odd < 2; ++odd) {
    SmallVector<Value> words;
    for (int64_t i = 0; i < 4; ++i)
      words.push_back(
          LLVM::BitcastOp::create(b, b.getI32Type(), sums[2 * i + odd]));
    for (auto [i, word] : llvm::enumerate(turnBlocks(b, part, words)))
      own[2 * i + odd] = LLVM::BitcastOp::create(b, b.getF32Type(), word);
  }
  return own;
}

/// Adds a lane's 16 bytes of an addend to the eight sums of its block.
static void addBlock(ImplicitLocOpBuilder &b, Type element, Value held,
                     Sums &own) {
  auto type = VectorType::get({2}, element);
  for (int64_t i = 0; i < 8; i += 2) {
    Value pair = LLVM::BitcastOp::create(
        b, type, vector::ExtractOp::create(b, held, i / 2));
    for (int64_t j = 0; j < 2; ++j)
      own[i + j] = arith::AddFOp::create(
          b, own[i + j], widen(b, vector::ExtractOp::create(b, pair, j)));
  }
}

/// Stores a product of which all exists, and adds addends before: some of these
/// are read ahead.
static void storeWhole(ImplicitLocOpBuilder &b, const ProductPart &part,
                       ArrayRef<Value> sums, ArrayRef<ContractMemory> addends) {
  // Registers of a thread that hold addends read ahead, at most.
  constexpr size_t kHeld = 24;
  SmallVector<FourBlocks> all = getFourBlocks(b, part, sums);
  SmallVector<Value> firsts;
  for (const ContractMemory &memory : addends)
    firsts.push_back(addressOfBlock(b, part, memory));
  Value stored = addressOfBlock(b, part, part.product.acc);
  auto load = [&](FourBlocks &blocks) {
    for (auto [memory, first] : llvm::zip_equal(addends, firsts))
      blocks.held.push_back(
          LLVM::LoadOp::create(b, VectorType::get({4}, b.getI32Type()),
                               getBehind(b, first, memory, blocks), 16));
  };
  auto narrowAll = [&](ArrayRef<Value> own) {
    SmallVector<Value> words;
    for (int64_t at = 0; at < 8; at += 2)
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(),
                                              narrowPair(b, part, own, at)));
    return words;
  };
  auto finish = [&](const FourBlocks &blocks) -> Value {
    // Narrow sums are turned faster.
    if (addends.empty())
      return turnToBlock(b, part, narrowAll(blocks.sums));
    Sums own = turnSums(b, part, blocks.sums);
    for (auto [addend, held] : llvm::zip_equal(addends, blocks.held))
      addBlock(b, addend.element, held, own);
    return vector::FromElementsOp::create(
        b, VectorType::get({4}, b.getI32Type()), narrowAll(own));
  };
  size_t ahead = addends.empty()
                     ? 0
                     : std::max<size_t>(1, kHeld / (4 * addends.size())) - 1;
  for (size_t i = 0; i < all.size() + ahead; ++i) {
    if (i < all.size())
      load(all[i]);
    if (i >= ahead)
      LLVM::StoreOp::create(
          b, finish(all[i - ahead]),
          getBehind(b, stored, part.product.acc, all[i - ahead]), 16);
  }
}

void nvvm::storeProduct(ImplicitLocOpBuilder &b, const ProductPart &part,
                        ArrayRef<Value> sums) {
  if (part.product.addends.empty())
    return storeSums(b, part, sums);
  Sums totals(sums);
  ArrayRef<ContractMemory> addends = part.product.addends;
  if (part.shape.addends > 0) {
    addTiles(b, part, totals);
    addends = {};
  }
  auto storeAll = [&](ImplicitLocOpBuilder &b) {
    Sums added(totals);
    for (const ContractMemory &addend : addends)
      combineSums(b, part, addend, added, /*replaces=*/false);
    storeSums(b, part, added);
  };
  if (!holdsBlocks(part, part.product.acc) ||
      !llvm::all_of(addends, [&](const ContractMemory &addend) {
        return holdsBlocks(part, addend);
      }))
    return storeAll(b);
  auto isWhole = [&](Value count, int64_t held) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sge, count,
                                 emitNumber(b, held));
  };
  Value whole = arith::AndIOp::create(
      b, isWhole(part.rows, part.shape.warpRows * part.shape.getWarpRows()),
      isWhole(part.columns,
              part.shape.warpColumns * part.shape.getWarpColumns()));
  auto branch = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  ImplicitLocOpBuilder yes(b.getLoc(), branch.thenYield()),
      no(b.getLoc(), branch.elseYield());
  storeWhole(yes, part, totals, addends);
  storeAll(no);
}
