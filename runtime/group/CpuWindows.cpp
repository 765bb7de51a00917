//===- CpuWindows.cpp - Windows of a group on the CPU ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Symmetric memory: each rank maps the parts of its peers.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CpuGroup.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

/// Parts of whole pages would lie in the same sets of a cache for all ranks:
/// they are moved apart.
static int64_t strideOf(size_t bytes) {
  auto stride = static_cast<int64_t>(
      llvm::alignTo(std::max<size_t>(bytes, 64), uint64_t(64)));
  return stride % 4096 == 0 ? stride + 192 : stride;
}

llvm::Expected<void *> CpuGroup::allocate(size_t bytes,
                                          llvm::StringRef purpose) {
  if (bytes > (size_t(1) << 46) / settings.ranks)
    return makeError(Kind::Usage, llvm::Twine(bytes) +
                                      " bytes on each rank are more than can "
                                      "be addressed");
  std::string text = "allocate " + std::to_string(bytes) + " bytes";
  if (!purpose.empty())
    text += (" for " + purpose).str();
  // Of any size: where ranks differ in that alone, nothing is broken.
  if (llvm::Error error = begin(world, llvm::xxh3_64bits("allocate"), text))
    return std::move(error);
  if (llvm::Error error = agreeOnText(world)) {
    if (llvm::Error late = end(world))
      return llvm::joinErrors(std::move(error), std::move(late));
    return std::move(error);
  }
  uint64_t numberOfThis = ++allocations;
  int64_t stride = strideOf(bytes);
  Segment made;
  llvm::Error error = shareSegment(world, stride * settings.ranks, made);
  llvm::Error late = end(world);
  if (error) {
    // The first error is the cause of the second.
    llvm::consumeError(std::move(late));
    return std::move(error);
  }
  if (late)
    return std::move(late);
  char *first = made.data(), *own = first + settings.rank * stride;
  auto window = std::make_shared<Window>(own, bytes, first, stride);
  window->segment = std::move(made);
  window->number = numberOfThis;
  counted.windowBytes += bytes;
  windows.add(std::move(window));
  return own;
}

llvm::Error CpuGroup::release(void *base) {
  if (llvm::Error error = ready())
    return error;
  auto window = windows.at(base);
  if (!window || window->isAdopted())
    return makeError(Kind::Usage, "release of memory that is not a window of "
                                  "this group, or was released before");
  std::string text = "release window " + std::to_string(window->number) +
                     " of " + std::to_string(window->bytes) + " bytes";
  if (llvm::Error error = begin(world, llvm::xxh3_64bits(text), text))
    return error;
  if (llvm::Error error = meet(world))
    return error;
  counted.windowBytes -= window->bytes;
  windows.retire(window);
  // Threads that wait for cells in it.
  wakeRank(settings.rank);
  return end(world);
}

void CpuGroup::keepView(void *own) {
  std::lock_guard<std::mutex> guard(viewsLock);
  View &view = views[reinterpret_cast<uintptr_t>(own)];
  if (++view.keepers == 1)
    view.window = windows.at(own);
}

void CpuGroup::dropView(void *own) {
  std::shared_ptr<Window> last; // Unmapped without the lock.
  std::lock_guard<std::mutex> guard(viewsLock);
  auto view = views.find(reinterpret_cast<uintptr_t>(own));
  if (view == views.end() || --view->second.keepers)
    return;
  last = std::move(view->second.window);
  views.erase(view);
}

llvm::Error CpuGroup::adopt(void *own, size_t bytes,
                            llvm::ArrayRef<uint64_t> parts) {
  // Ranks that have to meet again do so in the next step, and this is none.
  if (isForked() || ended())
    return check();
  if (parts.size() != static_cast<size_t>(settings.ranks))
    return makeError(Kind::Usage, "a window has one part a rank: " +
                                      std::to_string(settings.ranks) +
                                      ", not " + std::to_string(parts.size()));
  if (parts[settings.rank] != reinterpret_cast<uintptr_t>(own))
    return makeError(Kind::Usage,
                     "this rank's part of the window is not where it is said "
                     "to begin");
  int64_t stride =
      settings.ranks > 1 ? static_cast<int64_t>(parts[1] - parts[0]) : 0;
  for (size_t rank = 0; rank < parts.size(); ++rank)
    if (parts[rank] != parts[0] + rank * stride)
      return makeError(Kind::Usage,
                       "on the CPU the parts of a window lie at equal "
                       "distances; that of rank " +
                           std::to_string(rank) + " does not");
  windows.add(std::make_shared<Window>(static_cast<char *>(own), bytes,
                                       reinterpret_cast<char *>(parts[0]),
                                       stride));
  return llvm::Error::success();
}

llvm::Error CpuGroup::share(void *, size_t) {
  return makeError(Kind::Usage,
                   "memory that a process has already cannot be shared with "
                   "others on the CPU: allocate it by the group");
}

void CpuGroup::forget(void *own) {
  auto window = windows.at(own);
  if (window && window->isAdopted())
    windows.retire(window);
}

std::shared_ptr<WindowRecord> CpuGroup::findWindow(const void *data,
                                                   size_t bytes) const {
  return windows.find(data, bytes);
}

uint64_t CpuGroup::symmetricPlace(const void *data, size_t bytes) const {
  auto window = windows.find(data, bytes);
  if (!window || window->isAdopted())
    return 0;
  uint64_t place[] = {window->number, window->offsetOf(data)};
  return llvm::xxh3_64bits(
             {reinterpret_cast<const uint8_t *>(place), sizeof place}) |
         1;
}

void *CpuGroup::peerAddress(const void *data, int64_t peer) const {
  auto window = windows.find(data, 0);
  if (!window || peer < 0 || peer >= settings.ranks)
    return nullptr;
  return window->reach(data, peer);
}
