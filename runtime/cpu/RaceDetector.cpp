//===- RaceDetector.cpp - Accesses that nothing orders --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/RaceDetector.h"

#include "llvm/ADT/STLExtras.h"

using namespace commsir::cpu;

struct AccessHistory::Comparison {
  const Event &event;
  const Passed &passed;
  llvm::function_ref<bool(const Event &)> isOrdered;
  /// Where the page begins.
  int64_t page = 0;
  std::optional<Race> race;

  void compare(const Event &earlier, const Range &range) {
    if (!earlier.time || (earlier.strong && event.strong) || isOrdered(earlier))
      return;
    int64_t from = page + range.begin, to = page + range.end;
    if (!race)
      race = Race{earlier, event, from, to};
    else if (race->end == from && race->first == earlier)
      race->end = to;
  }
  void add(Range &range);
};

void AccessHistory::Comparison::add(Range &range) {
  compare(range.last, range);
  if (event.write) {
    for (const Event &read : range.reads)
      compare(read, range);
    range.reads.clear();
    range.last = event;
    range.passed = passed;
    return;
  }
  Event *last = nullptr;
  bool isFirst = true;
  for (Event &read : range.reads)
    if (read.thread == event.thread && read.proxy == event.proxy &&
        read.strong == event.strong) {
      isFirst = !last;
      last = &read;
    }
  // Of strong reads the first counts, too: by then the write has been made.
  if (last && !(event.strong && isFirst))
    *last = event;
  else
    range.reads.push_back(event);
}

/// Null: nobody has been there.
AccessHistory::Page *AccessHistory::findPage(int64_t number) const {
  int64_t wanted = number >> kChunkBits,
          within = number & ((1 << kChunkBits) - 1);
  auto &[known, chunk] = recent[uint64_t(wanted) % recent.size()];
  if (!chunk || known != wanted) {
    auto found = chunks.find(wanted);
    if (found == chunks.end())
      return nullptr;
    known = wanted;
    chunk = found->second.get();
  }
  return &(*chunk)[within];
}

AccessHistory::Page &AccessHistory::getPage(int64_t number) {
  if (Page *page = findPage(number))
    return *page;
  chunks[number >> kChunkBits] = std::make_unique<Chunk>();
  return *findPage(number);
}

/// More ranges than this that one write covers become one.
static constexpr ptrdiff_t kMostRanges = 4;

void AccessHistory::addToPage(Page &page, int64_t begin, int64_t end,
                              Comparison &comparison) {
  auto *it = llvm::partition_point(
      page, [&](const Range &range) { return range.end <= begin; });
  if (it != page.end() && it->begin < begin) { // It becomes two.
    it = std::next(page.insert(it, *it));
    std::prev(it)->end = it->begin = uint16_t(begin);
  }
  ptrdiff_t first = it - page.begin();
  for (int64_t at = begin; at < end; ++it) {
    if (it == page.end() || it->begin > at) { // Nobody has been here.
      int64_t to = it == page.end() ? end : std::min<int64_t>(end, it->begin);
      it = page.insert(it, Range{uint16_t(at), uint16_t(to), {}, nullptr, {}});
    } else if (it->end > end) {
      it = page.insert(it, *it);
      it->end = std::next(it)->begin = uint16_t(end);
    }
    comparison.add(*it);
    at = it->end;
  }
  if (!comparison.event.write)
    return;
  auto *start = page.begin() + first;
  if (it - start > kMostRanges) {
    start->end = uint16_t(end);
    page.erase(std::next(start), it);
  } else if (first > 0 && it - start == 1) { // Element after element.
    Range &before = *std::prev(start);
    if (before.end == begin && before.last == comparison.event &&
        before.passed == comparison.passed && before.reads.empty()) {
      before.end = uint16_t(end);
      page.erase(start);
    }
  }
}

std::optional<Race>
AccessHistory::add(int64_t begin, int64_t end, const Event &event,
                   const Passed &passed,
                   llvm::function_ref<bool(const Event &)> isOrdered) {
  Comparison comparison = {event, passed, isOrdered, 0, {}};
  for (int64_t at = begin; at < end;) {
    int64_t number = at >> kPageBits;
    comparison.page = number << kPageBits;
    int64_t to = std::min(end, comparison.page + kPageBytes);
    addToPage(getPage(number), at - comparison.page, to - comparison.page,
              comparison);
    at = to;
  }
  return comparison.race;
}

void AccessHistory::visitWrites(
    int64_t begin, int64_t end,
    llvm::function_ref<void(const LastWrite &)> visit) const {
  for (int64_t number = begin >> kPageBits; number << kPageBits < end;
       ++number) {
    const Page *found = findPage(number);
    if (!found)
      continue;
    int64_t page = number << kPageBits;
    const auto *it = llvm::partition_point(
        *found, [&](const Range &range) { return page + range.end <= begin; });
    for (; it != found->end() && page + it->begin < end; ++it)
      if (it->last.time)
        visit({it->last, it->passed, it->reads});
  }
}
