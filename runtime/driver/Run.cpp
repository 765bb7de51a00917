//===- Run.cpp - The program comms-run ------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Run.h"

#include "lowering/Register.h"
#include "lowering/Translations.h"
#include "runtime/driver/Session.h"
#include "runtime/driver/Target.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/StandardError.h"
#include "runtime/support/StandardOutput.h"
#include "runtime/support/Version.h"

#include "mlir/IR/Remarks.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/StringSaver.h"

#include <cstdio>
#include <cstdlib>

using namespace commsir;
using namespace commsir::driver;

/// Says `report` on both streams, and returns the exit status.
static int printReport(const Report &report, const Options &options) {
  if (options.json)
    printJson(report, llvm::outs());
  else if (!options.quiet)
    printTable(report, llvm::outs());
  llvm::outs().flush();
  if (!report.error.empty())
    printErrorLine("comms-run: error: " + report.error);
  return flushOutput("comms-run", report.exitCode);
}

/// Lets passes say what they chose and why; the remarks are diagnostics.
static void enableRemarks(mlir::MLIRContext &context) {
  mlir::remark::RemarkCategories categories;
  categories.all = categories.passed = categories.missed = ".*";
  categories.analysis = categories.failed = ".*";
  (void)mlir::remark::enableOptimizationRemarks(
      context, /*streamer=*/nullptr,
      std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), categories,
      /*printAsEmitRemarks=*/true);
}

/// Carries out one command line.
static int runSession(const Options &options) {
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  mlir::comms::registerLLVMIRTranslationInterfaces(registry);
  // One thread: threads would cost more than these modules take.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  // The source line says more than the op in generic form.
  context.printOpOnDiagnostic(false);
  if (options.verbose)
    enableRemarks(context);
  Session session(options, context);
  return printReport(session.execute(), options);
}

/// Something that runs may not return: its thread must not meet the end of the
/// program.
static int leave(int code) {
  llvm::outs().flush();
  if (mustExitWithoutCleanup())
    std::_Exit(code);
  return code;
}

static llvm::Expected<Options> parseLine(llvm::StringRef line) {
  // Of editors that write UTF-8 as Windows does.
  line.consume_front("\xEF\xBB\xBF");
  if (line.contains('\0'))
    return llvm::createStringError(
        "the line has a NUL byte: batches are UTF-8 text, an argument list a "
        "line");
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  llvm::SmallVector<const char *> arguments;
  llvm::cl::TokenizeGNUCommandLine(line, saver, arguments);
  llvm::Expected<Options> options = parseOptions(arguments);
  if (!options)
    return options;
  llvm::StringRef misplaced = !options->batch.empty() ? "--batch"
                              : options->help         ? "--help"
                              : options->version      ? "--version"
                              : options->dumpIr       ? "--dump-ir"
                                                      : "";
  if (misplaced.empty())
    return options;
  return llvm::createStringError(
      misplaced + " has no place in a batch, whose lines print one JSON "
                  "object each: give it to a run of its own");
}

/// One line of a batch.
static int runLine(llvm::StringRef line) {
  llvm::Expected<Options> options = parseLine(line);
  Report report;
  Options json;
  json.json = true;
  if (!options) {
    report.exitCode = ExitUsage;
    report.error = llvm::toString(options.takeError());
    return printReport(report, json);
  }
  options->json = true;
  return runSession(*options);
}

/// Calls `run` for each line that says something, as it comes: who writes lines
/// may wait for the answer to one before the next.
static llvm::Error forEachLine(llvm::StringRef path,
                               llvm::function_ref<bool(llvm::StringRef)> run) {
  auto isWanted = [](llvm::StringRef line) {
    return !line.trim().empty() && !line.starts_with("#");
  };
  if (path == "-") {
    char *text = nullptr;
    size_t room = 0;
    for (ssize_t size; (size = getline(&text, &room, stdin)) >= 0;) {
      llvm::StringRef line = llvm::StringRef(text, size_t(size)).rtrim("\r\n");
      if (isWanted(line) && !run(line))
        break;
    }
    std::free(text);
    return llvm::Error::success();
  }
  auto buffer = readFileOrPipe(path);
  if (!buffer)
    return buffer.takeError();
  for (llvm::StringRef line : llvm::split((*buffer)->getBuffer(), '\n'))
    if (isWanted(line.rtrim('\r')) && !run(line.rtrim('\r')))
      break;
  return llvm::Error::success();
}

static int runBatch(llvm::StringRef path) {
  if (!mayShareMachine())
    keepMachineOpen();
  int code = ExitOk;
  llvm::Error error = forEachLine(path, [&](llvm::StringRef line) {
    int status = runLine(line);
    code = code ? code : status;
    return !mustExitWithoutCleanup();
  });
  if (!error)
    return code;
  printErrorLine("comms-run: error: cannot read the batch '" + path +
                 "': " + llvm::toString(std::move(error)));
  return ExitUsage;
}

int commsir::driver::runMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  if (std::optional<int> status =
          runAsRank(llvm::ArrayRef<const char *>(argv, argc)))
    return *status;
  llvm::Expected<Options> options =
      parseOptions(llvm::ArrayRef<const char *>(argv, argc).drop_front());
  if (!options) {
    printErrorLine("comms-run: error: " + llvm::toString(options.takeError()));
    return ExitUsage;
  }
  // The compiler's proof, in this process and those that it starts.
  if (options->requireProof)
    setenv("COMMSIR_REQUIRE_PROOF", "1", /*overwrite=*/1);
  if (options->help || options->version) {
    if (options->help)
      llvm::outs() << helpText();
    else
      llvm::outs() << "comms-run " << getVersion() << "\n";
    return flushOutput("comms-run", ExitOk);
  }
  // The lines of a batch share what is open in this process, unless ranks share
  // GPUs, which only processes can.
  if (options->batch.empty() || mayShareMachine())
    allowProcesses();
  return leave(options->batch.empty() ? runSession(*options)
                                      : runBatch(options->batch));
}
