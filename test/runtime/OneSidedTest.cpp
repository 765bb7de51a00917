//===- OneSidedTest.cpp - Put, get and signal from the host ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/OneSided.h"

#include "Ranks.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>

using namespace commsir;
using namespace commsir::test;
using group::OneSided;
using group::SignalKind;
using group::WaitKind;
using Kind = group::GroupError::Kind;

namespace {

/// A window of `elements` numbers, and cells.
struct Window {
  Window(Member &member, int64_t elements, int64_t count = 8)
      : member(member), side(*member.group) {
    auto base = member.group->allocate(elements * sizeof(int64_t));
    auto cells = side.reserve(count);
    if (!base || !cells) {
      member.complain("no window");
      llvm::consumeError(base.takeError());
      llvm::consumeError(cells.takeError());
      return;
    }
    data = static_cast<int64_t *>(*base);
    first = *cells;
  }
  bool put(int64_t peer, int64_t at, llvm::ArrayRef<int64_t> values) {
    return member.good(side.put(peer, data + at, values.data(),
                                values.size() * sizeof(int64_t), nullptr));
  }
  bool get(int64_t peer, int64_t at, llvm::MutableArrayRef<int64_t> values) {
    return member.good(side.get(peer, data + at, values.data(),
                                values.size() * sizeof(int64_t), nullptr));
  }
  bool signal(int64_t peer, int64_t cell, int64_t value = 1,
              SignalKind kind = SignalKind::Set) {
    return member.good(side.signal(peer, first + cell, kind, value, nullptr));
  }
  bool wait(int64_t cell, int64_t value, int64_t source = -1) {
    return member.good(failWait(cell, value, source));
  }
  llvm::Error failWait(int64_t cell, int64_t value, int64_t source = -1,
                       double timeout = 0) {
    return side.wait(first + cell, WaitKind::AtLeast, value, source, timeout,
                     nullptr);
  }
  int64_t read(int64_t cell) {
    auto value = side.read(first + cell);
    return value ? *value
                 : (member.complain(llvm::toString(value.takeError())), -1);
  }

  Member &member;
  OneSided side;
  int64_t *data = nullptr, first = 0;
};

/// All ranks are here.
void meet(Window &window, int64_t cell) {
  for (int64_t peer = 0; peer < window.member.ranks; ++peer)
    window.signal(peer, cell, 1, SignalKind::Add);
  window.wait(cell, window.member.ranks);
}

} // namespace

TEST(OneSidedTest, AWaitMakesThePutVisible) {
  runRanks(4, [](Member &member) {
    Window window(member, 4 * 16);
    // Each puts its row to all others; cell 0 counts those that have come.
    std::vector<int64_t> row(16, 100 + member.rank);
    for (int64_t peer = 0; peer < 4; ++peer)
      member.good(
          window.side.putSignal(peer, window.data + 16 * member.rank,
                                row.data(), row.size() * sizeof(int64_t),
                                window.first, SignalKind::Add, 1, nullptr));
    window.wait(0, 4);
    for (int64_t i = 0; i < 64; ++i)
      if (window.data[i] != 100 + i / 16)
        member.complain("element " + llvm::Twine(i) + " is " +
                        llvm::Twine(window.data[i]));
    // The same by the ones that read.
    std::vector<int64_t> got(16);
    int64_t next = (member.rank + 1) % 4;
    window.get(next, 16 * next, got);
    if (got != std::vector<int64_t>(16, 100 + next))
      member.complain("another row than the next rank's");
    meet(window, 1);
    member.good(window.side.reset(window.first, nullptr));
    if (window.read(0) != 0 || window.read(1) != 4)
      member.complain("a cell was not reset, or another was");
    meet(window, 2);
    member.good(window.side.release(window.first));
    member.expect(window.failWait(0, 1), Kind::Usage, {"was released"});
  });
}

