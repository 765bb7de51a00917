//===- Search.cpp - Selects the configs to measure ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Search.h"

#include "runtime/choose/Model.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace commsir;
using namespace commsir::tune;

/// A configuration that is slower by this factor at both neighboring sizes is
/// not measured in between.
static constexpr double kFarOff = 1.5;
/// Pairs this close to the best have their shapes searched.
static constexpr double kClose = 1.15;
/// A step that gains less than this is noise.
static constexpr double kGain = 0.99;
/// Candidates this close to the best are measured again, at most so many.
static constexpr double kDoubtful = 1.12;
static constexpr size_t kMostDoubtful = 10;
/// Steps from one start.
static constexpr int kMostSteps = 4;

ConfigQuery Range::at(int64_t size) const {
  ConfigQuery query = base;
  if (rowBytes > 0) {
    query.rows = size;
    query.bytes = size * rowBytes;
  } else {
    query.bytes = size;
  }
  return query;
}

Search::Search(std::vector<Range> given, Hooks hooks)
    : ranges(std::move(given)), hooks(std::move(hooks)), all(ranges.size()) {
  for (const Range &range : ranges)
    steps += 4 * range.sizes.size();
}

void Search::tell(size_t range, int64_t size) {
  hooks.step(range, size, double(++stepsDone) / double(steps));
}

/// Measures what has not been measured at this size. Recipes that come to the
/// same way share one time.
void Search::tryAll(size_t range, int64_t size, std::vector<Recipe> recipes) {
  Times &times = timesAt(range, size);
  ConfigQuery query = ranges[range].at(size);
  auto wayKey = [&](const Recipe &recipe) {
    Config config = applyRecipe(recipe, query);
    return std::tuple(config.algorithm, config.protocol, config.blocks,
                      config.threads, config.cluster);
  };
  std::map<decltype(wayKey(Recipe())), std::optional<double>> known;
  for (const auto &[recipe, time] : times)
    known[wayKey(recipe)] = time;
  std::vector<Recipe> fresh;
  std::set<decltype(wayKey(Recipe()))> asked;
  for (const Recipe &recipe : recipes)
    if (!known.count(wayKey(recipe)) && asked.insert(wayKey(recipe)).second)
      fresh.push_back(recipe);
  if (!fresh.empty() && !hooks.isOver()) {
    auto found = hooks.measure(range, size, fresh);
    count += found.size();
    for (size_t i = 0; i < found.size(); ++i)
      known[wayKey(fresh[i])] = found[i];
  }
  for (const Recipe &recipe : recipes)
    if (auto place = known.find(wayKey(recipe)); place != known.end())
      times.try_emplace(recipe, place->second);
}

//===----------------------------------------------------------------------===//
// Coarse: pairs of algorithm and protocol
//===----------------------------------------------------------------------===//

using Pair = std::pair<std::string, std::string>;

static std::map<Pair, std::pair<double, Recipe>>
bestOfPairs(const std::map<Recipe, std::optional<double>> &times) {
  std::map<Pair, std::pair<double, Recipe>> best;
  for (const auto &[recipe, time] : times) {
    if (!time)
      continue;
    auto [place, made] = best.try_emplace(
        Pair(recipe.algorithm, recipe.protocol), *time, recipe);
    if (!made && *time < place->second.first)
      place->second = {*time, recipe};
  }
  return best;
}

/// Whether the pair was measured, and is slower than `factor` times the best.
static bool isMuchSlower(const std::map<Recipe, std::optional<double>> &times,
                         const Pair &pair, double factor) {
  auto pairs = bestOfPairs(times);
  double best = INFINITY;
  for (const auto &[name, found] : pairs)
    best = std::min(best, found.first);
  auto own = pairs.find(pair);
  if (own != pairs.end())
    return own->second.first > factor * best;
  // Tried and failed, or left out for being far off itself.
  return !times.empty();
}

