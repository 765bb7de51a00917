//===- DeathTest.cpp - A rank that dies at any step -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One of three or four ranks kills itself: at its n-th access to the store in
// which ranks meet, at its n-th call, or at any time within a call. Each other
// rank ends in an error that names it and blames no other rank. COMMSIR_DEATHS
// is how many groups die in a call, COMMSIR_DEATHS_FIRST their first seed.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include "runtime/group/OneSided.h"
#include "runtime/group/PointToPoint.h"

#include "llvm/ADT/StringExtras.h"

#include <chrono>
#include <climits>
#include <csignal>
#include <random>
#include <thread>

using namespace commsir;
using namespace commsir::test;

namespace {

/// A store whose rank dies before or after its n-th access.
class MortalStore : public group::Store {
public:
  MortalStore(group::Store &store, int left, bool isAfter)
      : store(store), left(left), isAfter(isAfter) {}
  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override {
    bool isLast = begin();
    llvm::Error error = store.set(key, value);
    end(isLast);
    return error;
  }
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  double timeout) override {
    bool isLast = begin();
    llvm::Expected<std::string> value = store.get(key, timeout);
    end(isLast);
    return value;
  }

private:
  bool begin() {
    bool isLast = left-- == 0;
    if (isLast && !isAfter)
      ::raise(SIGKILL);
    return isLast;
  }
  static void end(bool isLast) {
    if (isLast)
      ::raise(SIGKILL);
  }

  group::Store &store;
  int left;
  bool isAfter;
};

/// Ranks of which a text says that they are at fault. One that has left, or has
/// given up, may have done so because of another.
std::vector<int64_t> listBlamed(llvm::StringRef text) {
  std::vector<int64_t> blamed;
  for (llvm::StringRef rest = text; !rest.empty();) {
    size_t at = rest.find("rank ");
    if (at == llvm::StringRef::npos)
      break;
    rest = rest.substr(at + 5);
    int64_t rank = 0;
    llvm::StringRef behind = rest;
    if (behind.consumeInteger(10, rank))
      continue;
    if (behind.starts_with(" (process "))
      behind = behind.substr(behind.find(')') + 1);
    for (llvm::StringRef fault :
         {" has died", " has not", " is gone", " did not", " failed",
          " has failed", " has overwritten"})
      if (behind.starts_with(fault)) {
        blamed.push_back(rank);
        break;
      }
  }
  return blamed;
}

/// The error's text names the rank that died, and blames no other one.
void checkBlame(Member &member, llvm::StringRef where, llvm::StringRef text,
                int64_t dead) {
  std::string name = "rank " + std::to_string(dead);
  auto complain = [&](const char *what) {
    member.complain(where + ": " + what + " (" + name + " has died): " + text);
  };
  if (text.empty())
    return complain("there is no error");
  if (!text.contains(name))
    return complain("the dead rank is not named");
  for (int64_t rank : listBlamed(text))
    if (rank != dead)
      return complain("another rank is blamed");
}

/// A rank's calls of each kind.
class Life {
public:
  explicit Life(Member &member)
      : member(member), sums(*member.group), side(*member.group) {}

  /// The `step`-th call.
  llvm::Error call(int step) {
    int64_t next = (member.rank + 1) % member.ranks;
    int64_t last = (member.rank + member.ranks - 1) % member.ranks;
    switch (step % 9) {
    case 0:
      return collect("all_reduce", 256, 256);
    case 1:
      return collect("all_gather", 100, 100 * member.ranks);
    case 2: {
      auto made = member.group->allocate(1024 + step * 64);
      if (!made)
        return made.takeError();
      window = *made;
      return llvm::Error::success();
    }
    case 3: {
      auto made = side.reserve(1);
      if (!made)
        return made.takeError();
      cell = *made;
      return llvm::Error::success();
    }
    case 4: {
      char data[64] = {};
      return side.putSignal(next, window, data, sizeof data, cell,
                            group::SignalKind::Add, 1, nullptr);
    }
    case 5:
      return side.wait(cell, group::WaitKind::AtLeast, 1, last, 1, nullptr);
    case 6:
      return member.group->release(window);
    case 7:
      return collect("all_reduce", 30000 + step, 30000 + step);
    default:
      return collect("all_to_all", 12 * member.ranks, 12 * member.ranks);
    }
  }

private:
  llvm::Error collect(const char *op, int64_t in, int64_t out) {
    std::vector<float> x(in, 1), y(out);
    group::CollectiveCall call;
    call.op = op;
    if (llvm::StringRef(op) == "all_reduce")
      call.reduction = "sum";
    call.elementType = "f32";
    call.input = {x.data(), in};
    call.output = {y.data(), out};
    return sums.run(call, nullptr);
  }

  Member &member;
  group::Collectives sums;
  group::OneSided side;
  void *window = nullptr;
  int64_t cell = 0;
};

/// Messages around the ring of ranks, until one cannot be moved. Returns why.
std::string exchange(Member &member, group::PointToPoint &mail, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<char> out(round % 3 ? 100 : 300000), in(out.size());
    auto message = [&](int64_t peer, std::vector<char> &data) {
      return group::Message{peer, round % 3, data.data(), data.size(),
                            std::to_string(data.size())};
    };
    int64_t next = (member.rank + 1) % member.ranks;
    int64_t last = (member.rank + member.ranks - 1) % member.ranks;
    auto sent = mail.send(message(next, out));
    if (!sent)
      return llvm::toString(sent.takeError());
    auto got = mail.receive(message(last, in));
    llvm::Error error = got ? mail.wait(**got, 3) : got.takeError();
    if (llvm::Error both =
            llvm::joinErrors(std::move(error), mail.wait(**sent, 3)))
      return llvm::toString(std::move(both));
  }
  return "";
}