/// Two ranks hand a record back and forth for a second. A data race would show
/// in a record whose numbers differ.
TEST(OneSidedTest, SignalsOrderMillionsOfRecords) {
  runRanks(2, [](Member &member) {
    constexpr int64_t kRecord = 12;
    Window window(member, kRecord);
    int64_t peer = 1 - member.rank;
    std::vector<int64_t> record(kRecord);
    auto begun = std::chrono::steady_clock::now();
    bool leads = member.rank == 0;
    for (int64_t round = 1;; ++round) {
      bool last =
          leads && round % 64 == 0 &&
          std::chrono::steady_clock::now() - begun > std::chrono::seconds(1);
      auto send = [&](int64_t value) {
        record.assign(kRecord, value);
        return member.good(window.side.putSignal(
            peer, window.data, record.data(), kRecord * sizeof(int64_t),
            window.first, SignalKind::Set, round, nullptr));
      };
      // A record of negative numbers is the last.
      if (leads && !send(last ? -round : round))
        return;
      if (!window.wait(0, round, peer))
        return;
      int64_t value = window.data[0];
      for (int64_t i = 1; i < kRecord; ++i)
        if (window.data[i] != value)
          return member.complain("round " + llvm::Twine(round) +
                                 ": a torn record");
      if (value != round && value != -round)
        return member.complain("round " + llvm::Twine(round) + " has " +
                               llvm::Twine(value));
      if (!leads && !send(value))
        return;
      if (value < 0)
        return;
    }
  });
}

/// Many to one: rank 0 takes from a queue of one slot for each source.
TEST(OneSidedTest, ManyFeedOne) {
  constexpr int64_t kRounds = 20000;
  runRanks(4, [](Member &member) {
    Window window(member, 4);
    if (member.rank == 0) {
      int64_t sum = 0;
      for (int64_t round = 1; round <= kRounds; ++round)
        for (int64_t source = 1; source < 4; ++source) {
          if (!window.wait(source, round, source))
            return;
          sum += window.data[source];
          window.signal(source, 0, round);
        }
      if (sum != 6 * kRounds * (kRounds + 1) / 2)
        member.complain("the sum is " + llvm::Twine(sum));
      return;
    }
    for (int64_t round = 1; round <= kRounds; ++round) {
      int64_t value = member.rank * round;
      if (!member.good(window.side.putSignal(
              0, window.data + member.rank, &value, sizeof(value),
              window.first + member.rank, SignalKind::Set, round, nullptr)) ||
          !window.wait(0, round, 0))
        return;
    }
  });
}

/// Each rank tells all others in a row of cells that its numbers are there.
TEST(OneSidedTest, ARowOfCellsMeets) {
  constexpr int64_t kRounds = 5000, kRanks = 4;
  runRanks(kRanks, [](Member &member) {
    // Two rows: who is ahead writes for the next round only when all have read.
    Window window(member, kRanks, 2 * kRanks + 1);
    for (int64_t round = 1; round <= kRounds; ++round) {
      for (int64_t peer = 0; peer < kRanks; ++peer)
        window.put(peer, member.rank, {round});
      for (int64_t row : {0, 1}) {
        int64_t first = window.first + row * kRanks;
        if (!member.good(window.side.signalOthers(first, 1, nullptr)) ||
            !member.good(window.side.takeFromOthers(first, 1, nullptr)))
          return;
        for (int64_t peer = 0; peer < kRanks && row == 0; ++peer)
          if (window.data[peer] != round)
            return member.complain("rank " + llvm::Twine(peer) +
                                   "'s number is not here");
      }
    }
    for (int64_t cell = 0; cell < 2 * kRanks; ++cell)
      if (window.read(cell) != 0)
        member.complain("cell " + llvm::Twine(cell) + " is not taken");
    member.expect(
        window.side.signalOthers(window.first + kRanks + 2, 1, nullptr),
        Kind::Usage, {"is not reserved"});
    member.expect(window.side.takeFromOthers(window.first, -1, nullptr),
                  Kind::Usage, {"0 to 2^63 - 1"});
    meet(window, 2 * kRanks);
  });
}