void Search::coarseAt(size_t range, size_t place, const Times *low,
                      const Times *high, double factor) {
  int64_t size = ranges[range].sizes[place];
  ConfigQuery query = ranges[range].at(size);
  std::vector<Recipe> recipes = hooks.starts(query);
  for (const Pair &pair : listPairs(query, /*everything=*/true)) {
    if (low && high && isMuchSlower(*low, pair, factor) &&
        isMuchSlower(*high, pair, factor))
      continue;
    recipes.push_back(suggestRecipe(query, pair.first, pair.second));
  }
  tryAll(range, size, std::move(recipes));
  tell(range, size);
}

void Search::coarseBetween(size_t range, size_t low, size_t high) {
  if (high - low < 2)
    return;
  size_t middle = (low + high) / 2;
  const std::vector<int64_t> &sizes = ranges[range].sizes;
  // Far neighbors say less.
  double factor = high - low > 2 ? kFarOff * kFarOff : kFarOff;
  coarseAt(range, middle, &timesAt(range, sizes[low]),
           &timesAt(range, sizes[high]), factor);
  coarseBetween(range, low, middle);
  coarseBetween(range, middle, high);
}

void Search::coarse(size_t range) {
  size_t last = ranges[range].sizes.size() - 1;
  coarseAt(range, 0, nullptr, nullptr, 0);
  if (last == 0)
    return;
  coarseAt(range, last, nullptr, nullptr, 0);
  coarseBetween(range, 0, last);
}

//===----------------------------------------------------------------------===//
// Fine: shapes
//===----------------------------------------------------------------------===//

std::vector<Recipe> commsir::tune::neighborRecipes(const Recipe &recipe,
                                                   const ConfigQuery &query) {
  std::vector<Recipe> found;
  if (query.chip == "cpu")
    return found;
  auto add = [&](int64_t Recipe::*number, int64_t value, int64_t low,
                 int64_t high) {
    if (value < low || value > high || value == recipe.*number)
      return;
    Recipe other = recipe;
    other.*number = value;
    // More threads a CTA are fewer CTAs.
    other.limit = std::min(other.limit, countResident(query, other.threads));
    if (number == &Recipe::threads &&
        recipe.limit >= countResident(query, recipe.threads))
      other.limit = countResident(query, other.threads);
    found.push_back(std::move(other));
  };
  add(&Recipe::threads, recipe.threads * 2, 32, 1024);
  add(&Recipe::threads, recipe.threads / 2, 32, 1024);
  int64_t most = countResident(query, recipe.threads);
  add(&Recipe::limit, recipe.limit / 2, 8, most);
  add(&Recipe::limit, std::min(recipe.limit * 2, most), 8, most);
  add(&Recipe::spread, recipe.spread * 2, 1, 64);
  add(&Recipe::spread, recipe.spread / 2, 1, 64);
  // On flat messages clusters bring nothing: measured on 4 and 8 GPUs.
  if (query.rows > 0) {
    add(&Recipe::cluster, recipe.cluster * 2, 1, getMostCtas(query));
    add(&Recipe::cluster, recipe.cluster / 2, 1, 8);
  }
  return found;
}

/// From the best recipes of the best pairs, and the neighbor sizes' best, in
/// steps to what is faster.
void Search::refine(size_t range, size_t place) {
  int64_t size = ranges[range].sizes[place];
  ConfigQuery query = ranges[range].at(size);
  std::vector<Recipe> others;
  for (size_t other : {place - 1, place + 1})
    if (other < ranges[range].sizes.size())
      if (auto found = best(range, ranges[range].sizes[other]))
        others.push_back(found->first);
  tryAll(range, size, std::move(others));
  std::vector<std::pair<double, Recipe>> starts;
  for (const auto &[pair, found] : bestOfPairs(timesAt(range, size)))
    starts.push_back(found);
  llvm::sort(starts);
  double least = starts.empty() ? 0 : starts.front().first;
  for (size_t i = 0; i < std::min<size_t>(starts.size(), 3); ++i) {
    auto [time, recipe] = starts[i];
    if (time > kClose * least)
      break;
    for (int step = 0; step < kMostSteps && !hooks.isOver(); ++step) {
      std::vector<Recipe> near = neighborRecipes(recipe, query);
      tryAll(range, size, near);
      double before = time;
      for (const Recipe &one : near) {
        auto found = timesAt(range, size).find(one);
        if (found != timesAt(range, size).end() && found->second &&
            *found->second < time) {
          time = *found->second;
          recipe = one;
        }
      }
      if (time > kGain * before)
        break;
    }
  }
  tell(range, size);
}

