//===- OptionHelp.cpp - The text of --help --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/OptionTable.h"

using namespace commsir;
using namespace commsir::driver;

/// Appends `text`, broken into lines of 78 columns that start at `indent`; the
/// first continues a line that is `column` wide.
static void appendWrapped(std::string &out, llvm::StringRef text, size_t column,
                          size_t indent) {
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  out.append(column < indent ? indent - column : 0, ' ');
  column = std::max(column, indent);
  bool first = true;
  for (llvm::StringRef word : words) {
    if (!first && column + 1 + word.size() > 78) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  out += '\n';
}

static constexpr llvm::StringLiteral kIntroduction =
    R"(comms-run: run a collective kernel with N ranks on this machine

Usage: comms-run FILE.mlir --ranks N [options]

The kernel is compiled once and run by every block of every rank. Before it
starts it is checked: every wait must have its signal, every barrier all its
ranks. If all blocks wait all the same, the run ends with a report that names
each waiting rank, its source line and what it waits for.

Examples
  8 ranks, each with its own input; write each rank's result:
    comms-run allreduce.mlir --ranks 8 \
      --input x=x-%r.npy --output y=y-%r.npy

  the same input made here, the result compared with a reference that NumPy
  computed in float64 (one file, as every rank gets the same result):
    comms-run allreduce.mlir --ranks 8 --input x=random:1 \
      --expect y=reference.npy --rtol 1e-5

  one algorithm and protocol, under 100 orders of execution, bits compared:
    comms-run allreduce.mlir --ranks 4 --blocks 2 --launches 3 \
      --input x=random:1 --algorithm two_shot --protocol ll --fuzz-schedules 100

  what each block did when, to be opened in ui.perfetto.dev:
    comms-run allreduce.mlir --ranks 4 --input x=iota --trace run.json

)";

static constexpr llvm::StringLiteral kExitCodes =
    R"(Exit status
  0  the run ended, and agrees with every --expect
  1  a result differs from --expect, or between schedules
  2  the command line or a file is wrong, or memory runs out
  3  the kernel does not compile
  4  the checker refused the kernel (--no-check runs it all the same)
  5  deadlock
  6  --max-steps or --time-limit reached
  7  an access outside a window
No output file is left behind unless the run ended (status 0 or 1).
)";

std::string commsir::driver::helpText() {
  std::string text = kIntroduction.str();
  for (const OptionGroup &group : getOptionGroups()) {
    text += (group.title + "\n").str();
    for (const Option &option : group.options) {
      std::string left = ("  " + option.name).str();
      if (!option.value.empty())
        left += (" " + option.value).str();
      text += left;
      if (left.size() > 24) {
        text += '\n';
        left.clear();
      }
      appendWrapped(text, option.help, left.size(), 26);
    }
    text += '\n';
  }
  return text + kExitCodes.str();
}
