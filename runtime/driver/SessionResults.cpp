//===- SessionResults.cpp - Results compared, written, given back ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Session.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cstring>

using namespace commsir;
using namespace commsir::driver;

/// Copies changed memory only: the caller may not be allowed to write the rest.
void Session::copyToHost(World &world) {
  // What depends on the schedule is no result: the arrays stay what the run was
  // given, which a saved run begins with.
  if (!host || report.exitCode == ExitWrongResult)
    return;
  for (const HostArray &array : host->arrays) {
    llvm::ArrayRef<char> memory =
        world.memory(compiledIndex(array.argument), array.rank);
    if (!memory.empty() &&
        std::memcmp(memory.data(), array.memory.data(), memory.size()) != 0)
      llvm::copy(memory, array.memory.begin());
  }
}

/// Describes differences between ranks in the arguments of --same; "" if equal.
static llvm::Expected<std::string> findRankDifference(
    llvm::ArrayRef<std::string> names,
    llvm::MutableArrayRef<Argument> arguments, int64_t ranks,
    llvm::function_ref<llvm::ArrayRef<char>(llvm::StringRef, int64_t)>
        memoryOf) {
  for (const std::string &name : names) {
    auto argument = findArgument(arguments, "--same", {name, ""});
    if (!argument)
      return argument.takeError();
    llvm::ArrayRef<char> first = memoryOf(name, 0);
    for (int64_t rank = 1; rank < ranks; ++rank) {
      llvm::ArrayRef<char> other = memoryOf(name, rank);
      size_t at = llvm::mismatch(first, other).first - first.begin();
      const auto &element = (*argument)->element;
      if (at == first.size() || !element)
        continue;
      size_t flat = at / elementBytes(*element),
             place = flat * elementBytes(*element);
      return name + renderIndex(unflatten(flat, (*argument)->shape)) + " is " +
             renderElement(*element, first.data() + place) +
             " on rank 0, but " +
             renderElement(*element, other.data() + place) + " on rank " +
             std::to_string(rank) +
             ": --same says that all ranks have the same bits there";
    }
  }
  return "";
}

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
  auto difference = findRankDifference(
      options.sameOnRanks, arguments, report.ranks,
      [&](llvm::StringRef name, int64_t rank) -> llvm::ArrayRef<char> {
        return world.memory(compiledIndex(name), rank);
      });
  if (!difference)
    return fail(ExitUsage, difference.takeError());
  if (!difference->empty() && report.exitCode == ExitOk) {
    report.exitCode = ExitWrongResult;
    report.error = *difference;
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
  for (const std::string *path :
       {&options.trace, &options.dumpObject, &options.certificate})
    if (!path->empty())
      report.written.push_back(*path);
  if (llvm::Error error = files.commit()) {
    report.written.clear();
    return fail(ExitUsage, std::move(error));
  }
  return true;
}
