//===- Peers.h - Ranks that are other processes -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Services that one rank's scheduler needs from a group of processes: barriers
// in shared memory, waking sleepers, and sleeping.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_PEERS_H
#define COMMSIR_RUNTIME_CPU_PEERS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace commsir::cpu {

/// Identifies a barrier of a kernel: a team, and a block (-1: all).
struct BarrierKey {
  int64_t first, stride, size, block;
  bool operator==(const BarrierKey &) const = default;
};

/// A barrier in memory shared by all ranks of a kernel.
struct SharedBarrier {
  /// Number of arrivals since the kernel was prepared. The barrier opens at
  /// every multiple of the number of participants.
  std::atomic<uint64_t> *arrived = nullptr;
  /// Arrivals of each team member; for reports.
  std::atomic<uint32_t> *ofMember = nullptr;
  /// Set if there is none: the memory does not hold barriers of this kernel.
  bool isDamaged = false;
};

class Peers {
public:
  virtual ~Peers() = default;
  /// Returns the same memory on all ranks for the same key. `arrived` is null
  /// if there are more barriers than the kernel's memory holds, or if that
  /// memory is damaged.
  virtual SharedBarrier findBarrier(const BarrierKey &key) = 0;
  /// Called after this rank wrote [address, address + bytes), where a peer may
  /// wait.
  virtual void wrote(const char *address, int64_t bytes) = 0;
  /// Called after this rank opened a barrier.
  virtual void opened() = 0;
  /// Called when nothing of this rank can run until `ready`. Returns true when
  /// that may have changed, or false if the launch must end.
  virtual bool rest(llvm::function_ref<bool()> ready) = 0;
  /// Called while blocks of this rank poll memory. `moves`: one of them has
  /// made progress or read a new value since the last call. Returns as `rest`.
  virtual bool poll(bool moves) = 0;
  /// Guards updates of memory that several ranks may update at once.
  virtual void lock() = 0;
  virtual void unlock() = 0;
  /// State of a peer in brackets, for reports; may be empty.
  virtual std::string describe(int64_t rank) = 0;
  /// The other members: "rank 1", "one of ranks 1, 2".
  virtual std::string others() = 0;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_PEERS_H
