//===- CollectiveKernels.cpp - Which kernel a call gets -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of a group, of one size and of any size, and when a size gets a
// kernel of its own.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CollectivesImpl.h"

#include "runtime/support/GroupError.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

/// GPU: calls of one size that go on without the kernel that is compiled for
/// it; the next one waits. A step of a trainer has fewer, and what an engine
/// calls before it captures a graph has more: the graph keeps what it captured.
static constexpr unsigned kUsesWithout = 32;
/// CPU: bytes of a size that have been copied before it gets one. To copy them
/// takes about what it takes to compile a kernel (some 45 ms).
static constexpr int64_t kBytesOfOwn = int64_t(128) << 20;
/// GPU: bytes of an array from which it is not copied, whatever its size is.
static constexpr int64_t kLargestCopy = int64_t(256) << 20;
/// Sizes whose uses are counted.
static constexpr size_t kSizes = 4096;
/// GPU: labels of an operation and type that get kernels of their own, which
/// ranks compare in a meeting.
static constexpr size_t kLabels = 16;

std::atomic<int> group::compilesAtOnce{0};

llvm::Error Collectives::Impl::discardOldest(KernelCache &cache) {
  ++age;
  auto oldest = cache.kernels.find(cache.uses.back());
  if (llvm::Error error = group.discard(*oldest->second.kernel))
    return error;
  cache.kernels.erase(oldest);
  cache.uses.pop_back();
  return llvm::Error::success();
}

/// Kernels were chosen from measured tables: new ones make new kernels. All
/// ranks have loaded them between the same calls.
llvm::Error Collectives::Impl::followTables() {
  uint64_t current = tune::getTablesDigest();
  if (current == tables)
    return llvm::Error::success();
  tables = current;
  capacities.clear();
  ++age;
  for (auto &[members, cache] : caches)
    while (!cache.kernels.empty())
      if (llvm::Error error = discardOldest(cache))
        return error;
  return llvm::Error::success();
}

/// The kernel of that key; where there is none, of the text that `write` makes.
llvm::Expected<KernelCache::CachedKernel *> Collectives::Impl::find(
    KernelCache &cache, llvm::StringRef key, llvm::ArrayRef<int64_t> members,
    llvm::StringRef text, void *stream,
    llvm::function_ref<llvm::Expected<KernelRequest>()> write, bool makesRoom) {
  auto it = cache.kernels.find(key);
  if (it != cache.kernels.end()) {
    cache.touch(it->second);
    return &it->second;
  }
  if (group.captureOf(stream))
    return makeError(Kind::Usage,
                     text + ": there is no kernel for this call yet, and none "
                            "is compiled while a stream is captured: make the "
                            "call once, on all ranks, before capturing");
  if (cache.kernels.size() >= limits.kernels)
    if (llvm::Error error = discardOldest(cache))
      return std::move(error);
  auto request = write();
  if (!request)
    return request.takeError();
  request->members = members.vec();
  auto kernel = group.prepare(*request);
  // The kernels used longest ago make room for it: all ranks are told of the
  // limit, and have used the same. Kernels that share channel memory have no
  // room to give.
  makesRoom &= !request->shared;
  while (!kernel && makesRoom && !cache.kernels.empty()) {
    llvm::Error error = kernel.takeError();
    if (!isLimit(error))
      return std::move(error);
    llvm::consumeError(std::move(error));
    if (llvm::Error error = discardOldest(cache))
      return std::move(error);
    kernel = group.prepare(*request);
  }
  if (!kernel)
    return kernel.takeError();
  cache.uses.push_front(key.str());
  KernelCache::CachedKernel &kept = cache.kernels[key];
  kept = {*kernel, cache.uses.begin(), ++cache.calls};
  return &kept;
}

/// Numbers that the extents of a kernel are multiples of, so that it can leave
/// out what only ends of arrays need.
static constexpr int64_t kSteps[] = {8192, 1024, 512, 256, 128, 64, 1};

/// Elements of the smallest kernel of any size.
static constexpr int64_t kLeastSized = 1024;

/// How many times as much a kernel of any size holds as what it is launched
/// for, at most, where one for less would not go another way.
static constexpr int64_t kMostSpare = 8;

/// Returns the configuration of a kernel for any size, given the elements of a
/// part.
tune::Config Collectives::Impl::configOfSize(const Shape &shape,
                                             int64_t elements,
                                             int64_t &multiprocessors) const {
  tune::ConfigQuery query;
  query.op = shape.op;
  query.reduction = shape.reduction;
  query.elementType = shape.elementType;
  int64_t parts = std::min(shape.inputParts, shape.outputParts);
  query.bytes = elements * parts * int64_t(shape.elementBytes);
  tune::ConfigQuery open = query;
  tune::Config config = group.configOf(open);
  multiprocessors = open.multiprocessors;
  auto algorithms = tune::getExtentAlgorithms();
  if (llvm::is_contained(algorithms, config.algorithm))
    return config;
  // What gives every rank the whole can be done in two steps.
  query.algorithm = shape.inputParts == 1 && shape.outputParts == 1
                        ? algorithms.front().str()
                        : algorithms.back().str();
  return group.configOf(query);
}

