//===- Choose.cpp - Algorithm, protocol and launch shape ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Choose.h"

#include "runtime/tune/Report.h"
#include "runtime/tune/Table.h"

#include "llvm/Support/FormatVariadic.h"

#include <cstdlib>
#include <set>

using namespace commsir;
using namespace commsir::tune;

static const Tables &getTables() {
  static const Tables tables = [] {
    const char *path = std::getenv("COMMSIR_TABLES");
    Tables read = Tables::load(path ? path : "");
    if (!read.problem.empty())
      llvm::errs() << "commsir: warning: COMMSIR_TABLES: " << read.problem
                   << "; the built-in tables are used\n";
    return read;
  }();
  return tables;
}

Answer commsir::tune::choose(const Question &question) {
  return chooseFrom(getTables(), question);
}

static std::string describe(const Question &question) {
  std::string text = question.op + " of " + renderSize(question.bytes) + " " +
                     question.elementType;
  if (question.rows > 0)
    text += llvm::formatv(" ({0} x {1})", question.rows, question.columns);
  text += llvm::formatv(", {0} ranks, {1}", question.ranks, question.chip);
  return question.device.empty() ? text : text + " (" + question.device + ")";
}

static std::string describe(const Way &way) {
  std::string text = way.algorithm + "/" + way.protocol;
  if (way.blocks)
    text += " b" + std::to_string(way.blocks);
  if (way.threads)
    text += " t" + std::to_string(way.threads);
  if (way.cluster > 1)
    text += " c" + std::to_string(way.cluster);
  return text;
}

/// Of each pair of algorithm and protocol that was left out for its memory, the
/// fastest way.
static void explainLeftOut(const Question &question, const Answer &answer,
                           llvm::raw_ostream &os) {
  std::set<std::pair<std::string, std::string>> told;
  for (const LeftOut &one : answer.tooLarge)
    if (told.emplace(one.way.algorithm, one.way.protocol).second)
      os << llvm::formatv("  {0,9:f2} us  {1}: left out, it takes {2} of "
                          "channel memory, and the limit is {3}\n",
                          one.way.microseconds, describe(one.way),
                          renderSize(int64_t(one.bytes)),
                          renderSize(int64_t(question.memory)));
}

std::string commsir::tune::explain(const Question &question,
                                   const Answer &answer, size_t most) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << describe(question) << ": " << describe(answer.way) << ", by the "
     << answer.source << "\n";
  explainLeftOut(question, answer, os);
  size_t shown = 0;
  for (const Way &way : answer.considered) {
    if (most && shown++ == most) {
      os << "  and " << answer.considered.size() - most << " more\n";
      break;
    }
    os << llvm::formatv("  {0,9:f2} us  {1}\n", way.microseconds,
                        describe(way));
  }
  return text;
}
