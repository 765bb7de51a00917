//===- SharedRun.cpp - Memory that a run's processes share ----------------===//
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
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::driver;

/// Largest outcome that a rank may report.
static constexpr size_t kOutcomeBytes = size_t(60) << 10;

struct SharedRun::Slot {
  std::atomic<uint32_t> isDone;
  uint32_t bytes;
  char outcome[kOutcomeBytes];
};

/// At the start; slots, task and arrays follow.
struct SharedRun::Header {
  Places places;
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
  // Sealed: memory that is gone would end all that read it.
  file = memfd_create("commsir-run", MFD_ALLOW_SEALING);
  if (file < 0 || ftruncate(file, off_t(bytes)) ||
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
    return failWithErrno();
  if (auto error = map())
    return error;
  new (header) Header{};
  places = {ranks, taskOffset, text.size(), arraysOffset, arrays.bytes};
  header->places = places;
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
  // Looked at once: what all can write may change.
  places = header->places;
  size_t rest = bytes - sizeof(Header);
  return places.ranks <= rest / sizeof(Slot) && places.taskOffset <= bytes &&
         places.taskBytes <= bytes - places.taskOffset &&
         places.arraysOffset <= bytes &&
         (places.ranks == 0 ||
          places.arraysBytes <= (bytes - places.arraysOffset) / places.ranks);
}

std::optional<RankTask> SharedRun::readTask(RankArrays &arrays) const {
  jit::Reader reader{
      {reinterpret_cast<const char *>(header) + places.taskOffset,
       size_t(places.taskBytes)}};
  std::string task;
  std::vector<size_t> sizes;
  visitRun(reader, task, sizes);
  for (size_t size : sizes)
    arrays.add(size);
  if (!reader.good || arrays.bytes != places.arraysBytes)
    return std::nullopt;
  return RankTask::unpack(task);
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

int64_t SharedRun::ranks() const { return int64_t(places.ranks); }

SharedRun::State &SharedRun::state() const { return header->state; }

SharedRun::Slot &SharedRun::slot(int64_t rank) const {
  return reinterpret_cast<Slot *>(header + 1)[rank];
}

char *SharedRun::arraysOf(int64_t rank) const {
  return reinterpret_cast<char *>(header) + places.arraysOffset +
         size_t(rank) * places.arraysBytes;
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
  // A copy: a rank that runs wild may write while it is read.
  std::string said(its.outcome, std::min<size_t>(its.bytes, kOutcomeBytes));
  return RankOutcome::unpack(said);
}
