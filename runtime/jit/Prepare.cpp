//===- Prepare.cpp - Steps that all targets share -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Prepare.h"

#include "lowering/analysis/Blocks.h"
#include "lowering/cpu/Abi.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/TimeProfiler.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace comms = mlir::comms;

//===----------------------------------------------------------------------===//
// The attributes of the lowered function
//===----------------------------------------------------------------------===//

static StringRef getString(mlir::DictionaryAttr entry, StringRef name) {
  auto text = entry.getAs<mlir::StringAttr>(name);
  return text ? text.getValue() : StringRef();
}

static int64_t getNumber(mlir::DictionaryAttr entry, StringRef name) {
  auto number = entry.getAs<mlir::IntegerAttr>(name);
  return number ? number.getInt() : 0;
}

static ArgKind parseKind(StringRef text) {
  return StringSwitch<ArgKind>(text)
      .Case("window", ArgKind::Window)
      .Case("signal", ArgKind::Signal)
      .Case("counter", ArgKind::Counter)
      .Case("scalar", ArgKind::Scalar)
      .Default(ArgKind::Memory);
}

static ArgInfo readArgument(mlir::DictionaryAttr entry) {
  ArgInfo info;
  info.name = getString(entry, "name");
  info.kind = parseKind(getString(entry, "kind"));
  info.elementType = getString(entry, "element");
  info.elementBytes = static_cast<unsigned>(getNumber(entry, "bytes"));
  if (auto shape = entry.getAs<mlir::DenseI64ArrayAttr>("shape"))
    append_range(info.shape, shape.asArrayRef());
  info.hidden = entry.contains("hidden");
  info.poisoned = entry.contains("poisoned");
  info.written = entry.contains("written");
  info.multimem = entry.contains("multimem");
  info.slots = getString(entry, "slots").str();
  return info;
}

template <typename Read>
static void readArray(mlir::Operation *op, const char *name, Read read) {
  if (auto array = op->getAttrOfType<mlir::ArrayAttr>(name))
    for (mlir::Attribute entry : array)
      read(entry);
}

int64_t commsir::jit::readNumber(mlir::Operation *op, StringRef name) {
  auto number = op->getAttrOfType<mlir::IntegerAttr>(name);
  return number ? number.getInt() : 0;
}

ProofInfo commsir::jit::readProof(mlir::DictionaryAttr said) {
  ProofInfo proof;
  if (!said)
    return proof;
  auto texts = [&](StringRef name, std::vector<std::string> &into) {
    if (auto list = said.getAs<mlir::ArrayAttr>(name))
      for (auto text : list.getAsValueRange<mlir::StringAttr>())
        into.push_back(text.str());
  };
  proof.digest = getString(said, "digest").str();
  proof.verdict = getString(said, "verdict").str();
  proof.ranks = getNumber(said, "ranks");
  proof.followedRanks = getNumber(said, "followed_ranks");
  proof.blocks = getNumber(said, "blocks");
  proof.launches = getNumber(said, "launches");
  texts("assumptions", proof.assumptions);
  texts("computes", proof.computes);
  texts("computed", proof.computed);
  texts("reasons", proof.reasons);
  return proof;
}

json::Object commsir::jit::toJson(const ProofInfo &proof) {
  auto texts = [](const std::vector<std::string> &list) {
    json::Array array;
    for (const std::string &text : list)
      array.push_back(json::isUTF8(text) ? text : json::fixUTF8(text));
    return array;
  };
  json::Object object{
      {"verdict", proof.verdict.empty() ? "not checked" : proof.verdict},
      {"ranks", proof.ranks},
      {"followed_ranks", proof.followedRanks},
      {"blocks", proof.blocks},
      {"launches", proof.launches},
      {"assumptions", texts(proof.assumptions)},
      {"reasons", texts(proof.reasons)}};
  if (!proof.digest.empty())
    object["digest"] = proof.digest;
  if (!proof.computes.empty())
    object["computes"] = texts(proof.computes);
  if (!proof.computed.empty())
    object["computed"] = texts(proof.computed);
  return object;
}

