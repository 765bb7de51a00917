//===- HostData.h - A run on memory of its caller ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_HOSTDATA_H
#define COMMSIR_RUNTIME_DRIVER_HOSTDATA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace commsir::driver {

/// One rank's part of one argument.
struct HostArray {
  std::string argument;
  int64_t rank = 0;
  llvm::MutableArrayRef<char> memory;
};

/// Data that a program in the same process passes in place of files. Nothing is
/// printed; messages are in the report.
struct HostData {
  llvm::StringRef source;
  /// Read before the run; written after a successful one.
  std::vector<HostArray> arrays;
  /// Shapes and element types of the arrays, if the caller knows them.
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  llvm::StringMap<std::string> types;
  /// Numbers for scalar arguments: one for all ranks, or one per rank.
  llvm::StringMap<std::vector<std::string>> scalars;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_HOSTDATA_H
