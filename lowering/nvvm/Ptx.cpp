//===- Ptx.cpp - Inline PTX -----------------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/Ptx.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

namespace {
struct Entry {
  const char *text, *constraints;
};
} // namespace

static constexpr Entry kTable[] = {
#define COMMSIR_PTX(name, text, constraints) {text, constraints},
#include "lowering/nvvm/Ptx.inc"
#undef COMMSIR_PTX
};

/// `constraint`, so many times, separated by commas.
static std::string repeat(StringRef constraint, int64_t times) {
  std::string text;
  for (int64_t i = 0; i < times; ++i)
    text += (i ? "," : "") + constraint.str();
  return text;
}

SmallVector<Value> nvvm::emitText(ImplicitLocOpBuilder &b, StringRef text,
                                  StringRef constraints, ValueRange operands,
                                  TypeRange results) {
  std::string all = constraints.str();
  all += all.empty() ? "~{memory}" : ",~{memory}";
  Type type;
  if (results.size() == 1)
    type = results.front();
  else if (results.size() > 1)
    type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                            llvm::to_vector(results));
  auto op = LLVM::InlineAsmOp::create(
      b, type ? TypeRange{type} : TypeRange{}, operands, text, all,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr{},
      ArrayAttr{});
  SmallVector<Value> values;
  if (results.size() == 1)
    values.push_back(op.getRes());
  for (int64_t i = 0, e = results.size(); e > 1 && i < e; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, op.getRes(), i));
  return values;
}

Value nvvm::emitOneText(ImplicitLocOpBuilder &b, StringRef text,
                        StringRef constraints, ValueRange operands,
                        Type result) {
  return emitText(b, text, constraints, operands, result).front();
}

std::string nvvm::listOperands(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text;
}

std::string nvvm::tieOperands(int64_t count, StringRef others) {
  std::string text = repeat("=f", count);
  if (!others.empty())
    text += ("," + others).str();
  for (int64_t i = 0; i < count; ++i)
    text += "," + std::to_string(i);
  return text;
}

SmallVector<Value> nvvm::emit(ImplicitLocOpBuilder &b, Ptx instruction,
                              ValueRange operands, TypeRange results) {
  const Entry &entry = kTable[static_cast<size_t>(instruction)];
  return emitText(b, entry.text, entry.constraints, operands, results);
}

Value nvvm::emitOne(ImplicitLocOpBuilder &b, Ptx instruction,
                    ValueRange operands, Type result) {
  return emit(b, instruction, operands, result).front();
}

bool nvvm::is(Operation *op, Ptx instruction) {
  auto text = dyn_cast<LLVM::InlineAsmOp>(op);
  return text &&
         text.getAsmString() == kTable[static_cast<size_t>(instruction)].text;
}

void nvvm::emitFence(ImplicitLocOpBuilder &b, MemoryScope scope, Proxy proxy) {
  switch (proxy) {
  case Proxy::Async:
    emit(b, Ptx::FenceAsync, {});
    return;
  case Proxy::Alias:
    emit(b, Ptx::FenceAlias, {});
    return;
  case Proxy::CopyEngine: // A step of the host: memory order of the system.
    emit(b, Ptx::FenceSys, {});
    return;
  case Proxy::Generic:
    break;
  }
  switch (scope) {
  case MemoryScope::Block:
    emit(b, Ptx::FenceBlock, {});
    return;
  case MemoryScope::Cluster:
    emit(b, Ptx::FenceCluster, {});
    return;
  case MemoryScope::Gpu:
    emit(b, Ptx::FenceGpu, {});
    return;
  case MemoryScope::Sys:
    emit(b, Ptx::FenceSys, {});
    return;
  }
}

//===----------------------------------------------------------------------===//
// Multimem
//===----------------------------------------------------------------------===//

static StringRef getOperation(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Avg:
    return "add";
  case ReductionKind::Min:
    return "min";
  case ReductionKind::Max:
    return "max";
  case ReductionKind::And:
    return "and";
  case ReductionKind::Or:
    return "or";
  case ReductionKind::Xor:
    return "xor";
  case ReductionKind::Prod:
    return "";
  }
  return "";
}

/// `.v4`, `.v2` or nothing.
static std::string getVector(int64_t words) {
  return words == 1 ? "" : ".v" + std::to_string(words);
}