Description commsir::jit::describe(mlir::LLVM::LLVMFuncOp function) {
  Description description;
  readArray(function, comms::cpu::kArgsAttr, [&](mlir::Attribute entry) {
    if (auto dictionary = mlir::dyn_cast<mlir::DictionaryAttr>(entry))
      description.args.push_back(readArgument(dictionary));
  });
  readArray(function, comms::cpu::kSitesAttr, [&](mlir::Attribute entry) {
    auto parts = mlir::cast<mlir::ArrayAttr>(entry);
    auto text = [&](unsigned i) {
      return mlir::cast<mlir::StringAttr>(parts[i]).str();
    };
    description.sites.push_back({text(0), text(1), text(2)});
  });
  readArray(function, comms::cpu::kChoicesAttr, [&](mlir::Attribute entry) {
    if (auto choice = mlir::dyn_cast<mlir::DictionaryAttr>(entry))
      description.choices.push_back(
          {getString(choice, "op").str(), getString(choice, "algorithm").str(),
           getString(choice, "protocol").str(), getNumber(choice, "tile"),
           getNumber(choice, "tiles")});
  });
  description.ranks = readNumber(function, comms::cpu::kRanksAttr);
  description.lsaSize = readNumber(function, comms::cpu::kLsaSizeAttr);
  description.blocks = readNumber(function, comms::cpu::kBlocksAttr);
  description.proof = readProof(
      function->getAttrOfType<mlir::DictionaryAttr>(comms::cpu::kProofAttr));
  return description;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

namespace {
/// Remembers which pass failed.
struct FailureWatch : mlir::PassInstrumentation {
  explicit FailureWatch(std::string &failed) : failed(failed) {}
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *) override {
    if (failed.empty())
      failed = pass->getArgument();
  }
  std::string &failed;
};

/// Takes down how long each pass takes, where that is asked for
/// (llvm/Support/TimeProfiler.h).
struct PassClock : mlir::PassInstrumentation {
  void runBeforePass(mlir::Pass *pass, mlir::Operation *) override {
    // Adaptors have no name, and run the passes that are meant.
    if (!pass->getArgument().empty())
      timeTraceProfilerBegin(("commsir: pass " + pass->getArgument()).str(),
                             StringRef());
  }
  void runAfterPass(mlir::Pass *pass, mlir::Operation *) override {
    if (!pass->getArgument().empty())
      timeTraceProfilerEnd();
  }
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override {
    runAfterPass(pass, op);
  }
};
} // namespace

Expected<comms::KernelOp> commsir::jit::findKernel(mlir::ModuleOp module,
                                                   StringRef name) {
  SmallVector<comms::KernelOp> kernels(module.getOps<comms::KernelOp>());
  std::string names;
  for (comms::KernelOp kernel : kernels) {
    if (kernel.getSymName() == name)
      return kernel;
    names += (names.empty() ? "@" : ", @") + kernel.getSymName().str();
  }
  if (kernels.empty())
    return failCompilation(CompileError::Stage::Input,
                           "the module has no comms.kernel");
  if (!name.empty())
    return failCompilation(CompileError::Stage::Input,
                           "the module has no kernel @" + name + "; it has " +
                               names);
  if (kernels.size() > 1)
    return failCompilation(CompileError::Stage::Input,
                           "the module has several kernels: name one of " +
                               names);
  return kernels.front();
}

/// Writes a number that the caller fixed on the kernel; refuses another one.
static Error fix(comms::KernelOp kernel, StringRef attribute, int64_t asked,
                 std::optional<uint64_t> own, StringRef what) {
  if (asked < 0)
    return failCompilation(CompileError::Stage::Input,
                           "the number of " + what + " is " + Twine(asked) +
                               "; it must be at least 1");
  if (asked == 0)
    return Error::success();
  if (own && static_cast<int64_t>(*own) != asked)
    return failCompilation(CompileError::Stage::Input,
                           "kernel @" + kernel.getSymName() +
                               " is written for " + Twine(*own) + " " + what +
                               ", not for " + Twine(asked));
  kernel->setAttr(attribute,
                  mlir::Builder(kernel.getContext()).getI64IntegerAttr(asked));
  return Error::success();
}

