//===- StoreAdapter.h - torch's store as CommsIR's --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_STOREADAPTER_H
#define COMMSIR_RUNTIME_TORCH_C10D_STOREADAPTER_H

#include "runtime/torch/c10d/DeviceState.h"

namespace commsir::torch_c10d {

/// The error text without torch's backtrace.
std::string textOf(const std::exception &error);

/// Looks for a key for a limited time, or until this rank must stop. Avoids
/// torch's waits, which log each timeout. If the store does not answer, `why`
/// holds the reason.
std::optional<std::string> look(const Settings &settings, c10d::Store &store,
                                const std::string &key, double seconds,
                                std::string *why = nullptr);

/// Adapts a torch store to C and keeps the last error that it raised.
struct StoreAdapter {
  StorePtr store;
  const Settings &settings;
  std::string why;

  bool set(const std::string &key, const void *data, size_t bytes);
  std::optional<std::string> get(const std::string &key, double seconds);
  /// Appends that error to the description of a failure.
  std::string explain(const std::string &text) const {
    return why.empty() ? text : text + " (the store: " + why + ")";
  }
  /// A view for C, valid as long as this object lives.
  commsir_store asStore();
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_STOREADAPTER_H
