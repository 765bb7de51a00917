//===- CpuGroup.cpp - A rank that is a process on the CPU -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CpuGroup.h"

#include "runtime/group/CpuKernel.h"
#include "runtime/group/Process.h"
#include "runtime/jit/Cache.h"
#include "runtime/support/Rendezvous.h"
#include "runtime/support/Version.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

/// Addresses of channel memory of one rank that a group sets aside when the
/// caller does not say; pages are taken when they are touched.
static constexpr uint64_t kChannelBytes = uint64_t(256) << 20;
/// Likewise of one rank of an ordered pair.
static constexpr uint64_t kPairBytes = uint64_t(8) << 20;
static constexpr int64_t kMaxRanks = 1024;

static std::string number(int64_t value) { return std::to_string(value); }

//===----------------------------------------------------------------------===//
// Party
//===----------------------------------------------------------------------===//

int64_t Subgroup::take(uint64_t bytes) {
  bytes = llvm::alignTo(bytes, 64);
  for (auto it = free.begin(); it != free.end(); ++it) {
    auto [offset, size] = *it;
    if (size < bytes)
      continue;
    free.erase(it);
    if (size > bytes)
      free[offset + bytes] = size - bytes;
    return static_cast<int64_t>(offset);
  }
  return -1;
}

void Subgroup::give(uint64_t offset, uint64_t bytes) {
  bytes = llvm::alignTo(bytes, 64);
  touched = std::max(touched, offset + bytes);
  auto next = free.lower_bound(offset);
  if (next != free.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free.erase(next);
  }
  if (next != free.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free[offset] = bytes;
}

//===----------------------------------------------------------------------===//
// Making a group
//===----------------------------------------------------------------------===//

CpuGroup::CpuGroup(GroupOptions options)
    : Group(std::move(options)), looked(settings.ranks) {
  forks = countForks();
}

static llvm::Error checkOptions(const GroupOptions &options) {
  if (options.ranks < 1 || options.ranks > kMaxRanks)
    return makeError(Kind::Usage, "a group on the CPU has 1 to " +
                                      number(kMaxRanks) + " ranks, not " +
                                      number(options.ranks));
  if (options.rank < 0 || options.rank >= options.ranks)
    return makeError(Kind::Usage, "rank " + number(options.rank) +
                                      " is not one of a group of " +
                                      number(options.ranks));
  if (!(options.timeout > 0))
    return makeError(Kind::Usage, "the timeout must be more than 0 seconds");
  return llvm::Error::success();
}

/// Layout of the first segment.
namespace {
struct Layout {
  explicit Layout(const GroupOptions &options)
      : ranks(options.ranks),
        channelBytes(llvm::alignTo(options.channelBytes ? options.channelBytes
                                                        : kChannelBytes,
                                   4096)) {
    rankRecords = sizeof(Board);
    worldRecords = rankRecords + ranks * sizeof(RankRecord);
    worldArena =
        llvm::alignTo(worldRecords + ranks * sizeof(MemberRecord), 4096);
    pairs = worldArena + ranks * channelBytes;
    pairStride = llvm::alignTo(2 * sizeof(MemberRecord), 4096) + 2 * kPairBytes;
    total = pairs + uint64_t(ranks) * ranks * pairStride;
  }
  uint64_t pairRecords(int64_t source, int64_t dest) const {
    return pairs + (source * ranks + dest) * pairStride;
  }
  uint64_t pairArena(int64_t source, int64_t dest) const {
    return pairRecords(source, dest) +
           llvm::alignTo(2 * sizeof(MemberRecord), 4096);
  }
  int64_t ranks;
  uint64_t channelBytes, rankRecords, worldRecords, worldArena, pairs,
      pairStride, total;
};
} // namespace

RankRecord &CpuGroup::rankRecord(int64_t rank) const {
  return reinterpret_cast<RankRecord *>(segment.data() + sizeof(Board))[rank];
}

void CpuGroup::layOut() {
  Layout layout(settings);
  for (int64_t rank = 0; rank < settings.ranks; ++rank)
    world.members.push_back(rank);
  world.own = settings.rank;
  world.memberRecords =
      reinterpret_cast<MemberRecord *>(segment.data() + layout.worldRecords);
  world.arena = segment.data() + layout.worldArena;
  world.arenaBytes = settings.ranks * layout.channelBytes;
  world.free[0] = world.arenaBytes;
}

/// What a rank says of itself. Ranks each compile, or load, the kernels that
/// they run together: of another build these may keep to another protocol, and
/// wait for each other in vain.
static std::string describeBuild() {
  return std::string(getVersion()) + "\n" + jit::getBuildName();
}

/// Refuses ranks that are of another build than the first.
static llvm::Error compareBuilds(llvm::StringRef name,
                                 llvm::ArrayRef<std::string> said) {
  const auto *other = llvm::find_if(
      said, [&](const std::string &text) { return text != said.front(); });
  if (other == said.end())
    return llvm::Error::success();
  auto describe = [](llvm::StringRef text) {
    auto [version, build] = text.split('\n');
    return showForeign(("CommsIR " + version + ", build " + build).str());
  };
  return makeError(Kind::Disagree,
                   "group '" + name + "': rank 0 runs " +
                       describe(said.front()) + ", but rank " +
                       number(other - said.begin()) + " " + describe(*other) +
                       ": all ranks must run the same (was it built or "
                       "installed anew while they started?)");
}

/// Of the keys that all ranks use.
static std::string placeOf(const GroupOptions &options) {
  return "commsir/" + options.name + "/cpu/";
}

/// What all ranks, and they alone, name their first key and segments by.
static llvm::Expected<std::string> agreeOnToken(const GroupOptions &options,
                                                Store &store) {
  std::string place = placeOf(options);
  std::string said;
  auto note = [&](llvm::Error error) {
    if (error)
      said = llvm::toString(std::move(error));
    return said.empty();
  };
  RendezvousStore keys = {
      [&](const std::string &key, const std::string &value) {
        said.clear();
        return note(store.set(place + key, value));
      },
      [&](const std::string &key,
          double seconds) -> std::optional<std::string> {
        said.clear();
        auto value = store.get(place + key, seconds);
        if (value)
          return std::move(*value);
        note(value.takeError());
        return std::nullopt;
      },
      isInterrupted,
      {}};
  RendezvousResult met =
      Rendezvous(std::move(keys), options.rank, options.ranks, options.timeout)
          .hold(describeBuild());
  if (!met.epoch.empty()) {
    if (llvm::Error error = compareBuilds(options.name, met.said))
      return std::move(error);
    return met.epoch;
  }
  return makeError(met.stopped ? Kind::Aborted : Kind::Peer,
                   "group '" + options.name + "': " + met.failure +
                       (said.empty() || met.stopped ? "" : ": " + said));
}

/// Before the error that rank 0 announces instead of a segment.
static constexpr const char kFailed[] = "failed ";

/// The first segment: rank 0 makes it, the others open it.
llvm::Error CpuGroup::attach(Store &store) {
  auto agreed = agreeOnToken(settings, store);
  if (!agreed)
    return agreed.takeError();
  token = *agreed;
  const std::string key = placeOf(settings) + token;
  if (settings.rank == 0) {
    auto made = Segment::create(Layout(settings).total, token);
    if (!made) {
      // The others are told, instead of waiting for an announcement.
      std::string why = packError(made.takeError());
      if (llvm::Error error = store.set(key, kFailed + why))
        llvm::consumeError(std::move(error));
      return unpackErrors(why, 0);
    }
    segment = std::move(*made);
    board().magic = kMagic;
    board().ranks = settings.ranks;
    SegmentName name = segment.name();
    return store.set(key, number(name.process) + " " + number(name.file) + " " +
                              number(name.bytes) + "\n" + describeHost());
  }
  auto text = store.get(key, timeout());
  if (!text)
    return llvm::handleErrors(text.takeError(), [](const GroupError &error) {
      return makeError(error.getKind(),
                       "rank 0 has not announced its memory: " +
                           error.getMessage());
    });
  if (llvm::StringRef why = *text; why.consume_front(kFailed) && !why.empty()) {
    llvm::SmallVector<std::string> said(settings.ranks);
    said.front() = showForeign(why.str());
    return unpackErrors(said, settings.rank);
  }
  auto [numbers, host] = llvm::StringRef(*text).split('\n');
  llvm::SmallVector<llvm::StringRef> parts;
  numbers.split(parts, ' ', 3);
  SegmentName name;
  name.token = token;
  if (parts.size() != 3 || parts[0].getAsInteger(10, name.process) ||
      parts[1].getAsInteger(10, name.file) ||
      parts[2].getAsInteger(10, name.bytes))
    return makeError(Kind::Usage,
                     describeForeign(*text, 0) + " (key '" + key + "')");
  if (host != describeHost())
    return makeError(Kind::Usage,
                     "rank " + number(settings.rank) +
                         " and rank 0 do not share memory: they run on "
                         "different hosts or in different containers (rank 0 "
                         "is on host '" +
                         showForeign(host.take_front(kMostQuotedText).str()) +
                         "')");
  if (name.bytes != Layout(settings).total)
    return makeError(Kind::Disagree,
                     "rank " + number(settings.rank) +
                         " and rank 0 disagree on the number of ranks or on "
                         "the bytes of channel memory: " +
                         number(Layout(settings).total) + " and " +
                         number(name.bytes) + " bytes");
  auto opened = Segment::open(name);
  if (!opened)
    return makeError(Kind::Usage,
                     "memory of rank 0: " + llvm::toString(opened.takeError()) +
                         "\n  the ranks of a group have to run on one host, in "
                         "one container and as one user");
  segment = std::move(*opened);
  if (board().magic != kMagic || board().ranks != settings.ranks)
    return makeError(Kind::Usage, "the memory that rank 0 has announced does "
                                  "not belong to this group");
  return llvm::Error::success();
}

llvm::Error CpuGroup::watchPeers() {
  for (int64_t rank = 0; rank < settings.ranks; ++rank) {
    int process = rankRecord(rank).process.load();
    numbers.push_back(process);
    if (process <= 0)
      return makeError(Kind::Peer, "rank " + number(rank) + kDamaged);
    processes.push_back(rank == settings.rank ? -1 : openProcess(process));
    if (rank != settings.rank && processes.back() < 0 && errno == ESRCH)
      return makeError(Kind::Peer, "rank " + number(rank) + " (process " +
                                       number(process) +
                                       ") ended while the group was made");
  }
  return llvm::Error::success();
}

llvm::Error CpuGroup::join(Store &store) {
  if (llvm::Error error = attach(store))
    return error;
  layOut();
  ownRecord().process = ::getpid();
  ownRecord().status = RankStatus::Member;
  if (llvm::Error error =
          begin(world, 1, "making a group of " + number(settings.ranks)))
    return error;
  if (llvm::Error error = meet(world))
    return error;
  segment.seal();
  if (llvm::Error error = watchPeers())
    return error;
  return end(world);
}

llvm::Expected<std::unique_ptr<Group>>
CpuGroup::create(const GroupOptions &options, Store &store) {
  if (llvm::Error error = checkOptions(options))
    return std::move(error);
  std::unique_ptr<CpuGroup> group(new CpuGroup(options));
  if (llvm::Error error = group->join(store))
    return std::move(error);
  return std::move(group);
}

CpuGroup::~CpuGroup() {
  for (int process : processes)
    if (process >= 0)
      ::close(process);
  if (!segment.data() || isForked())
    return;
  RankStatus status = ownRecord().status.load(std::memory_order_relaxed);
  if (status == RankStatus::Member ||
      (status == RankStatus::Failed && failedStep))
    ownRecord().status.compare_exchange_strong(status, RankStatus::Left);
  wakeAll();
}

llvm::Expected<std::unique_ptr<Group>>
commsir::group::createCpuGroup(const GroupOptions &options, Store &store) {
  return CpuGroup::create(options, store);
}

//===----------------------------------------------------------------------===//
// Trouble
//===----------------------------------------------------------------------===//

bool CpuGroup::isForked() const { return forks != countForks(); }

llvm::Error CpuGroup::failure() const {
  std::lock_guard<std::mutex> guard(lock);
  return llvm::make_error<GroupError>(failureKind, failureText);
}

/// The error for later calls, which are not the cause of the failure.
llvm::Error CpuGroup::over() const {
  std::lock_guard<std::mutex> guard(lock);
  return makeError(failureKind, "group '" + settings.name +
                                    "' can no longer be used: " + failureText +
                                    "\n  make a new group of all ranks, or "
                                    "shrink this one to those that are left");
}

llvm::Error CpuGroup::check() const {
  if (isForked())
    return makeError(Kind::Usage,
                     "this process was forked after group '" + settings.name +
                         "' was made: only the parent is a member; make a "
                         "group in the child");
  if (broken.load(std::memory_order_relaxed))
    return ended() ? over() : failure();
  return llvm::Error::success();
}

llvm::Error CpuGroup::poll() {
  if (llvm::Error error = check())
    return error;
  findTrouble(world);
  return check();
}

/// Ends the group on this rank; the others hear of it when they wait.
void CpuGroup::endGroup(Kind kind, std::string message, RankStatus status,
                        uint64_t failedIn) {
  {
    std::lock_guard<std::mutex> guard(lock);
    // Who gives up does not want to go on, either.
    if (broken && !(failedStep && status == RankStatus::Aborted))
      return;
    failureKind = kind;
    failureText = message;
    failedStep = failedIn;
    mustRecover = failedIn != 0;
    broken = true;
    if (running)
      running->store(1, std::memory_order_relaxed);
    ownRecord().failedStep.store(failedIn, std::memory_order_relaxed);
    ownRecord().reason.put(message);
    ownRecord().status.store(status, std::memory_order_release);
  }
  wakeAll();
}

/// Of a step of collectives it can be mended, if this rank has not ended it.
void CpuGroup::disagree(const Subgroup &subgroup, std::string message) {
  bool isIn = &subgroup == &world && subgroup.isCollective &&
              subgroup.ownMemberRecord().ended.load(std::memory_order_relaxed) <
                  subgroup.step;
  endGroup(Kind::Disagree, std::move(message), RankStatus::Failed,
           isIn ? subgroup.step : 0);
}

void CpuGroup::abort(llvm::StringRef reason) {
  if (isForked())
    return;
  endGroup(Kind::Aborted,
           "group '" + settings.name + "' was aborted on rank " +
               number(settings.rank) +
               (reason.empty() ? std::string() : ": " + reason.str()),
           RankStatus::Aborted);
}

void CpuGroup::endWaits() {
  Group::endWaits();
  wakeRank(settings.rank);
}

/// Whether the process of `rank` has ended.
bool CpuGroup::isGone(int64_t rank) const {
  int process = processOf(rank);
  return rank != settings.rank && process > 0 &&
         hasEnded(process, processFile(rank));
}

/// The process of `rank`; 0 or less: it has not said.
int CpuGroup::processOf(int64_t rank) const {
  return static_cast<size_t>(rank) < numbers.size()
             ? numbers[rank]
             : rankRecord(rank).process.load();
}

/// By which the process of `rank` is watched, or -1.
int CpuGroup::processFile(int64_t rank) const {
  return static_cast<size_t>(rank) < processes.size() ? processes[rank] : -1;
}

/// Describes the end of a rank's process.
std::string CpuGroup::deathReason(int64_t rank) const {
  return "rank " + number(rank) + " " +
         describeDeath(processOf(rank), processFile(rank));
}

/// That a rank has left the group, and which other one has died or given up: a
/// rank leaves once it has seen that, and is then not the one at fault.
std::string CpuGroup::leaveReason(int64_t rank) const {
  std::string text = "rank " + number(rank) + " has left the group";
  for (int64_t other = 0; other < settings.ranks; ++other) {
    if (other == rank || other == settings.rank ||
        rankStatusOf(other) == RankStatus::Left)
      continue;
    if (std::string why = departureReason(other); !why.empty())
      return text + "; " + why;
  }
  return text;
}

/// The step of `place` of that number, if it is still remembered.
static const Step *findStep(const MemberRecord &place, uint64_t number) {
  const Step &step = place.steps[number % kSteps];
  return step.number.load(std::memory_order_acquire) == number ? &step
                                                               : nullptr;
}

std::string CpuGroup::describeRank(const Subgroup &subgroup,
                                   int64_t member) const {
  const MemberRecord &place = subgroup.memberRecords[member];
  std::string text = "rank " + number(subgroup.members[member]);
  uint64_t last = 0;
  for (const Step &step : place.steps)
    last = std::max(last, step.number.load(std::memory_order_acquire));
  const Step *step = last ? findStep(place, last) : nullptr;
  if (!step)
    return text + " has not begun";
  bool ended = place.ended.load(std::memory_order_acquire) >= last;
  return text + (ended ? " has ended step " : " is in step ") +
         number(static_cast<int64_t>(last)) + " (" + step->text.str() + ")";
}

/// Whether what a step says is what a rank has written there.
static bool isWhole(const Step &step, uint64_t number, uint64_t digest,
                    llvm::StringRef said) {
  return step.check.load(std::memory_order_relaxed) ==
         checkOf(number, digest, said);
}

/// Ends the group when members take another step than this rank, with both
/// sides' texts, or when somebody has written over the step of one.
bool CpuGroup::hasDisagreement(const Subgroup &subgroup) {
  std::string text;
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    const Step *step = findStep(subgroup.memberRecords[member], subgroup.step);
    if (member == subgroup.own || !step)
      continue;
    uint64_t digest = step->digest.load(std::memory_order_relaxed);
    if (digest == subgroup.digest)
      continue;
    std::string said = step->text.raw();
    bool whole = isWhole(*step, subgroup.step, digest, said);
    // A member that owes nobody anything may be far ahead, and have written its
    // next step over this one meanwhile.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (step->number.load(std::memory_order_relaxed) != subgroup.step)
      continue;
    if (!whole) {
      endGroup(Kind::Peer,
               "rank " + number(subgroup.members[member]) + kDamaged);
      return true;
    }
    text +=
        "\n  rank " + number(subgroup.members[member]) + ": " +
        makeReadable(said) +
        (said == subgroup.text ? ", with other arithmetic, source or options"
                               : "");
  }
  if (text.empty())
    return false;
  disagree(subgroup,
           "ranks disagree in step " +
               number(static_cast<int64_t>(subgroup.step)) + " of group '" +
               settings.name + "'\n  rank " + number(settings.rank) + ": " +
               subgroup.text + text +
               "\n  all ranks must make the same calls in the same order");
  return true;
}

