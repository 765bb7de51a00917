//===- OptMain.cpp - The program comms-opt --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/OptMain.h"

#include "lowering/NoFiles.h"
#include "lowering/Register.h"
#include "runtime/support/Nesting.h"
#include "runtime/support/StandardError.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace commsir;

/// Errors name their place and end there, unless it is asked for that MLIR
/// prints the whole operation after each.
static llvm::SmallVector<char *> addDefaults(llvm::ArrayRef<char *> given) {
  static char quiet[] = "--mlir-print-op-on-diagnostic=false";
  llvm::SmallVector<char *> arguments(given);
  if (llvm::none_of(given, [](llvm::StringRef argument) {
        return argument.contains("-mlir-print-op-on-diagnostic");
      }))
    arguments.insert(arguments.begin() + 1, quiet);
  return arguments;
}

/// Whether the caller asks for files in addition to the output, by the name of
/// an option: a file's name, or an option's value, may be any word.
static bool writesFiles(llvm::ArrayRef<char *> given) {
  return llvm::any_of(given.drop_front(), [](llvm::StringRef argument) {
    llvm::StringRef name = argument.split('=').first;
    return name.consume_front("-") &&
           (name.contains("reproducer") || name.contains("log-") ||
            name.contains("ir-tree-dir") || name.contains("profile") ||
            name.contains("time-trace"));
  });
}

/// As mlir::MlirOptMain, but what a location names is not opened.
static int process(llvm::StringRef input, llvm::StringRef output,
                   mlir::DialectRegistry &registry, bool mayOpenFiles) {
  std::string error;
  auto file = mlir::openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> made;
  if (file)
    made = mlir::openOutputFile(output, &error);
  if (!made) {
    printErrorLine(error);
    return 1;
  }
  std::optional<mlir::comms::NoFiles> noFiles;
  if (!mayOpenFiles)
    noFiles.emplace();
  if (mlir::failed(
          mlir::MlirOptMain(made->os(), std::move(file), registry,
                            mlir::MlirOptMainConfig::createFromCLOptions())))
    return 1;
  made->keep();
  return 0;
}

int driver::optMain(int argc, char **argv) {
  llvm::MutableArrayRef<char *> given(argv, argc);
  if (llvm::Error error = refuseDeepFiles(given)) {
    printErrorLine(llvm::toString(std::move(error)));
    return 1;
  }
  llvm::SmallVector<char *> arguments = addDefaults(given);
  mlir::comms::hideLLVMOptions();
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  mlir::comms::registerPasses();
  // Upstream passes that are of use between ours.
  mlir::registerTransformsPasses();
  mlir::arith::registerArithIntRangeOptsPass();
  auto [input, output] =
      mlir::registerAndParseCLIOptions(int(arguments.size()), arguments.data(),
                                       "CommsIR optimizer driver\n", registry);
  return process(input, output, registry, writesFiles(given));
}
