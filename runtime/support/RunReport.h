//===- RunReport.h - The outcome of a run -----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_RUNREPORT_H
#define COMMSIR_RUNTIME_SUPPORT_RUNREPORT_H

#include <cstdint>
#include <string>
#include <vector>

namespace commsir::cpu {

/// A waiting block.
struct Waiting {
  int64_t rank, block;
  std::string op, location;
  /// "signal s[3] at rank 2: observed 6, expected >= 7; missing signal from
  /// rank 1"
  std::string what;
};

struct RunError {
  enum Kind {
    Deadlock,
    StepLimit,
    TimeLimit,
    Bounds,
    Race,
    Interrupted,
    Other
  } kind = Other;
  std::string message;
  std::vector<Waiting> waiting;
  /// The complete report; each line ends in a newline.
  std::string render() const;
};

struct RunStats {
  /// Time from a rank's first step to its last, for each rank.
  std::vector<double> rankMicroseconds;
  double totalMicroseconds = 0;
  /// Number of times a block was scheduled.
  uint64_t steps = 0;
  /// Bytes written by puts, packets and poisoned stores. For an instrumented
  /// kernel: all recorded bytes.
  uint64_t bytesMoved = 0;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_SUPPORT_RUNREPORT_H
