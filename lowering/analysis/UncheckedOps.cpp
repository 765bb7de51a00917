//===- UncheckedOps.cpp - Ops that kernels must not contain ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels come from anyone and run in the process of comms-run. Whatever they
// do is checked, so a kernel holds only the ops, types and attributes of the
// lists below. Everything else is refused, known or not.
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/UncheckedOps.h"

#include "dialect/Comms.h"
#include "dialect/TileCuts.h"
#include "lowering/analysis/Attributes.h"
#include "lowering/analysis/NarrowFloats.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Dialects of which a kernel holds every op. (comms-legalize-numerics has a
/// list of its own for functions of math.)
static constexpr StringLiteral kDialects[] = {"comms", "index", "math"};

/// Ops of other dialects that a kernel holds.
static constexpr StringLiteral kOps[] = {
    "affine.apply", "affine.max", "affine.min",
    // Wraps around; divisions and shifts are defined for all operands.
    "arith.addf", "arith.addi", "arith.addui_extended", "arith.andi",
    "arith.bitcast", "arith.ceildivsi", "arith.ceildivui", "arith.cmpf",
    "arith.cmpi", "arith.constant", "arith.divf", "arith.divsi", "arith.divui",
    "arith.extf", "arith.extsi", "arith.extui", "arith.floordivsi",
    "arith.fptosi", "arith.fptoui", "arith.index_cast", "arith.index_castui",
    "arith.maximumf", "arith.maxnumf", "arith.maxsi", "arith.maxui",
    "arith.minimumf", "arith.minnumf", "arith.minsi", "arith.minui",
    "arith.mulf", "arith.muli", "arith.mulsi_extended", "arith.mului_extended",
    "arith.negf", "arith.ori", "arith.remf", "arith.remsi", "arith.remui",
    "arith.select", "arith.shli", "arith.shrsi", "arith.shrui", "arith.sitofp",
    "arith.subf", "arith.subi", "arith.truncf", "arith.trunci", "arith.uitofp",
    "arith.xori",
    // An edge back asks whether to stop, as loops do.
    "cf.br", "cf.cond_br", "cf.switch",
    // Checked by comms-assert-bounds.
    "memref.alloca", "memref.cast", "memref.collapse_shape", "memref.copy",
    "memref.dim", "memref.expand_shape", "memref.load", "memref.store",
    "memref.subview", "scf.condition", "scf.execute_region", "scf.for",
    "scf.if", "scf.index_switch", "scf.while", "scf.yield", "tensor.concat",
    "tensor.extract", "tensor.extract_slice",
    // Of memory, loads and stores of one row alone.
    "vector.bitcast", "vector.broadcast", "vector.constant_mask",
    "vector.create_mask", "vector.deinterleave", "vector.extract",
    "vector.extract_strided_slice", "vector.from_elements", "vector.insert",
    "vector.insert_strided_slice", "vector.interleave", "vector.load",
    "vector.maskedload", "vector.maskedstore", "vector.reduction",
    "vector.shape_cast", "vector.shuffle", "vector.step", "vector.store",
    "vector.to_elements"};

static bool isListed(Operation *op) {
  static const llvm::DenseSet<StringRef> ops(std::begin(kOps), std::end(kOps));
  return llvm::is_contained(kDialects, op->getName().getDialectNamespace()) ||
         ops.contains(op->getName().getStringRef());
}

//===----------------------------------------------------------------------===//
// What else an op has to be
//===----------------------------------------------------------------------===//

/// Whether all numbers of a view are constant: comms-assert-bounds compares
/// them with the memory, as long as a view is no longer than that.
static bool isChecked(memref::SubViewOp view) {
  auto areAtLeast = [](ArrayRef<int64_t> numbers, int64_t least) {
    return llvm::all_of(numbers,
                        [&](int64_t number) { return number >= least; });
  };
  return areAtLeast(view.getStaticOffsets(), 0) &&
         areAtLeast(view.getStaticSizes(), 0) &&
         areAtLeast(view.getStaticStrides(), 1);
}

/// Whether both sides are one row of memory: other copies are a function of
/// MLIR's runner.
static bool isChecked(memref::CopyOp copy) {
  auto isWhole = [](Value memory) {
    auto type = dyn_cast<MemRefType>(memory.getType());
    return type && type.getLayout().isIdentity();
  };
  return isWhole(copy.getSource()) && isWhole(copy.getTarget());
}

