//===- Session.cpp - One run of a kernel, step by step --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Session.h"

using namespace commsir;
using namespace commsir::driver;

Session::Session(const Options &options, mlir::MLIRContext &context,
                 const HostData *host)
    : options(options), context(context), host(host),
      progress(!options.quiet && !host) {
  report.launches = options.launches;
}

Session::~Session() = default;

Listener::Output Session::listenerOutput() {
  return {options, report, progress, host != nullptr};
}

bool Session::fail(ExitCode code, const llvm::Twine &message) {
  progress.end();
  report.exitCode = code;
  report.error = message.str();
  return false;
}

bool Session::fail(ExitCode code, llvm::Error error) {
  return fail(code, llvm::toString(std::move(error)));
}

static ExitCode exitOf(cpu::RunError::Kind kind) {
  switch (kind) {
  case cpu::RunError::Deadlock:
    return ExitDeadlock;
  case cpu::RunError::StepLimit:
  case cpu::RunError::TimeLimit:
  case cpu::RunError::Interrupted:
    return ExitLimit;
  case cpu::RunError::Race:
    return ExitWrongResult;
  case cpu::RunError::Bounds:
    return ExitBounds;
  case cpu::RunError::Other:
    return ExitUsage;
  }
  return ExitUsage;
}

bool Session::failRun(cpu::RunError error, const llvm::Twine &prefix) {
  ExitCode code = exitOf(error.kind);
  std::string message = error.render();
  report.runError = std::move(error);
  return fail(code, prefix + llvm::StringRef(message).rtrim());
}

bool Session::chooseTarget() {
  auto made = Target::create(options);
  if (!made)
    return fail(ExitUsage, made.takeError());
  target = std::move(*made);
  return true;
}

bool Session::prepare() {
  return chooseTarget() && parse() && selectKernel() && fixRanks() &&
         fixBlocks() && checkMachine() && checkBindings() &&
         checkHostArrays() && checkHostScalars() && checkFiles() &&
         fixShapes() && checkReferences() &&
         checkMemory(0, "the kernel's arguments") && compile() &&
         checkMemory(target->hostBytes(report.blocks),
                     "arguments, channels and stacks");
}

const Report &Session::execute() {
  if (!options.checkOrder.empty()) {
    checkLaunchOrder();
    return report;
  }
  if (!prepare() || !run())
    return report;
  copyToHost(*reference);
  if (compareResults(*reference) && writeResults(*reference))
    commit();
  if (report.exitCode >= ExitUsage)
    report.written.clear();
  return report;
}
