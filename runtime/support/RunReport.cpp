//===- RunReport.cpp - The outcome of a run -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/RunReport.h"

using namespace commsir::cpu;

/// Waiting blocks that a report prints.
static constexpr size_t kPrinted = 24;

static std::string number(int64_t value) { return std::to_string(value); }

std::string RunError::render() const {
  std::string text = message + "\n";
  for (size_t i = 0; i < waiting.size() && i < kPrinted; ++i) {
    const Waiting &one = waiting[i];
    text += "  rank " + number(one.rank) + " block " + number(one.block) +
            ": " + (one.op.empty() ? std::string("(no op)") : one.op) +
            (one.location.empty() ? std::string() : " at " + one.location) +
            "\n    " + one.what + "\n";
  }
  if (waiting.size() > kPrinted)
    text += "  … and " + number(waiting.size() - kPrinted) + " more blocks\n";
  return text;
}
