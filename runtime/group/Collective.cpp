//===- Collective.cpp - One collective on arrays of a group ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Collective.h"

#include "runtime/choose/Choose.h"
#include "runtime/group/CopiedCollective.h"
#include "runtime/group/Shape.h"
#include "runtime/support/Element.h"
#include "runtime/support/GroupError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

#include <array>
#include <cstring>
#include <functional>
#include <list>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

/// Calls of one size after which it gets a kernel of its own.
static constexpr unsigned kUsesOfOwn = 4;
/// GPU: the same of a size that goes in pieces before: these take no copies of
/// the whole, but a few launches more.
static constexpr unsigned kUsesOfLarge = 1;
/// GPU: calls of one size that go on without the kernel that is compiled for
/// it; the next one waits. A step of a trainer has fewer, and what an engine
/// calls before it captures a graph has more: the graph keeps what it captured.
static constexpr unsigned kUsesWithout = 32;
/// CPU: bytes of a size that have been copied before it gets one. To copy them
/// takes about what it takes to compile a kernel (some 45 ms).
static constexpr int64_t kBytesOfOwn = int64_t(128) << 20;
/// Calls for each kernel that is kept, after which one that was not used makes
/// room for that of a size which others could serve: where more sizes come in
/// turn than are kept, each would drop the next one's.
static constexpr uint64_t kCallsOfUnused = 16;
/// GPU: bytes of an array from which it is not copied, whatever its size is.
static constexpr int64_t kLargestCopy = int64_t(256) << 20;
/// GPU: elements below which no call is cut into pieces.
static constexpr int64_t kLeastPiece = 4096;
/// CPU: bytes of an output from which ranks ask each other whether they can
/// write to it: that costs a small collective.
static constexpr int64_t kDirectBytes = int64_t(4) << 20;
/// Uses of a size that is to have no such kernel.
static constexpr unsigned kNever = ~0u;
/// Sizes whose uses are counted.
static constexpr size_t kSizes = 4096;
/// GPU: labels of an operation and type that get kernels of their own, which
/// ranks compare in a meeting.
static constexpr size_t kLabels = 16;
/// Descriptions of calls that are remembered.
static constexpr size_t kPlans = 1024;

std::atomic<int> group::compilesAtOnce{0};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace commsir::group {
namespace {
/// The kernels of one set of ranks, the last used first. All its ranks make the
/// same calls, and so keep and drop the same kernels.
struct KernelCache {
  struct CachedKernel {
    GroupKernel *kernel;
    std::list<std::string>::iterator use;
    /// The number of the call that used it last.
    uint64_t call;
  };
  llvm::StringMap<CachedKernel> kernels;
  std::list<std::string> uses;
  /// Calls of each size, and sizes of each operation and type that have got
  /// kernels at once.
  llvm::StringMap<unsigned> sizes, owned;
  /// Labels of each operation and type that have kernels.
  llvm::StringMap<llvm::StringSet<>> labels;
  /// GPU: roots of operations that ranks have compared.
  llvm::StringSet<> roots;
  uint64_t calls = 0;

  void touch(CachedKernel &kept) {
    kept.call = ++calls;
    if (kept.use != uses.begin())
      uses.splice(uses.begin(), uses, kept.use);
  }
  /// Whether there is room for a kernel, or one that nobody seems to need.
  bool hasRoom(size_t limit) const {
    return kernels.size() < limit ||
           calls - kernels.find(uses.back())->second.call >
               kCallsOfUnused * limit;
  }
};

/// The result of planning a call. `kept` is its kernel if the kernel takes the
/// arrays in place, in one launch. It is valid while `age` matches the kernels'
/// age, so that a plan never leads a call to another kernel than planning again
/// would.
struct Plan {
  KernelCache *cache = nullptr;
  KernelCache::CachedKernel *kept = nullptr;
  uint64_t age = 0;
  uint64_t digest = 0;
  /// Elements of a part that a launch is given, where its kernel takes any
  /// number; else 0.
  uint64_t extent = 0;
};

} // namespace

struct PlainPlan : Plan {
  Shape shape;
};

struct FusedPlan : Plan {
  std::string text;
  /// Bytes of the elements of each argument.
  llvm::SmallVector<size_t, 8> widths;
};
} // namespace commsir::group

namespace {

/// A call's description as bytes, to look it up by.
class Key {
public:
  Key &operator<<(llvm::StringRef text) {
    *this << static_cast<int64_t>(text.size());
    bytes += text;
    return *this;
  }
  Key &operator<<(int64_t value) {
    bytes.append(reinterpret_cast<const char *>(&value),
                 reinterpret_cast<const char *>(&value + 1));
    return *this;
  }
  llvm::StringRef str() const { return bytes; }

private:
  llvm::SmallString<1024> bytes;
};

/// A call as its caller gave it, and its plan: what is found without a copy.
class RecentCall {
public:
  bool is(const CollectiveTexts &call) const {
    return plan && inputElements == call.input.elements &&
           outputElements == call.output.elements && root == call.root &&
           peer == call.peer && isText(0, call.op) &&
           isText(1, call.reduction) && isText(2, call.elementType) &&
           isText(3, call.typeName) && isText(4, call.algorithm) &&
           isText(5, call.protocol);
  }
  void set(const CollectiveTexts &call, PlainPlan &made);
  PlainPlan *plan = nullptr;

private:
  static constexpr size_t kTexts = 6, kMost = 24;
  bool isText(size_t i, const char *given) const {
    if (!given)
      return texts[i][0] == 0;
    // What is kept ends in a zero.
    for (size_t at = 0;; ++at)
      if (given[at] != texts[i][at] || !given[at])
        return given[at] == texts[i][at];
  }

  int64_t inputElements = 0, outputElements = 0, root = 0, peer = 0;
  char texts[kTexts][kMost] = {};
};

/// Memory for arrays that a kernel cannot take where they lie.
struct Scratch {
  enum Use { Packed, Unpacked, Apart, Sizes, Operands, kUses };
  char *memory = nullptr;
  size_t bytes = 0;
  /// The capture that it is part of; 0: none.
  uint64_t capture = 0;
};
} // namespace

/// One with longer texts is not kept.
void RecentCall::set(const CollectiveTexts &call, PlainPlan &made) {
  const char *given[kTexts] = {call.op,       call.reduction, call.elementType,
                               call.typeName, call.algorithm, call.protocol};
  plan = nullptr;
  for (size_t i = 0; i < kTexts; ++i) {
    llvm::StringRef text = given[i] ? given[i] : "";
    if (text.size() >= kMost)
      return;
    std::memset(texts[i], 0, kMost);
    llvm::copy(text, texts[i]);
  }
  inputElements = call.input.elements;
  outputElements = call.output.elements;
  root = call.root;
  peer = call.peer;
  plan = &made;
}

static Key keyOf(const CollectiveCall &call) {
  Key key;
  key << call.op << call.reduction << call.elementType << call.typeName
      << call.root << call.peer << call.input.elements << call.output.elements
      << call.algorithm << call.protocol << call.partElements
      << static_cast<int64_t>(call.inputParts.size())
      << static_cast<int64_t>(call.outputParts.size());
  return key;
}

static Key keyOf(const FusedCall &call) {
  Key key;
  key << call.op << call.reduction << call.elementType << call.rows
      << call.columns << call.input.elements << call.produce << call.consume;
  for (const auto *operands : {&call.sources, &call.arguments, &call.outputs}) {
    key << static_cast<int64_t>(operands->size());
    for (const FusedCall::Operand &one : *operands)
      key << one.array.elements << one.elementType
          << static_cast<int64_t>(one.perRow) << one.columns;
  }
  return key;
}

