//===- Shared.cpp - Sleeping and waking between processes -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Shared.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/xxhash.h"

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

std::string group::makeReadable(llvm::StringRef text) {
  std::string clean =
      llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text);
  for (char &c : clean)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') ||
        c == '\x7f')
      c = '?';
  return clean;
}

group::RankStatus group::readRankStatus(const std::atomic<RankStatus> &status) {
  RankStatus seen = status.load(std::memory_order_acquire);
  return seen > RankStatus::Aborted ? RankStatus::Damaged : seen;
}

uint64_t group::checkOf(uint64_t number, uint64_t digest,
                        llvm::StringRef text) {
  return llvm::xxh3_64bits(text.split('\0').first) ^
         (digest + number * 0x9e3779b97f4a7c15);
}

llvm::StringRef group::cutText(llvm::StringRef text, size_t bytes) {
  text = text.take_front(bytes - 1);
  // Not in the middle of a character.
  while (!text.empty() && text.size() == bytes - 1 &&
         (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
    text = text.drop_back();
  return text;
}

void group::putText(char *field, size_t bytes, llvm::StringRef text) {
  text = cutText(text, bytes);
  std::memcpy(field, text.data(), text.size());
  field[text.size()] = '\0';
}

template <size_t Bytes>
void group::SharedText<Bytes>::put(llvm::StringRef text) {
  text = cutText(text, Bytes);
  // The zero that ends it is in the last word.
  size_t used = text.size() / sizeof(uint64_t) + 1;
  for (size_t i = 0; i < used; ++i) {
    uint64_t word = 0;
    llvm::StringRef part = text.substr(i * sizeof word, sizeof word);
    std::memcpy(&word, part.data(), part.size());
    words[i].store(word, std::memory_order_relaxed);
  }
}

template <size_t Bytes>
std::string group::SharedText<Bytes>::raw() const {
  std::string text;
  for (const std::atomic<uint64_t> &each : words) {
    uint64_t word = each.load(std::memory_order_relaxed);
    char bytes[sizeof word];
    std::memcpy(bytes, &word, sizeof word);
    size_t length = ::strnlen(bytes, sizeof word);
    text.append(bytes, length);
    if (length < sizeof word)
      break;
  }
  return text;
}

template class group::SharedText<group::kReasonBytes>;
template class group::SharedText<group::kTextBytes>;
template class group::SharedText<group::kNumberBytes>;

const group::Step *group::findStep(const MemberRecord &place, uint64_t number) {
  const group::Step &step = place.steps[number % kSteps];
  return step.number.load(std::memory_order_acquire) == number ? &step
                                                               : nullptr;
}

bool group::isIntact(const Step &step, uint64_t number, uint64_t digest,
                     llvm::StringRef text) {
  return step.check.load(std::memory_order_relaxed) ==
         checkOf(number, digest, text);
}
