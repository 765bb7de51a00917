//===- Transfers.h - Sends and receives on the CPU --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gloo ends the process where a message is longer than what receives it, and
// takes one that is shorter. So each has a tag of its size and type: what does
// not fit does not meet. Sides that wait long for each other say in the store
// what they send and receive, and both fail where that is not the same.
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
  /// -1: of any rank.
  int rank = 0, peer = 0;
  int tag = 0;
  /// "4 x float32".
  std::string what;

  Transfer(bool sends, int rank, int peer, int tag, const at::Tensor &tensor);
  /// The tag that Gloo gets.
  int fitting() const;
};

/// The transfers of a process group.
class Transfers {
public:
  /// The Work of a transfer that has begun, in issue order. `fail` is called
  /// with the reason where the other side's is another.
  WorkPtr watch(const Transfer &transfer, WorkPtr begun,
                c10::intrusive_ptr<c10d::Store> store,
                std::function<void(const std::string &)> fail);
  /// At the program's end: nobody looks into stores any more.
  static void endAll();

private:
  std::mutex mutex;
  /// How many there were with a peer and a tag: the n-th that is sent is the
  /// n-th that is received.
  std::map<std::tuple<bool, int, int>, uint64_t> counts;
  /// Tags by which any rank's were received, which are not counted.
  std::set<int> fromAny;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_TRANSFERS_H
