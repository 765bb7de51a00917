//===- ContractShape.cpp - How threads share a matrix product -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of a product that a CTA computes at a time, the blocks of it that
// each warp or group of warps computes, and the stages that fit shared memory.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractShape.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// Registers of a thread that hold sums, at most.
static constexpr int64_t kMostSums = 128;
/// The same, for elements of 8 bits: more registers hold a portion's sums.
static constexpr int64_t kMostByteSums = 96;
/// The same, if as many registers hold a stage's sums until scales multiply
/// them.
static constexpr int64_t kMostScaledSums = 64;
/// Registers that hold other values, at least.
static constexpr int64_t kOtherRegisters = 40;
/// Sums of a thread whose warp multiplies one block by 16 columns.
static constexpr int64_t kLeastSums = 8;
/// Stages at most; of elements of 8 bits, which are multiplied faster.
static constexpr int64_t kMostStages = 4, kMostByteStages = 6;
/// Stages at least if groups multiply while the threads go on: one for the
/// running products, one for the products before them, and one for copies.
static constexpr int64_t kLeastStages = 3;

/// Registers of a thread of a CTA of `threads`: each of the four parts of a
/// multiprocessor has its registers, and a fourth of the warps.
static int64_t getRegisters(int64_t threads) {
  constexpr int64_t kParts = 4, kOfPart = int64_t(16) << 10, kMost = 255;
  int64_t warps = llvm::divideCeil(threads / 32, kParts);
  return std::min(kMost, kOfPart / (warps * 32) / 8 * 8);
}

/// How many sums a thread has at most. Threads that have fewer registers have
/// fewer sums.
static int64_t getMostSums(ContractOp op, const ContractShape &shape,
                           int64_t threads) {
  OperandScales columns = op.getScales(/*isLhs=*/false);
  bool ofEachColumn = columns.terms > 0 && columns.across == 1;
  int64_t most = shape.elementBytes == 1 ? kMostByteSums : kMostSums;
  if (shape.hasBlockScales && (shape.elementBytes > 1 || ofEachColumn))
    most = kMostScaledSums;
  int64_t free = std::min(getRegisters(threads) - kOtherRegisters, kMostSums);
  return std::max(kLeastSums, most * free / kMostSums);
}

/// Blocks of 16 (64) rows and 16 columns for each of `warps` warps (groups);
/// false: a thread would have more than `most` sums.
static bool assignWarpTiles(int64_t warps, int64_t most, ContractShape &shape) {
  int64_t down = llvm::divideCeil(shape.rows, shape.getBlockRows()),
          across = llvm::divideCeil(shape.columns, 16), best = -1;
  for (int64_t warpRows = 1; warpRows <= warps; warpRows *= 2) {
    int64_t warpColumns = warps / warpRows;
    int64_t m = llvm::divideCeil(down, warpRows),
            n = llvm::divideCeil(across, warpColumns);
    // A group's columns begin with a panel's.
    if (shape.byGroups && warpColumns > 1 && !shape.transposeRhs)
      n = llvm::alignTo(n, 4);
    // What is read of shared memory decides between equal work: groups read
    // both operands for each of their instructions, warps each block once.
    int64_t cost = m * n * 64 + (shape.byGroups ? m * (4 + n) : m + n);
    if (m * n * 8 > most || (best >= 0 && cost >= best))
      continue;
    best = cost;
    shape.warpRows = warpRows;
    shape.warpColumns = warpColumns;
    shape.rowBlocks = m;
    shape.columnBlocks = n;
  }
  return best >= 0;
}

int64_t ContractShape::getLhsBytes() const {
  int64_t rows = warpRows * getWarpRows();
  return transposeLhs ? llvm::alignTo(rows, 64) * kRowBytes : rows * kRowBytes;
}

int64_t ContractShape::getRhsBytes() const {
  int64_t columns = warpColumns * getWarpColumns();
  return transposeRhs ? columns * kRowBytes
                      : llvm::alignTo(columns, 64) * kRowBytes;
}

int64_t ContractShape::getAddendPanels() const {
  return llvm::divideCeil(warpColumns * getWarpColumns(), 64);
}

int64_t ContractShape::getAddendStages() const {
  if (addends == 0)
    return 0;
  return llvm::divideCeil(addends * getAddendPanels(), getPanelsOfStage());
}

int64_t ContractShape::getMapRows(bool isLhs) const {
  if (isLhs ? transposeLhs : !transposeRhs)
    return getDepth();
  return isLhs ? warpRows * getWarpRows() : warpColumns * getWarpColumns();
}

void nvvm::forAddendPanels(
    const ContractShape &shape,
    llvm::function_ref<void(int64_t panel, int64_t addend, int64_t column)>
        body) {
  int64_t ofEach = shape.getAddendPanels();
  for (int64_t panel = 0; panel < shape.addends * ofEach; ++panel)
    body(panel, panel / ofEach, panel % ofEach * 64);
}

/// Whether groups multiply elements of 8 bits: terms are neighbors in memory,
/// and stages are whole.
static bool keepsBytes(ContractOp op) {
  auto isByte = [](Value memory) {
    return cast<MemRefType>(memory.getType())
               .getElementType()
               .getIntOrFloatBitWidth() == 8;
  };
  return isByte(op.getLhs()) && isByte(op.getRhs()) && !op.getTransposeLhs() &&
         op.getTransposeRhs();
}

FailureOr<ContractShape> nvvm::shapeContract(ContractOp op, int64_t threads,
                                             int64_t memory, unsigned sm,
                                             bool byMaps) {
  ContractShape shape;
  shape.transposeLhs = op.getTransposeLhs();
  shape.transposeRhs = op.getTransposeRhs();
  shape.rows = op.getTileRows();
  shape.columns = op.getTileColumns();
  shape.hasBlockScales = op.hasBlockScales();
  // Groups of four warps have no fewer than 64 rows.
  shape.byGroups = sm == 90 && threads >= 128 && shape.rows > 32;
  if (shape.byGroups && byMaps && keepsBytes(op))
    shape.elementBytes = 1;
  bool mayCopy = shape.byGroups && byMaps;
  int64_t most = getMostSums(op, shape, threads + mayCopy * kCopyThreads);
  int64_t least = shape.byGroups ? kLeastStages : 2;
  int64_t warps = threads / (shape.byGroups ? 128 : 32);
  // Parts whose sums fit the registers, and whose operands fit the memory.
  while (true) {
    bool fits = assignWarpTiles(warps, most, shape);
    int64_t stage = fits ? shape.getLhsBytes() + shape.getRhsBytes() : 0;
    if (fits && least * stage <= memory) {
      shape.stages = std::min<int64_t>(shape.elementBytes == 1 ? kMostByteStages
                                                               : kMostStages,
                                       memory / stage);
      return shape;
    }
    int64_t &longer = shape.rows >= shape.columns ? shape.rows : shape.columns;
    if (longer <= 16)
      return op.emitOpError("needs ") << least * stage
                                      << " bytes of shared memory in addition "
                                         "to the kernel's own, of which "
                                      << std::max<int64_t>(memory, 0)
                                      << " are left: use less scratch memory";
    longer = llvm::alignTo(llvm::divideCeil(longer, 2), 16);
  }
}
