//===- Shared.cpp - Sleeping and waking between processes -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Shared.h"

#include <climits>
#include <cstring>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace commsir;

void group::sleepAt(std::atomic<uint32_t> &futex, uint32_t seen, uint32_t bits,
                    int64_t microseconds) {
  // FUTEX_WAIT_BITSET takes a point in time.
  timespec until;
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  int64_t nanoseconds = until.tv_nsec + microseconds * 1000;
  until.tv_sec += nanoseconds / 1000000000;
  until.tv_nsec = nanoseconds % 1000000000;
  ::syscall(SYS_futex, &futex, FUTEX_WAIT_BITSET, seen, &until, nullptr, bits);
}

void group::wakeAt(std::atomic<uint32_t> &futex, uint32_t bits) {
  ::syscall(SYS_futex, &futex, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr,
            bits);
}

void group::putText(char *field, size_t bytes, llvm::StringRef text) {
  text = text.take_front(bytes - 1);
  // Not in the middle of a character.
  while (!text.empty() && text.size() == bytes - 1 &&
         (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
    text = text.drop_back();
  std::memcpy(field, text.data(), text.size());
  field[text.size()] = '\0';
}
