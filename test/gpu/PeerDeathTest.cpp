//===- PeerDeathTest.cpp - GPU ranks that die or lie at any step ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Over the driver of FakeCuda.cpp. Ranks are processes, which see of each other
// what they write: a step is a `set` of the store, or a call of connect,
// accept4, send or sendmsg, which this file replaces. One rank of three or four
// dies, or sends something false, at its n-th step: while ranks connect,
// exchange memory, or agree on plans. Each other rank ends within its time
// limit, in an error that names it and blames no other rank.
// COMMSIR_PEER_DEATHS=1: every step, which takes minutes.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Group.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "test/gpu/Child.h"

#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;

namespace {

enum class Fault {
  None,
  Kill,    // before the step
  Exit,    // before the step
  KillNow, // after the step
  Noise,   // from here on what is sent is of the right length
  Cut,     // half of the message
  Empty,   // a header only
  Lengths, // a header with lengths that the message does not have
  Text,    // another text
  NoFile,  // without the file that it carries
  OddFile, // with another file
};

constexpr Fault kDeaths[] = {Fault::Kill, Fault::Exit, Fault::KillNow};
constexpr Fault kLies[] = {Fault::Noise,  Fault::Cut,    Fault::Empty,
                           Fault::Text,   Fault::NoFile, Fault::Lengths,
                           Fault::OddFile};

/// Steps of this process, and the one that fails; negative: none does.
std::atomic<int> steps{0};
int failing = -1;
Fault fault = Fault::None;

/// Counts a step. Returns whether it is the one that fails.
bool beginStep() {
  bool fails = steps++ == failing;
  if (fails && fault == Fault::Kill)
    ::raise(SIGKILL);
  if (fails && fault == Fault::Exit)
    _exit(0);
  return fails;
}

long endStep(bool fails, long result) {
  int error = errno;
  if (fails && fault == Fault::KillNow)
    ::raise(SIGKILL);
  errno = error;
  return result;
}

/// What the rank sends in place of `bytes`.
std::string falsify(std::string bytes) {
  constexpr size_t kHeader = 16;
  switch (fault) {
  case Fault::Noise:
    for (char &byte : bytes)
      byte = char(byte * 167 + 13);
    break;
  case Fault::Cut:
    bytes.resize(bytes.size() / 2);
    break;
  case Fault::Empty:
    bytes.resize(std::min(bytes.size(), kHeader));
    break;
  case Fault::Lengths:
    std::fill_n(bytes.begin() + 8, std::min<size_t>(8, bytes.size() - 8),
                '\xf');
    break;
  case Fault::Text:
    std::fill(bytes.begin() + std::min(bytes.size(), kHeader + 12), bytes.end(),
              '\x1b');
    break;
  default:
    break;
  }
  return bytes;
}

/// Sends something else than `message`.
long sendFalse(int socket, const msghdr *message, int flags) {
  std::string bytes;
  for (size_t part = 0; part < message->msg_iovlen; ++part)
    bytes.append(static_cast<const char *>(message->msg_iov[part].iov_base),
                 message->msg_iov[part].iov_len);
  bytes = falsify(std::move(bytes));
  iovec whole{bytes.data(), bytes.size()};
  msghdr other = *message;
  other.msg_iov = &whole;
  other.msg_iovlen = 1;
  int odd = fault == Fault::OddFile ? ::open("/dev/null", O_RDONLY) : -1;
  if (fault == Fault::NoFile)
    other.msg_control = nullptr, other.msg_controllen = 0;
  else if (odd >= 0 && other.msg_control)
    std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&other)), &odd, sizeof(odd));
  return syscall(SYS_sendmsg, socket, &other, flags);
}

} // namespace

