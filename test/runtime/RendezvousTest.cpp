//===- RendezvousTest.cpp - Ranks meet in stores that others have used ----===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/Ranks.h"

#include "runtime/group/PointToPoint.h"
#include "runtime/support/Rendezvous.h"

#include "llvm/ADT/StringExtras.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

using namespace commsir;
using namespace commsir::test;
using namespace std::chrono_literals;

namespace {
/// A store in this process.
struct Memory {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;

  void set(const std::string &key, const std::string &value) {
    std::lock_guard lock(mutex);
    values[key] = value;
    changed.notify_all();
  }
  std::optional<std::string> get(const std::string &key, double seconds) {
    std::unique_lock lock(mutex);
    bool found = changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                  [&] { return values.count(key) != 0; });
    return found ? std::optional(values[key]) : std::nullopt;
  }
  group::RendezvousResult meet(int64_t rank, int64_t ranks, double timeout,
                               std::function<bool()> stopped = nullptr) {
    group::RendezvousStore face = {
        [&](const std::string &key, const std::string &value) {
          set(key, value);
          return true;
        },
        [&](const std::string &key, double seconds) {
          return get(key, seconds);
        },
        std::move(stopped), nullptr};
    return group::Rendezvous(std::move(face), rank, ranks, timeout)
        .hold("says " + std::to_string(rank));
  }
  std::vector<group::RendezvousResult> meetAll(int64_t ranks,
                                               double timeout = 60) {
    std::vector<group::RendezvousResult> results(ranks);
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back(
          [&, rank] { results[rank] = meet(rank, ranks, timeout); });
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }
};

/// Makes a group in a process of its own, and sums up ones; the child's answer.
pid_t joinInChild(const std::string &folder, int64_t rank, double timeout) {
  pid_t child = ::fork();
  if (child != 0)
    return child;
  auto store = group::createFileStore(folder);
  group::GroupOptions options;
  options.rank = rank;
  options.ranks = 2;
  options.timeout = timeout;
  auto group =
      store ? group::createCpuGroup(options, **store)
            : llvm::Expected<std::unique_ptr<group::Group>>(store.takeError());
  if (!group) {
    llvm::consumeError(group.takeError());
    ::_exit(1);
  }
  auto window = (*group)->allocate(64);
  ::_exit(window ? 0 : 2);
}

int answerOf(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status)
             ? WEXITSTATUS(status)
             : -1;
}
} // namespace

TEST(RendezvousTest, AllRanksGetTheSameTexts) {
  Memory store;
  std::string last;
  for (int turn = 0; turn < 3; ++turn) {
    auto results = store.meetAll(5);
    for (const group::RendezvousResult &met : results) {
      EXPECT_EQ(met.failure, "");
      EXPECT_EQ(met.epoch, results[0].epoch);
      EXPECT_EQ(met.said,
                (std::vector<std::string>{"says 0", "says 1", "says 2",
                                          "says 3", "says 4"}));
    }
    EXPECT_NE(results[0].epoch, last) << "an epoch has come twice";
    last = results[0].epoch;
  }
}

TEST(RendezvousTest, FailedAttemptsAreForgotten) {
  Memory store;
  auto alone = store.meet(0, 3, 0.05);
  EXPECT_EQ(alone.epoch, "");
  EXPECT_EQ(alone.missing, (std::vector<int64_t>{1, 2}));
  EXPECT_NE(alone.failure.find("ranks 1, 2 of 3 have not arrived"),
            std::string::npos)
      << alone.failure;
  auto late = store.meet(2, 3, 0.05);
  EXPECT_NE(late.failure.find("rank 0 has not arrived"), std::string::npos)
      << late.failure;
  // Rank 2's number lies there now, and nobody answers for it.
  alone = store.meet(0, 3, 0.1);
  EXPECT_NE(alone.failure.find("what an earlier run left"), std::string::npos)
      << alone.failure;
  for (const group::RendezvousResult &met : store.meetAll(3))
    EXPECT_EQ(met.failure, "");
}

/// What stands in the store may be anything.
TEST(RendezvousTest, MalformedListsAreRefused) {
  const std::string foreign = "in place of the text of rank 0",
                    many = "1 1 a2 1 b3 1 c", longest(70000, 'x');
  for (const auto &[said, why] : std::map<std::string, std::string>{
           {"yes ", "rank 0 is one of 0"},
           {"yes " + many, "rank 0 is one of 3"},
           {"yes 1", foreign},
           {"yes 1 2", foreign},
           {"yes 1 2 ab2 -3 cd", foreign},
           {"yes 1 : ab2 2 cd", foreign},
           {"yes 1 2 ab2 3 cd", foreign},
           {"yes 1 2 ab2 2 cde", foreign},
           {"yes / 2 ab2 2 cd", foreign},
           {"yes 1 18446744073709551615 a", foreign},
           {"yes 1 70000 " + longest + "2 2 cd", foreign},
           {"yes 1 0 2 99999999999999999999999999 cd", foreign},
           {"nonsense", "'nonsense' " + foreign},
           {std::string(300, 'x'), "x [...] of 300 bytes' " + foreign}}) {
    Memory store;
    group::RendezvousResult met;
    std::thread follows([&] { met = store.meet(1, 2, 60); });
    std::string number;
    while (number.empty())
      number = store.get("here/1", 1).value_or("");
    store.set("go/leader", said);
    store.set("hello/" + number, "leader");
    follows.join();
    EXPECT_EQ(met.epoch, "");
    EXPECT_NE(met.failure.find(why), std::string::npos)
        << said << ": " << met.failure;
  }
}

