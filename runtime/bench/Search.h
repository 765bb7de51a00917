//===- Search.h - Selects the configs to measure ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Algorithms, protocols, threads, clusters, grids and sizes form tens of
// thousands of configurations. The search goes from coarse to fine. It measures
// every pair of algorithm and protocol at both ends of the size range, then in
// the middle those pairs that are competitive at both neighboring sizes. From
// the best at each size it varies one number of the launch shape at a time. The
// best at a size is then measured at the neighboring sizes too, so that tables
// can be interpolated. Finally the configurations close to the best are
// measured once more, side by side. The search does not know how times are
// obtained.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_SEARCH_H
#define COMMSIR_RUNTIME_BENCH_SEARCH_H

#include "runtime/choose/Table.h"

#include <functional>
#include <optional>
#include <set>

namespace commsir::tune {

/// A table section to fill: a query without a size, and the sizes.
struct Range {
  /// `bytes` is set for each size; for rows it holds the bytes of one row.
  /// `columns` is 0 or the row length.
  ConfigQuery base;
  /// Bytes per row; 0: flat.
  int64_t rowBytes = 0;
  /// Ascending: bytes, or numbers of rows.
  std::vector<int64_t> sizes;

  ConfigQuery at(int64_t size) const;
};

class Search {
public:
  /// Measures recipes for a query. Returns a time for each, or none if it
  /// cannot run.
  using Measure = std::function<std::vector<std::optional<double>>(
      size_t range, int64_t size, const std::vector<Recipe> &recipes)>;
  struct Hooks {
    Measure measure;
    /// Measures the recipes close to the best again, more precisely and side by
    /// side. Empty: not done.
    Measure confirm;
    /// Returns initial recipes in addition to those of the cost model.
    std::function<std::vector<Recipe>(const ConfigQuery &query)> starts =
        [](const ConfigQuery &) { return std::vector<Recipe>(); };
    /// Whether the time budget is spent. The results so far are then final.
    std::function<bool()> isOver = [] { return false; };
    /// Called after each step with the finished fraction, in [0, 1].
    std::function<void(size_t range, int64_t size, double share)> step =
        [](size_t, int64_t, double) {};
  };

  Search(std::vector<Range> ranges, Hooks hooks);
  void run();

  /// The measured times, one section per range.
  std::vector<Section> sections() const;
  /// The best recipe at a point, or none if nothing could run.
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

/// The recipes that differ from `recipe` by one step in one number, for a
/// query.
std::vector<Recipe> neighborRecipes(const Recipe &recipe,
                                    const ConfigQuery &query);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_SEARCH_H
