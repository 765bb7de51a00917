//===- Group.h - One rank of a group of processes ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program that is one of N ranks works with, whatever the ranks run on:
// symmetric memory, kernels compiled for the group, launches. A rank is a
// process on the CPU (windows are POSIX shared memory) or on a GPU (windows are
// NCCL's, or peer memory).
//
// Functions marked collective are called by all ranks, in the same order.
//
// Functions marked "any thread" may be called while another thread is in any
// other function of the group. All others are called by one thread at a time:
// the C API has a CallQueue (runtime/group/CallQueue.h) for that, which its
// callers queue for. Nothing may be called once the destructor has begun.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_GROUP_H
#define COMMSIR_RUNTIME_GROUP_GROUP_H

#include "runtime/group/WindowTable.h"
#include "runtime/jit/Compile.h"
#include "runtime/support/Store.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace commsir::tune {
struct Config;
struct ConfigQuery;
} // namespace commsir::tune

namespace commsir::group {

/// A store in a folder that all ranks see. Made when it is not there.
llvm::Expected<std::unique_ptr<Store>> createFileStore(llvm::StringRef folder);

/// CTAs of large collectives that kernels of others run beside: the fewest that
/// carry what NCCL's do ("PyTorch, beside a matmul" in docs/Benchmarks.md).
inline constexpr int64_t kSharedCtas = 28;

struct GroupOptions {
  /// Unique among the groups that use the store, and the same on all ranks.
  std::string name = "world";
  int64_t rank = 0, ranks = 1;
  /// GPU of this rank; -1: the CPU.
  int device = -1;
  /// Seconds that a rank waits for a peer before it fails with a report.
  double timeout = 300;
  /// An ncclComm_t that the caller keeps; null: the group makes its own.
  void *ncclComm = nullptr;
  /// Limit on the bytes of channel memory of this rank; 0: the default.
  uint64_t channelBytes = 0;
  /// GPU: CTAs, at most, of an all_reduce, all_gather or reduce_scatter that
  /// takes 0.15 ms or more, for kernels of others that run beside it; 0: as
  /// many as are fastest; negative: `kSharedCtas`. COMMSIR_MAX_CTAS counts
  /// where it is set; the least that any rank says does.
  int64_t ctas = 0;
  /// GPU: "nccl": NCCL's symmetric windows; "plain": CUDA's memory, shared
  /// between the processes of a host; empty: NCCL's where every rank has it.
  std::string windows;
};

/// A kernel as a group compiles it.
struct KernelRequest {
  /// MLIR text, or bytecode that this program has made, and the name of the
  /// kernel in it (empty: the only one). Dimensions are static.
  std::string source, name;
  /// Empty and 0: the measured table's choice, else the compiler's.
  std::string algorithm, protocol;
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// GPU: "nccl": windows and barriers are calls of NCCL's device library;
  /// empty: they are generated.
  std::string impl;
  bool check = true;
  /// Budget of events of the checker; 0: its default.
  int64_t checkEvents = 0;
  /// GPU: its launches need not follow the group's other launches, because its
  /// grid fits the GPU beside all that may run then. That launches of the
  /// kernel itself follow each other is then the caller's affair.
  bool concurrent = false;
  /// World ranks that run the kernel, ascending or, of two, in any order;
  /// empty: all. Only where `takesMembers`; then "collective" speaks of these
  /// ranks, and the kernel is one for as many ranks.
  std::vector<int64_t> members;
  /// GPU: what the arrays hold, where the source does not say it. Other labels
  /// make other kernels, of the same machine code and with channels of their
  /// own, which are told apart as such where ranks disagree.
  std::string label;
  /// GPU: its channels lie in memory that the group's kernels take in turn, and
  /// which therefore does not grow with their number. Only for kernels of one
  /// collective over all ranks, whose launches follow the group's others.
  bool shared = false;
  /// Of shared channels: bytes that it may have, all buffers counted, or Limit;
  /// 0: what suits the group's own limit.
  uint64_t channelBytes = 0;
  /// Number of its first launch, as if others had ended before: for tests of
  /// what counts launches.
  uint64_t firstLaunch = 1;
};

/// A kernel that is compiled and loaded, with its channels' memory.
class GroupKernel {
public:
  virtual ~GroupKernel() = default;
  virtual llvm::StringRef name() const = 0;
  /// In the order of `launch`; hidden ones are the group's affair and are left
  /// out.
  virtual llvm::ArrayRef<jit::ArgInfo> args() const = 0;
  virtual llvm::ArrayRef<jit::Choice> choices() const = 0;
};

/// Value of one argument: memory of the group's kind of device, or, for a
/// scalar, memory of the host. A window argument lies in a window of the group,
/// at the same offset on all ranks. Signals and counters are the group's own
/// and take no argument value (`data` null).
struct Argument {
  void *data = nullptr;
  size_t bytes = 0;
};

/// The kinds of comms.signal and of comms.wait_signal.
enum class SignalKind { Set, Add };
enum class WaitKind { Equal, AtLeast };

/// A signal to a rank, whose cell this rank reaches at `cell`.
struct CellSignal {
  int64_t peer = 0;
  int64_t *cell = nullptr;
  SignalKind kind = SignalKind::Set;
  int64_t value = 0;
};

/// A wait for a cell of this rank.
struct CellWait {
  const int64_t *cell = nullptr;
  /// That the cell is in. Released by another thread, it ends the wait.
  std::shared_ptr<WindowRecord> window;
  /// For messages.
  int64_t number = 0;
  WaitKind kind = WaitKind::AtLeast;
  int64_t value = 0;
  /// The rank whose signal is missing; -1: any.
  int64_t source = -1;
  /// Seconds; 0: the group's.
  double timeout = 0;
  /// `value` is taken from the cell, which holds that or more. GPU: the stream
  /// waits for the group's timeout at most.
  bool takes = false;
};

/// A number that one thread at a time changes and any thread reads.
class Count {
public:
  Count() = default;
  Count(uint64_t number) : number(number) {}
  Count(const Count &other) : number(uint64_t(other)) {}
  Count &operator=(const Count &other) { return *this = uint64_t(other); }
  Count &operator=(uint64_t now) {
    number.store(now, std::memory_order_relaxed);
    return *this;
  }
  Count &operator+=(uint64_t more) { return *this = uint64_t(*this) + more; }
  Count &operator-=(uint64_t less) { return *this = uint64_t(*this) - less; }
  Count &operator++() { return *this += 1; }
  operator uint64_t() const { return number.load(std::memory_order_relaxed); }

private:
  std::atomic<uint64_t> number{0};
};

/// What a group has done, for `commsir.stats()`.
struct GroupCounts {
  Count launches, compiled, fromCache, windowBytes, channelBytes;
};

class Group {
public:
  virtual ~Group() = default;
  /// Any thread. The timeout is the first one: `timeout` has what counts.
  const GroupOptions &options() const { return settings; }
  bool onGpu() const { return settings.device >= 0; }
  /// Seconds. Any thread.
  double timeout() const { return seconds.load(std::memory_order_relaxed); }
  /// Of waits that begin later. CPU: any thread. GPU: of launches after the
  /// call, those of graphs that were captured before included.
  virtual llvm::Error setTimeout(double now) {
    seconds.store(now, std::memory_order_relaxed);
    return llvm::Error::success();
  }

