//===- SessionChecks.cpp - Validates a run before it starts ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that can be found out before something takes long.
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Npy.h"
#include "runtime/driver/Session.h"
#include "runtime/support/HostMemory.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace commsir;
using namespace commsir::driver;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Why `binding` of `option` makes no sense.
static llvm::Error validateBinding(llvm::StringRef option,
                                   const Binding &binding,
                                   const Argument &argument, int64_t ranks) {
  auto refuse = [&](const llvm::Twine &why) {
    return llvm::createStringError(option + " " + binding.name + why);
  };
  if (option != "--input" && argument.kind == jit::ArgKind::Scalar)
    return refuse(
        ": a scalar is not changed by a run; name a window or memory");
  if (!argument.element)
    return refuse(": no .npy file holds elements of " + argument.elementType);
  if (option == "--output" && ranks > 1 &&
      !llvm::StringRef(binding.value).contains("%r"))
    return refuse("=" + binding.value +
                  ": all ranks would write one file; put %r, the rank, into "
                  "the name, as " +
                  binding.name + "-%r.npy");
  return llvm::Error::success();
}

bool Session::checkBindings() {
  const std::pair<llvm::StringRef, const std::vector<Binding> &> all[] = {
      {"--input", options.inputs},
      {"--output", options.outputs},
      {"--expect", options.expects}};
  for (const auto &[option, bindings] : all)
    for (const Binding &binding : bindings) {
      auto argument = findArgument(arguments, option, binding);
      if (!argument)
        return fail(ExitUsage, argument.takeError());
      if (auto error =
              validateBinding(option, binding, **argument, report.ranks))
        return fail(ExitUsage, std::move(error));
    }
  return checkScalars();
}

/// Every scalar has a value; memory without one is zero.
bool Session::checkScalars() {
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

bool Session::refuseValue(const Argument &argument, const llvm::Twine &what) {
  return fail(ExitUsage, "argument '" + argument.name + "' is a " +
                             argument.describe() + ", but " + what);
}

/// Whether the caller's arrays are arguments, of their types. Sizes are known
/// later.
bool Session::checkHostArrays() {
  if (!host)
    return true;
  for (const auto &type : host->types)
    if (auto argument =
            findArgument(arguments, "type", {type.first().str(), ""});
        !argument)
      return fail(ExitUsage, argument.takeError());
  std::set<std::pair<std::string, int64_t>> given;
  for (const HostArray &array : host->arrays) {
    auto argument = findArgument(arguments, "array", {array.argument, ""});
    if (!argument)
      return fail(ExitUsage, argument.takeError());
    if ((*argument)->kind == jit::ArgKind::Scalar)
      return refuseValue(**argument, "an array was given; give a number");
    if (array.rank < 0 || array.rank >= report.ranks)
      return refuseValue(**argument, "an array was given for rank " +
                                         llvm::Twine(array.rank) + " of " +
                                         llvm::Twine(report.ranks) + " ranks");
    if (!given.insert({array.argument, array.rank}).second)
      return refuseValue(**argument, "two arrays were given for rank " +
                                         llvm::Twine(array.rank));
    if (llvm::any_of(options.inputs, [&](const Binding &input) {
          return input.name == array.argument;
        }))
      return refuseValue(**argument, "both arrays and an input were given");
    auto type = host->types.find(array.argument);
    if (type != host->types.end() && type->second != (*argument)->elementType)
      return refuseValue(**argument, "its arrays hold " + type->second);
  }
  return true;
}

/// Whether the caller's numbers are arguments: one for all ranks, or one each.
bool Session::checkHostScalars() {
  if (!host)
    return true;
  for (const auto &scalar : host->scalars) {
    auto argument =
        findArgument(arguments, "scalar", {scalar.first().str(), ""});
    if (!argument)
      return fail(ExitUsage, argument.takeError());
    if ((*argument)->kind != jit::ArgKind::Scalar)
      return refuseValue(**argument, "a number was given; give arrays");
    size_t count = scalar.second.size();
    if (count != 1 && count != uint64_t(report.ranks))
      return refuseValue(**argument, llvm::Twine(count) +
                                         " values were given for " +
                                         llvm::Twine(report.ranks) + " ranks");
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

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
                      "'" + path + "': cannot be read: " + error.message() +
                          (bindings == &options.inputs ? kInputForms : ""));
      }
    }
  return checkOutputs();
}