// The C library's, counted.
extern "C" {
int connect(int socket, const sockaddr *address, socklen_t bytes) {
  bool fails = beginStep();
  return int(endStep(fails, syscall(SYS_connect, socket, address, bytes)));
}

int accept4(int socket, sockaddr *address, socklen_t *bytes, int flags) {
  bool fails = beginStep();
  return int(
      endStep(fails, syscall(SYS_accept4, socket, address, bytes, flags)));
}

ssize_t send(int socket, const void *data, size_t bytes, int flags) {
  bool fails = beginStep();
  return endStep(fails,
                 syscall(SYS_sendto, socket, data, bytes, flags, nullptr, 0));
}

ssize_t sendmsg(int socket, const msghdr *message, int flags) {
  bool fails = beginStep();
  return endStep(fails, fails ? sendFalse(socket, message, flags)
                              : syscall(SYS_sendmsg, socket, message, flags));
}
}

namespace {

/// A store whose `set` is a step.
class CountedStore : public Store {
public:
  explicit CountedStore(const std::string &folder)
      : store(llvm::cantFail(createFileStore(folder))) {}
  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override {
    bool fails = beginStep();
    llvm::Error error = store->set(key, value);
    endStep(fails, 0);
    return error;
  }
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  double timeout) override {
    return store->get(key, timeout);
  }

private:
  std::unique_ptr<Store> store;
};

constexpr size_t kBytes = 24 * sizeof(float);
constexpr double kTimeout = 5;
/// Beyond the time limit, on a busy machine.
constexpr double kSlack = 20;

KernelRequest request(const char *name) {
  KernelRequest made;
  made.source = std::string("comms.kernel @") + name + R"((
      %x: !comms.window<24xf32>, %y: !comms.window<24xf32>) {
    %team = comms.team world
    comms.all_reduce sum %team ins(%x : !comms.window<24xf32>)
      outs(%y : !comms.window<24xf32>)
    comms.return
  })";
  made.algorithm = "one_shot";
  made.protocol = "pull";
  made.blocks = 1;
  made.threads = 64;
  return made;
}

/// What a rank does; "" or the first error. `known` is called when all that
/// fails has failed.
std::string live(const std::string &folder, int rank, int ranks,
                 const std::function<void()> &known) {
  CountedStore store(folder);
  GroupOptions options;
  options.rank = rank;
  options.ranks = ranks;
  options.device = rank;
  options.timeout = kTimeout;
  options.windows = "plain";
  auto group = createCudaGroup(options, store);
  if (!group)
    return llvm::toString(group.takeError());
  auto one = (*group)->prepare(request("one"));
  if (!one)
    return llvm::toString(one.takeError());
  Argument arguments[2];
  for (Argument &argument : arguments) {
    auto window = (*group)->allocate(kBytes);
    if (!window)
      return llvm::toString(window.takeError());
    std::memset(*window, 0, kBytes);
    argument = {*window, kBytes};
  }
  for (int launch = 0; launch < 2; ++launch) {
    if (auto error = (*group)->launch(**one, arguments, nullptr))
      return llvm::toString(std::move(error));
    if (auto error = (*group)->poll())
      return llvm::toString(std::move(error));
  }
  if (auto error = (*group)->release(arguments[1].data))
    return llvm::toString(std::move(error));
  known();
  // Takes all ranks.
  auto two = (*group)->prepare(request("two"));
  return two ? "" : llvm::toString(two.takeError());
}

struct Ended {
  std::string said;
  int steps = 0, status = 0;
  double seconds = 0;
};

class PeerDeath : public testing::Test {
protected:
  void SetUp() override {
    setenv("COMMSIR_FAKE_GPUS", "4", 1);
    setenv("COMMSIR_FAKE_KERNEL", "exchange 24", 1);
    // One folder for all tests: each compiles what the others have not.
    std::string cache = testing::TempDir() + "/commsir-group-cache";
    setenv("COMMSIR_CACHE_DIR", cache.c_str(), 1);
    isWhole = std::getenv("COMMSIR_PEER_DEATHS") != nullptr;
  }

