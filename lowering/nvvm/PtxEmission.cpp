//===- PtxEmission.cpp - LLVM functions become PTX ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/PtxEmission.h"

#include "lowering/nvvm/Conversions.h"
#include "lowering/nvvm/MaskedLoads.h"
#include "lowering/nvvm/PtxasFaults.h"
#include "lowering/target/LongCode.h"
#include "lowering/target/ToLLVMIR.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace mlir::comms;

static llvm::Triple getTriple() { return llvm::Triple("nvptx64-nvidia-cuda"); }

/// Null: this LLVM has no NVPTX.
static const llvm::Target *findTarget(std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  return llvm::TargetRegistry::lookupTarget(getTriple(), error);
}

std::string mlir::comms::findChipMistake(StringRef chip) {
  if (nvvm::getCapability(chip) < 80)
    return ("unsupported chip '" + chip +
            "': give sm_80, sm_90, sm_100 or a later one")
        .str();
  std::string error;
  const llvm::Target *target = findTarget(error);
  if (!target)
    return error;
  std::unique_ptr<llvm::MCSubtargetInfo> chips(
      target->createMCSubtargetInfo(getTriple(), "", ""));
  if (!chips->isCPUStringValid(chip))
    return ("LLVM does not know the chip '" + chip +
            "': give one like sm_80, sm_90, sm_90a or sm_100")
        .str();
  return "";
}

/// Options of LLVM that only its command line has.
///
/// - Code that two blocks have in common stays in both: LLVM would also put
///   what one thread does before a loop and at its end into one block, by which
///   that thread alone enters the loop once more. Unrolled, it then has
///   barriers of its own, where the others of its warp wait at theirs forever.
/// - No two f32 in one register, as sm_100 could: LLVM 22 then has vectors of
///   two i32, too, and ends the process at one that it cannot select.
static void setOptions() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto &options = llvm::cl::getRegisteredOptions();
    for (auto [name, value] : {std::pair("sink-common-insts", "false"),
                               std::pair("nvptx-no-f32x2", "true")})
      if (llvm::cl::Option *option = options.lookup(name))
        option->addOccurrence(0, name, value);
  });
}

/// NVPTX as every kernel needs it: no product and sum are fused, nothing is
/// flushed to zero.
static std::unique_ptr<llvm::TargetMachine>
makeTargetMachine(const PtxOptions &options, std::string &error) {
  // A machine for another chip would complain several times, to standard error.
  error = findChipMistake(options.chip);
  if (!error.empty())
    return nullptr;
  const llvm::Target *target = findTarget(error);
  std::string features = options.features;
  if (features.empty()) {
    // Clusters and multimem need 8.1; later chips need more by themselves.
    bool isOld = options.chip == "sm_80" || options.chip == "sm_86" ||
                 options.chip == "sm_89" ||
                 StringRef(options.chip).starts_with("sm_90");
    if (isOld)
      features = "+ptx83";
  } else if (features[0] != '+') {
    features = "+" + features;
  }
  setOptions();
  llvm::TargetOptions settings;
  settings.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      getTriple(), options.chip, features, settings, std::nullopt, std::nullopt,
      options.optLevel == 0 ? llvm::CodeGenOptLevel::None
                            : llvm::CodeGenOptLevel::Default));
  return machine;
}

/// The inline assembly that `instruction` calls; null: it calls none.
static llvm::InlineAsm *getAssembly(llvm::Instruction &instruction) {
  auto *call = dyn_cast<llvm::CallBase>(&instruction);
  return call ? dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
}

static constexpr llvm::StringLiteral kMemoryClobber = "~{memory}";

/// LLVM neither drops such assembly nor moves accesses to memory over it.
static bool isPinned(const llvm::InlineAsm &assembly) {
  return assembly.hasSideEffects() &&
         assembly.getConstraintString().contains(kMemoryClobber);
}