/// Looks for a reason why this rank waits in vain. Those who have ended this
/// step owe it nothing more.
bool CpuGroup::findTrouble(const Subgroup &subgroup) {
  if (broken.load(std::memory_order_relaxed))
    return true;
  if (hasDisagreement(subgroup))
    return true;
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    int64_t rank = subgroup.members[member];
    if (rank == settings.rank ||
        subgroup.memberRecords[member].ended.load(std::memory_order_acquire) >=
            subgroup.step)
      continue;
    RankStatus status = rankStatusOf(rank);
    std::string why = giveUpReason(rank, status);
    if (!why.empty()) {
      // It may be what that rank has seen, since.
      if (hasDisagreement(subgroup))
        return true;
      endGroup(status == RankStatus::Aborted ? Kind::Aborted : Kind::Peer, why);
      return true;
    }
    // A rank that goes in an orderly way may have ended the step since.
    bool left = status == RankStatus::Left;
    if (!left && !(status == RankStatus::Member && isGone(rank)))
      continue;
    if (subgroup.memberRecords[member].ended.load(std::memory_order_acquire) >=
        subgroup.step)
      continue;
    endGroup(Kind::Peer, (left ? leaveReason(rank) : deathReason(rank)) + "; " +
                             describeRank(subgroup, member));
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Sleeping and waking
//===----------------------------------------------------------------------===//

static uint32_t bitOf(int64_t rank) { return uint32_t(1) << (rank % 32); }

/// Storing and then looking for sleepers, here, and announcing sleep and then
/// looking at memory, in `sleepUntilWoken`, are both ordered by fences: one of
/// the two sees the other.
void CpuGroup::wakeAll() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (board().sleepers.load(std::memory_order_relaxed) == 0)
    return;
  uint32_t bits = 0;
  for (int64_t rank = 0; rank < settings.ranks; ++rank)
    if (rank != settings.rank &&
        rankRecord(rank).asleep.load(std::memory_order_relaxed))
      bits |= bitOf(rank);
  // `abort` wakes its own rank, too.
  if (broken.load(std::memory_order_relaxed))
    bits |= bitOf(settings.rank);
  if (!bits)
    return;
  board().bell.fetch_add(1, std::memory_order_release);
  wakeAt(board().bell, bits);
}