  /// Runs a group whose rank `bad` fails at `step`.
  static std::vector<Ended> run(int ranks, int bad, Fault what, int step) {
    llvm::SmallString<128> folder;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("commsir-dead", folder));
    std::vector<test::Child> started;
    for (int rank = 0; rank < ranks; ++rank)
      started.push_back(test::Child::start([&, rank](int) {
        return be(rank, ranks, rank == bad ? what : Fault::None, step,
                  folder.str().str());
      }));
    std::vector<Ended> result(ranks);
    for (auto [child, ended] : llvm::zip(started, result)) {
      test::Ended end = child.wait();
      ended.status = end.status;
      int at = 0;
      if (sscanf(end.said.c_str(), "%d %lf\n%n", &ended.steps, &ended.seconds,
                 &at) == 2)
        ended.said = end.said.substr(end.said.find('\n') + 1);
    }
    llvm::sys::fs::remove_directories(folder);
    return result;
  }

  /// Each rank but `bad` ends in time. Its error, which a death must cause,
  /// names `bad` and blames no other rank.
  static void check(const std::vector<Ended> &all, int bad, bool mustFail) {
    for (auto [rank, ended] : llvm::enumerate(all)) {
      if (int(rank) == bad)
        continue;
      SCOPED_TRACE("rank " + std::to_string(rank) + ": " + ended.said);
      EXPECT_EQ(ended.status, 0);
      EXPECT_LT(ended.seconds, kTimeout + kSlack);
      EXPECT_TRUE(!ended.said.empty() || !mustFail) << "there is no error";
      if (ended.said.empty())
        continue;
      llvm::StringRef text = ended.said;
      EXPECT_TRUE(text.contains("rank " + std::to_string(bad)))
          << "the guilty rank is not named";
      for (size_t other = 0; other < all.size(); ++other)
        if (int(other) != bad)
          for (const char *blame :
               {" is not there: it has left", " is not there: its process",
                " to come, and", ", which does not listen", ", which has not",
                " sent", " has sent"})
            EXPECT_FALSE(text.contains("rank " + std::to_string(other) + blame))
                << "another rank is blamed";
    }
  }

  /// Every fault at every step, or at some steps.
  void attack(int ranks, llvm::ArrayRef<Fault> faults, bool mustFail,
              int stride) {
    std::vector<Ended> well = run(ranks, -1, Fault::None, 0);
    for (const Ended &ended : well) {
      ASSERT_EQ(ended.said, "");
      ASSERT_GT(ended.steps, 20 * (ranks - 1));
    }
    int count = 0;
    for (int bad = 0; bad < ranks; ++bad)
      for (int step = 0; step < well[bad].steps; ++step)
        for (Fault what : faults) {
          // Ranks wait as long as they may for one that does not connect.
          int every = step > ranks + 1 ? stride : 64 * stride;
          if (count++ % every && !isWhole)
            continue;
          SCOPED_TRACE("rank " + std::to_string(bad) + " of " +
                       std::to_string(ranks) + ", step " +
                       std::to_string(step) + ", fault " +
                       std::to_string(int(what)));
          check(run(ranks, bad, what, step), bad, mustFail);
        }
  }

  bool isWhole = false;

private:
  static std::string be(int rank, int ranks, Fault what, int step,
                        const std::string &folder) {
    ::alarm(60);
    steps = 0;
    fault = what;
    failing = what == Fault::None ? -1 : step;
    int known = 0;
    auto start = std::chrono::steady_clock::now();
    std::string said = live(folder, rank, ranks, [&] {
      known = steps;
      if (fault == Fault::Kill || fault == Fault::Exit ||
          fault == Fault::KillNow)
        ::raise(SIGKILL);
    });
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    return std::to_string(known) + " " + std::to_string(took.count()) + "\n" +
           said;
  }
};

} // namespace

TEST_F(PeerDeath, AtEachStep) {
  attack(3, kDeaths, /*mustFail=*/true, 31);
  attack(4, kDeaths, /*mustFail=*/true, 71);
}

TEST_F(PeerDeath, FalseMessages) {
  attack(3, kLies, /*mustFail=*/false, 83);
  attack(4, kLies, /*mustFail=*/false, 211);
}
