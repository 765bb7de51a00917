//===- Counters.h - Counts the path of each call ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Process-wide counters for commsir.torch.stats(), and the last calls of a
// group, for reports.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_COUNTERS_H
#define COMMSIR_RUNTIME_TORCH_C10D_COUNTERS_H

#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace commsir::torch_c10d {

/// Group, op, path ("commsir", "gloo", "nccl") and reason (empty: CommsIR ran
/// it).
using CallKey = std::tuple<std::string, std::string, std::string, std::string>;

class Counters {
public:
  static Counters &get();
  /// The counter of that kind of call. The reference stays valid.
  std::atomic<uint64_t> &at(const CallKey &key);
  std::map<CallKey, uint64_t> all();
  void clear();

private:
  std::mutex mutex;
  std::map<CallKey, std::atomic<uint64_t>> counts;
};

/// One call, for reports and debuggers.
struct CallRecord {
  /// Shapes of tensors, one after the other. Most calls have one or two, which
  /// need no allocation.
  struct Shapes {
    void add(c10::IntArrayRef shape, c10::ScalarType type) {
      sizes.append(shape.begin(), shape.end());
      tensors.emplace_back(shape.size(), type);
    }
    void clear() {
      sizes.clear();
      tensors.clear();
    }
    c10::SmallVector<int64_t, 4> sizes;
    /// Number of dimensions and type of each tensor.
    c10::SmallVector<std::pair<uint32_t, c10::ScalarType>, 2> tensors;
  };
  const char *name = "", *reduction = "";
  /// Root or peer; -1: none.
  int64_t root = -1;
  bool pointToPoint = false;
  /// Number among its group's collectives, or among its sends and receives.
  uint64_t sequence = 0;
  /// "queued", "begun", "done" or "failed".
  const char *state = "queued";
  Shapes inputs, outputs;
  std::chrono::milliseconds timeout{0};
  /// Nanoseconds of the system clock; 0: not yet.
  int64_t created = 0, begun = 0, ended = 0;

  /// "all_reduce(sum) of 8 x Float".
  std::string describe() const;
  /// Prepares the record for another call. Fields that are always set stay
  /// unchanged.
  void reset() {
    root = -1;
    pointToPoint = false;
    inputs.clear();
    outputs.clear();
    begun = ended = 0;
    state = "queued";
  }
};

/// The last calls of a group, oldest first. Its capacity is that of torch's
/// flight recorder: TORCH_FR_BUFFER_SIZE, or 2000.
class Recorder {
public:
  Recorder();
  /// Adds a record, which `fill` writes. `begins`: the call begins at once.
  template <typename Fill>
  size_t add(bool begins, Fill fill) {
    int64_t time = now();
    std::lock_guard<std::mutex> lock(mutex);
    CallRecord &record = takeNext();
    record.created = time;
    if (begins) {
      record.begun = time;
      record.state = "begun";
    }
    fill(record);
    return next++;
  }
  /// Sets the state: "begun", "done" or "failed".
  void mark(size_t ticket, const char *state);
  std::vector<CallRecord> recent();

private:
  static int64_t now();
  CallRecord &takeNext();

  std::mutex mutex;
  /// A ring buffer once it is full. Records do not move.
  std::vector<CallRecord> records;
  /// Tickets number the calls; `place` is the index of the next record.
  size_t next = 0, place = 0, kept;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_COUNTERS_H
