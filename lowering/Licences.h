//===- Licences.h - What lets an optimiser change bits ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_LICENCES_H
#define COMMSIR_LOWERING_LICENCES_H

#include "mlir/IR/Operation.h"

namespace mlir::comms {

/// Removes from `op` what lets an optimiser change a result: fast-math, and
/// promises about overflow and exactness of numbers other than addresses.
void dropLicences(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_LICENCES_H
