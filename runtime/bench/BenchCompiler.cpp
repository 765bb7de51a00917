//===- BenchCompiler.cpp - Kernels of a problem ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/BenchCompiler.h"

#include "lowering/Register.h"
#include "lowering/Translations.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace commsir;
using namespace commsir::tune;

Compiler::Compiler() {
  mlir::comms::registerAllDialects(registry);
  mlir::comms::registerLLVMIRTranslationInterfaces(registry);
  context = std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
  context->printOpOnDiagnostic(false);
}

llvm::Error Compiler::withModule(
    llvm::StringRef text,
    llvm::function_ref<llvm::Error(mlir::OwningOpRef<mlir::ModuleOp>)>
        compile) {
  std::string said;
  mlir::ScopedDiagnosticHandler handler(
      context.get(), [&](mlir::Diagnostic &diagnostic) {
        if (said.empty() &&
            diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          said = diagnostic.str();
        return mlir::success();
      });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  llvm::Error error =
      module ? compile(std::move(module))
             : llvm::createStringError(llvm::inconvertibleErrorCode(),
                                       "the kernel could not be parsed");
  if (!error || said.empty())
    return error;
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::toString(std::move(error)) + ": " +
                                     said);
}

ConfigQuery commsir::tune::makeQuery(const BenchCase &problem) {
  ConfigQuery query;
  query.op = isOnRows(problem.operation)
                 ? "all_reduce"
                 : operationName(problem.operation).str();
  query.reduction = problem.reduces() ? "sum" : "";
  query.elementType = driver::elementName(problem.element).str();
  query.bytes = problem.operation == Operation::ReduceScatter
                    ? problem.outputBytes()
                    : problem.bytes;
  query.rows = problem.rows();
  query.columns = problem.columns;
  query.ranks = problem.ranks;
  return query;
}

std::string commsir::tune::renderChoice(const KernelChoice &choice,
                                        llvm::ArrayRef<jit::Choice> made) {
  std::string text = "commsir ";
  if (!made.empty())
    text += made.front().algorithm + "/" + made.front().protocol;
  else
    text += (choice.algorithm.empty() ? "auto" : choice.algorithm) + "/" +
            (choice.protocol.empty() ? "auto" : choice.protocol);
  if (choice.algorithm.empty() && choice.protocol.empty() && !made.empty())
    text += " (chosen)";
  for (auto [letter, number] :
       {std::pair<const char *, int64_t>("b", choice.blocks),
        {"t", choice.threads},
        {"c", choice.cluster}})
    if (number)
      text += std::string(" ") + letter + std::to_string(number);
  for (const auto &[name, value] : choice.numbers)
    text += " " + name + "=" + std::to_string(value);
  return text;
}
