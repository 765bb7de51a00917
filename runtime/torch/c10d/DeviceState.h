//===- DeviceState.h - What a process group has for one kind of device -*- C++
//-*-===//
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

#ifndef COMMSIR_RUNTIME_TORCH_C10D_DEVICESTATE_H
#define COMMSIR_RUNTIME_TORCH_C10D_DEVICESTATE_H

#include "runtime/support/Rendezvous.h"
#include "runtime/torch/c10d/Call.h"
#include "runtime/torch/c10d/Library.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <set>

namespace commsir::torch_c10d {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// What threads of a process group tell each other.
struct Shared {
  /// Of calls to come, in milliseconds.
  std::atomic<int64_t> timeout{0};
  std::atomic<bool> aborted{false};
  /// All ranks have made the process group.
  std::atomic<bool> met{false};
  /// The first reason counts.
  void abort(const std::string &reason) {
    std::lock_guard<std::mutex> lock(mutex);
    if (why.empty())
      why = reason;
    aborted = true;
  }
  std::string abortReason() {
    std::lock_guard<std::mutex> lock(mutex);
    return why;
  }

private:
  std::mutex mutex;
  std::string why;
};

/// What a process group is made from.
struct Settings {
  StorePtr store;
  int rank = 0, size = 1;
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  std::string name;
  std::vector<uint64_t> globalRanks;
  /// Path of libcommsir.so.
  std::string library;
  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(shared->timeout.load());
  }
  uint64_t globalRank(int member) const {
    return globalRanks.empty() ? member : globalRanks[member];
  }
  /// For another group that is made like this one.
  Settings part(const StorePtr &store, int rank, int size) const;
  /// `store` on a connection of its own, which the group's thread may block
  /// while the program uses the other; made at first use.
  StorePtr ownStore();
  /// `store` on a new connection: who waits in one keeps all of it waiting.
  StorePtr connect() const;
  /// Whether waits of this thread are to end.
  bool hasStopped() const;
  /// Collective: all ranks meet below `prefix` and read what each one says.
  group::RendezvousResult
  meet(const std::string &prefix, std::chrono::milliseconds timeout,
       const std::string &says = "",
       std::function<std::string(const std::vector<int64_t> &)> complain = {}) {
    return rendezvousAs(rank, size, prefix, timeout, says, std::move(complain));
  }
  /// The same of `size` ranks, of which this one is `rank`.
  group::RendezvousResult rendezvousAs(
      int rank, int size, const std::string &prefix,
      std::chrono::milliseconds timeout, const std::string &says = "",
      std::function<std::string(const std::vector<int64_t> &)> complain = {});
  /// Makes the backend for what CommsIR does not compile: a store, "cpu" or
  /// "cuda", rank and size, the ranks' numbers in the world, a name.
  std::function<BackendPtr(const StorePtr &, const std::string &, int, int,
                           const std::vector<uint64_t> &, const std::string &)>
      delegate;

private:
  StorePtr cloned;
};

class DeviceState {
public:
  DeviceState(Settings &settings, c10::Device device)
      : settings(settings), device(device) {}
  ~DeviceState();

  /// The group, made here if need be; throws why there is none. Collective when
  /// it is new.
  commsir_group *use();
  /// Why the call cannot be CommsIR's; empty: it can. Makes the group.
  std::string unsupportedReason(const Call &call);
  /// Carries out a step; throws with what all ranks were calling when they
  /// disagree.
  void launch(const Call &call, const Step &step, void *stream);
  /// The step, prepared for many launches; made here the first time. The group
  /// is there. Null: CommsIR refuses the step, and `fail` says why.
  std::shared_ptr<commsir_prepared> prepare(const Step &step,
                                            std::chrono::milliseconds timeout);
  [[noreturn]] void fail(const CallRecord &call, commsir_status status);
  /// Throws what launches have reported since.
  void poll();
  const Library &api() const { return *library; }
  /// Gloo or NCCL for all ranks. Collective when it is new.
  c10d::Backend &delegate(std::chrono::milliseconds timeout);
  /// NCCL for this rank and `peer` alone (which may be this rank): sends and
  /// receives are no calls of the ranks that have none. Waits for `peer` when
  /// it is new.
  c10d::Backend &pairWith(int peer, std::chrono::milliseconds timeout);
  bool hasDelegate() const { return delegated; }
  /// A place in the store where nothing of earlier groups is; ranks have met.
  StorePtr place(const char *what) {
    return place(settings.ownStore(), epoch, what);
  }
  /// Whose group, if it has one, is for that device.
  const c10::Device &of() const { return device; }
  /// Ranks have tried to meet, in vain.
  bool hasFailed() const { return failed; }
  /// Which call has ended the group, and how; empty: none has.
  std::string endReason();

  void abort(const std::string &reason);
  void drainDelegate();
  /// Ends Gloo and its threads, which keep tensors a little longer than the
  /// calls that were given them; later calls for it throw. With `leave`, they
  /// may be in a wait that nothing ends, and stay.
  void dropGloo(bool leave);
  /// {"launches": …} of the group; empty: there is none.
  std::string counts();
  /// Ends the group, as all ranks do when the process group is destroyed: its
  /// memory is there for the next one, and ranks that still call are told.
  void endGroup();
  /// In a child of fork(): nothing of the parent's may be touched.
  void leak();
  void setTimeout(std::chrono::milliseconds timeout);

private:
  void meet(std::chrono::milliseconds timeout);
  /// The epoch of those who have met; throws where they have not, which `what`
  /// names.
  std::string epochOf(const group::RendezvousResult &met,
                      std::chrono::milliseconds timeout,
                      const std::string &what) const;
  StorePtr place(const StorePtr &store, const std::string &epoch,
                 const std::string &what) const;
  std::string makeGroup(std::chrono::milliseconds timeout);
  std::string agree(const std::string &why, std::chrono::milliseconds timeout);
  std::string disagreement(const CallRecord &call);
  [[noreturn]] void failEarlier();
  std::vector<BackendPtr> delegates();

  Settings &settings;
  c10::Device device;
  const Library *library = nullptr;
  commsir_group *group = nullptr;
  /// Of a group that has ended.
  std::string lastCounts;
  /// Of `other` and `pairs`, for who ends them while a thread makes one.
  std::mutex delegatesMutex;
  BackendPtr other;
  /// With a peer. Who makes one waits for the peer, and keeps no other call of
  /// the group waiting.
  struct Pair {
    std::timed_mutex making;
    BackendPtr made;
  };
  std::map<int, Pair> pairs;
  /// Names what this group alone has in the store; empty: ranks have not met.
  std::string epoch;
  /// The first rank's reason to have no library.
  std::string withoutLibrary;
  bool made = false;
  /// Gloo has been ended.
  bool dropped = false;
  std::atomic<bool> failed{false}, delegated{false};
  /// Why there is no group.
  std::string missing;
  /// Op, reduction and type, by their addresses, of what CommsIR has.
  std::set<std::array<const char *, 3>> had;
  /// What `prepare` has made, each where its description hashes to. Texts are
  /// compared by their addresses.
  struct PreparedStep {
    Step step;
    std::chrono::milliseconds timeout{0};
    std::shared_ptr<commsir_prepared> prepared;
  };
  static constexpr size_t kPreparedSteps = 64;
  std::array<PreparedStep, kPreparedSteps> preparedSteps;
  std::mutex preparedMutex;
  std::mutex mutex;
  std::string ended;
  std::mutex endMutex;
  /// Held while a failure is explained, for which an abort does not wait.
  std::mutex pollMutex;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_DEVICESTATE_H
