//===- comms-lsp-server.cpp - CommsIR in an editor --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "runtime/driver/Editor.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  for (llvm::StringRef argument : llvm::ArrayRef(argv, argc).drop_front())
    if (argument.ends_with(".mlir") || llvm::sys::fs::exists(argument)) {
      llvm::errs() << "comms-lsp-server: error: '" << argument
                   << "' is not taken: an editor starts this program for .mlir "
                      "files, and sends their text to its standard input\n";
      return 1;
    }
  mlir::comms::hideLLVMOptions();
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  if (!commsir::driver::guardEditorInput(registry)) {
    llvm::errs() << "comms-lsp-server: error: standard input cannot be read\n";
    return 1;
  }
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
