//===- EntryLock.cpp - The lock of a cache entry --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/EntryLock.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;

EntryLock::EntryLock(const OwnFolder &folder, std::string name, double patience)
    : folder(folder), name(std::move(name)) {
  wait(patience);
}

EntryLock::~EntryLock() {
  if (!file)
    return;
  // While it is held: a process that waits for it then sees that it is gone.
  folder.remove(name);
  ::flock(file.get(), LOCK_UN);
}

EntryLock::Attempt EntryLock::attempt() {
  std::string why;
  Descriptor opened = folder.openFile(name, O_RDWR | O_CREAT, why);
  if (!opened)
    return Attempt::Impossible;
  if (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK || errno == EINTR ? Attempt::Busy
                                                  : Attempt::Impossible;
  // The process before us may have removed the file that we opened.
  struct stat ours, there;
  if (::fstat(opened.get(), &ours) != 0 ||
      ::fstatat(folder.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
      ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)
    return Attempt::Busy;
  file = std::move(opened);
  return Attempt::Held;
}

void EntryLock::wait(double patience) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::duration<double>(patience);
  auto pause = std::chrono::microseconds(200);
  while (attempt() == Attempt::Busy) {
    if (Clock::now() >= end) {
      late = true;
      return;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}
