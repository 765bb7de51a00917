//===- ScribbleTest.cpp - A rank that corrupts shared memory --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rank 1 writes anything to the memory that ranks share, or dies. Rank 0 must
// not crash, and each of its calls must end within the time limit.
// COMMSIR_SCRIBBLES is the number of groups of random writes; the long suite
// has 10,000.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include "runtime/group/OneSided.h"
#include "runtime/group/PointToPoint.h"
#include "runtime/group/Segment.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>

using namespace commsir;
using namespace commsir::test;
using Clock = std::chrono::steady_clock;
using Kind = group::GroupError::Kind;

namespace {

/// What this process shares with others.
struct Span {
  char *begin;
  size_t bytes;
};

std::vector<Span> listSpans() {
  std::vector<Span> spans;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (line.find("memfd:commsir-") != std::string::npos &&
        std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2)
      spans.push_back({reinterpret_cast<char *>(begin), end - begin});
  }
  return spans;
}

class Scribbler {
public:
  explicit Scribbler(unsigned seed) : random(seed), isHead(seed % 2 == 0) {}
  void write() {
    std::vector<Span> spans = listSpans();
    if (spans.empty())
      return;
    Span span = spans[random() % spans.size()];
    // What ranks know of each other is at the beginning.
    size_t bytes = std::min<size_t>(span.bytes, isHead ? 12 << 10 : 320 << 10);
    for (int i = 0; i < 50; ++i) {
      size_t at = random() % (bytes / 8) * 8;
      if (random() % 16 == 0) {
        std::memset(span.begin + at, 'A',
                    std::min<size_t>(bytes - at, random() % 3000));
        continue;
      }
      const uint64_t words[] = {0,
                                1,
                                2,
                                3,
                                4,
                                0xffffffff,
                                ~uint64_t{0},
                                uint64_t(1) << 62,
                                random(),
                                random() & 0xff,
                                0x4141414141414141,
                                0x8000000000000000};
      uint64_t word = words[random() % std::size(words)];
      std::memcpy(span.begin + at, &word, sizeof word);
    }
  }
  uint64_t draw() { return random(); }

private:
  std::mt19937_64 random;
  bool isHead;
};

/// A rank's calls, of each kind, as long as they go well.
class Work {
public:
  explicit Work(Member &member)
      : member(member), sums(*member.group), side(*member.group),
        mail(llvm::cantFail(group::PointToPoint::create(
            "mail", member.rank, member.ranks,
            llvm::cantFail(group::createFileStore(member.folder + "/mail"))))) {
  }
  /// Why the group, and messages, have ended; empty: they have not.
  std::string groupError, mailError;

  void run(int rounds) {
    for (int i = 0; i < rounds && (groupError.empty() || mailError.empty());
         ++i) {
      if (groupError.empty())
        timed(groupError, [&] { return groupCall(i); });
      if (mailError.empty())
        timed(mailError, [&] { return exchange(i); });
    }
  }

private:
  void timed(std::string &said, llvm::function_ref<llvm::Error()> call) {
    auto begun = Clock::now();
    llvm::Error error = call();
    if (error)
      said = llvm::toString(std::move(error));
    if (Clock::now() - begun > std::chrono::seconds(15))
      member.complain("a call took too long, and said: " + said);
  }
  llvm::Error groupCall(int round) {
    if (round % 3)
      return reduce(round % 3 == 1 ? 256 : 20000);
    auto window = member.group->allocate(1024 + round * 64);
    if (!window)
      return window.takeError();
    auto cell = side.reserve(1);
    if (!cell)
      return cell.takeError();
    char data[64] = {};
    int64_t peer = 1 - member.rank;
    if (llvm::Error error =
            side.putSignal(peer, *window, data, sizeof data, *cell,
                           group::SignalKind::Add, 1, nullptr))
      return error;
    if (llvm::Error error =
            side.wait(*cell, group::WaitKind::AtLeast, 1, peer, 1, nullptr))
      return error;
    return member.group->release(*window);
  }
  llvm::Error reduce(int64_t elements) {
    std::vector<float> x(elements, 1), y(elements);
    group::CollectiveCall call;
    call.op = "all_reduce";
    call.reduction = "sum";
    call.elementType = "f32";
    call.input = {x.data(), elements};
    call.output = {y.data(), elements};
    return sums.run(call, nullptr);
  }
  llvm::Error exchange(int round) {
    std::vector<char> out(round % 5 ? 100 : 300000), in(out.size());
    auto message = [&](std::vector<char> &data) {
      return group::Message{1 - member.rank, round % 3, data.data(),
                            data.size(), std::to_string(data.size())};
    };
    auto sent = mail->send(message(out));
    if (!sent)
      return sent.takeError();
    auto got = mail->receive(message(in));
    llvm::Error error = got ? mail->wait(**got, 1) : got.takeError();
    // Nobody touches the data once its wait is over.
    return llvm::joinErrors(std::move(error), mail->wait(**sent, 1));
  }

