//===- TileLowering.cpp - Tiles, packets, poison and multimem -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles are vectors of one thread here, at most 16 lanes. What peers poll moves
// as 32-bit words, in accesses of up to 16 bytes where the alignment is known.
// Neighbouring polls of one block of IR are one poll.
//
//===----------------------------------------------------------------------===//

#include "dialect/Packets.h"

#include "lowering/nvvm/Conversions.h"
#include "lowering/nvvm/KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

//===----------------------------------------------------------------------===//
// Lanes and words
//===----------------------------------------------------------------------===//

FailureOr<VectorType> KernelLowering::getTileType(Operation *op, Value tile) {
  auto type = dyn_cast<VectorType>(tile.getType());
  if (!type || type.getRank() != 1 || type.isScalable() ||
      !type.hasStaticShape() || type.getNumElements() > 64)
    return op->emitOpError("has a tile of type ")
           << tile.getType()
           << ", not a short vector: run comms-distribute-tiles first";
  if (type.getElementTypeBitWidth() % 8 != 0)
    return op->emitOpError("has elements of ")
           << type.getElementTypeBitWidth()
           << " bits, which memory does not hold";
  return type;
}

static VectorType asIntegers(VectorType type, OpBuilder &b) {
  return VectorType::get(type.getShape(),
                         b.getIntegerType(type.getElementTypeBitWidth()));
}

static Value zeros(VectorType type, ImplicitLocOpBuilder &b) {
  return arith::ConstantOp::create(b, b.getZeroAttr(type));
}

static Value bitcast(Value vector, VectorType type, ImplicitLocOpBuilder &b) {
  if (vector.getType() == type)
    return vector;
  return vector::BitCastOp::create(b, type, vector);
}

static Value toIntegers(Value vector, ImplicitLocOpBuilder &b) {
  return bitcast(vector, asIntegers(cast<VectorType>(vector.getType()), b), b);
}

static int64_t getBytes(VectorType type) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

/// Lane i is on when i < count.
Value KernelLowering::laneMask(VectorType type, Value count,
                               ImplicitLocOpBuilder &b) {
  int64_t lanes = type.getNumElements();
  SmallVector<int64_t> numbers(lanes);
  for (int64_t i = 0; i < lanes; ++i)
    numbers[i] = i;
  auto lanesType = VectorType::get({lanes}, b.getI64Type());
  Value lane = arith::ConstantOp::create(
      b, DenseElementsAttr::get(lanesType, ArrayRef(numbers)));
  Value limit = vector::BroadcastOp::create(b, lanesType, toI64(count, b));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lane, limit);
}

/// i32: 1 when lane `lane` exists, else 0.
Value KernelLowering::isBelow(int64_t lane, Value count,
                              ImplicitLocOpBuilder &b) {
  Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                      constI64(lane, b), toI64(count, b));
  return arith::ExtUIOp::create(b, b.getI32Type(), below);
}

/// The tile with zeros (of all bits) from lane `valid` on; null: all valid.
Value KernelLowering::clearInvalid(Value tile, Value valid,
                                   ImplicitLocOpBuilder &b) {
  if (!valid)
    return tile;
  auto type = cast<VectorType>(tile.getType());
  Value cleared =
      arith::SelectOp::create(b, laneMask(type, valid, b), toIntegers(tile, b),
                              zeros(asIntegers(type, b), b));
  return bitcast(cleared, type, b);
}

/// 32-bit words that hold the tile, low element first, the last padded with
/// zeros.
static SmallVector<Value> packWords(Value tile, ImplicitLocOpBuilder &b) {
  Value integers = toIntegers(tile, b);
  auto type = cast<VectorType>(integers.getType());
  int64_t lanes = type.getNumElements(), width = type.getElementTypeBitWidth();
  int64_t words = llvm::divideCeil(lanes * width, 32);
  int64_t padded = words * 32 / width;
  if (padded != lanes) {
    SmallVector<int64_t> order(padded, lanes); // Lane `lanes` is a zero.
    for (int64_t i = 0; i < lanes; ++i)
      order[i] = i;
    integers = vector::ShuffleOp::create(b, integers, zeros(type, b), order);
  }
  Value all = bitcast(integers, VectorType::get({words}, b.getI32Type()), b);
  SmallVector<Value> result;
  for (int64_t i = 0; i < words; ++i)
    result.push_back(vector::ExtractOp::create(b, all, i));
  return result;
}

