//===- Compile.h - Module in, loaded CPU kernel out -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the pipeline comms-to-cpu on a module, makes machine code of one kernel
// and loads it. What a caller has to know of the kernel (its arguments, the
// hidden ones included, and the source sites of its synchronization) comes with
// it.
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

/// What an argument of a kernel is.
enum class ArgKind { Window, Memory, Signal, Counter, Scalar };
/// "window", "memory", ….
llvm::StringRef stringifyArgKind(ArgKind kind);

/// One argument of a kernel.
struct ArgInfo {
  std::string name;
  ArgKind kind = ArgKind::Memory;
  /// As MLIR writes it: "bf16", "f8E4M3FN", "i64". Cells are "i64".
  std::string elementType;
  /// Bytes of one element; types narrower than 8 bits take one byte.
  unsigned elementBytes = 0;
  /// Of one rank's part. Signals and counters: {cells}; scalars: {}.
  llvm::SmallVector<int64_t> shape;
  /// Memory of a channel: made by the runtime, never bound by a user.
  bool hidden = false;
  /// Starts as poison (0xFFFA in every 16 bits) and not as zero.
  bool poisoned = false;
  /// A window that the code also reaches by its multicast address.
  bool multimem = false;
  /// Of a hidden window in memory that the kernels of a group take in turn:
  /// what its slots hold, "data", "packets", "lines" or "poison"; "barrier":
  /// cells of barriers. Empty: the window is the kernel's own.
  std::string slots;

  /// Number of elements of one rank's part.
  int64_t elements() const;
  /// Bytes of one rank's part.
  size_t bytes() const;
};

/// What the compiler chose for one collective.
struct Choice {
  std::string op, algorithm, protocol;
  int64_t tileSize = 0, tiles = 0;
};

/// A place in the source that waits, signals or can fail.
struct SourceSite {
  /// Name of the op: "comms.wait_signal".
  std::string op;
  /// "file:line:col", or "unknown location".
  std::string location;
  /// What a bounds check guards; else empty.
  std::string detail;
};

struct CompileOptions {
  /// Number of ranks; 0: the kernel's own.
  int64_t ranks = 0;
  /// Blocks of each rank; 0: the kernel's own, else chosen at run time.
  int64_t blocks = 0;
  /// For all collectives; empty: each op's own, else the cheapest.
  std::string algorithm, protocol;
  /// Run comms-check-sync.
  bool check = true;
  /// Record every access and synchronization.
  bool instrument = false;
  /// Record what a run with weak memory needs.
  bool weak = false;
  /// Check at run time the offsets that cannot be proven in bounds.
  bool assertBounds = true;
  /// Takes the object file; null: it is not asked for.
  std::string *object = nullptr;
  /// Budget of events of the checker; 0: its default.
  int64_t checkEvents = 0;
  /// Launches that a run will make, for the checker; 0: it is not known.
  int64_t runLaunches = 0;
  /// 0, 1, 2 or 3: effort of LLVM's optimizer.
  unsigned optLevel = 2;
};

/// What comms-check-sync says of a kernel.
struct ProofInfo {
  /// SHA-256 of the kernel that it is of, as bytecode before any pass, in hex;
  /// empty: it is not kept beside machine code.
  std::string digest;
  /// "proven" or "not decided"; empty: it was not checked.
  std::string verdict;
  int64_t ranks = 0, followedRanks = 0, blocks = 0, launches = 0;
  std::vector<std::string> assumptions, reasons;
  /// Outputs that hold what the kernel says (`comms.computes`); and what arrays
  /// hold after the first launch, where that was asked for.
  std::vector<std::string> computes, computed;
};

/// As reports have it: `verdict`, `ranks`, `followed_ranks`, `blocks`,
/// `launches`, `assumptions`, `reasons`; and, where there are any, `computes`,
/// `computed` and `digest`.
llvm::json::Object toJson(const ProofInfo &proof);

/// A kernel in machine code, with what is known about it.
class Kernel {
public:
  ~Kernel();
  llvm::StringRef name() const;
  llvm::ArrayRef<ArgInfo> args() const;
  llvm::ArrayRef<Choice> choices() const;
  int64_t ranks() const;
  /// Ranks that share load/store reach.
  int64_t lsaSize() const;
  /// Blocks of each rank; 0: free.
  int64_t blocks() const;
  /// What the checker says of it.
  const ProofInfo &proof() const;
  /// The code; `context` is a lowering/cpu/Abi.h Context.
  void (*entry() const)(void *context);
  /// Bytes of stack that the code needs, its calls to the runtime not counted.
  size_t frameBytes() const;
  /// Bytes of scratch memory that each block needs beside its stack.
  size_t arenaBytes() const;
  llvm::ArrayRef<SourceSite> sites() const;
  /// Number of the argument of that name, or -1.
  int findArg(llvm::StringRef name) const;

private:
  struct Data;
  explicit Kernel(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data;
  friend struct KernelFactory;
};

/// Compiles kernel `name` (empty: the only one) of `module`, which it consumes.
/// Diagnostics go to the module's context; the Error is a summary that names
/// the stage that failed.
llvm::Expected<std::unique_ptr<Kernel>>
compile(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
        const CompileOptions &options);

/// As `compile`, for a module that the pipeline comms-to-cpu has been run on
/// (or convert-comms-to-cpu alone): no pass of ours is run. Of `options` only
/// `object` and `optLevel` count.
llvm::Expected<std::unique_ptr<Kernel>>
load(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
     const CompileOptions &options);

/// The kernel that `compile` would give, as bytes for `loadBytes`, on machines
/// of the same processor (see `describeProcessor`).
llvm::Expected<std::string>
compileToBytes(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name,
               const CompileOptions &options);

/// The kernel that bytes of `compileToBytes` hold.
llvm::Expected<std::unique_ptr<Kernel>> loadBytes(llvm::StringRef bytes);

/// Whether the bytes are some of `compileToBytes`.
bool areKernelBytes(llvm::StringRef bytes);

/// Name and features of this machine's processor, as code generation uses them.
std::string describeProcessor();

/// Whether the Error of `compile` says that the checker refused the kernel.
/// Leaves the error as it is.
bool isCheckerRefusal(const llvm::Error &error);

/// The summary of a compilation that failed.
class CompileError : public llvm::ErrorInfo<CompileError> {
public:
  /// Where it failed.
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
