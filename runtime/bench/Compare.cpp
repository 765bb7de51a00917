//===- Compare.cpp - Compares two reports ---------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Compare.h"

#include "runtime/support/Size.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>
#include <map>
#include <tuple>

using namespace commsir;
using namespace commsir::tune;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

bool Comparison::isWorse() const {
  return llvm::any_of(changes, [](const Change &change) {
    // A baseline that is slower says something of the host.
    return (change.verdict == Verdict::Slower && !change.before->baseline) ||
           change.verdict == Verdict::Broken;
  });
}

using Key = std::tuple<std::string, std::string, int64_t, std::string, bool>;

static Key keyOf(const Entry &entry) {
  return {entry.op, entry.type, entry.bytes, entry.contender, entry.registered};
}

static std::map<Key, const Entry *> index(const Report &report) {
  std::map<Key, const Entry *> entries;
  for (const Entry &entry : report.entries)
    entries.try_emplace(keyOf(entry), &entry);
  return entries;
}

/// The fastest baseline of `entry`'s operation, type and size in `first` that
/// `second` has measured too, in both.
static std::pair<const Entry *, const Entry *>
findBaseline(const Entry &entry, const Report &first,
             const std::map<Key, const Entry *> &second) {
  std::pair<const Entry *, const Entry *> best;
  for (const Entry &other : first.entries) {
    if (!other.baseline || !other.isMeasured() || other.op != entry.op ||
        other.type != entry.type || other.bytes != entry.bytes)
      continue;
    auto found = second.find(keyOf(other));
    if (found == second.end() || !found->second->isMeasured())
      continue;
    if (!best.first || other.medianTime() < best.first->medianTime())
      best = {&other, found->second};
  }
  return best;
}

/// Logarithms of the repetitions' medians, less those of `baseline` if given.
static std::vector<double> logTimes(const Entry &entry, const Entry *baseline) {
  std::vector<double> logs;
  for (size_t i = 0; i < entry.samples.size(); ++i) {
    if (entry.samples[i].empty())
      continue;
    double log = std::log(median(entry.samples[i]));
    if (baseline) {
      if (i >= baseline->samples.size() || baseline->samples[i].empty())
        continue;
      log -= std::log(median(baseline->samples[i]));
    }
    logs.push_back(log);
  }
  return logs;
}

static void warnOfDifferences(const Header &before, const Header &after,
                              std::vector<std::string> &warnings) {
  auto differ = [&](const char *what, const std::string &a,
                    const std::string &b) {
    if (a != b)
      warnings.push_back(
          llvm::formatv("{0} differs: '{1}' and '{2}'", what, a, b).str());
  };
  differ("device", before.device, after.device);
  differ("driver", before.driver, after.driver);
  differ("NCCL", before.nccl, after.nccl);
  differ("torch", before.torch, after.torch);
  differ("number of calls", std::to_string(before.calls),
         std::to_string(after.calls));
  if (before.repetitions < 5 || after.repetitions < 5)
    warnings.push_back(
        "fewer than 5 repetitions: small changes cannot be detected");
}

static llvm::Error checkComparable(const Header &before, const Header &after) {
  auto refuse = [](const char *what, const llvm::Twine &a,
                   const llvm::Twine &b) {
    return bad("the reports cannot be compared: one is of " +
               llvm::Twine(what) + a + ", the other of " + what + b);
  };
  if (before.target != after.target)
    return refuse("target ", before.target, after.target);
  if (before.ranks != after.ranks)
    return refuse("ranks: ", llvm::Twine(before.ranks),
                  llvm::Twine(after.ranks));
  if (before.mode != after.mode)
    return refuse("mode ", before.mode, after.mode);
  if (before.inPlace != after.inPlace)
    return refuse("", before.inPlace ? "in place" : "not in place",
                  after.inPlace ? "in place" : "not in place");
  return llvm::Error::success();
}

/// Fills the figures of a change of which both sides were measured.
static void measure(Change &change, const Report &before,
                    const std::map<Key, const Entry *> &newIndex) {
  auto [oldBase, newBase] = findBaseline(*change.before, before, newIndex);
  // A baseline itself is compared as it is: it shows how the hosts differ.
  if (change.before->baseline)
    oldBase = newBase = nullptr;
  change.normalized = oldBase;
  MeanDifference difference = compareMeans(logTimes(*change.before, oldBase),
                                           logTimes(*change.after, newBase));
  const Interval &log = difference.difference;
  change.ratio = {std::exp(log.value), std::exp(log.low), std::exp(log.high)};
  change.p = difference.p;
}