/// Pins all assembly of NCCL's, whose fences, loads and stores say of
/// themselves at most that they have side effects. What only computes is pinned
/// as well: nothing but its text tells it from what does not.
static void pinAssembly(llvm::Module &library) {
  for (llvm::Function &function : library)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      llvm::InlineAsm *text = getAssembly(instruction);
      if (!text || isPinned(*text))
        continue;
      std::string constraints = text->getConstraintString().str();
      if (!StringRef(constraints).contains(kMemoryClobber))
        constraints += (constraints.empty() ? "" : ",") + kMemoryClobber.str();
      auto &call = cast<llvm::CallBase>(instruction);
      call.setCalledOperand(llvm::InlineAsm::get(
          text->getFunctionType(), text->getAsmString(), constraints,
          /*hasSideEffects=*/true, text->isAlignStack(), text->getDialect(),
          text->canThrow()));
      call.removeFnAttr(llvm::Attribute::Memory);
    }
}

/// An error where function `name` of the kernels' module stands, or else its
/// first one: the place of a file's module is no line of it.
static InFlightDiagnostic emitErrorIn(ModuleOp lowered, StringRef name = "") {
  auto place =
      name.empty() ? nullptr : lowered.lookupSymbol<LLVM::LLVMFuncOp>(name);
  for (auto function : lowered.getOps<LLVM::LLVMFuncOp>())
    if (!place && !function.isExternal())
      place = function;
  return emitError(place ? place.getLoc() : lowered.getLoc());
}

/// Rejects instructions that NVPTX would silently weaken.
static LogicalResult checkRules(ModuleOp module, llvm::Module &llvmModule) {
  for (llvm::Function &function : llvmModule)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      if (isa<llvm::AtomicRMWInst>(instruction))
        return emitErrorIn(module, function.getName())
               << "function '" << function.getName().str()
               << "' has an atomicrmw, whose order and scope NVPTX drops: use "
                  "the instructions of lowering/nvvm/Ptx.inc";
      llvm::InlineAsm *text = getAssembly(instruction);
      if (text && !isPinned(*text))
        return emitErrorIn(module, function.getName())
               << "inline assembly '" << text->getAsmString().str()
               << "' lacks side effects or the memory clobber";
    }
  return success();
}

/// A function of the device library that is called; null: there is none.
static llvm::Function *findDeviceCall(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (function.isDeclaration() &&
        function.getName().starts_with("commsir_nccl_"))
      return &function;
  return nullptr;
}

/// Links what is called of the device library, to be inlined.
static LogicalResult linkDeviceLibrary(ModuleOp lowered, llvm::Module &module,
                                       StringRef bitcode) {
  if (bitcode.empty() || !findDeviceCall(module))
    return success();
  auto fail = [&](const Twine &why) {
    return emitErrorIn(lowered)
           << "NCCL's device library cannot be linked: " << why;
  };
  llvm::TimeTraceScope scope("commsir: NCCL's device library");
  llvm::Expected<std::unique_ptr<llvm::Module>> library =
      llvm::parseBitcodeFile({bitcode, "NCCL's device library"},
                             module.getContext());
  if (!library)
    return fail(llvm::toString(library.takeError()));
  pinAssembly(**library);
  // They keep functions that nobody calls.
  for (StringRef name : {"llvm.used", "llvm.compiler.used"})
    if (llvm::GlobalVariable *list = (*library)->getNamedGlobal(name))
      list->eraseFromParent();
  SmallVector<std::string> linked;
  for (llvm::Function &function : **library) {
    if (function.isDeclaration())
      continue;
    linked.push_back(function.getName().str());
    // Of the chip that the bitcode was made for: the kernel's counts.
    for (const char *attribute : {"target-cpu", "target-features"})
      function.removeFnAttr(attribute);
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  (*library)->setDataLayout(module.getDataLayout());
  (*library)->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(*library),
                                llvm::Linker::LinkOnlyNeeded))
    return fail("LLVM's linker refuses it");
  for (const std::string &name : linked)
    if (llvm::Function *function = module.getFunction(name);
        function && !function->isDeclaration())
      function->setLinkage(llvm::GlobalValue::InternalLinkage);
  if (llvm::Function *missing = findDeviceCall(module))
    return fail("it has no " + missing->getName());
  return success();
}

static bool multipliesByGroups(const llvm::Function &function) {
  return llvm::any_of(llvm::instructions(function), [](const auto &inst) {
    auto *call = dyn_cast<llvm::CallBase>(&inst);
    auto *text =
        call ? dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
    return text && StringRef(text->getAsmString()).contains("wgmma.");
  });
}

