//===- CallQueue.h - Whose call of a group it is ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads of one rank that call a group at the same time queue here: one call
// runs, and the others follow in the order in which they came. A thread that
// queues asks the interrupt hooks, as one that waits for peers does.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CALLQUEUE_H
#define COMMSIR_RUNTIME_GROUP_CALLQUEUE_H

#include "llvm/Support/Error.h"

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

namespace commsir::group {

class CallQueue {
public:
  /// Waits until it is this thread's turn; `what` is the call, for messages of
  /// others, and stays until `end`. Fails where that cannot be: in a call of
  /// the same thread (Usage), after an interrupt, and once the group closes
  /// (Aborted).
  llvm::Error begin(const char *what);
  /// The same without waiting; false: it is another thread's.
  bool tryBegin(const char *what);
  void end();
  /// All that queue fail, and all that come.
  void close();

private:
  struct Waiting {
    bool isNext = false;
  };
  llvm::Error await(std::unique_lock<std::mutex> &lock, Waiting &own,
                    const char *what);

  std::mutex mutex;
  std::condition_variable changed;
  /// Null: nobody's.
  const char *current = nullptr;
  std::thread::id owner;
  std::list<Waiting *> queue;
  bool isClosed = false;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_CALLQUEUE_H
