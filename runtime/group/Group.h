//===- Group.h - One rank of a group of processes ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One of N ranks as a program sees it, whatever the ranks run on: symmetric
// memory, kernels compiled for the group, and launches. A rank is a process on
// the CPU (windows are POSIX shared memory) or on a GPU (windows are NCCL's, or
// peer memory).
//
// Functions marked collective must be called by all ranks, in the same order.
//
// Functions marked "thread-safe" may be called while another thread is in any
// other function of the group. All others need one thread at a time; the C API
// ensures that with a CallQueue (runtime/group/CallQueue.h). Nothing may be
// called once the destructor has begun.
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

/// A store in a folder that all ranks share. The folder is created if it is
/// missing.
llvm::Expected<std::unique_ptr<Store>> createFileStore(llvm::StringRef folder);

/// CTAs of a large collective that overlaps with other kernels: the smallest
/// number that reaches NCCL's bandwidth (docs/history/2026-11-26.md).
inline constexpr int64_t kSharedCtas = 28;

struct GroupOptions {
  /// Unique among the groups that use the store; equal on all ranks.
  std::string name = "world";
  int64_t rank = 0, ranks = 1;
  /// GPU of this rank; -1: the CPU.
  int device = -1;
  /// Seconds that a rank waits for a peer before it fails with a report.
  double timeout = 300;
  /// An ncclComm_t that the caller owns; null: the group makes its own.
  void *ncclComm = nullptr;
  /// Limit on this rank's channel memory in bytes; 0: the default.
  uint64_t channelBytes = 0;
  /// GPU: maximum number of CTAs of an all_reduce, all_gather or reduce_scatter
  /// that takes 0.15 ms or more, so that other kernels can run at the same
  /// time. 0: as many as are fastest; negative: `kSharedCtas`. COMMSIR_MAX_CTAS
  /// overrides it; the minimum over all ranks is used.
  int64_t ctas = 0;
  /// GPU: "nccl": NCCL's symmetric windows; "plain": CUDA memory shared between
  /// the processes of a host; empty: NCCL's if every rank has it.
  std::string windows;
};

/// A kernel to compile for a group.
struct KernelRequest {
  /// MLIR text, or bytecode that this program wrote, and the kernel's name in
  /// it (empty: the only kernel). Dimensions are static.
  std::string source, name;
  /// Empty or 0: chosen by the measured table, else by the compiler.
  std::string algorithm, protocol;
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// GPU: "nccl": windows and barriers call NCCL's device library; empty:
  /// CommsIR generates them.
  std::string impl;
  bool check = true;
  /// Event budget of the checker; 0: its default.
  int64_t checkEvents = 0;
  /// GPU: launches need not follow the group's other launches, because the grid
  /// fits the GPU next to everything that may run at that time. The caller must
  /// then order the launches of this kernel.
  bool concurrent = false;
  /// World ranks that run the kernel, ascending (a pair may be in any order);
  /// empty: all. Requires `takesMembers`. "Collective" then refers to these
  /// ranks, and the kernel is compiled for that number of ranks.
  std::vector<int64_t> members;
  /// GPU: contents of the arrays, if the source does not tell. Kernels with
  /// different labels share machine code but have separate channels, and are
  /// distinguished in reports of disagreement.
  std::string label;
  /// GPU: the channels lie in memory that the group's kernels use in turn, so
  /// that it does not grow with their number. Only for kernels of one
  /// collective over all ranks whose launches follow the group's others.
  bool shared = false;
  /// Shared channels: maximum bytes of all buffers, else an error of kind
  /// Limit; 0: derived from the group's own limit.
  uint64_t channelBytes = 0;
  /// Number of the first launch, as if earlier launches had ended. For tests of
  /// launch counts.
  uint64_t firstLaunch = 1;
};

/// A kernel that is compiled and loaded, with its channel memory.
class GroupKernel {
public:
  virtual ~GroupKernel() = default;
  virtual llvm::StringRef name() const = 0;
  /// Arguments in the order that `launch` takes them, without hidden ones,
  /// which the group supplies.
  virtual llvm::ArrayRef<jit::ArgInfo> args() const = 0;
  virtual llvm::ArrayRef<jit::Choice> choices() const = 0;
  /// The certificate: the checker's verdict at compile time.
  virtual const jit::ProofInfo &proof() const = 0;
};