/// A kernel whose groups of warps multiply gets no calls: in code that it
/// links, as nvJitLink does, ptxas 13.0 makes each of a group's instructions
/// wait for the one before where the kernel calls a function (C7509).
static void inlineCalls(llvm::Module &module) {
  if (llvm::none_of(module, multipliesByGroups))
    return;
  for (llvm::Function &function : module) {
    if (function.isDeclaration() || !function.hasLocalLinkage())
      continue;
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     unsigned level) {
  llvm::TimeTraceScope scope("commsir: LLVM's optimizer");
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  if (level > 0)
    passes = builder.buildPerModuleDefaultPipeline(
        level == 1 ? llvm::OptimizationLevel::O1 : llvm::OptimizationLevel::O2);
  nvvm::addMaskedLoadPasses(passes);
  passes.run(module, modules);
}

/// The longest code that is optimized. Products of matrices have up to 55,000
/// instructions in 3,500 blocks.
static constexpr LongCodeLimits kLimits = {
    /*instructions=*/1 << 17, /*chain=*/1 << 10, /*loops=*/1 << 8,
    /*blocks=*/1 << 13};

/// Lowers the effort of `options` if the code is too long for it.
static std::unique_ptr<llvm::Module>
translate(ModuleOp lowered, llvm::LLVMContext &context, PtxOptions &options) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      makeTargetMachine(options, error);
  if (!machine) {
    emitErrorIn(lowered) << "cannot generate PTX: " << error;
    return nullptr;
  }
  DialectRegistry registry;
  registerLLVMIRTranslationInterfaces(registry);
  registerNVVMDialectTranslation(registry);
  lowered.getContext()->appendDialectRegistry(registry);
  std::unique_ptr<llvm::Module> module;
  {
    llvm::TimeTraceScope scope("commsir: to LLVM IR");
    module = translateModuleToLLVMIR(lowered, context, "comms");
  }
  if (!module) {
    emitErrorIn(lowered)
        << "the LLVM dialect could not be translated to LLVM IR";
    return nullptr;
  }
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  if (failed(linkDeviceLibrary(lowered, *module, options.deviceLibrary)) ||
      failed(checkRules(lowered, *module)))
    return nullptr;
  inlineCalls(*module);
  if (isTooLongToOptimize(*module, kLimits)) {
    options.optLevel = 0;
    cutLongBlocks(*module);
    exposeLocalFunctions(*module);
  }
  optimize(*module, *machine, options.optLevel);
  return module;
}

std::unique_ptr<llvm::Module>
mlir::comms::translateToNVPTX(ModuleOp lowered, llvm::LLVMContext &context,
                              const PtxOptions &options) {
  PtxOptions chosen = options;
  return translate(lowered, context, chosen);
}

/// Names the chip whose own instructions the code has: of sm_90, those for
/// groups of four warps, and those that make maps. A product without rows has
/// maps but no instructions that multiply.
static std::string nameTarget(std::string ptx) {
  if (!StringRef(ptx).contains("wgmma.") &&
      !StringRef(ptx).contains("tensormap."))
    return ptx;
  StringRef plain = ".target sm_90\n";
  size_t at = ptx.find(plain.str());
  if (at != std::string::npos)
    ptx.replace(at, plain.size(), ".target sm_90a\n");
  return ptx;
}

FailureOr<std::string> mlir::comms::emitPTX(ModuleOp lowered,
                                            const PtxOptions &options) {
  llvm::LLVMContext context;
  PtxOptions chosen = options;
  std::unique_ptr<llvm::Module> module = translate(lowered, context, chosen);
  if (!module)
    return failure();
  if (llvm::Function *missing =
          options.keepDeviceCalls ? nullptr : findDeviceCall(*module)) {
    emitErrorIn(lowered)
        << "the code calls '" << missing->getName().str()
        << "' of NCCL's device library, which was not given: it is built for "
           "one release of NCCL (--device-library of comms-translate), or "
           "leave out impl=nccl and `gin`";
    return failure();
  }
  llvm::TimeTraceScope scope("commsir: PTX");
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      makeTargetMachine(chosen, error);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile)) {
    emitErrorIn(lowered) << "LLVM's NVPTX backend cannot write PTX";
    return failure();
  }
  passes.run(*module);
  return nameTarget(nvvm::avoidPtxasFaults(text));
}
