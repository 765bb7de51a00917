//===- Report.cpp - The report of a run -----------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Report.h"

#include "runtime/support/Version.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace commsir;
using namespace commsir::driver;

namespace {
using Row = llvm::SmallVector<std::string>;
} // namespace

/// Up to this many ranks all rows are shown; of more, the first and last few.
static constexpr int64_t kAllRows = 16, kFirstRows = 6, kLastRows = 3;

llvm::StringRef commsir::driver::exitName(ExitCode code) {
  switch (code) {
  case ExitOk:
    return "ok";
  case ExitWrongResult:
    return "wrong-result";
  case ExitUsage:
    return "usage";
  case ExitCompile:
    return "compile-error";
  case ExitChecker:
    return "refused-by-checker";
  case ExitDeadlock:
    return "deadlock";
  case ExitLimit:
    return "limit-reached";
  case ExitBounds:
    return "out-of-bounds";
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

/// "3 ranks", "1 rank".
static std::string plural(int64_t count, llvm::StringRef noun,
                          llvm::StringRef ending = "s") {
  return (llvm::Twine(count) + " " + noun + (count == 1 ? "" : ending)).str();
}

static std::string formatError(double error) {
  if (error == 0)
    return "0";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2e", error);
  return text;
}

static std::string formatMicroseconds(double time) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.1f", time);
  return text;
}

/// "12.3 µs", "4.56 ms", "7.89 s": three digits, in the unit that suits.
static std::string formatDuration(double microseconds) {
  static constexpr std::pair<const char *, double> units[] = {
      {"s", 1e6}, {"ms", 1e3}, {"µs", 1}};
  std::string text;
  for (auto [unit, scale] : units) {
    if (microseconds < scale && scale > 1)
      continue;
    double value = microseconds / scale;
    int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
    llvm::raw_string_ostream(text)
        << llvm::format("%.*f ", decimals, value) << unit;
    break;
  }
  return text;
}

/// Whether the times of ranks mean anything: in the CPU world, which counts its
/// steps, ranks take turns in the same threads.
static bool hasTimes(const Report &report) { return !report.stats->steps; }

/// The distinct values of a field of all choices: "one_shot, ring".
static std::string joinChoices(const Report &report,
                               std::string jit::Choice::*field) {
  llvm::SmallVector<llvm::StringRef> values;
  for (const jit::Choice &choice : report.choices)
    if (!llvm::is_contained(values, choice.*field))
      values.push_back(choice.*field);
  return values.empty() ? "-" : llvm::join(values, ", ");
}

/// Largest difference and number of mismatches of a rank over all --expect.
static std::pair<double, int64_t> errorOf(const Report &report, int64_t rank) {
  double error = 0;
  int64_t mismatches = 0;
  for (const Comparison &comparison : report.comparisons) {
    if (comparison.rank != rank)
      continue;
    error = std::max(error, comparison.maxError);
    mismatches += comparison.mismatches;
  }
  return {error, mismatches};
}

/// The ranks whose rows are shown; -1 stands for those left out.
static llvm::SmallVector<int64_t> shownRanks(const Report &report) {
  llvm::SmallVector<int64_t> rows;
  if (report.ranks <= kAllRows) {
    for (int64_t rank = 0; rank < report.ranks; ++rank)
      rows.push_back(rank);
    return rows;
  }
  for (int64_t rank = 0; rank < kFirstRows; ++rank)
    rows.push_back(rank);
  rows.push_back(-1);
  for (int64_t rank = report.ranks - kLastRows; rank < report.ranks; ++rank)
    rows.push_back(rank);
  return rows;
}

/// Prints rows in columns; the first row is the heading. Columns of numbers
/// (`right`) are aligned to the right.
static void printColumns(llvm::ArrayRef<Row> rows, llvm::ArrayRef<bool> right,
                         llvm::raw_ostream &out) {
  llvm::SmallVector<size_t> widths(rows[0].size());
  // The only text beyond ASCII is the micro sign: two bytes, one column.
  auto width = [](llvm::StringRef text) {
    return text.size() - text.count("µ");
  };
  for (const Row &row : rows)
    for (auto [i, cell] : llvm::enumerate(row))
      widths[i] = std::max(widths[i], width(cell));
  for (auto [r, row] : llvm::enumerate(rows)) {
    std::string line;
    for (auto [i, cell] : llvm::enumerate(row)) {
      std::string pad(widths[i] - width(cell), ' ');
      line += std::string("  ") + (right[i] ? pad + cell : cell + pad);
    }
    out << llvm::StringRef(line).rtrim() << "\n";
  }
}

/// Returns the table row of one rank, without its number.
static Row describeRank(const Report &report, int64_t rank) {
  Row row = {joinChoices(report, &jit::Choice::algorithm),
             joinChoices(report, &jit::Choice::protocol),
             std::to_string(report.blocks)};
  if (hasTimes(report))
    row.push_back(formatMicroseconds(report.stats->rankMicroseconds[rank]));
  if (report.comparisons.empty())
    return row;
  auto [error, mismatches] = errorOf(report, rank);
  row.append({formatError(error),
              mismatches ? plural(mismatches, "wrong element") : ""});
  return row;
}

static void printRanks(const Report &report, llvm::raw_ostream &out) {
  std::vector<Row> rows = {{"rank", "algorithm", "protocol", "blocks"}};
  llvm::SmallVector<bool> right = {true, false, false, true};
  auto addColumn = [&](llvm::StringRef name, bool isRight) {
    rows.front().push_back(name.str());
    right.push_back(isRight);
  };
  if (hasTimes(report))
    addColumn("µs", true);
  if (!report.comparisons.empty()) {
    addColumn("max error", true);
    addColumn("", false);
  }
  for (int64_t rank : shownRanks(report)) {
    Row &row = rows.emplace_back(Row{rank < 0 ? "..." : std::to_string(rank)});
    if (rank >= 0)
      row.append(describeRank(report, rank));
    row.resize(right.size());
  }
  printColumns(rows, right, out);
}

static void printComparisons(const Report &report, llvm::raw_ostream &out) {
  if (report.comparisons.empty())
    return;
  const Comparison *worst = nullptr;
  int64_t wrong = 0, elements = 0;
  for (const Comparison &comparison : report.comparisons) {
    elements += comparison.count;
    wrong += comparison.mismatches;
    if (!worst || comparison.maxError > worst->maxError)
      worst = &comparison;
  }
  if (!wrong) {
    out << "\n"
        << plural(elements, "element") << " compared on "
        << plural(report.ranks, "rank") << ": all as expected";
    if (worst->maxError > 0)
      out << " (worst error " << formatError(worst->maxError) << ", in "
          << worst->argument << " on rank " << worst->rank << ")";
    out << "\n";
    return;
  }
  out << "\n"
      << wrong << " of " << plural(elements, "element")
      << " are not as expected. First on each rank:\n";
  int64_t shown = 0;
  for (const Comparison &comparison : report.comparisons)
    if (comparison.mismatches && shown++ < 10)
      out << "  " << comparison.render() << "\n";
  if (shown > 10)
    out << "  ... and " << shown - 10 << " more\n";
}

static void printFuzz(const Report &report, llvm::raw_ostream &out) {
  if (!report.fuzz)
    return;
  const FuzzReport &fuzz = *report.fuzz;
  out << "\n"
      << plural(fuzz.schedules, "schedule") << ", seeds " << fuzz.firstSeed
      << " to " << fuzz.firstSeed + fuzz.schedules - 1 << ": ";
  if (fuzz.difference.empty())
    out << "the same bits in " << llvm::join(fuzz.arguments, ", ")
        << " every time\n";
  else
    out << "results differ\n  " << fuzz.difference << "\n  --seed " << fuzz.seed
        << " runs only that schedule\n";
}

/// Prints what is not decided, and why, and with --require-proof what is
/// proven.
static void printProof(const Report &report, llvm::raw_ostream &out) {
  if (!report.proof)
    return;
  const jit::ProofInfo &proof = *report.proof;
  for (const std::string &reason : proof.reasons)
    out << "  " << proof.verdict << ": " << reason << "\n";
  if (!report.requiresProof || !proof.reasons.empty())
    return;
  out << "  " << proof.verdict << ": followed " << plural(proof.ranks, "rank")
      << " x " << plural(proof.blocks, "block") << ", "
      << plural(proof.launches, "launch", "es");
  if (!proof.assumptions.empty())
    out << "; assuming " << llvm::join(proof.assumptions, ", ");
  out << "\n";
}

/// The verdict on launches that were checked and not run.
static void printOrder(const Report &report, llvm::raw_ostream &out) {
  if (report.order.empty() || !report.proof)
    return;
  const jit::ProofInfo &proof = *report.proof;
  out << report.kernel << ": " << plural(report.ranks, "rank") << " x "
      << plural(report.blocks, "block") << ", launches 1 to " << proof.launches
      << ": " << proof.verdict << "\n  followed " << report.order << "\n";
  if (!proof.assumptions.empty())
    out << "  assuming " << llvm::join(proof.assumptions, ", ") << "\n";
  for (const std::string &reason : proof.reasons)
    out << "  " << reason << "\n";
}

void commsir::driver::printTable(const Report &report, llvm::raw_ostream &out) {
  printOrder(report, out);
  if (!report.stats)
    return;
  out << report.kernel << ": " << plural(report.ranks, "rank") << ", "
      << plural(report.blocks, "block") << " each";
  if (report.launches != 1)
    out << ", " << report.launches << " launches";
  out << "; compiled in " << formatDuration(1000 * report.compileMilliseconds)
      << ", ran in " << formatDuration(report.stats->totalMicroseconds);
  if (report.stats->steps) // Only the CPU world counts them.
    out << ", " << plural(report.stats->steps, "step");
  out << "\n";
  if (!report.note.empty())
    out << "  " << report.note << "\n";
  for (const jit::Choice &choice : report.choices)
    out << "  " << choice.op << ": " << choice.algorithm << " over "
        << choice.protocol << ", " << plural(choice.tiles, "tile") << " of "
        << plural(choice.tileSize, "element") << "\n";
  printProof(report, out);
  out << "\n";
  printRanks(report, out);
  printComparisons(report, out);
  printFuzz(report, out);
  if (report.written.size() == 1)
    out << "\nwrote " << report.written[0] << "\n";
  else if (!report.written.empty())
    out << "\nwrote " << report.written.front() << " ... "
        << report.written.back() << " (" << report.written.size()
        << " files)\n";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// JSON has no infinity and no NaN: they become strings.
static llvm::json::Value jsonNumber(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

static llvm::json::Object jsonComparison(const Comparison &comparison) {
  llvm::json::Object object{{"argument", comparison.argument},
                            {"elements", comparison.count},
                            {"mismatches", comparison.mismatches},
                            {"max_error", jsonNumber(comparison.maxError)}};
  if (comparison.mismatches) {
    llvm::json::Array index;
    for (int64_t i : comparison.index)
      index.push_back(i);
    object["first"] =
        llvm::json::Object{{"index", std::move(index)},
                           {"got", jsonNumber(comparison.got)},
                           {"expected", jsonNumber(comparison.expected)},
                           {"allowed", jsonNumber(comparison.allowed)}};
  }
  return object;
}

static llvm::json::Array jsonRanks(const Report &report) {
  std::vector<llvm::json::Array> expects(report.ranks);
  for (const Comparison &comparison : report.comparisons)
    expects[comparison.rank].push_back(jsonComparison(comparison));
  llvm::json::Array ranks;
  for (int64_t rank = 0; rank < report.ranks; ++rank) {
    llvm::json::Object object{
        {"rank", rank}, {"microseconds", report.stats->rankMicroseconds[rank]}};
    if (!expects[rank].empty()) {
      object["max_error"] = jsonNumber(errorOf(report, rank).first);
      object["expects"] = std::move(expects[rank]);
    }
    ranks.push_back(std::move(object));
  }
  return ranks;
}

llvm::json::Object commsir::driver::renderRunError(const cpu::RunError &error) {
  llvm::json::Array waiting;
  for (const cpu::Waiting &wait : error.waiting)
    waiting.push_back(llvm::json::Object{{"rank", wait.rank},
                                         {"block", wait.block},
                                         {"op", wait.op},
                                         {"location", wait.location},
                                         {"what", wait.what}});
  return llvm::json::Object{{"message", error.message},
                            {"waiting", std::move(waiting)}};
}

static llvm::json::Object jsonFuzz(const FuzzReport &fuzz) {
  llvm::json::Object object{{"schedules", fuzz.schedules},
                            {"first_seed", int64_t(fuzz.firstSeed)},
                            {"arguments", fuzz.arguments},
                            {"same_bits", fuzz.difference.empty()}};
  if (!fuzz.difference.empty()) {
    object["difference"] = fuzz.difference;
    object["seed"] = int64_t(fuzz.seed);
  }
  return object;
}

/// A copy of `text` that JSON can hold: user input may be no UTF-8.
static std::string jsonText(llvm::StringRef text) {
  return llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text);
}

/// The verdict in JSON.
static llvm::json::Object jsonProof(const Report &report) {
  llvm::json::Object proof = jit::toJson(*report.proof);
  if (!report.order.empty())
    proof["order"] = jsonText(report.order);
  return proof;
}

std::string commsir::driver::renderCertificate(const Report &report) {
  llvm::json::Object object{{"kernel", jsonText(report.kernel)},
                            {"version", getVersion()}};
  if (report.proof)
    object["proof"] = jsonProof(report);
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
}

void commsir::driver::printJson(const Report &report, llvm::raw_ostream &out) {
  llvm::json::Object object{{"status", exitName(report.exitCode)},
                            {"exit_code", int64_t(report.exitCode)},
                            {"kernel", jsonText(report.kernel)},
                            {"ranks", report.ranks},
                            {"blocks", report.blocks},
                            {"launches", report.launches}};
  if (report.proof) {
    object["proof"] = jsonProof(report);
    if (report.proof->launches)
      object["checked_launches"] = report.proof->launches;
  }
  llvm::json::Array choices;
  for (const jit::Choice &choice : report.choices)
    choices.push_back(llvm::json::Object{{"op", choice.op},
                                         {"algorithm", choice.algorithm},
                                         {"protocol", choice.protocol},
                                         {"tile", choice.tileSize},
                                         {"tiles", choice.tiles}});
  object["choices"] = std::move(choices);
  if (report.stats) {
    object["compile_milliseconds"] = report.compileMilliseconds;
    object["microseconds"] = report.stats->totalMicroseconds;
    object["steps"] = int64_t(report.stats->steps);
    object["bytes_moved"] = int64_t(report.stats->bytesMoved);
    object["per_rank"] = jsonRanks(report);
  }
  if (!report.note.empty())
    object["note"] = jsonText(report.note);
  if (report.fuzz)
    object["fuzz"] = jsonFuzz(*report.fuzz);
  llvm::json::Array written;
  for (const std::string &path : report.written)
    written.push_back(jsonText(path));
  object["written"] = std::move(written);
  if (!report.error.empty())
    object["error"] = jsonText(report.error);
  auto list = [&](llvm::StringRef name, const std::vector<Diagnosis> &all) {
    llvm::json::Array texts;
    for (const Diagnosis &diagnosis : all)
      texts.push_back(jsonText(diagnosis.message));
    if (!texts.empty())
      object[name] = std::move(texts);
  };
  list("diagnostics", report.diagnostics);
  list("warnings", report.warnings);
  if (report.runError)
    object["run_error"] = renderRunError(*report.runError);
  out << llvm::json::Value(std::move(object)) << "\n";
}
