//===- PeerMemory.cpp - Memory that was not made for peers ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/PeerMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

using namespace commsir;
using namespace commsir::cuda;

static llvm::Error fail(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

/// Most parts that a range of virtual memory may consist of: what a rank says
/// of it goes into one message of the mesh.
static constexpr size_t kMostParts = 1024;

/// A rank's description of its memory: one of two kinds.
struct PeerMemory::Offer {
  int64_t pid = 0;
  /// Offset of the range from the first part or the allocation.
  uint64_t offset = 0;
  /// Sizes of the parts of virtual memory; empty for cudaMalloc's memory.
  std::vector<uint64_t> sizes;
  CUipcMemHandle handle{};

  std::string write() const {
    std::string text;
    auto put = [&](const void *data, size_t size) {
      text.append(static_cast<const char *>(data), size);
    };
    put(&pid, sizeof(pid));
    put(&offset, sizeof(offset));
    put(&handle, sizeof(handle));
    put(sizes.data(), sizes.size() * sizeof(uint64_t));
    return text;
  }
  /// Parses a rank's description of a range of `bytes`; none if it is invalid.
  static std::optional<Offer> read(llvm::StringRef text, size_t bytes) {
    Offer offer;
    constexpr size_t head =
        sizeof(offer.pid) + sizeof(offer.offset) + sizeof(offer.handle);
    if (text.size() < head || (text.size() - head) % sizeof(uint64_t) ||
        (text.size() - head) / sizeof(uint64_t) > kMostParts)
      return std::nullopt;
    auto take = [&](void *data, size_t size) {
      std::memcpy(data, text.data(), size);
      text = text.drop_front(size);
    };
    take(&offer.pid, sizeof(offer.pid));
    take(&offer.offset, sizeof(offer.offset));
    take(&offer.handle, sizeof(offer.handle));
    offer.sizes.resize(text.size() / sizeof(uint64_t));
    if (!offer.sizes.empty())
      take(offer.sizes.data(), offer.sizes.size() * sizeof(uint64_t));
    return offer.holds(bytes) ? std::optional(std::move(offer)) : std::nullopt;
  }
  /// `openAllocated` asks CUDA for the size of cudaMalloc's allocations.
  bool holds(size_t bytes) const {
    uint64_t all = 0;
    for (uint64_t size : sizes)
      if (size == 0 || __builtin_add_overflow(all, size, &all))
        return false;
    return sizes.empty() || (offset <= all && bytes <= all - offset);
  }
};

/// Holds the physical memory below the range, and says how it is cut. Memory
/// that is not CUDA's virtual memory leaves `sizes` empty.
static llvm::Error holdParts(const Device &device, CUdeviceptr own,
                             size_t bytes, Mapping &held, uint64_t &offset,
                             std::vector<uint64_t> &sizes) {
  const Driver &cu = device.driver();
  for (CUdeviceptr at = own; at < own + bytes;) {
    CUdeviceptr base = 0;
    size_t size = 0;
    if (auto error =
            cu.check(cu.MemGetAddressRange(&base, &size, at),
                     llvm::formatv("looking for the allocation at {0:x}, which "
                                   "is to be shared with peers",
                                   at)
                         .str()))
      return error;
    CUmemGenericAllocationHandle handle = 0;
    CUresult kept =
        cu.MemRetainAllocationHandle(&handle, reinterpret_cast<void *>(base));
    if (at == own)
      offset = own - base;
    if (kept != CUDA_SUCCESS) {
      if (!sizes.empty())
        return fail("the range is partly CUDA's virtual memory and partly not");
      if (base + size - own < bytes)
        return fail(llvm::formatv("the range of {0} bytes at {1:x} is longer "
                                  "than its allocation, which ends at {2:x}",
                                  bytes, own, base + size)
                        .str());
      return llvm::Error::success();
    }
    held.add(handle, size);
    sizes.push_back(size);
    if (sizes.size() > kMostParts)
      return fail(llvm::formatv("the range of {0} bytes at {1:x} consists of "
                                "more than {2} pieces of memory: share smaller "
                                "ranges",
                                bytes, own, kMostParts)
                      .str());
    at = base + size;
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<PeerMemory>>
PeerMemory::share(const Device &device, Mesh &mesh, CUdeviceptr own,
                  size_t bytes, double timeout) {
  const Driver &cu = device.driver();
  ContextGuard guard(cu, device.context());
  std::string what = llvm::formatv("sharing {0} bytes", bytes);
  Mapping held(cu, device.context());
  Offer mine;
  mine.pid = getpid();
  llvm::Error error =
      holdParts(device, own, bytes, held, mine.offset, mine.sizes);
  if (!error && mine.sizes.empty())
    error = cu.check(cu.IpcGetMemHandle(&mine.handle, own),
                     llvm::formatv("the memory at {0:x} cannot be shared with "
                                   "other processes: allocate it by the group, "
                                   "by ncclMemAlloc or by cudaMalloc",
                                   own)
                         .str());
  if (auto failure = mesh.agree(what, std::move(error), timeout))
    return std::move(failure);
  auto said = mesh.all(what, mine.write(), timeout);
  if (!said)
    return said.takeError();
  std::vector<Offer> offers;
  for (const std::string &text : *said) {
    auto offer = Offer::read(text, bytes);
    // All ranks see the same, and end here.
    if (!offer)
      return fail(
          llvm::formatv(
              "rank {0} has sent invalid data about its part of {1} bytes",
              offers.size(), bytes)
              .str());
    offers.push_back(std::move(*offer));
  }
  std::unique_ptr<PeerMemory> made(new PeerMemory(device));
  made->table.assign(offers.size(), 0);
  made->table[mesh.getRank()] = own;
  if (auto failure = made->openMapped(mesh, what, offers, held, timeout))
    return std::move(failure);
  llvm::Error open = llvm::Error::success();
  for (int peer = 0; peer < mesh.getRanks() && !open; ++peer)
    if (peer != mesh.getRank() && offers[peer].sizes.empty())
      open = made->openAllocated(offers[peer], bytes, peer);
  if (auto failure = mesh.agree(what, std::move(open), timeout))
    return std::move(failure);
  return made;
}

/// Every rank hands round as many files as the longest range has parts: a
/// shorter one its first again, which nobody opens.
llvm::Error PeerMemory::openMapped(Mesh &mesh, llvm::StringRef what,
                                   const std::vector<Offer> &offers,
                                   const Mapping &shared, double timeout) {
  size_t rounds = 0;
  for (const Offer &offer : offers)
    rounds = std::max(rounds, offer.sizes.size());
  int own = mesh.getRank();
  std::vector<Mapping> theirs;
  for (size_t peer = 0; peer < offers.size(); ++peer)
    theirs.emplace_back(device.driver(), device.context());
  for (size_t round = 0; round < rounds; ++round) {
    File file;
    llvm::Error error = llvm::Error::success();
    if (shared.parts()) {
      auto one = shared.share(round < shared.parts() ? round : 0);
      if (one)
        file = std::move(*one);
      else
        error = one.takeError();
    } else {
      // Something to hand round.
      file = File(open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    if (auto failure = mesh.agree(what, std::move(error), timeout))
      return failure;
    auto files = mesh.exchange(what, file, timeout);
    if (!files)
      return files.takeError();
    llvm::Error opened = llvm::Error::success();
    for (size_t peer = 0; peer < offers.size() && !opened; ++peer)
      if (int(peer) != own && round < offers[peer].sizes.size())
        opened = theirs[peer].open((*files)[peer], offers[peer].sizes[round],
                                   int(peer));
    if (auto failure = mesh.agree(what, std::move(opened), timeout))
      return failure;
  }
  llvm::Error error = llvm::Error::success();
  for (size_t peer = 0; peer < offers.size() && !error; ++peer) {
    if (!theirs[peer].parts())
      continue;
    error = theirs[peer].map(device, int(peer));
    table[peer] = theirs[peer].get() + offers[peer].offset;
    mappings.push_back(std::move(theirs[peer]));
  }
  return mesh.agree(what, std::move(error), timeout);
}

/// Whether `bytes` bytes at `offset` from `base` are in its allocation.
static llvm::Error checkAllocated(const Driver &cu, CUdeviceptr base,
                                  uint64_t offset, size_t bytes, int peer) {
  CUdeviceptr begin = 0;
  size_t size = 0;
  if (auto error = cu.check(cu.MemGetAddressRange(&begin, &size, base),
                            "looking for the size of the memory of rank " +
                                llvm::Twine(peer)))
    return error;
  uint64_t left = size - (base - begin);
  if (offset <= left && bytes <= left - offset)
    return llvm::Error::success();
  return fail(llvm::formatv("rank {0} says that its part of {1} bytes begins "
                            "at byte {2} of its memory, which has {3} bytes",
                            peer, bytes, offset, left)
                  .str());
}

llvm::Error PeerMemory::openAllocated(const Offer &offer, size_t bytes,
                                      int peer) {
  // CUDA opens such memory in other processes alone.
  if (offer.pid == getpid())
    return fail(llvm::formatv("rank {0} is a thread of this process, and its "
                              "memory comes from cudaMalloc: allocate it by "
                              "the group, or adopt it with every rank's "
                              "address",
                              peer)
                    .str());
  const Driver &cu = device.driver();
  CUdeviceptr base = 0;
  if (auto error =
          cu.check(cu.IpcOpenMemHandle(&base, offer.handle,
                                       CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                   llvm::formatv("GPU {0} cannot reach the memory of rank {1}",
                                 device.getOrdinal(), peer)
                       .str()))
    return error;
  opened.push_back(base);
  if (auto error = checkAllocated(cu, base, offer.offset, bytes, peer))
    return error;
  table[peer] = base + offer.offset;
  return llvm::Error::success();
}

void PeerMemory::abandon() {
  new std::vector<Mapping>(std::move(mappings));
  mappings.clear();
  opened.clear();
}

PeerMemory::~PeerMemory() {
  ContextGuard guard(device.driver(), device.context());
  for (CUdeviceptr base : opened)
    device.driver().IpcCloseMemHandle(base);
}
