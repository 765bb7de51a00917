//===- Group.cpp - One rank of a group of processes -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Group.h"

#include "runtime/choose/Choose.h"
#include "runtime/support/GroupError.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>

using namespace commsir;
using namespace commsir::group;

/// Alignment of the widest vectors that kernels use.
static constexpr std::align_val_t kAlignment{64};

llvm::Expected<void *> Group::allocateOwn(size_t bytes) {
  void *memory =
      ::operator new(std::max<size_t>(bytes, 1), kAlignment, std::nothrow);
  if (!memory)
    return makeError(GroupError::Kind::Limit,
                     "there are no " + llvm::Twine(bytes) +
                         " bytes of memory for copies of arrays");
  // Kernels may calculate with what is between arrays.
  std::memset(memory, 0, bytes);
  return memory;
}

tune::Config Group::configOf(tune::ConfigQuery &) const { return {}; }

void Group::releaseOwn(void *memory) { ::operator delete(memory, kAlignment); }

llvm::Error Group::copy(void *to, size_t toPitch, const void *from,
                        size_t fromPitch, size_t bytes, int64_t rows, void *) {
  auto *target = static_cast<char *>(to);
  auto *source = static_cast<const char *>(from);
  for (int64_t row = 0; row < rows && bytes; ++row)
    std::memcpy(target + row * toPitch, source + row * fromPitch, bytes);
  return llvm::Error::success();
}

llvm::Error Group::signalCells(llvm::ArrayRef<CellSignal> signals,
                               void *stream) {
  for (const CellSignal &signal : signals)
    if (llvm::Error error = signalCell(signal, stream))
      return error;
  return llvm::Error::success();
}

llvm::Error Group::waitCells(llvm::ArrayRef<CellWait> waits, void *stream) {
  for (const CellWait &wait : waits)
    if (llvm::Error error = waitCell(wait, stream))
      return error;
  return llvm::Error::success();
}

llvm::Error Group::checkWait(const CellWait &wait) const {
  auto fail = [&](GroupError::Kind kind, const char *why) {
    return makeError(kind, "rank " + std::to_string(settings.rank) +
                               " of group '" + settings.name +
                               "' no longer waits for cell " +
                               std::to_string(wait.number) + ": " + why);
  };
  if (wait.window->isReleased)
    return fail(GroupError::Kind::Usage,
                "another thread has released the cell. Release a window after "
                "its last wait has ended");
  if (isEnding)
    return fail(GroupError::Kind::Aborted,
                "another thread has closed the group. Close a group after its "
                "last wait has ended");
  return llvm::Error::success();
}

/// One for each binding of a process.
static std::array<std::atomic<int (*)()>, 8> interruptChecks;

void commsir::group::setInterrupt(int (*check)()) {
  for (auto &place : interruptChecks) {
    int (*none)() = nullptr;
    if (!check)
      place = nullptr;
    else if (place.compare_exchange_strong(none, check) || none == check)
      return;
  }
}

bool commsir::group::isInterrupted() {
  for (auto &place : interruptChecks)
    if (int (*check)() = place.load(std::memory_order_acquire))
      if (check() != 0)
        return true;
  return false;
}

bool commsir::group::canBeInterrupted() {
  return llvm::any_of(interruptChecks, [](const auto &place) {
    return place.load(std::memory_order_acquire) != nullptr;
  });
}

namespace commsir::group {
#define COMMSIR_GROUP(name) const GroupKind &get##name();
#include "runtime/group/Groups.inc"
#undef COMMSIR_GROUP
} // namespace commsir::group

llvm::Expected<std::unique_ptr<Group>>
commsir::group::createGroup(const GroupOptions &options, Store &store) {
#define COMMSIR_GROUP(name) &get##name(),
  static const GroupKind *const all[] = {
#include "runtime/group/Groups.inc"
  };
#undef COMMSIR_GROUP
  for (const GroupKind *kind : all)
    if (kind->onGpu == (options.device >= 0))
      return kind->create(options, store);
  return makeError(GroupError::Kind::Usage,
                   "this build of CommsIR has no GPU target: device must be "
                   "-1");
}
