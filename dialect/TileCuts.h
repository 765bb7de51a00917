//===- TileCuts.h - Parts of tiles, and tiles in a row ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tensor.extract_slice takes a part of a tile; tensor.concat joins tiles end to
// end. Kernels may contain them if all lengths are constant.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_TILECUTS_H
#define COMMSIR_DIALECT_TILECUTS_H

#include "mlir/IR/Operation.h"

namespace mlir::comms {

/// Whether `op` is one of the two.
bool isTileCut(Operation *op);

/// Why a kernel cannot hold `op`, a tile cut, as the end of a sentence that
/// begins with the op. Empty: it can.
StringRef whyNotCut(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_TILECUTS_H