  Member &member;
  group::Collectives sums;
  group::OneSided side;
  std::unique_ptr<group::PointToPoint> mail;
};

void awaitFile(const std::string &path) {
  while (!std::ifstream(path))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void runWild(Member &member, unsigned seed) {
  // What it does to itself is not worth a report.
  ::signal(SIGSEGV, SIG_DFL);
  ::signal(SIGBUS, SIG_DFL);
  Work work(member);
  Scribbler scribbler(seed);
  awaitFile(member.folder + "/ready");
  std::atomic<bool> over{false};
  std::thread thread([&] {
    while (!over) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(scribbler.draw() % 3000));
      scribbler.write();
    }
  });
  std::thread killer([&] {
    if (seed % 5 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(seed % 97));
      ::raise(SIGKILL);
    }
  });
  work.run(60);
  ::_exit(0);
}

/// What is said of a peer that runs wild names it, and tells the user nothing
/// of calls that were right.
void complainUnlessNamed(Member &member, llvm::StringRef text) {
  if (!text.empty() && !text.contains("rank 1"))
    member.complain("rank 1 is not named: " + text);
  for (const char *advice :
       {"fewer teams", "arrives twice", "have to make the same calls",
        "make the call again", "tensors of one type", "do the ranks run on"})
    if (text.contains(advice))
      member.complain("the user is told to fix what a peer did: " + text);
}

void scribble(unsigned seed, const std::string &cache) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  runRanks(
      2,
      [&](Member &member) {
        ::alarm(60);
        if (member.rank == 1)
          return runWild(member, seed);
        Work work(member);
        std::ofstream(member.folder + "/ready") << "yes";
        work.run(60);
        if (const char *file = std::getenv("COMMSIR_SCRIBBLES_SAID"))
          std::ofstream(file, std::ios::app)
              << seed << ": " << work.groupError << " || " << work.mailError
              << "\n";
        for (const std::string &text : {work.groupError, work.mailError})
          complainUnlessNamed(member, text);
      },
      /*timeout=*/1, /*killed=*/1, cache);
}

/// What rank 1 writes where it sends to rank 0, or says why it takes nothing.
enum class Lie { Bytes, What, Counter, Kind, Why };

