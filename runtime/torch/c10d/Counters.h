//===- Counters.h - Which path each call took -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts for commsir.torch.stats(), of the whole process, and the last calls of
// a group, for reports.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_COUNTERS_H
#define COMMSIR_RUNTIME_TORCH_C10D_COUNTERS_H

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace commsir::torch_c10d {

/// Group, op, path ("commsir", "gloo", "nccl"), reason (empty: CommsIR's).
using CallKey = std::tuple<std::string, std::string, std::string, std::string>;

class Counters {
public:
  static Counters &get();
  void add(const CallKey &key);
  std::map<CallKey, uint64_t> all();
  void clear();

private:
  std::mutex mutex;
  std::map<CallKey, uint64_t> counts;
};

/// One call, as a report or a debugger wants to see it.
struct CallRecord {
  uint64_t sequence = 0;
  std::string what, state;
};

/// The last calls of a group, the oldest first.
class Recorder {
public:
  size_t begin(uint64_t sequence, std::string what);
  /// "begun", "done", or "failed".
  void mark(size_t ticket, const char *state);
  std::vector<CallRecord> recent();

private:
  static constexpr size_t kept = 256;
  std::mutex mutex;
  std::array<CallRecord, kept> records;
  size_t next = 0;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_COUNTERS_H
