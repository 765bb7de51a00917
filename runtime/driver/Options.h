//===- Options.h - The command line of comms-run ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_OPTIONS_H
#define COMMSIR_RUNTIME_DRIVER_OPTIONS_H

#include "dialect/Spelling.h"
#include "runtime/support/ExitCode.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace commsir::driver {

using commsir::closest;

/// `NAME=VALUE` as given to --input, --output, --expect or --shape.
struct Binding {
  std::string name;
  std::string value;
};

/// Maximum launches per run. Multiplied by the number of ranks and blocks that
/// fit memory, it stays below 2^63.
inline constexpr int64_t maxLaunches = int64_t(1) << 40;

struct Options {
  std::string file;
  std::string batch; ///< file of command lines, or ""
  std::string kernel;
  std::optional<int64_t> ranks;
  int64_t blocks = 0; ///< 0: the kernel's own, else 1
  int64_t launches = 1, firstLaunch = 1;
  std::vector<Binding> inputs, outputs, expects, shapes;
  std::optional<double> rtol, atol;
  bool bitwise = false;

  std::string algorithm, protocol;
  bool check = true;
  int64_t checkEvents = 0;
  /// Refuse kernels that are not proven.
  bool requireProof = false;
  /// Launches of several kernels to check instead of a run, as of
  /// jit::SequenceOptions.
  std::string checkOrder;
  /// A file for the verdict, or "".
  std::string certificate;
  bool instrument = false;
  std::string dumpObject;
  bool dumpIr = false;

  std::string target = "cpu";
  int64_t threads = 0, cluster = 0; ///< 0: chosen
  std::string impl;                 ///< "" or nccl
  std::optional<double> timeout;    ///< seconds; 10
  bool graph = false;
  std::string windows = "auto"; ///< auto, nccl or plain
  std::vector<int> devices;     ///< empty: GPU r for rank r
  bool oneProcess = false;      ///< ranks are threads
  std::string rendezvous;       ///< folder of a launched job, or ""

  uint64_t seed = 0;
  bool seeded = false;
  int64_t fuzzSchedules = 0;
  bool fast = false;
  unsigned workers = 0;
  bool weak = false;                    ///< memory as late as the model allows
  bool ignoreRaces = false;             ///< of a weak run
  unsigned broken = 0;                  ///< assumptions: bits of cpu::Broken
  std::vector<std::string> sameOnRanks; ///< arguments that ranks compare
  std::vector<std::string> varied;      ///< arguments of other data each launch
  uint64_t maxSteps = 0;
  double timeLimit = 0;
  double totalTime = 0; ///< seconds of all schedules; 0: each has timeLimit
  std::string trace;
  uint64_t memoryLimit = 0; ///< bytes; 0: three quarters of the machine's
  bool guardArrays = false; ///< canaries; no option of the command line

  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool explain = false;
  bool help = false;
  bool version = false;
};

/// Parses the command line (without the program's name). Errors for unknown
/// options, invalid numbers and conflicting options suggest a correction.
llvm::Expected<Options> parseOptions(llvm::ArrayRef<const char *> arguments);

/// The text of --help.
std::string helpText();

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_OPTIONS_H
