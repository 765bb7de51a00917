//===- CopyOps.cpp - Multimem, bulk and copy-engine copies ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/OpChecks.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::checks;

//===----------------------------------------------------------------------===//
// Multimem
//===----------------------------------------------------------------------===//

static bool isSpace(Value memory, MemorySpace wanted) {
  auto space = dyn_cast_or_null<MemorySpaceAttr>(
      cast<MemRefType>(memory.getType()).getMemorySpace());
  return space && space.getValue() == wanted;
}

/// Whether a number of elements fills whole 32-bit words: the switch has no
/// smaller access.
static bool fillsWords(std::optional<int64_t> elements, unsigned width) {
  return !elements || width >= 32 || *elements % (32 / width) == 0;
}

template <typename MultimemAccessOp>
static LogicalResult verifyMultimem(MultimemAccessOp op) {
  auto memory = cast<MemRefType>(op.getMemref().getType());
  Type tile = op.getTile().getType();
  if (!isSpace(op.getMemref(), MemorySpace::Multimem))
    return op.emitOpError() << "C1: the memory is a multimem view, which "
                               "comms.multimem makes, not "
                            << memory;
  if (failed(sameElement(op, "C2", op.getTile(), "tile", op.getMemref(),
                         "memory")))
    return failure();
  if (!isStorable(memory.getElementType()))
    return op.emitOpError() << "C2: elements are floats or integers of 8, 16, "
                               "32 or 64 bits, not "
                            << memory.getElementType();
  if (!memory.getLayout().isIdentity())
    return op.emitOpError() << "C3: " << memory << " is not contiguous";
  if (failed(isValid(op, "C4", op.getValid(), tile)) ||
      failed(inRange(op, "C5", op.getMemref(), "memory", op.getOffset(),
                     getExtent(op.getValid(), tile))))
    return failure();
  unsigned width = memory.getElementTypeBitWidth();
  if (!fillsWords(getExtent(op.getValid(), tile), width) ||
      !fillsWords(getConstant(op.getOffset()), width))
    return op.emitOpError()
           << "C6: offset and number of elements fill whole words of 32 bits; "
           << "elements of " << memory.getElementType() << " come in groups of "
           << 32 / width;
  return success();
}

/// What the switch can compute: PTX's table of types and operations.
static bool canReduce(ReductionKind kind, Type element) {
  switch (kind) {
  case ReductionKind::Sum:
    return element.isF16() || element.isBF16() || element.isF32() ||
           element.isF64() || element.isSignlessInteger(32) ||
           element.isSignlessInteger(64);
  case ReductionKind::Min:
  case ReductionKind::Max:
    return element.isF16() || element.isBF16() ||
           element.isSignlessInteger(32) || element.isSignlessInteger(64);
  case ReductionKind::And:
  case ReductionKind::Or:
  case ReductionKind::Xor:
    return element.isSignlessInteger(32) || element.isSignlessInteger(64);
  case ReductionKind::Prod:
  case ReductionKind::Avg:
    return false;
  }
  return false;
}

template <typename MultimemReducingOp>
static LogicalResult verifyMultimemReduction(MultimemReducingOp op) {
  if (failed(verifyMultimem(op)))
    return failure();
  Type element = getElementType(op.getTile().getType());
  if (canReduce(op.getKind(), element))
    return verifyStaticTile(op, "C8", op.getTile().getType());
  return op.emitOpError() << "C7: the switch has no "
                          << stringifyReductionKind(op.getKind()) << " of "
                          << element
                          << "; load each peer's part and combine the tiles";
}

LogicalResult MultimemLoadReduceOp::verify() {
  return verifyMultimemReduction(*this);
}
LogicalResult MultimemStoreOp::verify() {
  if (failed(verifyMultimem(*this)))
    return failure();
  return verifyStaticTile(*this, "C7", getTile().getType());
}
LogicalResult MultimemReduceOp::verify() {
  return verifyMultimemReduction(*this);
}

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

/// Whether a constant number of elements is a whole number of 16-byte pieces.
static bool fillsPieces(Value elements, unsigned width) {
  std::optional<int64_t> number = getConstant(elements);
  constexpr int64_t bits = 16 * 8;
  // Reduced first, so that no huge number overflows.
  return !number || (*number % bits) * (width % bits) % bits == 0;
}

LogicalResult BulkCopyOp::verify() {
  std::optional<int64_t> count = getConstant(getCount());
  if (failed(sameElement(*this, "C1", getSource(), "source", getDest(),
                         "destination")) ||
      failed(verifyPlainMemory(*this, "C2", getSource().getType(), "source")) ||
      failed(
          verifyPlainMemory(*this, "C2", getDest().getType(), "destination")) ||
      failed(isCount(*this, "C3", getCount())) ||
      failed(inRange(*this, "C3", getSource(), "source", getSourceOffset(),
                     count)) ||
      failed(inRange(*this, "C3", getDest(), "destination", getDestOffset(),
                     count)))
    return failure();
  Type element = getElementType(getSource().getType());
  if (!isStorable(element))
    return emitOpError() << "C1: elements are floats or integers of 8, 16, 32 "
                            "or 64 bits, not "
                         << element;
  unsigned width = element.getIntOrFloatBitWidth();
  for (Value elements : {getCount(), getSourceOffset(), getDestOffset()})
    if (!fillsPieces(elements, width))
      return emitOpError() << "C4: " << *getConstant(elements)
                           << " elements of " << element
                           << " are not a multiple of 16 bytes, which offsets "
                              "and count must be";
  if (getToken().use_empty())
    return emitOpError("C5: this copy needs a comms.bulk_wait");
  for (Operation *user : getToken().getUsers())
    if (!isa<BulkWaitOp>(user))
      return emitOpError(
          "C5: only comms.bulk_wait may use the token of a copy in flight; for "
          "what follows the copy, use the token of comms.bulk_wait");
  return success();
}

LogicalResult BulkWaitOp::verify() {
  if (getCopies().empty())
    return emitOpError(
        "C1: must wait for at least one copy; pass the copies' tokens");
  llvm::SmallDenseSet<Value> seen;
  for (Value copy : getCopies()) {
    if (!copy.getDefiningOp<BulkCopyOp>())
      return emitOpError(
          "C2: each token must be the result of a comms.bulk_copy");
    if (!seen.insert(copy).second)
      return emitOpError("C3: the same copy is passed twice");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Copy engine
//===----------------------------------------------------------------------===//

LogicalResult EngineCopyOp::verify() {
  std::optional<int64_t> count = getConstant(getCount());
  if (failed(sameElement(*this, "C1", getSource(), "source", getWindow(),
                         "window")) ||
      failed(verifyPlainMemory(*this, "C2", getSource().getType(), "source")))
    return failure();
  if (isSpace(getSource(), MemorySpace::Scratch) ||
      getSource().getDefiningOp<ScratchOp>())
    return emitOpError(
        "C2: the source is memory of one block, which the host cannot address; "
        "copy it to a memref argument first");
  if (failed(isCount(*this, "C3", getCount())) ||
      failed(inRange(*this, "C3", getSource(), "source", getSourceOffset(),
                     count)) ||
      failed(inRange(*this, "C3", getWindow(), "window", getOffset(), count)) ||
      failed(isPeer(*this, "C4", getPeer(), getTeam())))
    return failure();
  if (isa_and_nonnull<KernelOp>((*this)->getParentOp()))
    return success();
  return emitOpError(
      "C5: the host starts a copy by the engine: place it at the top level of "
      "a kernel, outside loops, branches and roles");
}