void CpuGroup::wakeRank(int64_t rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (board().sleepers.load(std::memory_order_relaxed) == 0 ||
      !rankRecord(rank).asleep.load(std::memory_order_relaxed))
    return;
  board().bell.fetch_add(1, std::memory_order_release);
  wakeAt(board().bell, bitOf(rank));
}

/// Looks before a rank that waits gives the processor to others, and before it
/// sleeps. A look costs less than a switch, and a switch less than a sleep; the
/// peers are mostly a few microseconds away. Where they are not, each yield
/// gives away a slice of the processor's time, to whatever else runs there:
/// Linux counts it as used.
static constexpr unsigned kLooks = 64, kYields = 3;
/// A sleeper looks around this often, in microseconds: nobody wakes it when a
/// peer dies.
static constexpr int64_t kSleep = 20000;

bool Waiter::rest(Subgroup &subgroup, llvm::function_ref<bool()> ready) {
  for (unsigned i = 0; i < kLooks; ++i) {
    if (ready())
      return true;
    __builtin_ia32_pause();
  }
  for (unsigned i = 0; i < kYields; ++i) {
    ::sched_yield();
    if (ready())
      return true;
  }
  Clock::time_point begun = Clock::now();
  while (!ready()) {
    if (group.findTrouble(subgroup))
      return ready();
    if (!sleep(subgroup, ready, begun))
      return false;
  }
  return true;
}