/// The best pairs' recipes of every size at the neighbors too.
void Search::spread(size_t range) {
  const std::vector<int64_t> &sizes = ranges[range].sizes;
  std::map<int64_t, std::vector<Recipe>> wanted;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::pair<double, Recipe>> configs;
    for (const auto &[pair, found] : bestOfPairs(timesAt(range, sizes[i])))
      configs.push_back(found);
    llvm::sort(configs);
    for (size_t k = 0; k < std::min<size_t>(configs.size(), 4); ++k) {
      if (i > 0)
        wanted[sizes[i - 1]].push_back(configs[k].second);
      if (i + 1 < sizes.size())
        wanted[sizes[i + 1]].push_back(configs[k].second);
    }
  }
  for (int64_t size : sizes) {
    tryAll(range, size, wanted[size]);
    tell(range, size);
  }
}

/// The least of many times is too low a one: of those close to the best, a way
/// is taken for what it is when they are measured again.
void Search::confirm(size_t range, int64_t size) {
  Times &times = timesAt(range, size);
  auto least = best(range, size);
  if (hooks.confirm && least && !hooks.isOver()) {
    ConfigQuery query = ranges[range].at(size);
    std::vector<std::pair<double, Recipe>> close;
    for (const auto &[recipe, time] : times)
      if (time && *time <= kDoubtful * least->second)
        close.push_back({*time, recipe});
    llvm::sort(close);
    // Recipes that come to the same way share a time.
    std::vector<Recipe> recipes;
    std::vector<Config> configs;
    auto find = [&](const Recipe &recipe) {
      Config config = applyRecipe(recipe, query);
      return llvm::find_if(
                 configs,
                 [&](const Config &other) { return isSame(config, other); }) -
             configs.begin();
    };
    for (const auto &[time, recipe] : close)
      if (size_t(find(recipe)) == configs.size() &&
          configs.size() < kMostDoubtful) {
        recipes.push_back(recipe);
        configs.push_back(applyRecipe(recipe, query));
      }
    auto found = hooks.confirm(range, size, recipes);
    for (const auto &[time, recipe] : close)
      if (size_t place = find(recipe); place < found.size())
        times[recipe] = found[place];
  }
  tell(range, size);
}

void Search::run() {
  for (size_t range = 0; range < ranges.size(); ++range)
    coarse(range);
  for (size_t range = 0; range < ranges.size(); ++range)
    for (size_t place = 0; place < ranges[range].sizes.size(); ++place)
      refine(range, place);
  for (size_t range = 0; range < ranges.size(); ++range)
    spread(range);
  for (size_t range = 0; range < ranges.size(); ++range)
    for (int64_t size : ranges[range].sizes)
      confirm(range, size);
}

//===----------------------------------------------------------------------===//
// What came out
//===----------------------------------------------------------------------===//

std::optional<std::pair<Recipe, double>> Search::best(size_t range,
                                                      int64_t size) const {
  std::optional<std::pair<Recipe, double>> found;
  auto point = all[range].find(size);
  if (point == all[range].end())
    return found;
  for (const auto &[recipe, time] : point->second)
    if (time && (!found || *time < found->second))
      found = {recipe, *time};
  return found;
}

std::vector<Section> Search::sections() const {
  std::vector<Section> sections;
  for (size_t range = 0; range < ranges.size(); ++range) {
    Section section;
    section.op = ranges[range].base.op;
    section.type = ranges[range].base.elementType;
    section.columns = ranges[range].base.columns;
    for (const auto &[size, times] : all[range])
      for (const auto &[recipe, time] : times)
        if (time)
          section.points[size][recipe] = *time;
    if (!section.points.empty())
      sections.push_back(std::move(section));
  }
  return sections;
}
