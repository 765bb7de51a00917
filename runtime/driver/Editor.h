//===- Editor.h - Between an editor and a language server -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's language server parses everything that an editor sends, recursively;
// deeply nested brackets would overflow its stack. Such documents are replaced
// by others with the same number of lines and an op at the offending bracket,
// whose parser emits the error, so that the editor shows it there.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_EDITOR_H
#define COMMSIR_RUNTIME_DRIVER_EDITOR_H

#include "mlir/IR/DialectRegistry.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace commsir::driver {

/// Makes an editor's JSON message safe for a language server. Replaces
/// documents that are nested too deep (see Nesting.h), requests to read
/// bytecode, edits of ranges, and everything that is not a JSON-RPC message.
/// JSON that is nested too deep, or has more than 2^20 values, becomes invalid
/// JSON. Other messages stay unchanged.
std::string guardMessage(llvm::StringRef message);

/// Receives one JSON message.
using TakeMessage = std::function<void(llvm::StringRef)>;

/// From now on replaces such documents in standard input, and adds the dialect
/// that reports them. Calls `note` with each message before the server reads
/// it, on a separate thread. Returns false if the process has no descriptors
/// left.
bool guardEditorInput(mlir::DialectRegistry &registry, TakeMessage note);

/// Takes over standard output: the process's messages go to a function, and
/// `write` reaches the editor.
class EditorOutput {
public:
  /// Sends one message to the editor. Thread-safe.
  void write(llvm::StringRef message);

  /// From now on calls `take` with each message, on a separate thread. Returns
  /// false if the process has no descriptors left.
  bool redirect(TakeMessage take);

  /// Waits until `take` has received everything that was written.
  void finish();

private:
  std::mutex mutex;
  std::unique_ptr<llvm::raw_fd_ostream> editor;
  std::thread reader;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_EDITOR_H
