//===- Model.h - The cost model ---------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Estimates times for machines, ranks and operations without measurements. Time
// = launch + the algorithm's cost rule (hops, barriers, bytes over a link) with
// the protocol's overhead + the cost of the grid. Covers every registered
// algorithm and protocol.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_MODEL_H
#define COMMSIR_RUNTIME_CHOOSE_MODEL_H

#include "runtime/choose/Recipe.h"

#include <optional>

namespace commsir::tune {

/// The pairs of algorithm and protocol that can carry out the query, restricted
/// to those that it fixes. `everything`: includes protocols that are used by
/// name only.
std::vector<std::pair<std::string, std::string>>
listPairs(const ConfigQuery &query, bool everything = false);

/// A good launch shape for a pair: by message size for flat arrays, and the
/// cheapest by the model for rows.
Recipe suggestRecipe(const ConfigQuery &query, llvm::StringRef algorithm,
                     llvm::StringRef protocol);

/// Estimated microseconds; none if the pair does not exist.
std::optional<double> estimate(const ConfigQuery &query, const Recipe &recipe);

/// Every pair with its suggested shape, cheapest first.
std::vector<Config> estimateAll(const ConfigQuery &query);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_MODEL_H
