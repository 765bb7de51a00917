//===- ProofTest.cpp - The checker, parallel to the compiler --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifdef COMMSIR_CUDA

#include "Compiled.h"

#include "lowering/Pipelines.h"
#include "lowering/Register.h"
#include "runtime/jit/Proof.h"
#include "runtime/jit/cuda/CudaCompile.h"
#include "runtime/support/FatalErrors.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <future>
#include <new>
#include <thread>

using namespace commsir;
using namespace commsir::jit;
using llvm::StringRef;
namespace comms = mlir::comms;
namespace fs = llvm::sys::fs;

namespace {

/// Waits for what nobody signals, at a place that a tool has made up.
const char kDeadlock[] = R"(
comms.kernel @forgets(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %team = comms.team world
  %rank = comms.rank %team
  %first = arith.cmpi eq, %rank, %c0 : index
  scf.if %first {
    comms.signal inc %s[%c0] at %c1 of %team : !comms.signal<1>
  }
  %t = comms.wait_signal %s[%c0] ge %one : !comms.signal<1> loc(fused["pass"(callsite("mine"("a b.py":7:3) at "main.py":1:2)), unknown])
  comms.return
})";

/// Sound, with more events than the budget of some tests.
const char kSum[] = R"(
comms.kernel @sum(%x: !comms.window<4096xf32>, %y: memref<4096xf32>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<4096xf32>) outs(%y : memref<4096xf32>)
  comms.return
})";

void write(mlir::Diagnostic &diagnostic, StringRef indent, std::string &text) {
  llvm::raw_string_ostream out(text);
  out << indent << diagnostic.getLocation() << ": "
      << int(diagnostic.getSeverity()) << ": " << diagnostic << "\n";
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    write(note, "  ", text);
}

/// What is said when `source` is compiled by `run`, with all places, notes and
/// the summary.
template <typename Run>
std::string listen(StringRef source, bool printOps, Run run) {
  mlir::MLIRContext context(test::Source::makeRegistry(),
                            mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(printOps);
  std::string text;
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          write(diagnostic, "", text);
                                          return mlir::success();
                                        });
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(source, &context, "test.mlir");
  EXPECT_TRUE(module) << text;
  llvm::Error error = run(*module);
  bool refused = error && isCheckerRefusal(error);
  return text + (error ? toString(std::move(error)) : "compiled") +
         (refused ? " (checker)" : "");
}

struct ProofOfCode : testing::Test {
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("commsir-cache", folder));
    settings.folder = folder.str();
    // More than are followed in line.
    options.blocks = 65;
    options.threads = 128;
  }
  void TearDown() override { fs::remove_directories(folder); }

  std::string compile(StringRef source, bool printOps = false) {
    Cache cache(settings);
    auto said = listen(source, printOps, [&](mlir::ModuleOp module) {
      mlir::OwningOpRef<mlir::ModuleOp> owned(module.clone());
      auto kernel =
          compileCudaWith(std::move(owned), "", options, cache, makePtx);
      return kernel ? llvm::Error::success() : kernel.takeError();
    });
    built = cache.counts().built;
    return said;
  }
  /// The same passes, one after the other.
  std::string inOrder(StringRef source, bool printOps = false) {
    return listen(source, printOps, [&](mlir::ModuleOp module) -> llvm::Error {
      auto kernel = prepareKernel(module, "", options.ranks, options.blocks);
      if (!kernel)
        return kernel.takeError();
      return runPipeline(module, [&](mlir::OpPassManager &manager) {
        comms::NVVMPipelineOptions pipeline;
        pipeline.blocks = options.blocks;
        pipeline.threads = options.threads;
        pipeline.checkEvents = options.checkEvents;
        comms::buildCommsToNVVM(manager, pipeline);
      });
    });
  }

  llvm::SmallString<128> folder;
  CacheSettings settings;
  CudaOptions options;
  uint64_t built = 0;
};