  /// Symmetric memory: `bytes` on every rank, zeroed. Collective.
  /// `purpose`: what all ranks want it for, as "f32 (2, 3)"; they are told
  /// where that is not the same.
  virtual llvm::Expected<void *> allocate(size_t bytes,
                                          llvm::StringRef purpose = {}) = 0;
  /// Collective; `base` is what `allocate` returned.
  virtual llvm::Error release(void *base) = 0;
  /// Takes memory that was made symmetric by others as a window, for as long
  /// as the group lives or until `forget`: this rank's part begins at `own`,
  /// and `parts` has every rank's as this rank reaches it. Not collective.
  virtual llvm::Error adopt(void *own, size_t bytes,
                            llvm::ArrayRef<uint64_t> parts) = 0;
  /// Makes memory of this rank, by whomever it was allocated, a window of the
  /// group, as `adopt` does: peers map it. GPU: memory of cudaMalloc, of
  /// ncclMemAlloc, or CUDA's virtual memory that can be a file. It must stay
  /// until all ranks have called `forget`, or the group has ended. Collective:
  /// the same number of bytes on all ranks; all succeed or fail.
  virtual llvm::Error share(void *own, size_t bytes) = 0;
  /// Ends `adopt` or `share`, on this rank. Waits for threads that put to it or
  /// get from it. GPU: waits for its kernels.
  virtual void forget(void *own) = 0;
  /// This rank's view of the window that begins at `own`, all parts of it,
  /// stays when it is released, until `dropView` has been called as often: for
  /// who may still look there. Any thread. GPU: it does not.
  virtual void keepView(void * /*own*/) {}
  virtual void dropView(void * /*own*/) {}
  /// The window of this group that the whole range lies in, or null. Any
  /// thread; hold a WindowUse while touching the memory.
  virtual std::shared_ptr<WindowRecord> findWindow(const void *data,
                                                   size_t bytes) const = 0;
  bool isSymmetric(const void *data, size_t bytes) const {
    return findWindow(data, bytes) != nullptr;
  }
  /// A name for the place of the range in symmetric memory, the same on all
  /// ranks and no other's; 0: it has none, or ranks cannot write to each
  /// other's memory there.
  virtual uint64_t symmetricPlace(const void * /*data*/,
                                  size_t /*bytes*/) const {
    return 0;
  }
  /// Address of rank `peer`'s copy of `data` as this rank reaches it; null when
  /// it is out of reach or `data` is not symmetric. Any thread.
  virtual void *peerAddress(const void *data, int64_t peer) const = 0;