static Value unpackWords(ValueRange words, VectorType tile,
                         ImplicitLocOpBuilder &b) {
  int64_t lanes = tile.getNumElements(), width = tile.getElementTypeBitWidth();
  int64_t count = words.size(), padded = count * 32 / width;
  Value all = vector::FromElementsOp::create(
      b, VectorType::get({count}, b.getI32Type()), words);
  Value integers =
      bitcast(all, VectorType::get({padded}, b.getIntegerType(width)), b);
  if (padded != lanes) {
    SmallVector<int64_t> order(lanes);
    for (int64_t i = 0; i < lanes; ++i)
      order[i] = i;
    integers = vector::ShuffleOp::create(b, integers, integers, order);
  }
  return bitcast(integers, tile, b);
}

/// Accesses that make up `bytes` bytes at an address of known alignment, the
/// widest first.
static SmallVector<Piece> getPieces(int64_t bytes, int64_t alignment) {
  SmallVector<Piece> pieces;
  for (int64_t at = 0; at < bytes;) {
    int64_t size = std::min<int64_t>(
        {16, alignment, int64_t(llvm::bit_floor(uint64_t(bytes - at)))});
    pieces.push_back({at, size});
    at += size;
  }
  return pieces;
}

/// Words of a tile that hold `valid` elements, as an index; null: all.
static Value countWords(VectorType tile, Value valid, ImplicitLocOpBuilder &b) {
  if (!valid)
    return {};
  int64_t width = tile.getElementTypeBitWidth();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, b.getLoc(), value);
  };
  if (width >= 32)
    return b.createOrFold<arith::MulIOp>(valid, constant(width / 32));
  int64_t perWord = 32 / width;
  Value up = b.createOrFold<arith::AddIOp>(valid, constant(perWord - 1));
  return b.createOrFold<arith::DivSIOp>(up, constant(perWord));
}

/// Runs `whole` when all lanes are valid, else `part`; only `whole` when there
/// is no count.
static void splitTail(Value count, Value lanes, ImplicitLocOpBuilder &b,
                      llvm::function_ref<void(ImplicitLocOpBuilder &)> whole,
                      llvm::function_ref<void(ImplicitLocOpBuilder &)> part) {
  if (!count)
    return whole(b);
  Value full =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, count, lanes);
  auto branch = scf::IfOp::create(b, full, /*withElseRegion=*/true);
  ImplicitLocOpBuilder yes(b.getLoc(), branch.thenYield());
  whole(yes);
  ImplicitLocOpBuilder no(b.getLoc(), branch.elseYield());
  part(no);
}

//===----------------------------------------------------------------------===//
// Plain tiles
//===----------------------------------------------------------------------===//

void KernelLowering::lowerTileLoad(TileLoadOp op, VectorType type,
                                   ImplicitLocOpBuilder &b) {
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment =
      std::min<int64_t>(getAlignment(op.getMemref(), op.getOffset()), 16);
  auto integers = asIntegers(type, b);
  Value loaded;
  if (op.getValid())
    loaded = LLVM::MaskedLoadOp::create(
        b, integers, address, laneMask(type, op.getValid(), b),
        zeros(integers, b), b.getI32IntegerAttr(alignment));
  else
    loaded = LLVM::LoadOp::create(b, integers, address, alignment);
  rewriter.replaceOp(op, bitcast(loaded, type, b));
}

