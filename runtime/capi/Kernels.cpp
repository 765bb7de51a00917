//===- Kernels.cpp - C API: compile, check, simulate ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Pipelines.h"
#include "lowering/Register.h"
#include "lowering/Translations.h"
#include "lowering/analysis/Blocks.h"
#include "lowering/nvvm/PtxEmission.h"
#include "runtime/capi/Error.h"
#include "runtime/capi/Request.h"
#include "runtime/driver/Arguments.h"
#include "runtime/driver/Session.h"
#include "runtime/jit/CheckSequence.h"
#include "runtime/jit/Prepare.h"
#include "runtime/jit/Shapes.h"
#include "runtime/support/Nesting.h"
#include "runtime/support/Version.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"

using namespace commsir;
using namespace commsir::capi;
namespace comms = mlir::comms;

namespace {

/// A module and all that is said about it.
class ModuleCompiler {
public:
  ModuleCompiler()
      : context(registry(), mlir::MLIRContext::Threading::DISABLED),
        handler(&context, [this](mlir::Diagnostic &diagnostic) {
          collected.push_back(driver::describe(diagnostic));
          return mlir::success();
        }) {
    context.printOpOnDiagnostic(false);
  }

  /// Passes then say what they chose, and why.
  void enableRemarks();
  /// Parses, verifies, closes open dimensions.
  llvm::Error read(const Request &request);
  /// Lowers for the target of `request`.
  llvm::Error lower(const Request &request);
  /// Returns the diagnostics of one severity; "" for all.
  std::vector<driver::Diagnosis> list(llvm::StringRef severity) const;

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;

private:
  static const mlir::DialectRegistry &registry() {
    static const mlir::DialectRegistry made = [] {
      mlir::DialectRegistry registry;
      comms::registerAllDialects(registry);
      comms::registerLLVMIRTranslationInterfaces(registry);
      return registry;
    }();
    return made;
  }

