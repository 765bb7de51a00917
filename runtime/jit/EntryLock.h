//===- EntryLock.h - Who builds a cache entry -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_ENTRYLOCK_H
#define COMMSIR_RUNTIME_JIT_ENTRYLOCK_H

#include "runtime/jit/EntryFile.h"

namespace commsir::jit {

/// Holds the lock of an entry while it lives; holds nothing where locks do not
/// work, which only means that work is done twice.
class EntryLock {
public:
  /// Waits at most `patience` seconds. The folder lives longer than this.
  EntryLock(const OwnFolder &folder, std::string name, double patience);
  EntryLock(const EntryLock &) = delete;
  ~EntryLock();
  /// Another process held it all the time.
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
