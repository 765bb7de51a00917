//===- Compile.cpp - Module in, loaded CPU kernel out ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Compile.h"

#include "lowering/Pipelines.h"
#include "lowering/Translations.h"
#include "lowering/analysis/Blocks.h"
#include "lowering/cpu/Abi.h"
#include "lowering/target/LongCode.h"
#include "runtime/jit/Archive.h"
#include "runtime/jit/Optimize.h"
#include "runtime/jit/Prepare.h"
#include "runtime/jit/RuntimeSymbols.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace comms = mlir::comms;

//===----------------------------------------------------------------------===//
// What a kernel is
//===----------------------------------------------------------------------===//

int64_t ArgInfo::elements() const {
  int64_t product = 1;
  for (int64_t dim : shape)
    product *= dim;
  return product;
}

size_t ArgInfo::bytes() const { return size_t(elements()) * elementBytes; }

struct Kernel::Data {
  std::string name;
  std::vector<ArgInfo> args;
  std::vector<Choice> choices;
  std::vector<SourceSite> sites;
  int64_t ranks = 0, lsaSize = 0, blocks = 0;
  ProofInfo proof;
  size_t frameBytes = 0, arenaBytes = 0;
  void (*entry)(void *) = nullptr;
  std::unique_ptr<orc::LLJIT> jit;
};

Kernel::Kernel(std::unique_ptr<Data> data) : data(std::move(data)) {}
Kernel::~Kernel() = default;
StringRef Kernel::name() const { return data->name; }
ArrayRef<ArgInfo> Kernel::args() const { return data->args; }
ArrayRef<Choice> Kernel::choices() const { return data->choices; }
int64_t Kernel::ranks() const { return data->ranks; }
int64_t Kernel::lsaSize() const { return data->lsaSize; }
int64_t Kernel::blocks() const { return data->blocks; }
const ProofInfo &Kernel::proof() const { return data->proof; }
void (*Kernel::entry() const)(void *) { return data->entry; }
size_t Kernel::frameBytes() const { return data->frameBytes; }
size_t Kernel::arenaBytes() const { return data->arenaBytes; }
ArrayRef<SourceSite> Kernel::sites() const { return data->sites; }

