//===- Translations.cpp - Targets of comms-translate ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Translations.h"

#include "dialect/Comms.h"
#include "lowering/NoFiles.h"
#include "lowering/Pipelines.h"
#include "lowering/Register.h"
#include "lowering/nvvm/PtxEmission.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/ROCDL/ROCDLToLLVMIRTranslation.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace mlir;
using namespace mlir::comms;

/// MLIR would print the whole operation after each.
static void endErrorsAtTheirPlace(Operation *op) {
  op->getContext()->printOpOnDiagnostic(false);
}

/// An error of the command line is at no place of a file.
static LogicalResult refuse(const Twine &what) {
  llvm::errs() << "comms-translate: error: " << what << "\n";
  return failure();
}

/// Lowers what is not of the LLVM dialect yet, by the passes of `build`.
template <typename Options>
static LogicalResult lower(ModuleOp module, const Options &options,
                           void (*build)(OpPassManager &, const Options &)) {
  if (module.getOps<KernelOp>().empty()) {
    // What was lowered before is translated as it is.
    if (!module.getOps<LLVM::LLVMFuncOp>().empty())
      return success();
    return module.emitError("there is no comms.kernel at the top of the file, "
                            "and no llvm.func: nothing to translate");
  }
  PassManager manager(module.getContext());
  build(manager, options);
  return manager.run(module);
}

/// Lowers by `comms-to-nvvm` with options as its pipeline takes them, and gives
/// what making PTX needs.
static FailureOr<PtxOptions> lowerForGPU(Operation *op, StringRef text,
                                         int64_t ranks) {
  endErrorsAtTheirPlace(op);
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError("code for GPUs is made of a module");
  std::unique_ptr<NVVMPipelineOptions> options =
      NVVMPipelineOptions::createFromString(text);
  if (!options)
    return refuse("--gpu takes options of the pipeline comms-to-nvvm: "
                  "\"blocks=8 threads=128\"");
  if (std::string mistake = options->findMistake(); !mistake.empty())
    return refuse("--gpu: " + mistake);
  if (ranks != 0 && options->ranks != 0 && options->ranks != ranks)
    return refuse("--ranks=" + Twine(ranks) +
                  " and --gpu=\"ranks=" + Twine(options->ranks) +
                  "\" name two numbers of ranks; give one");
  if (ranks != 0)
    options->ranks = ranks;
  if (failed(lower(module, *options, buildCommsToNVVM)))
    return failure();
  PtxOptions target;
  target.chip = options->chip;
  return target;
}

/// The file of --device-library; null: none is named.
using DeviceLibrary = FailureOr<std::unique_ptr<llvm::MemoryBuffer>>;

static DeviceLibrary readLibrary(StringRef path) {
  if (path.empty())
    return std::unique_ptr<llvm::MemoryBuffer>();
  // A FIFO would wait for whoever writes to it, and some devices have no end.
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path))
    return refuse("--device-library: '" + path + "' is not a regular file");
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return refuse("--device-library: '" + path +
                  "' cannot be read: " + file.getError().message());
  return std::move(*file);
}

static LogicalResult printPTX(Operation *op, StringRef text, int64_t ranks,
                              const DeviceLibrary &library,
                              raw_ostream &output) {
  FailureOr<PtxOptions> target = lowerForGPU(op, text, ranks);
  if (failed(target) || failed(library))
    return failure();
  if (*library)
    target->deviceLibrary = (*library)->getBuffer();
  FailureOr<std::string> ptx = emitPTX(cast<ModuleOp>(op), *target);
  if (failed(ptx))
    return failure();
  output << *ptx;
  return success();
}

static LogicalResult printNVPTXModule(Operation *op, StringRef text,
                                      int64_t ranks,
                                      const DeviceLibrary &library,
                                      raw_ostream &output) {
  FailureOr<PtxOptions> target = lowerForGPU(op, text, ranks);
  if (failed(target) || failed(library))
    return failure();
  if (*library)
    target->deviceLibrary = (*library)->getBuffer();
  target->optLevel = 0;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateToNVPTX(cast<ModuleOp>(op), context, *target);
  if (!module)
    return failure();
  module->print(output, nullptr);
  return success();
}

namespace {
/// A translation to LLVM IR for another target than NVIDIA GPUs: its option and
/// its result, in messages.
struct LLVMIRTarget {
  StringRef option, code;
};
} // namespace

