//===- EntryLock.h - The lock of a cache entry ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_ENTRYLOCK_H
#define COMMSIR_RUNTIME_JIT_ENTRYLOCK_H

#include "runtime/jit/EntryFile.h"

namespace commsir::jit {

/// Holds an entry's lock during its lifetime. If locks do not work it holds
/// nothing, and work may be done twice.
class EntryLock {
public:
  /// Waits at most `patience` seconds. The folder must outlive the lock.
  EntryLock(const OwnFolder &folder, std::string name, double patience);
  EntryLock(const EntryLock &) = delete;
  ~EntryLock();
  /// Whether another process held the lock the whole time.
  bool timedOut() const { return late; }

private:
  enum class Attempt { Held, Busy, Impossible };
  void wait(double patience);
  Attempt attempt();

  const OwnFolder &folder;
  std::string name;
  Descriptor file;
  bool late = false;
};

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_ENTRYLOCK_H
