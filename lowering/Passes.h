//===- Passes.h - The passes of CommsIR -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_PASSES_H
#define COMMSIR_LOWERING_PASSES_H

#include "dialect/Comms.h"

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace mlir::comms {

#define GEN_PASS_DECL
#include "lowering/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/Passes.h.inc"

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_PASSES_H