/// Value of one argument: memory of the group's device type, or, for a scalar,
/// host memory. A window argument must lie in a window of the group, at the
/// same offset on all ranks. Signals and counters belong to the group and take
/// no value (`data` null).
struct Argument {
  void *data = nullptr;
  size_t bytes = 0;
};

/// As in comms.signal and comms.wait_signal.
enum class SignalKind { Set, Add };
enum class WaitKind { Equal, AtLeast };

/// A signal to a rank. This rank reaches the rank's cell at `cell`.
struct CellSignal {
  int64_t peer = 0;
  int64_t *cell = nullptr;
  SignalKind kind = SignalKind::Set;
  int64_t value = 0;
};

/// A wait for a cell of this rank.
struct CellWait {
  const int64_t *cell = nullptr;
  /// The window of the cell. Its release by another thread ends the wait.
  std::shared_ptr<WindowRecord> window;
  /// Cell number for messages.
  int64_t number = 0;
  WaitKind kind = WaitKind::AtLeast;
  int64_t value = 0;
  /// The rank whose signal is awaited; -1: any.
  int64_t source = -1;
  /// Timeout in seconds; 0: the group's.
  double timeout = 0;
  /// Subtracts `value` from the cell once it holds that or more. GPU: the
  /// stream waits at most for the group's timeout.
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

/// Statistics of a group, for `commsir.stats()`.
struct GroupCounts {
  Count launches, compiled, fromCache, windowBytes, channelBytes;
};

class Group {
public:
  virtual ~Group() = default;
  /// Thread-safe. Holds the initial timeout; `timeout` returns the current one.
  const GroupOptions &options() const { return settings; }
  bool onGpu() const { return settings.device >= 0; }
  /// Current timeout in seconds. Thread-safe.
  double timeout() const { return seconds.load(std::memory_order_relaxed); }
  /// Sets the timeout, in seconds, of waits that begin later. CPU: thread-safe.
  /// GPU: applies to later launches, including those of graphs captured before.
  virtual llvm::Error setTimeout(double now) {
    seconds.store(now, std::memory_order_relaxed);
    return llvm::Error::success();
  }

  /// Allocates symmetric memory: `bytes` on every rank, zeroed. Collective.
  /// `purpose` describes the use, such as "f32 (2, 3)"; ranks whose purposes
  /// differ get an error with all of them.
  virtual llvm::Expected<void *> allocate(size_t bytes,
                                          llvm::StringRef purpose = {}) = 0;
  /// Releases memory that `allocate` returned at `base`. Collective.
  virtual llvm::Error release(void *base) = 0;
  /// Registers symmetric memory that others allocated as a window, until
  /// `forget` or the end of the group. `own` is this rank's part; `parts` holds
  /// every rank's part at the address where this rank reaches it. Not
  /// collective.
  virtual llvm::Error adopt(void *own, size_t bytes,
                            llvm::ArrayRef<uint64_t> parts) = 0;
  /// Makes memory of this rank, from any allocator, a window of the group;
  /// peers map it. GPU: memory of cudaMalloc or ncclMemAlloc, or virtual memory
  /// that can be exported as a file. The memory must stay allocated until all
  /// ranks have called `forget` or the group has ended. Collective: all ranks
  /// pass the same number of bytes; all succeed or all fail.
  virtual llvm::Error share(void *own, size_t bytes) = 0;
  /// Ends `adopt` or `share` on this rank. Waits for threads that access the
  /// window. GPU: also waits for its kernels.
  virtual void forget(void *own) = 0;
  /// CPU: keeps this rank's mapping of the window that begins at `own` after
  /// its release, for threads that may still read it. Each call needs one
  /// `dropView`. Thread-safe. GPU: does nothing.
  virtual void keepView(void * /*own*/) {}
  virtual void dropView(void * /*own*/) {}
  /// Returns the window of this group that contains the whole range, or null.
  /// Thread-safe. Hold a WindowUse while accessing the memory.
  virtual std::shared_ptr<WindowRecord> findWindow(const void *data,
                                                   size_t bytes) const = 0;
  bool isSymmetric(const void *data, size_t bytes) const {
    return findWindow(data, bytes) != nullptr;
  }
  /// Returns a number that identifies the range within symmetric memory, equal
  /// on all ranks and unique. Returns 0 if the range is not symmetric or ranks
  /// cannot write to each other's memory there.
  virtual uint64_t symmetricPlace(const void * /*data*/,
                                  size_t /*bytes*/) const {
    return 0;
  }
  /// Address at which this rank reaches rank `peer`'s copy of `data`. Null if
  /// it is out of reach or `data` is not symmetric. Thread-safe.
  virtual void *peerAddress(const void *data, int64_t peer) const = 0;

