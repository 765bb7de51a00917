//===- PoisonLowering.cpp - Data that is its own flag ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/Conversions.h"
#include "lowering/nvvm/KernelLowering.h"
#include "lowering/nvvm/Tiles.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

static Value opWith(ImplicitLocOpBuilder &b, Value word, int64_t constant,
                    function_ref<Value(Value, Value)> make) {
  Value other = arith::ConstantOp::create(
      b, b.getI32IntegerAttr(static_cast<int32_t>(constant)));
  return make(word, other);
}

static Value andWith(ImplicitLocOpBuilder &b, Value word, int64_t mask) {
  return opWith(b, word, mask, [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, x, y);
  });
}

/// Element or half word `index` of 16 bits, as i16.
static Value getHalf(ArrayRef<Value> words, int64_t index,
                     ImplicitLocOpBuilder &b) {
  Value word = words[index / 2];
  if (index % 2)
    word = opWith(b, word, 16, [&](Value x, Value y) -> Value {
      return arith::ShRUIOp::create(b, x, y);
    });
  return arith::TruncIOp::create(b, b.getI16Type(), word);
}

void KernelLowering::lowerPoisonStore(PoisonStoreOp op, VectorType type,
                                      ImplicitLocOpBuilder &b) {
  SmallVector<Value> words = splitWords(op.getTile(), b);
  Operation *maker = op.getTile().getDefiningOp();
  if (!maker || !maker->hasAttr(kCanonicalAttr))
    for (Value &word : words)
      word = emitCanonicalWord(b, b.getLoc(), word,
                               cast<FloatType>(type.getElementType()));
  Value address = globalAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment = getAlignment(op.getMemref(), op.getOffset());
  int64_t element = type.getElementTypeBitWidth() / 8;
  auto whole = [&](ImplicitLocOpBuilder &in) {
    for (Piece piece : getPieces(getBytes(type), alignment)) {
      Value at = addBytes(address, piece.offset, in);
      ArrayRef<Value> from = ArrayRef(words).drop_front(piece.offset / 4);
      SmallVector<Value> operands{at};
      llvm::append_range(operands, from.take_front(piece.bytes / 4));
      if (piece.bytes == 16)
        emit(in, Ptx::StoreV4, operands);
      else if (piece.bytes == 8)
        emit(in, Ptx::StoreV2, operands);
      else if (piece.bytes == 4)
        emit(in, Ptx::Store32, operands);
      else
        emit(in, Ptx::Store16, {at, getHalf(words, piece.offset / 2, in)});
    }
  };
  auto part = [&](ImplicitLocOpBuilder &in) {
    for (int64_t i = 0, e = type.getNumElements(); i < e; ++i) {
      Value at = addBytes(address, element * i, in);
      Value exists = isBelow(i, op.getValid(), in);
      if (element == 4)
        emit(in, Ptx::Store32If, {at, words[i], exists});
      else
        emit(in, Ptx::Store16If, {at, getHalf(words, i, in), exists});
    }
  };
  splitTail(op.getValid(), constIndex(type.getNumElements(), b), b, whole,
            part);
  rewriter.eraseOp(op);
}

/// The greater halves of words, as unsigned numbers: of canonical floats of 16
/// bits, poison is the greatest.
static Value getMost(ValueRange words, ImplicitLocOpBuilder &b) {
  if (words.size() == 1)
    return LLVM::BitcastOp::create(b, VectorType::get({2}, b.getI16Type()),
                                   words.front());
  size_t half = words.size() / 2;
  return arith::MaxUIOp::create(b, getMost(words.take_front(half), b),
                                getMost(words.drop_front(half), b));
}

Value nvvm::holdsNoPoison(Value most, ImplicitLocOpBuilder &b) {
  Value both = LLVM::BitcastOp::create(b, b.getI32Type(), most);
  Value low = opWith(b, both, 16, [&](Value x, Value y) -> Value {
    return arith::ShLIOp::create(b, x, y);
  });
  Value greater = arith::MaxUIOp::create(b, both, low);
  return opWith(
      b, greater, kPoison32 & 0xFFFF0000, [&](Value x, Value y) -> Value {
        return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
      });
}

