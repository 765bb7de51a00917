//===- MemoryTest.cpp - Memory that runs out in calls and threads ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operator new fails here from the n-th allocation on, or at the n-th alone, in
// calls of the C API or on the threads behind them. Each n has a process of its
// own, which may neither end by a signal nor hang, and whose errors name
// memory.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "test/FailingNew.h"

#include <atomic>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

using namespace commsir::test;

namespace {

/// Whether allocations of calls fail, or those of the threads behind them.
Fails inCalls = Fails::Never;

/// A call whose allocations may fail. The first error names memory; a rank
/// whose peer then makes no call waits for it in vain.
commsir_status run(const std::function<commsir_status()> &call) {
  static bool isNamed = false;
  Fails before = std::exchange(failsHere, inCalls);
  commsir_status status = call();
  const char *said = commsir_error_message(), *json = commsir_error_json();
  failsHere = before;
  if (status == COMMSIR_OK)
    return status;
  for (const char *text : {said, json})
    if (!isNamed && !std::strstr(text, "memory")) {
      std::printf("an error that does not name memory: %s\n", text);
      std::fflush(stdout);
      std::_Exit(2);
    }
  isNamed = true;
  return status;
}

/// Rank 0 sends more than a ring holds to rank 1, and back.
void exchange() {
  failsHere = Fails::Never;
  MapStore store;
  commsir_store face = store.face();
  commsir_p2p *ranks[2] = {};
  for (int rank = 0; rank < 2; ++rank)
    if (commsir_p2p_create("mail", rank, 2, &face, &ranks[rank]) != COMMSIR_OK)
      std::_Exit(3);
  for (commsir_p2p *one : ranks)
    commsir_p2p_confirm(one);
  std::vector<char> data[2][2];
  std::vector<commsir_transfer *> begun;
  for (int from = 0; from < 2; ++from)
    for (int sends = 0; sends < 2; ++sends) {
      std::vector<char> &bytes = data[from][sends];
      bytes.assign(3 << 20, sends ? char('a' + from) : 0);
      commsir_message message = {sizeof message,
                                 sends ? 1 - from : from,
                                 5,
                                 bytes.data(),
                                 bytes.size(),
                                 "all"};
      commsir_transfer *made = nullptr;
      run([&] {
        auto begin = sends ? commsir_p2p_send : commsir_p2p_receive;
        return begin(ranks[sends ? from : 1 - from], &message, &made);
      });
      if (made)
        begun.push_back(made);
    }
  // Meanwhile the attendants move them.
  if (inCalls == Fails::Never)
    sleepFor(0.01);
  bool isGood = begun.size() == 4;
  for (commsir_transfer *one : begun) {
    bool isLate = !isGood;
    isGood &= run([&] { return commsir_transfer_wait(one, isLate ? 0 : 5); }) ==
              COMMSIR_OK;
    commsir_transfer_free(one);
  }
  for (int from = 0; from < 2 && isGood; ++from)
    if (data[from][0] != data[from][1])
      std::_Exit(4);
  failingNew.left = -1;
  for (commsir_p2p *one : ranks)
    commsir_p2p_destroy(one);
}

/// Runs `body` with each n, until one n is more than it allocates.
void failEach(Fails where, bool once, const std::function<void()> &body) {
  for (long n = 0; n < 2000; n += n < 10 ? 1 : 3) {
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(30);
      inCalls = where;
      failingNew.byDefault = where == Fails::Never;
      failingNew.once = once;
      failingNew.left = n;
      body();
      std::fflush(stdout);
      std::_Exit(failingNew.hasFailed ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status))
        << "signal " << WTERMSIG(status) << " at allocation " << n;
    if (WEXITSTATUS(status) == 1) {
      EXPECT_GT(n, 3);
      return;
    }
    ASSERT_EQ(WEXITSTATUS(status), 0) << "at allocation " << n;
  }
  FAIL() << "it allocates all the time";
}

} // namespace

/// Compiles a kernel for the CPU world, with the checker.
static commsir_status compile() {
  char *result = nullptr;
  commsir_status status = commsir_compile(
      R"({"ranks": 2, "source": "comms.kernel @sum(%x: !comms.window<64xf32>, )"
      R"(%y: memref<64xf32>) { %t = comms.team world comms.all_reduce sum %t )"
      R"(ins(%x : !comms.window<64xf32>) outs(%y : memref<64xf32>) )"
      R"(comms.return }"})",
      &result);
  std::free(result);
  return status;
}

/// An exception passes through frames of LLVM, whose destructors do not run.
/// The call fails and says so. What LLVM keeps for later calls may be damaged.
TEST(Memory, RunsOutWhileKernelsCompile) {
  ASSERT_EQ(compile(), COMMSIR_OK) << commsir_error_message();
  unsigned long before = takenHere;
  compile();
  long all = long(takenHere - before);
  ASSERT_GT(all, 100);
  for (long n = 0; n < all - 20; n += 1 + all / 60)
    for (bool once : {false, true}) {
      pid_t child = fork();
      if (child == 0) {
        alarm(30);
        inCalls = Fails::Always;
        failingNew.once = once;
        failingNew.left = n;
        run(compile);
        std::_Exit(failingNew.hasFailed ? 0 : 1);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << "at allocation " << n << " of " << all;
    }
}

TEST(Memory, RunsOutWhileMessagesMove) {
  for (bool once : {false, true})
    failEach(Fails::Never, once, exchange);
}

TEST(Memory, RunsOutInCallsOfMessages) {
  for (bool once : {false, true})
    failEach(Fails::Always, once, exchange);
}
