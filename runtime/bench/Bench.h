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

/// Measures every contender of `problem`: `plan.repetitions` times each in
/// turn, the first of a turn moving on by one, outputs poisoned before every
/// turn and checked after it. A contender that cannot be made, fails or is
/// wrong becomes an entry that says so and loses its later turns. `progress` is
/// called with the share that is done.
std::vector<Entry> measureProblem(const Plan &plan, BenchTarget &target,
                                  const BenchCase &problem,
                                  const std::function<void(double)> &progress);

/// The whole of comms-bench: reads the command line, measures or compares, and
/// reports. Returns the exit status: 0; 1 a wrong result or, comparing,
/// something slower or broken; 2 wrong use or nothing to run on; 3 nothing of a
/// problem could be run.
int benchMain(int argc, char **argv);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCH_H
