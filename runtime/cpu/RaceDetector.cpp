//===- RaceDetector.cpp - Accesses that nothing orders --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/RaceDetector.h"

#include "llvm/ADT/STLExtras.h"

using namespace commsir::cpu;

/// The first range that begins at or behind `at`; one that `at` lies in becomes
/// two.
AccessHistory::Ranges::iterator AccessHistory::split(int64_t at) {
  auto next = ranges.lower_bound(at);
  if (next == ranges.begin() || (next != ranges.end() && next->first == at))
    return next;
  auto before = std::prev(next);
  if (before->second.end <= at)
    return next;
  Range rest = before->second;
  before->second.end = at;
  return ranges.emplace_hint(next, at, std::move(rest));
}

std::optional<Race>
AccessHistory::add(int64_t begin, int64_t end, const Event &event,
                   const Passed &passed,
                   llvm::function_ref<bool(const Event &)> isOrdered) {
  std::optional<Race> race;
  auto compare = [&](const Event &earlier, int64_t from, int64_t to) {
    if (!race && earlier.time && !(earlier.strong && event.strong) &&
        !isOrdered(earlier))
      race = Race{earlier, event, from, to};
  };
  split(end);
  int64_t at = begin;
  for (auto it = split(begin); at < end;) {
    if (it == ranges.end() || it->first > at) { // Nobody has been here.
      int64_t to = it == ranges.end() ? end : std::min(end, it->first);
      it = ranges.emplace_hint(it, at, Range{to, {}, nullptr, {}});
    }
    Range &range = it->second;
    compare(range.last, it->first, range.end);
    if (event.write) {
      for (const Event &read : range.reads)
        compare(read, it->first, range.end);
      range.reads.clear();
      range.last = event;
      range.passed = passed;
    } else {
      auto *same = llvm::find_if(range.reads, [&](const Event &read) {
        return read.thread == event.thread && read.proxy == event.proxy &&
               read.strong == event.strong;
      });
      if (same != range.reads.end())
        *same = event;
      else
        range.reads.push_back(event);
    }
    at = range.end;
    ++it;
  }
  return race;
}

void AccessHistory::visitPassed(
    int64_t begin, int64_t end,
    llvm::function_ref<void(const Passed &)> visit) const {
  auto it = ranges.upper_bound(begin);
  if (it != ranges.begin())
    --it;
  for (; it != ranges.end() && it->first < end; ++it)
    if (it->second.end > begin && it->second.passed)
      visit(it->second.passed);
}
