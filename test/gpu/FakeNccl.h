//===- FakeNccl.h - Structs of the fake NCCL and driver ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replacements for ncclWindow_vidmem, ncclDevCommRequirements and ncclDevComm:
// FakeNccl.cpp makes them, and FakeCuda.cpp runs kernels on them.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_FAKENCCL_H
#define COMMSIR_TEST_GPU_FAKENCCL_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace commsir::fake {

constexpr int kMaxRanks = 8;
constexpr uint64_t kWindowMark = 0xFA4E0001, kRequirementsMark = 0xFA4E0002,
                   kDevCommMark = 0xFA4E0003;

/// What the ranks of a communicator share, in threads or processes. Zeros at
/// first.
struct Meeting {
  /// A rank will not come.
  std::atomic<int> broken;
  std::atomic<int> came[2];
  std::atomic<uint32_t> round;
  std::atomic<uint64_t> said[kMaxRanks];
};

struct FakeWindow {
  uint64_t mark;
  char *parts[kMaxRanks];
  /// Bytes of parts of other processes, which this one has mapped.
  size_t mapped[kMaxRanks];
};

struct Requirements {
  uint64_t mark;
  int32_t lsaBarriers, railBarriers, contexts, signals, counters;
};

struct DevComm {
  uint64_t mark;
  int rank, ranks;
  Requirements has;
  /// Of the kernels' barriers.
  Meeting *meeting;
  /// A kind of adapter without device code; 0: there is none.
  int64_t adapter;
};

/// Waits for all ranks; false: they did not come.
inline bool meet(Meeting &meeting, int ranks) {
  uint32_t round = meeting.round;
  if (meeting.came[round % 2].fetch_add(1) == ranks - 1) {
    meeting.came[round % 2] = 0;
    ++meeting.round;
    return true;
  }
  for (int i = 0; i < 60000 && meeting.round == round && !meeting.broken; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return meeting.round != round;
}

} // namespace commsir::fake

#endif // COMMSIR_TEST_GPU_FAKENCCL_H
