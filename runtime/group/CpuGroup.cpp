//===- CpuGroup.cpp - Groups of processes on the CPU ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The beginning and end of a group, and its kernels.
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

#include <cstring>

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

CpuGroup::CpuGroup(GroupOptions options)
    : Group(std::move(options)), looked(settings.ranks) {
  forks = countForks();
}

static llvm::Error checkOptions(const GroupOptions &options) {
  if (options.ranks < 1 || options.ranks > kMaxRanks)
    return makeError(Kind::Usage, "a group on the CPU has 1 to " +
                                      std::to_string(kMaxRanks) +
                                      " ranks, not " +
                                      std::to_string(options.ranks));
  if (options.rank < 0 || options.rank >= options.ranks)
    return makeError(Kind::Usage, "rank " + std::to_string(options.rank) +
                                      " is not one of a group of " +
                                      std::to_string(options.ranks));
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
                       std::to_string(other - said.begin()) + " " +
                       describe(*other) +
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
    return store.set(
        key, std::to_string(name.process) + " " + std::to_string(name.file) +
                 " " + std::to_string(name.bytes) + "\n" + describeHost());
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
                     "rank " + std::to_string(settings.rank) +
                         " and rank 0 do not share memory: they run on "
                         "different hosts or in different containers (rank 0 "
                         "is on host '" +
                         showForeign(host.take_front(kMostQuotedText).str()) +
                         "')");
  if (name.bytes != Layout(settings).total)
    return makeError(Kind::Disagree,
                     "rank " + std::to_string(settings.rank) +
                         " and rank 0 disagree on the number of ranks or on "
                         "the bytes of channel memory: " +
                         std::to_string(Layout(settings).total) + " and " +
                         std::to_string(name.bytes) + " bytes");
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
      return makeError(Kind::Peer, "rank " + std::to_string(rank) + kDamaged);
    processes.push_back(rank == settings.rank ? -1 : openProcess(process));
    if (rank != settings.rank && processes.back() < 0 && errno == ESRCH)
      return makeError(Kind::Peer, "rank " + std::to_string(rank) +
                                       " (process " + std::to_string(process) +
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
  if (llvm::Error error = begin(
          world, 1, "making a group of " + std::to_string(settings.ranks)))
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

/// "prepare a kernel @sum(%x: memref<64xf32>)", as far as the text shows it;
/// bytecode shows nothing.
static std::string describe(const KernelRequest &request) {
  constexpr llvm::StringLiteral keyword = "comms.kernel ";
  std::string name = request.name.empty() ? "" : "@" + request.name;
  std::string said = "prepare a kernel ";
  llvm::StringRef source = request.source;
  // A longer name may begin with this one.
  size_t begin =
      source.find((keyword + (name.empty() ? "@" : name + "(")).str());
  if (begin == llvm::StringRef::npos)
    return llvm::StringRef(said + name).rtrim().str();
  llvm::StringRef line = source.substr(begin + keyword.size());
  line = line.take_until([](char c) { return c == '{' || c == '\n'; });
  return said + line.take_front(line.rfind(')') + 1).str();
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
  std::string text = announced ? announcedText : describe(request);
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
  abort("it shrinks to " + std::to_string(survivors.size()) + " ranks");
  GroupOptions options = settings;
  options.timeout = timeout();
  options.name +=
      "/" + llvm::join(llvm::map_range(
                           survivors,
                           [](int64_t rank) { return std::to_string(rank); }),
                       ",");
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
