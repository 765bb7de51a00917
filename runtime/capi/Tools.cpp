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

#include "lowering/Register.h"
#include "lowering/Translations.h"
#include "runtime/bench/Bench.h"
#include "runtime/capi/Error.h"
#include "runtime/choose/Choose.h"
#include "runtime/driver/Run.h"
#include "runtime/group/Collective.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace commsir;
namespace comms = mlir::comms;

static int runOpt(int argc, char **argv) {
  mlir::DialectRegistry registry;
  comms::registerAllDialects(registry);
  comms::registerPasses();
  // Upstream passes that are of use between ours.
  mlir::registerTransformsPasses();
  mlir::arith::registerArithIntRangeOptsPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "CommsIR optimizer driver\n", registry));
}

static int runTranslate(int argc, char **argv) {
  comms::registerTranslations();
  return mlir::failed(
      mlir::mlirTranslateMain(argc, argv, "CommsIR translation driver"));
}

int commsir_tool(int argc, char **argv) {
  if (argc < 1 || !argv)
    return COMMSIR_USAGE;
  using Main = int (*)(int, char **);
  llvm::StringRef name = argv[0];
  name = name.substr(name.rfind('/') + 1);
  Main main = llvm::StringSwitch<Main>(name)
                  .Case("comms-run", driver::runMain)
                  .Case("comms-opt", runOpt)
                  .Case("comms-bench", tune::benchMain)
                  .Case("comms-translate", runTranslate)
                  .Default(nullptr);
  if (main)
    return main(argc, argv);
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