TEST_F(ProofOfCode, RefusalsEqualThoseInSequence) {
  for (auto [blocks, printOps] :
       {std::pair(1, false), std::pair(65, false), std::pair(65, true)}) {
    options.blocks = blocks;
    std::string said = compile(kDeadlock, printOps);
    EXPECT_EQ(said, inOrder(kDeadlock, printOps));
    EXPECT_NE(said.find("deadlock: rank 0, block 0 waits"), std::string::npos)
        << said;
    EXPECT_NE(said.find("\"a b.py\":7:3"), std::string::npos) << said;
    EXPECT_NE(said.find("the checker refused the kernel (checker)"),
              std::string::npos)
        << said;
  }
}

TEST_F(ProofOfCode, NothingOfARefusedKernelIsKept) {
  compile(kDeadlock);
  EXPECT_EQ(built, 0u);
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error))
    EXPECT_FALSE(StringRef(it->path()).ends_with(".kernel")) << it->path();
  // It is refused again, and unproven it is a kernel.
  EXPECT_EQ(compile(kDeadlock), inOrder(kDeadlock));
  options.check = false;
  EXPECT_EQ(compile(kDeadlock), "compiled");
  EXPECT_EQ(built, 1u);
}

TEST_F(ProofOfCode, WarningsOfTheCheckerComeOut) {
  options.checkEvents = 1;
  std::string said = compile(kSum);
  EXPECT_EQ(said, inOrder(kSum));
  EXPECT_NE(said.find("did not check this kernel"), std::string::npos) << said;
  EXPECT_EQ(built, 1u);
}

/// 64 MiB on few blocks, and what is said where that is too much.
TEST_F(ProofOfCode, LargeCollectivesAreProvenWhole) {
  const char large[] = R"(
comms.kernel @sum(%x: memref<33554432xbf16>, %y: memref<33554432xbf16>) attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<33554432xbf16>) outs(%y : memref<33554432xbf16>)
  comms.return
})";
  options.blocks = 28;
  options.threads = 1024;
  EXPECT_EQ(compile(large), "compiled");
  // Of fewer ranks blocks are not folded, and take longer.
  options.checkEvents = int64_t(1) << 17;
  std::string said = inOrder(large);
  EXPECT_NE(said.find("did not check this kernel"), std::string::npos) << said;
}

/// What comes after the checker fails: the refusal is told, and that alone.
TEST_F(ProofOfCode, ARefusalPrecedesLaterErrors) {
  options.threads = 77;
  std::string said = compile(kDeadlock);
  EXPECT_EQ(said, inOrder(kDeadlock));
  EXPECT_NE(said.find("(checker)"), std::string::npos) << said;
  std::string sound = compile(kSum);
  EXPECT_EQ(sound, inOrder(kSum));
  EXPECT_NE(sound.find("pass "), std::string::npos) << sound;
}

/// The linker fails while the checker is at work, or after it.
TEST_F(ProofOfCode, ARefusalGoesBeforeALinkersError) {
  options.linker = "no such linker";
  std::string said = compile(kDeadlock);
  EXPECT_NE(said.find("(checker)"), std::string::npos) << said;
  EXPECT_EQ(said.find("no such linker"), std::string::npos) << said;
  EXPECT_NE(compile(kSum).find("there is no linker"), std::string::npos);
}

mlir::OwningOpRef<mlir::ModuleOp> parse(test::Source &source) {
  return source.parse("module {}");
}

/// Passes of a test's choice stand in for the checker.
struct Judge : mlir::PassWrapper<Judge, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Judge)
  explicit Judge(std::function<bool(mlir::ModuleOp)> judge)
      : judge(std::move(judge)) {}
  StringRef getArgument() const override { return "comms-check-sync"; }
  void runOnOperation() override {
    if (!judge(getOperation()))
      signalPassFailure();
  }
  std::function<bool(mlir::ModuleOp)> judge;
};

