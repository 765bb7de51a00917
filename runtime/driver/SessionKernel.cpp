//===- SessionKernel.cpp - From a file to a compiled kernel ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/Blocks.h"
#include "runtime/driver/Session.h"
#include "runtime/jit/CheckSequence.h"
#include "runtime/jit/Shapes.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Nesting.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <chrono>
#include <unistd.h>

using namespace commsir;
using namespace commsir::driver;

//===----------------------------------------------------------------------===//
// Source
//===----------------------------------------------------------------------===//

/// Null when it cannot be read.
std::unique_ptr<llvm::MemoryBuffer> Session::readSource() {
  if (host)
    return llvm::MemoryBuffer::getMemBufferCopy(host->source, options.file);
  auto refuse = [&](const llvm::Twine &message) {
    fail(ExitUsage, message);
    return nullptr;
  };
  if (options.file == "-") {
    llvm::Expected<std::string> text = readStream(STDIN_FILENO, "<stdin>");
    if (!text)
      return refuse(llvm::toString(text.takeError()));
    return llvm::MemoryBuffer::getMemBufferCopy(*text, "<stdin>");
  }
  auto buffer = readFileOrPipe(options.file);
  if (!buffer)
    return refuse("cannot read the kernel file '" + options.file +
                  "': " + llvm::toString(buffer.takeError()));
  return std::move(*buffer);
}

bool Session::parse() {
  std::unique_ptr<llvm::MemoryBuffer> buffer = readSource();
  if (!buffer)
    return false;
  llvm::StringRef text = buffer->getBuffer();
  // Locations may name any file. None but the kernel's is opened to show a
  // line.
  sources.setVirtualFileSystem(
      llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>());
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  if (llvm::Error error = refuseSource(text, options.file))
    return fail(ExitCompile, std::move(error));
  Listener listener(sources, context, listenerOutput());
  module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return fail(ExitCompile, "'" + options.file + "' is not valid");
  return true;
}

bool Session::selectKernel() {
  llvm::SmallVector<llvm::StringRef> names;
  for (auto candidate : module->getOps<mlir::comms::KernelOp>()) {
    names.push_back(candidate.getSymName());
    if (options.kernel.empty() || options.kernel == candidate.getSymName())
      kernel = candidate;
  }
  if (names.empty())
    return fail(ExitCompile, "'" + options.file + "' has no comms.kernel");
  std::string list = llvm::join(names, ", ");
  if (options.kernel.empty() && names.size() > 1)
    return fail(ExitUsage, "'" + options.file + "' has " +
                               llvm::Twine(names.size()) +
                               " kernels; choose one with " +
                               (host ? "name" : "--kernel") + ": " + list);
  if (!kernel) {
    return fail(ExitUsage,
                "'" + options.file + "' has no kernel '" + options.kernel +
                    "'" +
                    didYouMean(options.kernel, names, "; it has: " + list));
  }
  report.kernel = kernel.getSymName().str();
  arguments = listArguments(kernel);
  return true;
}

//===----------------------------------------------------------------------===//
// Ranks, blocks, shapes
//===----------------------------------------------------------------------===//

/// An attribute of the kernel and an option that say different numbers.
bool Session::refuseCount(llvm::StringRef what, int64_t given, int64_t own) {
  return fail(ExitUsage, (host ? what + "=" : "--" + what + " ") +
                             llvm::Twine(given) + ": kernel '" + report.kernel +
                             "' is written for " + llvm::Twine(own) + " " +
                             what + " (its attribute `" + what + "`)");
}

/// A job has as many ranks as were started.
bool Session::fixJobRanks(int64_t started) {
  std::optional<int64_t> own = kernel.getRanks();
  std::string job = llvm::formatv("the job has {0} {1} (WORLD_SIZE)", started,
                                  started == 1 ? "rank" : "ranks");
  if (options.ranks && *options.ranks != started)
    return fail(ExitUsage, "--ranks " + llvm::Twine(*options.ranks) + ": " +
                               job + ": leave out --ranks, or start " +
                               llvm::Twine(*options.ranks) + " processes");
  if (own && *own != started)
    return fail(ExitUsage, "kernel '" + report.kernel + "' is written for " +
                               llvm::Twine(*own) +
                               " ranks (its attribute `ranks`), and " + job +
                               ": start " + llvm::Twine(*own) + " processes");
  report.ranks = started;
  return true;
}

bool Session::fixRanks() {
  auto started = target->findJobRanks();
  if (!started)
    return fail(ExitUsage, started.takeError());
  if (*started)
    return fixJobRanks(**started);
  std::optional<int64_t> own = kernel.getRanks();
  if (own && options.ranks && *own != *options.ranks)
    return refuseCount("ranks", *options.ranks, *own);
  if (!own && !options.ranks)
    return fail(ExitUsage, llvm::Twine(host ? "ranks" : "--ranks") +
                               " is missing: kernel '" + report.kernel +
                               "' runs with any number of ranks; try " +
                               (host ? "ranks=8" : "--ranks 8"));
  report.ranks = own ? *own : *options.ranks;
  return true;
}

