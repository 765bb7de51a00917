//===- TeamOps.cpp - Teams and identity ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"

using namespace mlir;
using namespace mlir::comms;

LogicalResult TeamSplitOp::verify() { return success(); }

OpFoldResult SizeOp::fold(FoldAdaptor adaptor) { return {}; }

OpFoldResult TranslateRankOp::fold(FoldAdaptor adaptor) { return {}; }

/// The range [smallest, largest] of an index.
static ConstantIntRanges getRange(int64_t smallest, int64_t largest) {
  return ConstantIntRanges::fromSigned(APInt(64, smallest, true),
                                       APInt(64, largest, true));
}

void RankOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), getRange(0, std::numeric_limits<int32_t>::max()));
}
void SizeOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), getRange(1, std::numeric_limits<int32_t>::max()));
}
void TranslateRankOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                        SetIntRangeFn set) {
  set(getResult(), getRange(0, std::numeric_limits<int32_t>::max()));
}
void BlockIdOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                  SetIntRangeFn set) {
  set(getResult(), getRange(0, std::numeric_limits<int32_t>::max()));
}
void NumBlocksOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                    SetIntRangeFn set) {
  set(getResult(), getRange(1, std::numeric_limits<int32_t>::max()));
}
void EpochOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                SetIntRangeFn set) {
  set(getResult(), getRange(1, std::numeric_limits<int64_t>::max()));
}