void KernelLowering::lowerTileStore(TileStoreOp op, VectorType type,
                                    ImplicitLocOpBuilder &b) {
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment =
      std::min<int64_t>(getAlignment(op.getMemref(), op.getOffset()), 16);
  Value integers = toIntegers(op.getTile(), b);
  if (op.getValid())
    LLVM::MaskedStoreOp::create(b, integers, address,
                                laneMask(type, op.getValid(), b),
                                b.getI32IntegerAttr(alignment));
  else
    LLVM::StoreOp::create(b, integers, address, alignment);
  rewriter.eraseOp(op);
}

//===----------------------------------------------------------------------===//
// Packets
//===----------------------------------------------------------------------===//

void KernelLowering::lowerPacketStore(PacketStoreOp op, VectorType type,
                                      ImplicitLocOpBuilder &b) {
  SmallVector<Value> words =
      packWords(clearInvalid(op.getTile(), op.getValid(), b), b);
  Value address = globalAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment = getAlignment(op.getMemref(), op.getOffset());
  Value count = countWords(type, op.getValid(), b), flag = op.getFlag();
  int64_t size = words.size();
  auto whole = [&](ImplicitLocOpBuilder &in) {
    for (Piece piece : getPieces(8 * size, std::max<int64_t>(alignment, 8))) {
      Value at = addBytes(address, piece.offset, in);
      int64_t i = piece.offset / 8;
      if (piece.bytes == 16)
        emit(in, Ptx::StoreV4, {at, words[i], flag, words[i + 1], flag});
      else
        emit(in, Ptx::StoreV2, {at, words[i], flag});
    }
  };
  auto part = [&](ImplicitLocOpBuilder &in) {
    for (int64_t i = 0; i < size; ++i)
      emit(in, Ptx::StoreV2If,
           {addBytes(address, 8 * i, in), words[i], flag,
            isBelow(i, count, in)});
  };
  splitTail(count, constIndex(size, b), b, whole, part);
  rewriter.eraseOp(op);
}

/// Loads give word, flag, word, flag, …
Poll KernelLowering::pollPackets(PacketLoadOp op, VectorType type,
                                 ImplicitLocOpBuilder &b) {
  int64_t size = llvm::divideCeil(
      type.getNumElements() * type.getElementTypeBitWidth(), 32);
  Value address = globalAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment = getAlignment(op.getMemref(), op.getOffset());
  Value count = countWords(type, op.getValid(), b), flag = op.getFlag();
  Poll poll;
  poll.kind = PollKind::Packet;
  poll.op = op;
  poll.wanted = arith::ExtUIOp::create(b, b.getI64Type(), flag);
  poll.types.assign(2 * size, b.getI32Type());
  poll.load = [=, this](ImplicitLocOpBuilder &in) {
    Type i32 = in.getI32Type();
    SmallVector<Value> loaded;
    if (count) {
      for (int64_t i = 0; i < size; ++i)
        llvm::append_range(
            loaded, emit(in, Ptx::LoadV2If,
                         {addBytes(address, 8 * i, in), isBelow(i, count, in)},
                         {i32, i32}));
      return loaded;
    }
    for (Piece piece : getPieces(8 * size, std::max<int64_t>(alignment, 8))) {
      Value at = addBytes(address, piece.offset, in);
      SmallVector<Type> results(piece.bytes / 4, i32);
      llvm::append_range(loaded,
                         emit(in, piece.bytes == 16 ? Ptx::LoadV4 : Ptx::LoadV2,
                              {at}, results));
    }
    return loaded;
  };
  poll.ready = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) {
    Value all;
    for (int64_t i = 0; i < size; ++i) {
      Value fresh = arith::CmpIOp::create(in, arith::CmpIPredicate::eq,
                                          loaded[2 * i + 1], flag);
      if (count) { // A packet that does not exist needs no flag.
        Value absent =
            arith::CmpIOp::create(in, arith::CmpIPredicate::eq,
                                  isBelow(i, count, in), constI32(0, in));
        fresh = arith::OrIOp::create(in, fresh, absent);
      }
      all = all ? arith::AndIOp::create(in, all, fresh).getResult() : fresh;
    }
    return all;
  };
  poll.seen = [=](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    // The first flag that is not the one.
    Value seen = loaded[2 * size - 1];
    for (int64_t i = size - 1; i-- > 0;) {
      Value old = loaded[2 * i + 1];
      Value fresh =
          arith::CmpIOp::create(in, arith::CmpIPredicate::eq, old, flag);
      seen = arith::SelectOp::create(in, fresh, seen, old);
    }
    return arith::ExtUIOp::create(in, in.getI64Type(), seen);
  };
  return poll;
}