void CpuGroup::sleepUntilWoken(llvm::function_ref<bool()> ready,
                               int64_t microseconds) {
  RankRecord &record = ownRecord();
  record.asleep.fetch_add(1, std::memory_order_relaxed);
  board().sleepers.fetch_add(1, std::memory_order_seq_cst);
  uint32_t seen = board().bell.load(std::memory_order_acquire);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!broken.load(std::memory_order_relaxed) && !ready())
    sleepAt(board().bell, seen, bitOf(settings.rank), microseconds);
  board().sleepers.fetch_sub(1, std::memory_order_relaxed);
  record.asleep.fetch_sub(1, std::memory_order_relaxed);
}

bool Waiter::sleep(Subgroup &subgroup, llvm::function_ref<bool()> ready,
                   Clock::time_point begun) {
  group.sleepUntilWoken(ready, kSleep);
  Clock::time_point now = Clock::now();
  if (!ready() && isInterruptRequested(now))
    return false;
  return ready() || !isTooLong(subgroup, now - begun);
}

bool Waiter::isTooLong(Subgroup &subgroup, Clock::duration time) {
  if (std::chrono::duration<double>(time).count() < group.timeout())
    return false;
  std::string text = "rank " + number(group.settings.rank) + " has waited " +
                     llvm::formatv("{0:f1}", group.timeout()).str() +
                     " s for its peers in step " +
                     number(static_cast<int64_t>(subgroup.step)) +
                     " of group '" + group.settings.name + "' (" +
                     subgroup.text + ")";
  std::string late;
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    const MemberRecord &place = subgroup.memberRecords[member];
    if (member == subgroup.own ||
        place.ended.load(std::memory_order_acquire) >= subgroup.step)
      continue;
    late += "\n  " + group.describeRank(subgroup, member);
    if (!findStep(place, subgroup.step))
      late += ", and has not come since; its process " +
              number(group.processOf(subgroup.members[member])) + " is alive";
  }
  // Who has ended the step has nothing left to do in it.
  for (int64_t rank : subgroup.members)
    if (late.empty() && rank != group.settings.rank)
      text += "\n  rank " + number(rank) + kDamaged;
  text += late + "\n  a rank that is only slow needs a longer timeout";
  group.endGroup(Kind::Peer, text);
  return true;
}

