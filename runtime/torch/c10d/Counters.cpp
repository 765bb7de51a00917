//===- Counters.cpp - Counts the path of each call ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Counters.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

using namespace commsir::torch_c10d;

Counters &Counters::get() {
  static auto *counters = new Counters;
  return *counters;
}

std::atomic<uint64_t> &Counters::at(const CallKey &key) {
  std::lock_guard<std::mutex> lock(mutex);
  return counts[key];
}

std::map<CallKey, uint64_t> Counters::all() {
  std::lock_guard<std::mutex> lock(mutex);
  std::map<CallKey, uint64_t> result;
  for (auto &[key, count] : counts)
    if (count)
      result[key] = count;
  return result;
}

void Counters::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &[key, count] : counts)
    count = 0;
}

std::string CallRecord::describe() const {
  std::ostringstream text;
  text << name;
  if (*reduction)
    text << "(" << reduction << ")";
  if (root >= 0)
    text << (pointToPoint ? " peer " : " root ") << root;
  const Shapes &shapes = inputs.tensors.empty() ? outputs : inputs;
  const char *separator = " of ";
  const int64_t *size = shapes.sizes.begin();
  size_t count = shapes.tensors.size();
  for (size_t i = 0; i < count && i < 8; ++i) {
    auto [dimensions, type] = shapes.tensors[i];
    int64_t elements = 1;
    for (const int64_t *end = size + dimensions; size != end; ++size)
      elements *= *size;
    text << separator << elements << " x " << type;
    separator = ", ";
  }
  if (count > 8)
    text << ", … (" << count << " tensors)";
  return text.str();
}

static size_t readLimit() {
  const char *text = std::getenv("TORCH_FR_BUFFER_SIZE");
  long given = text ? std::strtol(text, nullptr, 10) : 2000;
  // A record takes some hundred bytes.
  return static_cast<size_t>(std::clamp(given, 1L, 1L << 20));
}

int64_t Recorder::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Recorder::Recorder() : kept(readLimit()) {}

CallRecord &Recorder::takeNext() {
  if (records.empty())
    records.reserve(kept);
  size_t own = place;
  if (records.size() < kept)
    records.emplace_back();
  else
    records[own].reset();
  place = own + 1 == kept ? 0 : own + 1;
  // The ring is larger than the caches that are near: the next call's part of
  // it is fetched while this one goes on.
  auto *after = reinterpret_cast<const char *>(records.data() + place);
  for (size_t byte = 0; byte < sizeof(CallRecord); byte += 64)
    __builtin_prefetch(after + byte, /*rw=*/1);
  return records[own];
}

void Recorder::mark(size_t ticket, const char *state) {
  int64_t time = now();
  std::lock_guard<std::mutex> lock(mutex);
  size_t back = next - ticket;
  if (back > records.size())
    return;
  CallRecord &record =
      records[place >= back ? place - back : place + kept - back];
  record.state = state;
  (record.begun ? record.ended : record.begun) = time;
}

std::vector<CallRecord> Recorder::recent() {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<CallRecord> result;
  result.reserve(records.size());
  for (size_t i = 0; i < records.size(); ++i)
    result.push_back(records[(next - records.size() + i) % kept]);
  return result;
}