/// Loads give 32-bit words; pieces of 16 bits are widened. With `valid`, one
/// value an element, 0 where there is none.
Poll KernelLowering::pollPoison(PoisonLoadOp op, VectorType type,
                                ImplicitLocOpBuilder &b) {
  Value address = globalAddress(op.getMemref(), op.getOffset(), b);
  Value valid = op.getValid();
  int64_t alignment = getAlignment(op.getMemref(), op.getOffset());
  int64_t element = type.getElementTypeBitWidth() / 8;
  SmallVector<Piece> pieces = getPieces(getBytes(type), alignment);
  if (valid) {
    pieces.clear();
    for (int64_t i = 0, e = type.getNumElements(); i < e; ++i)
      pieces.push_back({element * i, element});
  }
  Poll poll;
  poll.kind = PollKind::Poison;
  poll.op = op;
  poll.wanted = toI64(epoch, b);
  for (Piece piece : pieces)
    poll.types.append(std::max<int64_t>(piece.bytes / 4, 1),
                      piece.bytes == 2 ? b.getI16Type() : b.getI32Type());
  poll.load = [=, this](ImplicitLocOpBuilder &in) {
    SmallVector<Value> loaded;
    for (auto [i, piece] : llvm::enumerate(pieces)) {
      Value at = addBytes(address, piece.offset, in);
      SmallVector<Value> operands{at};
      if (valid)
        operands.push_back(isBelow(i, valid, in));
      Type word =
          piece.bytes == 2 ? Type(in.getI16Type()) : Type(in.getI32Type());
      SmallVector<Type> results(std::max<int64_t>(piece.bytes / 4, 1), word);
      Ptx load = piece.bytes == 16  ? Ptx::LoadV4
                 : piece.bytes == 8 ? Ptx::LoadV2
                 : piece.bytes == 4 ? (valid ? Ptx::Load32If : Ptx::Load32)
                                    : (valid ? Ptx::Load16If : Ptx::Load16);
      llvm::append_range(loaded, emit(in, load, operands, results));
    }
    return loaded;
  };
  bool hasPairs =
      element == 2 && target.sm >= 90 && !valid &&
      llvm::all_of(poll.types, [](Type type) { return type.isInteger(32); });
  if (hasPairs)
    poll.most = [](ImplicitLocOpBuilder &in, ValueRange loaded) {
      return getMost(loaded, in);
    };
  poll.ready = [=](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    if (hasPairs)
      return holdsNoPoison(getMost(loaded, in), in);
    // 16-bit floats: a half word that is poison makes a half word of zeros,
    // from which the subtraction borrows.
    Value any, all;
    for (Value word : loaded) {
      if (element == 2 && word.getType().isInteger(32)) {
        auto binary = [&](Value x, int64_t y, bool isXor) -> Value {
          return opWith(in, x, y, [&](Value p, Value q) -> Value {
            if (isXor)
              return arith::XOrIOp::create(in, p, q);
            return arith::SubIOp::create(in, p, q);
          });
        };
        Value zero = binary(word, kPoison32, true);
        Value borrowed = arith::AndIOp::create(
            in, binary(zero, 0x00010001, false), binary(zero, -1, true));
        any = any ? arith::OrIOp::create(in, any, borrowed).getResult()
                  : borrowed;
        continue;
      }
      Value poison = arith::ConstantOp::create(
          in, in.getIntegerAttr(word.getType(),
                                APInt(word.getType().getIntOrFloatBitWidth(),
                                      kPoison32, false, true)));
      Value fresh =
          arith::CmpIOp::create(in, arith::CmpIPredicate::ne, word, poison);
      all = all ? arith::AndIOp::create(in, all, fresh).getResult() : fresh;
    }
    if (any) {
      Value marks = andWith(in, any, 0x80008000);
      Value none = opWith(in, marks, 0, [&](Value x, Value y) -> Value {
        return arith::CmpIOp::create(in, arith::CmpIPredicate::eq, x, y);
      });
      all = all ? arith::AndIOp::create(in, all, none).getResult() : none;
    }
    return all;
  };
  poll.seen = [this](ImplicitLocOpBuilder &in, ValueRange) {
    return constI64(0, in);
  };
  return poll;
}

Value nvvm::joinPoison(ValueRange loaded, VectorType type,
                       ImplicitLocOpBuilder &b) {
  // Half words come alone or at the end.
  SmallVector<Value> words;
  Value low;
  for (Value value : loaded) {
    if (value.getType().isInteger(32)) {
      words.push_back(value);
      continue;
    }
    Value wide = arith::ExtUIOp::create(b, b.getI32Type(), value);
    if (!low) {
      low = wide;
      continue;
    }
    Value high = opWith(b, wide, 16, [&](Value x, Value y) -> Value {
      return arith::ShLIOp::create(b, x, y);
    });
    words.push_back(arith::OrIOp::create(b, low, high));
    low = {};
  }
  if (low)
    words.push_back(low);
  return joinWords(words, type, b);
}

void KernelLowering::lowerPoisonFill(PoisonFillOp op, ImplicitLocOpBuilder &b) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  int64_t element = memref.getElementTypeBitWidth() / 8;
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  int64_t unit =
      std::min<int64_t>(getAlignment(op.getMemref(), op.getOffset()), 16);
  unit = std::max(unit, element);
  Value thread = toI64(threadNumber(b), b);
  int64_t threads = target.threads * target.cluster;
  auto fill = [&](Value from, Value to, int64_t bytes) {
    Type type = b.getIntegerType(8 * std::min<int64_t>(bytes, 4));
    Value value = arith::ConstantOp::create(
        b, b.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), kPoison32,
                                        false, true)));
    if (bytes > 4)
      value = vector::BroadcastOp::create(b, VectorType::get({bytes / 4}, type),
                                          value);
    Value first = arith::AddIOp::create(b, from, thread);
    auto loop = scf::ForOp::create(b, first, to, constI64(threads, b));
    ImplicitLocOpBuilder in(b.getLoc(), loop.getBody(),
                            loop.getBody()->begin());
    Value offset =
        arith::MulIOp::create(in, loop.getInductionVar(), constI64(bytes, in));
    LLVM::StoreOp::create(in, value, addBytes(address, offset, in), bytes);
  };
  Value all = toI64(op.getCount(), b);
  int64_t per = unit / element;
  if (per == 1) {
    fill(constI64(0, b), all, element);
  } else {
    Value units = b.createOrFold<arith::DivSIOp>(all, constI64(per, b));
    fill(constI64(0, b), units, unit);
    APInt known;
    if (!matchPattern(all, m_ConstantInt(&known)) ||
        known.getSExtValue() % per != 0)
      fill(b.createOrFold<arith::MulIOp>(units, constI64(per, b)), all,
           element);
  }
  rewriter.eraseOp(op);
}