llvm::Expected<Comparison> commsir::tune::compareReports(const Report &before,
                                                         const Report &after,
                                                         double threshold) {
  if (llvm::Error error = checkComparable(before.header, after.header))
    return error;
  Comparison comparison;
  warnOfDifferences(before.header, after.header, comparison.warnings);
  std::map<Key, const Entry *> oldIndex = index(before),
                               newIndex = index(after);
  // In the order of the report, and every key once.
  for (const Entry &entry : before.entries) {
    auto found = newIndex.find(keyOf(entry));
    if (oldIndex[keyOf(entry)] != &entry)
      continue;
    if (found == newIndex.end()) {
      ++comparison.onlyBefore;
      continue;
    }
    Change change;
    change.before = &entry;
    change.after = found->second;
    change.ratio = {kNaN, kNaN, kNaN};
    bool was = entry.isMeasured(), is = found->second->isMeasured();
    if (was && is)
      measure(change, before, newIndex);
    else if (was != is)
      change.verdict = was ? Verdict::Broken : Verdict::Repaired;
    comparison.changes.push_back(change);
  }
  if (comparison.changes.empty())
    return bad("the reports have no contender in common: measure the same "
               "operations, sizes, types, algorithms and protocols");
  comparison.onlyAfter = newIndex.size() - comparison.changes.size();

  std::vector<double> p;
  for (const Change &change : comparison.changes)
    p.push_back(std::isnan(change.ratio.value) ? 1 : change.p);
  std::vector<bool> real = holm(p);
  for (size_t i = 0; i < real.size(); ++i) {
    Change &change = comparison.changes[i];
    if (real[i] && std::abs(std::log(change.ratio.value)) >
                       std::log1p(std::max(threshold, 0.0)))
      change.verdict =
          change.ratio.value > 1 ? Verdict::Slower : Verdict::Faster;
  }
  return comparison;
}

static const char *verdictName(Verdict verdict) {
  switch (verdict) {
  case Verdict::Same:
    return "same";
  case Verdict::Faster:
    return "FASTER";
  case Verdict::Slower:
    return "SLOWER";
  case Verdict::Broken:
    return "BROKEN";
  case Verdict::Repaired:
    return "repaired";
  }
  return "";
}

static void printChange(const Change &change, llvm::raw_ostream &os) {
  const Entry &entry = *change.after;
  os << llvm::formatv("{0,-8} {1} {2} {3} {4}{5}", verdictName(change.verdict),
                      entry.op, renderSize(entry.bytes), entry.type,
                      entry.contender, entry.registered ? " (window)" : "");
  if (entry.baseline)
    os << ", a baseline";
  if (std::isnan(change.ratio.value)) {
    const Entry &bad =
        change.verdict == Verdict::Repaired ? *change.before : *change.after;
    os << ": " << bad.message << "\n";
    return;
  }
  os << llvm::formatv(": {0:f2} µs, was {1:f2}; new / old {2:f3} "
                      "[{3:f3} {4:f3}]{5}, p {6:e1}\n",
                      entry.medianTime(), change.before->medianTime(),
                      change.ratio.value, change.ratio.low, change.ratio.high,
                      change.normalized ? " against the baseline" : "",
                      change.p);
}

void commsir::tune::printComparison(const Comparison &comparison,
                                    llvm::raw_ostream &os) {
  for (const std::string &warning : comparison.warnings)
    os << "warning: " << warning << "\n";
  size_t same = 0;
  for (const Change &change : comparison.changes) {
    if (change.verdict == Verdict::Same)
      ++same;
    else
      printChange(change, os);
  }
  os << llvm::formatv("{0} of {1} contenders differ by no more than noise\n",
                      same, comparison.changes.size());
  if (comparison.onlyBefore)
    os << comparison.onlyBefore << " are only in the first report\n";
  if (comparison.onlyAfter)
    os << comparison.onlyAfter << " are only in the second report\n";
}
