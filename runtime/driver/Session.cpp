//===- Session.cpp - One run of a kernel, step by step --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Session.h"

#include "lowering/Pipelines.h"
#include "lowering/Problem.h"
#include "runtime/driver/Inputs.h"
#include "runtime/driver/Memory.h"
#include "runtime/driver/Nesting.h"
#include "runtime/group/Group.h"
#include "runtime/jit/Shapes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/FileSystem.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

using namespace commsir;
using namespace commsir::driver;

Session::Session(const Options &options, mlir::MLIRContext &context,
                 const HostData *host)
    : options(options), context(context), host(host),
      progress(!options.quiet && !host) {
  report.launches = options.launches;
}

Session::~Session() = default;

/// Notes the errors that are said in its time. Prints what is said, but for
/// remarks that nobody asked for and warnings that nobody wants; prints nothing
/// for a caller in the same process.
class Session::Listener {
public:
  explicit Listener(Session &session)
      : session(session), printer(session.sources, &session.context),
        handler(&session.context, [this](mlir::Diagnostic &diagnostic) {
          return mlir::success(!note(diagnostic));
        }) {}

private:
  /// Whether to print it.
  bool note(mlir::Diagnostic &diagnostic) {
    session.progress.end();
    auto severity = diagnostic.getSeverity();
    if (severity == mlir::DiagnosticSeverity::Error)
      session.report.diagnostics.push_back(describe(diagnostic));
    if (severity == mlir::DiagnosticSeverity::Remark &&
        !session.options.verbose)
      return false;
    if (severity == mlir::DiagnosticSeverity::Warning && session.options.quiet)
      return false;
    return !session.host;
  }

  Session &session;
  mlir::SourceMgrDiagnosticHandler printer;
  mlir::ScopedDiagnosticHandler handler; // Asked before the printer.
};

bool Session::fail(ExitCode code, const llvm::Twine &message) {
  progress.end();
  report.exitCode = code;
  report.error = message.str();
  return false;
}

bool Session::fail(ExitCode code, llvm::Error error) {
  return fail(code, llvm::toString(std::move(error)));
}

bool Session::failRun(cpu::RunError error, const llvm::Twine &prefix) {
  ExitCode code = ExitUsage;
  switch (error.kind) {
  case cpu::RunError::Deadlock:
    code = ExitDeadlock;
    break;
  case cpu::RunError::StepLimit:
  case cpu::RunError::TimeLimit:
  case cpu::RunError::Interrupted:
    code = ExitLimit;
    break;
  case cpu::RunError::Bounds:
    code = ExitBounds;
    break;
  case cpu::RunError::Other:
    break;
  }
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
  llvm::sys::fs::file_status status;
  if (options.file != "-") {
    if (std::error_code error = llvm::sys::fs::status(options.file, status))
      return refuse("cannot read the kernel file '" + options.file +
                    "': " + error.message());
    if (llvm::sys::fs::is_directory(status))
      return refuse("the kernel file '" + options.file + "' is a folder");
    // Some devices have no end.
    if (!llvm::sys::fs::is_regular_file(status) &&
        status.type() != llvm::sys::fs::file_type::fifo_file)
      return refuse("the kernel file '" + options.file +
                    "' is neither a file nor a pipe");
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(options.file);
  if (!buffer)
    return refuse("cannot read the kernel file '" + options.file +
                  "': " + buffer.getError().message());
  return std::move(*buffer);
}

bool Session::parse() {
  std::unique_ptr<llvm::MemoryBuffer> buffer = readSource();
  if (!buffer)
    return false;
  // An embedded zero ends a lexer early: the rest would be dropped silently.
  bool isText = !buffer->getBuffer().starts_with("ML\xefR");
  if (isText && buffer->getBuffer().contains('\0'))
    return fail(ExitCompile, "'" + options.file +
                                 "' is neither MLIR text nor bytecode: it "
                                 "holds a zero byte");
  llvm::StringRef text = buffer->getBuffer();
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  if (isText)
    if (std::optional<size_t> deep = findDeepNesting(text)) {
      auto [line, column] = sources.getLineAndColumn(
          llvm::SMLoc::getFromPointer(text.data() + *deep));
      return fail(ExitCompile, options.file + ":" + llvm::Twine(line) + ":" +
                                   llvm::Twine(column) +
                                   ": brackets are nested more than " +
                                   llvm::Twine(maxNesting) + " deep");
    }
  Listener listener(*this);
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
    llvm::StringRef near = closest(options.kernel, names);
    return fail(ExitUsage,
                "'" + options.file + "' has no kernel '" + options.kernel +
                    "'" +
                    (near.empty() ? "; it has: " + list
                                  : "; did you mean '" + near.str() + "'?"));
  }
  report.kernel = kernel.getSymName().str();
  arguments = listArguments(kernel);
  return true;
}

