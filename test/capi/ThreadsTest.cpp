//===- ThreadsTest.cpp - Several threads in one group ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are threads of this process, and each has several threads that call its
// group, so that ThreadSanitizer sees both sides of every access.
// docs/Groups.md explains how to run it.
//
//===----------------------------------------------------------------------===//

#include "test/capi/Ranks.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace commsir::test;

namespace {

/// A window of 64 floats, and a cell.
struct Window {
  explicit Window(commsir_group *group) : group(group) {
    expectOk(commsir_window_allocate(group, 256, &base));
    expectOk(commsir_signals_reserve(group, 2, &cell));
  }
  commsir_status wait(int64_t value, int64_t source, int64_t which = 0,
                      double timeout = 0) const {
    return commsir_wait_signal(group, cell + which, COMMSIR_WAIT_GE, value,
                               source, timeout, nullptr);
  }
  commsir_status signal(int64_t peer, int64_t value, int64_t which = 0) const {
    return commsir_signal(group, peer, cell + which, COMMSIR_SIGNAL_SET, value,
                          nullptr);
  }
  commsir_status putSignal(int64_t peer, const float *from,
                           int64_t value) const {
    return commsir_put_signal(group, peer, base, from, 256, cell,
                              COMMSIR_SIGNAL_SET, value, nullptr);
  }
  commsir_group *const group;
  void *base = nullptr;
  int64_t cell = 0;
};

constexpr char kKernel[] = R"(
comms.kernel @total(%x: memref<64xf32>, %y: memref<64xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  comms.return
}
)";

} // namespace

//===----------------------------------------------------------------------===//
// Calls that take turns
//===----------------------------------------------------------------------===//

TEST(Threads, Collectives) {
  runRanks(2, [](int64_t, commsir_group *group) {
    {
      Threads threads;
      for (int i = 0; i < 3; ++i)
        threads.run([&] {
          for (int k = 0; k < 20; ++k)
            addUp(group, 100, 2);
        });
    }
    commsir_group_destroy(group);
  });
}

TEST(Threads, SizesOfOneRank) {
  runRanks(1, [](int64_t, commsir_group *group) {
    {
      Threads threads;
      for (size_t size : {10, 1000})
        threads.run([&, size] {
          for (int k = 0; k < 100; ++k)
            addUp(group, size + k % 7, 1);
        });
    }
    commsir_group_destroy(group);
  });
}

TEST(Threads, LaunchesOfOneKernel) {
  runRanks(2, [](int64_t, commsir_group *group) {
    commsir_kernel *kernel = nullptr, *again = nullptr;
    expectOk(commsir_group_kernel(group, kKernel, "", "", &kernel));
    expectOk(commsir_group_kernel(group, kKernel, "", "", &again));
    EXPECT_EQ(kernel, again);
    {
      Threads threads;
      for (int i = 0; i < 3; ++i)
        threads.run([&] {
          for (int k = 0; k < 20; ++k) {
            std::vector<float> x(64, 1), y(64);
            commsir_argument arguments[] = {{x.data(), 256}, {y.data(), 256}};
            expectOk(commsir_kernel_launch(kernel, arguments, 2, nullptr));
            EXPECT_EQ(y[63], 2);
          }
        });
    }
    commsir_group_destroy(group);
    expectError(commsir_kernel_launch(kernel, nullptr, 0, nullptr),
                COMMSIR_ABORTED, "the group is closed");
    EXPECT_EQ(commsir_kernel_describe(kernel), nullptr);
  });
}

TEST(Threads, WindowsAreMadeAndReleased) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    {
      std::atomic<bool> isOver{false};
      Threads threads;
      threads.run([&] {
        while (!isOver) {
          int local = 0;
          EXPECT_EQ(commsir_window_contains(group, &local, 4), 0);
          commsir_free(commsir_group_stats(group));
          expectOk(commsir_group_poll(group));
        }
      });
      for (int k = 0; k < 20; ++k) {
        void *base = nullptr;
        expectOk(commsir_window_allocate(group, 1000 + k, &base));
        EXPECT_NE(commsir_window_peer(group, base, 1 - rank), nullptr);
        expectOk(commsir_window_release(group, base));
      }
      isOver = true;
    }
    addUp(group, 8, 2);
    commsir_group_destroy(group);
  });
}

/// Groups do not wait for each other; their kernels are compiled at once.
TEST(Threads, SeveralGroups) {
  Threads threads;
  for (int i = 0; i < 3; ++i)
    threads.run([i] {
      std::string name = "group-" + std::to_string(i);
      auto body = [i](int64_t, commsir_group *group) {
        for (int k = 0; k < 5; ++k)
          addUp(group, 70 + 400 * i, 2);
        commsir_group_destroy(group);
      };
      runRanks(2, body, 60, name.c_str());
    });
}

