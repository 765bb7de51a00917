//===- KernelSource.cpp - Text in, CPU kernel out -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/KernelSource.h"

#include "lowering/Pipelines.h"
#include "lowering/Register.h"
#include "lowering/Translations.h"
#include "runtime/jit/Cache.h"
#include "runtime/support/Nesting.h"

#include "mlir/Parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

using namespace commsir;
using namespace commsir::group;

/// A context for one compilation: it grows with what is parsed, and a program
/// compiles few kernels.
static std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  mlir::comms::registerLLVMIRTranslationInterfaces(registry);
  auto context = std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
  context->printOpOnDiagnostic(false);
  return context;
}

/// "file.py:3:5", as in other messages.
static std::string placeOf(mlir::Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::FileLineColLoc place;
  location->walk([&](mlir::Location part) {
    place = mlir::dyn_cast<mlir::FileLineColLoc>(part);
    return place ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  if (place)
    os << place.getFilename().getValue() << ":" << place.getLine() << ":"
       << place.getColumn();
  else
    os << location;
  return text;
}

/// The error with what the compiler said; it keeps its stage.
static llvm::Error explain(llvm::Error error, llvm::StringRef said) {
  if (said.empty())
    return error;
  return llvm::handleErrors(std::move(error),
                            [&](const jit::CompileError &one) -> llvm::Error {
                              std::string text;
                              llvm::raw_string_ostream os(text);
                              one.log(os);
                              return llvm::make_error<jit::CompileError>(
                                  one.getStage(), text + ":" + said.str());
                            });
}

static llvm::Expected<std::string>
makeBytes(llvm::StringRef source, llvm::StringRef name,
          const jit::CompileOptions &options) {
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  std::string said;
  mlir::ScopedDiagnosticHandler handler(
      context.get(), [&](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
          llvm::raw_string_ostream os(said);
          os << "\n"
             << placeOf(diagnostic.getLocation()) << ": error: " << diagnostic;
          for (mlir::Diagnostic &note : diagnostic.getNotes())
            os << "\n  " << placeOf(note.getLocation()) << ": note: " << note;
        }
        return mlir::success();
      });
  if (llvm::Error error = driver::refuseDeepText(source, "kernel"))
    return llvm::make_error<jit::CompileError>(
        jit::CompileError::Stage::Input, llvm::toString(std::move(error)));
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(source, context.get(), "kernel");
  if (!module)
    return explain(
        llvm::make_error<jit::CompileError>(jit::CompileError::Stage::Input,
                                            "the kernel could not be parsed"),
        said);
  auto bytes = jit::compileToBytes(std::move(module), name, options);
  if (!bytes)
    return explain(bytes.takeError(), said);
  return bytes;
}

static jit::CacheKey keyOf(llvm::StringRef source, llvm::StringRef name,
                           const jit::CompileOptions &options) {
  static const std::string processor = jit::describeProcessor();
  jit::CacheKeyBuilder key;
  key.add("what", "cpu source").add("source", source).add("name", name);
  key.add("ranks", options.ranks).add("blocks", options.blocks);
  key.add("algorithm", options.algorithm).add("protocol", options.protocol);
  key.add("requiresProof", mlir::comms::requiresProof());
  key.add("check", options.check).add("processor", processor);
  return key.finish();
}

llvm::Expected<CompiledSource>
group::compileSource(llvm::StringRef source, llvm::StringRef name,
                     const jit::CompileOptions &options) {
  CompiledSource compiled;
  compiled.cached = true;
  auto bytes = jit::Cache::shared().get(
      keyOf(source, name, options),
      name.empty() ? "a kernel" : ("kernel @" + name).str(),
      jit::areKernelBytes, [&] {
        compiled.cached = false;
        return makeBytes(source, name, options);
      });
  if (!bytes)
    return bytes.takeError();
  auto kernel = jit::loadBytes(**bytes);
  if (!kernel)
    return kernel.takeError();
  compiled.kernel = std::move(*kernel);
  return std::move(compiled);
}