/// Asks the caller's hook, no more often than a sleeper looks around.
bool Waiter::isInterruptRequested(Clock::time_point now) {
  if (now - lastAsked < std::chrono::microseconds(kSleep))
    return false;
  lastAsked = now;
  if (!isInterrupted())
    return false;
  group.abort("interrupted while it waited");
  return true;
}

bool Waiter::poll(Subgroup &subgroup, bool moves) {
  if (moves)
    still.reset();
  // Looks at peers and at the clock cost: not each time.
  if (++polls % 64 != 0)
    return !group.broken.load(std::memory_order_relaxed);
  ::sched_yield();
  if (polls % 4096 != 0)
    return !group.broken.load(std::memory_order_relaxed);
  Clock::time_point now = Clock::now();
  if (!still)
    still = now;
  return !isInterruptRequested(now) && !group.findTrouble(subgroup) &&
         !isTooLong(subgroup, now - *still);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

llvm::Error CpuGroup::begin(Subgroup &subgroup, uint64_t digest,
                            llvm::StringRef text) {
  if (llvm::Error error = ready())
    return error;
  subgroup.digest = digest;
  llvm::StringRef told = cutText(text, kTextBytes);
  subgroup.text.assign(told.begin(), told.end());
  subgroup.isCollective = announced != 0;
  uint64_t number = ++subgroup.step;
  Step &step = subgroup.ownMemberRecord().steps[number % kSteps];
  step.number.store(0, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  step.digest.store(digest, std::memory_order_relaxed);
  step.text.put(told);
  step.check.store(checkOf(number, digest, told), std::memory_order_relaxed);
  step.number.store(number, std::memory_order_release);
  return llvm::Error::success();
}

llvm::Error CpuGroup::end(Subgroup &subgroup) {
  if (broken.load(std::memory_order_relaxed))
    return failure();
  if (hasDisagreement(subgroup))
    return failure();
  subgroup.ownMemberRecord().ended.store(subgroup.step,
                                         std::memory_order_release);
  return llvm::Error::success();
}

/// Waits until all members are here. With `failure`, they all learn that this
/// rank's part of the step has gone wrong.
llvm::Error CpuGroup::meet(Subgroup &subgroup, llvm::StringRef failed) {
  MemberRecord &own = subgroup.ownMemberRecord();
  uint64_t point = ++subgroup.meetings;
  if (!failed.empty()) {
    auto &told = own.failed[point % 2];
    told.reason.put(failed);
    told.point.store(point, std::memory_order_release);
  }
  own.met.store(point, std::memory_order_release);
  wakeAll();
  bool all = waiter.rest(subgroup, [&] {
    for (int64_t member = 0; member < subgroup.size(); ++member)
      if (subgroup.memberRecords[member].met.load(std::memory_order_acquire) <
          point)
        return false;
    return true;
  });
  if (!all)
    return failure();
  if (hasDisagreement(subgroup))
    return failure();
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    auto &told = subgroup.memberRecords[member].failed[point % 2];
    bool isOwn = member == subgroup.own;
    if (isOwn ? !failed.empty()
              : told.point.load(std::memory_order_acquire) == point)
      return makeError(Kind::Peer,
                       "rank " + number(subgroup.members[member]) + ": " +
                           (isOwn ? failed.str() : told.reason.str()));
  }
  return llvm::Error::success();
}

/// All members are told when they have begun this step with different texts.
llvm::Error CpuGroup::agreeOnText(Subgroup &subgroup) {
  if (llvm::Error error = meet(subgroup))
    return error;
  std::string said;
  bool differ = false;
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    // It is still there: a member waits for the others twice before its next
    // step, or goes on from here to where all meet.
    const Step *step = findStep(subgroup.memberRecords[member], subgroup.step);
    if (!step && member != subgroup.own) {
      endGroup(Kind::Peer,
               "rank " + number(subgroup.members[member]) + kDamaged);
      return failure();
    }
    std::string theirs =
        member == subgroup.own ? subgroup.text : step->text.raw();
    if (member != subgroup.own &&
        !isWhole(*step, subgroup.step,
                 step->digest.load(std::memory_order_relaxed), theirs)) {
      endGroup(Kind::Peer,
               "rank " + number(subgroup.members[member]) + kDamaged);
      return failure();
    }
    differ |= theirs != subgroup.text;
    said += "\n  rank " + number(subgroup.members[member]) + ": " +
            makeReadable(theirs);
  }
  if (!differ)
    return llvm::Error::success();
  if (llvm::Error error = meet(subgroup))
    return error;
  return makeError(Kind::Disagree,
                   "ranks disagree in step " +
                       number(static_cast<int64_t>(subgroup.step)) +
                       " of group '" + settings.name + "'" + said +
                       "\n  nothing was done, and the group can still be "
                       "used: make the call again, the same on all ranks");
}

