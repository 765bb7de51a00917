//===- CpuGroup.h - A rank that is a process on the CPU ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CPUGROUP_H
#define COMMSIR_RUNTIME_GROUP_CPUGROUP_H

#include "runtime/cpu/Peers.h"
#include "runtime/group/Group.h"
#include "runtime/group/Segment.h"
#include "runtime/group/Shared.h"
#include "runtime/support/GroupError.h"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>

namespace commsir::group {

class CpuGroup;
class CpuKernel;

/// A set of ranks that run kernels together: the world, or a pair. All members
/// take the same steps in the same order.
struct Subgroup {
  /// World ranks, ascending.
  std::vector<int64_t> members;
  /// Index of this rank in `members`.
  int64_t own = 0;
  MemberRecord *memberRecords = nullptr;
  /// Memory of channels, signals and barriers, shared by all members.
  char *arena = nullptr;
  uint64_t arenaBytes = 0;
  /// Bytes from the start of the arena that have ever been used.
  uint64_t touched = 0;
  /// Free ranges of the arena: offset and bytes.
  std::map<uint64_t, uint64_t> free;
  /// Number of the last step that this rank began, and of the barriers within
  /// it that this rank has passed.
  uint64_t step = 0, meetings = 0;
  /// Description of the step for peers. Kept here as well, because any rank may
  /// overwrite shared memory.
  uint64_t digest = 0;
  std::string text;
  /// The step belongs to a collective: besides the collective's own kernels it
  /// changed nothing that outlives it.
  bool isCollective = false;

  int64_t size() const { return static_cast<int64_t>(members.size()); }
  MemberRecord &ownMemberRecord() const { return memberRecords[own]; }
  /// Returns the offset of a free range of the arena, or -1 if there is none.
  int64_t take(uint64_t bytes);
  void give(uint64_t offset, uint64_t bytes);
};

/// Sleeps and wakes up for one rank, and finds out why a wait cannot end.
class Waiter {
public:
  explicit Waiter(CpuGroup &group) : group(group) {}
  /// Waits until `ready`. Returns false if that cannot happen; the group then
  /// knows the reason.
  bool rest(Subgroup &subgroup, llvm::function_ref<bool()> ready);
  /// For blocks that poll: yields, and checks for failures now and then. Waits
  /// if no block of this rank makes progress.
  bool poll(Subgroup &subgroup, bool moves);
  /// Called when the group restarts.
  void reset() { still.reset(); }
  using Clock = std::chrono::steady_clock;
  /// Ends the group if a wait has exceeded the timeout.
  bool isTooLong(Subgroup &subgroup, Clock::duration time);

private:
  bool sleep(Subgroup &subgroup, llvm::function_ref<bool()> ready,
             Clock::time_point begun);
  bool isInterruptRequested(Clock::time_point now);
  CpuGroup &group;
  unsigned polls = 0;
  Clock::time_point lastAsked;
  /// Time since which no polling block has made progress; none: they do.
  std::optional<Clock::time_point> still;
};

class CpuGroup final : public Group {
public:
  static llvm::Expected<std::unique_ptr<Group>>
  create(const GroupOptions &options, Store &store);
  ~CpuGroup() override;

  llvm::Expected<void *> allocate(size_t bytes,
                                  llvm::StringRef purpose = {}) override;
  llvm::Error release(void *base) override;
  llvm::Error adopt(void *own, size_t bytes,
                    llvm::ArrayRef<uint64_t> parts) override;
  llvm::Error share(void *own, size_t bytes) override;
  void forget(void *own) override;
  void keepView(void *own) override;
  void dropView(void *own) override;
  std::shared_ptr<WindowRecord> findWindow(const void *data,
                                           size_t bytes) const override;
  uint64_t symmetricPlace(const void *data, size_t bytes) const override;
  void *peerAddress(const void *data, int64_t peer) const override;
  llvm::Expected<GroupKernel *> prepare(const KernelRequest &request) override;
  llvm::Error discard(GroupKernel &kernel) override;
  void announce(uint64_t digest, llvm::StringRef text) override;
  llvm::Error launch(GroupKernel &kernel, llvm::ArrayRef<Argument> arguments,
                     void *stream, uint64_t extent) override;
  llvm::Error poll() override;
  llvm::Error pollBeside() override { return check(); }
  std::optional<std::string> ended() const override;
  llvm::Error recover() override;
  void abort(llvm::StringRef reason) override;
  void endWaits() override;
  llvm::Expected<std::unique_ptr<Group>>
  shrink(llvm::ArrayRef<int64_t> survivors, Store &store) override;
  GroupCounts counts() const override;
  bool takesMembers() const override { return true; }
  llvm::Error checkPeer(int64_t peer) override;
  llvm::Error move(void *to, const void *from, size_t bytes,
                   void *stream) override;
  llvm::Error signalCell(const CellSignal &signal, void *stream) override;
  llvm::Error waitCell(const CellWait &wait, void *stream) override;
  llvm::Expected<int64_t> readCell(const int64_t *own) override;

private:
  friend class CpuKernel;
  friend class Waiter;
  struct Window final : WindowRecord {
    Window(char *own, size_t bytes, char *base, int64_t stride)
        : WindowRecord(own, bytes), base(base), stride(stride) {}
    void *reach(const void *data, int64_t peer) const override {
      return base + peer * stride + offsetOf(data);
    }
    /// Base of rank 0's part; parts are `stride` bytes apart.
    char *const base;
    const int64_t stride;
    Segment segment;
    /// Sequence number of the allocation, equal on all ranks; 0: adopted
    /// memory.
    uint64_t number = 0;
    bool isAdopted() const { return number == 0; }
  };

