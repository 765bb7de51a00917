//===- Compile.h - Module in, loaded CPU kernel out -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the pipeline comms-to-cpu on a module, generates machine code for one
// kernel and loads it. The result includes what callers must know of the
// kernel: its arguments, including hidden ones, and the source sites of its
// synchronization.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_COMPILE_H
#define COMMSIR_RUNTIME_JIT_COMPILE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace commsir::jit {

/// Kind of a kernel argument.
enum class ArgKind { Window, Memory, Signal, Counter, Scalar };
/// "window", "memory", ….
llvm::StringRef stringifyArgKind(ArgKind kind);

/// One argument of a kernel.
struct ArgInfo {
  std::string name;
  ArgKind kind = ArgKind::Memory;
  /// Element type in MLIR syntax: "bf16", "f8E4M3FN", "i64". Cells are "i64".
  std::string elementType;
  /// Bytes per element; types narrower than 8 bits take one byte.
  unsigned elementBytes = 0;
  /// Shape of one rank's part. Signals and counters: {cells}; scalars: {}.
  llvm::SmallVector<int64_t> shape;
  /// Channel memory: allocated by the runtime, never bound by a user.
  bool hidden = false;
  /// Initialized to poison (0xFFFA in every 16 bits) rather than zero.
  bool poisoned = false;
  /// The kernel may write this memory, on any rank.
  bool written = false;
  /// A window that is also accessed by its multicast address.
  bool multimem = false;
  /// For a hidden window in memory that the kernels of a group use in turn: the
  /// contents of its slots, "data", "packets", "lines" or "poison"; "barrier":
  /// barrier cells. Empty: the kernel has its own window.
  std::string slots;

  /// Number of elements of one rank's part.
  int64_t elements() const;
  /// Bytes of one rank's part.
  size_t bytes() const;
};

/// The compiler's choice for one collective.
struct Choice {
  std::string op, algorithm, protocol;
  int64_t tileSize = 0, tiles = 0;
};

/// A source location that waits, signals or can fail.
struct SourceSite {
  /// Name of the op: "comms.wait_signal".
  std::string op;
  /// "file:line:col", or "unknown location".
  std::string location;
  /// The access that a bounds check guards; else empty.
  std::string detail;
};

struct CompileOptions {
  /// Number of ranks; 0: the kernel's own.
  int64_t ranks = 0;
  /// Blocks per rank; 0: the kernel's own, else chosen at run time.
  int64_t blocks = 0;
  /// Used for all collectives; empty: each op's own, else the cheapest.
  std::string algorithm, protocol;
  /// Run comms-check-sync.
  bool check = true;
  /// Record every access and synchronization.
  bool instrument = false;
  /// Record what a run with weak memory needs.
  bool weak = false;
  /// Check at run time the offsets that cannot be proven in bounds.
  bool assertBounds = true;
  /// Receives the object file; null: not requested.
  std::string *object = nullptr;
  /// Event budget of the checker; 0: its default.
  int64_t checkEvents = 0;
  /// Number of launches of the run, for the checker; 0: unknown.
  int64_t runLaunches = 0;
  /// Optimization level of LLVM: 0, 1, 2 or 3.
  unsigned optLevel = 2;
};

/// The result of comms-check-sync for a kernel.
struct ProofInfo {
  /// SHA-256, in hex, of the checked kernel as bytecode before any pass; empty:
  /// not stored with machine code.
  std::string digest;
  /// "proven" or "not decided"; empty: not checked.
  std::string verdict;
  int64_t ranks = 0, followedRanks = 0, blocks = 0, launches = 0;
  std::vector<std::string> assumptions, reasons;
  /// Outputs that are proven to hold what the kernel declares
  /// (`comms.computes`); and the contents of arrays after the first launch, if
  /// requested.
  std::vector<std::string> computes, computed;
};

/// The keys of reports: `verdict`, `ranks`, `followed_ranks`, `blocks`,
/// `launches`, `assumptions`, `reasons`; and, if present, `computes`,
/// `computed` and `digest`.
llvm::json::Object toJson(const ProofInfo &proof);

/// A kernel in machine code, with its description.
class Kernel {
public:
  ~Kernel();
  llvm::StringRef name() const;
  llvm::ArrayRef<ArgInfo> args() const;
  llvm::ArrayRef<Choice> choices() const;
  int64_t ranks() const;
  /// Ranks that share load/store reach.
  int64_t lsaSize() const;
  /// Blocks per rank; 0: free.
  int64_t blocks() const;
  /// The checker's verdict.
  const ProofInfo &proof() const;
  /// The code; `context` is a lowering/cpu/Abi.h Context.
  void (*entry() const)(void *context);
  /// Bytes of stack that the code needs, without its calls to the runtime.
  size_t frameBytes() const;
  /// Bytes of scratch memory per block, in addition to its stack.
  size_t arenaBytes() const;
  llvm::ArrayRef<SourceSite> sites() const;
  /// Index of the argument of that name, or -1.
  int findArg(llvm::StringRef name) const;

private:
  struct Data;
  explicit Kernel(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data;
  friend struct KernelFactory;
};

/// Compiles kernel `name` (empty: the only kernel) of `module`, which it
/// consumes. Diagnostics go to the module's context; the Error is a summary
/// that names the failed stage.
llvm::Expected<std::unique_ptr<Kernel>>
compile(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
        const CompileOptions &options);

/// Like `compile`, for a module on which the pipeline comms-to-cpu (or just
/// convert-comms-to-cpu) was already run: runs no CommsIR passes. Of `options`
/// only `object` and `optLevel` apply.
llvm::Expected<std::unique_ptr<Kernel>>
load(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
     const CompileOptions &options);

/// Compiles like `compile` and returns bytes for `loadBytes` on machines with
/// the same processor (see `describeProcessor`).
llvm::Expected<std::string>
compileToBytes(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
               const CompileOptions &options);

/// Loads a kernel from bytes of `compileToBytes`.
llvm::Expected<std::unique_ptr<Kernel>> loadBytes(llvm::StringRef bytes);

/// Whether the bytes were made by `compileToBytes`.
bool areKernelBytes(llvm::StringRef bytes);

/// Name and features of this machine's processor, as code generation uses them.
std::string describeProcessor();

/// Whether an Error of `compile` says that the checker refused the kernel. Does
/// not consume the error.
bool isCheckerRefusal(const llvm::Error &error);

/// Summary of a failed compilation.
class CompileError : public llvm::ErrorInfo<CompileError> {
public:
  /// The stage that failed.
  enum class Stage { Input, Checker, Lowering, CodeGeneration };
  static char ID;
  CompileError(Stage stage, std::string message)
      : stage(stage), message(std::move(message)) {}
  Stage getStage() const { return stage; }
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

private:
  Stage stage;
  std::string message;
};

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_COMPILE_H