bool Session::fixCounts() {
  std::optional<int64_t> own = kernel.getRanks();
  if (own && options.ranks && *own != *options.ranks)
    return fail(ExitUsage, llvm::Twine(host ? "ranks=" : "--ranks ") +
                               llvm::Twine(*options.ranks) + ": kernel '" +
                               report.kernel + "' is written for " +
                               llvm::Twine(*own) +
                               " ranks (its attribute `ranks`)");
  if (!own && !options.ranks)
    return fail(ExitUsage, llvm::Twine(host ? "ranks" : "--ranks") +
                               " is missing: kernel '" + report.kernel +
                               "' runs with any number of ranks; try " +
                               (host ? "ranks=8" : "--ranks 8"));
  report.ranks = own ? *own : *options.ranks;
  std::optional<int64_t> ownBlocks = kernel.getBlocks();
  if (ownBlocks && options.blocks && *ownBlocks != options.blocks)
    return fail(ExitUsage, llvm::Twine(host ? "blocks=" : "--blocks ") +
                               llvm::Twine(options.blocks) + ": kernel '" +
                               report.kernel + "' is written for " +
                               llvm::Twine(*ownBlocks) +
                               " blocks (its attribute `blocks`)");
  report.blocks = ownBlocks        ? *ownBlocks
                  : options.blocks ? options.blocks
                  : mlir::comms::tellsBlocksApart(kernel)
                      ? target->defaultBlocks()
                      : 1;
  constexpr int64_t maxFibers = int64_t(1) << 24;
  if (report.ranks > maxFibers / std::max<int64_t>(report.blocks, 1))
    return fail(ExitUsage,
                llvm::Twine(report.ranks) + " ranks of " +
                    llvm::Twine(report.blocks) + " blocks are more than " +
                    llvm::Twine(maxFibers) + " blocks in all; ask for fewer");
  return true;
}

bool Session::checkMachine() {
  if (llvm::Error error = target->checkMachine(report.ranks))
    return fail(ExitUsage, std::move(error));
  return true;
}

bool Session::checkBindings() {
  auto check = [&](llvm::StringRef option,
                   const std::vector<Binding> &bindings) -> llvm::Error {
    for (const Binding &binding : bindings) {
      llvm::Expected<const Argument *> found =
          findArgument(arguments, option, binding);
      if (!found)
        return found.takeError();
      const Argument &argument = **found;
      bool reads = option != "--input";
      if (reads && argument.kind == jit::ArgKind::Scalar)
        return llvm::createStringError(
            llvm::inconvertibleErrorCode(),
            option + " " + binding.name +
                ": a scalar is not changed by a run; name a window or memory");
      if (!argument.element)
        return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                       option + " " + binding.name +
                                           ": no .npy file holds elements of " +
                                           argument.elementType);
      if (option == "--output" && report.ranks > 1 &&
          !llvm::StringRef(binding.value).contains("%r"))
        return llvm::createStringError(
            llvm::inconvertibleErrorCode(),
            "--output " + binding.name + "=" + binding.value +
                ": all ranks would write one file; put %r, the rank, into the "
                "name, as " +
                binding.name + "-%r.npy");
    }
    return llvm::Error::success();
  };
  for (auto [option, bindings] :
       {std::pair<llvm::StringRef, const std::vector<Binding> &>(
            "--input", options.inputs),
        {"--output", options.outputs},
        {"--expect", options.expects}})
    if (llvm::Error error = check(option, bindings))
      return fail(ExitUsage, std::move(error));
  for (const Argument &argument : arguments)
    if (argument.kind == jit::ArgKind::Scalar &&
        !(host && host->scalars.contains(argument.name)) &&
        llvm::none_of(options.inputs, [&](const Binding &binding) {
          return binding.name == argument.name;
        }))
      return fail(ExitUsage, "the scalar argument '" + argument.name +
                                 "' has no value; give " +
                                 (host ? "one for '" : "--input ") +
                                 argument.name + (host ? "'" : "=1"));
  return true;
}