/// `$first` or `{$first, …}`.
static std::string getOperands(int64_t first, int64_t words) {
  std::string text = listOperands(first, words);
  return words == 1 ? text : "{" + text + "}";
}

Type nvvm::getMultimemWord(Type element) {
  return element.isF32() || element.getIntOrFloatBitWidth() == 64
             ? element
             : IntegerType::get(element.getContext(), 32);
}

/// Returns PTX's name for a word of this type.
static std::string getTypeName(ReductionKind kind, Type element) {
  if (element.isF16())
    return "f16x2";
  if (element.isBF16())
    return "bf16x2";
  std::string width = std::to_string(element.getIntOrFloatBitWidth());
  if (isa<FloatType>(element))
    return "f" + width;
  switch (kind) {
  case ReductionKind::Sum:
    return "u" + width;
  case ReductionKind::Min:
  case ReductionKind::Max:
    return "s" + width;
  default:
    return "b" + width;
  }
}

/// The letter of a register that holds a word.
static StringRef getConstraint(Type word) {
  if (isa<FloatType>(word))
    return word.isF32() ? "f" : "d";
  return word.isInteger(32) ? "r" : "l";
}

/// Words that one instruction takes: only floats of up to 32 bits have vectors.
static int64_t getStep(Type element, int64_t words) {
  return isa<FloatType>(element) && !element.isF64() ? words : 1;
}

/// `address` and so many words behind it.
static Value atWord(ImplicitLocOpBuilder &b, Value address, Type word,
                    int64_t index) {
  if (index == 0)
    return address;
  return LLVM::GEPOp::create(b, address.getType(), word, address,
                             ArrayRef<LLVM::GEPArg>{int32_t(index)});
}

SmallVector<Value> nvvm::emitMultimemLoadReduce(ImplicitLocOpBuilder &b,
                                                ReductionKind kind,
                                                Type element, Value address,
                                                int64_t words) {
  Type word = getMultimemWord(element);
  SmallVector<Value> values;
  int64_t step = getStep(element, words);
  for (int64_t at = 0; at < words; at += step) {
    // The sum of narrow floats is made in f32, as everywhere.
    bool isNarrow = element.isF16() || element.isBF16();
    std::string text =
        "multimem.ld_reduce.relaxed.sys.global." + getOperation(kind).str() +
        (isNarrow && kind == ReductionKind::Sum ? ".acc::f32" : "") +
        getVector(step) + "." + getTypeName(kind, element) + " " +
        getOperands(0, step) + ", [$" + std::to_string(step) + "];";
    std::string result = "=" + getConstraint(word).str();
    llvm::append_range(values, emitText(b, text, repeat(result, step) + ",l",
                                        atWord(b, address, word, at),
                                        SmallVector<Type>(step, word)));
  }
  return values;
}

void nvvm::emitMultimemStore(ImplicitLocOpBuilder &b, Value address,
                             ValueRange words) {
  int64_t n = words.size();
  std::string text = "multimem.st.relaxed.sys.global" + getVector(n) +
                     (n == 1 ? ".b32 [$0], " : ".f32 [$0], ") +
                     getOperands(1, n) + ";";
  SmallVector<Value> operands{address};
  // The vector form exists for floats alone; it moves bits.
  for (Value word : words)
    operands.push_back(
        n == 1 ? word
               : LLVM::BitcastOp::create(b, b.getF32Type(), word).getResult());
  emitText(b, text, "l," + repeat(n == 1 ? "r" : "f", n), operands, {});
}

void nvvm::emitMultimemReduce(ImplicitLocOpBuilder &b, ReductionKind kind,
                              Type element, Value address, ValueRange words) {
  Type word = getMultimemWord(element);
  int64_t step = getStep(element, words.size());
  for (int64_t at = 0, e = words.size(); at < e; at += step) {
    std::string text = "multimem.red.relaxed.sys.global." +
                       getOperation(kind).str() + getVector(step) + "." +
                       getTypeName(kind, element) + " [$0], " +
                       getOperands(1, step) + ";";
    SmallVector<Value> operands{atWord(b, address, word, at)};
    llvm::append_range(operands, words.slice(at, step));
    emitText(b, text, "l," + repeat(getConstraint(word), step), operands, {});
  }
}
