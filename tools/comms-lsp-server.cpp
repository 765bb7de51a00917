//===- comms-lsp-server.cpp - CommsIR in an editor --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "runtime/driver/Editor.h"
#include "runtime/driver/EditorChecks.h"
#include "runtime/support/FatalErrors.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace commsir::embedded {
extern const unsigned char ops[];
extern const size_t opsSize;
} // namespace commsir::embedded

using namespace commsir::driver;

/// --help, --version and their like.
static bool isQuery(llvm::StringRef argument) {
  argument = argument.ltrim('-');
  return argument.starts_with("help") || argument.starts_with("version");
}

int main(int argc, char **argv) {
  commsir::exitOnFatalErrors("comms-lsp-server", 1);
  llvm::SmallVector<char *> arguments(argv, argv + argc);
  if (argc == 2 && argv[1] == kCheckArgument) {
    mlir::DialectRegistry registry;
    mlir::comms::registerAllDialects(registry);
    return checkStandardInput(registry);
  }
  for (llvm::StringRef argument : llvm::drop_begin(arguments))
    if (argument.ends_with(".mlir") || llvm::sys::fs::exists(argument)) {
      llvm::errs() << "comms-lsp-server: error: '" << argument
                   << "' is not taken: an editor starts this program for .mlir "
                      "files, and sends their text to its standard input\n";
      return 1;
    }
  size_t given = arguments.size();
  llvm::erase_if(arguments, [](llvm::StringRef argument) {
    return argument == "--no-check";
  });
  bool checks = arguments.size() == given;
  mlir::comms::hideLLVMOptions();
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  auto serve = [&] {
    return mlir::MlirLspServerMain(static_cast<int>(arguments.size()),
                                   arguments.data(), registry);
  };
  // Then the options are printed, and the process ends there.
  if (llvm::any_of(llvm::drop_begin(arguments), isQuery))
    return mlir::failed(serve());
  EditorOutput output;
  llvm::StringRef docs(reinterpret_cast<const char *>(commsir::embedded::ops),
                       commsir::embedded::opsSize);
  // The thread that reads the input may outlive this function.
  auto checker = std::make_shared<EditorChecks>(
      docs, [&](llvm::StringRef message) { output.write(message); }, checks);
  if (!guardEditorInput(registry,
                        [checker](llvm::StringRef message) {
                          checker->noteRequest(message);
                        }) ||
      !output.redirect([checker](llvm::StringRef message) {
        checker->forwardAnswer(message);
      })) {
    llvm::errs() << "comms-lsp-server: error: standard input and output cannot "
                    "be redirected\n";
    checker->stop();
    return 1;
  }
  auto status = serve();
  checker->stop();
  output.finish();
  return mlir::failed(status);
}
