//===- PointToPointTest.cpp - Sends and receives on the CPU ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/PointToPoint.h"

#include "Ranks.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <numeric>
#include <random>
#include <thread>

using namespace commsir;
using namespace commsir::test;
using group::Message;
using group::PointToPoint;
using group::TransferPtr;
using Kind = group::GroupError::Kind;
using Bytes = std::vector<uint8_t>;

namespace {

/// The messages of a member. What goes wrong is complained of.
struct Mail {
  explicit Mail(Member &member, const std::string &name = "mail")
      : member(member) {
    auto made = PointToPoint::create(
        name, member.rank, member.ranks,
        llvm::cantFail(group::createFileStore(member.folder + "/mail")));
    if (made)
      messages = std::move(*made);
    else
      member.complain(llvm::toString(made.takeError()));
  }
  static Message message(int64_t peer, Bytes &data, int64_t tag) {
    return {peer, tag, data.data(), data.size(),
            std::to_string(data.size()) + " x u8"};
  }
  TransferPtr isend(int64_t peer, Bytes &data, int64_t tag = 0) {
    return begun(messages->send(message(peer, data, tag)));
  }
  TransferPtr irecv(int64_t peer, Bytes &data, int64_t tag = 0) {
    return begun(messages->receive(message(peer, data, tag)));
  }
  TransferPtr begun(llvm::Expected<TransferPtr> made) {
    if (made)
      return *made;
    member.complain(llvm::toString(made.takeError()));
    return nullptr;
  }
  llvm::Error outcome(const TransferPtr &transfer, double seconds = 30) {
    return transfer ? messages->wait(*transfer, seconds)
                    : group::makeError(Kind::Usage, "it has not begun");
  }
  bool wait(const TransferPtr &transfer) {
    return member.good(outcome(transfer));
  }
  bool send(int64_t peer, Bytes &data, int64_t tag = 0) {
    return wait(isend(peer, data, tag));
  }
  bool recv(int64_t peer, Bytes &data, int64_t tag = 0) {
    return wait(irecv(peer, data, tag));
  }

