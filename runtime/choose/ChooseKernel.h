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

/// What was chosen for a kernel.
struct KernelConfigs {
  /// Of the launch: that of the collective that moves the most; 0 where there
  /// is none.
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// A question and its answer for each collective, in the order of the text.
  std::vector<std::pair<ConfigQuery, ConfigChoice>> collectives;
};

/// Asks `choose` for each collective of `kernel` and writes algorithm and
/// protocol on those that name none. `wish` holds the machine, the number of
/// ranks (0: the kernel's own) and what the user has settled; what the kernel
/// has settled (blocks, algorithms) is not changed either. Collectives that
/// cannot be read are left to the compiler, which says why.
KernelConfigs chooseForKernel(mlir::comms::KernelOp kernel,
                              const ConfigQuery &wish);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CHOOSEKERNEL_H