bool Session::fixBlocks() {
  std::optional<int64_t> own = kernel.getBlocks();
  if (own && options.blocks && *own != options.blocks)
    return refuseCount("blocks", options.blocks, *own);
  report.blocks =
      options.blocks
          ? options.blocks
          : mlir::comms::chooseBlocks(kernel, target->defaultBlocks());
  constexpr int64_t maxFibers = int64_t(1) << 24;
  if (report.ranks <= maxFibers / std::max<int64_t>(report.blocks, 1))
    return true;
  return fail(ExitUsage, llvm::Twine(report.ranks) + " ranks of " +
                             llvm::Twine(report.blocks) +
                             " blocks are more than " + llvm::Twine(maxFibers) +
                             " blocks in all; ask for fewer");
}

bool Session::fixShapes() {
  auto shapes = gatherShapes(arguments, options);
  if (!shapes)
    return fail(ExitUsage, shapes.takeError());
  if (host)
    for (const auto &shape : host->shapes)
      shapes->try_emplace(shape.first(), shape.second);
  if (shapes->empty() &&
      llvm::all_of(arguments, [](const Argument &a) { return a.isStatic(); }))
    return true;
  Listener listener(sources, context, listenerOutput());
  if (mlir::failed(jit::specialize(kernel, *shapes)))
    return fail(ExitUsage, "the shapes given do not fit '" + report.kernel +
                               (host ? "'; give an array or a shape for each "
                                       "open one"
                                     : "', or leave some open; give --input "
                                       "NAME=FILE or --shape NAME=8x64 for "
                                       "each '?'"));
  selectKernel();
  return true;
}

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

void Session::printIr() {
  mlir::OwningOpRef<mlir::ModuleOp> copy = module->clone();
  mlir::PassManager manager(&context);
  target->addPasses(manager, report.ranks, report.blocks);
  if (mlir::failed(manager.run(*copy)))
    return; // compile() finds the same and reports it.
  copy->print(llvm::outs());
  llvm::outs() << "\n";
}

bool Session::compile() {
  progress.begin("compiling " + report.kernel);
  Listener listener(sources, context, listenerOutput());
  if (options.dumpIr)
    printIr();
  report.diagnostics.clear();
  report.warnings.clear();
  auto start = std::chrono::steady_clock::now();
  std::string object;
  bool dumps = !options.dumpObject.empty();
  llvm::Error error =
      target->compile(std::move(module), report.kernel, report.ranks,
                      report.blocks, dumps ? &object : nullptr);
  progress.end();
  if (error) {
    ExitCode code = jit::isCheckerRefusal(error) ? ExitChecker : ExitCompile;
    return fail(code, std::move(error));
  }
  report.compileMilliseconds = std::chrono::duration<double, std::milli>(
                                   std::chrono::steady_clock::now() - start)
                                   .count();
  if (dumps)
    if (llvm::Error failure = files.write(options.dumpObject, {object}))
      return fail(ExitUsage, std::move(failure));
  report.choices.assign(target->choices().begin(), target->choices().end());
  if (const jit::ProofInfo *proof = target->proof())
    report.proof = *proof;
  report.requiresProof = options.requireProof;
  if (!writeCertificate())
    return false;
  if (target->blocks())
    report.blocks = target->blocks();
  return true;
}

//===----------------------------------------------------------------------===//
// Verdicts
//===----------------------------------------------------------------------===//

/// Keeps the verdict with the results.
bool Session::writeCertificate() {
  if (options.certificate.empty())
    return true;
  std::string text = renderCertificate(report);
  if (llvm::Error error = files.write(options.certificate, {text}))
    return fail(ExitUsage, std::move(error));
  return true;
}

/// Checks launches of several kernels in place of a run.
bool Session::checkLaunchOrder() {
  if (!parse() || !checkOutputs())
    return false;
  jit::SequenceOptions wanted;
  wanted.order = options.checkOrder;
  wanted.ranks = options.ranks.value_or(0);
  wanted.blocks = options.blocks;
  wanted.algorithm = options.algorithm;
  wanted.protocol = options.protocol;
  wanted.checkEvents = options.checkEvents;
  Listener listener(sources, context, listenerOutput());
  auto found = jit::checkSequence(*module, wanted);
  if (!found) {
    llvm::Error error = found.takeError();
    return fail(jit::isCheckerRefusal(error) ? ExitChecker : ExitCompile,
                std::move(error));
  }
  report.kernel = found->kernels;
  report.order = found->order;
  report.proof = found->proof;
  report.ranks = found->proof.ranks;
  report.blocks = found->proof.blocks;
  return writeCertificate() && commit();
}