Error commsir::jit::setWorld(comms::KernelOp kernel, int64_t ranks,
                             int64_t blocks) {
  if (Error error = fix(kernel, "ranks", ranks, kernel.getRanks(), "ranks"))
    return error;
  if (Error error = fix(kernel, "blocks", blocks, kernel.getBlocks(), "blocks"))
    return error;
  if (!kernel.getRanks())
    return failCompilation(CompileError::Stage::Input,
                           "kernel @" + kernel.getSymName() +
                               " does not specify a number of ranks; give one");
  return Error::success();
}

Expected<std::string> commsir::jit::makeBytecode(mlir::ModuleOp module) {
  TimeTraceScope scope("commsir: module's bytes");
  std::string bytes;
  raw_string_ostream stream(bytes);
  mlir::BytecodeWriterConfig config("CommsIR");
  if (mlir::failed(mlir::writeBytecodeToFile(module, stream, config)))
    return failCompilation(CompileError::Stage::Input,
                           "the module cannot be written as bytecode");
  return bytes;
}

std::string commsir::jit::digestOf(StringRef bytecode) {
  return toHex(SHA256::hash(arrayRefFromStringRef(bytecode)),
               /*LowerCase=*/true);
}

void commsir::jit::recordDigest(mlir::ModuleOp module, StringRef digest) {
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    auto proof =
        function->getAttrOfType<mlir::DictionaryAttr>(comms::cpu::kProofAttr);
    if (!proof)
      continue;
    mlir::NamedAttrList entries(proof);
    mlir::MLIRContext *context = module.getContext();
    entries.set("digest", mlir::StringAttr::get(context, digest));
    function->setAttr(comms::cpu::kProofAttr, entries.getDictionary(context));
  }
}

Expected<comms::KernelOp> commsir::jit::prepareKernel(mlir::ModuleOp module,
                                                      StringRef name,
                                                      int64_t ranks,
                                                      int64_t blocks) {
  Expected<comms::KernelOp> kernel = findKernel(module, name);
  if (!kernel)
    return kernel.takeError();
  if (Error error = setWorld(*kernel, ranks, blocks))
    return std::move(error);
  // Only a proof of this compilation is one.
  (*kernel)->removeAttr(comms::cpu::kProofAttr);
  // The others would only cost time.
  for (comms::KernelOp other :
       make_early_inc_range(module.getOps<comms::KernelOp>()))
    if (other != *kernel)
      other.erase();
  return kernel;
}

void commsir::jit::resolveBlocks(comms::KernelOp kernel) {
  if (!kernel.getBlocks() && !comms::isBlockDependent(kernel))
    kernel.setBlocks(1);
}

Error commsir::jit::runPipeline(
    mlir::ModuleOp module, function_ref<void(mlir::OpPassManager &)> build) {
  TimeTraceScope scope("commsir: passes");
  // What a request has set of the kernel (its ranks, its blocks) has to fit it.
  if (mlir::failed(mlir::verify(module)))
    return failCompilation(CompileError::Stage::Input,
                           "the kernel is not valid for this run");
  mlir::PassManager manager(module.getContext());
  std::string failed;
  manager.addInstrumentation(std::make_unique<FailureWatch>(failed));
  if (timeTraceProfilerEnabled())
    manager.addInstrumentation(std::make_unique<PassClock>());
  // After each pass it would take as long as a fifth of the passes. Tools and
  // tests have it; here what comes out counts.
  manager.enableVerifier(false);
  build(manager);
  if (mlir::succeeded(manager.run(module))) {
    if (mlir::succeeded(mlir::verify(module)))
      return Error::success();
    return failCompilation(CompileError::Stage::Lowering,
                           "the kernel could not be lowered: the module "
                           "made of it is not a valid module");
  }
  if (failed == "comms-check-sync")
    return failCompilation(CompileError::Stage::Checker,
                           "the checker refused the kernel");
  return failCompilation(
      CompileError::Stage::Lowering,
      "the kernel could not be lowered: pass " +
          (failed.empty() ? std::string("(unnamed)") : failed) + " failed");
}
