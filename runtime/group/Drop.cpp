//===- Drop.cpp - Groups that nobody waits for ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks collect garbage at times of their own. Who waited there for peers would
// hold up what its rank does next, for which these wait in turn.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Group.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace commsir::group;

namespace {

/// Seconds that the process's end waits for these threads.
constexpr std::chrono::seconds kLastWait{5};

/// The groups that have been dropped, each in a thread that ends it.
class Dropped {
public:
  /// Never destroyed: threads may use it to the last.
  static Dropped &get() {
    static auto *made = new Dropped;
    return *made;
  }
  void take(std::unique_ptr<Group> group);

private:
  Dropped() {
    std::atexit([] { get().endAll(); });
  }
  void endAll();

  const pid_t process = getpid();
  std::mutex mutex;
  std::condition_variable ended;
  /// Those that wait for peers.
  std::list<Group *> waiting;
  /// Threads.
  unsigned running = 0;
};

} // namespace

void Dropped::take(std::unique_ptr<Group> group) {
  std::unique_lock lock(mutex);
  auto place = waiting.insert(waiting.end(), group.get());
  ++running;
  lock.unlock();
  std::thread([this, place, group = std::move(group)]() mutable {
    group->awaitEnd();
    std::unique_lock lock(mutex);
    waiting.erase(place);
    lock.unlock();
    group.reset();
    lock.lock();
    --running;
    ended.notify_all();
  }).detach();
}

/// At the process's end, before the libraries that groups stand on are gone.
void Dropped::endAll() {
  // A child of fork has none of the threads.
  if (getpid() != process)
    return;
  std::unique_lock lock(mutex);
  for (Group *group : waiting)
    group->abort("its process ends");
  ended.wait_for(lock, kLastWait, [this] { return running == 0; });
}

void commsir::group::drop(std::unique_ptr<Group> group) {
  if (group && group->endsTogether())
    Dropped::get().take(std::move(group));
}