//===----------------------------------------------------------------------===//
// Calls in parallel with others
//===----------------------------------------------------------------------===//

/// A thread that waits keeps no collective waiting: its signal may come after
/// that.
TEST(Threads, WaitsDuringCollectives) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    Window window(group);
    int64_t peer = 1 - rank;
    {
      Threads threads;
      threads.run([&] {
        for (int64_t k = 1; k <= 20; ++k) {
          expectOk(window.wait(k, peer));
          EXPECT_EQ(static_cast<float *>(window.base)[63], float(k));
          expectOk(window.signal(peer, k, 1));
        }
      });
      threads.run([&] {
        for (int64_t k = 1; k <= 20; ++k) {
          std::vector<float> data(64, float(k));
          expectOk(window.putSignal(peer, data.data(), k));
          expectOk(window.wait(k, peer, 1));
        }
      });
      for (int k = 0; k < 30; ++k)
        addUp(group, 100, 2);
    }
    expectOk(commsir_signals_release(group, window.cell));
    expectOk(commsir_window_release(group, window.base));
    commsir_group_destroy(group);
  });
}

TEST(Threads, ReleaseEndsWaits) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    Window window(group);
    {
      Threads threads;
      if (rank == 0)
        threads.run(
            [&] { expectError(window.wait(1, 1), COMMSIR_USAGE, "released"); });
      sleepFor(rank == 0 ? 0.1 : 0);
      expectOk(commsir_signals_release(group, window.cell));
    }
    expectError(window.signal(1 - rank, 1), COMMSIR_USAGE, "was released");
    expectError(window.wait(1, 1 - rank), COMMSIR_USAGE, "was released");
    commsir_group_destroy(group);
  });
}

/// Threads put to windows that go; they never touch what is gone.
TEST(Threads, PutsToReleasedWindows) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    for (int k = 0; k < 10; ++k) {
      Window window(group);
      std::atomic<int64_t> puts{0};
      Threads threads;
      threads.run([&] {
        std::vector<float> data(64, 1);
        while (window.putSignal(1 - rank, data.data(), 1) == COMMSIR_OK)
          ++puts;
        std::string why = commsir_error_message();
        EXPECT_TRUE(why.find("released") != std::string::npos ||
                    why.find("do not lie in one window") != std::string::npos)
            << why;
      });
      while (!puts)
        std::this_thread::yield();
      expectOk(commsir_window_release(group, window.base));
      expectOk(commsir_signals_release(group, window.cell));
    }
    addUp(group, 8, 2);
    commsir_group_destroy(group);
  });
}

/// Watchdogs see and end a call that waits for a rank that does not come.
TEST(Threads, AbortDuringACollective) {
  std::atomic<bool> isAborted{false};
  runRanks(2, [&](int64_t rank, commsir_group *group) {
    if (rank == 1) {
      while (!isAborted)
        sleepFor(0.01);
      commsir_group_destroy(group);
      return;
    }
    {
      Threads threads;
      for (int i = 0; i < 2; ++i)
        threads.run([&] {
          std::vector<float> data(8);
          expectError(allReduce(group, data), COMMSIR_ABORTED, "for a reason");
        });
      sleepFor(0.1);
      expectOk(commsir_group_poll(group));
      expectOk(commsir_group_set_timeout(group, 30));
      char *stats = commsir_group_stats(group);
      EXPECT_NE(stats, nullptr);
      commsir_free(stats);
      EXPECT_EQ(commsir_group_ended(group), nullptr);
      expectOk(commsir_group_abort(group, "for a reason"));
    }
    isAborted = true;
    char *why = commsir_group_ended(group);
    EXPECT_NE(why, nullptr);
    commsir_free(why);
    commsir_group_destroy(group);
  });
}

static commsir_group *asked = nullptr;
static std::atomic<int> nested{0};

/// A function that the library calls makes a call of the same group.
TEST(Threads, CallWithinACall) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    if (rank == 1) {
      sleepFor(0.3);
      addUp(group, 8, 2);
      commsir_group_destroy(group);
      return;
    }
    static thread_local bool isAsker = false;
    isAsker = true;
    asked = group;
    nested = 0;
    auto ask = [] {
      if (!isAsker || nested++)
        return 0;
      std::vector<float> data(8);
      expectError(allReduce(asked, data), COMMSIR_USAGE,
                  "this thread is in a call of the group already");
      expectOk(commsir_group_poll(asked));
      return 0;
    };
    commsir_set_interrupt(ask);
    addUp(group, 8, 2);
    commsir_set_interrupt(nullptr);
    EXPECT_GT(nested, 0);
    isAsker = false;
    commsir_group_destroy(group);
  });
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