std::unique_ptr<Proof> start(mlir::ModuleOp module,
                             std::function<bool(mlir::ModuleOp)> judge) {
  return cantFail(Proof::start(module, [=](mlir::OpPassManager &manager) {
    manager.addPass(std::make_unique<Judge>(judge));
  }));
}

TEST(Proof, RunsInParallelAndHoldsBackDiagnostics) {
  test::Source source;
  auto module = parse(source);
  std::promise<void> go;
  auto proof =
      start(*module, [gone = go.get_future().share()](mlir::ModuleOp copy) {
        gone.wait(); // Forever, if it did not run in parallel.
        copy.emitRemark() << "judged";
        return true;
      });
  mlir::emitWarning(module->getLoc()) << "meanwhile";
  EXPECT_EQ(source.diagnostics, "");
  EXPECT_FALSE(proof->isRefused());
  go.set_value();
  EXPECT_FALSE(bool(proof->finishProof()));
  EXPECT_EQ(source.diagnostics, "judged\nmeanwhile\n");
  mlir::emitWarning(module->getLoc()) << "later";
  EXPECT_EQ(source.diagnostics, "judged\nmeanwhile\nlater\n");
}

TEST(Proof, OfARefusedModuleNothingElseIsSaid) {
  test::Source source;
  auto module = parse(source);
  auto proof = start(*module, [](mlir::ModuleOp copy) {
    copy.emitError() << "wrong";
    return false;
  });
  mlir::emitError(module->getLoc()) << "meanwhile";
  llvm::Error error = proof->finishProof();
  ASSERT_TRUE(bool(error));
  EXPECT_TRUE(isCheckerRefusal(error));
  consumeError(std::move(error));
  EXPECT_EQ(source.diagnostics, "wrong\n");
}

/// A compilation that is given up does not leave the checker running.
TEST(Proof, NothingRunsOnWhenItIsDropped) {
  test::Source source;
  auto module = parse(source);
  std::atomic<bool> ended = false;
  std::promise<void> go;
  auto proof =
      start(*module, [&, gone = go.get_future().share()](mlir::ModuleOp copy) {
        gone.wait();
        copy.emitError() << "wrong";
        ended = true;
        return false;
      });
  std::thread later([&] { go.set_value(); });
  proof.reset();
  EXPECT_TRUE(ended);
  later.join();
  // Who hears of nothing any more was not told either.
  EXPECT_EQ(source.diagnostics, "");
}

/// What the checker throws reaches who asks for the verdict, as if it had run
/// there.
TEST(Proof, FailuresReachWhoWaits) {
  installFatalErrorHandlers();
  auto finish = [](std::function<bool(mlir::ModuleOp)> judge) {
    test::Source source;
    auto module = parse(source);
    auto proof = start(*module, std::move(judge));
    consumeError(proof->finishProof());
  };
  EXPECT_THROW(finish([](mlir::ModuleOp) -> bool { throw std::bad_alloc(); }),
               std::bad_alloc);
  EXPECT_THROW(finish([](mlir::ModuleOp) -> bool {
                 llvm::report_fatal_error("a fault");
               }),
               FatalError);
  test::Source source;
  auto module = parse(source);
  start(*module, [](mlir::ModuleOp) -> bool { throw std::bad_alloc(); });
}

TEST(Proof, JudgesTheModuleAsItWas) {
  test::Source source;
  auto module = source.parse("module @before {}");
  std::promise<void> go;
  std::string seen;
  auto proof =
      start(*module, [&, gone = go.get_future().share()](mlir::ModuleOp copy) {
        gone.wait();
        seen = copy.getName().value_or("").str();
        return true;
      });
  module->setName("after");
  go.set_value();
  EXPECT_FALSE(bool(proof->finishProof()));
  EXPECT_EQ(seen, "before");
}

} // namespace

#endif // COMMSIR_CUDA
