//===- fuzz-run.cpp - comms-run on random inputs --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input has three parts, separated by a line `====`: the command line, one
// argument per line; the kernel; and the bytes of the .npy file that every file
// argument reads. It runs as in comms-run, under limits that keep it short. It
// must not crash, no canary around its arrays may change, and afterwards the
// folder must hold either every requested file, complete, or none.
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "lowering/Translations.h"
#include "runtime/driver/Inputs.h"
#include "runtime/driver/Npy.h"
#include "runtime/driver/Session.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdint>
#include <cstdlib>
#include <set>

using namespace commsir::driver;

[[noreturn]] static void complain(const llvm::Twine &what) {
  llvm::errs() << "fuzz-run: " << what << "\n";
  std::abort();
}

static void writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  out << bytes;
  if (error || (out.flush(), out.has_error()))
    complain("cannot write " + path);
}

/// The command line `text` with its files moved into `folder` and its numbers
/// made small; nothing when comms-run would not get further.
static std::optional<Options> readOptions(llvm::StringRef text,
                                          const std::string &folder) {
  std::vector<std::string> lines;
  for (llvm::StringRef rest = text; !rest.empty();) {
    auto [line, after] = rest.split('\n');
    lines.push_back(line.str());
    rest = after;
  }
  std::vector<const char *> arguments;
  for (const std::string &line : lines)
    arguments.push_back(line.c_str());
  llvm::Expected<Options> read = parseOptions(arguments);
  if (!read) {
    llvm::consumeError(read.takeError());
    return std::nullopt;
  }
  Options options = std::move(*read);
  if (options.help || options.version || !options.batch.empty() ||
      options.ranks.value_or(1) > 4)
    return std::nullopt;
  options.target = "cpu";
  options.file = folder + "/kernel.mlir";
  for (Binding &binding : options.inputs)
    if (isFileInput(binding.value))
      binding.value = folder + "/input.npy";
  for (Binding &binding : options.expects)
    binding.value = folder + "/input.npy";
  for (auto [at, binding] : llvm::enumerate(options.outputs))
    binding.value = folder + "/out" + std::to_string(at) + "-%r.npy";
  for (std::string *path : {&options.trace, &options.dumpObject})
    if (!path->empty())
      *path = folder + (path == &options.trace ? "/trace" : "/object");
  options.dumpIr = false;
  options.quiet = true;
  options.blocks = std::min<int64_t>(options.blocks, 4);
  options.launches = std::min<int64_t>(options.launches, 3);
  options.fuzzSchedules = std::min<int64_t>(options.fuzzSchedules, 3);
  options.workers = options.fast || options.fuzzSchedules ? 2 : 0;
  options.checkEvents = 20000;
  options.maxSteps = 20000;
  options.timeLimit = 2;
  options.memoryLimit = 16 << 20;
  options.guardArrays = true;
  return options;
}

/// Every file that `report` names is there and whole, and no other one.
static void checkFolder(const Report &report, const std::string &folder) {
  std::set<std::string> expected{folder + "/kernel.mlir",
                                 folder + "/input.npy"};
  expected.insert(report.written.begin(), report.written.end());
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(folder, error), end;
       file != end && !error; file.increment(error)) {
    if (!expected.erase(file->path()))
      complain("left behind: " + file->path());
    if (!llvm::sys::path::filename(file->path()).starts_with("out"))
      continue;
    llvm::Expected<Npy> npy = Npy::open(file->path());
    if (!npy)
      complain("not whole: " + llvm::toString(npy.takeError()));
  }
  if (!expected.empty())
    complain("said to be written, but is not there: " + *expected.begin());
}

/// What comms-run does with `options`; its temporary files are gone afterwards.
static Report execute(const Options &options) {
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  mlir::comms::registerLLVMIRTranslationInterfaces(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  Session session(options, context);
  return session.execute();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef blob(reinterpret_cast<const char *>(data), size);
  auto [commandLine, files] = blob.split("\n====\n");
  auto [kernel, npy] = files.split("\n====\n");
  llvm::SmallString<128> path;
  if (llvm::sys::fs::createUniqueDirectory("fuzz-run", path))
    complain("no folder for temporary files");
  std::string folder = path.str().str();
  llvm::scope_exit remove(
      [&] { (void)llvm::sys::fs::remove_directories(folder); });
  std::optional<Options> options = readOptions(commandLine, folder);
  if (!options)
    return 0;
  writeFile(folder + "/kernel.mlir", kernel);
  writeFile(folder + "/input.npy", npy);

  Report report = execute(*options);
  if ((report.exitCode == ExitOk) != report.error.empty())
    complain("exit code " + llvm::Twine(int(report.exitCode)) +
             " with the error '" + report.error + "'");
  if (options->json)
    printJson(report, llvm::nulls());
  else
    printTable(report, llvm::nulls());
  checkFolder(report, folder);
  return 0;
}
