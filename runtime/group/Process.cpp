//===- Process.cpp - Other processes of this host -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Process.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace commsir;

std::string group::describeHost() {
  std::string text;
  if (auto id = llvm::MemoryBuffer::getFile("/proc/sys/kernel/random/boot_id"))
    text = (*id)->getBuffer().trim().str();
  char link[64];
  ssize_t length = ::readlink("/proc/self/ns/pid", link, sizeof link);
  if (length > 0)
    text += " " + std::string(link, length);
  return text;
}

unsigned group::countForks() {
  static std::atomic<unsigned> count{0};
  static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { ++count; });
  (void)watched;
  return count.load(std::memory_order_relaxed);
}

void group::forgetWaiters(std::condition_variable &changed) {
  new (&changed) std::condition_variable();
}

int group::openProcess(int process) {
  return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
}

static bool isReadable(int file) {
  pollfd look = {file, POLLIN, 0};
  return ::poll(&look, 1, 0) == 1;
}

bool group::hasEnded(int process, int file) {
  if (file >= 0)
    return isReadable(file);
  int opened = openProcess(process);
  if (opened <
      0) // Of kernels without such files a dead child lives on, unread.
    return errno == ESRCH || (::kill(process, 0) != 0 && errno == ESRCH);
  bool ended = isReadable(opened);
  ::close(opened);
  return ended;
}

/// Returns how a process has ended, as wait() reports it; -1 if that is no
/// longer known.
static int findStatus(int process, int file) {
  // Who has not been waited for is still to be seen.
  if (auto stat = llvm::MemoryBuffer::getFileAsStream(
          "/proc/" + std::to_string(process) + "/stat")) {
    llvm::StringRef text = (*stat)->getBuffer().trim();
    llvm::StringRef rest = text.substr(text.rfind(')') + 1).ltrim();
    int status = -1;
    if ((rest.starts_with("Z") || rest.starts_with("X")) &&
        !rest.rsplit(' ').second.getAsInteger(10, status))
      return status;
  }
  // As linux/pidfd.h of 6.15 has it: PIDFD_GET_INFO, with PIDFD_INFO_EXIT.
  struct {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t status;
  } info = {1 << 3, 0, {}, 0};
  static_assert(sizeof info == 64);
  if (file >= 0 && ::ioctl(file, _IOWR(0xFF, 11, info), &info) == 0 &&
      info.mask & (1 << 3))
    return info.status;
  return -1;
}

std::string group::describeDeath(int process, int file) {
  int status = findStatus(process, file);
  std::string how;
  if (status >= 0 && WIFSIGNALED(status))
    how = ", by signal " + std::to_string(WTERMSIG(status)) + " (" +
          ::strsignal(WTERMSIG(status)) + ")";
  else if (status >= 0)
    how = ", with exit status " + std::to_string(WEXITSTATUS(status));
  return "(process " + std::to_string(process) + ") has died" + how;
}
