//===- PacketOps.cpp - Packets with flags, and poison -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/OpChecks.h"
#include "dialect/Packets.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::checks;

//===----------------------------------------------------------------------===//
// Packets
//===----------------------------------------------------------------------===//

/// The i64 that so many elements fill; nothing when it is not known.
static std::optional<int64_t> getUnits(std::optional<int64_t> elements,
                                       unsigned width, int64_t unitBits) {
  if (!elements || *elements < 0)
    return std::nullopt;
  int64_t bits;
  if (__builtin_mul_overflow(*elements, int64_t(width), &bits))
    return std::nullopt;
  return bits / unitBits + (bits % unitBits != 0);
}

/// Lines of 128 bytes. Vectors have been made of a tile that kept the rules of
/// lines.
template <typename PacketOp>
static LogicalResult verifyLines(PacketOp op, unsigned width) {
  constexpr int64_t memoryUnits = kLineUnits + kRestUnits;
  std::optional<int64_t> memory = getElements(op.getMemref().getType());
  if (!memory || *memory % memoryUnits != 0)
    return op.emitOpError()
           << "C6: lines lie in memory of a static number of i64, a multiple "
           << "of " << memoryUnits << ", not " << op.getMemref().getType();
  auto tile = dyn_cast<RankedTensorType>(op.getTile().getType());
  if (!tile)
    return success();
  int64_t elements = kLineBits / width;
  if (tile.hasStaticShape() && tile.getNumElements() % elements != 0)
    return op.emitOpError()
           << "C7: a tile of " << tile.getNumElements() << " elements of "
           << tile.getElementType() << " fills no whole number of lines; use a "
           << "multiple of " << elements << ", and `valid` for what exists";
  std::optional<int64_t> offset = getConstant(op.getOffset());
  if (offset && *offset % kLineUnits != 0)
    return op.emitOpError() << "C8: offset " << *offset << " is not a line's "
                            << "first; use a multiple of " << kLineUnits;
  return success();
}

template <typename PacketOp>
static LogicalResult verifyPacket(PacketOp op) {
  auto memory = cast<MemRefType>(op.getMemref().getType());
  if (!memory.getElementType().isSignlessInteger(64) ||
      !memory.getLayout().isIdentity() || memory.getMemorySpace())
    return op.emitOpError()
           << "C1: packets lie in contiguous memory of i64 in the default "
           << "space, not " << memory;
  Type tile = op.getTile().getType();
  unsigned width = getElementType(tile).getIntOrFloatBitWidth();
  if (width != 8 && width != 16 && width != 32 && width != 64)
    return op.emitOpError()
           << "C2: elements of 8, 16, 32 or 64 bits fill packets, "
           << getElementType(tile) << " does not; convert the tile";
  if (failed(isValid(op, "C3", op.getValid(), tile)))
    return failure();
  Assumption assumes = op.getAssumes();
  std::optional<int64_t> limit = getElements(memory);
  if (limit)
    limit = countUnits(*limit, assumes);
  if (failed(inRange(
          op, "C4", "packet memory", op.getOffset(),
          getUnits(getExtent(op.getValid(), tile), width, getUnitBits(assumes)),
          limit)) ||
      failed(verifyStaticTile(op, "C5", tile)))
    return failure();
  return areLines(assumes) ? verifyLines(op, width) : success();
}

LogicalResult PacketStoreOp::verify() { return verifyPacket(*this); }
LogicalResult PacketLoadOp::verify() { return verifyPacket(*this); }

//===----------------------------------------------------------------------===//
// Poison
//===----------------------------------------------------------------------===//

/// The types that have a NaN to spare.
static LogicalResult canPoison(Operation *op, StringRef constraint,
                               Type element) {
  if (element.isF32() || element.isF16() || element.isBF16())
    return success();
  return op->emitOpError() << constraint
                           << ": poison is a NaN of f32, f16 or bf16; "
                           << element << " has none to spare, use packets";
}

/// Contiguous and plain: poison in block or multicast memory has no reader.
static LogicalResult isPoisonMemory(Operation *op, StringRef constraint,
                                    Value memory) {
  auto type = cast<MemRefType>(memory.getType());
  if (type.getLayout().isIdentity() && !type.getMemorySpace())
    return success();
  return op->emitOpError()
         << constraint << ": poison lies in contiguous memory of the default "
         << "space, not " << type;
}

template <typename PoisonOp>
static LogicalResult verifyPoison(PoisonOp op) {
  Type tile = op.getTile().getType();
  if (failed(canPoison(op, "C1", getElementType(tile))) ||
      failed(sameElement(op, "C2", op.getTile(), "tile", op.getMemref(),
                         "memory")) ||
      failed(isPoisonMemory(op, "C3", op.getMemref())) ||
      failed(isValid(op, "C4", op.getValid(), tile)))
    return failure();
  if (failed(inRange(op, "C5", op.getMemref(), "memory", op.getOffset(),
                     getExtent(op.getValid(), tile))))
    return failure();
  return verifyStaticTile(op, "C6", tile);
}

LogicalResult PoisonStoreOp::verify() { return verifyPoison(*this); }
LogicalResult PoisonLoadOp::verify() { return verifyPoison(*this); }

LogicalResult PoisonFillOp::verify() {
  if (failed(canPoison(*this, "C1", getElementType(getMemref().getType()))) ||
      failed(isPoisonMemory(*this, "C2", getMemref())) ||
      failed(isCount(*this, "C3", getCount())))
    return failure();
  return inRange(*this, "C3", getMemref(), "memory", getOffset(),
                 getConstant(getCount()));
}