llvm::Error CpuGroup::shareSegment(Subgroup &subgroup, uint64_t bytes,
                                   Segment &made) {
  MemberRecord &first = subgroup.memberRecords[0];
  std::string failed;
  auto note = [&](llvm::Expected<Segment> segment) {
    if (segment)
      made = std::move(*segment);
    else
      failed = llvm::toString(segment.takeError());
  };
  if (subgroup.own == 0) {
    note(Segment::create(bytes, token));
    SegmentName name = made.name();
    first.segmentProcess.store(name.process, std::memory_order_relaxed);
    first.segmentFile.store(name.file, std::memory_order_relaxed);
  }
  if (llvm::Error error = meet(subgroup, failed))
    return error;
  if (subgroup.own != 0) {
    note(Segment::open({first.segmentProcess.load(std::memory_order_relaxed),
                        first.segmentFile.load(std::memory_order_relaxed),
                        bytes, token}));
    if (!failed.empty())
      failed = "the memory that rank " + number(subgroup.members[0]) +
               " has made cannot be opened; unless files or memory are short, "
               "rank " +
               number(subgroup.members[0]) + kDamaged + ": " + failed;
  }
  if (llvm::Error error = meet(subgroup, failed))
    return error;
  made.seal();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

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
    return makeError(Kind::Usage,
                     "a window has one part a rank: " + number(settings.ranks) +
                         ", not " + number(parts.size()));
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
                           number(rank) + " does not");
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

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