TEST(Threads, CloseEndsWaits) {
  std::atomic<bool> isClosed{false};
  runRanks(2, [&](int64_t rank, commsir_group *group) {
    Window window(group);
    if (rank == 1) {
      while (!isClosed)
        sleepFor(0.01);
      commsir_group_destroy(group);
      return;
    }
    {
      Threads threads;
      threads.run(
          [&] { expectError(window.wait(1, 1), COMMSIR_ABORTED, "closed"); });
      sleepFor(0.1);
      auto begun = std::chrono::steady_clock::now();
      commsir_group_close(group);
      EXPECT_LT(Seconds(std::chrono::steady_clock::now() - begun).count(), 4);
    }
    isClosed = true;
    expectError(window.signal(1, 1), COMMSIR_ABORTED, "the group is closed");
    commsir_group_destroy(group);
    commsir_group_destroy(group);
    expectError(commsir_group_poll(group), COMMSIR_ABORTED,
                "the group is closed");
  });
}

/// A collective that peers come to ends well, though its group is destroyed;
/// one that queues behind it does not begin.
TEST(Threads, DestroyDuringCollectives) {
  std::atomic<bool> isEnding{false};
  runRanks(2, [&](int64_t rank, commsir_group *group) {
    addUp(group, 8, 2); // Compiles.
    if (rank == 1) {
      while (!isEnding)
        sleepFor(0.01);
      sleepFor(0.5);
      addUp(group, 8, 2);
      commsir_group_destroy(group);
      return;
    }
    Threads threads;
    threads.run([&] { addUp(group, 8, 2); });
    sleepFor(0.2);
    threads.run([&] {
      std::vector<float> data(8);
      expectError(allReduce(group, data), COMMSIR_ABORTED, "closed");
    });
    sleepFor(0.2);
    isEnding = true;
    commsir_group_destroy(group);
  });
}

/// Threads that call without end see the group go.
TEST(Threads, CallsUntilTheEnd) {
  for (bool drops : {false, true})
    runRanks(1, [drops](int64_t, commsir_group *group) {
      std::atomic<int64_t> calls{0};
      Threads threads;
      for (int i = 0; i < 2; ++i)
        threads.run([&] {
          std::vector<float> data(8);
          while (allReduce(group, data) == COMMSIR_OK)
            ++calls;
          std::string why = commsir_error_message();
          EXPECT_NE(why.find("closed"), std::string::npos) << why;
        });
      threads.run([&] {
        while (commsir_group_poll(group) == COMMSIR_OK)
          ++calls;
      });
      while (calls < 100)
        std::this_thread::yield();
      if (drops)
        commsir_group_drop(group);
      else
        commsir_group_destroy(group);
    });
}

/// Sends ten messages, and receives as many.
static void exchange(commsir_p2p *p2p, int64_t peer, int64_t tag) {
  std::vector<char> out(100, char(tag)), in(100);
  commsir_message sent = {sizeof sent, peer, tag, out.data(), 100, "100"};
  commsir_message received = {sizeof received, peer, tag,
                              in.data(),       100,  "100"};
  for (int k = 0; k < 10; ++k) {
    commsir_transfer *send = nullptr, *receive = nullptr;
    expectOk(commsir_p2p_send(p2p, &sent, &send));
    expectOk(commsir_p2p_receive(p2p, &received, &receive));
    expectOk(commsir_transfer_wait(send, 20));
    expectOk(commsir_transfer_wait(receive, 20));
    EXPECT_EQ(in, out);
    commsir_transfer_free(send);
    commsir_transfer_free(receive);
  }
}

TEST(Threads, DestroyDuringReceives) {
  MapStore store;
  commsir_store face = store.face();
  Threads ranks;
  for (int64_t rank = 0; rank < 2; ++rank)
    ranks.run([&, rank] {
      commsir_p2p *p2p = nullptr;
      expectOk(commsir_p2p_create("mail", rank, 2, &face, &p2p));
      commsir_transfer *transfer = nullptr;
      std::vector<char> none(100);
      commsir_message never = {sizeof never, 1 - rank, 7,
                               none.data(),  100,      "100"};
      {
        std::atomic<int> begun{0};
        Threads threads;
        for (int64_t tag = 0; tag < 2; ++tag)
          threads.run([&, tag] {
            exchange(p2p, 1 - rank, tag);
            std::vector<char> data(100);
            commsir_message message = {sizeof message, 1 - rank, 7,
                                       data.data(),    100,      "100"};
            commsir_transfer *receive = nullptr;
            expectOk(commsir_p2p_receive(p2p, &message, &receive));
            ++begun;
            EXPECT_NE(commsir_transfer_wait(receive, 20), COMMSIR_OK);
            commsir_transfer_free(receive);
          });
        while (begun < 2)
          std::this_thread::yield();
        expectOk(commsir_p2p_destroy(p2p));
      }
      expectError(commsir_p2p_receive(p2p, &never, &transfer), COMMSIR_ABORTED,
                  "another thread has destroyed it");
    });
}