/// Whether a cast says nothing of the shape that is not known to be so.
static bool isChecked(memref::CastOp cast) {
  auto source = dyn_cast<MemRefType>(cast.getSource().getType());
  auto result = dyn_cast<MemRefType>(cast.getType());
  if (!source || !result)
    return false;
  for (auto [from, to] : llvm::zip_equal(source.getShape(), result.getShape()))
    if (ShapedType::isDynamic(from) && !ShapedType::isDynamic(to))
      return false;
  return source.getLayout() == result.getLayout();
}

/// Whether the verifier has compared both shapes.
static bool isChecked(memref::ExpandShapeOp expand) {
  return expand.getSrcType().hasStaticShape() &&
         expand.getResultType().hasStaticShape();
}

/// The size of a dimension that is there.
static bool isChecked(memref::DimOp dim) {
  auto type = dyn_cast<MemRefType>(dim.getSource().getType());
  std::optional<int64_t> index = getConstantIntValue(dim.getIndex());
  return type && index && *index >= 0 && *index < type.getRank();
}

/// Vectors are loaded and stored by an offset into memory of one dimension.
template <typename OpT>
static bool isChecked(OpT access) {
  auto type = dyn_cast<MemRefType>(access.getBase().getType());
  return type && type.getRank() == 1 && type.getLayout().isIdentity();
}

/// Whether each number is that of an element. Others, and those of values,
/// would leave what LLVM calls poison: a value of which no check holds.
static bool areElements(ArrayRef<int64_t> positions) {
  return llvm::all_of(positions, [](int64_t position) {
    return position >= 0 && !ShapedType::isDynamic(position);
  });
}

static bool isChecked(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<memref::SubViewOp, memref::CastOp, memref::CopyOp,
            memref::ExpandShapeOp, memref::DimOp, vector::LoadOp,
            vector::StoreOp, vector::MaskedLoadOp, vector::MaskedStoreOp>(
          [](auto access) { return isChecked(access); })
      .Default([](Operation *) { return true; });
}

/// Whether `op` has a value, whatever its operands are.
static bool isDefined(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<vector::ExtractOp, vector::InsertOp>(
          [](auto o) { return areElements(o.getStaticPosition()); })
      .Case([](vector::ShuffleOp o) { return areElements(o.getMask()); })
      .Default([](Operation *) { return true; });
}

