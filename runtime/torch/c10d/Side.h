//===- Side.h - What a process group has for one kind of device -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of CommsIR and the backend that calls are delegated to. Both are made
// at the first call that needs them, from the store alone.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_SIDE_H
#define COMMSIR_RUNTIME_TORCH_C10D_SIDE_H

#include "runtime/torch/c10d/Call.h"
#include "runtime/torch/c10d/Library.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace commsir::torch_c10d {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// What a process group is made from.
struct Settings {
  StorePtr store;
  int rank = 0, size = 1;
  std::chrono::milliseconds timeout{0};
  std::string name;
  std::vector<uint64_t> globalRanks;
  /// Path of libcommsir.so.
  std::string library;
  /// `store` on a connection of its own, which the group's thread may block
  /// while the program uses the other; made at first use.
  StorePtr ownStore();
  /// Makes the backend for what CommsIR does not compile: a store, "cpu" or
  /// "cuda".
  std::function<BackendPtr(const StorePtr &, const std::string &)> delegate;

private:
  StorePtr cloned;
};

class Side {
public:
  Side(Settings &settings, c10::Device device)
      : settings(settings), device(device) {}
  ~Side();

  /// Why the call cannot be CommsIR's; empty: it can. Makes the group.
  std::string whyNot(const Call &call);
  /// Carries out a step; throws with what all ranks were calling when they
  /// disagree.
  void launch(const Call &call, const Step &step, void *stream);
  /// Throws what launches have reported since.
  void poll();
  c10d::Backend &delegate();

  void abort(const std::string &reason);
  void drainDelegate();
  /// {"launches": …} of the group; empty: there is none.
  std::string counts();
  /// In a child of fork(): nothing of the parent's may be touched.
  void leak();
  void setTimeout(std::chrono::milliseconds timeout);

private:
  std::string makeGroup();
  std::string agree(const std::string &why);
  [[noreturn]] void fail(const Call &call, commsir_status status);
  std::string disagreement(const Call &call);
  StorePtr place(const char *what);

  Settings &settings;
  c10::Device device;
  const Library *library = nullptr;
  commsir_group *group = nullptr;
  BackendPtr other;
  bool made = false;
  /// Why there is no group.
  std::string missing;
  std::mutex mutex;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_SIDE_H