  std::vector<driver::Diagnosis> collected;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace

static llvm::Error badSource(const llvm::Twine &message) {
  return jit::failCompilation(jit::CompileError::Stage::Input, message);
}

void ModuleCompiler::enableRemarks() {
  mlir::remark::RemarkCategories categories;
  categories.all = categories.passed = categories.missed = ".*";
  categories.analysis = categories.failed = ".*";
  (void)mlir::remark::enableOptimizationRemarks(
      context, /*streamer=*/nullptr,
      std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), categories,
      /*printAsEmitRemarks=*/true);
}

llvm::Error ModuleCompiler::read(const Request &request) {
  llvm::StringRef source = request.source;
  const std::string &file = request.options.file;
  if (llvm::Error error = driver::refuseSource(source, file))
    return badSource(llvm::toString(std::move(error)));
  module = mlir::parseSourceString<mlir::ModuleOp>(source, &context, file);
  if (!module)
    return badSource("the source of '" + file + "' is not valid");
  const std::string &name = request.options.kernel;
  if (name.empty() && request.host.shapes.empty())
    return llvm::Error::success();
  auto kernel = jit::findKernel(*module, name);
  if (!kernel)
    return kernel.takeError();
  if (!request.host.shapes.empty() &&
      mlir::failed(jit::specialize(*kernel, request.host.shapes)))
    return badSource("the shapes given are not those of the kernel");
  return llvm::Error::success();
}

llvm::Error ModuleCompiler::lower(const Request &request) {
  const driver::Options &options = request.options;
  auto kernel = jit::prepareKernel(*module, options.kernel,
                                   options.ranks.value_or(0), options.blocks);
  if (!kernel)
    return kernel.takeError();
  llvm::Expected<std::string> bytecode = jit::makeBytecode(*module);
  if (!bytecode)
    return bytecode.takeError();
  int64_t blocks = options.blocks;
  // Code for GPUs needs the number; comms-run takes the same one.
  if (options.target == "cuda" && !blocks) {
    jit::resolveBlocks(*kernel);
    blocks = comms::chooseBlocks(*kernel, 16);
  }
  llvm::Error error =
      jit::runPipeline(*module, [&](mlir::OpPassManager &manager) {
        auto set = [&](auto &pipeline) {
          pipeline.ranks = options.ranks.value_or(0);
          pipeline.blocks = blocks;
          pipeline.algorithm = options.algorithm;
          pipeline.protocol = options.protocol;
          pipeline.tileSize = request.tileSize;
          pipeline.check = options.check;
          pipeline.checkEvents = options.checkEvents;
          pipeline.checkLaunches = request.checkLaunches;
          pipeline.tell = request.produce == "explain";
        };
        if (options.target == "cpu") {
          comms::CommsToCPUOptions pipeline;
          set(pipeline);
          return comms::buildCommsToCPU(manager, pipeline);
        }
        comms::NVVMPipelineOptions pipeline;
        set(pipeline);
        pipeline.chip = request.chip;
        if (options.threads)
          pipeline.threads = options.threads;
        if (options.cluster)
          pipeline.cluster = options.cluster;
        comms::buildCommsToNVVM(manager, pipeline);
      });
  if (!error)
    jit::recordDigest(*module, jit::digestOf(*bytecode));
  return error;
}

std::vector<driver::Diagnosis>
ModuleCompiler::list(llvm::StringRef severity) const {
  std::vector<driver::Diagnosis> some;
  for (const driver::Diagnosis &diagnosis : collected)
    if (severity.empty() || diagnosis.severity == severity)
      some.push_back(diagnosis);
  return some;
}

//===----------------------------------------------------------------------===//
// What commsir_compile produces
//===----------------------------------------------------------------------===//

static std::string printModule(const ModuleCompiler &workshop,
                               const Request &request) {
  mlir::OpPrintingFlags flags;
  if (request.locations)
    flags.enableDebugInfo();
  std::string text;
  llvm::raw_string_ostream out(text);
  workshop.module.get()->print(out, flags);
  out << "\n";
  return text;
}

static llvm::Expected<std::string> printLLVM(ModuleCompiler &workshop,
                                             const Request &request) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> made;
  if (request.options.target == "cpu") {
    made = comms::translateToLLVMIR(*workshop.module, context);
  } else {
    comms::PtxOptions target;
    target.chip = request.chip;
    target.optLevel = 0;
    made = comms::translateToNVPTX(*workshop.module, context, target);
  }
  if (!made)
    return badSource("the kernel could not be translated to LLVM IR");
  std::string text;
  llvm::raw_string_ostream out(text);
  made->print(out, nullptr);
  return text;
}

static llvm::Expected<std::string> printPtx(ModuleCompiler &workshop,
                                            const Request &request) {
  comms::PtxOptions target;
  target.chip = request.chip;
  mlir::FailureOr<std::string> ptx = comms::emitPTX(*workshop.module, target);
  if (mlir::failed(ptx))
    return badSource("cannot generate PTX for the kernel");
  return std::move(*ptx);
}

/// Reports the facts about a lowered kernel.
static llvm::json::Object reportKernel(ModuleCompiler &workshop) {
  mlir::LLVM::LLVMFuncOp function;
  jit::Description description;
  for (auto candidate : workshop.module->getOps<mlir::LLVM::LLVMFuncOp>()) {
    jit::Description found = jit::describe(candidate);
    if (!found.ranks && found.args.empty())
      continue;
    function = candidate;
    description = std::move(found);
    break;
  }
  llvm::json::Array arguments, choices;
  int64_t channelBytes = 0;
  for (const jit::ArgInfo &arg : description.args) {
    if (arg.hidden) {
      channelBytes += int64_t(arg.bytes());
      continue;
    }
    arguments.push_back(llvm::json::Object{
        {"name", arg.name},
        {"kind", jit::stringifyArgKind(arg.kind)},
        {"type", arg.elementType},
        {"shape", llvm::json::Array(llvm::ArrayRef<int64_t>(arg.shape))}});
  }
  for (const jit::Choice &choice : description.choices)
    choices.push_back(llvm::json::Object{{"op", choice.op},
                                         {"algorithm", choice.algorithm},
                                         {"protocol", choice.protocol},
                                         {"tile", choice.tileSize},
                                         {"tiles", choice.tiles}});
  return llvm::json::Object{
      {"kernel", function ? jsonText(function.getSymName()) : ""},
      {"ranks", description.ranks},
      {"blocks", description.blocks},
      {"checked_launches", description.proof.launches},
      {"proof", jit::toJson(description.proof)},
      {"arguments", std::move(arguments)},
      {"choices", std::move(choices)},
      {"channel_bytes", channelBytes},
      {"remarks", renderDiagnostics(workshop.list("remark"))},
      {"warnings", renderDiagnostics(workshop.list("warning"))}};
}