void tell(Lie lie) {
  // As PointToPointImpl.h has it: of two ranks, two heads and two rings.
  constexpr size_t head = 4096, ring = size_t(1) << 20, stride = 1152,
                   refused = 72, kind = 76, why = 80;
  for (Span span : listSpans()) {
    if (span.bytes != head + 2 * ring)
      continue;
    auto put = [&](size_t at, auto value) {
      std::memcpy(span.begin + at, &value, sizeof value);
    };
    char *sender = span.begin + stride;
    uint64_t written = 0;
    std::memcpy(&written, sender, sizeof written);
    size_t at = head + ring + written % ring;
    switch (lie) {
    case Lie::Bytes:
    case Lie::What:
      put(at, lie == Lie::Bytes ? uint64_t(1) << 62 : uint64_t(16));
      put(at + 8, int64_t(lie == Lie::Bytes ? 77 : 5));
      std::memset(span.begin + at + 16, 'A', 48);
      put(stride, written + 64);
      break;
    case Lie::Counter:
      put(stride, written + 2 * ring);
      break;
    case Lie::Kind:
    case Lie::Why:
      if (lie == Lie::Why)
        std::memset(span.begin + why, 'A', span.bytes - why);
      put(kind, lie == Lie::Kind ? 12345 : 1);
      put(refused, 1);
    }
  }
}

/// All memory that a process shares by files that it has open.
int shorten(int process) {
  int shortened = 0;
  for (int file = 0; file < 64; ++file) {
    std::string path =
        "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
    char link[64] = {};
    if (::readlink(path.c_str(), link, sizeof link - 1) < 0 ||
        !llvm::StringRef(link).starts_with("/memfd:commsir-"))
      continue;
    int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    shortened += opened >= 0 && ::ftruncate(opened, 0) == 0;
    if (opened >= 0)
      ::close(opened);
  }
  return shortened;
}

} // namespace

TEST(Scribble, MessagesThatCannotBe) {
  for (Lie lie : {Lie::Bytes, Lie::What, Lie::Counter, Lie::Kind, Lie::Why})
    runRanks(2, [&](Member &member) {
      SCOPED_TRACE(int(lie));
      ::alarm(60);
      auto mail = llvm::cantFail(group::PointToPoint::create(
          "mail", member.rank, 2,
          llvm::cantFail(group::createFileStore(member.folder + "/mail"))));
      int value[4] = {};
      group::Message message{1 - member.rank, 0, value, sizeof value,
                             "4 x i32"};
      auto move = [&](bool sends) {
        auto begun = sends ? mail->send(message) : mail->receive(message);
        return begun ? mail->wait(**begun, 2) : begun.takeError();
      };
      member.good(move(member.rank == 1));
      member.good(move(member.rank == 0));
      if (member.rank == 1) {
        awaitFile(member.folder + "/ready");
        tell(lie);
        awaitFile(member.folder + "/seen");
        return;
      }
      std::ofstream(member.folder + "/ready") << "yes";
      message.tag = 5;
      std::string said = llvm::toString(move(/*sends=*/false));
      if (!llvm::StringRef(said).contains("rank 1"))
        member.complain("rank 1 is not named: " + said);
      std::ofstream(member.folder + "/seen") << "yes";
    });
}

namespace {

/// As CpuKernel.cpp has it: of two ranks, an entry of the table of barriers.
struct Barrier {
  uint32_t state;
  int64_t first, stride, size, block;
};

bool isOfTwo(const Barrier &one) {
  return one.state == 2 && one.first == 0 && one.stride == 1 && one.size == 2 &&
         one.block == 0;
}

/// Fills what is free behind the last barrier of each segment: the tables of
/// kernels that come. Returns how many barriers there are.
int fillTables(const Barrier &with) {
  int found = 0;
  for (Span span : listSpans()) {
    size_t last = 0;
    for (size_t at = 0; at + sizeof(Barrier) <= span.bytes; at += 64) {
      Barrier seen;
      std::memcpy(&seen, span.begin + at, sizeof seen);
      if (!isOfTwo(seen))
        continue;
      ++found;
      last = at;
    }
    const char free[64] = {};
    for (size_t at = last + 128; last && at + 64 <= span.bytes; at += 64)
      if (!std::memcmp(span.begin + at, free, sizeof free))
        std::memcpy(span.begin + at, &with, sizeof with);
  }
  return found;
}

} // namespace

