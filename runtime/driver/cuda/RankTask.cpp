//===- RankTask.cpp - The task and outcome of a rank ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/RankTask.h"

#include "runtime/cuda/Seconds.h"
#include "runtime/jit/Archive.h"
#include "runtime/support/GroupError.h"

using namespace commsir;
using namespace commsir::driver;
using group::GroupError;

double RankTask::seconds() const {
  return cuda::runSeconds(timeLimit, group.timeout, launches);
}

//===----------------------------------------------------------------------===//
// As bytes
//===----------------------------------------------------------------------===//

template <typename Archive>
static void visitRequest(Archive &archive, group::KernelRequest &request) {
  archive.text(request.source);
  archive.text(request.name);
  archive.text(request.algorithm);
  archive.text(request.protocol);
  archive.number(request.blocks);
  archive.number(request.threads);
  archive.number(request.cluster);
  archive.text(request.impl);
  archive.number(request.check);
  archive.number(request.checkEvents);
  archive.number(request.firstLaunch);
}

template <typename Archive>
static void visitTask(Archive &archive, RankTask &task) {
  archive.text(task.group.name);
  archive.number(task.group.ranks);
  archive.real(task.group.timeout);
  archive.text(task.group.windows);
  visitRequest(archive, task.request);
  archive.number(task.launches);
  archive.number(task.graph);
  archive.real(task.timeLimit);
  archive.text(task.rendezvous);
}

template <typename Archive>
static void visitError(Archive &archive, cpu::RunError &error) {
  archive.number(error.kind);
  archive.text(error.message);
  archive.list(error.waiting, [&](cpu::Waiting &waiting) {
    archive.number(waiting.rank);
    archive.number(waiting.block);
    archive.text(waiting.op);
    archive.text(waiting.location);
    archive.text(waiting.what);
  });
}

template <typename Archive>
static void visitOutcome(Archive &archive, RankOutcome &outcome) {
  archive.real(outcome.microseconds);
  archive.text(outcome.windows);
  bool failed = outcome.error.has_value();
  archive.number(failed);
  if (failed && !outcome.error)
    outcome.error.emplace();
  if (failed)
    visitError(archive, *outcome.error);
}

std::string RankTask::pack() const {
  std::string bytes;
  jit::Writer writer{bytes};
  RankTask copy = *this;
  visitTask(writer, copy);
  return bytes;
}

std::optional<RankTask> RankTask::unpack(llvm::StringRef bytes) {
  RankTask task;
  jit::Reader reader{bytes};
  visitTask(reader, task);
  if (!reader.good || !reader.in.empty())
    return std::nullopt;
  return task;
}

std::string RankOutcome::pack(size_t limit) const {
  RankOutcome told = *this;
  while (true) {
    std::string bytes;
    jit::Writer writer{bytes};
    visitOutcome(writer, told);
    if (bytes.size() <= limit || !told.error)
      return bytes.size() <= limit ? bytes : "";
    // The first blocks that wait say most, and the message more than they.
    if (size_t count = told.error->waiting.size())
      told.error->waiting.resize(count / 2);
    else if (size_t size = told.error->message.size())
      told.error->message.resize(size / 2);
    else
      return "";
  }
}

std::optional<RankOutcome> RankOutcome::unpack(llvm::StringRef bytes) {
  RankOutcome outcome;
  jit::Reader reader{bytes};
  visitOutcome(reader, outcome);
  if (!reader.good || !reader.in.empty())
    return std::nullopt;
  return outcome;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

cpu::RunError commsir::driver::toRunError(llvm::Error error) {
  cpu::RunError report;
  llvm::handleAllErrors(
      std::move(error),
      [&](const GroupError &known) {
        report.message = known.getMessage();
        report.waiting = known.getWaiting().vec();
        bool waited = known.getKind() == GroupError::Kind::Peer ||
                      known.getKind() == GroupError::Kind::Disagree;
        if (known.getKind() == GroupError::Kind::Bounds)
          report.kind = cpu::RunError::Bounds;
        else if (waited && !report.waiting.empty())
          report.kind = cpu::RunError::Deadlock;
      },
      [&](const llvm::ErrorInfoBase &other) {
        report.message = other.message();
      });
  return report;
}