/// Whether results can be compared with what --expect names: a long run need
/// not end to find out that they cannot.
bool Session::checkReferences() {
  Tolerance tolerance{options.rtol, options.atol, options.bitwise};
  for (const Binding &binding : options.expects) {
    const Argument &argument = **findArgument(arguments, "--expect", binding);
    bool perRank = llvm::StringRef(binding.value).contains("%r");
    for (int64_t rank = 0; rank < (perRank ? report.ranks : 1); ++rank) {
      llvm::Expected<Npy> npy = Npy::open(substituteRank(binding.value, rank));
      if (!npy)
        return fail(ExitUsage, npy.takeError());
      if (llvm::Error error = checkReference(argument, *npy, tolerance))
        return fail(ExitUsage, std::move(error));
    }
  }
  return true;
}

/// One name for a path that may be written in several ways.
static std::string canonical(llvm::StringRef path) {
  llvm::SmallString<256> absolute(path);
  (void)llvm::sys::fs::make_absolute(absolute);
  llvm::SmallString<256> folder;
  // The file itself is not there yet, or is going to be replaced.
  if (llvm::sys::fs::real_path(llvm::sys::path::parent_path(absolute), folder))
    return std::string(absolute);
  llvm::sys::path::append(folder, llvm::sys::path::filename(absolute));
  return std::string(folder);
}

/// Refuses to write over what is read: the kernel, and, except for --output,
/// which may give an argument back to the file it came from, inputs and
/// references.
bool Session::checkReplaced(const std::string &path,
                            const std::string &writer) {
  auto refuse = [&](llvm::StringRef what) {
    return fail(ExitUsage, writer + " would replace " + what + " '" + path +
                               "'; name another file");
  };
  if (llvm::sys::fs::equivalent(path, options.file))
    return refuse("the kernel file");
  if (llvm::StringRef(writer).starts_with("--output"))
    return true;
  for (const std::vector<Binding> *bindings :
       {&options.inputs, &options.expects})
    for (const Binding &binding : *bindings) {
      bool perRank = llvm::StringRef(binding.value).contains("%r");
      for (int64_t rank = 0; rank < (perRank ? report.ranks : 1); ++rank)
        if (llvm::sys::fs::equivalent(path,
                                      substituteRank(binding.value, rank)))
          return refuse(bindings == &options.inputs ? "the input"
                                                    : "the reference");
    }
  return true;
}

/// Refuses a file that cannot be written, would be written twice, or holds what
/// is read (see checkReplaced). `writers` has those that are known.
bool Session::checkOutput(const std::string &path, const std::string &writer,
                          llvm::StringMap<std::string> &writers) {
  if (path.empty())
    return true;
  if (llvm::Error error = OutputFiles::checkFolder(path))
    return fail(ExitUsage, std::move(error));
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status) && llvm::sys::fs::is_other(status))
    return true; // A device takes what comes.
  if (!checkReplaced(path, writer))
    return false;
  auto [known, isNew] = writers.try_emplace(canonical(path), writer);
  return isNew || fail(ExitUsage, "'" + path + "' would be written twice, by " +
                                      known->second + " and by " + writer +
                                      "; name two files");
}

bool Session::checkOutputs() {
  llvm::StringMap<std::string> writers;
  for (const Binding &binding : options.outputs) {
    bool perRank = llvm::StringRef(binding.value).contains("%r");
    for (int64_t rank = 0; rank < (perRank ? report.ranks : 1); ++rank)
      if (!checkOutput(substituteRank(binding.value, rank),
                       "--output " + binding.name + "=" + binding.value,
                       writers))
        return false;
  }
  return checkOutput(options.trace, "--trace", writers) &&
         checkOutput(options.dumpObject, "--dump-object", writers) &&
         checkOutput(options.certificate, "--certificate", writers);
}

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

bool Session::checkMachine() {
  if (llvm::Error error = target->checkMachine(report.ranks))
    return fail(ExitUsage, std::move(error));
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