/// Rank 0 is not told to use fewer teams: it has one.
TEST(Scribble, BarriersOfNoTeam) {
  for (const Barrier &with :
       {Barrier{2, 77, 0, -5, 1 << 20}, Barrier{9, 0, 1, 2, 3}})
    runRanks(
        2,
        [&](Member &member) {
          ::alarm(60);
          group::Collectives sums(*member.group);
          std::vector<float> x(60000, 1), y(60000);
          group::CollectiveCall call;
          call.op = "all_reduce";
          call.reduction = "sum";
          call.elementType = "f32";
          auto run = [&](int64_t elements) {
            call.input = {x.data(), elements};
            call.output = {y.data(), elements};
            return sums.run(call, nullptr);
          };
          member.good(run(4096));
          if (member.rank == 1) {
            if (!fillTables(with))
              member.complain("there are no barriers");
            std::ofstream(member.folder + "/done") << "yes";
            llvm::consumeError(run(60000));
            return;
          }
          awaitFile(member.folder + "/done");
          member.expect(run(60000), Kind::Peer,
                        {"rank 1", "has overwritten memory"});
        },
        /*timeout=*/2);
}

TEST(Scribble, SharedMemoryCannotShrink) {
  runRanks(2, [&](Member &member) {
    Work work(member);
    work.run(4);
    std::ofstream(member.folder + "/" + std::to_string(member.rank))
        << ::getpid() << std::endl;
    int peer = 0;
    std::string path = member.folder + "/" + std::to_string(1 - member.rank);
    while (peer == 0)
      std::ifstream(path) >> peer;
    if (shorten(::getpid()) || shorten(peer))
      member.complain("memory that ranks share was made shorter");
    work.run(4);
    for (const std::string &text : {work.groupError, work.mailError})
      if (!text.empty())
        member.complain(text);
  });
}

/// What is opened is what was meant: of this user, of that name and size.
TEST(Scribble, SegmentsAreTheOnesThatWereMeant) {
  auto made = llvm::cantFail(group::Segment::create(8192, "a1"));
  group::SegmentName right = made.name();
  // As another process would: this one would find its own mapping.
  runRanks(1, [&](Member &member) {
    auto opens = [](const group::SegmentName &name) {
      auto opened = group::Segment::open(name);
      if (!opened)
        llvm::consumeError(opened.takeError());
      return bool(opened);
    };
    if (!opens(right))
      member.complain("it cannot be opened");
    auto wrong = [&](auto change) {
      group::SegmentName name = right;
      change(name);
      if (opens(name))
        member.complain("another was opened");
    };
    wrong([](auto &name) { name.token = "a2"; });
    wrong([](auto &name) { name.token = ""; });
    wrong([](auto &name) { name.token = "../a1"; });
    wrong([](auto &name) { name.bytes = 4096; });
    wrong([](auto &name) { name.bytes = 0; });
    wrong([](auto &name) { name.process = -1; });
    wrong([](auto &name) { name.process += int64_t(1) << 32; });
    wrong([](auto &name) { name.file += int64_t(1) << 32; });
    wrong([](auto &name) { name.file = 0; });
    // Of that name and size, but one that can be made shorter.
    int file = ::memfd_create("commsir-a1", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (::ftruncate(file, 8192) != 0)
      member.complain("no memory");
    wrong([&](auto &name) {
      name.process = ::getpid();
      name.file = file;
    });
    ::close(file);
  });
}

TEST(Scribble, NeitherCrashesNorStopsOthers) {
  const char *asked = std::getenv("COMMSIR_SCRIBBLES");
  unsigned count = asked ? unsigned(std::atoi(asked)) : 25;
  const char *first = std::getenv("COMMSIR_SCRIBBLES_FIRST");
  unsigned from = first ? unsigned(std::atoi(first)) : 1;
  Folder folder;
  for (unsigned seed = from; seed < from + count; ++seed)
    scribble(seed, folder.path + "/cache");
}
