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

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace commsir;
int commsir_tool(int argc, char **argv) {
  if (argc < 1 || !argv)
    return COMMSIR_USAGE;
  using Main = int (*)(int, char **);
  llvm::StringRef name = argv[0];
  name = name.substr(name.rfind('/') + 1);
  Main main = llvm::StringSwitch<Main>(name)
                  .Case("comms-run", driver::runMain)
                  .Case("comms-opt", driver::optMain)
                  .Case("comms-bench", tune::benchMain)
                  .Case("comms-translate", mlir::comms::translateMain)
                  .Default(nullptr);
  if (main) {
    int status = main(argc, argv);
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