//===----------------------------------------------------------------------===//
// Lines of packets
//===----------------------------------------------------------------------===//

/// Bytes of a line that one access of a thread moves; 32-bit words of that.
static constexpr int64_t partBytes = 16, partWords = partBytes / 4;
static constexpr int64_t lineBytes = kLineBits / 8;
static constexpr int64_t lineThreads = lineBytes / partBytes;

/// Eight threads store a line in one instruction, on which it rests that it is
/// seen whole: their warp has all of its threads here, in one place.
LogicalResult KernelLowering::checkLines(Operation *op, Value memref,
                                         VectorType type) {
  if (target.threads % 32 != 0)
    return op->emitOpError("moves lines, which threads of a warp share: run "
                           "comms-distribute-tiles with threads");
  if (getBytes(type) % partBytes != 0)
    return op->emitOpError("moves ")
           << getBytes(type) << " bytes of a line, not a multiple of "
           << partBytes << ": run comms-distribute-tiles first";
  if (getAlignment(memref) < lineBytes)
    return op->emitOpError("moves lines of memory that is not known to be "
                           "aligned to ")
           << lineBytes << " bytes: use a window itself, not a view of it";
  return success();
}

LinePart KernelLowering::findLine(Value memref, Value offset, Value valid,
                                  ImplicitLocOpBuilder &b) {
  LinePart part;
  part.address = globalAddress(memref, offset, b);
  auto index = [&](int64_t value) { return constIndex(value, b); };
  Value line = arith::DivUIOp::create(b, offset, index(kLineUnits));
  Value rest = arith::MulIOp::create(b, line, index(kRestUnits));
  int64_t elements = cast<MemRefType>(memref.getType()).getNumElements();
  rest = arith::AddIOp::create(
      b, rest, index(countUnits(elements, Assumption::Store128Whole)));
  part.rest = globalAddress(memref, rest, b);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value lastThread = constI32(lineThreads - 1, b);
  part.isLast = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, arith::AndIOp::create(b, thread, lastThread),
      lastThread);
  part.hasRest = arith::ExtUIOp::create(b, b.getI32Type(), part.isLast);
  if (!valid)
    return part;
  // The line is there if its first thread has anything valid.
  constexpr int64_t segments = ((32 - lineThreads) << 8) | 31;
  part.exists = NVVM::ShflOp::create(
      b, b.getI32Type(), constI32(-1, b), isBelow(0, valid, b), constI32(0, b),
      constI32(segments, b), NVVM::ShflKind::idx, UnitAttr());
  part.hasRest = arith::AndIOp::create(b, part.hasRest, part.exists);
  return part;
}

LogicalResult KernelLowering::lowerLineStore(PacketStoreOp op, VectorType type,
                                             ImplicitLocOpBuilder &b) {
  if (failed(checkLines(op, op.getMemref(), type)))
    return failure();
  SmallVector<Value> words =
      packWords(clearInvalid(op.getTile(), op.getValid(), b), b);
  LinePart part = findLine(op.getMemref(), op.getOffset(), op.getValid(), b);
  Value flag = op.getFlag();
  NVVM::SyncWarpOp::create(b, constI32(-1, b));
  for (size_t i = 0; i < words.size(); i += partWords) {
    int64_t line = i / partWords;
    // Where the flag stands, the data goes to the rest.
    Value third = arith::SelectOp::create(b, part.isLast, flag, words[i + 2]);
    Value fourth = arith::SelectOp::create(b, part.isLast, flag, words[i + 3]);
    SmallVector<Value> stored{addBytes(part.address, line * lineBytes, b),
                              words[i], words[i + 1], third, fourth};
    if (part.exists)
      stored.push_back(part.exists);
    emit(b, part.exists ? Ptx::StoreV4If : Ptx::StoreV4, stored);
    emit(b, Ptx::StoreV4If,
         {addBytes(part.rest, line * kRestUnits * 8, b), words[i + 2],
          words[i + 3], flag, flag, part.hasRest});
  }
  rewriter.eraseOp(op);
  return success();
}