/// Lowers by the passes of `build`. `unused` is an option for NVIDIA GPUs that
/// the user gave, or empty.
template <typename Options>
static LogicalResult
printLLVMIR(Operation *op, LLVMIRTarget target, int64_t ranks, StringRef unused,
            void (*build)(OpPassManager &, const Options &),
            raw_ostream &output) {
  endErrorsAtTheirPlace(op);
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError(target.option) << " takes a module";
  if (!unused.empty())
    return refuse(unused + " has no meaning for " + target.option +
                  ", which is " + target.code +
                  ": leave it out, or give --comms-to-ptx");
  Options options;
  options.ranks = ranks;
  if (failed(lower(module, options, build)))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> made = translateToLLVMIR(module, context);
  if (!made)
    return module.emitError(
        "the LLVM dialect could not be translated to LLVM IR");
  made->print(output, nullptr);
  return success();
}

/// Nothing is opened behind the input, the output, and --device-library.
static std::optional<NoFiles> noFiles;
/// What --device-library names, read before no more files can be opened.
static DeviceLibrary library;

void mlir::comms::registerTranslations() {
  // Local to the call: a library has no options until a tool asks for them.
  static llvm::cl::opt<int64_t> ranks(
      "ranks", llvm::cl::init(0),
      llvm::cl::desc("Number of ranks to lower for; 0: the kernel's own"));
  static llvm::cl::opt<std::string> gpu(
      "gpu", llvm::cl::init(""),
      llvm::cl::desc("Options of the pipeline comms-to-nvvm: \"blocks=8 "
                     "threads=128 chip=sm_90\""));
  static llvm::cl::opt<std::string> deviceLibrary(
      "device-library", llvm::cl::init(""),
      llvm::cl::desc("Bitcode of NCCL's device library, for --comms-to-ptx and "
                     "--comms-to-nvptx of kernels that call it"));
  // These are called when the input is to be parsed, and the output is open;
  // with --split-input-file once for each part of the input.
  static auto registerOwn = [](DialectRegistry &registry) {
    registerAllDialects(registry);
    registerLLVMIRTranslationInterfaces(registry);
    if (noFiles)
      return;
    library = readLibrary(deviceLibrary);
    noFiles.emplace();
  };
  static auto optionForNVIDIA = []() -> StringRef {
    if (!gpu.empty())
      return "--gpu";
    return deviceLibrary.empty() ? "" : "--device-library";
  };
  static TranslateFromMLIRRegistration toPTX(
      "comms-to-ptx", "Kernels, by the pipeline comms-to-nvvm, as PTX",
      [](Operation *op, raw_ostream &output) -> LogicalResult {
        return printPTX(op, gpu, ranks, library, output);
      },
      registerOwn);
  static TranslateFromMLIRRegistration toNVPTX(
      "comms-to-nvptx",
      "Kernels, by the pipeline comms-to-nvvm, as LLVM IR before it is "
      "optimized",
      [](Operation *op, raw_ostream &output) -> LogicalResult {
        return printNVPTXModule(op, gpu, ranks, library, output);
      },
      registerOwn);
  static TranslateFromMLIRRegistration toROCDL(
      "comms-to-amdgcn",
      "Kernels, by the pipeline comms-to-rocdl (a skeleton), as LLVM IR",
      [](Operation *op, raw_ostream &output) -> LogicalResult {
        return printLLVMIR(op, {"--comms-to-amdgcn", "code for AMD GPUs"},
                           ranks, optionForNVIDIA(), buildCommsToROCDL, output);
      },
      [](DialectRegistry &registry) {
        registerOwn(registry);
        registerROCDLDialectTranslation(registry);
      });
  static TranslateFromMLIRRegistration toLLVMIR(
      "comms-to-llvmir", "Kernels, by the pipeline comms-to-cpu, as LLVM IR",
      [](Operation *op, raw_ostream &output) -> LogicalResult {
        return printLLVMIR(op, {"--comms-to-llvmir", "code for the CPU"}, ranks,
                           optionForNVIDIA(), buildCommsToCPU, output);
      },
      registerOwn);
}

int mlir::comms::translateMain(int argc, char **argv) {
  registerTranslations();
  LogicalResult result =
      mlirTranslateMain(argc, argv, "CommsIR translation driver");
  noFiles.reset();
  return failed(result);
}