/// What the checker says of launches of several kernels.
static llvm::Expected<llvm::json::Object>
reportSequence(ModuleCompiler &workshop, const Request &request) {
  const driver::Options &options = request.options;
  jit::SequenceOptions wanted;
  wanted.order = request.order;
  wanted.ranks = options.ranks.value_or(0);
  wanted.blocks = options.blocks;
  wanted.algorithm = options.algorithm;
  wanted.protocol = options.protocol;
  wanted.checkEvents = options.checkEvents;
  wanted.launches = request.checkLaunches;
  auto found = jit::checkSequence(*workshop.module, wanted);
  if (!found)
    return found.takeError();
  llvm::json::Object proof = jit::toJson(found->proof);
  proof["order"] = jsonText(found->order);
  return llvm::json::Object{
      {"kernel", jsonText(found->kernels)},
      {"ranks", found->proof.ranks},
      {"blocks", found->proof.blocks},
      {"checked_launches", found->proof.launches},
      {"proof", std::move(proof)},
      {"arguments", llvm::json::Array()},
      {"choices", llvm::json::Array()},
      {"channel_bytes", 0},
      {"remarks", renderDiagnostics(workshop.list("remark"))},
      {"warnings", renderDiagnostics(workshop.list("warning"))}};
}

static llvm::Expected<llvm::json::Object> produce(ModuleCompiler &workshop,
                                                  const Request &request) {
  const std::string &what = request.produce;
  bool report = what == "explain" || what == "check";
  if (report)
    workshop.enableRemarks();
  if (llvm::Error error = workshop.read(request))
    return error;
  if (!request.order.empty())
    return what == "check"
               ? reportSequence(workshop, request)
               : badSource("an order of launches is checked (produce 'check')");
  if (what == "ir")
    return llvm::json::Object{{"text", printModule(workshop, request)}};
  if (llvm::Error error = workshop.lower(request))
    return error;
  if (report)
    return reportKernel(workshop);
  if (what == "lowered")
    return llvm::json::Object{{"text", printModule(workshop, request)}};
  llvm::Expected<std::string> text = what == "llvm"
                                         ? printLLVM(workshop, request)
                                         : printPtx(workshop, request);
  if (!text)
    return text.takeError();
  return llvm::json::Object{{"text", jsonText(*text)}};
}

static commsir_status copyResult(llvm::StringRef text, char **result) {
  *result = copyText(text);
  return *result ? COMMSIR_OK : fail(COMMSIR_USAGE, "memory is short");
}