/// A rank that writes something else than the protocol says is named on the
/// others, with what it wrote.
TEST(RendezvousTest, ErrorsQuoteTheOtherRank) {
  auto lead = [](const char *key, const std::string &said) {
    Memory store;
    store.set("here/1", "number");
    group::RendezvousResult met;
    std::thread leads([&] { met = store.meet(0, 2, 0.5); });
    std::string name = key;
    while (name == "ack/" && store.get("hello/number", 1).value_or("").empty())
      ;
    if (name == "ack/")
      name += *store.get("hello/number", 1) + "/1";
    store.set(name, said);
    leads.join();
    EXPECT_EQ(met.missing, std::vector<int64_t>{1});
    return met.failure;
  };
  for (const char *key : {"here/1", "ack/"})
    for (const std::string &said :
         {std::string("../x"), std::string(), std::string(1 << 20, '\xff')})
      EXPECT_NE(lead(key, said).find(
                    "the store holds '" + showForeign(said.substr(0, 160)) +
                    (said.size() < 160 ? "'" : " [...] of 1048576 bytes'") +
                    " in place of the text of rank 1"),
                std::string::npos)
          << key << ": " << lead(key, said);
  Memory store;
  group::RendezvousResult met;
  std::thread follows([&] { met = store.meet(1, 2, 0.5); });
  std::string number;
  while (number.empty())
    number = store.get("here/1", 1).value_or("");
  store.set("hello/" + number, "no number");
  follows.join();
  EXPECT_NE(met.failure.find("the store holds 'no number' in place of the "
                             "text of rank 0"),
            std::string::npos)
      << met.failure;
}

TEST(RendezvousTest, ARestartedLeaderFindsWaitingRanks) {
  Memory store;
  group::RendezvousResult waits;
  std::thread waiting([&] { waits = store.meet(1, 2, 60); });
  // A rank 0 that has greeted rank 1 and gone without a word.
  std::string number;
  while (number.empty())
    number = store.get("here/1", 1).value_or("");
  store.set("hello/" + number, "gone");
  while (!store.get("ack/gone/1", 1))
    ;
  group::RendezvousResult leader = store.meet(0, 2, 60);
  waiting.join();
  EXPECT_EQ(waits.failure, "");
  EXPECT_EQ(leader.epoch, waits.epoch);
}

TEST(RendezvousTest, InterruptsEndTheWait) {
  Memory store;
  auto met = store.meet(0, 2, 60, [] { return true; });
  EXPECT_TRUE(met.stopped);
  EXPECT_TRUE(met.epoch.empty());
  met = store.meet(1, 2, 60, [] { return true; });
  EXPECT_TRUE(met.stopped);
}

TEST(RendezvousTest, TwoProcessesOfOneRankAreAnError) {
  Memory store;
  group::RendezvousResult one;
  std::thread first([&] { one = store.meet(1, 2, 60); });
  std::string number;
  while (number.empty())
    number = store.get("here/1", 1).value_or("");
  // Rank 0 has heard another process that says it is rank 1.
  store.set("hello/" + number, "epoch");
  store.set("go/epoch", "yes epoch 0 another 2 hi");
  first.join();
  EXPECT_NE(one.failure.find("rank 0 has met another process as rank 1"),
            std::string::npos)
      << one.failure;
}

TEST(RendezvousTest, GroupsStartInAUsedFolder) {
  Folder folder;
  EXPECT_EQ(answerOf(joinInChild(folder.path, 1, 0.2)), 1);
  EXPECT_EQ(answerOf(joinInChild(folder.path, 0, 0.2)), 1);
  for (int turn = 0; turn < 2; ++turn) {
    pid_t one = joinInChild(folder.path, 1, 60);
    pid_t zero = joinInChild(folder.path, 0, 60);
    EXPECT_EQ(answerOf(zero), 0) << "turn " << turn;
    EXPECT_EQ(answerOf(one), 0) << "turn " << turn;
  }
}

//===----------------------------------------------------------------------===//
// Stores that lie
//===----------------------------------------------------------------------===//

namespace {

/// What a store says in place of what a rank has said.
struct Lie {
  const char *name;
  std::function<std::string(const std::string &)> tell;
};

/// Each number between blanks is `number`.
std::string withNumbers(const std::string &said, const char *number) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(said).split(parts, ' ');
  for (llvm::StringRef &part : parts)
    if (int64_t value; !part.getAsInteger(10, value))
      part = number;
  return llvm::join(parts, " ");
}