/// Elements of the kernel of any size that takes up to `most`, a power of two.
/// Neighboring powers of two that go one way share it, as long as its blocks
/// have a multiprocessor each: those that have nothing to do delay nobody.
int64_t Collectives::Impl::sizedCapacityOf(const Shape &shape, int64_t most) {
  std::string key = llvm::formatv("{0} {1} {2}", shape.op, shape.reduction,
                                  shape.elementType);
  auto &all = capacities[key];
  if (all.empty()) {
    int64_t multiprocessors = 0;
    auto top = int64_t(llvm::PowerOf2Ceil(shape.mostSized()));
    tune::Config kept;
    for (int64_t next = top; next >= kLeastSized || all.empty(); next /= 2) {
      tune::Config config = configOfSize(shape, next, multiprocessors);
      bool isOneWay = config.algorithm == kept.algorithm &&
                      config.protocol == kept.protocol &&
                      config.threads == kept.threads &&
                      config.cluster == kept.cluster;
      bool isSpare = kept.blocks == config.blocks ||
                     kept.blocks * kept.cluster <= multiprocessors;
      if (!all.empty() && isOneWay && isSpare &&
          2 * all.front() <= kMostSpare * next)
        continue;
      all.insert(all.begin(), next);
      kept = config;
    }
  }
  auto *fits = llvm::lower_bound(all, most);
  return fits == all.end() ? most : *fits;
}

/// GPU: the kernel of any size for `count` elements from `first` on, so that a
/// size that was never seen costs no compilation.
llvm::Expected<KernelCache::CachedKernel *>
Collectives::Impl::findSized(const Shape &shape, int64_t first, int64_t count,
                             void *stream) {
  // The end of a call in pieces may have any length: few kernels take them all.
  int64_t least =
      first ? std::min(shape.mostSized() / 4, shape.chunk) : kLeastSized;
  int64_t most = sizedCapacityOf(
      shape, int64_t(llvm::PowerOf2Ceil(std::max(count, least))));
  KernelCache &cache = cacheOf({});
  std::string head = llvm::formatv("sized {0} {1} ", shape.key(), most).str();
  auto keyOf = [&](int64_t step) { return head + std::to_string(step); };
  // The best of those that are there; where none is, the best for the count.
  auto fits = llvm::make_filter_range(
      kSteps, [&](int64_t step) { return count % step == 0; });
  auto known = llvm::find_if(
      fits, [&](int64_t step) { return cache.kernels.contains(keyOf(step)); });
  int64_t step = known == fits.end() ? *fits.begin() : *known;
  return find(cache, keyOf(step), {}, shape.text, stream,
              [&] { return shape.writeSized(most, step); });
}

/// GPU: whether a rank still lacks the code of a kernel for the whole of a size
/// that has had so many `uses`. Until then it is compiled during the calls: it
/// takes more than a second, and a training step less.
llvm::Expected<bool> Collectives::Impl::lacksKernel(const Shape &shape,
                                                    unsigned uses) {
  bool waits = uses > kUsesWithout ||
               compilesAtOnce.load(std::memory_order_relaxed) != 0;
  if (!waits) {
    auto isThere = group.compileEarly(shape.write(shape.elements));
    if (!isThere)
      return isThere.takeError();
    if (!*isThere)
      return true;
  }
  // This is the kernel, and not one for a class of sizes.
  usesOf(shape, shape.key() + " " + std::to_string(shape.elements)) =
      kUsesOfOwn;
  return false;
}

unsigned &Collectives::Impl::usesOf(const Shape &shape,
                                    const std::string &key) {
  KernelCache &cache = cacheOf(shape.members);
  if (cache.sizes.size() >= kSizes) {
    ++age;
    cache.sizes.clear();
    cache.owned.clear();
  }
  return cache.sizes[key];
}

/// Whether a size is used so often that it gets a kernel of its own, and is
/// spared the copies, if there is room for one. On a GPU the first sizes get
/// one at once: few programs have more.
bool Collectives::Impl::shouldSpecialize(const Shape &shape, int64_t elements,
                                         uint64_t capture) {
  if (sizeClass(elements) == elements)
    return true;
  KernelCache &cache = cacheOf(shape.members);
  std::string family = shape.key();
  std::string key = family + " " + std::to_string(elements);
  if (capture)
    return cache.kernels.contains(key);
  int64_t bytes = elements * int64_t(shape.elementBytes) *
                  std::max(shape.inputParts, shape.outputParts);
  if (group.onGpu() && bytes >= kLargestCopy)
    return true;
  auto enough = int64_t(kUsesOfOwn);
  if (!group.onGpu())
    enough = std::max(enough, kBytesOfOwn / std::max<int64_t>(bytes, 1));
  unsigned &uses = usesOf(shape, key);
  if (uses == 0 && group.onGpu() && cache.owned[family] < limits.ownSizes) {
    ++cache.owned[family];
    uses = kUsesOfOwn;
  }
  if (uses >= enough)
    return cache.kernels.contains(key) || cache.hasRoom(limits.kernels);
  ++uses;
  return false;
}

/// GPU: a program that coalesces tensors of ever new sizes makes a label of
/// each list. After the first ones, which ranks compare, further ones share a
/// label: a new list costs no meeting, and drops no kernel of another call.
void Collectives::Impl::boundLabels(Shape &shape) {
  std::string family = llvm::formatv("{0} {1} {2}", shape.op, shape.reduction,
                                     shape.elementType);
  llvm::StringSet<> &known = cacheOf({}).labels[family];
  if (known.contains(shape.typeName))
    return;
  if (known.size() < kLabels)
    known.insert(shape.typeName);
  else
    shape.typeName = shape.elementType + " in many forms";
}
