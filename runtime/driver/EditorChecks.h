//===- EditorChecks.h - The checker and op docs in an editor ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's language server parses and verifies. EditorChecks sees the messages
// between it and an editor. It adds the description of an op to what the server
// answers about the op's name, and it publishes the checker's verdict on each
// document that parses. The checker runs in a separate process, with limits
// on time and memory, once the document has not changed for a while: typing
// never waits for it, and a change ends it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_EDITORCHECKS_H
#define COMMSIR_RUNTIME_DRIVER_EDITORCHECKS_H

#include "mlir/IR/DialectRegistry.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace commsir::driver {

class EditorChecks {
public:
  /// `opDocs` is the page that `mlir-tblgen -gen-dialect-doc` writes. `send`
  /// writes one message to the editor; any thread may call it. Without
  /// `checks` only descriptions are added.
  EditorChecks(llvm::StringRef opDocs,
               std::function<void(llvm::StringRef)> send, bool checks);

  ~EditorChecks() { stop(); }

  /// Ends the checks, also one that runs.
  void stop();

  /// Records what the editor's `message` opens, changes or asks about.
  void noteRequest(llvm::StringRef message);

  /// Completes the server's `message` and sends it to the editor.
  void forwardAnswer(llvm::StringRef message);

private:
  struct Document {
    std::string text;
    int64_t version = 0;
    /// Diagnostics of the server.
    llvm::json::Array diagnostics;
  };

  void completeHover(llvm::json::Object &answer);
  void noteDiagnostics(const llvm::json::Object &params);
  void run();
  bool isOutdated(const std::string &uri, int64_t version);

  llvm::StringMap<std::string> descriptions;
  std::function<void(llvm::StringRef)> send;

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Document> documents;
  /// Ops that pending hover requests ask about, by request id.
  std::map<std::string, std::string> hovers;
  /// The document to check next; empty: none.
  std::string next;
  /// Number of changes. A check waits until it stays constant.
  uint64_t changes = 0;
  bool stopped = false;
  std::thread worker;
};

/// The checker's findings in `text`, as diagnostics of the Language Server
/// Protocol: errors for refuted kernels; for each other kernel a hint that it
/// is proven, or a warning with the reason why it is not decided. Kernels
/// without `ranks` are checked with 4. Empty if the text does not parse.
llvm::json::Array checkDocument(llvm::StringRef text,
                                const mlir::DialectRegistry &registry);

/// The argument with which this program checks the text on its standard input.
inline constexpr llvm::StringLiteral kCheckArgument = "--check-standard-input";

/// The main function of a check's process: writes the findings of
/// checkDocument in the text on standard input to standard output. Returns the
/// exit status.
int checkStandardInput(const mlir::DialectRegistry &registry);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_EDITORCHECKS_H