/// Whether the caller's arrays and scalars are arguments, of their types. Sizes
/// are known later.
bool Session::checkHostArrays() {
  if (!host)
    return true;
  auto refuse = [&](const Argument &argument, const llvm::Twine &what) {
    return fail(ExitUsage, "argument '" + argument.name + "' is a " +
                               argument.describe() + ", but " + what);
  };
  for (const HostArray &array : host->arrays) {
    auto argument = findArgument(arguments, "array", {array.argument, ""});
    if (!argument)
      return fail(ExitUsage, argument.takeError());
    if ((*argument)->kind == jit::ArgKind::Scalar)
      return refuse(**argument, "an array was given; give a number");
    if (array.rank < 0 || array.rank >= report.ranks)
      return refuse(**argument, "an array was given for rank " +
                                    llvm::Twine(array.rank) + " of " +
                                    llvm::Twine(report.ranks) + " ranks");
    auto type = host->types.find(array.argument);
    if (type != host->types.end() && type->second != (*argument)->elementType)
      return refuse(**argument, "its arrays hold " + type->second);
  }
  for (const auto &scalar : host->scalars) {
    auto argument =
        findArgument(arguments, "scalar", {scalar.first().str(), ""});
    if (!argument)
      return fail(ExitUsage, argument.takeError());
    if ((*argument)->kind != jit::ArgKind::Scalar)
      return refuse(**argument, "a number was given; give arrays");
    size_t count = scalar.second.size();
    if (count != 1 && count != uint64_t(report.ranks))
      return refuse(**argument, llvm::Twine(count) + " values were given for " +
                                    llvm::Twine(report.ranks) + " ranks");
  }
  return true;
}

/// Finds files and folders that are missing before anything takes long.
bool Session::checkFiles() {
  for (const std::vector<Binding> *bindings :
       {&options.inputs, &options.expects})
    for (const Binding &binding : *bindings) {
      bool isFile = bindings == &options.expects || isFileInput(binding.value);
      bool perRank = llvm::StringRef(binding.value).contains("%r");
      for (int64_t rank = 0; isFile && rank < (perRank ? report.ranks : 1);
           ++rank) {
        std::string path = substituteRank(binding.value, rank);
        llvm::sys::fs::file_status status;
        if (std::error_code error = llvm::sys::fs::status(path, status))
          return fail(ExitUsage,
                      "'" + path + "': cannot be read: " + error.message());
      }
    }
  return checkOutputs();
}

