//===- ContractWgmma.cpp - Products by wgmma ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups of four warps multiply the operands of a stage where they lie in
// shared memory (wgmma, sm_90 only).
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractSteps.h"
#include "lowering/nvvm/Ptx.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// What wgmma knows of an operand in shared memory from one row (or column) on:
/// its place, the distance of two panels and of two patterns of eight rows, all
/// in units of 16 bytes, and the pattern. All places are below 2^14 units, so
/// that a term's descriptor is a sum.
static Value describeOperand(ImplicitLocOpBuilder &b,
                             const StagedOperand &operand, Value stage,
                             Int across) {
  Int place = operand.alongDepth ? across * kRowBytes
                                 : (across / 64) * (kDepth * kRowBytes);
  Int address(b, arith::AddIOp::create(b, stage, (place + operand.at).value));
  Int units = (address / 16) % (1 << 14);
  // The same in all lanes: in a register of the warp.
  units.value = emitOneText(b, "redux.sync.or.b32 $0, $1, -1;", "=r,r",
                            {units.value}, b.getI32Type());
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), units.value);
  uint64_t panel = operand.alongDepth ? 1 : kDepth * kRowBytes / 16;
  uint64_t rest =
      uint64_t(1) << 62 | uint64_t(8 * kRowBytes / 16) << 32 | panel << 16;
  Value constant =
      arith::ConstantOp::create(b, b.getI64IntegerAttr(int64_t(rest)));
  return arith::OrIOp::create(b, wide, constant);
}

/// Units from a stage's first term to a later one.
static int64_t getUnitsBefore(const ContractShape &shape,
                              const StagedOperand &operand, int64_t term) {
  return term * (operand.alongDepth ? shape.elementBytes : kRowBytes) / 16;
}

/// The name of an operand's elements in a stage.
static StringRef nameElement(const ContractShape &shape, Type element) {
  if (shape.elementBytes == 1)
    return isa<Float8E5M2Type>(element) ? "e5m2" : "e4m3";
  return element.isBF16() ? "bf16" : "f16";
}

WgmmaDescriptors nvvm::describeStage(ImplicitLocOpBuilder &b,
                                     const ProductPart &part, Value stage) {
  WgmmaDescriptors descriptors;
  for (int64_t m = 0; m < part.shape.rowBlocks; ++m)
    descriptors.lhs.push_back(describeOperand(
        b, part.lhs, stage,
        Int(b, part.warpRow) * part.shape.getWarpRows() + 64 * m));
  descriptors.rhs =
      describeOperand(b, part.rhs, stage,
                      Int(b, part.warpColumn) * part.shape.getWarpColumns());
  return descriptors;
}

/// The instructions that multiply the terms of a stage by one block of rows,
/// whose `count` sums are the first operands. With `anew` the sums begin with
/// 0.
static std::string spellProducts(const ProductPart &part, int64_t count,
                                 bool anew) {
  std::string text = "{ .reg .pred p; setp.ne.b32 p, 1, 0; ";
  if (anew)
    text += ".reg .pred q; setp.eq.b32 q, 1, 0; ";
  StringRef left = nameElement(part.shape, part.lhs.element),
            right = nameElement(part.shape, part.rhs.element);
  // Only elements of 16 bits may lie transposed.
  std::string layout = part.shape.elementBytes == 1
                           ? ""
                           : (", " + Twine(int(!part.lhs.alongDepth)) + ", " +
                              Twine(int(!part.rhs.alongDepth)))
                                 .str();
  for (int64_t at = 0; at < part.shape.getDepth() / part.shape.getTerms(); ++at)
    text += ("wgmma.mma_async.sync.aligned.m64n" + Twine(count * 2) + "k" +
             Twine(part.shape.getTerms()) + ".f32." + left + "." + right +
             " {" + listOperands(0, count) + "}, $" + Twine(count + 2 * at) +
             ", $" + Twine(count + 2 * at + 1) +
             (anew && at == 0 ? ", q" : ", p") + ", 1, 1" + layout + "; ")
                .str();
  return text + "}";
}

void nvvm::startPortion(ImplicitLocOpBuilder &b, const ProductPart &part,
                        const WgmmaDescriptors &descriptors, int64_t portion,
                        MutableArrayRef<Value> sums, bool anew) {
  int64_t count = sums.size();
  std::string constraints;
  SmallVector<Value> operands;
  auto later = [&](Value first, int64_t units) {
    Value constant = arith::ConstantOp::create(b, b.getI64IntegerAttr(units));
    return b.createOrFold<arith::AddIOp>(first, constant);
  };
  int64_t columns = portion % part.shape.getPortions() * count * 2;
  for (int64_t term = 0; term < part.shape.getDepth();
       term += part.shape.getTerms()) {
    operands.push_back(
        later(descriptors.lhs[portion / part.shape.getPortions()],
              getUnitsBefore(part.shape, part.lhs, term)));
    operands.push_back(
        later(descriptors.rhs, getUnitsBefore(part.shape, part.rhs, term) +
                                   columns * kRowBytes / 16));
    constraints += constraints.empty() ? "l,l" : ",l,l";
  }
  operands.append(sums.begin(), sums.end());
  llvm::copy(emitText(b, spellProducts(part, count, anew),
                      tieOperands(count, constraints), operands,
                      SmallVector<Type>(count, b.getF32Type())),
             sums.begin());
}

void nvvm::multiplyByGroups(ImplicitLocOpBuilder &b, const ProductPart &part,
                            const WgmmaDescriptors &descriptors, Sums &sums) {
  int64_t count = part.shape.columnBlocks * 8;
  emitText(b, "wgmma.fence.sync.aligned;", "", {});
  for (int64_t m = 0; m < part.shape.rowBlocks; ++m)
    startPortion(b, part, descriptors, m,
                 MutableArrayRef<Value>(sums).slice(m * count, count),
                 /*anew=*/false);
  emitText(b, "wgmma.commit_group.sync.aligned;", "", {});
}

void nvvm::waitForGroups(ImplicitLocOpBuilder &b, Sums &sums) {
  int64_t count = sums.size();
  sums = emitText(b, "wgmma.wait_group.sync.aligned 0;", tieOperands(count, ""),
                  sums, SmallVector<Type>(count, b.getF32Type()));
}
