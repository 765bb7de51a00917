//===- Report.h - The report of a run ---------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_REPORT_H
#define COMMSIR_RUNTIME_DRIVER_REPORT_H

#include "runtime/cpu/World.h"
#include "runtime/driver/Expect.h"
#include "runtime/driver/Options.h"
#include "runtime/support/Diagnosis.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace commsir::driver {

/// Result of running several schedules.
struct FuzzReport {
  int64_t schedules = 0;
  uint64_t firstSeed = 0;
  /// Names of the arguments that were compared bit by bit.
  std::vector<std::string> arguments;
  /// The first difference found, or "".
  std::string difference;
  /// Seed of the schedule that differed or failed.
  uint64_t seed = 0;
};

/// Everything known at the end of a run, successful or not.
struct Report {
  ExitCode exitCode = ExitOk;
  std::string kernel;
  int64_t ranks = 0, blocks = 0, launches = 0;
  /// The checker's verdict, if known.
  std::optional<jit::ProofInfo> proof;
  bool requiresProof = false;
  /// Launches of several kernels that the checker followed, or "".
  std::string order;
  std::vector<jit::Choice> choices;
  std::optional<cpu::RunStats> stats;
  /// A line on how the target ran the kernel, or "".
  std::string note;
  std::vector<Comparison> comparisons;
  std::optional<FuzzReport> fuzz;
  std::vector<std::string> written;
  /// A one-line error message, or "".
  std::string error;
  /// Errors of the compiler; and warnings, for example that nothing was proven.
  std::vector<Diagnosis> diagnostics, warnings;
  std::optional<cpu::RunError> runError;
  double compileMilliseconds = 0;
};

/// Prints the table of ranks and the lines around it. If there are many ranks,
/// those in the middle are omitted.
void printTable(const Report &report, llvm::raw_ostream &out);

/// Prints one JSON object and a newline: status, exit_code, kernel, ranks,
/// blocks, launches, proof and its checked_launches (if known), choices,
/// written; warnings; after a run compile_milliseconds, microseconds, steps,
/// bytes_moved, per_rank (rank, microseconds and, if something was expected,
/// max_error and expects); fuzz; for a failure error, diagnostics and run_error
/// (message, and waiting blocks). Numbers that JSON lacks are the strings
/// "inf", "-inf" and "nan".
void printJson(const Report &report, llvm::raw_ostream &out);

/// The checker's verdict with its scope and assumptions, the kernel's name and
/// digest, and the release that decided.
std::string renderCertificate(const Report &report);

/// {"message", "waiting": the waiting blocks and their conditions}.
llvm::json::Object renderRunError(const cpu::RunError &error);

/// "ok", "wrong-result", "usage", …: the exit code's name in JSON.
llvm::StringRef exitName(ExitCode code);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_REPORT_H
