//===- CallQueue.h - Runs calls of a group in turn --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Serializes the calls that threads of one rank make on a group: one call runs,
// and the others follow in the order of their arrival. A queued thread calls
// the interrupt hooks, as a thread that waits for peers does.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CALLQUEUE_H
#define COMMSIR_RUNTIME_GROUP_CALLQUEUE_H

#include "runtime/group/Process.h"

#include "llvm/Support/Error.h"

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

namespace commsir::group {

class CallQueue {
public:
  ~CallQueue();

  /// Waits for this thread's turn. `what` names the call in the messages of
  /// other threads and must stay valid until `end`. Fails inside another call
  /// of the same thread (Usage), after an interrupt, and once the group closes
  /// (Aborted).
  llvm::Error begin(const char *what);
  /// Same, without waiting. Returns false if another thread has its turn.
  bool tryBegin(const char *what);
  void end();
  /// Makes all waiting and later calls fail.
  void close();

private:
  struct Waiting {
    bool isNext = false;
  };
  llvm::Error await(std::unique_lock<std::mutex> &lock, Waiting &own,
                    const char *what);

  std::mutex mutex;
  std::condition_variable changed;
  /// Null: no call runs.
  const char *current = nullptr;
  std::thread::id owner;
  std::list<Waiting *> queue;
  bool isClosed = false;
  unsigned forks = countForks();
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_CALLQUEUE_H