Subgroup &CpuGroup::pair(int64_t source, int64_t dest) {
  auto [it, isNew] = pairs.try_emplace({source, dest});
  Subgroup &subgroup = it->second;
  if (!isNew)
    return subgroup;
  Layout layout(settings);
  subgroup.members = {std::min(source, dest), std::max(source, dest)};
  subgroup.own = settings.rank == subgroup.members[0] ? 0 : 1;
  subgroup.memberRecords = reinterpret_cast<MemberRecord *>(
      segment.data() + layout.pairRecords(source, dest));
  subgroup.arena = segment.data() + layout.pairArena(source, dest);
  subgroup.arenaBytes = 2 * kPairBytes;
  subgroup.free[0] = subgroup.arenaBytes;
  return subgroup;
}

llvm::Expected<Subgroup *>
CpuGroup::findSubgroup(llvm::ArrayRef<int64_t> members) {
  if (members.empty() || members == llvm::ArrayRef(world.members))
    return &world;
  bool fits = members.size() == 2 && members[0] != members[1] &&
              llvm::is_contained(members, settings.rank);
  for (int64_t member : members)
    fits &= member >= 0 && member < settings.ranks;
  if (!fits)
    return makeError(Kind::Usage, "a kernel is for all ranks of a group or "
                                  "for two, this rank among them");
  return &pair(members[0], members[1]);
}