/// Refuses files that cannot be written, would be written twice, or hold the
/// kernel.
bool Session::checkOutputs() {
  llvm::StringMap<std::string> writers;
  auto check = [&](const std::string &path, const std::string &writer) {
    if (path.empty())
      return true;
    if (llvm::Error error = OutputFiles::checkFolder(path))
      return fail(ExitUsage, std::move(error));
    llvm::sys::fs::file_status status;
    if (!llvm::sys::fs::status(path, status) && llvm::sys::fs::is_other(status))
      return true; // A device takes what comes.
    if (llvm::sys::fs::equivalent(path, options.file))
      return fail(ExitUsage, writer + " would replace the kernel file '" +
                                 path + "'; name another file");
    auto [known, isNew] = writers.try_emplace(path, writer);
    return isNew ||
           fail(ExitUsage, "'" + path + "' would be written twice, by " +
                               known->second + " and by " + writer +
                               "; name two files");
  };
  for (const Binding &binding : options.outputs) {
    bool perRank = llvm::StringRef(binding.value).contains("%r");
    for (int64_t rank = 0; rank < (perRank ? report.ranks : 1); ++rank)
      if (!check(substituteRank(binding.value, rank),
                 "--output " + binding.name + "=" + binding.value))
        return false;
  }
  return check(options.trace, "--trace") &&
         check(options.dumpObject, "--dump-object");
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
  Listener listener(*this);
  if (mlir::failed(jit::specialise(*module, report.kernel, *shapes)))
    return fail(ExitUsage, "the shapes given do not fit '" + report.kernel +
                               (host ? "'; give an array for each open one"
                                     : "', or leave some open; give --input "
                                       "NAME=FILE or --shape NAME=8x64 for "
                                       "each '?'"));
  selectKernel();
  return true;
}

