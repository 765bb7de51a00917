//===- OptionRules.cpp - Options that make no sense together --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/OptionRules.h"

#include "runtime/driver/OptionValues.h"

using namespace commsir;
using namespace commsir::driver;

/// Options that belong to the other target.
static llvm::Error validateTargetOptions(const Options &options) {
  struct TargetOption {
    bool given;
    llvm::StringLiteral option;
  };
  const TargetOption cpuOnly[] = {
      {options.seeded, "--seed"},
      {options.fuzzSchedules != 0, "--fuzz-schedules"},
      {options.fast, "--fast"},
      {options.weak, "--memory weak"},
      {!options.sameOnRanks.empty(), "--same"},
      {!options.varied.empty(), "--vary"},
      {options.workers != 0, "--workers"},
      {options.maxSteps != 0, "--max-steps"},
      {!options.trace.empty(), "--trace"},
      {options.instrument, "--instrument"},
      {options.dumpIr, "--dump-ir"}};
  const TargetOption cudaOnly[] = {
      {options.threads != 0, "--threads"},
      {options.cluster != 0, "--cluster"},
      {!options.impl.empty(), "--impl"},
      {!options.devices.empty(), "--devices"},
      {options.windows != "auto", "--windows"},
      {options.oneProcess, "--one-process"},
      {!options.rendezvous.empty(), "--rendezvous"},
      {options.graph, "--graph"},
      {options.timeout.has_value(), "--timeout"}};
  bool cpu = options.target == "cpu";
  for (const TargetOption &only : cpu ? llvm::ArrayRef<TargetOption>(cudaOnly)
                                      : llvm::ArrayRef<TargetOption>(cpuOnly))
    if (only.given)
      return usageError(only.option + " belongs to --target " +
                        (cpu ? "cuda" : "cpu") + ", the run is for " +
                        options.target);
  return llvm::Error::success();
}

/// Options that would be read and forgotten.
static llvm::Error validateUnusedOptions(const Options &options) {
  bool isTolerant = options.rtol || options.atol;
  if (options.expects.empty() && (isTolerant || options.bitwise))
    return usageError(llvm::Twine(options.bitwise ? "--bitwise"
                                  : options.rtol  ? "--rtol"
                                                  : "--atol") +
                      " requires a comparison: give --expect "
                      "NAME=FILE");
  if (options.workers && !options.fast && !options.fuzzSchedules)
    return usageError("--workers requires --fast or --fuzz-schedules: give one "
                      "of them, or leave it out");
  if (!options.weak && (options.ignoreRaces || options.broken))
    return usageError(
        llvm::Twine(options.broken ? "--break" : "--races") +
        " is of a run with weak memory: give --memory weak, or leave it out");
  if (options.checkEvents && !options.check)
    return usageError(
        "--check-events requires the checker, which --no-check disables: "
        "choose one");
  if (!options.check &&
      (!options.certificate.empty() || !options.checkOrder.empty()))
    return usageError(llvm::Twine(options.certificate.empty()
                                      ? "--check-order"
                                      : "--certificate") +
                      " asks for the proof that --no-check leaves out: choose "
                      "one");
  if (options.requireProof && !options.check)
    return usageError("--require-proof asks for the proof that --no-check "
                      "leaves out: choose one");
  return llvm::Error::success();
}

/// Options that cannot stand together.
static llvm::Error validateOptionPairs(const Options &options) {
  if (options.impl == "nccl" && options.windows == "plain")
    return usageError("--impl nccl calls NCCL's device library, which needs "
                      "NCCL's windows: leave out --windows plain");
  if (options.fast && (options.seeded || options.fuzzSchedules))
    return usageError(
        "--fast has no fixed order: it cannot be combined with --seed "
        "or --fuzz-schedules");
  if (options.fast && options.weak)
    return usageError("--memory weak is drawn from a seed: leave out --fast");
  if (options.fast && !options.trace.empty())
    return usageError("--trace needs a fixed order: leave out --fast");
  if (options.fuzzSchedules && !options.trace.empty())
    return usageError("--trace follows one order: give --seed instead of "
                      "--fuzz-schedules");
  if (options.bitwise && (options.rtol || options.atol))
    return usageError(
        "--bitwise allows no difference: leave out --rtol and --atol");
  if (options.oneProcess && !options.rendezvous.empty())
    return usageError(
        "--one-process runs all ranks and --rendezvous one of them: "
        "choose one");
  if (options.json && options.dumpIr)
    return usageError(
        "--json and --dump-ir both write to standard output: choose one");
  return llvm::Error::success();
}

/// Checks the options that may accompany a batch; its lines have all others.
static llvm::Error validateBatchOptions(const Options &options,
                                        llvm::ArrayRef<llvm::StringRef> given) {
  if (!options.file.empty())
    return usageError(
        "--batch takes its kernel files from its lines: leave out '" +
        options.file + "'");
  for (llvm::StringRef name : given)
    if (name != "--batch")
      return usageError("--batch takes its options from its lines: write " +
                        name + " into them");
  return llvm::Error::success();
}

llvm::Error
commsir::driver::validateOptions(const Options &options,
                                 llvm::ArrayRef<llvm::StringRef> given) {
  if (!options.batch.empty())
    return validateBatchOptions(options, given);
  if (options.file.empty())
    return usageError(
        "no kernel file given; usage: comms-run FILE.mlir --ranks N "
        "(--help shows examples)");
  if (llvm::Error error = validateTargetOptions(options))
    return error;
  if (llvm::Error error = validateUnusedOptions(options))
    return error;
  return validateOptionPairs(options);
}
