//===- GroupWindows.cpp - Memory that ranks reach at each other -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroupState.h"
#include "runtime/support/ForeignText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;

/// Whether a new range overlaps none of the others.
llvm::Error CudaGroup::checkRange(const void *own, size_t bytes) const {
  if (windows.overlaps(own, bytes))
    return usage(llvm::formatv("memory at {0:x} is a window of the group "
                               "already",
                               reinterpret_cast<CUdeviceptr>(own))
                     .str());
  return llvm::Error::success();
}

llvm::Expected<void *> CudaGroup::allocate(size_t bytes,
                                           llvm::StringRef purpose) {
  if (isStopped)
    return stopped();
  CurrentContext current(cu, device->context());
  std::string what = llvm::formatv("allocate {0} bytes", bytes);
  if (!purpose.empty())
    what += (" for " + purpose).str();
  // Where ranks differ in that alone, nothing is lost.
  auto texts = mesh->all("allocating a window", what, patience());
  if (!texts)
    return texts.takeError();
  if (!llvm::all_equal(*texts)) {
    std::string said;
    for (auto [rank, text] : llvm::enumerate(*texts))
      said += "\n  rank " + std::to_string(rank) + ": " + showForeign(text);
    return group::makeError(
        group::GroupError::Kind::Disagree,
        "ranks disagree on a window of group '" + settings.name + "'" + said +
            "\n  nothing was done, and the group can still be "
            "used: make the call again, the same on all ranks");
  }
  bytes = std::max<size_t>(bytes, 1);
  auto window = communicator->allocate(bytes);
  llvm::Error filled = llvm::Error::success();
  if (!window)
    filled = window.takeError();
  else if (!(filled = cu.check(cu.MemsetD8((*window)->base(), 0, bytes),
                               "zeroing a window")))
    filled = cu.check(cu.StreamSynchronize(nullptr), "zeroing a window");
  // Peers may write to it from here on.
  if (auto error =
          mesh->agree(what, asGroupError(std::move(filled)), patience()))
    return std::move(error);
  auto *base = reinterpret_cast<void *>((*window)->base());
  auto range = std::make_shared<Range>(base, bytes);
  range->parts.assign((*window)->parts().begin(), (*window)->parts().end());
  range->window = std::move(*window);
  done.windowBytes += range->window->size();
  windows.add(std::move(range));
  return base;
}

llvm::Error CudaGroup::release(void *base) {
  auto found = windows.at(base);
  if (!found || !found->window)
    return usage("release of memory that the group did not allocate, or that "
                 "was released before");
  CurrentContext current(cu, device->context());
  // From here on no thread puts into streams what touches it.
  windows.retire(found);
  llvm::Error idle = llvm::Error::success();
  if (isStopped)
    idle = stopped();
  else
    idle = cu.check(cu.CtxSynchronize(), "waiting for kernels");
  bool failed = bool(idle);
  if (auto error = mesh->agree("releasing a window",
                               asGroupError(std::move(idle)), patience())) {
    found->window->abandon();
    if (!failed)
      llvm::consumeError(std::move(error));
    else
      return error;
  }
  done.windowBytes -= found->window->size();
  found->window.reset();
  return llvm::Error::success();
}

/// Whether memory that others made can be a window.
llvm::Error CudaGroup::checkOwn(const void *own, size_t bytes) const {
  if (!own || !bytes || reinterpret_cast<uint64_t>(own) % abi::kAlignment)
    return usage(llvm::formatv("memory at {0:x} cannot be a window: it must be "
                               "aligned to {1} bytes and not empty",
                               reinterpret_cast<uint64_t>(own), abi::kAlignment)
                     .str());
  return checkRange(own, bytes);
}

/// Own accesses go by the own address, whatever `parts` calls it.
std::shared_ptr<CudaGroup::Range>
CudaGroup::makeRange(void *own, size_t bytes,
                     llvm::ArrayRef<CUdeviceptr> parts) const {
  auto range = std::make_shared<Range>(own, bytes);
  range->parts.assign(parts.begin(), parts.end());
  range->parts[settings.rank] = reinterpret_cast<CUdeviceptr>(own);
  return range;
}

llvm::Error CudaGroup::adopt(void *own, size_t bytes,
                             llvm::ArrayRef<uint64_t> parts) {
  if (int64_t(parts.size()) != settings.ranks)
    return usage(
        llvm::formatv("{0} parts for {1} ranks", parts.size(), settings.ranks)
            .str());
  if (auto error = checkOwn(own, bytes))
    return error;
  windows.add(makeRange(own, bytes,
                        std::vector<CUdeviceptr>(parts.begin(), parts.end())));
  return llvm::Error::success();
}

llvm::Error CudaGroup::share(void *own, size_t bytes) {
  if (isStopped)
    return stopped();
  // Ranks that cannot must not leave the others waiting.
  std::string what = llvm::formatv("sharing {0} bytes", bytes);
  if (auto error = mesh->agree(what, checkOwn(own, bytes), patience()))
    return error;
  auto shared = PeerMemory::share(
      *device, *mesh, reinterpret_cast<CUdeviceptr>(own), bytes, patience());
  if (!shared)
    return asGroupError(shared.takeError());
  auto range = makeRange(own, bytes, (*shared)->parts());
  range->shared = std::move(*shared);
  windows.add(std::move(range));
  return llvm::Error::success();
}

void CudaGroup::forget(void *own) {
  auto found = windows.at(own);
  if (!found || found->window)
    return;
  windows.retire(found);
  if (!found->shared)
    return;
  CurrentContext current(cu, device->context());
  // What still runs reads and writes what peers have there.
  if (isStopped || cu.CtxSynchronize() != CUDA_SUCCESS)
    found->shared->abandon();
  found->shared.reset();
}

void *CudaGroup::peerAddress(const void *data, int64_t peer) const {
  auto found = windows.find(data, 1);
  if (!found || peer < 0 || peer >= settings.ranks)
    return nullptr;
  return found->reach(data, peer);
}
