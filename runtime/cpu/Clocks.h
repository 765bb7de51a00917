//===- Clocks.h - Vector clocks of a run with weak memory -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_CLOCKS_H
#define COMMSIR_RUNTIME_CPU_CLOCKS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace commsir::cpu {

/// The last event of each thread of events that is known to have happened.
/// A thread is a block, or the deferred events (puts, bulk copies) of one.
class VectorClock {
public:
  uint32_t operator[](uint32_t thread) const {
    return thread < times.size() ? times[thread] : 0;
  }
  void advance(uint32_t thread, uint32_t time) {
    if (thread >= times.size())
      times.resize(thread + 1);
    times[thread] = std::max(times[thread], time);
  }
  void join(const VectorClock &other) {
    if (times.size() < other.times.size())
      times.resize(other.times.size());
    for (size_t i = 0; i < other.times.size(); ++i)
      times[i] = std::max(times[i], other.times[i]);
  }
  bool isEmpty() const { return times.empty(); }

private:
  std::vector<uint32_t> times;
};

/// Events that happen before a block's next event (Spec, M4 to M12), and those
/// of them with an alias fence on the path (M11).
struct Knowledge {
  VectorClock happened, aliased;
  void join(const Knowledge &other) {
    happened.join(other.happened);
    aliased.join(other.aliased);
  }
  bool isEmpty() const { return happened.isEmpty(); }
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_CLOCKS_H
