//===- Groups.h - The groups that torch ops run in --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op names its process group; here is which group of CommsIR that means. A
// group is made by Python, on the first call, because only there a process
// group's store is to be had; later calls find it here.
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

/// What Python does for a call that finds nothing. Both take the GIL.
struct Callbacks {
  /// Makes the group of process group `name` on `device` (-1: the CPU). Null,
  /// after an error of Python's own: there is none.
  commsir_group *(*resolve)(const char *name, int32_t device);
  /// Number of ranks of process group `name`, and which of them this is.
  int64_t (*size)(const char *name);
  int64_t (*rank)(const char *name);
  /// Takes `bytes` of torch's symmetric memory at `data` as a window of the
  /// group. 0: done; 1: no rank can, and the memory is like any other; else
  /// there was an error.
  int (*adopt)(const char *name, int32_t device, void *data, uint64_t bytes);
  /// The message of the last callback of this thread that failed.
  const char *(*error)();
};

/// A group, used by one thread at a time.
struct LockedGroup {
  std::string name;
  int32_t device = -1;
  commsir_group *group = nullptr;
  int64_t ranks = 0, rank = 0;
  std::mutex mutex;
  /// Symmetric memory of torch that is known to the group, or cannot be.
  std::set<void *> adopted;

  /// Whether all ranks run one and the same kernel at a place of a compiled
  /// graph.
  bool isAgreed(std::string_view site) {
    std::lock_guard<std::mutex> lock(mutex);
    return agreed.find(site) != agreed.end();
  }
  /// Whether there has been any such place: from then on ranks may meet in this
  /// group.
  bool hasAgreed() {
    std::lock_guard<std::mutex> lock(mutex);
    return hasEverAgreed;
  }
  void agree(const std::string &site);
  /// What has come of a call at such a place: `isSame` on all ranks. A few in a
  /// row that were not end it.
  void note(std::string_view site, bool isSame);

private:
  /// With the calls in a row that ranks did not make alike.
  std::map<std::string, unsigned, std::less<>> agreed;
  bool hasEverAgreed = false;
  /// Whether any of them has such calls.
  bool hasDisagreed = false;
};

class Groups {
public:
  static Groups &get();
  void setCallbacks(const Callbacks &made) { callbacks = made; }
  /// Throws when the process group has no group of CommsIR, with the reason.
  LockedGroup &find(const std::string &name, int32_t device);
  /// The same, or null where the group has not been made yet.
  LockedGroup *findMade(const std::string &name, int32_t device);
  /// Lets `used` take the memory in place, where all ranks can.
  void adopt(LockedGroup &used, void *data, uint64_t bytes);
  /// Forgets all groups of that process group; who made them destroys them.
  void forget(const std::string &name);
  /// The message of the last callback of this thread that failed.
  const char *error() const { return required().error(); }

private:
  const Callbacks &required() const;
  LockedGroup &make(const std::string &name, int32_t device);

  Callbacks callbacks = {};
  std::mutex mutex;
  /// Counts `forget`s: what threads remember is good for one value.
  std::atomic<uint64_t> age{1};
  std::map<std::pair<std::string, int32_t>, std::unique_ptr<LockedGroup>>
      groups;
};

} // namespace commsir::torch_ops

#endif // COMMSIR_RUNTIME_TORCH_OPS_GROUPS_H