  /// Compiles, or finds what was compiled, and reserves channel memory.
  /// Collective when the request is new to the group, and always where `impl`
  /// is "nccl": that makes ready for one more capture. The kernel lives as long
  /// as the group.
  virtual llvm::Expected<GroupKernel *>
  prepare(const KernelRequest &request) = 0;

  /// GPU: how a collective of flat arrays is carried out when nobody says;
  /// fills in what `query` leaves open of the machine. The same on all
  /// ranks.
  virtual tune::Config configOf(tune::ConfigQuery &query) const;

  /// Whether kernels for a part of the ranks can be prepared: pairs.
  virtual bool takesMembers() const { return false; }

  /// The kernel will not be launched again: its channel memory can be used for
  /// others. Collective.
  virtual llvm::Error discard(GroupKernel &) { return llvm::Error::success(); }

  /// What the next launches are part of, in the caller's terms. Ranks whose
  /// digests differ are told so, with the texts.
  virtual void announce(uint64_t /*digest*/, llvm::StringRef /*text*/) {}

  /// GPU: puts the launch into `stream` (a CUstream, which may be capturing)
  /// and returns. CPU: returns when this rank has finished; `stream` is null.
  /// `extent`: of a kernel whose sizes are known at launch, the elements of a
  /// part, the same on all ranks; the caller sees to it that the arguments hold
  /// so many, and that they are not more than the kernel was made for.
  virtual llvm::Error launch(GroupKernel &kernel,
                             llvm::ArrayRef<Argument> arguments, void *stream,
                             uint64_t extent = 0) = 0;

  /// Memory of this rank alone, of the group's kind of device, for copies of
  /// arrays; aligned as kernels want it. Fails with Limit: there is no more.
  virtual llvm::Expected<void *> allocateOwn(size_t bytes);
  virtual void releaseOwn(void *memory);
  /// Copies `rows` rows of `bytes` each, `toPitch` and `fromPitch` bytes apart.
  /// GPU: in `stream`, after the group's last launch; one side may be memory of
  /// the host. CPU: at once.
  virtual llvm::Error copy(void *to, size_t toPitch, const void *from,
                           size_t fromPitch, size_t bytes, int64_t rows,
                           void *stream);
  /// Bytes that addresses of arrays of kernels are multiples of.
  virtual size_t alignment() const { return 1; }
  /// Names the capture that `stream` is in; 0: none.
  virtual uint64_t captureOf(void * /*stream*/) const { return 0; }
  /// Waits until all that was put into `stream` has ended; tells of failures.
  /// Any thread.
  virtual llvm::Error finish(void * /*stream*/) {
    return llvm::Error::success();
  }

  // What OneSided.h stands on, which has checked the arguments, and holds a
  // WindowUse but for `waitCell`. Addresses are as this rank reaches them. GPU:
  // all but `readCell` go into `stream`. Any thread.