  /// Compiles the kernel, or finds it in a cache, and reserves its channel
  /// memory. Collective if the request is new to the group, and always if
  /// `impl` is "nccl", where each call allows one more capture. The kernel
  /// lives as long as the group.
  virtual llvm::Expected<GroupKernel *>
  prepare(const KernelRequest &request) = 0;

  /// GPU: compiles the request's code on a thread of its own, unless that has
  /// begun. Returns whether all ranks have it, so that `prepare` takes little
  /// time. Collective. Code that cannot be compiled counts: `prepare` reports
  /// why. CPU: true.
  virtual llvm::Expected<bool> compileEarly(const KernelRequest & /*request*/) {
    return true;
  }

  /// GPU: chooses the configuration of a collective of flat arrays; completes
  /// `query` with the machine's data. Equal on all ranks.
  virtual tune::Config configOf(tune::ConfigQuery &query) const;

  /// Whether kernels for a subset of the ranks (pairs) can be prepared.
  virtual bool takesMembers() const { return false; }

  /// Frees the kernel's channel memory for other kernels. The kernel must not
  /// be launched again. Collective.
  virtual llvm::Error discard(GroupKernel &) { return llvm::Error::success(); }

  /// Names what the next launches belong to, in the caller's terms. If digests
  /// differ between ranks, the error holds all texts.
  virtual void announce(uint64_t /*digest*/, llvm::StringRef /*text*/) {}
  /// GPU: fails with Disagree, and both texts, unless all ranks pass the same
  /// text. Collective. CPU: does nothing; ranks compare each announced call.
  virtual llvm::Error compare(llvm::StringRef /*text*/) {
    return llvm::Error::success();
  }

  /// GPU: enqueues the launch in `stream` (a CUstream, which may be capturing)
  /// and returns. CPU: returns when this rank has finished; `stream` is null.
  /// `extent`: for a kernel whose sizes are given at launch, the number of
  /// elements of a part, equal on all ranks. The caller must ensure that the
  /// arguments hold that many elements and that the kernel was compiled for at
  /// least as many.
  virtual llvm::Error launch(GroupKernel &kernel,
                             llvm::ArrayRef<Argument> arguments, void *stream,
                             uint64_t extent = 0) = 0;

  /// Allocates memory of this rank only, of the group's device type, for copies
  /// of arrays. It is aligned as kernels require. Fails with Limit if memory is
  /// exhausted.
  virtual llvm::Expected<void *> allocateOwn(size_t bytes);
  virtual void releaseOwn(void *memory);
  /// Copies `rows` rows of `bytes` bytes each; rows are `toPitch` and
  /// `fromPitch` bytes apart. GPU: runs in `stream` after the group's last
  /// launch; one side may be host memory. CPU: runs at once.
  virtual llvm::Error copy(void *to, size_t toPitch, const void *from,
                           size_t fromPitch, size_t bytes, int64_t rows,
                           void *stream);
  /// Required alignment of kernel arrays in bytes.
  virtual size_t alignment() const { return 1; }
  /// Returns an identifier of the capture that `stream` is in; 0: none.
  virtual uint64_t captureOf(void * /*stream*/) const { return 0; }
  /// Waits until all work in `stream` has ended and reports failures.
  /// Thread-safe.
  virtual llvm::Error finish(void * /*stream*/) {
    return llvm::Error::success();
  }

  // Implementation of OneSided.h, which checks the arguments and holds a
  // WindowUse except around `waitCell`. Addresses are those at which this rank
  // reaches the memory. GPU: all functions except `readCell` enqueue in
  // `stream`. Thread-safe.

  /// Returns an error if the rank is known to be gone.
  virtual llvm::Error checkPeer(int64_t peer) = 0;
  virtual llvm::Error move(void *to, const void *from, size_t bytes,
                           void *stream) = 0;
  /// Ordered after all data that this rank has moved before (GPU: in `stream`).
  virtual llvm::Error signalCell(const CellSignal &signal, void *stream) = 0;
  virtual llvm::Error waitCell(const CellWait &wait, void *stream) = 0;
  /// Signals of kind `Add` with one value, and waits that take one value from
  /// cells of one window. GPU: at once, in one launch.
  virtual llvm::Error signalCells(llvm::ArrayRef<CellSignal> signals,
                                  void *stream);
  virtual llvm::Error waitCells(llvm::ArrayRef<CellWait> waits, void *stream);
  virtual llvm::Expected<int64_t> readCell(const int64_t *own) = 0;