int Kernel::findArg(StringRef name) const {
  for (size_t i = 0; i < data->args.size(); ++i)
    if (data->args[i].name == name)
      return static_cast<int>(i);
  return -1;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

char CompileError::ID = 0;

void CompileError::log(raw_ostream &os) const { os << message; }

std::error_code CompileError::convertToErrorCode() const {
  return inconvertibleErrorCode();
}

bool commsir::jit::isCheckerRefusal(const Error &error) {
  bool refused = false;
  visitErrors(error, [&](const ErrorInfoBase &info) {
    if (info.isA<CompileError>())
      refused |= static_cast<const CompileError &>(info).getStage() ==
                 CompileError::Stage::Checker;
  });
  return refused;
}

Error commsir::jit::failCompilation(CompileError::Stage stage,
                                    const Twine &message) {
  return make_error<CompileError>(stage, message.str());
}

StringRef commsir::jit::stringifyArgKind(ArgKind kind) {
  switch (kind) {
  case ArgKind::Window:
    return "window";
  case ArgKind::Memory:
    return "memory";
  case ArgKind::Signal:
    return "signal";
  case ArgKind::Counter:
    return "counter";
  case ArgKind::Scalar:
    return "scalar";
  }
  llvm_unreachable("covered switch");
}

static Error failCodeGeneration(Error error) {
  return failCompilation(CompileError::Stage::CodeGeneration,
                         "no machine code could be made: " +
                             toString(std::move(error)));
}

namespace {
/// A kernel that is not loaded.
struct UnloadedKernel {
  std::string name;
  Description description;
  size_t frameBytes = 0, arenaBytes = 0;
  /// An object file.
  std::string object;
};
} // namespace

namespace commsir::jit {
/// Makes kernels; the only one that may.
struct KernelFactory {
  static std::unique_ptr<Kernel> make(UnloadedKernel contents,
                                      std::unique_ptr<orc::LLJIT> jit,
                                      void (*entry)(void *));
};
} // namespace commsir::jit

std::unique_ptr<Kernel> KernelFactory::make(UnloadedKernel contents,
                                            std::unique_ptr<orc::LLJIT> jit,
                                            void (*entry)(void *)) {
  auto data = std::make_unique<Kernel::Data>();
  data->name = std::move(contents.name);
  Description &description = contents.description;
  data->args = std::move(description.args);
  data->choices = std::move(description.choices);
  data->sites = std::move(description.sites);
  data->ranks = description.ranks;
  data->lsaSize = description.lsaSize;
  data->blocks = description.blocks;
  data->proof = std::move(description.proof);
  data->arenaBytes = contents.arenaBytes;
  data->frameBytes = contents.frameBytes;
  data->entry = entry;
  data->jit = std::move(jit);
  return std::unique_ptr<Kernel>(new Kernel(std::move(data)));
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

static Error runPasses(mlir::ModuleOp module, const CompileOptions &options) {
  comms::CommsToCPUOptions pipeline;
  pipeline.ranks = options.ranks;
  pipeline.blocks = options.blocks;
  pipeline.algorithm = options.algorithm;
  pipeline.protocol = options.protocol;
  pipeline.check = options.check;
  pipeline.checkEvents = options.checkEvents;
  pipeline.runLaunches = options.runLaunches;
  pipeline.instrument = options.instrument;
  pipeline.weak = options.weak;
  pipeline.assertBounds = options.assertBounds;
  return runPipeline(module, [&](mlir::OpPassManager &manager) {
    comms::buildCommsToCPU(manager, pipeline);
  });
}

/// Lowers the kernel of `module`; gives its name.
static Expected<std::string> lower(mlir::ModuleOp module, StringRef name,
                                   const CompileOptions &options) {
  if (!module)
    return failCompilation(CompileError::Stage::Input, "there is no module");
  Expected<comms::KernelOp> kernel =
      prepareKernel(module, name, options.ranks, options.blocks);
  if (!kernel)
    return kernel.takeError();
  // A run of fewer blocks than its roles name would wait for the others.
  if (int64_t blocks = comms::chooseBlocks(*kernel);
      blocks > comms::kDefaultBlocks && !kernel->getBlocks())
    kernel->setBlocks(blocks);
  std::string chosen = kernel->getSymName().str();
  Expected<std::string> bytecode = makeBytecode(module);
  if (!bytecode)
    return bytecode.takeError();
  if (Error error = runPasses(module, options))
    return std::move(error);
  recordDigest(module, digestOf(*bytecode));
  return chosen;
}

Expected<std::unique_ptr<Kernel>>
commsir::jit::compile(mlir::OwningOpRef<mlir::ModuleOp> module, StringRef name,
                      const CompileOptions &options) {
  Expected<std::string> chosen = lower(module.get(), name, options);
  if (!chosen)
    return chosen.takeError();
  return load(std::move(module), *chosen, options);
}

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

static void initializeTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
}

/// The processor for which code is made, as LLVM names it; empty: this one.
static StringRef getChosenProcessor() {
  const char *name = std::getenv("COMMSIR_PROCESSOR");
  return name ? name : "";
}

/// Whether LLVM has a processor of that name that runs code of `triple`: code
/// generation ends the process where it asks for 64 bits of one that has 32.
static bool isProcessor(const Triple &triple, StringRef name) {
  std::string reason;
  const Target *target = TargetRegistry::lookupTarget(triple, reason);
  std::unique_ptr<MCSubtargetInfo> any(
      target ? target->createMCSubtargetInfo(triple, "", "") : nullptr);
  if (!any || !any->isCPUStringValid(name))
    return false;
  std::unique_ptr<MCSubtargetInfo> named(
      target->createMCSubtargetInfo(triple, name, ""));
  return named && (!triple.isX86_64() || named->checkFeatures("+64bit"));
}

/// Has code made for the processor `name`, without what only this one has.
static Error chooseProcessor(orc::JITTargetMachineBuilder &builder,
                             StringRef name) {
  if (!isProcessor(builder.getTargetTriple(), name))
    return createStringError("COMMSIR_PROCESSOR='" + name +
                             "' is not a processor of 64 bits that LLVM knows: "
                             "give a name like x86-64 or x86-64-v3, or unset "
                             "it");
  builder.setCPU(name.str());
  builder.getFeatures() = SubtargetFeatures();
  return Error::success();
}

static Expected<std::unique_ptr<TargetMachine>>
makeTargetMachine(unsigned level) {
  initializeTarget();
  auto builder = orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  if (StringRef name = getChosenProcessor(); !name.empty())
    if (Error error = chooseProcessor(*builder, name))
      return std::move(error);
  // Hardware conversions to bf16 flush denormal numbers: not our bits.
  builder->getFeatures().AddFeature("avx512bf16", false);
  builder->getFeatures().AddFeature("avxneconvert", false);
  builder->getOptions().AllowFPOpFusion = FPOpFusion::Strict;
  builder->getOptions().EmitStackSizeSection = true;
  builder->setRelocationModel(Reloc::PIC_);
  builder->setCodeModel(CodeModel::Small);
  builder->setCodeGenOptLevel(level == 0   ? CodeGenOptLevel::None
                              : level == 1 ? CodeGenOptLevel::Less
                                           : CodeGenOptLevel::Default);
  return builder->createTargetMachine();
}

/// Whether `value` is a bf16 or a vector of them.
static bool isBFloat(const Value *value) {
  return value->getType()->getScalarType()->isBFloatTy();
}

/// Integers of the width of `type`, as many.
static Type *integersLike(Type *type) {
  return type->getWithNewType(Type::getInt16Ty(type->getContext()));
}

/// Replaces a choice between bf16 by one between i16.
static void chooseAsIntegers(Instruction *choice) {
  IRBuilder<> builder(choice);
  Type *bits = integersLike(choice->getType());
  Value *chosen = nullptr;
  if (auto *select = dyn_cast<SelectInst>(choice)) {
    Value *first = builder.CreateBitCast(select->getTrueValue(), bits);
    Value *second = builder.CreateBitCast(select->getFalseValue(), bits);
    chosen = builder.CreateSelect(select->getCondition(), first, second);
  } else {
    auto *phi = cast<PHINode>(choice);
    PHINode *integers = builder.CreatePHI(bits, phi->getNumIncomingValues());
    for (auto [value, block] :
         zip_equal(phi->incoming_values(), phi->blocks())) {
      builder.SetInsertPoint(block->getTerminator());
      integers->addIncoming(builder.CreateBitCast(value, bits), block);
    }
    chosen = integers;
    builder.SetInsertPoint(phi->getParent()->getFirstInsertionPt());
  }
  choice->replaceAllUsesWith(builder.CreateBitCast(chosen, choice->getType()));
  choice->eraseFromParent();
}

/// Replaces a masked load of bf16 by one of i16: code generation may split it
/// into blocks.
static void loadAsIntegers(IntrinsicInst *load) {
  IRBuilder<> builder(load);
  Type *bits = integersLike(load->getType());
  Value *rest = builder.CreateBitCast(load->getArgOperand(2), bits);
  Value *integers = builder.CreateMaskedLoad(
      bits, load->getArgOperand(0), load->getParamAlign(0).valueOrOne(),
      load->getArgOperand(1), rest);
  load->replaceAllUsesWith(builder.CreateBitCast(integers, load->getType()));
  load->eraseFromParent();
}

/// Lets uses of bf16 take it from i16, next to them: code generation splits
/// blocks as well, around a long division, say.
static void carryAsIntegers(Instruction *value) {
  SmallVector<Use *> uses;
  for (Use &use : value->uses())
    uses.push_back(&use);
  std::optional<BasicBlock::iterator> after =
      value->getInsertionPointAfterDef();
  if (uses.empty() || !after)
    return;
  IRBuilder<> builder(value->getParent(), *after);
  Type *bits = integersLike(value->getType());
  auto *cast = dyn_cast<BitCastInst>(value);
  Value *integers = cast && cast->getSrcTy() == bits
                        ? cast->getOperand(0)
                        : builder.CreateBitCast(value, bits);
  for (Use *use : uses) {
    auto *user = llvm::cast<Instruction>(use->getUser());
    if (isa<BitCastInst>(user) && user->getType() == bits) {
      // Left unused, it would still carry the bf16 to its block.
      user->replaceAllUsesWith(integers);
      user->eraseFromParent();
      continue;
    }
    builder.SetInsertPoint(user);
    use->set(builder.CreateBitCast(integers, value->getType()));
  }
}

/// Without the hardware's conversions x86 has no registers for bf16: where one
/// is chosen or goes from block to block, LLVM carries it as f32 and calls
/// __truncsfbf2 (runtime/cpu/Runtime.cpp) for each element; vectors it takes
/// apart for that. Integers have the same bits.
static void carryNarrowFloatsAsIntegers(Module &module) {
  SmallVector<Instruction *> choices, values;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isBFloat(&instruction) && isa<SelectInst, PHINode>(instruction))
        choices.push_back(&instruction);
  for (Instruction *choice : choices)
    chooseAsIntegers(choice);
  for (Function &function : module)
    for (Instruction &instruction :
         make_early_inc_range(instructions(function)))
      if (auto *call = dyn_cast<IntrinsicInst>(&instruction))
        if (isBFloat(call) && call->getIntrinsicID() == Intrinsic::masked_load)
          loadAsIntegers(call);
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isBFloat(&instruction))
        values.push_back(&instruction);
  for (Instruction *value : values)
    carryAsIntegers(value);
}

