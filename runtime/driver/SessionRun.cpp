//===- SessionRun.cpp - Worlds that are filled and run --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Inputs.h"
#include "runtime/driver/Session.h"
#include "runtime/group/Group.h"
#include "runtime/jit/Sharing.h"
#include "runtime/support/FatalErrors.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>

using namespace commsir;
using namespace commsir::driver;

//===----------------------------------------------------------------------===//
// Filling
//===----------------------------------------------------------------------===//

unsigned Session::compiledIndex(llvm::StringRef name) const {
  return target->findArg(name);
}

/// Seconds that a run which begins now may take; 0: no limit. The last of many
/// schedules gets enough time to report that there is none left.
double Session::secondsLeft() const {
  if (options.totalTime <= 0)
    return options.timeLimit;
  std::chrono::duration<double> past = std::chrono::steady_clock::now() - begun;
  double left = std::max(options.totalTime - past.count(), 1e-3);
  return options.timeLimit > 0 ? std::min(left, options.timeLimit) : left;
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
  run.timeLimit = secondsLeft();
  run.junkScratch = true;
  run.guardArrays = options.guardArrays;
  run.weak = options.weak;
  run.ignoreRaces = options.ignoreRaces;
  run.broken = options.broken;
  run.stop = stopped.get_token();
  return run;
}

llvm::Expected<std::unique_ptr<World>> Session::makeWorld(cpu::RunOptions run) {
  for (const std::string &name : options.varied) {
    auto argument = findArgument(arguments, "--vary", {name, ""});
    if (!argument)
      return argument.takeError();
    jit::ArgKind kind = (*argument)->kind;
    if (kind != jit::ArgKind::Window && kind != jit::ArgKind::Memory)
      return llvm::createStringError("--vary " + name +
                                     ": only arrays and windows can vary");
    run.varied.push_back(compiledIndex(name));
  }
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

/// Whether the caller's arrays are apart, those of all ranks.
llvm::Error Session::checkSharing() const {
  llvm::SmallVector<jit::GivenMemory> given;
  for (const HostArray &array : host->arrays)
    given.push_back({array.memory.data(), array.memory.size(),
                     target->args()[compiledIndex(array.argument)].written});
  auto found = jit::findSharing(given);
  if (!found)
    return llvm::Error::success();
  auto describe = [&](size_t number) {
    const HostArray &array = host->arrays[number];
    return ("'" + llvm::Twine(array.argument) + "' of rank " +
            llvm::Twine(array.rank))
        .str();
  };
  return llvm::createStringError(
      "the arrays of argument " + describe(found->first) + " and of " +
      describe(found->second) +
      " share memory, and the kernel writes the latter: give each memory of "
      "its own");
}

llvm::Error Session::fillFromHost(World &world) {
  if (!host)
    return llvm::Error::success();
  if (llvm::Error error = checkSharing())
    return error;
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

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

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
  if (run.trace)
    if (llvm::Error error = files.write(options.trace, {trace}))
      return fail(ExitUsage, std::move(error));
  if (auto *error = std::get_if<cpu::RunError>(&outcome))
    // How it came to that is in the trace.
    return (!run.trace || commit()) && failRun(std::move(*error));
  report.stats = std::get<cpu::RunStats>(std::move(outcome));
  target->ran(**world);
  report.note = target->note();
  reference = std::move(*world);
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

/// Checks for interrupts on the caller's thread while another thread works,
/// because blocks that never wait do not return to check.
bool Session::attend(llvm::function_ref<bool()> work) {
  std::future<bool> done = std::async(std::launch::async, [work] {
    FatalErrorScope scope; // The future holds what is thrown.
    return work();
  });
  while (done.wait_for(std::chrono::milliseconds(50)) ==
         std::future_status::timeout)
    if (!stopped.stop_requested() && group::isInterrupted())
      stopped.request_stop();
  return done.get();
}