namespace {

/// Runs `body` with the messages of each rank.
void runMessages(int64_t ranks,
                 const std::function<void(int64_t rank, commsir_p2p *)> &body) {
  MapStore store;
  commsir_store face = store.face();
  std::atomic<int64_t> made{0};
  Threads threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.run([&, rank] {
      commsir_p2p *p2p = nullptr;
      expectOk(commsir_p2p_create("mail", rank, ranks, &face, &p2p));
      for (++made; made < ranks;)
        std::this_thread::yield();
      commsir_p2p_confirm(p2p);
      body(rank, p2p);
      commsir_p2p_leave(p2p, 0.5);
      commsir_p2p_destroy(p2p);
    });
}

/// Of a message from one rank to another: small, or larger than a ring holds.
size_t sizeOf(int64_t from, int64_t to, int64_t tag, int round) {
  auto number = size_t(from * 7919 + to * 104729 + tag * 31 + round);
  return number % 97 * (round % 9 == 0 ? 19001 : 13) + 1;
}

/// Messages of many sizes to and from all other ranks, under way together.
/// Returns whether all went well.
bool sendAround(commsir_p2p *p2p, int64_t rank, int64_t ranks, int64_t tag) {
  bool good = true;
  for (int round = 0; round < 30 && good; ++round) {
    std::vector<std::vector<char>> kept;
    std::vector<commsir_transfer *> underWay;
    for (int64_t other = 0; other < ranks; ++other) {
      if (other == rank)
        continue;
      for (bool sends : {true, false}) {
        auto &data = kept.emplace_back(sends ? sizeOf(rank, other, tag, round)
                                             : sizeOf(other, rank, tag, round),
                                       sends ? char(rank + round) : 0);
        std::string what = std::to_string(data.size());
        commsir_message message = {sizeof message, other,       tag,
                                   data.data(),    data.size(), what.c_str()};
        commsir_transfer *made = nullptr;
        good &=
            (sends ? commsir_p2p_send(p2p, &message, &made)
                   : commsir_p2p_receive(p2p, &message, &made)) == COMMSIR_OK;
        if (made)
          underWay.push_back(made);
      }
    }
    for (commsir_transfer *one : underWay) {
      good &= commsir_transfer_wait(one, 20) == COMMSIR_OK;
      commsir_transfer_free(one);
    }
    size_t next = 0;
    for (int64_t other = 0; other < ranks && good; ++other) {
      if (other == rank)
        continue;
      const std::vector<char> &got = kept[2 * next++ + 1];
      EXPECT_EQ(got.front(), char(other + round));
      EXPECT_EQ(got.back(), char(other + round));
    }
  }
  return good;
}

} // namespace

TEST(Threads, MessagesOfManySizes) {
  runMessages(3, [](int64_t rank, commsir_p2p *p2p) {
    Threads threads;
    for (int64_t tag = 0; tag < 2; ++tag)
      threads.run([=] { EXPECT_TRUE(sendAround(p2p, rank, 3, tag)); });
  });
}

TEST(Threads, AbortDuringMessages) {
  for (int milliseconds : {0, 3, 11})
    runMessages(3, [=](int64_t rank, commsir_p2p *p2p) {
      Threads threads;
      for (int64_t tag = 0; tag < 2; ++tag)
        threads.run([=] { sendAround(p2p, rank, 3, tag); });
      if (rank == 0) {
        sleepFor(milliseconds * 1e-3);
        commsir_p2p_abort(p2p, "a test");
      }
    });
}

/// Ranks that disagree meet again, while puts and signals go on.
TEST(Threads, DisagreementsDuringSignals) {
  runRanks(3, [](int64_t rank, commsir_group *group) {
    {
      Window window(group);
      std::atomic<bool> over{false};
      Threads threads;
      threads.run([&] {
        std::vector<float> data(64, 1);
        // To a rank that has failed, until it is back, there is no way.
        for (int64_t value = 1; !over; ++value)
          window.putSignal((rank + 1) % 3, data.data(), value);
      });
      for (int round = 0; round < 20; ++round) {
        std::vector<float> data(round % 4 == rank ? 100 : 101, 1);
        commsir_status status = allReduce(group, data);
        EXPECT_EQ(status == COMMSIR_OK, round % 4 == 3);
      }
      over = true;
    }
    commsir_group_destroy(group);
  });
}
