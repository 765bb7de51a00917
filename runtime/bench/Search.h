//===- Search.h - Which ways are worth measuring ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Algorithms x protocols x threads x clusters x grids x sizes are tens of
// thousands of ways. From coarse to fine: every pair of algorithm and protocol
// at the ends of the range of sizes, then in the middle those that are not far
// off at both neighbors; then, from the best at each size, one step of the
// shape at a time; then what is best at a size at its neighbors too, so that
// there is something to interpolate; and once more, side by side, what is close
// to the best. Knows nothing of how times come about.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_SEARCH_H
#define COMMSIR_RUNTIME_BENCH_SEARCH_H

#include "runtime/choose/Table.h"

#include <functional>
#include <optional>
#include <set>

namespace commsir::tune {

/// A section to be filled: a question without a size, and the sizes.
struct Range {
  /// `bytes` of flat ones, and of rows the bytes of one row, are set for each
  /// size; `columns` is 0 or the length of rows.
  ConfigQuery base;
  /// Bytes of a row, 0: flat.
  int64_t rowBytes = 0;
  /// Ascending: bytes, or numbers of rows.
  std::vector<int64_t> sizes;

  ConfigQuery at(int64_t size) const;
};

class Search {
public:
  /// Measures recipes for a question; a time, or nothing where one cannot be
  /// run.
  using Measure = std::function<std::vector<std::optional<double>>(
      size_t range, int64_t size, const std::vector<Recipe> &recipes)>;
  struct Hooks {
    Measure measure;
    /// Measures again, more exactly and side by side, what is close to the
    /// best; empty: once is enough.
    Measure confirm;
    /// Recipes to begin with, beside what the cost model suggests.
    std::function<std::vector<Recipe>(const ConfigQuery &query)> starts =
        [](const ConfigQuery &) { return std::vector<Recipe>(); };
    /// Time is up: what is known is what there is.
    std::function<bool()> isOver = [] { return false; };
    /// A step has been done: how much of all, in [0, 1].
    std::function<void(size_t range, int64_t size, double share)> step =
        [](size_t, int64_t, double) {};
  };

  Search(std::vector<Range> ranges, Hooks hooks);
  void run();

  /// What was measured, one section a range.
  std::vector<Section> sections() const;
  /// The best at a point; nothing where nothing ran.
  std::optional<std::pair<Recipe, double>> best(size_t range,
                                                int64_t size) const;
  size_t measured() const { return count; }

private:
  using Times = std::map<Recipe, std::optional<double>>;
  Times &timesAt(size_t range, int64_t size) { return all[range][size]; }
  void tryAll(size_t range, int64_t size, std::vector<Recipe> recipes);
  void coarse(size_t range);
  void coarseAt(size_t range, size_t place, const Times *low, const Times *high,
                double factor);
  void coarseBetween(size_t range, size_t low, size_t high);
  void refine(size_t range, size_t place);
  void spread(size_t range);
  void confirm(size_t range, int64_t size);
  void tell(size_t range, int64_t size);

  std::vector<Range> ranges;
  Hooks hooks;
  std::vector<std::map<int64_t, Times>> all;
  size_t count = 0, steps = 0, stepsDone = 0;
};

/// The recipes one step away from `recipe` in one of its numbers, for a
/// question.
std::vector<Recipe> neighborRecipes(const Recipe &recipe,
                                    const ConfigQuery &query);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_SEARCH_H
