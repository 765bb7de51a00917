//===- Tools.cpp - C API: the programs, and measured tables ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A package that travels holds one copy of LLVM: its programs are scripts that
// call this.
//
//===----------------------------------------------------------------------===//

#include "lowering/Translations.h"
#include "runtime/bench/Bench.h"
#include "runtime/capi/Error.h"
#include "runtime/choose/Choose.h"
#include "runtime/driver/OptMain.h"
#include "runtime/driver/Run.h"
#include "runtime/group/Collective.h"
#include "runtime/support/ExitCode.h"
#include "runtime/support/FatalErrors.h"

#include "llvm/Support/raw_ostream.h"

using namespace commsir;

namespace {
struct Program {
  const char *name;
  int (*main)(int, char **);
  int onFatalError;
};
} // namespace

static constexpr Program kPrograms[] = {
    {"comms-run", driver::runMain, driver::ExitUsage},
    {"comms-opt", driver::optMain, 1},
    {"comms-bench", tune::benchMain, driver::ExitUsage},
    {"comms-translate", mlir::comms::translateMain, 1},
};

int commsir_tool(int argc, char **argv) {
  if (argc < 1 || !argv)
    return COMMSIR_USAGE;
  llvm::StringRef name = argv[0];
  name = name.substr(name.rfind('/') + 1);
  for (const Program &program : kPrograms)
    if (name == program.name) {
      exitOnFatalErrors(program.name, program.onFatalError);
      int status = program.main(argc, argv);
      // A caller may end the process without the destructors of this library.
      llvm::outs().flush();
      return status;
    }
  llvm::errs() << "commsir_tool: there is no program '" << name << "'\n";
  return COMMSIR_USAGE;
}

void commsir_compile_at_once(int32_t enabled) {
  group::compilesAtOnce += enabled ? 1 : -1;
}

commsir_status commsir_load_tables(const char *path) {
  return capi::guard([&] {
    if (llvm::Error error = tune::loadTables(path ? path : ""))
      return capi::fail(COMMSIR_USAGE, std::move(error));
    return COMMSIR_OK;
  });
}
