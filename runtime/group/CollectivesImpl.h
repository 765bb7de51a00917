//===- CollectivesImpl.h - The state behind Collectives ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to runtime/group. The functions of Collectives::Impl are in the files
// that the comments of its sections name.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_COLLECTIVESIMPL_H
#define COMMSIR_RUNTIME_GROUP_COLLECTIVESIMPL_H

#include "runtime/choose/Choose.h"
#include "runtime/group/Collective.h"
#include "runtime/group/CopiedCollective.h"
#include "runtime/group/Shape.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <array>
#include <functional>
#include <list>

namespace commsir::group {

/// Calls of one size after which it gets a kernel of its own.
constexpr unsigned kUsesOfOwn = 4;
/// Calls for each kernel that is kept, after which one that was not used makes
/// room for that of a size which others could serve: where more sizes come in
/// turn than are kept, each would drop the next one's.
constexpr uint64_t kCallsOfUnused = 16;
/// Descriptions of calls that are remembered.
constexpr size_t kPlans = 1024;

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

struct PlainPlan : Plan {
  Shape shape;
};

struct FusedPlan : Plan {
  std::string text;
  /// Bytes of the elements of each argument.
  llvm::SmallVector<size_t, 8> widths;
};

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

inline bool overlaps(const Shape &shape) {
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
inline bool writesOverInput(const Shape &shape) {
  return shape.op == "all_to_all" && overlaps(shape);
}

/// Whether input and output share memory, and not element by element, as those
/// of a call in place do: one tile or piece of the output may be written over
/// another of the input that was not sent yet.
inline bool isShifted(const Shape &shape) {
  auto part = static_cast<ptrdiff_t>(shape.elements * shape.elementBytes);
  return overlaps(shape) && (shape.output - shape.input) % part != 0;
}

struct Collectives::Impl {
  Impl(Group &group, CollectiveLimits limits) : group(group), limits(limits) {}
  ~Impl();

  //===--------------------------------------------------------------------===//
  // Collective.cpp: from a call to launches
  //===--------------------------------------------------------------------===//

  void dropPlans();
  llvm::Error note(llvm::Error error);
  llvm::Error recover();
  llvm::Error begin();
  /// By a call of others on this group, too.
  bool mayNeedRecovery() const {
    return recoveryPending || group.needsRecovery() ||
           recoveries != group.timesRecovered();
  }
  llvm::Expected<PlainPlan *> planOf(const CollectiveCall &call);
  static bool point(Shape &shape, const Array &input, const Array &output);
  bool isPlain(const PlainPlan &plan) const;
  llvm::Error launch(const Shape &shape, int64_t elements, GroupKernel &kernel,
                     void *input, void *output, void *stream,
                     uint64_t extent = 0);
  llvm::Error launchPlain(PlainPlan &plan, void *stream);
  std::optional<llvm::Error> launchAgain(PlainPlan &plan, const Array &input,
                                         const Array &output, void *stream);
  llvm::Expected<bool> takesCopies(const Shape &shape, uint64_t capture);
  llvm::Error runWhole(PlainPlan &plan, void *stream);
  llvm::Error runPlan(PlainPlan &plan, bool isDirect, void *stream);

  //===--------------------------------------------------------------------===//
  // CollectiveKernels.cpp: which kernel a call gets
  //===--------------------------------------------------------------------===//

  llvm::Expected<KernelCache::CachedKernel *>
  find(KernelCache &cache, llvm::StringRef key, llvm::ArrayRef<int64_t> members,
       llvm::StringRef text, void *stream,
       llvm::function_ref<llvm::Expected<KernelRequest>()> write,
       bool makesRoom = true);
  llvm::Error discardOldest(KernelCache &cache);
  llvm::Error followTables();
  /// Returns the cache of some members. All ranks have one cache, whether they
  /// are listed or not.
  KernelCache &cacheOf(llvm::ArrayRef<int64_t> members) {
    int64_t ranks = group.options().ranks;
    bool isAll = llvm::equal(members, llvm::seq<int64_t>(ranks));
    return caches[isAll ? std::vector<int64_t>() : members.vec()];
  }
  llvm::Expected<KernelCache::CachedKernel *>
  findSized(const Shape &shape, int64_t first, int64_t count, void *stream);
  int64_t sizedCapacityOf(const Shape &shape, int64_t most);
  tune::Config configOfSize(const Shape &shape, int64_t elements,
                            int64_t &multiprocessors) const;
  llvm::Expected<bool> lacksKernel(const Shape &shape, unsigned uses);
  bool shouldSpecialize(const Shape &shape, int64_t elements, uint64_t capture);
  unsigned &usesOf(const Shape &shape, const std::string &key);
  void boundLabels(Shape &shape);

  //===--------------------------------------------------------------------===//
  // CollectivePieces.cpp: calls that go in pieces
  //===--------------------------------------------------------------------===//

  llvm::Expected<char *> take(Scratch::Use use, size_t bytes, uint64_t capture);
  llvm::Expected<bool> takesPieces(const Shape &shape, uint64_t capture);
  int64_t roundUp(const Shape &shape, int64_t count, uint64_t capture);
  llvm::Error runPiece(PlainPlan &plan, int64_t first, int64_t count,
                       uint64_t capture, void *stream);
  llvm::Error runParts(const Shape &shape, int64_t first, int64_t elements);
  llvm::Error copyParts(llvm::ArrayRef<Array> list, const Shape &shape,
                        int64_t first, int64_t count, size_t pitch,
                        char *scratch, bool in, void *stream);

  //===--------------------------------------------------------------------===//
  // CollectiveMeeting.cpp: ranks compare what they call
  //===--------------------------------------------------------------------===//

  llvm::Error compareRoot(const Shape &shape, void *stream);
  llvm::Error meet(uint64_t digest, unsigned place, void *stream);
  llvm::Error meetAs(uint64_t digest, llvm::StringRef text);
  llvm::Error runEmpty(const PlainPlan &plan);

  //===--------------------------------------------------------------------===//
  // DirectCollective.cpp: outputs in windows
  //===--------------------------------------------------------------------===//

  bool mayBeDirect(const Shape &shape);
  llvm::Expected<bool> agreeOnWindow(Collectives &collectives,
                                     const Shape &shape);
  llvm::Expected<bool> runDirectly(const Shape &shape);

  //===--------------------------------------------------------------------===//
  // VaryingCollective.cpp: all_to_all_v
  //===--------------------------------------------------------------------===//

  llvm::Error runVarying(Collectives &collectives, const CollectiveCall &call,
                         void *stream);
  llvm::Expected<int64_t> exchangeSizes(Collectives &collectives,
                                        llvm::ArrayRef<int64_t> sizes,
                                        llvm::MutableArrayRef<int64_t> heard,
                                        void *stream);

  //===--------------------------------------------------------------------===//
  // FusedCollective.cpp: collectives with arithmetic
  //===--------------------------------------------------------------------===//

  llvm::Expected<FusedPlan *> planOf(const FusedCall &call, void *stream);
  llvm::Error launchFused(FusedPlan &plan, const FusedCall &call, void *stream);
  llvm::Error launchElsewhere(FusedPlan &plan, const FusedCall &call,
                              llvm::MutableArrayRef<Argument> arguments,
                              void *stream);
  bool mayRepeat(const PreparedFused &prepared) const;
  bool takesExtent(const FusedCall &call) const;
  /// The key of calls that are cut into the same pieces: those of any number of
  /// rows if one kernel takes them.
  std::string pieceKeyOf(const FusedCall &call) const;
  int64_t alignedRows(const FusedCall &call) const;
  int64_t cutRows(const FusedCall &call) const;
  int64_t mostRows(const FusedCall &call) const;
  int64_t pieceOf(const FusedCall &call) const;
  llvm::Error launchRows(Collectives &collectives, PreparedFused &prepared,
                         void *stream);
  llvm::Error runRows(Collectives &collectives, const FusedCall &call,
                      int64_t piece, void *stream);

  //===--------------------------------------------------------------------===//
  // State
  //===--------------------------------------------------------------------===//

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

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_COLLECTIVESIMPL_H