/// Refuses when all ranks' arguments and `extraPerRank` exceed the limit.
bool Session::checkMemory(uint64_t extraPerRank, llvm::StringRef what) {
  uint64_t perRank = extraPerRank;
  bool overflow = false;
  for (const Argument &argument : arguments) {
    std::optional<uint64_t> bytes = argument.bytes();
    overflow |= !bytes || __builtin_add_overflow(perRank, *bytes, &perRank);
  }
  overflow |=
      __builtin_mul_overflow(perRank, uint64_t(report.ranks), &bytesPerWorld);
  uint64_t limit = options.memoryLimit ? options.memoryLimit : memoryLimit();
  if (!overflow && bytesPerWorld <= limit)
    return true;
  return fail(ExitUsage,
              llvm::Twine(report.ranks) + " ranks need " +
                  (overflow ? std::string("more than 16 EiB")
                            : renderBytes(bytesPerWorld)) +
                  " for " + what + ", above the limit of " +
                  renderBytes(limit) +
                  "; take fewer ranks or smaller arguments, or raise "
                  "--memory-limit");
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

bool Session::printIr() {
  mlir::OwningOpRef<mlir::ModuleOp> copy = module->clone();
  mlir::PassManager manager(&context);
  target->addPasses(manager, report.ranks, report.blocks);
  if (mlir::failed(manager.run(*copy)))
    return false; // compile() finds the same and reports it.
  copy->print(llvm::outs());
  llvm::outs() << "\n";
  return true;
}

bool Session::compile() {
  progress.begin("compiling " + report.kernel);
  Listener listener(*this);
  if (options.dumpIr)
    printIr();
  report.diagnostics.clear();
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
  if (target->blocks())
    report.blocks = target->blocks();
  return true;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

unsigned Session::compiledIndex(llvm::StringRef name) const {
  return target->findArg(name);
}

cpu::RunOptions Session::runOptions() const {
  cpu::RunOptions run;
  run.blocks = report.blocks;
  run.launches = options.launches;
  run.firstLaunch = options.firstLaunch;
  run.seed = options.seed;
  run.shuffle = options.seeded;
  run.fast = options.fast;
  run.workers = options.workers;
  run.maxSteps = options.maxSteps;
  run.timeLimit = options.timeLimit;
  run.stop = stopped.get_token();
  return run;
}

llvm::Expected<std::unique_ptr<World>>
Session::makeWorld(const cpu::RunOptions &run) {
  llvm::Expected<std::unique_ptr<World>> world = target->createWorld(run);
  if (!world)
    return world;
  for (const Binding &binding : options.inputs) {
    const Argument &argument = **findArgument(arguments, "--input", binding);
    unsigned index = compiledIndex(binding.name);
    bool scalar = argument.kind == jit::ArgKind::Scalar;
    for (int64_t rank = 0; rank < report.ranks; ++rank) {
      if (!(*world)->isLocal(rank))
        continue;
      char cell[8] = {};
      llvm::MutableArrayRef<char> memory =
          scalar ? llvm::MutableArrayRef<char>(cell,
                                               elementBytes(*argument.element))
                 : (*world)->memory(index, rank);
      if (llvm::Error error = fillInput(argument, binding.value, rank, memory))
        return error;
      if (scalar)
        (*world)->setScalar(index, rank, memory);
    }
  }
  if (llvm::Error error = fillFromHost(**world))
    return error;
  return world;
}

llvm::Error Session::fillFromHost(World &world) {
  if (!host)
    return llvm::Error::success();
  for (const auto &scalar : host->scalars) {
    unsigned index = compiledIndex(scalar.first());
    const Argument &argument =
        **findArgument(arguments, "scalar", {scalar.first().str(), ""});
    if (!argument.element)
      return llvm::createStringError("no number makes the scalar '" +
                                     argument.name + "' of type " +
                                     argument.elementType);
    for (int64_t rank = 0; rank < report.ranks; ++rank) {
      const auto &values = scalar.second;
      char cell[8] = {};
      llvm::MutableArrayRef<char> memory(cell, elementBytes(*argument.element));
      if (llvm::Error error = fillInput(
              argument, values[values.size() == 1 ? 0 : rank], rank, memory))
        return error;
      world.setScalar(index, rank, memory);
    }
  }
  for (const HostArray &array : host->arrays) {
    llvm::MutableArrayRef<char> memory =
        world.memory(compiledIndex(array.argument), array.rank);
    if (memory.size() != array.memory.size())
      return llvm::createStringError(
          "the array of argument '" + array.argument + "' of rank " +
          llvm::Twine(array.rank) + " has " + llvm::Twine(array.memory.size()) +
          " bytes, the argument " + llvm::Twine(memory.size()));
    llvm::copy(array.memory, memory.begin());
  }
  return llvm::Error::success();
}

/// What did not change is not written: the caller may not be allowed to.
void Session::copyToHost(World &world) {
  if (!host)
    return;
  for (const HostArray &array : host->arrays) {
    llvm::ArrayRef<char> memory =
        world.memory(compiledIndex(array.argument), array.rank);
    if (!memory.empty() &&
        std::memcmp(memory.data(), array.memory.data(), memory.size()) != 0)
      llvm::copy(memory, array.memory.begin());
  }
}

bool Session::runOnce() {
  cpu::RunOptions run = runOptions();
  std::string trace;
  run.trace = options.trace.empty() ? nullptr : &trace;
  run.progress = [&](double fraction) { progress.update(fraction); };
  progress.begin("filling inputs");
  auto world = makeWorld(run);
  if (!world)
    return fail(ExitUsage, world.takeError());
  progress.begin("running " + report.kernel);
  auto outcome = (*world)->run();
  progress.end();
  if (auto *error = std::get_if<cpu::RunError>(&outcome))
    return failRun(std::move(*error));
  report.stats = std::get<cpu::RunStats>(std::move(outcome));
  target->ran(**world);
  report.note = target->note();
  reference = std::move(*world);
  if (run.trace)
    if (llvm::Error error = files.write(options.trace, {trace}))
      return fail(ExitUsage, std::move(error));
  return true;
}

std::vector<const Argument *> Session::fuzzedArguments() const {
  std::vector<const Argument *> named, all;
  auto isNamed = [&](const Argument &argument) {
    auto matches = [&](const Binding &binding) {
      return binding.name == argument.name;
    };
    return llvm::any_of(options.outputs, matches) ||
           llvm::any_of(options.expects, matches);
  };
  for (const Argument &argument : arguments) {
    if (argument.kind == jit::ArgKind::Window ||
        argument.kind == jit::ArgKind::Memory)
      all.push_back(&argument);
    if (isNamed(argument))
      named.push_back(&argument);
  }
  return named.empty() ? all : named;
}

std::string
Session::firstDifference(World &left, World &right,
                         llvm::ArrayRef<const Argument *> compared) const {
  for (const Argument *argument : compared) {
    unsigned index = compiledIndex(argument->name);
    for (int64_t rank = 0; rank < report.ranks; ++rank) {
      llvm::ArrayRef<char> a = left.memory(index, rank);
      llvm::ArrayRef<char> b = right.memory(index, rank);
      if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0)
        continue;
      size_t at =
          std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
      size_t flat = at / target->args()[index].elementBytes;
      std::string text = argument->name + ", rank " + std::to_string(rank) +
                         ", element " +
                         renderIndex(unflatten(flat, argument->shape));
      if (argument->element) {
        unsigned width = elementBytes(*argument->element);
        double x, y;
        decode(*argument->element, a.data() + flat * width, x);
        decode(*argument->element, b.data() + flat * width, y);
        llvm::raw_string_ostream(text)
            << ": " << llvm::format("%.9g", x) << " in the first schedule, "
            << llvm::format("%.9g", y) << " in this one";
      }
      return text;
    }
  }
  return "";
}

bool Session::runSchedules() {
  std::vector<const Argument *> compared = fuzzedArguments();
  FuzzReport fuzz;
  fuzz.schedules = options.fuzzSchedules;
  fuzz.firstSeed = options.seeded ? options.seed : 1;
  for (const Argument *argument : compared)
    fuzz.arguments.push_back(argument->name);

  cpu::RunOptions first = runOptions();
  first.shuffle = true;
  first.seed = fuzz.firstSeed;
  progress.begin("running the first of " + std::to_string(fuzz.schedules) +
                 " schedules");
  auto world = makeWorld(first);
  if (!world)
    return fail(ExitUsage, world.takeError());
  auto outcome = (*world)->run();
  if (auto *error = std::get_if<cpu::RunError>(&outcome))
    return failRun(std::move(*error),
                   "schedule of seed " + llvm::Twine(fuzz.firstSeed) + ": ");
  report.stats = std::get<cpu::RunStats>(std::move(outcome));
  reference = std::move(*world);

  progress.begin("running " + std::to_string(fuzz.schedules) + " schedules");
  // Of several findings the one with the lowest seed is told, so that the
  // report does not depend on how the threads were scheduled.
  struct Finding {
    uint64_t seed;
    std::string difference;
    std::optional<cpu::RunError> runError;
    std::string otherError;
  };
  std::optional<Finding> finding;
  std::mutex mutex;
  std::atomic<int64_t> next{1}, done{1};
  auto work = [&] {
    for (int64_t i; (i = next++) < fuzz.schedules;) {
      Finding mine{fuzz.firstSeed + uint64_t(i), "", std::nullopt, ""};
      {
        std::lock_guard lock(mutex);
        if (finding && finding->seed < mine.seed)
          return;
      }
      cpu::RunOptions run = first;
      run.seed = mine.seed;
      auto other = makeWorld(run);
      if (!other) {
        mine.otherError = llvm::toString(other.takeError());
      } else {
        auto outcome = (*other)->run();
        if (auto *error = std::get_if<cpu::RunError>(&outcome))
          mine.runError = std::move(*error);
        else
          mine.difference = firstDifference(*reference, **other, compared);
      }
      std::lock_guard lock(mutex);
      progress.update(double(++done) / double(fuzz.schedules));
      bool found =
          mine.runError || !mine.difference.empty() || !mine.otherError.empty();
      if (found && (!finding || mine.seed < finding->seed))
        finding = std::move(mine);
    }
  };
  unsigned workers =
      options.workers ? options.workers : std::thread::hardware_concurrency();
  workers = std::clamp<uint64_t>(workers, 1, fuzz.schedules - 1);
  // Each worker holds a world of its own beside the reference.
  uint64_t limit = options.memoryLimit ? options.memoryLimit : memoryLimit();
  uint64_t fitting = limit / std::max<uint64_t>(bytesPerWorld, 1);
  workers =
      std::clamp<uint64_t>(workers, 1, std::max<uint64_t>(fitting, 2) - 1);
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < workers; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  progress.end();
  if (finding && !finding->otherError.empty())
    return fail(ExitUsage, finding->otherError);
  if (finding && finding->runError)
    return failRun(std::move(*finding->runError),
                   "schedule of seed " + llvm::Twine(finding->seed) + ": ");
  if (finding) {
    fuzz.difference = finding->difference;
    fuzz.seed = finding->seed;
    report.exitCode = ExitWrongResult;
    report.error = "results depend on the schedule";
  }
  report.fuzz = std::move(fuzz);
  return true;
}

bool Session::run() {
  auto work = [this] {
    return options.fuzzSchedules ? runSchedules() : runOnce();
  };
  // A program of its own ends by the signal; GPUs are not stopped here.
  if (!host || options.target != "cpu" || !group::canBeInterrupted())
    return work();
  return attend(work);
}

/// What wants to interrupt is asked on the caller's thread, while another does
/// the work: blocks that never wait do not come back to ask.
bool Session::attend(llvm::function_ref<bool()> work) {
  std::future<bool> done = std::async(std::launch::async, work);
  while (done.wait_for(std::chrono::milliseconds(50)) ==
         std::future_status::timeout)
    if (!stopped.stop_requested() && group::isInterrupted())
      stopped.request_stop();
  return done.get();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

bool Session::compareResults(World &world) {
  Tolerance tolerance{options.rtol, options.atol, options.bitwise};
  progress.begin("comparing results");
  for (const Binding &binding : options.expects) {
    const Argument &argument = **findArgument(arguments, "--expect", binding);
    unsigned index = compiledIndex(binding.name);
    std::optional<Npy> shared;
    for (int64_t rank = 0; rank < report.ranks; ++rank) {
      if (!world.isLocal(rank))
        continue;
      // One file for all ranks is read once.
      std::string path = substituteRank(binding.value, rank);
      if (!shared || path != shared->path()) {
        llvm::Expected<Npy> npy = Npy::open(path);
        if (!npy)
          return fail(ExitUsage, npy.takeError());
        shared = std::move(*npy);
      }
      auto result = compare(argument, rank, world.memory(index, rank), *shared,
                            tolerance);
      if (!result)
        return fail(ExitUsage, result.takeError());
      if (result->mismatches && report.exitCode == ExitOk) {
        report.exitCode = ExitWrongResult;
        report.error = result->render();
      }
      report.comparisons.push_back(std::move(*result));
    }
  }
  progress.end();
  return true;
}

bool Session::writeResults(World &world) {
  progress.begin("writing results");
  for (const Binding &binding : options.outputs) {
    const Argument &argument = **findArgument(arguments, "--output", binding);
    unsigned index = compiledIndex(binding.name);
    std::string header = npyHeader(*argument.element, argument.shape);
    for (int64_t rank = 0; rank < report.ranks; ++rank) {
      if (!world.isLocal(rank))
        continue;
      llvm::ArrayRef<char> memory = world.memory(index, rank);
      std::string path = substituteRank(binding.value, rank);
      if (llvm::Error error = files.write(
              path, {header, llvm::StringRef(memory.data(), memory.size())}))
        return fail(ExitUsage, std::move(error));
      report.written.push_back(path);
    }
  }
  progress.end();
  return true;
}

bool Session::commit() {
  for (const std::string *path : {&options.trace, &options.dumpObject})
    if (!path->empty())
      report.written.push_back(*path);
  if (llvm::Error error = files.commit()) {
    report.written.clear();
    return fail(ExitUsage, std::move(error));
  }
  return true;
}

const Report &Session::execute() {
  bool ready = chooseTarget() && parse() && selectKernel() && fixCounts() &&
               checkMachine() && checkBindings() && checkHostArrays() &&
               checkFiles() && fixShapes() &&
               checkMemory(0, "the kernel's arguments") && compile();
  if (!ready)
    return report;
  uint64_t extra = target->hostBytes(report.blocks);
  if (!checkMemory(extra, "arguments, channels and stacks") || !run())
    return report;
  copyToHost(*reference);
  if (compareResults(*reference) && writeResults(*reference))
    commit();
  if (report.exitCode >= ExitUsage)
    report.written.clear();
  return report;
}