  Member &member;
  std::unique_ptr<PointToPoint> messages;
};

Bytes pattern(size_t size, uint64_t seed) {
  Bytes data(size);
  std::mt19937_64 random(seed);
  for (uint8_t &byte : data)
    byte = uint8_t(random());
  return data;
}

void equal(Member &member, const Bytes &got, const Bytes &want,
           const llvm::Twine &what) {
  if (got != want)
    member.complain(what + " is not what was sent");
}

/// All ranks are here.
void meet(Member &member) {
  auto window = member.group->allocate(8);
  if (!window)
    member.complain(llvm::toString(window.takeError()));
}

void rest(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

} // namespace

TEST(PointToPoint, SizesThereAndBack) {
  runRanks(2, [](Member &member) {
    Mail mail(member);
    for (size_t size : {0, 1, 63, 64, 65, 4000, 131072, 131073, 1048512,
                        1048576, 1048577, 5000001}) {
      Bytes data = pattern(size, size), got(size);
      if (member.rank == 0 && mail.send(1, data) && mail.recv(1, got))
        equal(member, got, data, llvm::Twine(size) + " bytes");
      if (member.rank == 1 && mail.recv(0, got))
        mail.send(0, got);
    }
  });
}

/// The second and third that are sent are taken first.
TEST(PointToPoint, TagsAreReceivedInAnyOrder) {
  runRanks(2, [](Member &member) {
    Mail mail(member);
    std::vector<Bytes> sent;
    for (int64_t tag : {7, 8, 9, 7})
      sent.push_back(pattern(300000 * sent.size() + 5, tag));
    if (member.rank == 0) {
      std::vector<TransferPtr> works;
      for (int i : {0, 1, 2, 3})
        works.push_back(mail.isend(1, sent[i], i == 3 ? 7 : 7 + i));
      for (auto &work : works)
        mail.wait(work);
      return;
    }
    for (int i : {2, 1, 0, 3}) {
      Bytes got(sent[i].size());
      if (mail.recv(0, got, i == 3 ? 7 : 7 + i))
        equal(member, got, sent[i], "message " + llvm::Twine(i));
    }
  });
}

TEST(PointToPoint, OfAnyRank) {
  runRanks(4, [](Member &member) {
    Mail mail(member);
    if (member.rank) {
      Bytes data(100, uint8_t(member.rank));
      for (int64_t tag : {1, 2})
        mail.send(0, data, tag);
      return;
    }
    for (int64_t tag : {2, 1}) {
      int64_t seen = 0;
      for (int i = 1; i < 4; ++i) {
        Bytes got(100);
        TransferPtr work = mail.irecv(-1, got, tag);
        if (mail.wait(work))
          equal(member, got, Bytes(100, uint8_t(work->source())), "a message");
        seen += work->source();
      }
      if (seen != 6)
        member.complain("not each rank once");
    }
  });
}

/// Larger than the rings: nobody ends a send before it receives.
TEST(PointToPoint, ARingOfLargeMessages) {
  runRanks(4, [](Member &member) {
    Mail mail(member);
    for (int turn = 0; turn < 3; ++turn) {
      int64_t next = (member.rank + 1) % 4, before = (member.rank + 3) % 4;
      Bytes data = pattern(3000000, member.rank), got(data.size());
      TransferPtr sent = mail.isend(next, data);
      if (mail.recv(before, got))
        equal(member, got, pattern(got.size(), before), "a message");
      mail.wait(sent);
    }
  });
}

/// The sender is elsewhere, and waits for none of it.
TEST(PointToPoint, MessagesMoveWithoutAWaitingThread) {
  runRanks(2, [](Member &member) {
    Mail mail(member);
    Bytes data = pattern(20000000, 1), got(data.size());
    if (member.rank == 0) {
      TransferPtr sent = mail.isend(1, data), took = mail.irecv(1, got);
      meet(member);
      if (!mail.messages->test(*sent) || !mail.messages->test(*took))
        member.complain("it is not done");
      equal(member, got, data, "what came back");
      return;
    }
    if (mail.recv(0, got))
      equal(member, got, data, "what came");
    mail.send(0, got);
    // The other side has taken it.
    meet(member);
  });
}

TEST(PointToPoint, OnlyTwoOfFourTakePart) {
  runRanks(4, [](Member &member) {
    if (member.rank > 1)
      return;
    Mail mail(member);
    Bytes data(10, 3);
    if (member.rank == 0)
      mail.send(1, data);
    else
      mail.recv(0, data);
  });
}

/// Both sides are told, and what follows fails; others are not concerned.
TEST(PointToPoint, MismatchesFailOnBothSides) {
  for (bool isAside : {false, true})
    runRanks(3, [=](Member &member) {
      Mail mail(member);
      Bytes data(8, 1), more(16, 2), go(1);
      if (member.rank == 2) {
        mail.recv(0, data);
        mail.recv(1, data);
        return;
      }
      int64_t other = 1 - member.rank;
      bool sends = member.rank == 0;
      if (sends && isAside) {
        TransferPtr first = mail.isend(1, data, 5);
        TransferPtr second = mail.isend(1, data, 8);
        mail.send(1, go, 6);
        member.good(mail.outcome(first));
        member.good(mail.outcome(second));
        mail.recv(1, go, 7);
        member.expect(mail.outcome(mail.isend(1, data)), Kind::Disagree,
                      {"rank 0 has sent 8 x u8 to rank 1, which receives 16"});
      } else if (isAside) {
        mail.recv(0, go, 6);
        mail.send(0, go, 7);
        member.expect(mail.outcome(mail.irecv(0, more, 5)), Kind::Disagree,
                      {"rank 0 has sent 8 x u8 to rank 1, which receives 16 x "
                       "u8 (tag 5)"});
        // It has come, and fits, but comes after one that does not.
        Bytes second(8);
        member.expect(mail.outcome(mail.irecv(0, second, 8)), Kind::Disagree,
                      {"which receives 16"});
        if (second != Bytes(8))
          member.complain("what followed was written");
      } else {
        TransferPtr work =
            sends ? mail.isend(1, data, 5) : mail.irecv(0, more, 5);
        member.expect(mail.outcome(work), Kind::Disagree,
                      {"rank 0 sends 8 x u8 to rank 1, which receives 16 x u8 "
                       "(tag 5)"});
      }
      if (more != Bytes(16, 2))
        member.complain("something was written");
      auto late = mail.messages->send(Mail::message(other, data, 9));
      member.expect(late ? mail.outcome(*late) : late.takeError(),
                    Kind::Disagree, {"which receives 16"});
      mail.send(2, data);
    });
}

TEST(PointToPoint, WaitsEndAtTheTimeout) {
  runRanks(2, [](Member &member) {
    Mail mail(member);
    Bytes data = pattern(2000, 1), got(data.size());
    int64_t other = 1 - member.rank;
    for (bool isKnown : {false, true}) {
      if (member.rank == 0)
        member.expect(mail.outcome(mail.irecv(1, got, 3), 0.3), Kind::Peer,
                      {"Timed out waiting 0.3 s for a receive of 2000 x u8 "
                       "from rank 1 (tag 3)"});
      meet(member);
      if (member.rank == 1 && !isKnown)
        member.expect(mail.outcome(mail.isend(0, data, 4), 0.3), Kind::Peer,
                      {"Timed out", "send of 2000 x u8 to rank 0 (tag 4)"});
      meet(member);
      // Nothing is left of these.
      if (member.rank == 0 && mail.recv(other, got, 3))
        equal(member, got, data, "what came");
      if (member.rank == 1)
        mail.send(other, data, 3);
    }
  });
}

/// In the middle of a message both sides hear of it.
TEST(PointToPoint, ATimeoutWithinAMessageEndsThePair) {
  runRanks(2, [](Member &member) {
    Mail mail(member);
    Bytes data(8000000), small(1);
    if (member.rank == 0) {
      mail.send(1, small);
      member.expect(mail.outcome(mail.isend(1, data), 0.3), Kind::Peer,
                    {"Timed out"});
      member.expect(mail.outcome(mail.isend(1, small)), Kind::Peer,
                    {"rank 0 gave up in the middle"});
      meet(member);
      return;
    }
    mail.recv(0, small);
    meet(member);
    member.expect(mail.outcome(mail.irecv(0, data)), Kind::Peer,
                  {"rank 0 gave up in the middle of a send of 8000000 x u8"});
  });
}

TEST(PointToPoint, ADeadRankIsNamed) {
  runRanks(
      3,
      [](Member &member) {
        Mail mail(member);
        Bytes data(10, 1), got(10), large(5000000);
        if (member.rank == 1) {
          // What it has sent arrives.
          mail.isend(0, data, 1);
          mail.isend(0, data, 2);
          mail.recv(0, got, 1);
          mail.recv(2, got, 1);
          ::raise(SIGKILL);
        }
        mail.send(1, data, 1);
        if (member.rank == 2)
          return member.expect(mail.outcome(mail.isend(1, large)), Kind::Peer,
                               {"rank 1 (process ", "has died, by signal 9"});
        rest(200);
        mail.recv(1, got, 2);
        mail.recv(1, got, 1);
        member.expect(mail.outcome(mail.irecv(1, got, 1)), Kind::Peer,
                      {"rank 1 (process ", "has died, by signal 9"});
      },
      60, 1);
}

TEST(PointToPoint, LeavingAndAbortingRanksAreNamed) {
  for (bool aborts : {false, true})
    runRanks(3, [=](Member &member) {
      auto mail = std::make_unique<Mail>(member);
      Bytes got(10);
      if (member.rank) {
        mail->send(0, got);
        if (aborts && member.rank == 1)
          mail->messages->abort("enough");
        if (aborts && member.rank == 1)
          member.expect(
              mail->messages->send(Mail::message(0, got, 0)).takeError(),
              Kind::Aborted, {"rank 1 has given up: enough"});
        mail.reset();
        meet(member);
        return;
      }
      mail->recv(1, got);
      mail->recv(2, got);
      member.expect(mail->outcome(mail->irecv(1, got)),
                    aborts ? Kind::Aborted : Kind::Peer,
                    {aborts ? "rank 1 has given up: enough"
                            : "rank 1 has left the group"});
      member.expect(mail->outcome(mail->irecv(-1, got)), Kind::Peer,
                    {"has left the group"});
      meet(member);
    });
}

/// Of two that have never exchanged anything.
TEST(PointToPoint, ARankThatEndsBeforeItsFirstMessageIsNamed) {
  for (bool dies : {false, true})
    runRanks(
        2,
        [=](Member &member) {
          auto mail = std::make_unique<Mail>(member);
          meet(member);
          if (member.rank == 1 && dies)
            ::raise(SIGKILL);
          if (member.rank == 1) {
            mail.reset();
            return rest(1500);
          }
          mail->messages->confirm();
          auto reached = mail->messages->reaches(1, 30);
          if (!reached || !*reached)
            member.complain(reached ? "not reached"
                                    : llvm::toString(reached.takeError()));
          auto begun = std::chrono::steady_clock::now();
          Bytes got(10);
          const char *how = dies ? "has died, by signal 9" : "has left";
          member.expect(mail->outcome(mail->irecv(1, got)), Kind::Peer,
                        {"rank 1 ", how});
          member.expect(mail->outcome(mail->irecv(-1, got)), Kind::Peer, {how});
          member.expect(mail->outcome(mail->isend(1, got)), Kind::Peer, {how});
          if (std::chrono::steady_clock::now() - begun >
              std::chrono::seconds(1))
            member.complain("it took more than a second");
        },
        60, dies ? 1 : -1);
}

/// Who is gone may be of an earlier group, and is given some time to come.
TEST(PointToPoint, RanksOfAnEarlierGroupGetTime) {
  runRanks(2, [](Member &member) {
    Bytes data = pattern(1000, 1), got(1000);
    if (member.rank == 1)
      member.good(Mail(member).messages->leave(0));
    meet(member);
    if (member.rank == 1)
      rest(1500);
    Mail mail(member);
    if (member.rank == 1)
      mail.send(0, data);
    else if (mail.recv(1, got))
      equal(member, got, data, "what came");
    // That which has left does not come again.
    if (member.rank == 1)
      return;
    member.expect(mail.outcome(mail.irecv(1, got)), Kind::Peer,
                  {"rank 1 has left the group"});
  });
  runRanks(2, [](Member &member) {
    Mail mail(member);
    Bytes got(10);
    meet(member);
    if (member.rank == 1) {
      mail.messages.reset();
      // Its files' numbers are others' by now, as in a program that goes on.
      for (int i = 0; i < 64; ++i)
        ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      return rest(9000);
    }
    member.expect(mail.outcome(mail.irecv(1, got), 2), Kind::Peer,
                  {"Timed out waiting 2.0 s"});
    member.expect(mail.outcome(mail.irecv(1, got), 30), Kind::Peer,
                  {"rank 1 has left the group"});
  });
}

/// Who leaves does so when what it sends is where its receiver finds it.
TEST(PointToPoint, MessagesSentBeforeTheEndArrive) {
  runRanks(2, [](Member &member) {
    for (bool isLate : {false, true})
      for (size_t size : {10, 5000000}) {
        Mail mail(member, std::to_string(size) + (isLate ? " late" : ""));
        Bytes data = pattern(size, size), got(size);
        if (member.rank == 0) {
          mail.isend(1, data, 3);
          member.good(mail.messages->leave(10));
        } else {
          rest(isLate ? 300 : 0);
          if (mail.recv(0, got, 3))
            equal(member, got, data, llvm::Twine(size) + " bytes");
        }
        meet(member);
      }
    // Nobody takes it.
    if (member.rank == 1)
      return meet(member);
    Mail mail(member, "lost");
    Bytes data(10);
    auto sent = mail.isend(1, data);
    auto begun = std::chrono::steady_clock::now();
    member.good(mail.messages->leave(0.3));
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begun;
    if (took.count() < 0.25 || took.count() > 2)
      member.complain("it has not waited 0.3 s");
    member.expect(mail.outcome(sent), Kind::Aborted, {"has left the group"});
    meet(member);
  });
}

TEST(PointToPoint, AbortEndsWaits) {
  runRanks(2, [](Member &member) {
    Mail mail(member);
    Bytes got(10);
    if (member.rank == 1)
      return;
    std::thread other([&] {
      rest(100);
      mail.messages->abort("enough");
    });
    member.expect(mail.outcome(mail.irecv(1, got)), Kind::Aborted,
                  {"rank 0 has given up: enough"});
    other.join();
  });
}

/// A store keeps what earlier ones of the name have left.
TEST(PointToPoint, NamesAreUsedAgain) {
  runRanks(2, [](Member &member) {
    for (int turn = 0; turn < 6; ++turn) {
      Mail mail(member);
      // Now the one comes first, now the other.
      if (turn % 2 == member.rank)
        rest(30);
      Bytes data = pattern(1000, turn), got(1000);
      if (member.rank == 0)
        mail.send(1, data);
      else if (mail.recv(0, got))
        equal(member, got, data, "turn " + llvm::Twine(turn));
    }
  });
}

TEST(PointToPoint, ReachableRanks) {
  runRanks(3, [](Member &member) {
    if (member.rank == 2) {
      meet(member);
      return meet(member);
    }
    Mail mail(member);
    auto near = mail.messages->reaches(1 - member.rank, 30);
    if (!near || !*near)
      member.complain(near ? "not reached" : llvm::toString(near.takeError()));
    member.expect(mail.messages->reaches(-1, 0.2).takeError(), Kind::Peer,
                  {"rank 2 has not begun in 0.2"});
    meet(member);
    // A rank on another host.
    auto store =
        llvm::cantFail(group::createFileStore(member.folder + "/mail"));
    llvm::cantFail(store->set("commsir/mail/sends/here/2", "1 1 0 elsewhere"));
    auto far = mail.messages->reaches(-1, 5);
    if (!far || *far)
      member.complain(far ? "reached" : llvm::toString(far.takeError()));
    meet(member);
  });
}

TEST(PointToPoint, BadArguments) {
  runRanks(2, [](Member &member) {
    Mail mail(member);
    Bytes data(1);
    auto fails = [&](int64_t peer, llvm::StringRef why) {
      member.expect(
          mail.messages->send(Mail::message(peer, data, 0)).takeError(),
          Kind::Usage, {why});
    };
    fails(member.rank, "is this one: copy the data");
    fails(2, "there is no rank 2 among 2");
    fails(-1, "there is no rank -1");
    Message message = Mail::message(1 - member.rank, data, 0);
    message.what = std::string(48, 'x');
    member.expect(mail.messages->send(message).takeError(), Kind::Usage,
                  {"is too long"});
    meet(member); // A rank that ends while the other begins counts as lost.
  });
}

TEST(PointToPoint, AChildOfForkIsRefused) {
  runRanks(2, [](Member &member) {
    Mail mail(member);
    Bytes data(10);
    TransferPtr work = member.rank ? mail.irecv(0, data) : mail.isend(1, data);
    mail.wait(work);
    pid_t child = ::fork();
    if (child == 0) {
      member.said.clear();
      member.expect(mail.messages->send(Mail::message(1, data, 0)).takeError(),
                    Kind::Usage, {"forked"});
      mail.messages.reset();
      ::_exit(member.said.empty() ? 0 : 1);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    if (status)
      member.complain("the child failed");
  });
}

/// Each pair exchanges messages of random sizes and tags, by two threads of
/// each rank, which wait in random orders.
TEST(PointToPoint, ManyMessages) {
  constexpr int kRanks = 4, kMessages = 150;
  runRanks(kRanks, [](Member &member) {
    Mail mail(member);
    auto sizeOf = [](int64_t from, int64_t to, int i, int thread) {
      std::mt19937_64 random(((from * 10 + to) * 1000 + i) * 2 + thread);
      return size_t(random() % (random() % 20 ? 3000 : 3000000));
    };
    std::mutex complaining;
    auto work = [&](int thread) {
      std::mt19937_64 random(member.rank * 2 + thread);
      std::list<Bytes> kept;
      struct One {
        TransferPtr work;
        const Bytes *got;
        int64_t from;
        int i;
      };
      std::vector<One> begun;
      auto settle = [&](size_t most) {
        while (begun.size() > most) {
          size_t at = random() % begun.size();
          One one = begun[at];
          begun.erase(begun.begin() + at);
          llvm::Error error = mail.outcome(one.work, 60);
          std::lock_guard<std::mutex> lock(complaining);
          member.good(std::move(error));
          if (one.got)
            equal(member, *one.got,
                  pattern(one.got->size(), one.from * 1000 + one.i),
                  "message " + llvm::Twine(one.i) + " of " +
                      llvm::Twine(one.from));
        }
      };
      for (int i = 0; i < kMessages; ++i) {
        for (int64_t step = 1; step < kRanks; ++step) {
          int64_t to = (member.rank + step) % kRanks,
                  from = (member.rank + kRanks - step) % kRanks;
          int64_t tag = 10 * thread + i % 3;
          kept.push_back(pattern(sizeOf(member.rank, to, i, thread),
                                 member.rank * 1000 + i));
          begun.push_back({mail.isend(to, kept.back(), tag), nullptr, 0, i});
          kept.emplace_back(sizeOf(from, member.rank, i, thread));
          begun.push_back(
              {mail.irecv(from, kept.back(), tag), &kept.back(), from, i});
        }
        if (random() % 4 == 0)
          settle(random() % 30);
      }
      settle(0);
    };
    std::thread second(work, 1);
    work(0);
    second.join();
  });
}