std::vector<Lie> listLies() {
  std::vector<Lie> lies = {
      {"nothing", [](const std::string &) { return std::string(); }},
      {"zeros",
       [](const std::string &said) { return std::string(said.size(), '\0'); }},
      {"garbage",
       [](const std::string &) { return std::string("\xff %s {0} \n"); }},
      {"half",
       [](const std::string &said) { return said.substr(0, said.size() / 2); }},
      {"more", [](const std::string &said) { return said + " 1"; }},
      {"much", [](const std::string &) { return std::string(4 << 20, '9'); }},
      {"refusal",
       [](const std::string &) {
         return "no " + std::string(4 << 20, '\xff');
       }},
      {"failure", [](const std::string &) {
         return "failed 1" + std::string(4 << 20, '\x01');
       }}};
  for (const char *number :
       {"-1", "0", "2", "2147483648", "9223372036854775807",
        "-9223372036854775808", "18446744073709551615"})
    lies.push_back({number, [number](const std::string &said) {
                      return withNumbers(said, number);
                    }});
  return lies;
}

/// Tells a lie of each key that has `part`, when it is read or when it is
/// written.
class LyingStore : public group::Store {
public:
  LyingStore(std::unique_ptr<group::Store> store, const Lie &lie,
             llvm::StringRef part, bool writes)
      : store(std::move(store)), lie(lie), part(part), writes(writes) {}
  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override {
    if (writes && key.contains(part))
      return store->set(key, lie.tell(value.str()));
    return store->set(key, value);
  }
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  double timeout) override {
    auto said = store->get(key, timeout);
    if (!said || writes || !key.contains(part))
      return said;
    return lie.tell(*said);
  }

private:
  std::unique_ptr<group::Store> store;
  const Lie &lie;
  llvm::StringRef part;
  bool writes;
};

/// A group, a sum and a message, as rank `rank` of two.
llvm::Error meetAndSend(group::Store &store, std::unique_ptr<group::Store> mail,
                        int64_t rank) {
  group::GroupOptions options;
  options.rank = rank;
  options.ranks = 2;
  options.timeout = 2;
  auto group = group::createCpuGroup(options, store);
  if (!group)
    return group.takeError();
  auto sends = group::PointToPoint::create("mail", rank, 2, std::move(mail));
  if (!sends)
    return sends.takeError();
  int value = 7;
  group::Message message{1 - rank, 0, &value, sizeof value, "1 x i32"};
  auto begun = rank ? (*sends)->send(message) : (*sends)->receive(message);
  return begun ? (*sends)->wait(**begun, 2) : begun.takeError();
}

/// Rank `liar`'s store lies. Each rank ends in time, and names the other.
int lieTo(const std::string &folder, const Lie &lie, llvm::StringRef part,
          int64_t rank, int64_t liar, bool writes) {
  auto open = [&] { return llvm::cantFail(group::createFileStore(folder)); };
  llvm::StringRef lied = rank == liar ? part : "no key";
  LyingStore store(open(), lie, lied, writes);
  auto mail = std::make_unique<LyingStore>(open(), lie, lied, writes);
  auto begun = std::chrono::steady_clock::now();
  std::string said = llvm::toString(meetAndSend(store, std::move(mail), rank));
  // Two timeouts of 2 s, the time that rank 0 gets beyond it, and the forks of
  // all others on a busy machine.
  bool isLate = std::chrono::steady_clock::now() - begun > 30s;
  std::string other = "rank " + std::to_string(1 - rank);
  if (!isLate && said.size() < 2000 && said.find('\xff') == std::string::npos &&
      said.find('\x01') == std::string::npos &&
      (said.empty() || llvm::StringRef(said).contains(other)))
    return 0;
  std::fprintf(stderr, "%s of %s %s rank %d: rank %d%s: %s\n", lie.name,
               part.str().c_str(), writes ? "by" : "to", int(liar), int(rank),
               isLate ? " is late" : "", said.substr(0, 400).c_str());
  return 1;
}

} // namespace

/// torch's store and folders can hold anything: no rank crashes, or waits for
/// more than its timeout.
TEST(RendezvousTest, FalseStores) {
  struct Case {
    pid_t child;
    std::string what;
  };
  std::vector<Case> cases;
  std::vector<std::unique_ptr<Folder>> folders;
  for (const char *part :
       {"/here/", "/hello/", "/ack/", "/go/", "cpu/", "/to/"}) {
    for (const Lie &lie : listLies())
      for (int number = 0; number < 4; ++number) {
        int64_t liar = number % 2;
        bool writes = number / 2;
        folders.push_back(std::make_unique<Folder>());
        for (int64_t rank : {0, 1}) {
          pid_t child = ::fork();
          if (child == 0) {
            ::alarm(60);
            ::_exit(lieTo(folders.back()->path + "/store", lie, part, rank,
                          liar, writes));
          }
          cases.push_back({child, std::string(lie.name) + " of " + part +
                                      (writes ? " by rank " : " to rank ") +
                                      std::to_string(liar) + ": rank " +
                                      std::to_string(rank)});
        }
      }
  }
  for (const Case &one : cases)
    EXPECT_EQ(answerOf(one.child), 0) << one.what;
}