commsir_status commsir_compile(const char *json, char **result) {
  return guard([&]() -> commsir_status {
    if (!json || !result)
      return fail(COMMSIR_USAGE, "commsir_compile: a null pointer");
    *result = nullptr;
    Request request;
    if (llvm::Error error = parseRequest(json, request))
      return fail(COMMSIR_USAGE, std::move(error));
    if (request.options.launches != 1)
      return fail(COMMSIR_USAGE,
                  "'launches' is an option of commsir_simulate: to prove "
                  "more of them, give 'check_launches'");
    if (request.produce == "ptx")
      request.options.target = "cuda";
    ModuleCompiler workshop;
    auto made = produce(workshop, request);
    if (made)
      return copyResult(render(std::move(*made)), result);
    llvm::json::Object details;
    llvm::json::Array diagnostics = renderDiagnostics(workshop.list("error"));
    for (llvm::json::Value &warning :
         renderDiagnostics(workshop.list("warning")))
      diagnostics.push_back(std::move(warning));
    details["diagnostics"] = std::move(diagnostics);
    return fail(COMMSIR_COMPILE, made.takeError(), std::move(details));
  });
}

//===----------------------------------------------------------------------===//
// Simulation
//===----------------------------------------------------------------------===//

static commsir_status statusOf(driver::ExitCode code) {
  switch (code) {
  case driver::ExitOk:
    return COMMSIR_OK;
  case driver::ExitWrongResult:
    return COMMSIR_MISMATCH;
  case driver::ExitUsage:
    return COMMSIR_USAGE;
  case driver::ExitCompile:
    return COMMSIR_COMPILE;
  case driver::ExitChecker:
    return COMMSIR_CHECKER;
  case driver::ExitDeadlock:
    return COMMSIR_DEADLOCK;
  case driver::ExitLimit:
    return COMMSIR_LIMIT;
  case driver::ExitBounds:
    return COMMSIR_BOUNDS;
  }
  return COMMSIR_USAGE;
}

/// The error of a run that did not go well.
static commsir_status failRun(const driver::Report &report) {
  llvm::json::Object details;
  if (!report.diagnostics.empty())
    details["diagnostics"] = renderDiagnostics(report.diagnostics);
  std::string message = report.error;
  if (report.runError) {
    llvm::json::Object run = driver::renderRunError(*report.runError);
    details["waiting"] = std::move(run["waiting"]);
  }
  if (report.fuzz && !report.fuzz->difference.empty()) {
    message += ": " + report.fuzz->difference;
    details["seed"] = int64_t(report.fuzz->seed);
  }
  bool interrupted =
      report.runError && report.runError->kind == cpu::RunError::Interrupted;
  return fail(interrupted ? COMMSIR_ABORTED : statusOf(report.exitCode),
              message, std::move(details));
}

commsir_status commsir_simulate(const char *json, commsir_host_array *arrays,
                                size_t count, char **result) {
  return guard([&]() -> commsir_status {
    if (!json || !result || (count && !arrays))
      return fail(COMMSIR_USAGE, "commsir_simulate: a null pointer");
    *result = nullptr;
    Request request;
    if (llvm::Error error = parseRequest(json, request))
      return fail(COMMSIR_USAGE, std::move(error));
    if (request.tileSize)
      return fail(COMMSIR_USAGE, "'tile_size' is an option of commsir_compile: "
                                 "a run chooses its tiles");
    if (request.checkLaunches)
      return fail(COMMSIR_USAGE,
                  "'check_launches' is an option of commsir_compile: "
                  "prove the kernel before the run");
    for (commsir_host_array &array : llvm::MutableArrayRef(arrays, count)) {
      if (!array.argument || (array.bytes && !array.data))
        return fail(COMMSIR_USAGE, "commsir_simulate: a null pointer");
      request.host.arrays.push_back(
          {array.argument,
           array.rank,
           {static_cast<char *>(array.data), array.bytes}});
    }
    ModuleCompiler workshop;
    driver::Session session(request.options, workshop.context, &request.host);
    const driver::Report &report = session.execute();
    if (report.exitCode != driver::ExitOk)
      return failRun(report);
    std::string text;
    llvm::raw_string_ostream out(text);
    driver::printJson(report, out);
    return copyResult(llvm::StringRef(text).rtrim(), result);
  });
}

const char *commsir_version(void) { return getVersion(); }

int32_t commsir_abi_version(void) { return COMMSIR_ABI_VERSION; }
