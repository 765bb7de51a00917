//===- Groups.h - The groups that torch ops run in --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Maps the name of a process group, as passed to an op, to a CommsIR group.
// Python makes the group in the first call, because only Python can access a
// process group's store; later calls find it here.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_OPS_GROUPS_H
#define COMMSIR_RUNTIME_TORCH_OPS_GROUPS_H

#include "runtime/capi/commsir.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace commsir::torch_ops {

/// Python functions for calls that find no group. Both take the GIL.
struct Callbacks {
  /// Makes the group of process group `name` on `device` (-1: the CPU). Returns
  /// null after a Python error.
  commsir_group *(*resolve)(const char *name, int32_t device);
  /// Number of ranks of process group `name`, and this rank.
  int64_t (*size)(const char *name);
  int64_t (*rank)(const char *name);
  /// Registers `bytes` bytes of torch's symmetric memory at `data` as a window
  /// of the group. 0: done; 1: no rank can, so the memory is used like any
  /// other; else an error.
  int (*adopt)(const char *name, int32_t device, void *data, uint64_t bytes);
  /// The message of this thread's last failed callback.
  const char *(*error)();
};

/// A group, used by one thread at a time.
struct LockedGroup {
  std::string name;
  int32_t device = -1;
  commsir_group *group = nullptr;
  int64_t ranks = 0, rank = 0;
  std::mutex mutex;
  /// Torch's symmetric memory that the group knows, or cannot register.
  std::set<void *> adopted;

  /// Whether all ranks run the same kernel at a site of a compiled graph.
  bool isAgreed(std::string_view site) {
    std::lock_guard<std::mutex> lock(mutex);
    return agreed.find(site) != agreed.end();
  }
  /// Whether there has been any such site of that operation of another library,
  /// or (empty) of torch's collectives: from then on ranks may have to meet in
  /// this group.
  bool hasAgreed(std::string_view operation) {
    std::lock_guard<std::mutex> lock(mutex);
    return agreedOperations.find(operation) != agreedOperations.end();
  }
  void agree(const std::string &site);
  /// Records the outcome of a call at such a site: `isSame` on all ranks. A few
  /// mismatches in a row disable the site.
  void note(std::string_view site, bool isSame);
  /// No rank runs a kernel at that site any more.
  void revoke(std::string_view site);

private:
  /// Number of consecutive mismatches per site.
  std::map<std::string, unsigned, std::less<>> agreed;
  std::set<std::string, std::less<>> agreedOperations;
  /// Whether any site has mismatches.
  bool hasDisagreed = false;
};

/// The operation of another library that runs at a site of a compiled graph,
/// the second of the parts of its name, which tabs divide; empty: one of
/// torch's collectives.
std::string_view operationOf(std::string_view site);

class Groups {
public:
  static Groups &get();
  void setCallbacks(const Callbacks &made) { callbacks = made; }
  /// Throws the reason if the process group has no group of CommsIR.
  LockedGroup &find(const std::string &name, int32_t device);
  /// Same, or null if the group has not been made yet.
  LockedGroup *findMade(const std::string &name, int32_t device);
  /// Registers the memory in place if all ranks can.
  void adopt(LockedGroup &used, void *data, uint64_t bytes);
  /// Forgets all groups of that process group. The process group destroys them.
  void forget(const std::string &name);
  /// The message of this thread's last failed callback.
  const char *error() const { return required().error(); }

private:
  const Callbacks &required() const;
  LockedGroup &make(const std::string &name, int32_t device);

  Callbacks callbacks = {};
  std::mutex mutex;
  /// Number of `forget` calls: thread-local caches are valid for one value.
  std::atomic<uint64_t> age{1};
  std::map<std::pair<std::string, int32_t>, std::unique_ptr<LockedGroup>>
      groups;
};

} // namespace commsir::torch_ops

#endif // COMMSIR_RUNTIME_TORCH_OPS_GROUPS_H
