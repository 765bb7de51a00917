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

/// Stores the part of `words` that starts at `piece`, to `address`.
static void storePiece(Value address, ArrayRef<Value> words, Piece piece,
                       ImplicitLocOpBuilder &b) {
  if (piece.bytes == 2) {
    emit(b, Ptx::Store16, {address, getHalf(words, piece.offset / 2, b)});
    return;
  }
  SmallVector<Value> operands{address};
  llvm::append_range(operands, words.slice(piece.offset / 4, piece.bytes / 4));
  emit(b,
       piece.bytes == 16  ? Ptx::StoreV4
       : piece.bytes == 8 ? Ptx::StoreV2
                          : Ptx::Store32,
       operands);
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
    for (Piece piece : getPieces(getBytes(type), alignment))
      storePiece(addBytes(address, piece.offset, in), words, piece, in);
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

/// i32 whose bits 15 or 31 are set where one of a word's two floats of 16 bits
/// is poison: it becomes a half word of zeros, from which the subtraction
/// borrows. (Bit 31 can be set by the lower half's borrow too, as bit 15 is
/// then.)
static Value markPoison(Value word, ImplicitLocOpBuilder &b) {
  auto flip = [&](Value x, int64_t bits) {
    return opWith(b, x, bits, [&](Value p, Value q) -> Value {
      return arith::XOrIOp::create(b, p, q);
    });
  };
  Value zero = flip(word, kPoison32);
  Value less = opWith(b, zero, 0x00010001, [&](Value x, Value y) -> Value {
    return arith::SubIOp::create(b, x, y);
  });
  return arith::AndIOp::create(b, less, flip(zero, -1));
}

/// i1: the only element of `word` is not poison.
static Value isFresh(Value word, ImplicitLocOpBuilder &b) {
  Type type = word.getType();
  Value poison = arith::ConstantOp::create(
      b, b.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), kPoison32,
                                      false, true)));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, word, poison);
}

/// i1: no element among what was loaded, each of `element` bytes, is poison.
static Value areFresh(ValueRange loaded, int64_t element,
                      ImplicitLocOpBuilder &b) {
  Value any, all;
  for (Value word : loaded) {
    if (element == 2 && word.getType().isInteger(32)) {
      Value marks = markPoison(word, b);
      any = any ? arith::OrIOp::create(b, any, marks).getResult() : marks;
      continue;
    }
    Value fresh = isFresh(word, b);
    all = all ? arith::AndIOp::create(b, all, fresh).getResult() : fresh;
  }
  if (!any)
    return all;
  Value none =
      opWith(b, andWith(b, any, 0x80008000), 0, [&](Value x, Value y) -> Value {
        return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
      });
  return all ? arith::AndIOp::create(b, all, none).getResult() : none;
}

/// The accesses of a poll: each element its own where some may not exist.
static SmallVector<Piece> getPollPieces(VectorType type, int64_t alignment,
                                        bool isPart) {
  if (!isPart)
    return getPieces(getBytes(type), alignment);
  int64_t element = type.getElementTypeBitWidth() / 8;
  SmallVector<Piece> pieces;
  for (int64_t i = 0, e = type.getNumElements(); i < e; ++i)
    pieces.push_back({element * i, element});
  return pieces;
}

/// Returns the types that a piece is loaded as: words of 32 bits, or one of 16.
static SmallVector<Type> getWords(Piece piece, Builder &b) {
  if (piece.bytes == 2)
    return {b.getI16Type()};
  return SmallVector<Type>(piece.bytes / 4, b.getI32Type());
}

/// Loads a piece; with `exists`, 0 where that does not hold.
static SmallVector<Value> loadPiece(Value address, Piece piece, Value exists,
                                    ImplicitLocOpBuilder &b) {
  SmallVector<Value> operands{address};
  if (exists)
    operands.push_back(exists);
  Ptx load = piece.bytes == 16  ? Ptx::LoadV4
             : piece.bytes == 8 ? Ptx::LoadV2
             : piece.bytes == 4 ? (exists ? Ptx::Load32If : Ptx::Load32)
                                : (exists ? Ptx::Load16If : Ptx::Load16);
  return emit(b, load, operands, getWords(piece, b));
}

/// Loads give 32-bit words; pieces of 16 bits are widened. With `valid`, one
/// value an element, 0 where there is none.
Poll KernelLowering::pollPoison(PoisonLoadOp op, VectorType type,
                                ImplicitLocOpBuilder &b) {
  Value address = globalAddress(op.getMemref(), op.getOffset(), b);
  Value valid = op.getValid();
  int64_t alignment = getAlignment(op.getMemref(), op.getOffset());
  int64_t element = type.getElementTypeBitWidth() / 8;
  SmallVector<Piece> pieces = getPollPieces(type, alignment, bool(valid));
  Poll poll;
  poll.kind = PollKind::Poison;
  poll.op = op;
  poll.wanted = toI64(epoch, b);
  for (Piece piece : pieces)
    llvm::append_range(poll.types, getWords(piece, b));
  poll.load = [=, this](ImplicitLocOpBuilder &in) {
    SmallVector<Value> loaded;
    for (auto [i, piece] : llvm::enumerate(pieces)) {
      Value at = addBytes(address, piece.offset, in);
      Value exists = valid ? isBelow(i, valid, in) : Value();
      llvm::append_range(loaded, loadPiece(at, piece, exists, in));
    }
    return loaded;
  };
  poll.seen = [this](ImplicitLocOpBuilder &in, ValueRange) {
    return constI64(0, in);
  };
  poll.ready = [=](ImplicitLocOpBuilder &in, ValueRange loaded) {
    return areFresh(loaded, element, in);
  };
  bool hasPairs =
      element == 2 && target.sm >= 90 && !valid &&
      llvm::all_of(poll.types, [](Type type) { return type.isInteger(32); });
  if (!hasPairs)
    return poll;
  poll.most = [](ImplicitLocOpBuilder &in, ValueRange loaded) {
    return getMost(loaded, in);
  };
  poll.ready = [](ImplicitLocOpBuilder &in, ValueRange loaded) {
    return holdsNoPoison(getMost(loaded, in), in);
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
