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

/// Without the backtrace that torch's have.
std::string textOf(const std::exception &error);

/// Looks for a key for some time, unless this rank is to stop. Waits of torch's
/// stores warn of each one that has come to nothing. Where it does not answer,
/// `why` says why.
std::optional<std::string> look(const Settings &settings, c10d::Store &store,
                                const std::string &key, double seconds,
                                std::string *why = nullptr);

/// A store, and what it has said last where it did not answer.
struct StoreAdapter {
  StorePtr store;
  const Settings &settings;
  std::string why;

  bool set(const std::string &key, const void *data, size_t bytes);
  std::optional<std::string> get(const std::string &key, double seconds);
  /// Appends that to the text of what has failed.
  std::string explain(const std::string &text) const {
    return why.empty() ? text : text + " (the store: " + why + ")";
  }
  /// For C, as long as this lives.
  commsir_store asStore();
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_STOREADAPTER_H
