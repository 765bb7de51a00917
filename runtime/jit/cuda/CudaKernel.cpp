//===- CudaKernel.cpp - Module in, GPU machine code out -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/CudaKernel.h"

#include "lowering/Pipelines.h"
#include "runtime/jit/cuda/CudaCompile.h"
#include "runtime/jit/cuda/DeviceLibrary.h"
#include "runtime/support/FatalErrors.h"
#include "runtime/support/StartThread.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/raw_ostream.h"

#include <thread>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace comms = mlir::comms;

//===----------------------------------------------------------------------===//
// What a kernel is
//===----------------------------------------------------------------------===//

struct CudaKernel::Data {
  /// Holds the code.
  Cache::Entry bytes;
  KernelContents contents;
  StringRef code;
  /// The key of its cache entry.
  CacheKey key;
  bool cached = false;
};

CudaKernel::CudaKernel(std::unique_ptr<Data> data) : data(std::move(data)) {}
CudaKernel::~CudaKernel() = default;
StringRef CudaKernel::name() const { return data->contents.name; }
StringRef CudaKernel::entry() const { return data->contents.entry; }
ArrayRef<char> CudaKernel::code() const {
  return ArrayRef<char>(data->code.data(), data->code.size());
}
bool CudaKernel::isPtx() const { return data->contents.isPtx; }
StringRef CudaKernel::chip() const { return data->contents.chip; }
ArrayRef<ArgInfo> CudaKernel::args() const {
  return data->contents.description.args;
}
const ProofInfo &CudaKernel::proof() const {
  return data->contents.description.proof;
}
ArrayRef<Choice> CudaKernel::choices() const {
  return data->contents.description.choices;
}
ArrayRef<SourceSite> CudaKernel::sites() const {
  return data->contents.description.sites;
}
int64_t CudaKernel::ranks() const { return data->contents.description.ranks; }
int64_t CudaKernel::lsaSize() const {
  return data->contents.description.lsaSize;
}
LaunchShape CudaKernel::shape() const { return data->contents.shape; }
int64_t CudaKernel::paramBytes() const { return data->contents.paramBytes; }
const std::optional<NcclRequirements> &CudaKernel::nccl() const {
  return data->contents.nccl;
}
unsigned CudaKernel::registers() const {
  return data->contents.facts.registers;
}
unsigned CudaKernel::sharedBytes() const {
  return data->contents.facts.sharedBytes;
}
unsigned CudaKernel::stackBytes() const {
  return data->contents.facts.stackBytes;
}
StringRef CudaKernel::linker() const { return data->contents.linker; }
bool CudaKernel::cached() const { return data->cached; }

int CudaKernel::findArg(StringRef name) const {
  for (auto [number, argument] : enumerate(args()))
    if (argument.name == name)
      return static_cast<int>(number);
  return -1;
}

namespace commsir::jit {
/// Makes kernels; the only one that may.
struct CudaKernelFactory {
  /// Null when the bytes are no kernel.
  static std::unique_ptr<CudaKernel> make(Cache::Entry bytes,
                                          const CacheKey &key, bool cached) {
    TimeTraceScope scope("commsir: reading the entry");
    auto data = std::make_unique<CudaKernel::Data>();
    if (!decodeKernel(*bytes, data->contents, data->code))
      return nullptr;
    data->bytes = std::move(bytes);
    data->key = key;
    data->cached = cached;
    return std::unique_ptr<CudaKernel>(new CudaKernel(std::move(data)));
  }
  static const CacheKey &keyOf(const CudaKernel &kernel) {
    return kernel.data->key;
  }
  static StringRef ncclCodeOf(const CudaKernel &kernel) {
    return kernel.data->contents.ncclCode;
  }
};
} // namespace commsir::jit

