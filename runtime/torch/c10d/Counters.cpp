//===- Counters.cpp - Which path each call took ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Counters.h"

#include <algorithm>

using namespace commsir::torch_c10d;

Counters &Counters::get() {
  static auto *counters = new Counters;
  return *counters;
}

void Counters::add(const CallKey &key) {
  std::lock_guard<std::mutex> lock(mutex);
  ++counts[key];
}

std::map<CallKey, uint64_t> Counters::all() {
  std::lock_guard<std::mutex> lock(mutex);
  return counts;
}

void Counters::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  counts.clear();
}

size_t Recorder::begin(uint64_t sequence, std::string what) {
  std::lock_guard<std::mutex> lock(mutex);
  CallRecord &record = records[next % kept];
  record.sequence = sequence;
  record.what = std::move(what);
  record.state = "queued";
  return next++;
}

void Recorder::mark(size_t ticket, const char *state) {
  std::lock_guard<std::mutex> lock(mutex);
  if (next - ticket <= kept)
    records[ticket % kept].state = state;
}

std::vector<CallRecord> Recorder::recent() {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<CallRecord> result;
  for (size_t i = next - std::min(next, kept); i < next; ++i)
    result.push_back(records[i % kept]);
  return result;
}