/// Loads give, for each line, four words of it and four of its rest.
Poll KernelLowering::pollLines(PacketLoadOp op, VectorType type,
                               ImplicitLocOpBuilder &b) {
  LinePart part = findLine(op.getMemref(), op.getOffset(), op.getValid(), b);
  int64_t lines = getBytes(type) / partBytes;
  Value flag = op.getFlag(), all = constI32(-1, b);
  Poll poll;
  poll.kind = PollKind::Packet;
  poll.op = op;
  poll.together = true;
  poll.wanted = arith::ExtUIOp::create(b, b.getI64Type(), flag);
  poll.types.assign(2 * partWords * lines, b.getI32Type());
  poll.load = [=, this](ImplicitLocOpBuilder &in) {
    SmallVector<Type> results(partWords, in.getI32Type());
    SmallVector<Value> loaded;
    NVVM::SyncWarpOp::create(in, all);
    for (int64_t line = 0; line < lines; ++line) {
      SmallVector<Value> from{addBytes(part.address, line * lineBytes, in)};
      if (part.exists)
        from.push_back(part.exists);
      llvm::append_range(
          loaded,
          emit(in, part.exists ? Ptx::LoadV4If : Ptx::LoadV4, from, results));
      llvm::append_range(
          loaded,
          emit(in, Ptx::LoadV4If,
               {addBytes(part.rest, line * kRestUnits * 8, in), part.hasRest},
               results));
    }
    return loaded;
  };
  // Only the last thread sees flags: in the line, and in its rest.
  auto missing = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) {
    Value any = constI32(0, in);
    for (size_t i = partWords - 1; i < loaded.size(); i += partWords)
      any = arith::OrIOp::create(in, any,
                                 arith::XOrIOp::create(in, loaded[i], flag));
    return any;
  };
  poll.ready = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    Value zero = constI32(0, in);
    Value here = arith::SelectOp::create(
        in,
        arith::CmpIOp::create(in, arith::CmpIPredicate::ne, part.hasRest, zero),
        missing(in, loaded), zero);
    return arith::CmpIOp::create(in, arith::CmpIPredicate::eq, here, zero);
  };
  poll.seen = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    // What the last thread sees: the first flag that is not the one.
    Value seen = loaded.back();
    for (size_t i = loaded.size() - 1; i > size_t(partWords);) {
      i -= partWords;
      Value fresh =
          arith::CmpIOp::create(in, arith::CmpIPredicate::eq, loaded[i], flag);
      seen = arith::SelectOp::create(in, fresh, seen, loaded[i]);
    }
    constexpr int64_t segments = ((32 - lineThreads) << 8) | 31;
    seen = NVVM::ShflOp::create(
        in, in.getI32Type(), all, seen, constI32(lineThreads - 1, in),
        constI32(segments, in), NVVM::ShflKind::idx, UnitAttr());
    return arith::ExtUIOp::create(in, in.getI64Type(), seen);
  };
  return poll;
}

/// The words of a tile of what a poll of lines has loaded.
SmallVector<Value> KernelLowering::joinLines(ValueRange loaded,
                                             ImplicitLocOpBuilder &b) {
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value last = constI32(lineThreads - 1, b);
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                            arith::AndIOp::create(b, thread, last), last);
  SmallVector<Value> words;
  for (; !loaded.empty(); loaded = loaded.drop_front(2 * partWords)) {
    ValueRange rest = loaded.drop_front(partWords);
    llvm::append_range(words, loaded.take_front(2));
    for (int64_t i : {0, 1})
      words.push_back(
          arith::SelectOp::create(b, isLast, rest[i], loaded[i + 2]));
  }
  return words;
}