static bool isKernel(StringRef bytes) {
  KernelContents contents;
  StringRef code;
  return decodeKernel(bytes, contents, code);
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// `nccl`: the device library that becomes part of the code, if any does.
static CacheKey makeKey(StringRef what, StringRef module, StringRef variant,
                        StringRef name, const CudaOptions &options,
                        StringRef nccl) {
  CacheKeyBuilder key;
  key.add("what", what).add("module", module).add("variant", variant);
  key.add("name", name);
  key.add("ranks", options.ranks).add("blocks", options.blocks);
  key.add("threads", options.threads).add("cluster", options.cluster);
  key.add("chip", options.chip);
  key.add("algorithm", options.algorithm).add("protocol", options.protocol);
  key.add("check", options.check).add("checkEvents", options.checkEvents);
  key.add("requiresProof", comms::requiresProof());
  key.add("tileSize", options.tileSize);
  key.add("assertBounds", options.assertBounds);
  key.add("optLevel", options.optLevel);
  key.add("linker", identifyLinker(options.linker));
  key.add("impl", options.impl);
  key.add("sharedChannels", options.sharedChannels);
  key.add("nccl", nccl);
  return key.finish();
}

/// Whether the code will call NCCL's device library.
static bool callsNccl(mlir::ModuleOp module, const CudaOptions &options) {
  return options.impl == "nccl" ||
         module
             .walk([](mlir::Operation *op) {
               return op->hasAttr("gin") ? mlir::WalkResult::interrupt()
                                         : mlir::WalkResult::advance();
             })
             .wasInterrupted();
}

/// The device library that such a kernel gets.
static Expected<std::string>
identifyNccl(const std::function<Expected<NcclInstallation>()> &find) {
  if (!find)
    return "";
  Expected<NcclInstallation> nccl = find();
  if (!nccl)
    return nccl.takeError();
  return identifyDeviceCode(*nccl);
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// Opening the linker's 90 MB takes 8 ms, which pass while the passes run.
static Expected<PtxKernel> makeWhileLinkerLoads(mlir::ModuleOp module,
                                                StringRef name,
                                                const CudaOptions &options,
                                                PtxMaker maker) {
  // Linking opens it again, and reports a failure.
  std::thread loading = startThread(
      [&] { (void)catchFailure([&] { preloadLinker(options.linker); }); });
  llvm::scope_exit joined([&] {
    TimeTraceScope scope("commsir: waiting for the linker's library");
    if (loading.joinable())
      loading.join();
  });
  return maker(module, name, options);
}

/// Machine code of a prepared module, as an entry of the cache.
static Expected<std::string> buildKernel(mlir::ModuleOp module, StringRef name,
                                         const CudaOptions &options,
                                         StringRef nccl, StringRef bytecode,
                                         PtxMaker maker) {
  Expected<PtxKernel> ptx = makeWhileLinkerLoads(module, name, options, maker);
  if (!ptx)
    return ptx.takeError();
  if (ptx->proof && ptx->proof->isRefused())
    return ptx->proof->finishProof();
  Expected<LinkedCode> linked =
      linkPtx(ptx->ptx, ptx->entry, options.chip, options.optLevel,
              options.linker, ptx->library);
  if (ptx->proof)
    if (Error refusal = ptx->proof->finishProof()) {
      if (!linked)
        consumeError(linked.takeError());
      return std::move(refusal);
    }
  if (!linked)
    return failCompilation(CompileError::Stage::CodeGeneration,
                           "cannot generate machine code for kernel @" + name +
                               ": " + toString(linked.takeError()));
  KernelContents contents;
  contents.name = name.str();
  contents.entry = std::move(ptx->entry);
  contents.chip = options.chip;
  contents.linker = std::move(linked->linker);
  contents.isPtx = linked->isPtx;
  contents.description = std::move(ptx->description);
  // The certificate that goes with the code.
  ProofInfo &proof = contents.description.proof;
  if (ptx->proof)
    proof = ptx->proof->info();
  if (!proof.verdict.empty())
    proof.digest = digestOf(bytecode);
  contents.shape = ptx->shape;
  contents.paramBytes = ptx->paramBytes;
  contents.facts = linked->facts;
  contents.nccl = ptx->nccl;
  contents.ncclCode = nccl.str();
  return encodeKernel(contents, linked->code);
}

static Expected<std::unique_ptr<CudaKernel>>
compileInto(mlir::ModuleOp module, StringRef name, const CudaOptions &options,
            Cache &cache, PtxMaker maker) {
  if (!module)
    return failCompilation(CompileError::Stage::Input, "there is no module");
  if (!options.impl.empty() && options.impl != "nccl")
    return failCompilation(CompileError::Stage::Input,
                           "impl is '" + options.impl +
                               "'; it can be nccl, or empty");
  Expected<comms::KernelOp> kernel =
      prepareKernel(module, name, options.ranks, options.blocks);
  if (!kernel)
    return kernel.takeError();
  resolveBlocks(*kernel);
  std::string chosen = kernel->getSymName().str();
  Expected<std::string> bytecode = makeBytecode(module);
  if (!bytecode)
    return bytecode.takeError();
  std::string nccl;
  if (callsNccl(module, options)) {
    Expected<std::string> known = identifyNccl(options.nccl);
    if (!known)
      return failCompilation(
          CompileError::Stage::CodeGeneration,
          "kernel @" + chosen +
              " calls NCCL's device library: " + toString(known.takeError()));
    nccl = *known;
  }
  CacheKey key = makeKey("kernel", *bytecode, "", chosen, options, nccl);
  bool built = false;
  Expected<Cache::Entry> entry =
      cache.get(key, "kernel @" + chosen, isKernel, [&] {
        built = true;
        return buildKernel(module, chosen, options, nccl, *bytecode, maker);
      });
  if (!entry)
    return entry.takeError();
  auto made = CudaKernelFactory::make(std::move(*entry), key, !built);
  if (!made)
    return failCompilation(CompileError::Stage::CodeGeneration,
                           "kernel @" + chosen +
                               " has no machine code or no entry");
  return made;
}

Expected<std::unique_ptr<CudaKernel>>
commsir::jit::compileCudaWith(mlir::OwningOpRef<mlir::ModuleOp> module,
                              StringRef name, const CudaOptions &options,
                              Cache &cache, PtxMaker maker) {
  return compileInto(module.get(), name, options, cache, maker);
}

/// Whether an entry for a source holds only the key of the kernel that was made
/// from it.
static bool isReference(StringRef bytes) {
  return bytes.size() == sizeof(CacheKey);
}

// Whether the source calls NCCL is not known before it is parsed: the kernel
// says for which it was made.
SourceEntry::SourceEntry(StringRef source, StringRef variant, StringRef name,
                         const CudaOptions &options, Cache &cache)
    : nccl(options.nccl), cache(cache),
      key(makeKey("source", source, variant, name, options, "")) {}

std::unique_ptr<CudaKernel> SourceEntry::find() const {
  Cache::Entry reference = cache.find(key, isReference);
  if (!reference)
    return nullptr;
  CacheKey made;
  std::copy(reference->begin(), reference->end(), made.begin());
  Cache::Entry entry = cache.find(made, isKernel);
  if (!entry)
    return nullptr;
  auto kernel = CudaKernelFactory::make(std::move(entry), made, true);
  if (!kernel || !kernel->nccl())
    return kernel;
  Expected<std::string> atHand = identifyNccl(nccl);
  if (atHand && *atHand == CudaKernelFactory::ncclCodeOf(*kernel))
    return kernel;
  consumeError(atHand.takeError()); // Compiling says it.
  return nullptr;
}

void SourceEntry::keep(const CudaKernel &kernel) {
  const CacheKey &made = CudaKernelFactory::keyOf(kernel);
  cache.put(key, std::string(made.begin(), made.end()));
}

Expected<std::unique_ptr<CudaKernel>>
commsir::jit::compileCuda(mlir::OwningOpRef<mlir::ModuleOp> module,
                          StringRef name, const CudaOptions &options) {
  return compileCudaWith(std::move(module), name, options, Cache::shared(),
                         makePtx);
}
