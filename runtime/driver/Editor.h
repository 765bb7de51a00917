//===- Editor.h - Between an editor and a language server -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's language server parses whatever an editor sends, by recursion: deeply
// nested brackets would end it. Such documents do not reach it. It gets others
// of as many lines, with an op at the bracket that is too deep, whose parser
// says so: the editor shows it there.
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

/// A message of an editor to a language server, in JSON, without what could end
/// the server: documents that are nested too deep (see Nesting.h), requests to
/// read bytecode, edits of ranges and what is no message of JSON-RPC are
/// replaced. JSON that is nested too deep, or has more than 2^20 values,
/// becomes JSON that is wrong. Other messages stay as they are.
std::string guardMessage(llvm::StringRef message);

/// Takes one message in JSON.
using TakeMessage = std::function<void(llvm::StringRef)>;

/// Replaces such documents in what standard input gives from now on, and adds
/// the dialect that reports them. Calls `note` with each message before the
/// server gets it, on a thread of its own. Returns false if the process has no
/// descriptors left.
bool guardEditorInput(mlir::DialectRegistry &registry, TakeMessage note);

/// Takes over standard output: what the process writes there goes message by
/// message to a function, and `write` reaches the editor.
class EditorOutput {
public:
  /// Sends one message to the editor; any thread may call it.
  void write(llvm::StringRef message);

  /// From now on calls `take` with each message, on a thread of its own.
  /// Returns false if the process has no descriptors left.
  bool redirect(TakeMessage take);

  /// Waits until `take` had all that was written.
  void finish();

private:
  std::mutex mutex;
  std::unique_ptr<llvm::raw_fd_ostream> editor;
  std::thread reader;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_EDITOR_H
