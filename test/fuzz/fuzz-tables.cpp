//===- fuzz-tables.cpp - Random tables and reports ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input is a file of comms-bench: a table of measured times, or a report.
// Each is read or refused. Every function then uses it: a table answers
// questions and is printed; a report is printed, drawn, and compared with
// itself. The printed form must be readable.
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/BenchReport.h"
#include "runtime/bench/Compare.h"
#include "runtime/choose/Table.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <cstdlib>
#include <string>

using namespace commsir::tune;

[[noreturn]] static void complain(const llvm::Twine &what) {
  llvm::errs() << "fuzz-tables: " << what << "\n";
  std::abort();
}

/// Drops an error, which says something.
static void drop(llvm::Error error) {
  if (llvm::toString(std::move(error)).empty())
    complain("an error without a text");
}

/// Asks for sizes that the table has, and for those around them.
static void ask(const Tables &tables, const Table &table) {
  for (const Section &section : table.sections)
    for (const auto &[size, recipes] : section.points)
      for (int64_t bytes : {size, size / 2, size + 1}) {
        ConfigQuery query;
        query.op = section.op;
        query.reduction = "sum";
        query.elementType = section.type;
        query.bytes = bytes;
        query.rows = section.columns ? 4 : 0;
        query.columns = section.columns;
        query.ranks = table.ranks;
        query.chip = table.chip;
        query.device = table.device;
        (void)chooseFrom(tables, query);
      }
}

static void useTable(Table table) {
  prune(table);
  std::string text;
  llvm::raw_string_ostream os(text);
  printTable(table, os);
  if (llvm::Expected<Table> again = parseTable(text, "printed"); !again)
    complain("a table that was read does not read back: " +
             llvm::toString(again.takeError()) + "\n" + text);
  Tables tables;
  tables.own.push_back(table);
  ask(tables, table);
}

static void useReport(Report report) {
  report.compareWithBaselines();
  (void)report.hasWrong();
  printTable(report, llvm::nulls());
  printSvg(report, llvm::nulls());
  std::string text;
  llvm::raw_string_ostream os(text);
  printJson(report, os);
  llvm::Expected<Report> again = parseJson(text, "printed");
  if (!again)
    complain("a report that was read does not read back: " +
             llvm::toString(again.takeError()) + "\n" + text);
  if (auto comparison = compareReports(report, *again, 0.01))
    printComparison(*comparison, llvm::nulls());
  else
    drop(comparison.takeError());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (llvm::Expected<Table> table = parseTable(text, "fuzzed"))
    useTable(std::move(*table));
  else
    drop(table.takeError());
  if (llvm::Expected<Report> report = parseJson(text, "fuzzed"))
    useReport(std::move(*report));
  else
    drop(report.takeError());
  return 0;
}
