//===- GroupRequest.cpp - From a request to machine code ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/GroupRequest.h"

#include "dialect/Comms.h"
#include "lowering/Register.h"
#include "lowering/Translations.h"
#include "runtime/choose/ChooseKernel.h"
#include "runtime/choose/cuda/Fitting.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/support/GroupError.h"
#include "runtime/support/Nesting.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace commsir;
using namespace commsir::cuda;
using group::KernelRequest;

uint64_t commsir::cuda::digestOf(const KernelRequest &request,
                                 const jit::CudaKernel &kernel) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << request.source << '\0' << kernel.name() << '\0' << kernel.ranks();
  for (const jit::ArgInfo &argument : kernel.args()) {
    out << '\0' << argument.name << ' ' << int(argument.kind) << ' '
        << argument.elementType << ' ' << argument.hidden << argument.poisoned;
    for (int64_t size : argument.shape)
      out << ' ' << size;
  }
  for (const jit::Choice &choice : kernel.choices())
    out << '\0' << choice.op << ' ' << choice.algorithm << ' '
        << choice.protocol << ' ' << choice.tileSize << ' ' << choice.tiles;
  jit::LaunchShape shape = kernel.shape();
  out << '\0' << shape.blocks << ' ' << shape.threads << ' ' << shape.cluster
      << ' ' << request.impl;
  return llvm::xxh3_64bits(text) | 1; // 0 says that it is not known.
}

/// Nothing is left to be chosen.
static bool isSettled(const KernelRequest &request) {
  return !request.algorithm.empty() && !request.protocol.empty() &&
         request.blocks && request.threads && request.cluster;
}

std::string commsir::cuda::keyOf(const KernelRequest &request) {
  // What is open has been chosen from the tables of the time.
  uint64_t tables = isSettled(request) ? 0 : tune::getTablesDigest();
  return llvm::formatv("{0}\n{1}\n{2}\n{3} {4} {5} {6} {7} {8} {10} "
                       "{11} {12}\n{9}",
                       request.name, request.algorithm, request.protocol,
                       request.blocks, request.threads, request.cluster,
                       request.check, request.concurrent, request.impl,
                       request.source, tables, request.firstLaunch,
                       request.shared)
      .str();
}

namespace {
/// A module's source, parsed; what is wrong with it, and with what is made of
/// it, is kept.
class Source {
public:
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  parse(const std::string &text) {
    llvm::TimeTraceScope scope("commsir: parser");
    mlir::DialectRegistry registry;
    mlir::comms::registerAllDialects(registry);
    mlir::comms::registerLLVMIRTranslationInterfaces(registry);
    context = std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
    context->printOpOnDiagnostic(false);
    handler = std::make_unique<mlir::ScopedDiagnosticHandler>(
        context.get(), [&](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            llvm::raw_string_ostream(said)
                << "\n  " << diagnostic.getLocation() << ": " << diagnostic;
          return mlir::success();
        });
    if (llvm::Error error = commsir::driver::refuseDeepText(text, "kernel"))
      return refuse(llvm::toString(std::move(error)));
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    if (!module)
      return refuse("the kernel could not be parsed");
    return module;
  }
  /// The error with what was said, of a kind that ranks can tell each other.
  llvm::Error explain(llvm::Error error) const {
    using Kind = group::GroupError::Kind;
    Kind kind = jit::isCheckerRefusal(error)     ? Kind::Checker
                : error.isA<jit::CompileError>() ? Kind::Compile
                                                 : Kind::Usage;
    return group::makeError(kind, llvm::toString(std::move(error)) + said);
  }

private:
  static llvm::Error refuse(std::string why) {
    return llvm::make_error<jit::CompileError>(jit::CompileError::Stage::Input,
                                               std::move(why));
  }

  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
  std::string said;
};
} // namespace

static std::string getName(const Device &device) {
  char name[128] = "";
  return device.driver().DeviceGetName(name, sizeof(name), device.handle()) ==
                 CUDA_SUCCESS
             ? name
             : "";
}

/// Multiprocessors by which all ranks choose.
static int64_t countOf(const Device &device, const RequestLimits &limits) {
  return limits.multiprocessors ? limits.multiprocessors
                                : device.getMultiprocessors();
}

/// All that a request's open options are chosen from, in addition to the
/// request and this build of CommsIR.
static std::string variantOf(const KernelRequest &request, const Device &device,
                             const RequestLimits &limits) {
  if (isSettled(request))
    return "";
  return llvm::formatv(
             "{0}\n{1} multiprocessors, {2} bytes, {3} CTAs, tables {4}",
             getName(device), countOf(device, limits), limits.memory,
             limits.ctas, tune::getTablesDigest())
      .str();
}

void commsir::cuda::describeMachine(const Device &device,
                                    const RequestLimits &limits,
                                    tune::ConfigQuery &query) {
  query.chip = device.getChip();
  query.device = getName(device);
  query.multiprocessors = countOf(device, limits);
  query.ctas = limits.ctas;
}

/// Fills in what the request leaves open, from tables or the cost model.
static void chooseOpen(mlir::ModuleOp module, const KernelRequest &request,
                       const Device &device, const RequestLimits &limits,
                       jit::CudaOptions &options) {
  llvm::TimeTraceScope scope("commsir: choice");
  mlir::comms::KernelOp kernel;
  for (auto candidate : module.getOps<mlir::comms::KernelOp>())
    if (request.name.empty() || candidate.getSymName() == request.name)
      kernel = candidate;
  if (!kernel)
    return; // The compiler says so.
  tune::ConfigQuery wish;
  wish.ranks = options.ranks;
  wish.memory = limits.memory;
  describeMachine(device, limits, wish);
  wish.algorithm = request.algorithm;
  wish.protocol = request.protocol;
  wish.blocks = request.blocks;
  wish.threads = request.threads;
  // NCCL's barriers are of one CTA.
  wish.cluster = request.impl.empty() ? request.cluster : 1;
  tune::KernelConfigs answer = tune::chooseForKernel(kernel, wish);
  if (!options.blocks && !kernel.getBlocks())
    options.blocks = answer.blocks;
  if (!options.threads)
    options.threads = answer.threads;
  if (!options.cluster)
    options.cluster = answer.cluster;
}

llvm::Expected<std::unique_ptr<jit::CudaKernel>>
commsir::cuda::compileRequest(const KernelRequest &request, int64_t ranks,
                              const Device &device,
                              const RequestLimits &limits) {
  jit::CudaOptions options;
  options.ranks = ranks;
  options.blocks = request.blocks;
  options.threads = request.threads;
  options.cluster = request.cluster;
  options.impl = request.impl;
  options.sharedChannels = request.shared;
  options.nccl = findNccl;
  options.chip = device.getChip();
  options.algorithm = request.algorithm;
  options.protocol = request.protocol;
  options.check = request.check;
  options.checkEvents = request.checkEvents;

  jit::SourceEntry entry(request.source, variantOf(request, device, limits),
                         request.name, options);
  if (auto kernel = entry.find())
    return kernel;
  Source source;
  auto module = source.parse(request.source);
  if (!module)
    return source.explain(module.takeError());
  if (!isSettled(request))
    chooseOpen(**module, request, device, limits, options);
  tune::ConfigQuery machine;
  machine.multiprocessors = countOf(device, limits);
  bool isOpen = !request.blocks && options.blocks;
  auto kernel = tune::compileFitting(std::move(*module), request.name, options,
                                     machine, isOpen);
  if (!kernel)
    return source.explain(kernel.takeError());
  entry.keep(**kernel);
  return kernel;
}
