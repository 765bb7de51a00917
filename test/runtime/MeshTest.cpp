//===- MeshTest.cpp - Connections of a mesh under attack ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Abstract Unix sockets have no permissions: any user of the host can listen
// under a free name, and can connect to any name.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include "runtime/cuda/Mesh.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

using namespace commsir;
using Clock = std::chrono::steady_clock;

namespace {

class MemoryStore : public commsir::group::Store {
public:
  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override {
    std::lock_guard lock(mutex);
    values[key.str()] = value.str();
    changed.notify_all();
    return llvm::Error::success();
  }
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  double timeout) override {
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, std::chrono::duration<double>(timeout),
                         [&] { return values.count(key.str()) != 0; }))
      return values[key.str()];
    return llvm::createStringError("no " + key);
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
};

struct Address {
  sockaddr_un address = {};
  socklen_t bytes = 0;
  explicit Address(llvm::StringRef name)
      : bytes(socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size())) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
  }
  const sockaddr *get() const {
    return reinterpret_cast<const sockaddr *>(&address);
  }
};

int makeSocket() { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }

int listenAt(llvm::StringRef name, int queue) {
  int file = makeSocket();
  Address at(name);
  return ::bind(file, at.get(), at.bytes) == 0 && ::listen(file, queue) == 0
             ? file
             : -1;
}

/// A process of the user `nobody` that runs `body` until this object ends.
class Stranger {
public:
  explicit Stranger(llvm::function_ref<void()> body) : child(::fork()) {
    if (child != 0)
      return;
    ::alarm(60);
    if (::setgid(65534) == 0 && ::setuid(65534) == 0)
      body();
    ::_exit(0);
  }
  ~Stranger() {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

private:
  pid_t child;
};

struct MeshTest : testing::Test {
  /// What connecting said; "" if it went well. It may not take long.
  std::string connect(int rank, double timeout) {
    auto begun = Clock::now();
    auto mesh = cuda::Mesh::connect(store, "g", rank, 2, timeout);
    EXPECT_LT(Clock::now() - begun, std::chrono::duration<double>(timeout + 5));
    return mesh ? "" : llvm::toString(mesh.takeError());
  }
  /// Has rank 0 announced, and another name in place of its own.
  void announce(llvm::StringRef name) {
    connect(0, 0.01);
    std::string said = llvm::cantFail(store.get("g/mesh/0", 0));
    llvm::StringRef host = llvm::StringRef(said).split('\n').first;
    llvm::cantFail(store.set("g/mesh/0", (host + "\n" + name).str()));
  }
  std::string name = "commsir-mesh-test-" + std::to_string(::getpid());
  MemoryStore store;
};

} // namespace

TEST_F(MeshTest, AnotherUserListens) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root becomes another user";
  announce(name);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  Stranger stranger([&] {
    if (listenAt(name, 8) >= 0 && ::write(ready[1], "x", 1) == 1)
      ::pause();
  });
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(connect(1, 5), "rank 1 found another user's process where rank 0 "
                           "should listen");
}

/// Whoever listens, and accepts nobody, is waited for no longer than ranks are.
TEST_F(MeshTest, AFullQueue) {
  announce(name);
  int listener = listenAt(name, 0);
  ASSERT_GE(listener, 0);
  Address at(name);
  int first = makeSocket();
  ASSERT_EQ(::connect(first, at.get(), at.bytes), 0);
  std::string said = connect(1, 0.5);
  EXPECT_NE(said.find("rank 0, which does not listen"), std::string::npos)
      << said;
  ::close(first);
  ::close(listener);
}

/// Another user connects all the time to the name that /proc/net/unix tells.
TEST_F(MeshTest, AnotherUserConnects) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root becomes another user";
  for (bool comes : {false, true}) {
    std::string said;
    std::thread leader([&] { said = connect(0, comes ? 20 : 1); });
    std::string where;
    for (std::string old = where; where == old || where.empty();)
      where = llvm::cantFail(store.get("g/mesh/0", 5));
    Stranger stranger([&] {
      Address at(llvm::StringRef(where).split('\n').second);
      while (true) {
        int file = makeSocket();
        (void)::connect(file, at.get(), at.bytes);
        ::close(file);
      }
    });
    if (comes)
      EXPECT_EQ(connect(1, 20), "");
    leader.join();
    EXPECT_EQ(said, comes ? ""
                          : "rank 0 waits for rank 1 to come, and the "
                            "time is over");
    llvm::cantFail(store.set("g/mesh/0", ""));
  }
}

//===----------------------------------------------------------------------===//
// A rank that lies
//===----------------------------------------------------------------------===//