  /// An error when the rank is known to be gone.
  virtual llvm::Error checkPeer(int64_t peer) = 0;
  virtual llvm::Error move(void *to, const void *from, size_t bytes,
                           void *stream) = 0;
  /// After what this rank has moved before (GPU: in `stream`).
  virtual llvm::Error signalCell(const CellSignal &signal, void *stream) = 0;
  virtual llvm::Error waitCell(const CellWait &wait, void *stream) = 0;
  virtual llvm::Expected<int64_t> readCell(const int64_t *own) = 0;

  /// The first failure that a launch has reported since (timeout, absent peer,
  /// mismatch), as an error that says who waits for whom; success: none.
  /// Does not wait, nor `recover`.
  virtual llvm::Error poll() = 0;
  /// The same while another thread is in a call of the group, which looks for
  /// new failures itself. Any thread.
  virtual llvm::Error pollBeside() { return poll(); }

  /// Why the group can no longer be used: the first failure. None: it can, if
  /// need be after `recover`. Any thread.
  virtual std::optional<std::string> ended() const = 0;

  /// CPU: after a step of collectives in which ranks disagreed, and failed all,
  /// they meet again: the group is as before. Nothing else is mended, and there
  /// it says why not. Collective where there is something to recover; what
  /// makes a new step does it first, where it need be.
  virtual llvm::Error recover() { return llvm::Error::success(); }
  /// There is something to recover. Kernels that were prepared for what was
  /// announced are there until then.
  bool needsRecovery() const {
    return mustRecover.load(std::memory_order_relaxed);
  }
  /// Kernels that were prepared for what was announced are gone each time.
  uint64_t timesRecovered() const { return recoveries; }

  /// Ends all waits of this rank, in flight and to come. Any thread.
  virtual void abort(llvm::StringRef reason) = 0;
  /// This rank ends its group soon: waits for cells fail. Any thread.
  virtual void endWaits() { isEnding = true; }

  /// A new group of `survivors` (ranks of this one, ascending, this rank among
  /// them). Collective over the survivors; this group is aborted. Any thread.
  virtual llvm::Expected<std::unique_ptr<Group>>
  shrink(llvm::ArrayRef<int64_t> survivors, Store &store) = 0;

  /// Any thread.
  virtual GroupCounts counts() const = 0;

  // What `drop` stands on.

  /// Whether the end may wait for peers, or for what runs on a GPU, which may
  /// wait for peers.
  virtual bool endsSlowly() const { return false; }
  /// Whether somebody may still use the group who does not tell: graphs that
  /// have captured its launches; in a child of fork the parent.
  virtual bool isKept() const { return false; }
  /// In the thread that ends the group and nothing else: waits for this rank's
  /// GPU, without disturbing what other threads do with it.
  virtual void awaitIdle() {}
  /// Then: waits until all ranks end the group, or one is gone.
  virtual void awaitPeers() {}

protected:
  explicit Group(GroupOptions options)
      : settings(std::move(options)), seconds(settings.timeout) {}
  /// Why a wait for a cell of `window` ends, if it has to: another thread has
  /// released the cell, or closed the group.
  llvm::Error checkWait(const CellWait &wait) const;

  const GroupOptions settings;
  uint64_t recoveries = 0;
  std::atomic<bool> mustRecover{false};
  std::atomic<bool> isEnding{false};

private:
  std::atomic<double> seconds;
};

/// Adds to what waits ask every 20 ms, on the thread that waits: whether to
/// give up, as for Ctrl-C. Null: nobody is asked from now on. Not 0: the wait
/// ends as by `abort`.
void setInterrupt(int (*check)());
bool isInterrupted();
/// Whether anybody would be asked.
bool canBeInterrupted();

/// Ends a group, by `end`, where nobody may wait, as where garbage is
/// collected. On the CPU that is at once; on a GPU a thread does it when all
/// ranks let go of the group, unless the process ends before. What graphs may
/// launch is kept to the process's end.
void drop(Group &group, std::function<void()> end);

/// The rank of a group that `options` describe. Collective. The store is used
/// during the call alone.
llvm::Expected<std::unique_ptr<Group>> createGroup(const GroupOptions &,
                                                   Store &);
llvm::Expected<std::unique_ptr<Group>> createCpuGroup(const GroupOptions &,
                                                      Store &);

/// A kind of group. Each is one file, which defines the function `get<File>`;
/// CMake lists the files in Groups.inc.
struct GroupKind {
  bool onGpu;
  llvm::Expected<std::unique_ptr<Group>> (*create)(const GroupOptions &,
                                                   Store &);
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_GROUP_H