struct Collectives::Impl {
  Impl(Group &group, CollectiveLimits limits) : group(group), limits(limits) {}
  ~Impl();

  llvm::Expected<KernelCache::CachedKernel *>
  find(KernelCache &cache, llvm::StringRef key, llvm::ArrayRef<int64_t> members,
       llvm::StringRef text, void *stream,
       llvm::function_ref<llvm::Expected<KernelRequest>()> write,
       bool makesRoom = true);
  llvm::Error discardOldest(KernelCache &cache);
  llvm::Error followTables();
  void dropPlans();
  llvm::Error note(llvm::Error error);
  llvm::Error recover();
  /// By a call of others on this group, too.
  bool mayNeedRecovery() const {
    return recoveryPending || group.needsRecovery() ||
           recoveries != group.timesRecovered();
  }
  /// Returns the cache of some members. All ranks have one cache, whether they
  /// are listed or not.
  KernelCache &cacheOf(llvm::ArrayRef<int64_t> members) {
    int64_t ranks = group.options().ranks;
    bool isAll = llvm::equal(members, llvm::seq<int64_t>(ranks));
    return caches[isAll ? std::vector<int64_t>() : members.vec()];
  }
  llvm::Expected<char *> take(Scratch::Use use, size_t bytes, uint64_t capture);
  bool shouldSpecialize(const Shape &shape, int64_t elements, uint64_t capture);
  unsigned &usesOf(const Shape &shape, const std::string &key);
  void boundLabels(Shape &shape);
  llvm::Error compareRoot(const Shape &shape, void *stream);
  bool mayBeDirect(const Shape &shape);
  llvm::Expected<bool> agreeOnWindow(Collectives &collectives,
                                     const Shape &shape);
  llvm::Expected<bool> runDirectly(const Shape &shape);
  llvm::Error runPiece(PlainPlan &plan, int64_t first, int64_t count,
                       uint64_t capture, void *stream);
  llvm::Expected<KernelCache::CachedKernel *>
  findSized(const Shape &shape, int64_t first, int64_t count, void *stream);
  int64_t sizedCapacityOf(const Shape &shape, int64_t most);
  tune::Config configOfSize(const Shape &shape, int64_t elements,
                            int64_t &multiprocessors) const;
  llvm::Expected<bool> lacksKernel(const Shape &shape, unsigned uses);
  llvm::Expected<bool> takesPieces(const Shape &shape, uint64_t capture);
  int64_t roundUp(const Shape &shape, int64_t count, uint64_t capture);
  llvm::Error runParts(const Shape &shape, int64_t first, int64_t elements);
  llvm::Error copyParts(llvm::ArrayRef<Array> list, const Shape &shape,
                        int64_t first, int64_t count, size_t pitch,
                        char *scratch, bool in, void *stream);
  llvm::Expected<bool> takesCopies(const Shape &shape, uint64_t capture);
  llvm::Error meet(uint64_t digest, unsigned place, void *stream);
  llvm::Error runEmpty(const PlainPlan &plan);
  llvm::Error runWhole(PlainPlan &plan, void *stream);
  llvm::Error runPlan(PlainPlan &plan, bool isDirect, void *stream);
  llvm::Error launch(const Shape &shape, int64_t elements, GroupKernel &kernel,
                     void *input, void *output, void *stream,
                     uint64_t extent = 0);
  llvm::Error runVarying(Collectives &collectives, const CollectiveCall &call,
                         void *stream);
  llvm::Expected<int64_t> exchangeSizes(Collectives &collectives,
                                        llvm::ArrayRef<int64_t> sizes,
                                        llvm::MutableArrayRef<int64_t> heard,
                                        void *stream);
  llvm::Expected<PlainPlan *> planOf(const CollectiveCall &call);
  static bool point(Shape &shape, const Array &input, const Array &output);
  bool isPlain(const PlainPlan &plan) const;
  llvm::Error launchPlain(PlainPlan &plan, void *stream);
  std::optional<llvm::Error> launchAgain(PlainPlan &plan, const Array &input,
                                         const Array &output, void *stream);
  llvm::Expected<FusedPlan *> planOf(const FusedCall &call, void *stream);
  llvm::Error launchFused(FusedPlan &plan, const FusedCall &call, void *stream);
  llvm::Error launchElsewhere(FusedPlan &plan, const FusedCall &call,
                              llvm::MutableArrayRef<Argument> arguments,
                              void *stream);
  bool mayRepeat(const PreparedFused &prepared) const;
  bool takesExtent(const FusedCall &call) const;
  /// Of what is cut into the same pieces: calls of any number of rows where a
  /// kernel takes them.
  std::string pieceKeyOf(const FusedCall &call) const;
  int64_t alignedRows(const FusedCall &call) const;
  int64_t cutRows(const FusedCall &call) const;
  int64_t mostRows(const FusedCall &call) const;
  int64_t pieceOf(const FusedCall &call) const;
  llvm::Error launchRows(Collectives &collectives, PreparedFused &prepared,
                         void *stream);
  llvm::Error runRows(Collectives &collectives, const FusedCall &call,
                      int64_t piece, void *stream);
  bool isAligned(const void *data) const {
    return reinterpret_cast<uintptr_t>(data) % alignment == 0;
  }
  bool isCurrent(const Plan &plan) const {
    return plan.kept && plan.age == age;
  }
  void keep(Plan &plan, KernelCache &cache,
            KernelCache::CachedKernel &kept) const {
    plan.cache = &cache;
    plan.kept = &kept;
    plan.age = age;
  }

  Group &group;
  const CollectiveLimits limits;
  const size_t alignment = group.alignment();
  std::map<std::vector<int64_t>, KernelCache> caches;
  llvm::StringMap<PlainPlan> plain;
  /// Counts how often `plain` was emptied.
  uint64_t generation = 1;
  /// GPU: of the plans, those of calls that were repeated last.
  RecentCall &recentOf(const CollectiveTexts &call) {
    uint64_t mixed = uint64_t(call.input.elements) * 31 +
                     uint64_t(call.output.elements) * 7 + call.root;
    for (const char *text : {call.op, call.reduction, call.elementType})
      mixed = mixed * 31 + (text && *text ? *text + text[1] : 0);
    return recent[(mixed * 0x9E3779B97F4A7C15u) >> (64 - kRecentBits)];
  }
  static constexpr unsigned kRecentBits = 5;
  std::array<RecentCall, 1 << kRecentBits> recent;
  llvm::StringMap<FusedPlan> fused;
  /// Counts how often `fused` was emptied.
  uint64_t fusedGeneration = 1;
  /// Rows of the pieces of fused calls that are too large in one.
  llvm::StringMap<int64_t> fusedPieces;
  /// GPU: capacities of the kernels of any size of an operation and type,
  /// ascending.
  llvm::StringMap<llvm::SmallVector<int64_t, 8>> capacities;
  /// Counts what changes which kernel a call gets.
  uint64_t age = 1;
  /// A call has failed: ranks may have to meet again first.
  bool recoveryPending = false;
  uint64_t recoveries = group.timesRecovered();
  /// Digest of the tables that the cached kernels were chosen from; 0 on the
  /// CPU.
  uint64_t tables = group.onGpu() ? tune::getTablesDigest() : 0;
  /// Scratch memory of direct calls, and of the last capture.
  Scratch scratch[2][Scratch::kUses];
  /// Graphs may be launched for as long as the group is there.
  std::vector<char *> ofGraphs;
  CopiedCollective copies{group};
  /// The array of a meeting before and after, on a GPU.
  char *met = nullptr;
  StagingCounts counted;
  bool staged = false;
  /// The last piece has failed because there are no channels for it.
  bool isTooLarge = false;
};

