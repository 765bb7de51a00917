//===- Peers.h - Ranks that are other processes -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the scheduler of one rank needs of a group of processes: barriers in
// memory that all share, waking those who sleep, and sleeping.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_PEERS_H
#define COMMSIR_RUNTIME_CPU_PEERS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace commsir::cpu {

/// Names a barrier of a kernel: a team, and the block it belongs to (-1: all).
struct BarrierKey {
  int64_t first, stride, size, block;
  bool operator==(const BarrierKey &) const = default;
};

/// A barrier in memory that all ranks of a kernel share.
struct SharedBarrier {
  /// Arrivals since the kernel was prepared: it opens at every multiple of the
  /// number of those who take part.
  std::atomic<uint64_t> *arrived = nullptr;
  /// Arrivals of each member of the team; for reports.
  std::atomic<uint32_t> *ofMember = nullptr;
  /// Where there is none: what stands in their memory are not barriers of this
  /// kernel.
  bool isDamaged = false;
};

class Peers {
public:
  virtual ~Peers() = default;
  /// The same memory on all ranks for the same key; `arrived` is null when
  /// there are more barriers than the kernel's memory holds, or that memory is
  /// damaged.
  virtual SharedBarrier findBarrier(const BarrierKey &key) = 0;
  /// This rank has written where a peer may wait: [address, address + bytes).
  virtual void wrote(const char *address, int64_t bytes) = 0;
  /// This rank has opened a barrier.
  virtual void opened() = 0;
  /// Nothing of this rank can run until `ready`. Returns when that may be so;
  /// false: the launch has to end.
  virtual bool rest(llvm::function_ref<bool()> ready) = 0;
  /// Blocks of this rank poll memory. `moves`: since the last call one of them
  /// has done something else, or has read something new. As `rest`.
  virtual bool poll(bool moves) = 0;
  /// Around arithmetic on memory that several ranks may update at once.
  virtual void lock() = 0;
  virtual void unlock() = 0;
  /// What a peer is doing, in brackets, for reports; may be empty.
  virtual std::string describe(int64_t rank) = 0;
  /// "rank 1", "one of ranks 1, 2": the other members.
  virtual std::string others() = 0;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_PEERS_H