/// The longest code that is optimized: LLVM's passes take seconds for this.
static constexpr comms::LongCodeLimits kLimits = {
    /*instructions=*/1 << 15, /*chain=*/1 << 11, /*loops=*/1 << 9,
    /*blocks=*/1 << 15};

static Expected<std::unique_ptr<MemoryBuffer>>
makeObject(Module &module, TargetMachine &machine, unsigned level) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
  optimize(module, machine, level);
  expandNarrowMaskedStores(module);
  carryNarrowFloatsAsIntegers(module);
  if (level == 0)
    comms::cutLongBlocks(module);
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  CodeGenFileType::ObjectFile))
    return createStringError("the host's target writes no object files");
  passes.run(module);
  return std::make_unique<SmallVectorMemoryBuffer>(
      std::move(bytes), "kernel.o",
      /*RequiresNullTerminator=*/false);
}

/// Sum of the frames in the section that LLVM writes: an address of 8 bytes and
/// a ULEB128 for each function.
static Expected<size_t> readFrameBytes(MemoryBufferRef object) {
  auto file = object::ObjectFile::createObjectFile(object);
  if (!file)
    return file.takeError();
  size_t total = 0;
  for (const object::SectionRef &section : (*file)->sections()) {
    Expected<StringRef> name = section.getName();
    if (!name)
      return name.takeError();
    if (*name != ".stack_sizes")
      continue;
    Expected<StringRef> contents = section.getContents();
    if (!contents)
      return contents.takeError();
    const uint8_t *at = contents->bytes_begin(), *end = contents->bytes_end();
    while (end - at > 8) {
      unsigned length = 0;
      total += decodeULEB128(at + 8, &length, end);
      at += 8 + length;
    }
  }
  return total;
}