Collectives::Impl::~Impl() {
  for (auto &uses : scratch)
    for (Scratch &one : uses)
      if (one.memory)
        group.releaseOwn(one.memory);
  for (char *memory : ofGraphs)
    group.releaseOwn(memory);
  if (met)
    group.releaseOwn(met);
}

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

void Collectives::Impl::dropPlans() {
  plain.clear();
  recent.fill({});
  ++generation;
}

/// Keeps in mind that a call has failed. In one that differed by rank they have
/// counted different sizes, and would choose different kernels later.
llvm::Error Collectives::Impl::note(llvm::Error error) {
  if (!error)
    return error;
  recoveryPending = true;
  bool differs = false;
  llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &one) {
    differs |= one.isA<GroupError>() &&
               static_cast<const GroupError &>(one).getKind() == Kind::Disagree;
  });
  if (!differs)
    return error;
  ++age;
  KernelCache &all = cacheOf({});
  all.sizes.clear();
  all.owned.clear();
  all.labels.clear();
  all.roots.clear();
  dropPlans();
  return error;
}

/// After a call that has failed, or kernels that are gone.
llvm::Error Collectives::Impl::recover() {
  if (llvm::Error error = group.recover())
    return error;
  recoveryPending = false;
  if (recoveries == group.timesRecovered())
    return llvm::Error::success();
  recoveries = group.timesRecovered();
  ++age;
  cacheOf({}) = KernelCache();
  fusedPieces.clear();
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

llvm::Expected<char *> Collectives::Impl::take(Scratch::Use use, size_t bytes,
                                               uint64_t capture) {
  Scratch &one = scratch[capture != 0][use];
  if (one.bytes >= bytes && one.capture == capture)
    return one.memory;
  size_t size = llvm::PowerOf2Ceil(std::max<size_t>(bytes, 4096));
  auto memory = group.allocateOwn(size);
  if (!memory)
    return memory.takeError();
  if (one.memory && one.capture)
    ofGraphs.push_back(one.memory);
  else if (one.memory)
    group.releaseOwn(one.memory);
  one = {static_cast<char *>(*memory), size, capture};
  return one.memory;
}

//===----------------------------------------------------------------------===//
// Plain collectives
//===----------------------------------------------------------------------===//

llvm::Error Collectives::Impl::launch(const Shape &shape, int64_t elements,
                                      GroupKernel &kernel, void *input,
                                      void *output, void *stream,
                                      uint64_t extent) {
  size_t width = shape.elementBytes;
  int64_t root = shape.root;
  // Arrays that this rank does not have are not looked at.
  Argument arguments[] = {
      {input ? input : output, elements * shape.inputParts * width},
      {output ? output : input, elements * shape.outputParts * width},
      {&root, sizeof root}};
  return group.launch(kernel,
                      llvm::ArrayRef(arguments).drop_back(!shape.takesRoot()),
                      stream, extent);
}

static bool overlaps(const Shape &shape) {
  if (!shape.input || !shape.output)
    return false;
  size_t part = shape.elements * shape.elementBytes;
  std::less<const char *> isBefore;
  return isBefore(shape.input, shape.output + part * shape.outputParts) &&
         isBefore(shape.output, shape.input + part * shape.inputParts);
}

/// Whether a kernel may write over what it has to send yet. It sees two arrays,
/// and what one rank sent may be in the output before what goes to the next has
/// left. Other operations write where nothing is read any more.
static bool writesOverInput(const Shape &shape) {
  return shape.op == "all_to_all" && overlaps(shape);
}

/// Whether input and output share memory, and not element by element, as those
/// of a call in place do: one tile or piece of the output may be written over
/// another of the input that was not sent yet.
static bool isShifted(const Shape &shape) {
  auto part = static_cast<ptrdiff_t>(shape.elements * shape.elementBytes);
  return overlaps(shape) && (shape.output - shape.input) % part != 0;
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

/// GPU: whether a size beyond those that kernels of any size take goes in
/// pieces, of few sizes, and not by a kernel of its own: until it is repeated,
/// and all ranks have compiled that. An all_reduce does always.
llvm::Expected<bool> Collectives::Impl::takesPieces(const Shape &shape,
                                                    uint64_t capture) {
  if (shape.pieceOf(shape.elements) == shape.elements)
    return false;
  if (shape.op == "all_reduce")
    return true;
  KernelCache &cache = cacheOf({});
  std::string key = shape.key() + " " + std::to_string(shape.elements);
  // Copy engines had carried out the first calls.
  if (cache.kernels.contains(key) || CopiedCollective::fits(shape))
    return false;
  // A captured call takes what there is.
  if (capture)
    return true;
  unsigned &uses = usesOf(shape, key);
  if (uses < kUsesOfLarge) {
    ++uses;
    return true;
  }
  if (!cache.hasRoom(limits.kernels))
    return true;
  return lacksKernel(shape, ++uses);
}

/// The elements that the kernel has which takes `count` of them.
int64_t Collectives::Impl::roundUp(const Shape &shape, int64_t count,
                                   uint64_t capture) {
  // GPU: what is not for any size is a piece, or a size of its own.
  if (shape.mostSized() || (!group.onGpu() && count == shape.chunk))
    return count;
  return shouldSpecialize(shape, count, capture) ? count : sizeClass(count);
}

/// Elements [first, first + count) of every part. Where the kernel is for more,
/// parts do not lie one after the other, or the output is the input, arrays go
/// through scratch memory. Which kernel it is does not depend on where they
/// lie, which differs by rank.
llvm::Error Collectives::Impl::runPiece(PlainPlan &plan, int64_t first,
                                        int64_t count, uint64_t capture,
                                        void *stream) {
  const Shape &shape = plan.shape;
  bool isSized = count <= shape.mostSized();
  int64_t elements = roundUp(shape, count, capture);
  if (shape.takesParts(elements))
    return runParts(shape, first, elements);
  size_t width = shape.elementBytes, bytes = count * width;
  size_t whole = shape.elements * width, padded = elements * width;
  bool cuts = count != shape.elements;
  char *from = shape.input ? shape.input + first * width : nullptr;
  char *to = shape.output ? shape.output + first * width : nullptr;
  bool drops = shape.dropsElsewhere && !shape.hasOutput;
  bool pack = !shape.inputList.empty() ||
              (from && (elements != count || (cuts && shape.inputParts > 1) ||
                        !isAligned(from) || writesOverInput(shape)));
  bool unpack = !shape.outputList.empty() ||
                (to && (elements != count || (cuts && shape.outputParts > 1) ||
                        !isAligned(to)));
  KernelCache &cache = cacheOf(shape.members);
  std::string key = shape.key() + " " + std::to_string(elements);
  auto kept = isSized ? findSized(shape, first, count, stream)
                      : find(cache, key, shape.members, shape.text, stream,
                             [&] { return shape.write(elements); });
  if (!kept) {
    llvm::Error error = kept.takeError();
    isTooLarge = isLimit(error);
    return error;
  }
  char *result = to;
  if (pack) {
    auto buffer = take(Scratch::Packed, padded * shape.inputParts, capture);
    if (!buffer)
      return buffer.takeError();
    llvm::Error error =
        from ? group.copy(*buffer, padded, from, whole, bytes, shape.inputParts,
                          stream)
             : copyParts(shape.inputList, shape, first, count, padded, *buffer,
                         /*in=*/true, stream);
    if (error)
      return error;
    from = *buffer;
  }
  if (unpack || drops) {
    auto buffer = take(Scratch::Unpacked, padded * shape.outputParts, capture);
    if (!buffer)
      return buffer.takeError();
    result = *buffer;
  }
  staged |= pack || unpack;
  // In a capture a size is not counted.
  if (elements == count && !cuts && (isSized || !capture) && !shape.isInParts &&
      !drops) {
    plan.extent = isSized ? count : 0;
    keep(plan, cache, **kept);
  }
  if (llvm::Error error = launch(shape, elements, *(*kept)->kernel, from,
                                 result, stream, isSized ? count : 0))
    return error;
  if (!unpack)
    return llvm::Error::success();
  if (!to)
    return copyParts(shape.outputList, shape, first, count, padded, result,
                     /*in=*/false, stream);
  return group.copy(to, whole, result, padded, bytes, shape.outputParts,
                    stream);
}

namespace {
/// What is left of a part, as much as a kernel takes at the most.
struct PartPiece {
  /// In the array, and where the kernel takes it.
  char *place, *used;
  size_t bytes;
};
} // namespace

/// The pieces of an array from element `first` on. Those of less than
/// `elements`, or all that are to be `apart`, are taken in scratch memory.
static llvm::SmallVector<PartPiece, 16> piecesOf(const Shape &shape,
                                                 bool isInput, int64_t first,
                                                 int64_t elements,
                                                 char *scratch, bool apart) {
  size_t width = shape.elementBytes, most = elements * width;
  char *whole = isInput ? shape.input : shape.output;
  llvm::ArrayRef<Array> list = isInput ? shape.inputList : shape.outputList;
  int64_t count = isInput ? shape.inputParts : shape.outputParts;
  bool isThere = isInput ? shape.hasInput : shape.hasOutput;
  llvm::SmallVector<PartPiece, 16> pieces;
  for (int64_t part = 0; part < count; ++part, scratch += most) {
    PartPiece piece = {nullptr, scratch, 0};
    if (isThere) {
      bool isWhole = list.empty();
      int64_t has = (isWhole ? shape.elements : list[part].elements) - first;
      piece.bytes = std::clamp<int64_t>(has, 0, elements) * width;
      piece.place = (isWhole ? whole + part * shape.elements * width
                             : static_cast<char *>(list[part].data)) +
                    first * width;
      if (piece.bytes == most && !apart)
        piece.used = piece.place;
    }
    pieces.push_back(piece);
  }
  return pieces;
}

/// Up to `elements` of each part, by a kernel that takes them where they lie:
/// so each is copied twice on its way, to a channel and from there.
llvm::Error Collectives::Impl::runParts(const Shape &shape, int64_t first,
                                        int64_t elements) {
  size_t bytes = elements * shape.elementBytes;
  std::string key = "parts " + shape.key() + " " + std::to_string(elements);
  auto kept = find(cacheOf({}), key, {}, shape.text, nullptr,
                   [&] { return shape.writeParts(elements); });
  if (!kept)
    return kept.takeError();
  auto packed = take(Scratch::Packed, bytes * shape.inputParts, 0);
  if (!packed)
    return packed.takeError();
  auto unpacked = take(Scratch::Unpacked, bytes * shape.outputParts, 0);
  if (!unpacked)
    return unpacked.takeError();
  auto in =
      piecesOf(shape, true, first, elements, *packed, writesOverInput(shape));
  auto out =
      piecesOf(shape, false, first, elements, *unpacked, /*apart=*/false);
  auto copy = [&](char *to, const char *from, size_t count) {
    if (to == from || !count)
      return;
    staged = true;
    std::memmove(to, from, count);
  };
  llvm::SmallVector<Argument, 32> arguments;
  for (const PartPiece &piece : in) {
    copy(piece.used, piece.place, piece.bytes);
    arguments.push_back({piece.used, bytes});
  }
  for (const PartPiece &piece : out)
    arguments.push_back({piece.used, bytes});
  if (llvm::Error error =
          group.launch(*(*kept)->kernel, arguments, /*stream=*/nullptr))
    return error;
  if (!shape.hasOutput)
    return llvm::Error::success();
  int64_t own = group.options().rank;
  for (auto [i, piece] : llvm::enumerate(out)) {
    const PartPiece &source = in[in.size() == 1 ? 0 : own];
    bool isOwn = shape.hasInput && (out.size() == 1 || int64_t(i) == own);
    if (isOwn && piece.place != source.place)
      std::memmove(piece.place, source.used,
                   std::min(piece.bytes, source.bytes));
    else if (!isOwn)
      copy(piece.place, piece.used, piece.bytes);
  }
  return llvm::Error::success();
}

/// Elements [first, first + count) of each part that has them, into scratch
/// memory (`in`) or from there.
llvm::Error Collectives::Impl::copyParts(llvm::ArrayRef<Array> list,
                                         const Shape &shape, int64_t first,
                                         int64_t count, size_t pitch,
                                         char *scratch, bool in, void *stream) {
  size_t width = shape.elementBytes;
  for (const Array &part : list) {
    int64_t has = std::clamp<int64_t>(part.elements - first, 0, count);
    size_t bytes = has * width;
    char *at = static_cast<char *>(part.data) + first * width;
    if (bytes)
      if (llvm::Error error =
              group.copy(in ? scratch : at, bytes, in ? at : scratch, bytes,
                         bytes, 1, stream))
        return error;
    scratch += pitch;
  }
  return llvm::Error::success();
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

/// GPU: ranks that name different roots would launch one kernel, and might all
/// end without a result. They compare the first call of each root, but in a
/// capture, which needs no meeting.
llvm::Error Collectives::Impl::compareRoot(const Shape &shape, void *stream) {
  llvm::StringSet<> &known = cacheOf({}).roots;
  if (!group.onGpu() || shape.rootText.empty() ||
      known.contains(shape.rootText) || group.captureOf(stream))
    return llvm::Error::success();
  if (llvm::Error error = group.compare(shape.text))
    return error;
  known.insert(shape.rootText);
  return llvm::Error::success();
}

static std::string directKey(const Shape &shape) {
  return "direct " + shape.key() + " " + std::to_string(shape.elements);
}

/// Whether the call is one that crosses memory once where outputs are windows:
/// a large copy, of a size that is used often enough to get a kernel.
bool Collectives::Impl::mayBeDirect(const Shape &shape) {
  bool copies = shape.op == "all_gather" || shape.op == "all_to_all";
  int64_t bytes =
      shape.elements * shape.outputParts * int64_t(shape.elementBytes);
  if (group.onGpu() || !copies || !shape.isChosen || shape.ranks < 2 ||
      bytes < kDirectBytes)
    return false;
  unsigned &uses = usesOf(shape, directKey(shape));
  if (uses >= kUsesOfOwn)
    return uses != kNever;
  ++uses;
  return false;
}

/// Whether all ranks have their outputs at one place in symmetric memory, and
/// nothing in them that is to be read.
llvm::Expected<bool> Collectives::Impl::agreeOnWindow(Collectives &collectives,
                                                      const Shape &shape) {
  size_t part = shape.elements * shape.elementBytes;
  size_t bytes = part * shape.outputParts;
  char *gathered = shape.output + group.options().rank * part;
  bool isApart = shape.input + part * shape.inputParts <= shape.output ||
                 shape.output + bytes <= shape.input ||
                 (shape.op == "all_gather" && shape.input == gathered);
  isApart &= shape.input && shape.output;
  uint64_t place = isApart ? group.symmetricPlace(shape.output, bytes) : 0;
  auto own = static_cast<int64_t>(place);
  // The most of both is their own only when all are equal.
  // As many as have a kernel: see sizeClass.
  int64_t said[16] = {own, ~own}, heard[16];
  CollectiveCall call;
  call.op = "all_reduce";
  call.reduction = "max";
  call.elementType = "i64";
  call.typeName = "places, before " + shape.text;
  call.input = {said, std::size(said)};
  call.output = {heard, std::size(heard)};
  StagingCounts before = counted;
  if (llvm::Error error = collectives.run(call, nullptr))
    return std::move(error);
  counted = before;
  return heard[0] != 0 && heard[0] == ~heard[1];
}

/// False: there is no memory for such a kernel, on any rank.
llvm::Expected<bool> Collectives::Impl::runDirectly(const Shape &shape) {
  auto kept = find(
      cacheOf({}), directKey(shape), {}, shape.text, nullptr,
      [&] { return shape.write(shape.elements, /*direct=*/true); },
      /*makesRoom=*/false);
  if (kept) {
    if (llvm::Error error = launch(shape, shape.elements, *(*kept)->kernel,
                                   shape.input, shape.output, nullptr))
      return std::move(error);
    return true;
  }
  llvm::Error error = kept.takeError();
  if (!isLimit(error))
    return std::move(error);
  llvm::consumeError(std::move(error));
  usesOf(shape, directKey(shape)) = kNever;
  return false;
}

/// Whether it takes the arrays where they lie, by a kernel that is its own.
bool Collectives::Impl::isPlain(const PlainPlan &plan) const {
  const Shape &shape = plan.shape;
  return isCurrent(plan) && shape.elements && shape.inputList.empty() &&
         shape.outputList.empty() && isAligned(shape.input) &&
         isAligned(shape.output) && !writesOverInput(shape) &&
         !isShifted(shape);
}

llvm::Error Collectives::Impl::launchPlain(PlainPlan &plan, void *stream) {
  const Shape &shape = plan.shape;
  plan.cache->touch(*plan.kept);
  return launch(shape, shape.elements, *plan.kept->kernel, shape.input,
                shape.output, stream, plan.extent);
}

/// GPU: whether copy engines carry the call out: large parts that are gathered
/// in place, as trainers do during matmuls, whose processors a kernel would
/// take; and sizes that no kernel takes yet, until they are repeated.
llvm::Expected<bool> Collectives::Impl::takesCopies(const Shape &shape,
                                                    uint64_t capture) {
  if (!CopiedCollective::fits(shape) || shape.elements <= shape.mostSized())
    return false;
  if (CopiedCollective::isAsQuick(shape, group.options().rank))
    return true;
  std::string key = shape.key() + " " + std::to_string(shape.elements);
  if (cacheOf({}).kernels.contains(key))
    return false;
  if (capture)
    return true;
  unsigned uses = ++usesOf(shape, "copied " + key);
  if (uses <= kUsesOfOwn)
    return true;
  if (!cacheOf({}).hasRoom(limits.kernels))
    return false;
  return lacksKernel(shape, uses);
}

/// Elements of the array of a meeting, and what their number is a multiple of.
static constexpr int64_t kMeetElements = 16384, kMeetStep = 64;

/// What is behind it in `stream` runs once all ranks have come to it. Its size
/// tells calls apart: ranks that are not in the same call wait for elements
/// that do not come, and time out with what each of them runs.
llvm::Error Collectives::Impl::meet(uint64_t digest, unsigned place,
                                    void *stream) {
  if (!met) {
    auto memory = group.allocateOwn(2 * kMeetElements * sizeof(int32_t));
    if (!memory)
      return memory.takeError();
    met = static_cast<char *>(*memory);
  }
  CollectiveCall call;
  call.op = "all_reduce";
  call.reduction = "max";
  call.elementType = "i32";
  call.typeName = "a meeting";
  call.input = {met, kMeetElements};
  call.output = {met + kMeetElements * sizeof(int32_t), kMeetElements};
  auto plan = planOf(call);
  if (!plan)
    return plan.takeError();
  Shape &shape = (*plan)->shape;
  auto kept = find(cacheOf({}), "meet", {}, shape.text, stream,
                   [&] { return shape.writeSized(kMeetElements, kMeetStep); });
  if (!kept)
    return kept.takeError();
  int64_t steps = kMeetElements / kMeetStep;
  uint64_t number = place ? digest / steps : digest;
  int64_t extent = kMeetStep * int64_t(1 + number % steps);
  return launch(shape, extent, *(*kept)->kernel, shape.input, shape.output,
                stream, extent);
}

/// CPU: a call of no elements, which ranks compare like others: one with some
/// would wait for a rank that has none.
llvm::Error Collectives::Impl::runEmpty(const PlainPlan &plan) {
  if (group.onGpu() || group.options().ranks < 2 || !plan.shape.members.empty())
    return llvm::Error::success();
  uint64_t digest = plan.digest;
  std::string text = plan.shape.text;
  int32_t sent[16] = {}, heard[16];
  CollectiveCall call;
  call.op = "all_reduce";
  call.reduction = "max";
  call.elementType = "i32";
  call.input = {sent, std::size(sent)};
  call.output = {heard, std::size(heard)};
  auto meeting = planOf(call);
  if (!meeting)
    return meeting.takeError();
  group.announce(digest, text);
  llvm::Error error = runWhole(**meeting, /*stream=*/nullptr);
  group.announce(0, "");
  return error;
}

llvm::Error Collectives::Impl::runWhole(PlainPlan &plan, void *stream) {
  Shape &shape = plan.shape;
  if (isPlain(plan))
    return launchPlain(plan, stream);
  uint64_t capture = group.captureOf(stream);
  if (isShifted(shape)) {
    size_t bytes = shape.elements * shape.inputParts * shape.elementBytes;
    auto apart = take(Scratch::Apart, bytes, capture);
    if (!apart)
      return apart.takeError();
    if (llvm::Error error = group.copy(*apart, bytes, shape.input, bytes, bytes,
                                       /*rows=*/1, stream))
      return error;
    shape.input = *apart;
    staged = true;
  }
  auto isCopied = takesCopies(shape, capture);
  if (!isCopied)
    return isCopied.takeError();
  if (*isCopied) {
    auto isReady = copies.reserve(shape, capture != 0);
    if (!isReady)
      return isReady.takeError();
    staged |= *isReady;
    // The plans of meetings may take the place of this one.
    Shape copied = shape;
    uint64_t digest = plan.digest;
    if (*isReady)
      return copies.run(copied, stream, [&](unsigned place) {
        return meet(digest, place, stream);
      });
  }
  auto isInPieces = takesPieces(shape, capture);
  if (!isInPieces)
    return isInPieces.takeError();
  for (int64_t first = 0; first < shape.elements;) {
    int64_t left = shape.elements - first;
    int64_t count =
        std::min(shape.chunk, *isInPieces ? shape.pieceOf(left) : left);
    isTooLarge = false;
    llvm::Error error = runPiece(plan, first, count, capture, stream);
    if (!error) {
      first += count;
      continue;
    }
    // All ranks are told, and go on in the same smaller pieces: so small that
    // there is room for what is left at the end, too.
    if (!isTooLarge || !group.onGpu() || count <= kLeastPiece)
      return error;
    llvm::consumeError(std::move(error));
    shape.chunk = std::max(int64_t(llvm::bit_floor(uint64_t(count - 1)) / 2),
                           kLeastPiece);
  }
  return llvm::Error::success();
}

llvm::Error Collectives::Impl::runPlan(PlainPlan &plan, bool isDirect,
                                       void *stream) {
  if (isDirect) {
    auto done = runDirectly(plan.shape);
    if (!done || *done)
      return done.takeError();
  }
  return runWhole(plan, stream);
}

/// Gives it the arrays of another such call; false: one of them is missing.
bool Collectives::Impl::point(Shape &shape, const Array &input,
                              const Array &output) {
  shape.input = shape.hasInput ? static_cast<char *>(input.data) : nullptr;
  shape.output = shape.hasOutput ? static_cast<char *>(output.data) : nullptr;
  shape.inputList = shape.outputList = {};
  return bool(shape.input) == shape.hasInput &&
         bool(shape.output) == shape.hasOutput;
}

/// The plan of such a call, with the call's own arrays.
llvm::Expected<PlainPlan *>
Collectives::Impl::planOf(const CollectiveCall &call) {
  Key key = keyOf(call);
  auto known = plain.find(key.str());
  if (known != plain.end() && pointAt(known->second.shape, call))
    return &known->second;
  auto shape = resolveShape(call, group);
  if (!shape)
    return shape.takeError();
  if (group.onGpu())
    boundLabels(*shape);
  if (plain.size() >= kPlans)
    dropPlans();
  PlainPlan &plan = plain[key.str()];
  plan.digest = llvm::xxh3_64bits(shape->text);
  plan.shape = std::move(*shape);
  return &plan;
}

Collectives::Collectives(Group &group, CollectiveLimits limits)
    : impl(std::make_unique<Impl>(group, limits)) {}
Collectives::~Collectives() = default;

/// Different sizes for each pair of ranks: ranks tell each other the sizes, and
/// then exchange parts of the largest. Each hears what it is sent, and refuses
/// what it did not expect after all have what is theirs.
llvm::Error Collectives::Impl::runVarying(Collectives &collectives,
                                          const CollectiveCall &call,
                                          void *stream) {
  int64_t ranks = group.options().ranks;
  auto refuse = [&](Kind kind, const llvm::Twine &why) {
    return makeError(kind, "all_to_all_v: " + why);
  };
  auto fits = [&](const std::vector<int64_t> &counts, const Array &array) {
    int64_t total = 0;
    for (int64_t count : counts)
      if (count < 0 || __builtin_add_overflow(total, count, &total))
        return false;
    return static_cast<int64_t>(counts.size()) == ranks &&
           total <= array.elements && (array.data || !total);
  };
  if (!fits(call.sendCounts, call.input) || !fits(call.recvCounts, call.output))
    return refuse(Kind::Usage,
                  "there must be one count per rank, none of them negative, "
                  "and together they must fit the arrays");
  if (group.captureOf(stream))
    return refuse(Kind::Usage,
                  "the ranks' hosts exchange the sizes, so that it cannot be "
                  "captured in a graph: exchange parts of one size by "
                  "all_to_all, or leave it out of the graph");
  std::vector<int64_t> heard(ranks);
  auto largest = exchangeSizes(collectives, call.sendCounts, heard, stream);
  if (!largest)
    return largest.takeError();
  CollectiveCall exchange;
  exchange.op = "all_to_all";
  exchange.elementType = call.elementType;
  exchange.typeName = call.typeName;
  // On a GPU in one launch, of a size that has a kernel.
  exchange.partElements =
      group.onGpu() && *largest ? sizeClass(*largest) : *largest;
  size_t width = *elementBytesOf(call.elementType);
  auto cut = [&](const Array &array, llvm::ArrayRef<int64_t> counts,
                 std::vector<Array> &parts) {
    auto *at = static_cast<char *>(array.data);
    for (int64_t count : counts) {
      parts.push_back({at, count});
      at += count * width;
    }
  };
  cut(call.input, call.sendCounts, exchange.inputParts);
  cut(call.output, call.recvCounts, exchange.outputParts);
  // What is not as expected is not written.
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (heard[rank] != call.recvCounts[rank])
      exchange.outputParts[rank].elements = 0;
  if (*largest)
    if (llvm::Error error = collectives.run(exchange, stream))
      return error;
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (heard[rank] != call.recvCounts[rank])
      return refuse(Kind::Disagree,
                    "rank " + llvm::Twine(rank) + " sends " +
                        llvm::Twine(heard[rank]) + " elements to rank " +
                        llvm::Twine(group.options().rank) + ", which expects " +
                        llvm::Twine(call.recvCounts[rank]));
  return llvm::Error::success();
}

/// Tells each rank what it is sent; returns the most that any is.
llvm::Expected<int64_t> Collectives::Impl::exchangeSizes(
    Collectives &collectives, llvm::ArrayRef<int64_t> sizes,
    llvm::MutableArrayRef<int64_t> heard, void *stream) {
  size_t bytes = sizes.size() * sizeof(int64_t);
  size_t stride = llvm::alignTo(bytes, std::max<size_t>(alignment, 64));
  auto memory = take(Scratch::Sizes, 4 * stride, 0);
  if (!memory)
    return memory.takeError();
  auto place = [&](int index) { return *memory + index * stride; };
  int64_t own = *llvm::max_element(sizes), largest = 0;
  auto copy = [&](void *to, const void *from, size_t count) {
    return group.copy(to, count, from, count, count, 1, stream);
  };
  auto count = static_cast<int64_t>(sizes.size());
  CollectiveCall each;
  each.op = "all_to_all";
  each.elementType = "i64";
  each.typeName = "sizes";
  each.input = {place(0), count};
  each.output = {place(1), count};
  CollectiveCall most;
  most.op = "all_reduce";
  most.reduction = "max";
  most.elementType = "i64";
  most.typeName = "sizes";
  most.input = {place(2), 1};
  most.output = {place(3), 1};
  StagingCounts before = counted;
  llvm::Error error = copy(place(0), sizes.data(), bytes);
  if (!error)
    error = copy(place(2), &own, sizeof own);
  if (!error)
    error = collectives.run(each, stream);
  if (!error)
    error = collectives.run(most, stream);
  if (!error)
    error = copy(heard.data(), place(1), bytes);
  if (!error)
    error = copy(&largest, place(3), sizeof largest);
  if (!error)
    error = group.finish(stream);
  counted = before;
  if (error)
    return std::move(error);
  return largest;
}

llvm::Error Collectives::run(const CollectiveCall &call, void *stream) {
  if (call.op == "all_to_all_v" && !unsupportedReason(call))
    return impl->runVarying(*this, call, stream);
  if (impl->mayNeedRecovery())
    if (llvm::Error error = impl->recover())
      return error;
  if (impl->group.onGpu())
    if (llvm::Error error = impl->followTables())
      return error;
  auto plan = impl->planOf(call);
  if (!plan)
    return plan.takeError();
  if ((*plan)->shape.elements == 0)
    return impl->note(impl->runEmpty(**plan));
  bool isDirect = false;
  if (impl->mayBeDirect((*plan)->shape)) {
    auto agreed = impl->agreeOnWindow(*this, (*plan)->shape);
    if (!agreed)
      return agreed.takeError();
    isDirect = *agreed;
    // That was a call, too, which may have dropped plans.
    plan = impl->planOf(call);
    if (!plan)
      return plan.takeError();
  }
  const Shape &shape = (*plan)->shape;
  if (llvm::Error error = impl->compareRoot(shape, stream))
    return impl->note(std::move(error));
  impl->staged = false;
  impl->group.announce((*plan)->digest, shape.text);
  llvm::Error error = impl->runPlan(**plan, isDirect, stream);
  impl->group.announce(0, "");
  ++(impl->staged ? impl->counted.staged : impl->counted.inPlace);
  return impl->note(std::move(error));
}

/// Launches a plan on the arrays of another such call; none: nothing was done,
/// since the plan is out of date or does not take these arrays.
std::optional<llvm::Error> Collectives::Impl::launchAgain(PlainPlan &plan,
                                                          const Array &input,
                                                          const Array &output,
                                                          void *stream) {
  // On the CPU ranks compare calls, and agree where outputs are windows.
  if (!group.onGpu() || mayNeedRecovery() ||
      tune::getTablesDigest() != tables || !point(plan.shape, input, output) ||
      !isPlain(plan))
    return std::nullopt;
  llvm::Error error = launchPlain(plan, stream);
  ++counted.inPlace;
  return note(std::move(error));
}

std::optional<llvm::Error> Collectives::repeat(const CollectiveTexts &call,
                                               void *stream) {
  if (!impl->group.onGpu())
    return std::nullopt;
  const RecentCall &recent = impl->recentOf(call);
  if (!recent.is(call))
    return std::nullopt;
  return impl->launchAgain(*recent.plan, call.input, call.output, stream);
}

llvm::Error Collectives::launch(PreparedCollective &prepared, void *input,
                                void *output, void *stream) {
  CollectiveCall &call = prepared.call;
  call.input.data = input;
  call.output.data = output;
  if (prepared.generation == impl->generation)
    if (auto done =
            impl->launchAgain(*prepared.plan, call.input, call.output, stream))
      return std::move(*done);
  llvm::Error error = run(call, stream);
  if (error || !impl->group.onGpu())
    return error;
  auto known = impl->plain.find(keyOf(call).str());
  if (known != impl->plain.end()) {
    prepared.plan = &known->second;
    prepared.generation = impl->generation;
  }
  return error;
}

llvm::Error Collectives::check(const CollectiveCall &call) const {
  CollectiveCall tried = call;
  // Only whether there are arrays counts.
  for (Array *array : {&tried.input, &tried.output})
    array->data = array->elements ? &tried : nullptr;
  return resolveShape(tried, impl->group).takeError();
}

void Collectives::remember(const CollectiveTexts &call,
                           const CollectiveCall &made) {
  if (!impl->group.onGpu())
    return;
  auto known = impl->plain.find(keyOf(made).str());
  if (known != impl->plain.end())
    impl->recentOf(call).set(call, known->second);
}

std::optional<std::string>
Collectives::unsupportedReason(const CollectiveCall &call) const {
  return noKernelReason(call, impl->group);
}

StagingCounts Collectives::counts() const { return impl->counted; }

//===----------------------------------------------------------------------===//
// Collectives with arithmetic
//===----------------------------------------------------------------------===//

/// Whether a kernel for any number of rows carries the call out.
bool Collectives::Impl::takesExtent(const FusedCall &call) const {
  return group.onGpu() && group.options().ranks > 1 &&
         call.op == "all_reduce" && call.rows > 0;
}

/// Rows of the kernel that takes so many.
static int64_t capacityOf(int64_t rows) {
  return int64_t(llvm::PowerOf2Ceil(std::max<int64_t>(rows, 1)));
}

/// The same call with another number of rows.
static FusedCall withRows(const FusedCall &call, int64_t rows) {
  FusedCall other = call;
  other.rows = rows;
  other.input.elements = rows * call.columns;
  for (auto *operands : {&other.sources, &other.arguments, &other.outputs})
    for (FusedCall::Operand &one : *operands)
      if (one.perRow)
        one.array.elements = rows * one.columns;
  return other;
}

llvm::Expected<FusedPlan *> Collectives::Impl::planOf(const FusedCall &call,
                                                      void *stream) {
  Key key = keyOf(call);
  auto known = fused.find(key.str());
  if (known != fused.end() && isCurrent(known->second)) {
    known->second.cache->touch(*known->second.kept);
    return &known->second;
  }
  bool isSized = takesExtent(call);
  auto request = writeFused(call, group, isSized ? capacityOf(call.rows) : 0);
  if (!request)
    return request.takeError();
  FusedPlan plan;
  if (isSized)
    plan.extent = call.rows * call.columns;
  plan.digest = llvm::xxh3_64bits(request->source);
  plan.text =
      llvm::formatv("{0} {1} of {2}x{3} {4} with arithmetic", call.op,
                    call.reduction, call.rows, call.columns, call.elementType);
  KernelCache &cache = cacheOf({});
  group.announce(plan.digest, plan.text);
  auto kept = find(cache, request->source, {}, plan.text, stream,
                   [&] { return *request; });
  group.announce(0, "");
  if (!kept)
    return note(kept.takeError());
  keep(plan, cache, **kept);
  plan.widths.push_back(*elementBytesOf(call.elementType));
  for (const auto *operands : {&call.sources, &call.arguments, &call.outputs})
    for (const FusedCall::Operand &one : *operands)
      plan.widths.push_back(*elementBytesOf(one.elementType));
  if (fused.size() >= kPlans) {
    fused.clear();
    ++fusedGeneration;
  }
  FusedPlan &made = fused[key.str()];
  made = std::move(plan);
  return &made;
}

std::string Collectives::Impl::pieceKeyOf(const FusedCall &call) const {
  bool isSized = takesExtent(call);
  return (isSized ? "any " : "") +
         keyOf(isSized ? withRows(call, 1) : call).str().str();
}

/// The least number of rows behind which every array is aligned.
int64_t Collectives::Impl::alignedRows(const FusedCall &call) const {
  auto isAlignedAt = [&](int64_t rows) {
    auto fits = [&](int64_t columns, llvm::StringRef type) {
      return rows * columns * *elementBytesOf(type) % alignment == 0;
    };
    auto fitsAll = [&](llvm::ArrayRef<FusedCall::Operand> operands) {
      return llvm::all_of(operands, [&](const FusedCall::Operand &one) {
        return !one.perRow || fits(one.columns, one.elementType);
      });
    };
    return fits(call.columns, call.elementType) && fitsAll(call.sources) &&
           fitsAll(call.arguments) && fitsAll(call.outputs);
  };
  int64_t step = 1;
  while (!isAlignedAt(step)) // Ends at `alignment`.
    step *= 2;
  return step;
}

/// Rows of about half of a call, at which every array is aligned; 0: it cannot
/// be cut. Rows know nothing of each other, and in an all-reduce each array has
/// its rows in one order.
int64_t Collectives::Impl::cutRows(const FusedCall &call) const {
  if (call.op != "all_reduce")
    return 0;
  // Of those for any number of rows, the largest kernel that may fit.
  int64_t half = takesExtent(call) ? capacityOf(call.rows) / 2
                                   : llvm::divideCeil(call.rows, 2);
  int64_t piece = int64_t(llvm::alignTo(half, alignedRows(call)));
  return piece < call.rows ? piece : 0;
}

/// The most rows of a piece for which a kernel of any number of rows has no
/// more than kMostSizedReduce bytes; 0: it has no more for the whole call.
int64_t Collectives::Impl::mostRows(const FusedCall &call) const {
  int64_t width = elementBytesOf(call.elementType).value_or(1);
  // The capacity is less than twice as much as the call.
  bool mayBeLarge = call.input.elements > kMostSizedReduce / width / 2;
  if (!takesExtent(call) || !mayBeLarge)
    return 0;
  if (llvm::Error error = writeFused(call, group).takeError()) {
    llvm::consumeError(std::move(error)); // `run` says so.
    return 0;
  }
  auto most = std::max<uint64_t>(kMostSizedReduce / (call.columns * width), 1);
  return capacityOf(call.rows) > int64_t(most)
             ? std::max(int64_t(llvm::bit_floor(most)), alignedRows(call))
             : 0;
}

/// Rows of the pieces that a call goes in; 0: it goes in one. Pieces of a large
/// call are about equal: each takes about its share of the time of the whole.
int64_t Collectives::Impl::pieceOf(const FusedCall &call) const {
  int64_t piece =
      fusedPieces.empty() ? 0 : fusedPieces.lookup(pieceKeyOf(call));
  if (int64_t most = mostRows(call)) {
    most = piece ? std::min(piece, most) : most;
    int64_t count = llvm::divideCeil(call.rows, most);
    piece = int64_t(
        llvm::alignTo(llvm::divideCeil(call.rows, count), alignedRows(call)));
  }
  return piece < call.rows ? piece : 0;
}

llvm::Error Collectives::Impl::runRows(Collectives &collectives,
                                       const FusedCall &call, int64_t piece,
                                       void *stream) {
  StagingCounts before = counted;
  for (int64_t first = 0; first < call.rows; first += piece) {
    FusedCall part = call;
    part.rows = std::min(piece, call.rows - first);
    auto cut = [&](Array &array, int64_t columns, llvm::StringRef type) {
      auto *data = static_cast<char *>(array.data);
      array.data = data + first * columns * *elementBytesOf(type);
      array.elements = part.rows * columns;
    };
    cut(part.input, part.columns, part.elementType);
    for (auto *operands : {&part.sources, &part.arguments, &part.outputs})
      for (FusedCall::Operand &one : *operands)
        if (one.perRow)
          cut(one.array, one.columns, one.elementType);
    if (llvm::Error error = collectives.run(part, stream))
      return error;
  }
  counted = before;
  ++counted.inPlace;
  return llvm::Error::success();
}

/// The same for a prepared call, each piece of which is prepared.
llvm::Error Collectives::Impl::launchRows(Collectives &collectives,
                                          PreparedFused &prepared,
                                          void *stream) {
  const FusedCall &call = prepared.call;
  const int64_t piece = prepared.pieceRows;
  StagingCounts before = counted;
  for (int64_t first = 0; first < call.rows; first += piece) {
    int64_t rows = std::min(piece, call.rows - first);
    auto &part = prepared.pieces[rows == piece ? 0 : 1];
    if (!part || part->call.rows != rows)
      part = std::make_unique<PreparedFused>(withRows(call, rows));
    llvm::SmallVector<void *, 8> arrays;
    auto add = [&](const Array &array, int64_t columns, llvm::StringRef type) {
      arrays.push_back(static_cast<char *>(array.data) +
                       first * columns * *elementBytesOf(type));
    };
    add(call.input, call.columns, call.elementType);
    for (const auto *operands : {&call.sources, &call.arguments, &call.outputs})
      for (const FusedCall::Operand &one : *operands)
        add(one.array, one.perRow ? one.columns : 0, one.elementType);
    if (llvm::Error error = collectives.launch(*part, arrays, stream))
      return error;
  }
  counted = before;
  ++counted.inPlace;
  return llvm::Error::success();
}

llvm::Error Collectives::Impl::launchFused(FusedPlan &plan,
                                           const FusedCall &call,
                                           void *stream) {
  llvm::SmallVector<Argument, 8> arguments;
  auto add = [&](const Array &array) {
    size_t width = plan.widths[arguments.size()];
    arguments.push_back({array.data, size_t(array.elements) * width});
  };
  add(call.input);
  for (const auto *operands : {&call.sources, &call.arguments, &call.outputs})
    for (const FusedCall::Operand &one : *operands)
      add(one.array);
  bool fits = llvm::all_of(
      arguments, [&](const Argument &one) { return isAligned(one.data); });
  ++(fits ? counted.inPlace : counted.staged);
  group.announce(plan.digest, plan.text);
  llvm::Error error =
      fits ? group.launch(*plan.kept->kernel, arguments, stream, plan.extent)
           : launchElsewhere(plan, call, arguments, stream);
  group.announce(0, "");
  return note(std::move(error));
}

/// Arrays that no kernel takes where they lie go through scratch memory. Ranks
/// need not agree on which.
llvm::Error
Collectives::Impl::launchElsewhere(FusedPlan &plan, const FusedCall &call,
                                   llvm::MutableArrayRef<Argument> arguments,
                                   void *stream) {
  const size_t inputs = arguments.size() - call.outputs.size();
  size_t size = 0;
  for (const Argument &one : arguments)
    if (!isAligned(one.data))
      size += llvm::alignTo(one.bytes, alignment);
  auto scratch = take(Scratch::Operands, size, group.captureOf(stream));
  if (!scratch)
    return scratch.takeError();
  char *free = *scratch;
  auto copy = [&](void *to, const void *from, size_t bytes) {
    return group.copy(to, bytes, from, bytes, bytes, 1, stream);
  };
  llvm::SmallVector<std::pair<Argument, void *>, 4> results;
  for (auto [number, one] : llvm::enumerate(arguments)) {
    if (isAligned(one.data))
      continue;
    if (number >= inputs)
      results.emplace_back(one, free);
    else if (llvm::Error error = copy(free, one.data, one.bytes))
      return error;
    one.data = free;
    free += llvm::alignTo(one.bytes, alignment);
  }
  if (llvm::Error error =
          group.launch(*plan.kept->kernel, arguments, stream, plan.extent))
    return error;
  for (auto &[place, made] : results)
    if (llvm::Error error = copy(place.data, made, place.bytes))
      return error;
  return llvm::Error::success();
}

llvm::Error Collectives::run(const FusedCall &call, void *stream) {
  if (impl->mayNeedRecovery())
    if (llvm::Error error = impl->recover())
      return error;
  if (impl->group.onGpu())
    if (llvm::Error error = impl->followTables())
      return error;
  if (int64_t piece = impl->pieceOf(call))
    return impl->runRows(*this, call, piece, stream);
  auto plan = impl->planOf(call, stream);
  if (!plan) {
    llvm::Error error = plan.takeError();
    // All ranks are told, and cut alike.
    int64_t piece = isLimit(error) ? impl->cutRows(call) : 0;
    if (!piece)
      return error;
    llvm::consumeError(std::move(error));
    if (impl->fusedPieces.size() >= kPlans)
      impl->fusedPieces.clear();
    impl->fusedPieces[impl->pieceKeyOf(call)] = piece;
    ++impl->age; // Calls that had plans may go in pieces now.
    return impl->runRows(*this, call, piece, stream);
  }
  return impl->launchFused(**plan, call, stream);
}

PreparedFused::PreparedFused(const FusedCall &call)
    : produce(call.produce), consume(call.consume), call(call) {
  this->call.produce = produce;
  this->call.consume = consume;
}

/// Whether a launch comes to the plan of the last one.
bool Collectives::Impl::mayRepeat(const PreparedFused &prepared) const {
  return prepared.generation == fusedGeneration && isCurrent(*prepared.plan) &&
         !mayNeedRecovery() &&
         (!group.onGpu() || tune::getTablesDigest() == tables);
}

llvm::Error Collectives::launch(PreparedFused &prepared,
                                llvm::ArrayRef<void *> arrays, void *stream) {
  FusedCall &call = prepared.call;
  const auto *next = arrays.begin();
  call.input.data = *next++;
  for (auto *operands : {&call.sources, &call.arguments, &call.outputs})
    for (FusedCall::Operand &one : *operands)
      one.array.data = *next++;
  if (impl->mayRepeat(prepared)) {
    prepared.plan->cache->touch(*prepared.plan->kept);
    return impl->launchFused(*prepared.plan, call, stream);
  }
  if (prepared.piecesAge != impl->age) {
    prepared.piecesAge = impl->age;
    prepared.pieceRows = impl->pieceOf(call);
  }
  if (prepared.pieceRows)
    return impl->launchRows(*this, prepared, stream);
  if (llvm::Error error = run(call, stream))
    return error;
  auto known = impl->fused.find(keyOf(call).str());
  if (known != impl->fused.end()) {
    prepared.plan = &known->second;
    prepared.generation = impl->fusedGeneration;
  }
  return llvm::Error::success();
}

llvm::Error Collectives::check(const FusedCall &call) const {
  return writeFused(call, impl->group).takeError();
}
