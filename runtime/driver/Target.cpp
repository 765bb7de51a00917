//===- Target.cpp - The interface of comms-run's targets ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace commsir;
using namespace commsir::driver;

mlir::comms::KernelOp commsir::driver::findKernel(mlir::ModuleOp module,
                                                  llvm::StringRef name) {
  for (auto kernel : module.getOps<mlir::comms::KernelOp>())
    if (kernel.getSymName() == name)
      return kernel;
  return {};
}

tune::KernelConfigs
commsir::driver::chooseConfigs(mlir::comms::KernelOp kernel,
                               const tune::ConfigQuery &wish,
                               const Options &options) {
  tune::KernelConfigs answer = tune::chooseForKernel(kernel, wish);
  if (!options.explain)
    return answer;
  for (const auto &[query, one] : answer.collectives)
    llvm::errs() << tune::explain(query, one);
  if (answer.collectives.empty())
    llvm::errs() << "@" << kernel.getSymName()
                 << " has no collective: there is nothing to choose\n";
  return answer;
}

unsigned Target::findArg(llvm::StringRef name) const {
  const auto *found = llvm::find_if(
      args(), [&](const jit::ArgInfo &arg) { return arg.name == name; });
  assert(found != args().end() && "compilation keeps the kernel's arguments");
  return unsigned(found - args().begin());
}

namespace commsir::driver {
#define COMMSIR_TARGET(name) const TargetKind &get##name();
#include "runtime/driver/Targets.inc"
#undef COMMSIR_TARGET
} // namespace commsir::driver

llvm::ArrayRef<const TargetKind *> commsir::driver::getTargetKinds() {
#define COMMSIR_TARGET(name) &get##name(),
  static const TargetKind *const all[] = {
#include "runtime/driver/Targets.inc"
  };
#undef COMMSIR_TARGET
  return all;
}

const TargetKind *commsir::driver::findTargetKind(llvm::StringRef name) {
  auto all = getTargetKinds();
  const auto *found = llvm::find_if(
      all, [&](const TargetKind *kind) { return kind->name == name; });
  return found == all.end() ? nullptr : *found;
}

llvm::Expected<std::unique_ptr<Target>> Target::create(const Options &options) {
  if (const TargetKind *kind = findTargetKind(options.target))
    return kind->create(options);
  return llvm::createStringError(
      "this comms-run was built without the GPU target: build it where the "
      "headers of CUDA and NCCL are (make setup brings them)");
}

/// Whether a kind of target says yes to what `ask` points to.
static bool anyTarget(bool (*TargetKind::*ask)()) {
  return llvm::any_of(getTargetKinds(), [&](const TargetKind *kind) {
    return kind->*ask && (kind->*ask)();
  });
}

/// Tells all kinds of targets.
static void forEachTarget(void (*TargetKind::*tell)()) {
  for (const TargetKind *kind : getTargetKinds())
    if (kind->*tell)
      (kind->*tell)();
}

bool commsir::driver::mustExitWithoutCleanup() {
  return anyTarget(&TargetKind::mustExitWithoutCleanup);
}

bool commsir::driver::mayShareMachine() {
  return anyTarget(&TargetKind::mayShareMachine);
}

void commsir::driver::keepMachineOpen() {
  forEachTarget(&TargetKind::keepMachineOpen);
}

void commsir::driver::allowProcesses() {
  forEachTarget(&TargetKind::allowProcesses);
}

std::optional<int>
commsir::driver::runAsRank(llvm::ArrayRef<const char *> arguments) {
  for (const TargetKind *kind : getTargetKinds())
    if (kind->runAsRank)
      if (std::optional<int> status = kind->runAsRank(arguments))
        return status;
  return std::nullopt;
}