//===----------------------------------------------------------------------===//
// Poison
//===----------------------------------------------------------------------===//

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
  SmallVector<Value> words = packWords(op.getTile(), b);
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

/// The tile of what a poison poll has loaded.
static Value joinPoison(ValueRange loaded, VectorType type,
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
  return unpackWords(words, type, b);
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

//===----------------------------------------------------------------------===//
// Groups of polls
//===----------------------------------------------------------------------===//

/// Polls that stand next to each other become one: all loads, then the checks.
LogicalResult KernelLowering::lowerPollGroup(Operation *first) {
  // At most so many words in flight, for the registers that they take.
  constexpr size_t kMostWords = 96;
  SmallVector<Operation *> group;
  SmallVector<Poll> polls;
  size_t words = 0;
  rewriter.setInsertionPoint(first);
  ImplicitLocOpBuilder b(first->getLoc(), rewriter);
  for (Operation *op = first; isa_and_present<PacketLoadOp, PoisonLoadOp>(op);
       op = op->getNextNode()) {
    FailureOr<VectorType> type =
        getTileType(op, cast<TileOpInterface>(op).getTileValue());
    if (failed(type))
      return failure();
    size_t more =
        llvm::divideCeil(getBytes(*type), 4) * (isa<PacketLoadOp>(op) ? 2 : 1);
    if (!group.empty() && words + more > kMostWords)
      break;
    words += more;
    group.push_back(op);
    auto packet = dyn_cast<PacketLoadOp>(op);
    bool lines = packet && areLines(packet.getAssumes());
    if (lines && failed(checkLines(op, packet.getMemref(), *type)))
      return failure();
    if (packet)
      polls.push_back(lines ? pollLines(packet, *type, b)
                            : pollPackets(packet, *type, b));
    else
      polls.push_back(pollPoison(cast<PoisonLoadOp>(op), *type, b));
  }
  SmallVector<Value> loaded = emitPolls(polls, b);
  ValueRange rest(loaded);
  for (auto [op, poll] : llvm::zip_equal(group, polls)) {
    b.setInsertionPoint(op);
    ValueRange mine = rest.take_front(poll.types.size());
    rest = rest.drop_front(poll.types.size());
    auto type = cast<VectorType>(op->getResult(0).getType());
    Value tile;
    if (auto packet = dyn_cast<PacketLoadOp>(op)) {
      SmallVector<Value> data;
      if (areLines(packet.getAssumes()))
        data = joinLines(mine, b);
      else
        for (size_t i = 0; i < mine.size(); i += 2)
          data.push_back(mine[i]);
      tile = clearInvalid(unpackWords(data, type, b), packet.getValid(), b);
    } else {
      tile = joinPoison(mine, type, b);
    }
    done.insert(op);
    rewriter.replaceOp(op, tile);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Multimem
//===----------------------------------------------------------------------===//

/// The multicast address that `memref` stands for: a parameter, or what NCCL
/// said (comms-call-nccl).
FailureOr<Value> KernelLowering::multicastAddress(Operation *op, Value memref,
                                                  ImplicitLocOpBuilder &b) {
  auto cast = memref.getDefiningOp<UnrealizedConversionCastOp>();
  if (cast && cast.getNumOperands() == 1 &&
      cast.getOperand(0).getType().isInteger(64))
    return Value(LLVM::IntToPtrOp::create(b, global, cast.getOperand(0)));
  auto view = memref.getDefiningOp<MultimemOp>();
  if (!view)
    return op->emitOpError(
        "needs the result of comms.multimem itself, not a view of it");
  FailureOr<unsigned> argument = getArgument(op, view.getWindow());
  if (failed(argument))
    return failure();
  return parameter(multicast[*argument], global, b);
}

LogicalResult KernelLowering::lowerMultimem(Operation *op,
                                            ImplicitLocOpBuilder &b) {
  auto load = dyn_cast<MultimemLoadReduceOp>(op);
  auto store = dyn_cast<MultimemStoreOp>(op);
  auto reduce = dyn_cast<MultimemReduceOp>(op);
  Value memref = load    ? load.getMemref()
                 : store ? store.getMemref()
                         : reduce.getMemref();
  Value offset = load    ? load.getOffset()
                 : store ? store.getOffset()
                         : reduce.getOffset();
  Value valid = load    ? load.getValid()
                : store ? store.getValid()
                        : reduce.getValid();
  Value tile = load    ? load.getTile()
               : store ? store.getTile()
                       : reduce.getTile();
  if (target.sm < 90)
    return op->emitOpError("needs multimem instructions, which sm_")
           << target.sm << " does not have: set a chip from sm_90 on";
  FailureOr<VectorType> type = getTileType(op, tile);
  if (failed(type))
    return failure();
  FailureOr<Value> base = multicastAddress(op, memref, b);
  if (failed(base))
    return failure();
  Type element = type->getElementType();
  if (!store) {
    ReductionKind kind = load ? load.getKind() : reduce.getKind();
    if (!hasMultimem(kind, element, bool(load)))
      return op->emitOpError("asks for ")
             << stringifyReductionKind(kind) << " of " << element
             << ", which multimem instructions do not have: use sum, or min "
                "and "
                "max of f16, bf16 and i32";
  }
  if (valid)
    return op->emitOpError("has a tile that is not whole, which multimem "
                           "instructions cannot move: pad the array to whole "
                           "vectors of 16 bytes");
  int64_t size = element.getIntOrFloatBitWidth() / 8;
  int64_t alignment =
      std::min<int64_t>(16, getDivisor(offset) * (size & -size));
  if (getBytes(*type) % 4 != 0 || alignment < 4)
    return op->emitOpError("moves ")
           << getBytes(*type) << " bytes at an alignment of " << alignment
           << ": multimem instructions need whole words of 4 bytes";
  Value address = addBytes(*base, scale(offset, element, b), b);
  SmallVector<Value> words;
  if (!load) {
    words = packWords(tile, b);
    if (reduce && element.isF32())
      for (Value &word : words)
        word = arith::BitcastOp::create(b, element, word);
  }
  for (Piece piece : getPieces(getBytes(*type), alignment)) {
    Value at = addBytes(address, piece.offset, b);
    int64_t count = piece.bytes / 4;
    if (load) {
      for (Value word :
           emitMultimemLoadReduce(b, load.getKind(), element, at, count))
        words.push_back(
            word.getType().isF32()
                ? arith::BitcastOp::create(b, b.getI32Type(), word).getResult()
                : word);
      continue;
    }
    ValueRange mine = ValueRange(words).slice(piece.offset / 4, count);
    if (store)
      emitMultimemStore(b, at, mine);
    else
      emitMultimemReduce(b, reduce.getKind(), element, at, mine);
  }
  if (load)
    rewriter.replaceOp(op, unpackWords(words, *type, b));
  else
    rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerTileOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  if (isa<MultimemLoadReduceOp, MultimemStoreOp, MultimemReduceOp>(op))
    return lowerMultimem(op, b);
  if (isa<PacketLoadOp, PoisonLoadOp>(op))
    return lowerPollGroup(op);
  if (auto fill = dyn_cast<PoisonFillOp>(op)) {
    lowerPoisonFill(fill, b);
    return success();
  }
  FailureOr<VectorType> type =
      getTileType(op, cast<TileOpInterface>(op).getTileValue());
  if (failed(type))
    return failure();
  if (auto load = dyn_cast<TileLoadOp>(op))
    lowerTileLoad(load, *type, b);
  else if (auto store = dyn_cast<TileStoreOp>(op))
    lowerTileStore(store, *type, b);
  else if (auto packet = dyn_cast<PacketStoreOp>(op)) {
    if (areLines(packet.getAssumes()))
      return lowerLineStore(packet, *type, b);
    lowerPacketStore(packet, *type, b);
  } else
    lowerPoisonStore(cast<PoisonStoreOp>(op), *type, b);
  return success();
}