void dieWithin(std::chrono::microseconds time) {
  std::thread([time] {
    std::this_thread::sleep_for(time);
    ::raise(SIGKILL);
  }).detach();
}

/// The first error of a rank's calls.
std::string liveOn(Life &life, int first, int steps) {
  for (int step = first; step < first + steps; ++step)
    if (llvm::Error error = life.call(step))
      return llvm::toString(std::move(error));
  return "";
}

const char *readVariable(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value ? value : otherwise;
}

} // namespace

TEST(Death, AtEachCall) {
  Folder folder;
  for (int64_t ranks : {3, 4})
    for (int step = 1; step < 10; ++step) {
      int64_t dead = step % ranks;
      SCOPED_TRACE("step " + std::to_string(step) + " of " +
                   std::to_string(ranks) + " ranks");
      runRanks(
          ranks,
          [&](Member &member) {
            ::alarm(60);
            Life life(member);
            // The dead rank may be ahead of others.
            std::string said = liveOn(life, 0, step);
            if (member.rank == dead)
              ::raise(SIGKILL);
            if (said.empty())
              said = liveOn(life, step, 30);
            checkBlame(member, "call " + std::to_string(step), said, dead);
          },
          /*timeout=*/5, dead, folder.path + "/cache");
    }
}

TEST(Death, WithinACall) {
  int count = std::atoi(readVariable("COMMSIR_DEATHS", "20"));
  int from = std::atoi(readVariable("COMMSIR_DEATHS_FIRST", "1"));
  Folder folder;
  for (int seed = from; seed < from + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    int64_t ranks = 3 + seed % 2, dead = random() % ranks;
    std::chrono::microseconds time(random() % 60000);
    runRanks(
        ranks,
        [&](Member &member) {
          ::alarm(60);
          Life life(member);
          if (member.rank == dead)
            dieWithin(time);
          checkBlame(member, "a call", liveOn(life, 0, 1 << 20), dead);
        },
        /*timeout=*/5, dead, folder.path + "/cache");
  }
}

/// A rank that dies while it makes the group, as what it says to the store
/// tells, or behind it if it makes fewer accesses.
static void dieAtMeeting(int64_t ranks, int64_t dead, int access,
                         bool isAfter) {
  runRanks(
      ranks,
      [&](Member &member) {
        ::alarm(60);
        // The first group is made on all ranks.
        member.good(Life(member).call(0));
        MortalStore store(*member.store, member.rank == dead ? access : INT_MAX,
                          isAfter);
        group::GroupOptions options;
        options.name = "second";
        options.rank = member.rank;
        options.ranks = ranks;
        options.timeout = 1;
        auto group = group::createGroup(options, store);
        if (member.rank == dead)
          ::raise(SIGKILL);
        if (!group)
          return checkBlame(member, "meeting",
                            llvm::toString(group.takeError()), dead);
        Member second = member;
        second.group = group->get();
        Life life(second);
        checkBlame(member, "a call after meeting", liveOn(life, 0, 30), dead);
      },
      /*timeout=*/60, dead);
}

/// COMMSIR_DEATHS_MEETING=1: all steps, which takes two minutes.
TEST(Death, AtEachStepOfMeeting) {
  bool isWhole = std::getenv("COMMSIR_DEATHS_MEETING");
  int count = 0;
  for (int64_t ranks : {3, 4})
    for (int64_t dead : {int64_t(0), int64_t(1), ranks - 1})
      for (bool isAfter : {false, true})
        for (int access = 0; access < 4; ++access) {
          if (count++ % 7 && !isWhole)
            continue;
          SCOPED_TRACE("rank " + std::to_string(dead) + " of " +
                       std::to_string(ranks) +
                       (isAfter ? " after" : " before") + " its access " +
                       std::to_string(access));
          dieAtMeeting(ranks, dead, access, isAfter);
        }
}

/// Rank 1 dies. Rank 0 sees it, and leaves. Rank 2 looks when rank 0 has left.
TEST(Death, BeforeAnotherLeaves) {
  runRanks(
      3,
      [&](Member &member) {
        ::alarm(60);
        Life life(member);
        auto mail = llvm::cantFail(group::PointToPoint::create(
            "mail", member.rank, member.ranks,
            llvm::cantFail(group::createFileStore(member.folder + "/mail"))));
        member.good(life.call(0));
        std::string said = exchange(member, *mail, 3);
        if (!said.empty())
          member.complain(said);
        if (member.rank == 1)
          ::raise(SIGKILL);
        std::string left = member.folder + "/said-0";
        while (member.rank == 2 && !std::ifstream(left))
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        char byte = 0;
        auto got = mail->receive({member.rank == 0 ? 1 : 0, 9, &byte, 1, "1"});
        checkBlame(member, "a message",
                   llvm::toString(got ? mail->wait(**got, 3) : got.takeError()),
                   1);
        if (member.rank == 2)
          checkBlame(member, "a call", liveOn(life, 0, 1), 1);
      },
      /*timeout=*/5, 1);
}

TEST(Death, WhileMessagesMove) {
  for (int seed = 1; seed < 9; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    int64_t dead = random() % 3;
    std::chrono::microseconds time(random() % 60000);
    runRanks(
        3,
        [&](Member &member) {
          ::alarm(60);
          auto mail = llvm::cantFail(group::PointToPoint::create(
              "mail", member.rank, member.ranks,
              llvm::cantFail(group::createFileStore(member.folder + "/mail"))));
          if (member.rank == dead)
            dieWithin(time);
          checkBlame(member, "a message", exchange(member, *mail, 1 << 20),
                     dead);
        },
        /*timeout=*/5, dead);
  }
}
