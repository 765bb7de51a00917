//===- GroupWindows.cpp - Memory that ranks reach at each other -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaGroup.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;

const CudaGroup::Range *CudaGroup::find(CUdeviceptr address,
                                        size_t bytes) const {
  auto holds = [&](const Range &range) {
    return address >= range.base && address - range.base <= range.bytes &&
           bytes <= range.bytes - (address - range.base);
  };
  if (lastFound && holds(*lastFound))
    return lastFound;
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin() || !holds(std::prev(after)->second))
    return nullptr;
  return lastFound = &std::prev(after)->second;
}

/// Whether a new range lies beside the others.
llvm::Error CudaGroup::checkRange(const void *own, size_t bytes) const {
  auto base = reinterpret_cast<CUdeviceptr>(own);
  auto after = ranges.lower_bound(base);
  bool clash = after != ranges.end() && after->first < base + bytes;
  if (after != ranges.begin()) {
    const Range &before = std::prev(after)->second;
    clash |= before.base + before.bytes > base;
  }
  if (clash)
    return usage(llvm::formatv("memory at {0:x} is a window of the group "
                               "already",
                               base)
                     .str());
  return llvm::Error::success();
}

llvm::Expected<void *> CudaGroup::allocate(size_t bytes,
                                           llvm::StringRef purpose) {
  if (isStopped)
    return stopped();
  Current current(cu, device->context());
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
      said += "\n  rank " + std::to_string(rank) + ": " + text;
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
  Range range;
  range.base = (*window)->base();
  range.bytes = bytes;
  range.parts.assign((*window)->parts().begin(), (*window)->parts().end());
  range.window = std::move(*window);
  done.windowBytes += range.window->size();
  CUdeviceptr base = range.base;
  ranges[base] = std::move(range);
  ++windowsVersion;
  return reinterpret_cast<void *>(base);
}

llvm::Error CudaGroup::release(void *base) {
  auto found = ranges.find(reinterpret_cast<CUdeviceptr>(base));
  if (found == ranges.end() || !found->second.window)
    return usage("release of memory that the group did not allocate");
  Current current(cu, device->context());
  llvm::Error idle = llvm::Error::success();
  if (isStopped)
    idle = stopped();
  else
    idle = cu.check(cu.CtxSynchronize(), "waiting for kernels");
  bool failed = bool(idle);
  if (auto error = mesh->agree("releasing a window",
                               asGroupError(std::move(idle)), patience())) {
    found->second.window->abandon();
    if (!failed)
      llvm::consumeError(std::move(error));
    else
      return error;
  }
  done.windowBytes -= found->second.window->size();
  lastFound = nullptr;
  ++windowsVersion;
  ranges.erase(found);
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
CudaGroup::Range &CudaGroup::addRange(void *own, size_t bytes,
                                      llvm::ArrayRef<CUdeviceptr> parts) {
  auto base = reinterpret_cast<CUdeviceptr>(own);
  Range &range = ranges[base];
  range.base = base;
  range.bytes = bytes;
  range.parts.assign(parts.begin(), parts.end());
  range.parts[settings.rank] = base;
  ++windowsVersion;
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
  addRange(own, bytes, std::vector<CUdeviceptr>(parts.begin(), parts.end()));
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
  addRange(own, bytes, (*shared)->parts()).shared = std::move(*shared);
  return llvm::Error::success();
}

void CudaGroup::forget(void *own) {
  auto found = ranges.find(reinterpret_cast<CUdeviceptr>(own));
  if (found == ranges.end() || found->second.window)
    return;
  if (found->second.shared) {
    Current current(cu, device->context());
    // What still runs reads and writes what peers have there.
    if (isStopped || cu.CtxSynchronize() != CUDA_SUCCESS)
      found->second.shared->abandon();
  }
  lastFound = nullptr;
  ++windowsVersion;
  ranges.erase(found);
}

bool CudaGroup::isSymmetric(const void *data, size_t bytes) const {
  return find(reinterpret_cast<CUdeviceptr>(data), bytes) != nullptr;
}

void *CudaGroup::peerAddress(const void *data, int64_t peer) const {
  auto address = reinterpret_cast<CUdeviceptr>(data);
  const Range *range = find(address, 1);
  if (!range || peer < 0 || peer >= settings.ranks || !range->parts[peer])
    return nullptr;
  return reinterpret_cast<void *>(range->parts[peer] + (address - range->base));
}
