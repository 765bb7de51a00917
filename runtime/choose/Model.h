//===- Model.h - What a way should cost -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For machines, ranks and operations that nobody has measured. Time = launch +
// what the algorithm's cost rule says (hops, barriers, bytes over a link) with
// what the protocol adds + what the grid costs. Knows every algorithm and
// protocol of the registries.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_MODEL_H
#define COMMSIR_RUNTIME_CHOOSE_MODEL_H

#include "runtime/choose/Recipe.h"

#include <optional>

namespace commsir::tune {

/// The pairs of algorithm and protocol that carry out the question, those that
/// it has settled alone. `everything`: with the protocols that are used by name
/// only.
std::vector<std::pair<std::string, std::string>>
listPairs(const ConfigQuery &query, bool everything = false);

/// The launch shape that suits a pair: by the size of a message, of rows the
/// cheapest by the model.
Recipe suggestRecipe(const ConfigQuery &query, llvm::StringRef algorithm,
                     llvm::StringRef protocol);

/// Microseconds; nothing where the pair does not exist.
std::optional<double> estimate(const ConfigQuery &query, const Recipe &recipe);

/// Every pair with its suggested shape, the cheapest first.
std::vector<Config> estimateAll(const ConfigQuery &query);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_MODEL_H
