//===- Bench.h - The program comms-bench ------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_BENCH_H
#define COMMSIR_RUNTIME_BENCH_BENCH_H

#include "runtime/bench/BenchTarget.h"

#include <functional>

namespace commsir::tune {

/// Measures every contender of `problem` in `plan.repetitions` rounds. Each
/// round starts with the next contender; outputs are poisoned before and
/// checked after each measurement. A contender that cannot be made, fails or
/// gives wrong results becomes an entry with the reason and is not measured
/// again. `progress` receives the finished fraction.
std::vector<Entry> measureProblem(const Plan &plan, BenchTarget &target,
                                  const BenchCase &problem,
                                  const std::function<void(double)> &progress);

/// Main function of comms-bench: reads the command line, measures or compares,
/// and reports. Returns the exit status: 0: success; 1: a wrong result or, in a
/// comparison, a regression; 2: wrong usage or nothing to run on; 3: no
/// contender of some problem could run.
int benchMain(int argc, char **argv);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCH_H
