//===- Table.h - What was measured on a machine -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table holds the times of recipes on one kind of machine with one number of
// ranks: a section an operation, type and length of rows, a point a size.
// docs/Benchmarking.md describes the file.
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
  /// Of rows; 0: flat.
  int64_t columns = 0;
  /// Microseconds of recipes, by bytes, or in a section of rows by rows.
  std::map<int64_t, std::map<Recipe, double>> points;
};

struct Table {
  /// "h200-4".
  std::string name;
  /// As the driver names it, and "sm_90" or "cpu".
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

/// Of each point the recipes that can be the best somewhere near: those within
/// `factor` of its best, and every pair's best.
void prune(Table &table, double factor = 1.3);

/// Ways that the table's section for the question knows, with times between the
/// measured sizes, the best first; none when there is no such section or it
/// knows nothing that the question allows. `where` says between what.
std::vector<Config> rankConfigs(const Table &table, const ConfigQuery &query,
                                std::string &where);

/// The tables that are part of the library.
std::vector<const Table *> readBuiltIn();

/// The tables in order of precedence: the user's, then those that are built in.
struct Tables {
  /// The user's.
  std::vector<Table> own;
  /// Ask those that are built in; each is read when it is first asked for.
  bool builtIn = false;
  /// What could not be read of the user's, in words.
  std::string problem;

  /// `path` (a file, or a folder of them; may be empty) and the built-in ones.
  static Tables load(llvm::StringRef path);
  /// The table to ask: of the device, else of the chip; null: none.
  std::vector<const Table *> find(const ConfigQuery &query) const;
};

/// As `choose`, from these tables.
ConfigChoice chooseFrom(const Tables &tables, const ConfigQuery &query);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_TABLE_H