/// Numbers that are written down in the text.
static bool isPlainConstant(arith::ConstantOp constant) {
  return isa<IntegerAttr, FloatAttr, DenseIntOrFPElementsAttr>(
      constant.getValue());
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Registers of 64 bits, whose arithmetic needs no function of a library.
static constexpr unsigned kMostBits = 64;

/// The most dimensions of arrays and vectors: code for each recurs in them.
static constexpr int64_t kMostDimensions = 16;

/// Numbers that a kernel computes with.
static bool isNumber(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() && integer.getWidth() >= 1 &&
           integer.getWidth() <= kMostBits;
  return type.isIndex() || isSupportedFloat(type);
}

/// Numbers in memory, where an element takes a power of two of bytes: LLVM
/// rounds others up, arrays do not.
static bool isStored(Type type) {
  return isNumber(type) &&
         (type.isIndex() || llvm::isPowerOf2_64(llvm::divideCeil(
                                type.getIntOrFloatBitWidth(), 8)));
}

static bool isSmallShape(ShapedType type) {
  return type.hasRank() && type.getRank() <= kMostDimensions;
}

static bool isListed(Type type) {
  return llvm::TypeSwitch<Type, bool>(type)
      .Case([](MemRefType memory) {
        return isSmallShape(memory) && isStored(memory.getElementType()) &&
               memory.isStrided();
      })
      .Case([](WindowType window) {
        return int64_t(window.getShape().size()) <= kMostDimensions &&
               isStored(window.getElementType());
      })
      .Case([](VectorType vector) {
        return isSmallShape(vector) && !vector.isScalable() &&
               isNumber(vector.getElementType());
      })
      .Case([](RankedTensorType tile) {
        return isSmallShape(tile) && isNumber(tile.getElementType());
      })
      .Default([](Type other) {
        return isNumber(other) || isa<CommsDialect>(other.getDialect());
      });
}

static InFlightDiagnostic refuse(Operation *op, Type type) {
  return op->emitOpError("has a value of type ")
         << type << ", which kernels do not have: they hold integers of 1 to "
         << kMostBits
         << " bits, index, f8E4M3FN, f8E5M2, bf16, f16, f32, f64, and tiles, "
            "vectors, memrefs and windows of them with at most "
         << kMostDimensions
         << " dimensions; an element in memory takes 1, 2, 4 or 8 bytes";
}

/// Whether constant bounds of a loop are so far apart that 63 bits do not count
/// the turns: folders then take it for a loop of none.
static bool areTooFar(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                         upper = getConstantIntValue(loop.getUpperBound());
  if (!lower || !upper)
    return false;
  if (!loop.getUnsignedCmp()) {
    int64_t distance;
    return *lower < *upper && __builtin_sub_overflow(*upper, *lower, &distance);
  }
  auto from = uint64_t(*lower), to = uint64_t(*upper);
  return from < to && to - from > uint64_t(INT64_MAX);
}

/// A step that is written down is at least 1: folders take it for that.
static LogicalResult checkLoop(scf::ForOp loop) {
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (step && *step < 1 && (!loop.getUnsignedCmp() || *step == 0))
    return loop.emitOpError()
           << "has a step of " << *step
           << ": a step is at least 1; count up and subtract, or write "
              "scf.while";
  if (areTooFar(loop))
    return loop.emitOpError("has bounds that are 2^63 or more apart; bring "
                            "them together");
  return success();
}

static LogicalResult checkTypes(Operation *op) {
  for (Type type : op->getResultTypes())
    if (!isListed(type))
      return refuse(op, type);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (!isListed(type))
          return refuse(op, type);
  return success();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Whether a location is a place in a text, and nothing that LLVM would take
/// for debug information.
static bool isPlain(Location location) {
  if (isa<FileLineColRange, UnknownLoc>(location))
    return true;
  WalkResult found = location->walk([](Location inner) {
    auto fused = dyn_cast<FusedLoc>(inner);
    return fused && fused.getMetadata() ? WalkResult::interrupt()
                                        : WalkResult::advance();
  });
  return !found.wasInterrupted();
}

//===----------------------------------------------------------------------===//
// What to write instead
//===----------------------------------------------------------------------===//

namespace {
/// An op that a kernel cannot hold, and the replacement to suggest.
struct Alternative {
  StringLiteral op, instead;
};
} // namespace

static constexpr StringLiteral
    kWholeTiles = "a block computes with whole tiles and has no threads to "
                  "number: write arithmetic on tensors of rank 1, "
                  "comms.tile_load and comms.tile_store",
    kReduceRow = "write comms.row_reduce, which combines the elements of a "
                 "tile",
    kLoad = "write memref.load or comms.tile_load",
    kStore = "write memref.store or comms.tile_store", kLoop = "write scf.for",
    kScratch = "memory of a block is comms.scratch, which the kernel does not "
               "free";

static constexpr Alternative kAlternatives[] = {
    {"affine.for", kLoop},
    {"affine.parallel", kLoop},
    {"affine.if", "write scf.if"},
    {"affine.load", kLoad},
    {"affine.vector_load", kLoad},
    {"affine.store", kStore},
    {"affine.vector_store", kStore},
    {"gpu.thread_id", kWholeTiles},
    {"gpu.block_dim", kWholeTiles},
    {"gpu.global_id", kWholeTiles},
    {"gpu.lane_id", kWholeTiles},
    {"gpu.subgroup_id", kWholeTiles},
    {"gpu.subgroup_size", kWholeTiles},
    {"gpu.num_subgroups", kWholeTiles},
    {"gpu.block_id", "write comms.block_id"},
    {"gpu.cluster_block_id", "write comms.block_id"},
    {"gpu.cluster_id", "write comms.block_id"},
    {"gpu.grid_dim", "write comms.num_blocks"},
    {"gpu.barrier", "leave it out: what a block does is in order; "
                    "comms.barrier waits for other ranks and blocks"},
    {"gpu.all_reduce", kReduceRow},
    {"gpu.subgroup_reduce", kReduceRow},
    {"gpu.shuffle", kReduceRow},
    {"gpu.printf", "store the value in an array that the kernel is given"},
    {"gpu.alloc", kScratch},
    {"builtin.unrealized_conversion_cast", "write arith.index_cast or another "
                                           "cast of arith"},
    {"ub.unreachable", "write comms.return"},
    {"ub.poison", "write arith.constant"},
    {"scf.forall", kLoop},
    {"scf.parallel", kLoop},
    {"memref.alloc", kScratch},
    {"memref.dealloc", kScratch},
    {"memref.realloc", kScratch},
    {"memref.atomic_rmw", "comms.signal adds to a cell of a rank, "
                          "comms.multimem_reduce to all parts of a window"},
    {"memref.generic_atomic_rmw", "comms.signal adds to a cell of a rank"},
    {"memref.copy", "copy whole arrays, or a view by scf.for with memref.load "
                    "and memref.store"},
    {"vector.transfer_read", kLoad},
    {"vector.transfer_write", kStore},
};

/// Ops of one target's threads.
static bool isOfThreads(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "gpu" || dialect == "nvvm";
}

/// Returns the suggested replacement for `op`, or an empty string if there is
/// none.
static StringRef findAlternative(Operation *op) {
  StringRef name = op->getName().getStringRef();
  for (const Alternative &one : kAlternatives)
    if (one.op == name)
      return one.instead;
  return isOfThreads(op) ? StringRef(kWholeTiles) : StringRef();
}

/// The end of an op that is refused itself.
static bool endsRefused(Operation *op) {
  return op->hasTrait<OpTrait::IsTerminator>() &&
         isa_and_present<affine::AffineDialect>(op->getDialect());
}

/// Whether `op` has two results of index, a pair that LLVM has no form for.
static bool isIndexPair(Operation *op) {
  return isa<arith::AddUIExtendedOp, arith::MulSIExtendedOp,
             arith::MulUIExtendedOp>(op) &&
         getElementTypeOrSelf(op->getResult(0).getType()).isIndex();
}

static LogicalResult refuse(Operation *op) {
  if (isa<CallOpInterface>(op))
    return op->emitOpError("a kernel calls no functions: what they do cannot "
                           "be checked; inline them first");
  if (isa_and_present<LLVM::LLVMDialect>(op->getDialect()))
    return op->emitOpError("accesses of the LLVM dialect cannot be checked; "
                           "use comms.tile_load, comms.tile_store, "
                           "memref.load or memref.store");
  if (isa<cf::AssertOp>(op))
    return op->emitOpError("would terminate the process; a kernel ends with "
                           "comms.return, and a run that has left bounds with "
                           "comms.check_bounds");
  bool isOfMemory = llvm::is_contained(
      {StringRef("memref"), StringRef("vector"), StringRef("affine")},
      op->getName().getDialectNamespace());
  StringRef instead = findAlternative(op);
  if (instead.empty() && isOfMemory)
    instead = "use a view with constant offsets, comms.tile_load, "
              "comms.tile_store, memref.load or memref.store";
  if (instead.empty())
    instead = "kernels may contain ops of comms, scf and cf, arithmetic of "
              "arith, index and math, and accesses of memref and vector";
  return op->emitOpError() << (isOfMemory
                                   ? "accesses through it cannot be checked; "
                                   : "is not allowed in a kernel; ")
                           << instead;
}

LogicalResult comms::refuseUnchecked(Operation *op) {
  if (endsRefused(op))
    return success();
  if (!isListed(op) || !isChecked(op))
    return refuse(op);
  if (StringRef why = isTileCut(op) ? whyNotCut(op) : StringRef(); !why.empty())
    return op->emitOpError() << why;
  if (!isDefined(op))
    return op->emitOpError("takes an element by a position that is not "
                           "constant or names none: what it gives is not "
                           "defined; write constant positions");
  if (auto constant = dyn_cast<arith::ConstantOp>(op);
      constant && !isPlainConstant(constant))
    return op->emitOpError("is not an inline constant: write a "
                           "number or dense<…>");
  if (isIndexPair(op))
    return op->emitOpError("does not support index: write arith.index_cast to "
                           "i64 before it");
  if (!isPlain(op->getLoc()))
    return op->emitOpError("has debug information in its location: write "
                           "loc(\"FILE\":LINE:COLUMN), or leave it out");
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && failed(checkLoop(loop)))
    return failure();
  return checkTypes(op);
}

//===----------------------------------------------------------------------===//
// Outside of the kernel
//===----------------------------------------------------------------------===//

/// The first attribute of another dialect in `attributes`; empty: there is
/// none. They tell LLVM and MLIR what no check knows of.
static StringRef findForeign(DictionaryAttr attributes) {
  for (NamedAttribute attribute : attributes) {
    StringRef name = attribute.getName().strref();
    if (name.contains('.') && !name.starts_with("comms."))
      return name;
  }
  return "";
}

/// Attributes by which passes and the runtime tell each other what they have
/// found or chosen. A text that states one would be believed.
static constexpr StringLiteral kOfPasses[] = {"comms.alignment",
                                              "comms.arena_bytes",
                                              "comms.args",
                                              "comms.blocks",
                                              "comms.canonical",
                                              "comms.choices",
                                              "comms.cluster",
                                              "comms.launch",
                                              "comms.lsa_size",
                                              "comms.nccl",
                                              "comms.one_round",
                                              "comms.param_bytes",
                                              "comms.prefetch",
                                              "comms.proof",
                                              "comms.ranks",
                                              "comms.shared_slots",
                                              "comms.sites",
                                              "comms.stale",
                                              "comms.shared_channels",
                                              "comms.threads",
                                              "comms.tile"};

static LogicalResult refuseOfPasses(Operation *op, DictionaryAttr attributes) {
  if (attributes)
    for (NamedAttribute attribute : attributes)
      if (llvm::is_contained(kOfPasses, attribute.getName().strref()))
        return op->emitError()
               << "attribute '" << attribute.getName().strref()
               << "' is written by passes, and a kernel cannot state it: "
                  "leave it out";
  return success();
}

static LogicalResult checkAttributes(Operation *op, DictionaryAttr attributes) {
  if (failed(refuseOfPasses(op, attributes)))
    return failure();
  StringRef foreign = attributes ? findForeign(attributes) : StringRef();
  if (foreign.empty())
    return success();
  return op->emitError() << "attribute '" << foreign
                         << "' has no place in the module of a kernel or on "
                            "the kernel: leave it out";
}

/// What a kernel has from passes of comms-opt, and works without: its choices
/// and verdict are told anew, and a fill that is not marked stays in its place.
static void dropOfPasses(KernelOp kernel) {
  kernel->removeAttr(target::kChoicesAttr);
  kernel->removeAttr(target::kProofAttr);
  kernel.walk([](PoisonFillOp fill) { fill->removeAttr("comms.stale"); });
}

static LogicalResult checkKernel(KernelOp kernel) {
  dropOfPasses(kernel);
  if (failed(checkAttributes(kernel, kernel->getDiscardableAttrDictionary())))
    return failure();
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (failed(checkAttributes(kernel, kernel.getArgAttrDict(i))))
      return failure();
  bool ok = succeeded(checkTypes(kernel));
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (succeeded(refuseOfPasses(op, op->getDiscardableAttrDictionary())) &&
        succeeded(refuseUnchecked(op)))
      return WalkResult::advance();
    ok = false;
    return WalkResult::skip(); // One error is enough.
  });
  return success(ok);
}

static LogicalResult refuseBeside(Operation *op) {
  bool holdsKernel = op->walk([](KernelOp) {
                         return WalkResult::interrupt();
                       }).wasInterrupted();
  if (holdsKernel)
    return op->emitOpError(
        "contains a kernel in a nested module, but pipelines lower only the "
        "kernels of the outermost module: move the kernel there");
  return op->emitOpError("is not allowed next to a kernel: only kernels are "
                         "compiled, and they call no functions; remove it");
}

LogicalResult comms::refuseBesideKernels(ModuleOp module) {
  bool ok = succeeded(
      checkAttributes(module, module->getDiscardableAttrDictionary()));
  for (Operation &op : module.getOps()) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      ok &= succeeded(checkKernel(kernel));
    else if (!isa<func::FuncOp>(op))
      ok &= succeeded(refuseBeside(&op));
  }
  return success(ok);
}
