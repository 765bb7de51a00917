//===- ChooseKernel.h - The choice for a kernel's collectives ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_CHOOSEKERNEL_H
#define COMMSIR_RUNTIME_CHOOSE_CHOOSEKERNEL_H

#include "dialect/Comms.h"
#include "runtime/choose/Choose.h"

#include <utility>

namespace commsir::tune {

/// The choices for a kernel.
struct KernelConfigs {
  /// Launch shape: that of the collective that moves the most data; 0 if there
  /// is none.
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// Query and choice for each collective, in the order of the text.
  std::vector<std::pair<ConfigQuery, ConfigChoice>> collectives;
};

/// Calls `choose` for each collective of `kernel` and sets algorithm and
/// protocol where the op names none. `wish` holds the machine, the number of
/// ranks (0: the kernel's own) and the values that the user fixed. Values that
/// the kernel fixes (blocks, algorithms) are kept. Collectives that cannot be
/// analyzed are left to the compiler, which reports the reason.
KernelConfigs chooseForKernel(mlir::comms::KernelOp kernel,
                              const ConfigQuery &wish);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CHOOSEKERNEL_H