namespace {

int countDescriptors() {
  std::error_code error;
  int count = 0;
  for (llvm::sys::fs::directory_iterator at("/proc/self/fd", error), end;
       at != end && !error; at.increment(error))
    ++count;
  return count;
}

/// Rank 1 of two as a bare socket, which sends what it likes.
struct LyingRank : MeshTest {
  void SetUp() override {
    std::string group = "g" + std::to_string(++groups);
    std::thread leader([&] {
      mesh = llvm::cantFail(cuda::Mesh::connect(store, group, 0, 2, 20));
    });
    std::string said = llvm::cantFail(store.get(group + "/mesh/0", 20));
    Address at(llvm::StringRef(said).split('\n').second);
    socket = makeSocket();
    EXPECT_EQ(::connect(socket, at.get(), at.bytes), 0);
    uint32_t hello[] = {kMagic, 1, 2};
    EXPECT_EQ(::send(socket, hello, sizeof hello, 0), ssize_t(sizeof hello));
    leader.join();
  }
  void TearDown() override { ::close(socket); }

  /// A message of step `sequence`, with `files` times the standard input.
  void send(uint32_t sequence, std::string text, size_t files,
            uint32_t whatBytes = 1) {
    uint32_t header[] = {kMagic, sequence, whatBytes,
                         uint32_t(text.size() - 1)};
    text.insert(0, reinterpret_cast<char *>(header), sizeof header);
    iovec part{text.data(), text.size()};
    std::vector<int> given(files, devNull);
    std::vector<char> control(CMSG_SPACE(files * sizeof(int)));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (files) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr *head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(files * sizeof(int));
      std::memcpy(CMSG_DATA(head), given.data(), files * sizeof(int));
    }
    EXPECT_EQ(::sendmsg(socket, &message, 0), ssize_t(text.size()));
  }
  /// What rank 0 says of an exchange of files.
  std::string exchange() {
    auto files = mesh->exchange("w", cuda::File(::dup(devNull)), 1);
    return files ? "" : llvm::toString(files.takeError());
  }

  static constexpr uint32_t kMagic = 0x43495231;
  int groups = 0, socket = -1,
      devNull = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::unique_ptr<cuda::Mesh> mesh;
};

} // namespace

/// As many as the control data of one file has space for, and more.
TEST_F(LyingRank, SendsManyFiles) {
  for (size_t files : {0, 2, 3, 250}) {
    int before = countDescriptors();
    send(1, "w", files);
    EXPECT_EQ(exchange(), files ? "rank 1 sent several files at once"
                                : "rank 1 sent no file");
    EXPECT_EQ(countDescriptors(), before);
    TearDown();
    SetUp();
  }
}

TEST_F(LyingRank, SendsAnUnrequestedFile) {
  int before = countDescriptors();
  send(1, "w", 1);
  auto texts = mesh->all("w", "", 1);
  ASSERT_TRUE(bool(texts)) << llvm::toString(texts.takeError());
  EXPECT_EQ(countDescriptors(), before);
}

TEST_F(LyingRank, ThisProcessHasNoDescriptorsLeft) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  send(1, "w", 1);
  rlimit few{std::min<rlim_t>(old.rlim_cur, 256), old.rlim_max};
  cuda::File mine(::dup(devNull));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  // The limit is of numbers, and there may be free ones below it.
  std::vector<cuda::File> others;
  for (int next = ::dup(devNull); next >= 0; next = ::dup(devNull))
    others.emplace_back(next);
  auto files = mesh->exchange("w", mine, 1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  ASSERT_FALSE(bool(files));
  std::string said = llvm::toString(files.takeError());
  EXPECT_NE(said.find("rank 0 cannot open the file that rank 1 sent"),
            std::string::npos)
      << said;
}

TEST_F(LyingRank, SendsInvalidMessages) {
  send(1, "w", 1, /*whatBytes=*/0xffffffff);
  EXPECT_EQ(exchange(), "rank 1 sent an invalid message");
}

/// It answers each step without reading, until its queue is full.
TEST_F(LyingRank, ReadsNothing) {
  std::string said, text(32 << 10, 'x');
  auto begun = Clock::now();
  for (uint32_t step = 1; step < 1000 && said.empty(); ++step) {
    send(step, "w", 0);
    auto texts = mesh->all("w", text, 0.5);
    if (!texts)
      said = llvm::toString(texts.takeError());
  }
  EXPECT_EQ(said, "rank 0 waits for rank 1 to read what it is sent, and the "
                  "time is over");
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds(20));
}