  explicit CpuGroup(GroupOptions options);
  llvm::Error join(Store &store);
  llvm::Error attach(Store &store);
  void layOut();
  llvm::Error watchPeers();
  Board &board() const { return *reinterpret_cast<Board *>(segment.data()); }
  RankRecord &rankRecord(int64_t rank) const;
  RankRecord &ownRecord() const { return rankRecord(settings.rank); }
  RankStatus rankStatusOf(int64_t rank) const {
    return readRankStatus(rankRecord(rank).status);
  }
  std::string giveUpReason(int64_t rank, RankStatus status) const;
  int processOf(int64_t rank) const;
  Subgroup &pair(int64_t source, int64_t dest);
  llvm::Expected<Subgroup *> findSubgroup(llvm::ArrayRef<int64_t> members);

  // Steps: taken by all members of a subgroup together.
  llvm::Error begin(Subgroup &subgroup, uint64_t digest, llvm::StringRef text);
  llvm::Error meet(Subgroup &subgroup, llvm::StringRef failed = "");
  llvm::Error end(Subgroup &subgroup);
  bool hasDisagreement(const Subgroup &subgroup);
  llvm::Error agreeOnText(Subgroup &subgroup);
  llvm::Error shareSegment(Subgroup &subgroup, uint64_t bytes, Segment &made);

  // Failures.
  llvm::Error check() const;
  bool isForked() const;
  bool findTrouble(const Subgroup &subgroup);
  bool isGone(int64_t rank) const;
  int processFile(int64_t rank) const;
  void endGroup(GroupError::Kind kind, std::string message,
                RankStatus status = RankStatus::Failed, uint64_t failedIn = 0);
  void disagree(const Subgroup &subgroup, std::string message);
  std::string describeRank(const Subgroup &subgroup, int64_t member) const;
  std::string departureReason(int64_t rank) const;
  std::string deathReason(int64_t rank) const;
  std::string leaveReason(int64_t rank) const;
  std::string missingSignalReason(int64_t source) const;
  llvm::Error noSignal(const CellWait &wait, llvm::StringRef why) const;
  llvm::Error failure() const;
  llvm::Error over() const;

  // Recovery.
  using RecordWord = std::atomic<uint64_t> RankRecord::*;
  llvm::Error ready();
  std::string rendezvousAgain(uint64_t step);
  std::string awaitRecords(RecordWord word, uint64_t step);
  std::string recoveryFailureReason(int64_t rank, uint64_t step,
                                    RecordWord word) const;
  void startAnew(uint64_t step);

  // Waking.
  void wakeAll();
  void wakeRank(int64_t rank);
  /// Sleeps until another thread or rank wakes this rank, unless `ready`.
  void sleepUntilWoken(llvm::function_ref<bool()> ready,
                       std::chrono::microseconds most);

  llvm::Expected<std::unique_ptr<CpuKernel>> build(const KernelRequest &request,
                                                   Subgroup &subgroup);

  Segment segment;
  /// Access token of the group's segments.
  std::string token;
  Subgroup world;
  std::map<std::pair<int64_t, int64_t>, Subgroup> pairs;
  /// Numbers and process ids that the peers announced, and files that show when
  /// a process has ended.
  std::vector<int> numbers, processes;
  WindowTable<Window> windows;
  /// Windows by base address. Kept after their release while a thread may
  /// access them.
  struct View {
    int64_t keepers = 0;
    std::shared_ptr<Window> window;
  };
  std::mutex viewsLock;
  std::map<uintptr_t, View> views;
  std::map<std::string, std::unique_ptr<CpuKernel>> kernels;
  Waiter waiter{*this};
  GroupCounts counted;
  uint64_t allocations = 0;
  uint64_t announced = 0;
  std::string announcedText;
  unsigned forks = 0;
  /// Time at which `checkPeer` last checked whether each peer's process lives.
  std::vector<std::atomic<std::chrono::steady_clock::time_point>> looked;

  /// The first failure. Guarded by `lock`, because any thread may call `abort`.
  mutable std::mutex lock;
  GroupError::Kind failureKind = GroupError::Kind::Usage;
  std::string failureText;
  std::atomic<bool> broken{false};
  /// As in this rank's RankRecord.
  uint64_t failedStep = 0;
  /// Read by the loops of kernels.
  std::atomic<uint32_t> *running = nullptr;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_CPUGROUP_H
