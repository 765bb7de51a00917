//===- DeviceState.h - State per device type --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of CommsIR and the backend that it delegates to. Both are made from
// the store, by the first call that needs them.
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
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace commsir::torch_c10d {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// State shared by the threads of a process group.
struct Shared {
  /// Timeout of future calls in milliseconds.
  std::atomic<int64_t> timeout{0};
  std::atomic<bool> aborted{false};
  /// All ranks have made the process group.
  std::atomic<bool> met{false};
  /// Held while a connection to the store is made.
  std::mutex connecting;
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

/// Parameters of a process group.
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
  /// Settings for another group of the same kind.
  Settings part(const StorePtr &store, int rank, int size) const;
  /// `store` on a separate connection, made at first use. The group's thread
  /// may block it while the program uses the other one.
  StorePtr ownStore();
  /// `store` on a new connection. A wait blocks its whole connection.
  StorePtr connect() const;
  /// Whether waits of this thread must end.
  bool hasStopped() const;
  /// Collective: all ranks meet under `prefix` and read each other's texts.
  group::RendezvousResult
  meet(const std::string &prefix, std::chrono::milliseconds timeout,
       const std::string &says = "",
       std::function<std::string(const std::vector<int64_t> &)> complain = {}) {
    return rendezvousAs(rank, size, prefix, timeout, says, std::move(complain));
  }
  /// Same, among `size` ranks; this one is `rank`.
  group::RendezvousResult rendezvousAs(
      int rank, int size, const std::string &prefix,
      std::chrono::milliseconds timeout, const std::string &says = "",
      std::function<std::string(const std::vector<int64_t> &)> complain = {});
  /// Makes the backend for calls that CommsIR does not compile. Takes a store,
  /// "cpu" or "cuda", rank and size, the ranks' numbers in the world, and a
  /// name.
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

  /// Returns the group, which is made if necessary. Throws the reason if there
  /// is none. Collective when it is new.
  commsir_group *use();
  /// Returns the reason why CommsIR cannot run the call, or "" if it can. Makes
  /// the group.
  std::string unsupportedReason(const Call &call);
  /// Runs a step. If ranks disagree, throws an error with the calls of all
  /// ranks.
  void launch(const Call &call, const Step &step, void *stream);
  /// Returns the step prepared for repeated launches; prepares it the first
  /// time. The group must exist. Null: CommsIR refuses the step, and `fail`
  /// reports the reason.
  std::shared_ptr<commsir_prepared> prepare(const Step &step,
                                            std::chrono::milliseconds timeout);
  [[noreturn]] void fail(const CallRecord &call, commsir_status status);
  /// Throws failures that launches have reported since the last call.
  void poll();
  const Library &api() const { return *library; }
  /// Gloo or NCCL for all ranks. Collective when it is new.
  c10d::Backend &delegate(std::chrono::milliseconds timeout);
  /// NCCL for this rank and `peer` only (which may be this rank), because sends
  /// and receives do not involve other ranks. Waits for `peer` when it is new.
  c10d::Backend &pairWith(int peer, std::chrono::milliseconds timeout);
  bool hasDelegate() const { return delegated; }
  /// Key prefix in the store that no earlier group used. Ranks must have met.
  StorePtr place(const char *what) {
    return place(settings.ownStore(), epoch, what);
  }
  /// The device of the group, if it has one.
  const c10::Device &of() const { return device; }
  /// Ranks have tried to meet and failed.
  bool hasFailed() const { return failed; }
  /// The call that ended the group, and how; empty: none.
  std::string endReason();

  void abort(const std::string &reason);
  void drainDelegate();
  /// Ends Gloo and its threads, which keep tensors slightly longer than their
  /// calls; later calls of it throw. `leave`: threads may be in a wait that
  /// cannot end, and stay.
  void dropGloo(bool leave);
  /// The group's {"launches": …}; empty: there is no group.
  std::string counts();
  /// Ends the group, as all ranks do when the process group is destroyed. Frees
  /// its memory for the next group; ranks that still call it get an error.
  void endGroup();
  /// Called in a forked child: objects of the parent must not be touched.
  void leak();
  void setTimeout(std::chrono::milliseconds timeout);

private:
  void meet(std::chrono::milliseconds timeout);
  /// Returns the epoch of a successful rendezvous, else throws; `what` names
  /// the rendezvous.
  std::string epochOf(const group::RendezvousResult &met,
                      std::chrono::milliseconds timeout,
                      const std::string &what) const;
  StorePtr place(const StorePtr &store, const std::string &epoch,
                 const std::string &what) const;
  std::string makeGroup(std::chrono::milliseconds timeout);
  commsir_group *createGroup(std::chrono::milliseconds timeout,
                             std::string &why);
  void ask(const char *what, const std::string &own,
           std::chrono::milliseconds timeout,
           const std::function<bool(int, const std::string &)> &hear);
  std::string agree(const std::string &why, std::chrono::milliseconds timeout);
  void confirm(const std::string &why, std::chrono::milliseconds timeout);
  std::string disagreement(const CallRecord &call);
  [[noreturn]] void failEarlier();
  std::vector<BackendPtr> delegates();

  Settings &settings;
  c10::Device device;
  const Library *library = nullptr;
  commsir_group *group = nullptr;
  /// Counters of a group that has ended.
  std::string lastCounts;
  /// Guards `other` and `pairs`: one thread may end them while another makes
  /// one.
  std::mutex delegatesMutex;
  BackendPtr other;
  /// A backend shared with a peer. The thread that makes one waits for the peer
  /// without delaying other calls of the group.
  struct Pair {
    std::timed_mutex making;
    BackendPtr made;
  };
  std::map<int, Pair> pairs;
  /// Unique key of this group in the store; empty: ranks have not met.
  std::string epoch;
  /// The first rank's reason for having no library.
  std::string withoutLibrary;
  bool made = false;
  /// Gloo has been ended.
  bool dropped = false;
  std::atomic<bool> failed{false}, delegated{false};
  /// Reason why there is no group.
  std::string missing;
  /// Addresses of op, reduction and type of the calls that CommsIR supports.
  std::set<std::array<const char *, 3>> had;
  /// Results of `prepare`, indexed by the hash of the description. Texts are
  /// compared by address.
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
  /// Held while a failure is explained; an abort does not wait for that.
  std::mutex pollMutex;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_DEVICESTATE_H