  /// Returns the first failure that a launch has reported since the last call
  /// (timeout, absent peer, mismatch), with the ranks that wait for each other,
  /// or success. Does not wait and does not `recover`.
  virtual llvm::Error poll() = 0;
  /// Same, while another thread is in a call of the group; that thread looks
  /// for new failures itself. Thread-safe.
  virtual llvm::Error pollBeside() { return poll(); }

  /// Returns the first failure if the group can no longer be used, or none if
  /// it can be used, possibly after `recover`. Thread-safe.
  virtual std::optional<std::string> ended() const = 0;

  /// CPU: restores the group after a step of collectives in which ranks
  /// disagreed and all failed. Fails with the reason after any other failure.
  /// Collective if `needsRecovery`; the next step calls it first.
  virtual llvm::Error recover() { return llvm::Error::success(); }
  /// Whether `recover` must run. Until then kernels that were prepared for the
  /// announced calls still exist.
  bool needsRecovery() const {
    return mustRecover.load(std::memory_order_relaxed);
  }
  /// Number of recoveries. Each one discards the kernels that were prepared for
  /// announced calls.
  uint64_t timesRecovered() const { return recoveries; }

  /// Ends all present and future waits of this rank. Thread-safe.
  virtual void abort(llvm::StringRef reason) = 0;
  /// Announces that this rank is about to end its group: waits for cells fail.
  /// Thread-safe.
  virtual void endWaits() { isEnding = true; }

  /// Makes a group of `survivors` (ascending ranks of this group, including
  /// this rank). Collective over the survivors. Aborts this group. Thread-safe.
  virtual llvm::Expected<std::unique_ptr<Group>>
  shrink(llvm::ArrayRef<int64_t> survivors, Store &store) = 0;

  /// Thread-safe.
  virtual GroupCounts counts() const = 0;

  // Used by `drop`.

  /// Whether ending the group may wait for peers, or for GPU work that waits
  /// for peers.
  virtual bool endsSlowly() const { return false; }
  /// Whether an unseen user may remain: a graph that captured launches of the
  /// group, or, in a forked child, the parent.
  virtual bool isKept() const { return false; }
  /// Waits for this rank's GPU without disturbing other threads. Called only by
  /// the thread that ends the group.
  virtual void awaitIdle() {}
  /// Called next: waits until all ranks end the group or one is gone.
  virtual void awaitPeers() {}

protected:
  explicit Group(GroupOptions options)
      : settings(std::move(options)), seconds(settings.timeout) {}
  /// Returns the reason for a wait on a cell of `window` to end, if there is
  /// one: another thread has released the cell or closed the group.
  llvm::Error checkWait(const CellWait &wait) const;

  const GroupOptions settings;
  uint64_t recoveries = 0;
  std::atomic<bool> mustRecover{false};
  std::atomic<bool> isEnding{false};

private:
  std::atomic<double> seconds;
};

/// Sets a function that waiting threads call every 20 ms to ask whether to give
/// up, as for Ctrl-C. A nonzero result ends the wait as `abort` would. Null
/// removes it.
void setInterrupt(int (*check)());
bool isInterrupted();
/// Whether such a function is set.
bool canBeInterrupted();

/// Ends a group by calling `end` in a context that must not wait, such as
/// garbage collection. CPU: at once. GPU: a thread calls `end` once all ranks
/// have dropped the group, unless the process ends before. What graphs may
/// launch is kept until the process ends.
void drop(Group &group, std::function<void()> end);

/// Makes the rank of a group that `options` describes. Collective. The store is
/// used during the call only.
llvm::Expected<std::unique_ptr<Group>> createGroup(const GroupOptions &,
                                                   Store &);
llvm::Expected<std::unique_ptr<Group>> createCpuGroup(const GroupOptions &,
                                                      Store &);

/// A kind of group. Each kind is one file that defines `get<File>`; CMake lists
/// the files in Groups.inc.
struct GroupKind {
  bool onGpu;
  llvm::Expected<std::unique_ptr<Group>> (*create)(const GroupOptions &,
                                                   Store &);
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_GROUP_H