/// Functions of the compiler's own library: divisions of 128-bit integers,
/// which count loops whose bounds are not known.
// NOLINTBEGIN(readability-identifier-naming): names of another library.
extern "C" {
__int128 __divti3(__int128, __int128);
__int128 __modti3(__int128, __int128);
unsigned __int128 __udivti3(unsigned __int128, unsigned __int128);
unsigned __int128 __umodti3(unsigned __int128, unsigned __int128);
}
// NOLINTEND(readability-identifier-naming)

/// Functions of libraries that code generation may call by itself. A kernel
/// calls nothing by name, so nothing else is known to its code: not even what
/// the process has.
static constexpr std::pair<StringLiteral, void *(*)()> kLibraryFunctions[] = {
#define COMMSIR_X(NAME, TYPE)                                                  \
  {#NAME, [] { return reinterpret_cast<void *>(static_cast<TYPE>(::NAME)); }}
    COMMSIR_X(memcpy, void *(*)(void *, const void *, size_t)),
    COMMSIR_X(memmove, void *(*)(void *, const void *, size_t)),
    COMMSIR_X(memset, void *(*)(void *, int, size_t)),
    COMMSIR_X(ceil, double (*)(double)),
    COMMSIR_X(ceilf, float (*)(float)),
    COMMSIR_X(floor, double (*)(double)),
    COMMSIR_X(floorf, float (*)(float)),
    COMMSIR_X(fma, double (*)(double, double, double)),
    COMMSIR_X(fmaf, float (*)(float, float, float)),
    COMMSIR_X(rint, double (*)(double)),
    COMMSIR_X(rintf, float (*)(float)),
    COMMSIR_X(roundeven, double (*)(double)),
    COMMSIR_X(roundevenf, float (*)(float)),
    COMMSIR_X(trunc, double (*)(double)),
    COMMSIR_X(truncf, float (*)(float)),
    COMMSIR_X(__divti3, __int128 (*)(__int128, __int128)),
    COMMSIR_X(__modti3, __int128 (*)(__int128, __int128)),
    COMMSIR_X(__udivti3,
              unsigned __int128 (*)(unsigned __int128, unsigned __int128)),
    COMMSIR_X(__umodti3,
              unsigned __int128 (*)(unsigned __int128, unsigned __int128)),
#undef COMMSIR_X
};

/// The kernel's symbol: no name in C has a dot, so it can be no function that
/// is called.
static std::string getEntrySymbol(StringRef name) {
  return ("comms.kernel." + name).str();
}

/// Gives the kernel `name` its symbol. Everything else that `module` defines
/// is its own; what it only names are functions of the runtime.
static void nameSymbols(Module &module, StringRef name) {
  Function *entry = module.getFunction(name);
  for (GlobalObject &object : module.global_objects())
    if (&object != entry && !object.isDeclaration())
      object.setLinkage(GlobalValue::InternalLinkage);
  entry->setName(getEntrySymbol(name));
}

/// A JIT that knows the runtime's functions, the few above, and nothing else.
static Expected<std::unique_ptr<orc::LLJIT>>
makeJit(std::unique_ptr<MemoryBuffer> object) {
  initializeTarget();
  auto jit = orc::LLJITBuilder()
                 .setPlatformSetUp(orc::setUpInactivePlatform)
                 .setLinkProcessSymbolsByDefault(false)
                 .create();
  if (!jit)
    return jit.takeError();
  orc::JITDylib &library = (*jit)->getMainJITDylib();
  orc::SymbolMap symbols;
  for (const commsir::jit::RuntimeSymbol &symbol :
       commsir::jit::getRuntimeSymbols())
    symbols[(*jit)->mangleAndIntern(symbol.name)] = {
        orc::ExecutorAddr::fromPtr(symbol.address), JITSymbolFlags::Exported};
  for (auto [name, getAddress] : kLibraryFunctions)
    symbols[(*jit)->mangleAndIntern(name)] = {
        orc::ExecutorAddr::fromPtr(getAddress()), JITSymbolFlags::Exported};
  if (Error error = library.define(orc::absoluteSymbols(std::move(symbols))))
    return std::move(error);
  if (Error error = (*jit)->addObjectFile(std::move(object)))
    return std::move(error);
  return jit;
}

/// Machine code of the lowered kernel `name` of `module`.
static Expected<UnloadedKernel> generate(mlir::ModuleOp module, StringRef name,
                                         const CompileOptions &options) {
  auto function = module.lookupSymbol<mlir::LLVM::LLVMFuncOp>(name);
  if (!function || !function->hasAttr(comms::cpu::kArgsAttr))
    return failCompilation(CompileError::Stage::Input,
                           "the module has no lowered kernel @" + name);
  mlir::DialectRegistry registry;
  comms::registerLLVMIRTranslationInterfaces(registry);
  module.getContext()->appendDialectRegistry(registry);
  LLVMContext context;
  std::unique_ptr<Module> llvmModule =
      comms::translateToLLVMIR(module, context);
  if (!llvmModule)
    return failCompilation(CompileError::Stage::Lowering,
                           "the lowered kernel is not valid LLVM IR");
  nameSymbols(*llvmModule, name);

  unsigned level =
      comms::isTooLongToOptimize(*llvmModule, kLimits) ? 0 : options.optLevel;
  auto machine = makeTargetMachine(level);
  if (!machine)
    return failCodeGeneration(machine.takeError());
  auto object = makeObject(*llvmModule, **machine, level);
  if (!object)
    return failCodeGeneration(object.takeError());
  if (options.object)
    *options.object = (*object)->getBuffer().str();
  Expected<size_t> frame = readFrameBytes((*object)->getMemBufferRef());
  if (!frame)
    return failCodeGeneration(frame.takeError());
  UnloadedKernel contents;
  contents.name = name.str();
  contents.description = describe(function);
  contents.frameBytes = *frame;
  contents.arenaBytes = readNumber(function, comms::cpu::kArenaAttr);
  contents.object = (*object)->getBuffer().str();
  return std::move(contents);
}

static Expected<std::unique_ptr<Kernel>> link(UnloadedKernel contents) {
  auto jit = makeJit(MemoryBuffer::getMemBufferCopy(contents.object));
  if (!jit)
    return failCodeGeneration(jit.takeError());
  auto entry = (*jit)->lookup(getEntrySymbol(contents.name));
  if (!entry)
    return failCodeGeneration(entry.takeError());
  return KernelFactory::make(std::move(contents), std::move(*jit),
                             entry->toPtr<void (*)(void *)>());
}

Expected<std::unique_ptr<Kernel>>
commsir::jit::load(mlir::OwningOpRef<mlir::ModuleOp> module, StringRef name,
                   const CompileOptions &options) {
  Expected<UnloadedKernel> contents = generate(module.get(), name, options);
  if (!contents)
    return contents.takeError();
  return link(std::move(*contents));
}

//===----------------------------------------------------------------------===//
// Kernels as bytes
//===----------------------------------------------------------------------===//

template <typename Archive>
static void visitContents(Archive &archive, UnloadedKernel &contents) {
  archive.text(contents.name);
  visitDescription(archive, contents.description);
  archive.number(contents.frameBytes);
  archive.number(contents.arenaBytes);
  archive.text(contents.object);
}

static bool decode(StringRef bytes, UnloadedKernel &contents) {
  Reader reader{bytes};
  visitContents(reader, contents);
  return reader.good && reader.in.empty() && !contents.object.empty() &&
         all_of(contents.description.args, [](const ArgInfo &argument) {
           return argument.kind <= ArgKind::Scalar;
         });
}

Expected<std::string>
commsir::jit::compileToBytes(mlir::OwningOpRef<mlir::ModuleOp> module,
                             StringRef name, const CompileOptions &options) {
  Expected<std::string> chosen = lower(module.get(), name, options);
  if (!chosen)
    return chosen.takeError();
  Expected<UnloadedKernel> contents = generate(module.get(), *chosen, options);
  if (!contents)
    return contents.takeError();
  std::string bytes;
  Writer writer{bytes};
  visitContents(writer, *contents);
  return bytes;
}

Expected<std::unique_ptr<Kernel>> commsir::jit::loadBytes(StringRef bytes) {
  UnloadedKernel contents;
  if (!decode(bytes, contents))
    return failCompilation(CompileError::Stage::Input,
                           "the bytes are not those of a kernel");
  return link(std::move(contents));
}

bool commsir::jit::areKernelBytes(StringRef bytes) {
  UnloadedKernel contents;
  return decode(bytes, contents);
}

std::string commsir::jit::describeProcessor() {
  if (StringRef name = getChosenProcessor(); !name.empty())
    return name.str();
  std::string text = sys::getHostCPUName().str();
  std::vector<std::string> features;
  for (const auto &feature : sys::getHostCPUFeatures())
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(features);
  for (const std::string &feature : features)
    text += "," + feature;
  return text;
}
