//===- DestroyGroup.cpp - Groups that nobody waits for --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks collect garbage at times of their own. Who waited there for peers, or
// for a kernel that waits for peers, would hold up what its rank does next, for
// which these wait in turn.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Group.h"

#include "runtime/support/FatalErrors.h"
#include "runtime/support/StartThread.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace commsir::group;

namespace {

/// Seconds that the process's end waits for what threads have begun.
constexpr std::chrono::seconds kLastWait{5};

/// The threads that end groups.
class BackgroundDestroyer {
public:
  /// Never destroyed: threads may use it to the last.
  static BackgroundDestroyer &get() {
    static auto *made = new BackgroundDestroyer;
    return *made;
  }
  void endLater(Group &group, std::function<void()> end);

private:
  BackgroundDestroyer() {
    std::atexit([] { get().leave(); });
  }
  void finishAround(llvm::function_ref<void()> work);
  bool begin();
  void finish();
  void leave();

  const pid_t process = getpid();
  std::mutex mutex;
  std::condition_variable changed;
  /// Threads that are at what uses other libraries.
  unsigned busy = 0;
  /// The process ends, and these libraries with it.
  bool isOver = false;
};

} // namespace

/// Runs `work` unless the process ends.
void BackgroundDestroyer::finishAround(llvm::function_ref<void()> work) {
  if (!begin())
    return;
  llvm::scope_exit scope([this] { finish(); });
  work();
}

/// False: it is too late for what the thread wants to do.
bool BackgroundDestroyer::begin() {
  std::lock_guard lock(mutex);
  busy += !isOver;
  return !isOver;
}

void BackgroundDestroyer::finish() {
  std::lock_guard lock(mutex);
  --busy;
  changed.notify_all();
}

void BackgroundDestroyer::leave() {
  // A child of fork has none of the threads.
  if (getpid() != process)
    return;
  std::unique_lock lock(mutex);
  isOver = true;
  changed.wait_for(lock, kLastWait, [this] { return busy == 0; });
}

void BackgroundDestroyer::endLater(Group &group, std::function<void()> end) {
  auto thread = commsir::startThread([this, &group, end = std::move(end)] {
    (void)commsir::catchFailure([&] {
      finishAround([&] { group.awaitIdle(); });
      // Peers see it when the process ends.
      group.awaitPeers();
      finishAround(end);
    });
  });
  // Without a thread the group stays until the process ends.
  if (thread.joinable())
    thread.detach();
}

void commsir::group::drop(Group &group, std::function<void()> end) {
  if (!group.endsSlowly())
    return end();
  if (!group.isKept())
    BackgroundDestroyer::get().endLater(group, std::move(end));
}
