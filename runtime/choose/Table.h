//===- Table.h - Measured times of one machine ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table holds times of recipes on one kind of machine with one number of
// ranks: one section per operation, type and row length, one point per size.
// docs/Benchmarking.md describes the file format.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_TABLE_H
#define COMMSIR_RUNTIME_CHOOSE_TABLE_H

#include "runtime/choose/Recipe.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

namespace commsir::tune {

struct Section {
  std::string op, type;
  /// Row length; 0: flat.
  int64_t columns = 0;
  /// Times of recipes in microseconds, by bytes, or by number of rows in a
  /// section of rows.
  std::map<int64_t, std::map<Recipe, double>> points;
};

struct Table {
  /// "h200-4".
  std::string name;
  /// Device name from the driver, and "sm_90" or "cpu".
  std::string device, chip;
  int64_t ranks = 0;
  /// "2026-11-21".
  std::string date;
  /// How it was measured: "NCCL 2.28.9, bf16, graph".
  std::string note;
  std::vector<Section> sections;
};

llvm::Expected<Table> parseTable(llvm::StringRef text, llvm::StringRef name);
void printTable(const Table &table, llvm::raw_ostream &os);

/// Keeps for each point the recipes that can be best nearby: those within
/// `factor` of its best, and the best of every pair.
void prune(Table &table, double factor = 1.3);

/// Configurations from the table's section for the query, with times
/// interpolated between measured sizes, best first. Empty if there is no such
/// section or it has nothing that the query allows. `where` describes the
/// interpolation.
std::vector<Config> rankConfigs(const Table &table, const ConfigQuery &query,
                                std::string &where);

/// The built-in tables.
std::vector<const Table *> readBuiltIn();

/// All tables in order of precedence: the user's, then the built-in ones.
struct Tables {
  /// The user's tables.
  std::vector<Table> own;
  /// Use the built-in tables; each is parsed when it is first needed.
  bool builtIn = false;
  /// Errors in the user's tables.
  std::string problem;

  /// Loads `path` (a file or a folder; may be empty), and the built-in tables.
  static Tables load(llvm::StringRef path);
  /// The tables that apply: those of the device, else those of the chip.
  std::vector<const Table *> find(const ConfigQuery &query) const;
};

/// Like `choose`, from these tables.
ConfigChoice chooseFrom(const Tables &tables, const ConfigQuery &query);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_TABLE_H