TEST(OneSidedTest, LargeCopiesArriveWhole) {
  for (int64_t bytes : {int64_t(1) << 20, int64_t(64) << 20})
    runRanks(2, [&](Member &member) {
      int64_t count = bytes / sizeof(int64_t);
      Window window(member, count);
      if (member.rank == 0) {
        std::vector<int64_t> data(count);
        std::iota(data.begin(), data.end(), bytes);
        window.put(1, 0, data);
        window.signal(1, 0);
        window.wait(1, 1, 1);
        return;
      }
      window.wait(0, 1, 0);
      std::vector<int64_t> data(count);
      // By both ways: what rank 0 put here, and what this rank gets of itself.
      window.get(1, 0, data);
      for (int64_t i = 0; i < count; ++i)
        if (window.data[i] != bytes + i || data[i] != bytes + i)
          return member.complain("element " + llvm::Twine(i) + " is wrong");
      window.signal(0, 1);
    });
}

/// The target sleeps in no call of the library.
TEST(OneSidedTest, OnlyOneSideActs) {
  runRanks(3, [](Member &member) {
    Window window(member, 1024);
    std::fill_n(window.data, 1024, member.rank);
    meet(window, 7);
    std::string done = member.folder + "/done";
    if (member.rank == 2) { // Not in any call until the others have ended.
      while (!llvm::sys::fs::exists(done + "0") ||
             !llvm::sys::fs::exists(done + "1"))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (window.data[0] != 50 || window.data[1] != 51 || window.read(0) != 2)
        member.complain("what was put is not here");
      return;
    }
    std::vector<int64_t> got(512);
    window.get(2, 512, got);
    if (got != std::vector<int64_t>(512, 2))
      member.complain("another array than rank 2's");
    window.put(2, member.rank, {50 + member.rank});
    window.signal(2, 0, 1, SignalKind::Add);
    std::ofstream(done + std::to_string(member.rank)) << "yes";
    // Peers may still look at this rank's part.
    while (!llvm::sys::fs::exists(done + "0") ||
           !llvm::sys::fs::exists(done + "1"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

TEST(OneSidedTest, TheDeathOfTheSourceEndsAWait) {
  runRanks(
      3,
      [](Member &member) {
        Window window(member, 8);
        meet(window, 7);
        // Nobody still waits for any rank.
        if (member.rank == 1 && window.wait(6, 2))
          ::raise(SIGKILL);
        window.signal(1, 6, 1, SignalKind::Add);
        member.expect(window.failWait(2, 5, 1), Kind::Peer,
                      {"got no signal from rank 1", "has died",
                       "cell 2 of the group: observed 0, expected >= 5"});
        member.expect(window.failWait(2, 5), Kind::Peer,
                      {"no signal from any rank", "rank 1", "has died"});
        // The others go on.
        int64_t other = 2 - member.rank;
        window.signal(other, 3, 9);
        window.wait(3, 9, other);
        // What a rank has signaled before it died counts.
        if (member.rank == 0)
          window.wait(7, 3, 1);
        window.signal(other, 4);
        window.wait(4, 1, other);
      },
      60, /*killed=*/1);
}

TEST(OneSidedTest, APutToTheDeadFails) {
  runRanks(
      2,
      [](Member &member) {
        Window window(member, 8);
        meet(window, 7);
        if (member.rank == 1)
          ::raise(SIGKILL);
        // Within the period in which processes are looked at.
        int64_t value = 1;
        while (true) {
          llvm::Error error =
              window.side.put(1, window.data, &value, sizeof(value), nullptr);
          if (!error)
            continue;
          member.expect(std::move(error), Kind::Peer, {"rank 1", "has died"});
          break;
        }
        member.expect(
            window.side.get(1, window.data, &value, sizeof(value), nullptr),
            Kind::Peer, {"has died"});
        member.expect(
            window.side.signal(1, window.first, SignalKind::Set, 1, nullptr),
            Kind::Peer, {"has died"});
      },
      60, /*killed=*/1);
}

TEST(OneSidedTest, ALeavingRankIsNamed) {
  runRanks(2, [](Member &member) {
    Window window(member, 8);
    if (member.rank == 1) {
      window.signal(0, 0, 3);
      return;
    }
    // The signal is there though its sender may have left.
    window.wait(0, 3, 1);
    member.expect(window.failWait(0, 4, 1), Kind::Peer,
                  {"rank 1 has left the group", "observed 3, expected >= 4"});
    member.expect(window.failWait(0, 4), Kind::Peer, {"has left the group"});
  });
}

TEST(OneSidedTest, WaitsEndByTimeAndAbort) {
  runRanks(2, [](Member &member) {
    Window window(member, 8);
    if (member.rank == 0) {
      member.expect(window.failWait(1, 2, 1, 0.05), Kind::Peer,
                    {"rank 0 of group 'world' got no signal from "
                     "rank 1: the timeout of 0.1 s has passed",
                     "cell 1 of the group: observed 0, expected >= 2"});
      // The group is as it was.
      window.signal(1, 0);
      window.wait(0, 1, 1);
      std::thread aborter([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        member.group->abort("enough");
      });
      member.expect(window.failWait(1, 2, 1), Kind::Aborted, {"enough"});
      aborter.join();
      member.expect(window.failWait(1, 2, 1), Kind::Aborted, {"enough"});
      return;
    }
    window.wait(0, 1, 0);
    window.signal(0, 0);
    member.expect(window.failWait(1, 2, 0), Kind::Peer,
                  {"rank 0 has given up", "enough"});
  });
}

static bool interrupted = false;

TEST(OneSidedTest, AnInterruptEndsOnlyTheWait) {
  runRanks(2, [](Member &member) {
    Window window(member, 8);
    if (member.rank == 0) {
      interrupted = true;
      group::setInterrupt([] { return interrupted ? 1 : 0; });
      member.expect(window.failWait(1, 2, 1), Kind::Aborted, {"interrupted"});
      interrupted = false;
    }
    meet(window, 0);
  });
}

TEST(OneSidedTest, WrongArgumentsAreNamed) {
  runRanks(2, [](Member &member) {
    Window window(member, 8, 2);
    OneSided &side = window.side;
    int64_t value = 0;
    int64_t *data = window.data;
    auto put = [&](int64_t peer, int64_t *to, const void *from, size_t bytes) {
      return side.put(peer, to, from, bytes, nullptr);
    };
    member.expect(put(2, data, &value, 8), Kind::Usage,
                  {"put: rank 2 is not in a group of 2"});
    member.expect(put(-1, data, &value, 8), Kind::Usage, {"rank -1"});
    member.expect(put(1, data, nullptr, 8), Kind::Usage, {"null pointer"});
    member.expect(put(1, data + 7, data, 16), Kind::Bounds,
                  {"put: 16 bytes at", "do not lie in one window"});
    member.expect(put(1, &value, &value, 8), Kind::Bounds, {"window"});
    member.expect(side.get(1, &value, &value, 8, nullptr), Kind::Bounds,
                  {"get: 8 bytes at"});
    member.good(put(1, data + 8, nullptr, 0));
    auto signal = [&](int64_t cell, int64_t with) {
      return side.signal(1, cell, SignalKind::Set, with, nullptr);
    };
    member.expect(signal(window.first + 2, 1), Kind::Usage,
                  {"cell 2 is not reserved"});
    member.expect(signal(-1, 1), Kind::Usage, {"cell -1 is not reserved"});
    member.expect(signal(window.first, -1), Kind::Usage, {"0 to 2^63 - 1"});
    // Nothing is put when the signal is wrong.
    value = 77;
    member.expect(side.putSignal(member.rank, data, &value, 8, 99,
                                 SignalKind::Set, 1, nullptr),
                  Kind::Usage, {"cell 99"});
    if (data[0] != 0)
      member.complain("a put whose signal is wrong was made");
    member.expect(window.failWait(0, 1, 2), Kind::Usage, {"rank 2"});
    member.expect(window.failWait(0, -1), Kind::Usage, {"0 to 2^63 - 1"});
    member.expect(window.failWait(0, 1, -1, -1), Kind::Usage, {"timeout"});
    member.expect(side.release(1), Kind::Usage, {"no reserved range"});
    auto none = side.reserve(0);
    member.expect(none.takeError(), Kind::Usage, {"cells of signals"});
    meet(window, 0);
  });
}
