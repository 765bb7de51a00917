//===- SharedRun.cpp - What the processes of a run share ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/SharedRun.h"

#include "runtime/jit/Archive.h"

#include "llvm/Support/MathExtras.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::driver;

/// What a rank may say of its run.
static constexpr size_t kOutcomeBytes = size_t(60) << 10;

struct SharedRun::Slot {
  std::atomic<uint32_t> isDone;
  uint32_t bytes;
  char outcome[kOutcomeBytes];
};

/// At the start; slots, task and arrays follow.
struct SharedRun::Header {
  uint64_t ranks, taskOffset, taskBytes, arraysOffset, arraysBytes;
  State state;
};

static llvm::Error failWithErrno() {
  return llvm::createStringError(
      llvm::Twine("memory to share with the ranks: ") + std::strerror(errno));
}

SharedRun::~SharedRun() {
  if (header)
    munmap(header, bytes);
  if (file >= 0)
    close(file);
}

//===----------------------------------------------------------------------===//
// The task
//===----------------------------------------------------------------------===//

template <typename Archive>
static void visitRun(Archive &archive, std::string &task,
                     std::vector<size_t> &sizes) {
  archive.text(task);
  archive.list(sizes, [&](size_t &size) { archive.number(size); });
}

llvm::Error SharedRun::create(const RankTask &task, const RankArrays &arrays) {
  std::string described = task.pack(), text;
  std::vector<size_t> sizes = arrays.sizes;
  jit::Writer writer{text};
  visitRun(writer, described, sizes);
  size_t ranks = size_t(task.group.ranks);
  size_t taskOffset = sizeof(Header) + sizeof(Slot) * ranks;
  size_t arraysOffset = llvm::alignTo(taskOffset + text.size(), 4096);
  if (__builtin_mul_overflow(arrays.bytes, ranks, &bytes) ||
      __builtin_add_overflow(bytes, arraysOffset, &bytes))
    return llvm::createStringError("the kernel's arguments are too large");
  file = memfd_create("commsir-run", 0);
  if (file < 0 || ftruncate(file, off_t(bytes)))
    return failWithErrno();
  if (auto error = map())
    return error;
  new (header) Header{};
  header->ranks = ranks;
  header->taskOffset = taskOffset;
  header->taskBytes = text.size();
  header->arraysOffset = arraysOffset;
  header->arraysBytes = arrays.bytes;
  std::memcpy(reinterpret_cast<char *>(header) + taskOffset, text.data(),
              text.size());
  return llvm::Error::success();
}

llvm::Error SharedRun::map() {
  void *mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED)
    return failWithErrno();
  header = static_cast<Header *>(mapped);
  return llvm::Error::success();
}

bool SharedRun::open(int inherited) {
  off_t size = lseek(inherited, 0, SEEK_END);
  if (size < off_t(sizeof(Header)))
    return false;
  file = inherited;
  bytes = size_t(size);
  if (auto error = map()) {
    llvm::consumeError(std::move(error));
    return false;
  }
  size_t rest = bytes - sizeof(Header);
  return header->ranks <= rest / sizeof(Slot) && header->taskOffset <= bytes &&
         header->taskBytes <= bytes - header->taskOffset &&
         header->arraysOffset <= bytes &&
         (header->ranks == 0 ||
          header->arraysBytes <=
              (bytes - header->arraysOffset) / header->ranks);
}

std::optional<RankTask> SharedRun::readTask(RankArrays &arrays) const {
  jit::Reader reader{
      {reinterpret_cast<const char *>(header) + header->taskOffset,
       size_t(header->taskBytes)}};
  std::string task;
  std::vector<size_t> sizes;
  visitRun(reader, task, sizes);
  for (size_t size : sizes)
    arrays.add(size);
  if (!reader.good || arrays.bytes != header->arraysBytes)
    return std::nullopt;
  return RankTask::unpack(task);
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

int64_t SharedRun::ranks() const { return int64_t(header->ranks); }

SharedRun::State &SharedRun::state() const { return header->state; }

SharedRun::Slot &SharedRun::slot(int64_t rank) const {
  return reinterpret_cast<Slot *>(header + 1)[rank];
}

char *SharedRun::arraysOf(int64_t rank) const {
  return reinterpret_cast<char *>(header) + header->arraysOffset +
         size_t(rank) * header->arraysBytes;
}

void SharedRun::writeOutcome(int64_t rank, const RankOutcome &outcome) {
  std::string text = outcome.pack(kOutcomeBytes);
  Slot &own = slot(rank);
  own.bytes = uint32_t(text.size());
  std::memcpy(own.outcome, text.data(), text.size());
  own.isDone = 1;
}

std::optional<RankOutcome> SharedRun::readOutcome(int64_t rank) const {
  const Slot &its = slot(rank);
  if (!its.isDone)
    return std::nullopt;
  return RankOutcome::unpack(
      {its.outcome, std::min<size_t>(its.bytes, kOutcomeBytes)});
}
