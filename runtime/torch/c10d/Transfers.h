//===- Transfers.h - Sends and receives on the CPU --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gloo terminates the process if a message is longer than the receive's buffer,
// and accepts a shorter one. Each message therefore has a tag computed from its
// size and type: a send and a receive are paired only if their sizes and types
// match. Sides that wait long publish in the store what they send or receive,
// and both fail if that differs.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_TRANSFERS_H
#define COMMSIR_RUNTIME_TORCH_C10D_TRANSFERS_H

#include "runtime/torch/c10d/Call.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

namespace commsir::torch_c10d {

/// One side of a transfer.
struct Transfer {
  bool sends = false;
  /// -1: any rank.
  int rank = 0, peer = 0;
  int tag = 0;
  /// "4 x float32".
  std::string what;

  Transfer(bool sends, int rank, int peer, int tag, const at::Tensor &tensor);
  /// The tag for Gloo.
  int fitting() const;
};

/// The transfers of a process group.
class Transfers {
public:
  /// Returns the Work of a transfer that has begun, in issue order. `fail` is
  /// called with the reason if the other side's type or size differs.
  WorkPtr watch(const Transfer &transfer, WorkPtr begun,
                c10::intrusive_ptr<c10d::Store> store,
                std::function<void(const std::string &)> fail);
  /// Called at the program's end: no thread accesses stores after that.
  static void endAll();

private:
  std::mutex mutex;
  /// Number of transfers per direction, peer and tag: the n-th send matches the
  /// n-th receive.
  std::map<std::tuple<bool, int, int>, uint64_t> counts;
  /// Tags with receives from any rank, which are not counted.
  std::set<int> fromAny;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_TRANSFERS_H