static std::string keyOf(const KernelRequest &request) {
  std::string key = request.source;
  llvm::raw_string_ostream os(key);
  os << '\0' << request.name << '\0' << request.algorithm << '\0'
     << request.protocol << '\0' << request.blocks << '\0' << request.check;
  for (int64_t member : request.members)
    os << '\0' << member;
  return key;
}

llvm::Expected<GroupKernel *> CpuGroup::prepare(const KernelRequest &request) {
  if (llvm::Error error = ready())
    return std::move(error);
  std::string key = keyOf(request);
  auto it = kernels.find(key);
  if (it != kernels.end()) {
    ++it->second->users;
    if (!announced)
      it->second->keep();
    return it->second.get();
  }
  auto subgroup = findSubgroup(request.members);
  if (!subgroup)
    return subgroup.takeError();
  std::string text =
      "prepare a kernel" +
      (request.name.empty() ? std::string() : " @" + request.name);
  if (announced)
    text = announcedText;
  if (llvm::Error error = begin(**subgroup, llvm::xxh3_64bits(key), text))
    return std::move(error);
  auto kernel = CpuKernel::create(*this, **subgroup, request);
  // A rank that cannot go on says so before it returns: the others wait.
  llvm::Error error = kernel ? (*kernel)->reserve() : kernel.takeError();
  std::string failed = error ? llvm::toStringWithoutConsuming(error) : "";
  llvm::Error met = meet(**subgroup, failed);
  llvm::Error late = end(**subgroup);
  if (met)
    llvm::consumeError(std::move(late));
  else
    met = std::move(late);
  // All ranks give the memory back, so that all go on with the same.
  if ((error || met) && kernel)
    (*kernel)->releaseMemory();
  if (error) {
    llvm::consumeError(std::move(met));
    return std::move(error);
  }
  if (met)
    return std::move(met);
  if (!announced)
    (*kernel)->keep();
  return (kernels[key] = std::move(*kernel)).get();
}

llvm::Error CpuGroup::discard(GroupKernel &kernel) {
  if (llvm::Error error = ready())
    return error;
  auto it = llvm::find_if(
      kernels, [&](auto &entry) { return entry.second.get() == &kernel; });
  if (it == kernels.end())
    return makeError(Kind::Usage,
                     "discard of a kernel that does not belong to this "
                     "group's");
  if (--it->second->users)
    return llvm::Error::success();
  Subgroup &subgroup = it->second->getSubgroup();
  std::string text = "discard kernel @" + kernel.name().str();
  if (llvm::Error error = begin(subgroup, llvm::xxh3_64bits(it->first), text))
    return error;
  // A peer may still read this rank's part.
  if (llvm::Error error = meet(subgroup))
    return error;
  it->second->releaseMemory();
  kernels.erase(it);
  return end(subgroup);
}

void CpuGroup::announce(uint64_t digest, llvm::StringRef text) {
  announced = digest;
  announcedText.assign(text.begin(), text.end());
}

llvm::Error CpuGroup::launch(GroupKernel &kernel,
                             llvm::ArrayRef<Argument> arguments, void *,
                             uint64_t) {
  if (llvm::Error error = ready())
    return error;
  return static_cast<CpuKernel &>(kernel).launch(arguments);
}

llvm::Expected<std::unique_ptr<Group>>
CpuGroup::shrink(llvm::ArrayRef<int64_t> survivors, Store &store) {
  if (isForked())
    return check();
  const auto *own = llvm::find(survivors, settings.rank);
  if (own == survivors.end() || !llvm::is_sorted(survivors) ||
      llvm::adjacent_find(survivors) != survivors.end() ||
      survivors.front() < 0 || survivors.back() >= settings.ranks)
    return makeError(Kind::Usage,
                     "survivors are ranks of the group, ascending, this rank "
                     "among them");
  abort("it shrinks to " + number(survivors.size()) + " ranks");
  GroupOptions options = settings;
  options.timeout = timeout();
  options.name += "/" + llvm::join(llvm::map_range(survivors, number), ",");
  options.rank = own - survivors.begin();
  options.ranks = static_cast<int64_t>(survivors.size());
  return create(options, store);
}

GroupCounts CpuGroup::counts() const { return counted; }

namespace commsir::group {
const GroupKind &getCpuGroup() {
  static const GroupKind kind = {/*onGpu=*/false, createCpuGroup};
  return kind;
}
} // namespace commsir::group
