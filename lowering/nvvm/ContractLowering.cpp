//===- ContractLowering.cpp - Matrix products by tensor cores -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All threads of a CTA multiply together. Operands come through shared memory,
// 64 terms of the sum a stage (128 where elements of 8 bits are multiplied as
// they are), several stages ahead; sums stay in registers.
//
// A stage of an operand is panels of columns: rows of 128 bytes, whose eight
// pieces of 16 bytes are exchanged by the row's number modulo 8. It is what
// ldmatrix reads without bank conflicts, and wgmma's swizzle of 128 bytes.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractLowering.h"

#include "lowering/analysis/Accesses.h"
#include "lowering/analysis/NarrowFloats.h"
#include "lowering/nvvm/Ptx.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// Terms of a stage that threads copy.
static constexpr int64_t kDepth = 64;
static constexpr int64_t kRowBytes = ContractShape::kRowBytes;
/// Registers of a thread that hold sums, at most.
static constexpr int64_t kMostSums = 128;
/// The same, of elements of 8 bits, beside those of a portion.
static constexpr int64_t kMostByteSums = 96;
/// The same, beside as many of a stage that are multiplied by scales.
static constexpr int64_t kMostScaledSums = 64;
/// Registers that hold other values, at least.
static constexpr int64_t kOtherRegisters = 40;
/// Sums of a thread that multiplies one block by 16 columns.
static constexpr int64_t kLeastSums = 8;
/// Stages at most; of elements of 8 bits, which are multiplied faster.
static constexpr int64_t kMostStages = 4, kMostByteStages = 6;
/// Where groups multiply while the threads go on: a stage that is multiplied,
/// one that was until just now, and one that is copied.
static constexpr int64_t kLeastStages = 3;

//===----------------------------------------------------------------------===//
// How the threads share a product
//===----------------------------------------------------------------------===//

/// Registers of a thread of a CTA of `threads`: each of the four parts of a
/// multiprocessor has its registers, and a fourth of the warps.
static int64_t getRegisters(int64_t threads) {
  constexpr int64_t kParts = 4, kOfPart = int64_t(16) << 10, kMost = 255;
  int64_t warps = llvm::divideCeil(threads / 32, kParts);
  return std::min(kMost, kOfPart / (warps * 32) / 8 * 8);
}

/// How many sums a thread has at most. Threads that have fewer registers have
/// fewer sums.
static int64_t getMostSums(ContractOp op, const ContractShape &shape,
                           int64_t threads) {
  OperandScales columns = op.getScales(/*isLhs=*/false);
  bool ofEachColumn = columns.terms > 0 && columns.across == 1;
  int64_t most = shape.elementBytes == 1 ? kMostByteSums : kMostSums;
  if (shape.hasBlockScales && (shape.elementBytes > 1 || ofEachColumn))
    most = kMostScaledSums;
  int64_t free = std::min(getRegisters(threads) - kOtherRegisters, kMostSums);
  return std::max(kLeastSums, most * free / kMostSums);
}

/// Blocks of 16 (64) rows and 16 columns for each of `warps` warps (groups);
/// false: a thread would have more than `most` sums.
static bool assignWarpTiles(int64_t warps, int64_t most, ContractShape &shape) {
  int64_t down = llvm::divideCeil(shape.rows, shape.getBlockRows()),
          across = llvm::divideCeil(shape.columns, 16), best = -1;
  for (int64_t warpRows = 1; warpRows <= warps; warpRows *= 2) {
    int64_t warpColumns = warps / warpRows;
    int64_t m = llvm::divideCeil(down, warpRows),
            n = llvm::divideCeil(across, warpColumns);
    // A group's columns begin with a panel's.
    if (shape.byGroups && warpColumns > 1 && !shape.transposeRhs)
      n = llvm::alignTo(n, 4);
    // What is read of shared memory decides between equal work: groups read
    // both operands for each of their instructions, warps each block once.
    int64_t cost = m * n * 64 + (shape.byGroups ? m * (4 + n) : m + n);
    if (m * n * 8 > most || (best >= 0 && cost >= best))
      continue;
    best = cost;
    shape.warpRows = warpRows;
    shape.warpColumns = warpColumns;
    shape.rowBlocks = m;
    shape.columnBlocks = n;
  }
  return best >= 0;
}

int64_t ContractShape::getLhsBytes() const {
  int64_t rows = warpRows * getWarpRows();
  return transposeLhs ? llvm::alignTo(rows, 64) * kRowBytes : rows * kRowBytes;
}

int64_t ContractShape::getRhsBytes() const {
  int64_t columns = warpColumns * getWarpColumns();
  return transposeRhs ? columns * kRowBytes
                      : llvm::alignTo(columns, 64) * kRowBytes;
}

int64_t ContractShape::getAddendPanels() const {
  return llvm::divideCeil(warpColumns * getWarpColumns(), 64);
}

int64_t ContractShape::getAddendStages() const {
  if (addends == 0)
    return 0;
  return llvm::divideCeil(addends * getAddendPanels(), getPanelsOfStage());
}

int64_t ContractShape::getMapRows(bool isLhs) const {
  if (isLhs ? transposeLhs : !transposeRhs)
    return getDepth();
  return isLhs ? warpRows * getWarpRows() : warpColumns * getWarpColumns();
}

/// Whether groups multiply elements of 8 bits: terms lie beside one another,
/// and stages are whole.
static bool keepsBytes(ContractOp op) {
  auto isByte = [](Value memory) {
    return cast<MemRefType>(memory.getType())
               .getElementType()
               .getIntOrFloatBitWidth() == 8;
  };
  return isByte(op.getLhs()) && isByte(op.getRhs()) && !op.getTransposeLhs() &&
         op.getTransposeRhs();
}

FailureOr<ContractShape> nvvm::shapeContract(ContractOp op, int64_t threads,
                                             int64_t memory, unsigned sm,
                                             bool byMaps) {
  ContractShape shape;
  shape.transposeLhs = op.getTransposeLhs();
  shape.transposeRhs = op.getTransposeRhs();
  shape.rows = op.getTileRows();
  shape.columns = op.getTileColumns();
  shape.hasBlockScales = op.hasBlockScales();
  // Groups of four warps have no fewer than 64 rows.
  shape.byGroups = sm == 90 && threads >= 128 && shape.rows > 32;
  if (shape.byGroups && byMaps && keepsBytes(op))
    shape.elementBytes = 1;
  bool mayCopy = shape.byGroups && byMaps;
  int64_t most = getMostSums(op, shape, threads + mayCopy * kCopyThreads);
  int64_t least = shape.byGroups ? kLeastStages : 2;
  int64_t warps = threads / (shape.byGroups ? 128 : 32);
  // Parts whose sums fit the registers, and whose operands fit the memory.
  while (true) {
    bool fits = assignWarpTiles(warps, most, shape);
    int64_t stage = fits ? shape.getLhsBytes() + shape.getRhsBytes() : 0;
    if (fits && least * stage <= memory) {
      shape.stages = std::min<int64_t>(shape.elementBytes == 1 ? kMostByteStages
                                                               : kMostStages,
                                       memory / stage);
      return shape;
    }
    int64_t &longer = shape.rows >= shape.columns ? shape.rows : shape.columns;
    if (longer <= 16)
      return op.emitOpError("needs ")
             << least * stage
             << " bytes of shared memory beside the kernel's own, of which "
             << std::max<int64_t>(memory, 0)
             << " are left: use less scratch memory";
    longer = llvm::alignTo(llvm::divideCeil(longer, 2), 16);
  }
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

namespace {
/// Numbers of 32 bits.
struct Int {
  Int(ImplicitLocOpBuilder &b, Value value) : b(&b), value(value) {}

  Int constant(int64_t number) const {
    return {*b, arith::ConstantOp::create(
                    *b, b->getI32IntegerAttr(static_cast<int32_t>(number)))};
  }
  template <typename Op>
  Int apply(Value other) const {
    return {*b, b->createOrFold<Op>(value, other)};
  }
  Int operator+(const Int &other) const {
    return apply<arith::AddIOp>(other.value);
  }
  Int operator-(const Int &other) const {
    return apply<arith::SubIOp>(other.value);
  }
  Int operator^(const Int &other) const {
    return apply<arith::XOrIOp>(other.value);
  }
  Int operator+(Value other) const { return apply<arith::AddIOp>(other); }
  Int operator+(int64_t other) const { return *this + constant(other); }
  Int operator-(int64_t other) const { return *this - constant(other); }
  Int operator*(int64_t other) const {
    return apply<arith::MulIOp>(constant(other).value);
  }
  Int operator/(int64_t other) const {
    return apply<arith::DivUIOp>(constant(other).value);
  }
  Int operator%(int64_t other) const {
    return apply<arith::RemUIOp>(constant(other).value);
  }
  /// What is left of `limit` from here on, `most` at most. Not by a minimum: of
  /// a sum whose operand is negated, ptxas 13.0 may lose the sign (VIADDMNMX).
  Int getRest(const Int &limit, int64_t most) const {
    Value whole = arith::CmpIOp::create(*b, arith::CmpIPredicate::sle,
                                        (*this + most).value, limit.value);
    return {*b, arith::SelectOp::create(*b, whole, constant(most).value,
                                        (limit - *this).value)};
  }
  Value isBelow(const Int &other) const {
    return arith::CmpIOp::create(*b, arith::CmpIPredicate::slt, value,
                                 other.value);
  }

  ImplicitLocOpBuilder *b;
  Value value;
};
} // namespace

static Value emitText(ImplicitLocOpBuilder &b, StringRef text,
                      StringRef constraints, ValueRange operands,
                      Type result = {}) {
  auto op = LLVM::InlineAsmOp::create(
      b, result ? TypeRange{result} : TypeRange{}, operands, text,
      (constraints + (constraints.empty() ? "~{memory}" : ",~{memory}")).str(),
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr{},
      ArrayAttr{});
  return result ? op.getRes() : Value();
}

static SmallVector<Value> split(ImplicitLocOpBuilder &b, Value record,
                                int64_t count) {
  SmallVector<Value> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, record, i));
  return values;
}

static Type getRecord(ImplicitLocOpBuilder &b, Type type, int64_t count) {
  return LLVM::LLVMStructType::getLiteral(b.getContext(),
                                          SmallVector<Type>(count, type));
}

static Value emitNumber(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(
      b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

/// This thread has come to a barrier in shared memory.
static void emitArrive(ImplicitLocOpBuilder &b, Value barrier) {
  emitText(b, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r", {barrier});
}

/// A phase of a barrier in shared memory has ended.
static void emitAwait(ImplicitLocOpBuilder &b, Value barrier, Int parity) {
  emitText(b,
           "{ .reg .pred p; again: "
           "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; "
           "@!p bra again; }",
           "r,r", {barrier, parity.value});
}

namespace {
/// A tile that is to be copied: numbers are i32, and the address of its map.
struct MappedTile {
  Value row, column, map;

  static constexpr int64_t kBytes = 16;
};

/// What is to be copied for a product: numbers are i32, and addresses of maps.
/// Rows and columns are those of the first tile. Tiles of addends lie behind.
struct Job {
  Value product, steps, lhsRow, lhsColumn, rhsRow, rhsColumn, lhsMap, rhsMap;

  static constexpr int64_t kBytes = 48;
};

/// Shared memory between the threads that multiply and those that copy: the
/// stages; of each a barrier that counts the bytes that have come, and one for
/// the warps that have read them; a job with a barrier; whether all is over.
class Stages {
public:
  Stages(const ContractShape &shape, Value memory)
      : shape(shape), memory(memory) {}

  Value getStage(ImplicitLocOpBuilder &b, Int step) const {
    Int place = (step % shape.stages) * shape.getStageBytes();
    return arith::AddIOp::create(b, memory, place.value);
  }
  Value getFull(ImplicitLocOpBuilder &b, Int step) const {
    return at(b, (step % shape.stages) * 8, 0);
  }
  Value getEmpty(ImplicitLocOpBuilder &b, Int step) const {
    return at(b, (step % shape.stages) * 8, 8 * shape.stages);
  }
  Value getPosted(ImplicitLocOpBuilder &b) const {
    return at(b, {b, emitNumber(b, 0)}, 16 * shape.stages);
  }
  Value getOver(ImplicitLocOpBuilder &b) const {
    return at(b, {b, emitNumber(b, 0)}, 16 * shape.stages + 8);
  }
  /// How often a step's stage was used before.
  Int getTurn(Int step) const { return step / shape.stages; }
  int64_t getRest() const {
    return 16 * shape.stages + 16 + Job::kBytes +
           shape.mostAddends * MappedTile::kBytes;
  }

  void post(ImplicitLocOpBuilder &b, const Job &job,
            ArrayRef<MappedTile> addends) const;
  Job read(ImplicitLocOpBuilder &b) const;
  MappedTile readAddend(ImplicitLocOpBuilder &b, Int number) const;
  Value awaitJob(ImplicitLocOpBuilder &b, Value parity) const;

private:
  Value at(ImplicitLocOpBuilder &b, Int place, int64_t offset) const {
    Int whole = place + (shape.stages * shape.getStageBytes() + offset);
    return arith::AddIOp::create(b, memory, whole.value);
  }
  Value getJob(ImplicitLocOpBuilder &b) const {
    return at(b, {b, emitNumber(b, 0)}, 16 * shape.stages + 16);
  }
  /// The place of an addend's tile.
  Value getAddend(ImplicitLocOpBuilder &b, Int number) const {
    return at(b, number * MappedTile::kBytes,
              16 * shape.stages + 16 + Job::kBytes);
  }

  const ContractShape &shape;
  Value memory;
};
} // namespace

int64_t ContractShape::getBytes() const {
  return stages * getStageBytes() + (byMaps ? Stages(*this, {}).getRest() : 0);
}

/// Who copies has read the last job: all that it brought has come.
void Stages::post(ImplicitLocOpBuilder &b, const Job &job,
                  ArrayRef<MappedTile> addends) const {
  for (auto [number, tile] : llvm::enumerate(addends)) {
    Value place = getAddend(b, {b, emitNumber(b, int64_t(number))});
    emitText(b, "st.shared.v2.b32 [$0], {$1, $2};", "r,r,r",
             {place, tile.row, tile.column});
    emitText(b, "st.shared.b64 [$0 + 8], $1;", "r,l", {place, tile.map});
  }
  Value place = getJob(b);
  emitText(b, "st.shared.v4.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r",
           {place, job.product, job.steps, job.lhsRow, job.lhsColumn});
  emitText(b, "st.shared.v2.b32 [$0 + 16], {$1, $2};", "r,r,r",
           {place, job.rhsRow, job.rhsColumn});
  emitText(b, "st.shared.v2.b64 [$0 + 32], {$1, $2};", "r,l,l",
           {place, job.lhsMap, job.rhsMap});
  emitArrive(b, getPosted(b));
}

Job Stages::read(ImplicitLocOpBuilder &b) const {
  Value place = getJob(b);
  auto load = [&](StringRef text, StringRef constraints, Type type,
                  int64_t count) {
    return split(
        b, emitText(b, text, constraints, {place}, getRecord(b, type, count)),
        count);
  };
  Type i32 = b.getI32Type();
  SmallVector<Value> first = load("ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
                                  "=r,=r,=r,=r,r", i32, 4),
                     second = load("ld.shared.v2.b32 {$0, $1}, [$2 + 16];",
                                   "=r,=r,r", i32, 2),
                     maps = load("ld.shared.v2.b64 {$0, $1}, [$2 + 32];",
                                 "=l,=l,r", b.getI64Type(), 2);
  return {first[0],  first[1],  first[2], first[3],
          second[0], second[1], maps[0],  maps[1]};
}

MappedTile Stages::readAddend(ImplicitLocOpBuilder &b, Int number) const {
  Value place = getAddend(b, number);
  SmallVector<Value> first =
      split(b,
            emitText(b, "ld.shared.v2.b32 {$0, $1}, [$2];", "=r,=r,r", {place},
                     getRecord(b, b.getI32Type(), 2)),
            2);
  Value map = emitText(b, "ld.shared.b64 $0, [$1 + 8];", "=l,r", {place},
                       b.getI64Type());
  return {first[0], first[1], map};
}

/// Whether there is another job: i1.
Value Stages::awaitJob(ImplicitLocOpBuilder &b, Value parity) const {
  Value more =
      emitText(b,
               "{ .reg .pred p, q; .reg .b32 over; again: "
               "mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; "
               "@p bra done; "
               "ld.volatile.shared.b32 over, [$3]; setp.eq.s32 q, over, 0; "
               "@q bra again; done: selp.b32 $0, 1, 0, p; }",
               "=r,r,r,r", {getPosted(b), parity, getOver(b)}, b.getI32Type());
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, more,
                               emitNumber(b, 0));
}

namespace {
/// An operand in memory, seen from the first element of its part.
struct Operand {
  Value address; // Of address space 1, or generic.
  /// Elements of a row of memory, bytes of one.
  int64_t stride, bytes;
  Type element;
  /// Its columns are the terms of the sum.
  bool alongDepth;
  /// Rows begin at multiples of 16 bytes of global memory.
  bool aligned;
  /// Rows (or columns) that exist across the depth.
  Value extent;
  /// Rows or columns across the depth that a stage holds.
  int64_t width;
  /// Where its part of a stage begins, in bytes.
  int64_t at;

  int64_t getRows() const { return alongDepth ? width : kDepth; }
  int64_t getColumns() const {
    return alongDepth ? kDepth : llvm::alignTo(width, 64);
  }
};

/// Emits one product on the threads of a CTA.
class Emitter {
public:
  Emitter(const ContractParts &parts, const ContractShape &shape,
          int64_t threads, ImplicitLocOpBuilder &b)
      : parts(parts), shape(shape), threads(threads), loc(b.getLoc()),
        f32(b.getF32Type()), i32(b.getI32Type()), i64(b.getI64Type()),
        thread(NVVM::ThreadIdXOp::create(b, i32)) {
    Int number(b, thread);
    lane = (number % 32).value;
    Int warp = number / (shape.byGroups ? 128 : 32);
    // What is the same in all lanes can be in registers of the warp.
    if (shape.byGroups)
      warp = {b, emitText(b, "shfl.sync.idx.b32 $0, $1, 0, 31, -1;", "=r,r",
                          {warp.value}, i32)};
    warpRow = (warp % shape.warpRows).value;
    warpColumn = (warp / shape.warpRows).value;
  }

  void emit(ImplicitLocOpBuilder &b);

private:
  using Sums = SmallVector<Value>;
  using Body = llvm::function_ref<void(ImplicitLocOpBuilder &)>;

  static Value number(ImplicitLocOpBuilder &b, int64_t value) {
    return emitNumber(b, value);
  }
  static void when(ImplicitLocOpBuilder &b, Value condition, Body body) {
    auto only = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    ImplicitLocOpBuilder in(b.getLoc(), only.thenYield());
    body(in);
  }
  Value offset(ImplicitLocOpBuilder &b, Value pointer, Value bytes) {
    return LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                               ValueRange{bytes});
  }
  /// Bytes from the start of an operand's part to an element: i64.
  Value distance(ImplicitLocOpBuilder &b, const Operand &operand, Int row,
                 Int column);
  void emitPart(ImplicitLocOpBuilder &b, Int firstRow, Int firstColumn);
  Operand getOperand(ImplicitLocOpBuilder &b, bool isLhs, Int first, Int count);
  void copyStage(ImplicitLocOpBuilder &b, Int step, Int steps);
  void leaveStage(ImplicitLocOpBuilder &b, Int step);
  void announce(ImplicitLocOpBuilder &b, Int steps);
  Sums multiplyByMaps(ImplicitLocOpBuilder &b, Int steps, Sums sums);
  Sums multiplyByCopies(ImplicitLocOpBuilder &b, Int steps, Int rows,
                        Int columns);
  void copyOperand(ImplicitLocOpBuilder &b, const Operand &operand, Int step,
                   Value stage, bool whole);
  void copyPiece(ImplicitLocOpBuilder &b, const Operand &operand, Value source,
                 Value dest, Int left, bool whole);
  Value loadElement(ImplicitLocOpBuilder &b, const Operand &operand,
                    Value source, int64_t at);
  Value isWhole(ImplicitLocOpBuilder &b, Int step);
  Value getStage(ImplicitLocOpBuilder &b, Int step);
  void multiplyStage(ImplicitLocOpBuilder &b, Value stage, Sums &sums);
  SmallVector<Value> loadBlock(ImplicitLocOpBuilder &b, const Operand &operand,
                               Value stage, Value warp, int64_t blocks,
                               int64_t block, int64_t term, bool isLhs);
  struct Descriptors {
    SmallVector<Value> lhs;
    Value rhs;
  };
  Descriptors describe(ImplicitLocOpBuilder &b, Value stage);
  std::string spellProducts(int64_t count, bool anew);
  void startPortion(ImplicitLocOpBuilder &b, const Descriptors &descriptors,
                    int64_t portion, MutableArrayRef<Value> sums, bool anew);
  void multiplyByGroups(ImplicitLocOpBuilder &b, const Descriptors &descriptors,
                        Sums &sums);
  /// The scales of a sum's row and column; null: there is none.
  struct Factor {
    Value row, column;
  };
  using Factors = SmallVector<Factor>;
  using Products = llvm::DenseMap<std::pair<Value, Value>, Value>;
  void addStage(ImplicitLocOpBuilder &b, const Descriptors &descriptors,
                ArrayRef<Factor> factors, Sums &sums);
  bool isScaled() const { return bool(parts.lhsScales.address); }
  Value loadScale(ImplicitLocOpBuilder &b, const ContractScales &scales,
                  Int place, Value term);
  int64_t getColumnsOfScale();
  Factors loadFactors(ImplicitLocOpBuilder &b, Int term, bool ofBlocks);
  Value multiply(ImplicitLocOpBuilder &b, const Factor &factor,
                 Products &known);
  void addScaledStage(ImplicitLocOpBuilder &b, Int step, Sums &sums);
  void addTerms(ImplicitLocOpBuilder &b, ArrayRef<Value> terms,
                ArrayRef<Factor> factors, MutableArrayRef<Value> sums);
  void finishSums(ImplicitLocOpBuilder &b, Sums &sums, Int rows, Int columns);
  void waitForGroups(ImplicitLocOpBuilder &b, Sums &sums);
  void forSums(ImplicitLocOpBuilder &b,
               llvm::function_ref<void(ImplicitLocOpBuilder &, int64_t at,
                                       Int row, Int column)>
                   body);
  Value loadSum(ImplicitLocOpBuilder &b, const ContractMemory &memory, Int row,
                Int column, Int rows, Int columns);
  void combine(ImplicitLocOpBuilder &b, const ContractMemory &memory,
               Sums &sums, Int rows, Int columns, bool replaces);
  Sums begin(ImplicitLocOpBuilder &b, Int rows, Int columns);
  Value narrow(ImplicitLocOpBuilder &b, ArrayRef<Value> sums, int64_t at);
  void storePair(ImplicitLocOpBuilder &b, Value pair, Int row, Int column,
                 Int rows, Int columns);
  SmallVector<Value> turnBlocks(ImplicitLocOpBuilder &b, ArrayRef<Value> words);
  Value turnToBlock(ImplicitLocOpBuilder &b, ArrayRef<Value> words);
  void storeBlocks(ImplicitLocOpBuilder &b, ArrayRef<Value> pairs, Int row,
                   Int column, Int rows, Int columns);
  bool holdsBlocks(const ContractMemory &memory);
  void prefetch(ImplicitLocOpBuilder &b, const ContractMemory &addend, Int rows,
                Int columns);
  void storeSums(ImplicitLocOpBuilder &b, ArrayRef<Value> sums, Int rows,
                 Int columns);
  Sums turnSums(ImplicitLocOpBuilder &b, ArrayRef<Value> sums);
  void addBlock(ImplicitLocOpBuilder &b, Type element, Value held, Sums &own);
  /// Sums of four neighboring blocks, where they lie behind the first ones, and
  /// what was read of each addend.
  struct FourBlocks {
    int64_t row, column;
    Sums sums, held;
  };
  SmallVector<FourBlocks> getFourBlocks(ImplicitLocOpBuilder &b,
                                        ArrayRef<Value> sums);
  Value addressOfBlock(ImplicitLocOpBuilder &b, const ContractMemory &memory);
  Value behind(ImplicitLocOpBuilder &b, Value first,
               const ContractMemory &memory, const FourBlocks &blocks);
  void storeWhole(ImplicitLocOpBuilder &b, ArrayRef<Value> sums,
                  ArrayRef<ContractMemory> addends);
  void addPanel(ImplicitLocOpBuilder &b, Int panel, Type element, int64_t first,
                Sums &sums);
  void addTiles(ImplicitLocOpBuilder &b, Sums &sums);
  void store(ImplicitLocOpBuilder &b, ArrayRef<Value> sums, Int rows,
             Int columns);
  Value widen(ImplicitLocOpBuilder &b, Value value);
  Value addressOfSum(ImplicitLocOpBuilder &b, const ContractMemory &memory,
                     Int row, Int column);

  const ContractParts &parts;
  const ContractShape &shape;
  int64_t threads;
  Location loc;
  Type f32, i32, i64;
  Value thread, lane, warpRow, warpColumn;
  Operand lhs = {}, rhs = {};
  /// The part's first element of the product, and how much of it exists.
  Value firstRow, firstColumn;
};
} // namespace

Value Emitter::distance(ImplicitLocOpBuilder &b, const Operand &operand,
                        Int row, Int column) {
  auto wide = [&](Int value) {
    return arith::ExtSIOp::create(b, i64, value.value);
  };
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  Value down = arith::MulIOp::create(b, wide(row),
                                     constant(operand.stride * operand.bytes));
  Value right = arith::MulIOp::create(b, wide(column), constant(operand.bytes));
  return arith::AddIOp::create(b, down, right);
}

//===----------------------------------------------------------------------===//
// Memory to shared memory
//===----------------------------------------------------------------------===//

Operand Emitter::getOperand(ImplicitLocOpBuilder &b, bool isLhs, Int first,
                            Int count) {
  const ContractMemory &memory = isLhs ? parts.lhs : parts.rhs;
  Operand operand = {};
  operand.stride = memory.stride;
  operand.element = memory.element;
  operand.bytes = memory.element.getIntOrFloatBitWidth() / 8;
  operand.alongDepth = isLhs ? !shape.transposeLhs : shape.transposeRhs;
  operand.aligned = memory.aligned && operand.bytes == 2;
  operand.extent = count.value;
  operand.width = isLhs ? shape.warpRows * shape.getWarpRows()
                        : shape.warpColumns * shape.getWarpColumns();
  operand.at = isLhs ? 0 : shape.getLhsBytes();
  Int zero = first.constant(0);
  Value bytes = operand.alongDepth ? distance(b, operand, first, zero)
                                   : distance(b, operand, zero, first);
  operand.address = offset(b, memory.address, bytes);
  return operand;
}

Value Emitter::getStage(ImplicitLocOpBuilder &b, Int step) {
  return Stages(shape, parts.memory).getStage(b, step);
}

/// Whether all elements of a stage exist.
Value Emitter::isWhole(ImplicitLocOpBuilder &b, Int step) {
  auto atLeast = [&](Value extent, int64_t width) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sge, extent,
                                 number(b, width));
  };
  Int end = (step + 1) * kDepth;
  Value whole = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, parts.depth,
                                      end.value);
  for (const Operand *operand : {&lhs, &rhs}) {
    int64_t width =
        operand->alongDepth ? operand->getRows() : operand->getColumns();
    whole = arith::AndIOp::create(b, whole, atLeast(operand->extent, width));
  }
  return whole;
}

/// Starts the copies of stage `step`, if there is one, as a group.
void Emitter::copyStage(ImplicitLocOpBuilder &b, Int step, Int steps) {
  when(b, step.isBelow(steps), [&](ImplicitLocOpBuilder &in) {
    Int at(in, step.value);
    Value stage = getStage(in, at);
    auto branch = scf::IfOp::create(in, isWhole(in, at), true);
    for (bool whole : {true, false}) {
      ImplicitLocOpBuilder inner(loc, whole ? branch.thenYield()
                                            : branch.elseYield());
      for (const Operand *operand : {&lhs, &rhs})
        copyOperand(inner, *operand, Int(inner, step.value), stage, whole);
    }
  });
  emitText(b, "cp.async.commit_group;", "", {});
}

/// Copies 64 terms of an operand: each thread pieces of eight elements, of
/// which neighbors have those of one row.
void Emitter::copyOperand(ImplicitLocOpBuilder &b, const Operand &operand,
                          Int step, Value stage, bool whole) {
  int64_t rows = operand.getRows(), columns = operand.getColumns();
  int64_t pieces = rows * columns / 8;
  Int mine(b, thread), first = step * kDepth;
  Int depthLeft = Int(b, parts.depth) - first;
  Value base = offset(b, operand.address,
                      operand.alongDepth
                          ? distance(b, operand, step.constant(0), first)
                          : distance(b, operand, first, step.constant(0)));
  for (int64_t trip = 0; trip * threads < pieces; ++trip) {
    auto copy = [&](ImplicitLocOpBuilder &in) {
      Int piece = Int(in, thread) + trip * threads;
      Int chunk = piece % 8, line = piece / 8;
      Int row = line % rows, panel = line / rows;
      Int column = (panel * 8 + chunk) * 8;
      Int swizzled = (chunk ^ (row % 8)) * 16;
      Int place = line * kRowBytes + swizzled + operand.at;
      Value dest = arith::AddIOp::create(in, stage, place.value);
      Int rowsLeft = operand.alongDepth ? Int(in, operand.extent)
                                        : Int(in, depthLeft.value);
      Int columnsLeft = operand.alongDepth ? Int(in, depthLeft.value)
                                           : Int(in, operand.extent);
      // Elements of the piece that exist.
      Value exists = arith::AndIOp::create(in, row.isBelow(rowsLeft),
                                           column.isBelow(columnsLeft));
      Int left(in, arith::SelectOp::create(in, exists,
                                           column.getRest(columnsLeft, 8).value,
                                           number(in, 0)));
      Value away = distance(in, operand, row, column);
      if (!whole) {
        Value none = arith::CmpIOp::create(in, arith::CmpIPredicate::eq,
                                           left.value, number(in, 0));
        Value zero = arith::ConstantOp::create(in, in.getI64IntegerAttr(0));
        away = arith::SelectOp::create(in, none, zero, away);
      }
      copyPiece(in, operand, offset(in, base, away), dest, left, whole);
    };
    if ((trip + 1) * threads <= pieces)
      copy(b);
    else
      when(b, mine.isBelow(mine.constant(pieces - trip * threads)), copy);
  }
}

/// An element as 16 bits: f8 becomes f16, which holds every one.
Value Emitter::loadElement(ImplicitLocOpBuilder &b, const Operand &operand,
                           Value source, int64_t at) {
  Value bytes =
      arith::ConstantOp::create(b, b.getI64IntegerAttr(at * operand.bytes));
  Type stored = b.getIntegerType(8 * operand.bytes);
  Value bits =
      LLVM::LoadOp::create(b, stored, offset(b, source, bytes), operand.bytes);
  if (operand.bytes == 2)
    return bits;
  Value narrow = arith::BitcastOp::create(b, operand.element, bits);
  Value wide = emitExtFromF8(b, loc, narrow);
  Value half = arith::TruncFOp::create(b, b.getF16Type(), wide);
  return arith::BitcastOp::create(b, b.getI16Type(), half);
}

/// Copies a piece, of which `left` elements exist; the others become 0.
void Emitter::copyPiece(ImplicitLocOpBuilder &b, const Operand &operand,
                        Value source, Value dest, Int left, bool whole) {
  if (operand.aligned && whole) {
    emitText(b, "cp.async.cg.shared.global [$0], [$1], 16;", "r,l",
             {dest, source});
    return;
  }
  if (operand.aligned) {
    emitText(b, "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r",
             {dest, source, (left * 2).value});
    return;
  }
  SmallVector<Value> words;
  Value zero = arith::ConstantOp::create(b, b.getI16IntegerAttr(0));
  for (int64_t i = 0; i < 8; ++i) {
    auto exists = scf::IfOp::create(b, TypeRange{b.getI16Type()},
                                    left.constant(i).isBelow(left),
                                    /*withElseRegion=*/true);
    ImplicitLocOpBuilder yes(b), no(b);
    yes.setInsertionPointToStart(exists.getBody(0));
    scf::YieldOp::create(yes, loadElement(yes, operand, source, i));
    no.setInsertionPointToStart(exists.getBody(1));
    scf::YieldOp::create(no, zero);
    Value wide = arith::ExtUIOp::create(b, i32, exists.getResult(0));
    if (i % 2 == 0) {
      words.push_back(wide);
      continue;
    }
    Value high = arith::ShLIOp::create(b, wide, number(b, 16));
    words.back() = arith::OrIOp::create(b, words.back(), high);
  }
  SmallVector<Value> operands = {dest};
  operands.append(words);
  emitText(b, "st.shared.v4.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r",
           operands);
}

//===----------------------------------------------------------------------===//
// Tiles by maps
//===----------------------------------------------------------------------===//

/// This warp has read a stage: who copies may copy there.
void Emitter::leaveStage(ImplicitLocOpBuilder &b, Int step) {
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, number(b, 0));
  when(b, isFirst, [&](ImplicitLocOpBuilder &in) {
    Stages stages(shape, parts.memory);
    emitArrive(in, stages.getEmpty(in, Int(in, step.value)));
  });
}

/// One thread says which tiles are to be copied. Where there are none, it says
/// nothing: no one would wait until that has been read.
void Emitter::announce(ImplicitLocOpBuilder &b, Int steps) {
  Value speaks =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, number(b, 0));
  std::optional<int64_t> known = getConstantIntValue(steps.value);
  if (shape.addends == 0 && known == 0)
    return;
  if (shape.addends == 0 && !known)
    speaks = arith::AndIOp::create(b, speaks, steps.constant(0).isBelow(steps));
  when(b, speaks, [&](ImplicitLocOpBuilder &in) {
    Job job;
    job.product = number(in, parts.number);
    job.steps = steps.value;
    auto place = [&](const ContractMemory &memory, const Operand &operand,
                     Value first, Value &row, Value &column) {
      Int more(in, first);
      row = memory.row;
      column = memory.column;
      Value &across = operand.alongDepth ? row : column;
      across = (more + across).value;
    };
    place(parts.lhs, lhs, firstRow, job.lhsRow, job.lhsColumn);
    place(parts.rhs, rhs, firstColumn, job.rhsRow, job.rhsColumn);
    job.lhsMap = parts.lhs.map;
    job.rhsMap = parts.rhs.map;
    SmallVector<MappedTile> addends;
    if (shape.addends > 0)
      for (const ContractMemory &addend : parts.addends)
        addends.push_back({(Int(in, firstRow) + addend.row).value,
                           (Int(in, firstColumn) + addend.column).value,
                           addend.map});
    Stages(shape, parts.memory).post(in, job, addends);
  });
}

/// Multiplies a stage whose sums are to be multiplied by `factors` (empty: by
/// nothing) before they are added to the others. Tensor cores add products of 8
/// bits with fewer bits than f32 has: the sums of each portion begin with 0,
/// and are added here while other groups multiply.
void Emitter::addStage(ImplicitLocOpBuilder &b, const Descriptors &descriptors,
                       ArrayRef<Factor> factors, Sums &sums) {
  int64_t portions = shape.rowBlocks * shape.getPortions(),
          count = sums.size() / portions;
  for (int64_t portion = 0; portion < portions; ++portion) {
    Sums terms(count, LLVM::UndefOp::create(b, f32));
    emitText(b, "wgmma.fence.sync.aligned;", "", {});
    startPortion(b, descriptors, portion, terms, /*anew=*/true);
    emitText(b, "wgmma.commit_group.sync.aligned;", "", {});
    waitForGroups(b, terms);
    addTerms(b, terms,
             factors.empty() ? factors : factors.slice(portion * count, count),
             MutableArrayRef<Value>(sums).slice(portion * count, count));
  }
}

/// Multiplies stages as another thread fills them.
Emitter::Sums Emitter::multiplyByMaps(ImplicitLocOpBuilder &b, Int steps,
                                      Sums sums) {
  Stages stages(shape, parts.memory);
  Int before(b, LLVM::LoadOp::create(b, i32, parts.counter));
  auto loop =
      scf::ForOp::create(b, number(b, 0), steps.value, number(b, 1), sums);
  ImplicitLocOpBuilder in(b);
  in.setInsertionPointToStart(loop.getBody());
  Int step(in, loop.getInductionVar());
  Int place = step + before.value;
  Descriptors descriptors = describe(in, getStage(in, place));
  // Scales are on their way while the stage is.
  Factors factors;
  if (shape.hasBlockScales)
    factors = loadFactors(in, step * shape.getDepth(), /*ofBlocks=*/true);
  emitAwait(in, stages.getFull(in, place), stages.getTurn(place) % 2);
  Sums carried(loop.getRegionIterArgs());
  if (shape.elementBytes == 1) {
    addStage(in, descriptors, factors, carried);
    leaveStage(in, place);
    scf::YieldOp::create(in, carried);
    LLVM::StoreOp::create(b, (before + steps).value, parts.counter);
    return Sums(loop.getResults());
  }
  multiplyByGroups(in, descriptors, carried);
  emitText(in, "wgmma.wait_group.sync.aligned 1;", "", {});
  when(in, step.constant(0).isBelow(step), [&](ImplicitLocOpBuilder &inner) {
    leaveStage(inner, Int(inner, place.value) - 1);
  });
  scf::YieldOp::create(in, carried);
  Sums total(loop.getResults());
  waitForGroups(b, total);
  Int after = before + steps;
  when(b, steps.constant(0).isBelow(steps), [&](ImplicitLocOpBuilder &inner) {
    leaveStage(inner, Int(inner, after.value) - 1);
  });
  LLVM::StoreOp::create(b, after.value, parts.counter);
  return total;
}

void nvvm::emitCopyBarriers(const ContractShape &shape, Value memory,
                            int64_t threads, ImplicitLocOpBuilder &b) {
  Stages stages(shape, memory);
  auto init = [&](Value barrier, int64_t count) {
    emitText(b, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r",
             {barrier, emitNumber(b, count)});
  };
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    Int step(b, emitNumber(b, stage));
    init(stages.getFull(b, step), 1);
    init(stages.getEmpty(b, step), threads / 32);
  }
  init(stages.getPosted(b), 1);
  emitText(b, "st.shared.b32 [$0], 0;", "r", {stages.getOver(b)});
  emitText(b, "fence.mbarrier_init.release.cluster;", "", {});
}

void nvvm::emitEndOfCopies(const ContractShape &shape, Value memory,
                           ImplicitLocOpBuilder &b) {
  emitText(b, "st.volatile.shared.b32 [$0], 1;", "r",
           {Stages(shape, memory).getOver(b)});
}

/// Starts the copies of an operand's part of a stage: panels of 64 columns.
static void copyTiles(const ContractShape &shape, bool isLhs, const Job &job,
                      Int step, Value stage, Value full,
                      ImplicitLocOpBuilder &b) {
  bool alongDepth = isLhs ? !shape.transposeLhs : shape.transposeRhs;
  Int row(b, isLhs ? job.lhsRow : job.rhsRow),
      column(b, isLhs ? job.lhsColumn : job.rhsColumn);
  Int &along = alongDepth ? column : row;
  along = along + step * shape.getDepth();
  int64_t begin = isLhs ? 0 : shape.getLhsBytes(),
          bytes = isLhs ? shape.getLhsBytes() : shape.getRhsBytes(),
          panel = shape.getMapRows(isLhs) * kRowBytes;
  for (int64_t at = 0; at * panel < bytes; ++at) {
    Int place(b, stage);
    emitText(b,
             "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
             "complete_tx::bytes [$0], [$1, {$2, $3}], [$4];",
             "r,l,r,r,r",
             {(place + (begin + at * panel)).value,
              isLhs ? job.lhsMap : job.rhsMap,
              (column + at * shape.getDepth()).value, row.value, full});
  }
}

/// Waits until a stage is empty, and says how many bytes come: gives the
/// stage, and the barrier that counts them.
static std::pair<Value, Value> fillStage(const Stages &stages, Int place,
                                         int64_t bytes,
                                         ImplicitLocOpBuilder &b) {
  // Before its first use a stage is empty.
  emitAwait(b, stages.getEmpty(b, place), (stages.getTurn(place) + 1) % 2);
  Value full = stages.getFull(b, place), stage = stages.getStage(b, place);
  emitText(b, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r",
           {full, emitNumber(b, bytes)});
  return {stage, full};
}

/// Brings panels of a product's addends to L2, one at a time while its stages
/// are copied: all at once they would hold up these. The first stages come
/// before.
static void prefetchAddends(const ContractShape &shape, const Stages &stages,
                            const Job &job, Int step, ImplicitLocOpBuilder &b) {
  int64_t ofEach = shape.getAddendPanels(), all = shape.addends * ofEach;
  Int later = step - shape.stages,
      interval = (Int(b, job.steps) - shape.stages) / all;
  interval = interval.apply<arith::MaxUIOp>(emitNumber(b, 1));
  Int panel = later.apply<arith::DivUIOp>(interval.value);
  auto holds = [&](arith::CmpIPredicate predicate, Int left, Int right) {
    return arith::CmpIOp::create(b, predicate, left.value, right.value);
  };
  using arith::CmpIPredicate;
  Value isDue = arith::AndIOp::create(
      b, holds(CmpIPredicate::sge, later, later.constant(0)),
      holds(CmpIPredicate::ult, panel, later.constant(all)));
  isDue =
      arith::AndIOp::create(b, isDue,
                            holds(CmpIPredicate::eq, later,
                                  panel.apply<arith::MulIOp>(interval.value)));
  auto due = scf::IfOp::create(b, isDue, /*withElseRegion=*/false);
  ImplicitLocOpBuilder in(b.getLoc(), due.thenYield());
  MappedTile tile = stages.readAddend(in, Int(in, panel.value) / ofEach);
  Int column = Int(in, panel.value) % ofEach * 64 + tile.column;
  emitText(in, "cp.async.bulk.prefetch.tensor.2d.L2.global [$0, {$1, $2}];",
           "l,r,r", {tile.map, column.value, tile.row});
}

/// Copies the stages of a product's operands, the first of which is number
/// `before` of all.
static void copyStages(const ContractShape &shape, Value memory, const Job &job,
                       Value before, ImplicitLocOpBuilder &b) {
  Stages stages(shape, memory);
  auto loop =
      scf::ForOp::create(b, emitNumber(b, 0), job.steps, emitNumber(b, 1));
  ImplicitLocOpBuilder in(b);
  in.setInsertionPointToStart(loop.getBody());
  Int step(in, loop.getInductionVar());
  auto [stage, full] = fillStage(stages, step + before,
                                 shape.getLhsBytes() + shape.getRhsBytes(), in);
  for (bool isLhs : {true, false})
    copyTiles(shape, isLhs, job, step, stage, full, in);
  if (shape.addends > 0)
    prefetchAddends(shape, stages, job, step, in);
}

/// Calls `body` with each panel of a product's addends, its addend, and the
/// column where it begins in the tile.
static void forAddendPanels(
    const ContractShape &shape,
    llvm::function_ref<void(int64_t panel, int64_t addend, int64_t column)>
        body) {
  int64_t ofEach = shape.getAddendPanels();
  for (int64_t panel = 0; panel < shape.addends * ofEach; ++panel)
    body(panel, panel / ofEach, panel % ofEach * 64);
}

/// Copies the tiles of a product's addends, from stage number `place` of all
/// on.
static void copyAddends(const ContractShape &shape, Value memory,
                        ArrayRef<MappedTile> tiles, Int place,
                        ImplicitLocOpBuilder &b) {
  int64_t held = shape.getPanelsOfStage(), bytes = shape.getPanelBytes(),
          all = shape.addends * shape.getAddendPanels();
  Value stage, full;
  forAddendPanels(shape, [&](int64_t panel, int64_t addend, int64_t column) {
    const MappedTile &tile = tiles[addend];
    if (panel % held == 0)
      std::tie(stage, full) =
          fillStage(Stages(shape, memory), place + panel / held,
                    std::min(held, all - panel) * bytes, b);
    emitText(b,
             "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
             "complete_tx::bytes [$0], [$1, {$2, $3}], [$4];",
             "r,l,r,r,r",
             {(Int(b, stage) + panel % held * bytes).value, tile.map,
              (Int(b, tile.column) + column).value, tile.row, full});
  });
}

/// What other threads wrote, and the maps: of operands that nothing in the
/// kernel writes at their first product only (`seen`, bit by bit).
static void acquireOperands(const ContractShape &shape, int64_t number,
                            const Job &job, ArrayRef<MappedTile> addends,
                            Value seen, ImplicitLocOpBuilder &b) {
  SmallVector<Value> maps = {job.lhsMap, job.rhsMap};
  for (const MappedTile &tile : addends)
    maps.push_back(tile.map);
  auto acquire = [&](ImplicitLocOpBuilder &in) {
    nvvm::emit(in, Ptx::FenceAsync, {});
    for (Value map : maps)
      emitText(in, "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l",
               {map});
  };
  if (!shape.constantOperands || number >= 32)
    return acquire(b);
  Value bit =
      arith::AndIOp::create(b, seen, emitNumber(b, int64_t(1) << number));
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bit, emitNumber(b, 0));
  auto first = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  ImplicitLocOpBuilder in(b.getLoc(), first.thenYield());
  acquire(in);
}

void nvvm::emitCopies(ArrayRef<ContractShape> shapes, Value memory,
                      ImplicitLocOpBuilder &b) {
  auto only =
      scf::IfOp::create(b, NVVM::ElectSyncOp::create(b, b.getI1Type(), Value()),
                        /*withElseRegion=*/false);
  ImplicitLocOpBuilder one(b.getLoc(), only.thenYield());
  Stages stages(shapes.front(), memory);
  Type i32 = b.getI32Type();
  Value zero = emitNumber(one, 0);
  // The number of jobs and of stages so far, and which products there have
  // been, bit by bit.
  scf::WhileOp::create(
      one, TypeRange{i32, i32, i32}, ValueRange{zero, zero, zero},
      [&](OpBuilder &builder, Location loc, ValueRange values) {
        ImplicitLocOpBuilder in(loc, builder);
        Value parity = (Int(in, values[0]) % 2).value;
        scf::ConditionOp::create(in, stages.awaitJob(in, parity), values);
      },
      [&](OpBuilder &builder, Location loc, ValueRange values) {
        ImplicitLocOpBuilder in(loc, builder);
        Job job = stages.read(in);
        // Of the product that this is, the stages of its addends.
        SmallVector<Value> more;
        for (auto [number, shape] : llvm::enumerate(shapes)) {
          Value isThis =
              arith::CmpIOp::create(in, arith::CmpIPredicate::eq, job.product,
                                    emitNumber(in, int64_t(number)));
          auto branch = scf::IfOp::create(in, isThis, false);
          ImplicitLocOpBuilder inner(loc, branch.thenYield());
          SmallVector<MappedTile> addends;
          for (int64_t addend = 0; addend < shape.addends; ++addend)
            addends.push_back(
                stages.readAddend(inner, {inner, emitNumber(inner, addend)}));
          acquireOperands(shape, int64_t(number), job, addends, values[2],
                          inner);
          copyStages(shape, memory, job, values[1], inner);
          copyAddends(shape, memory, addends, Int(inner, values[1]) + job.steps,
                      inner);
          if (int64_t stages = shape.getAddendStages())
            more.push_back(arith::SelectOp::create(
                in, isThis, emitNumber(in, stages), emitNumber(in, 0)));
        }
        Value bit = arith::ShLIOp::create(in, emitNumber(in, 1),
                                          (Int(in, job.product) % 32).value);
        auto after = [&] {
          Int all = Int(in, values[1]) + job.steps;
          for (Value stages : more)
            all = all + stages;
          return all;
        };
        scf::YieldOp::create(
            in, ValueRange{(Int(in, values[0]) + 1).value, after().value,
                           arith::OrIOp::create(in, values[2], bit)});
      });
}

void nvvm::emitMap(Value map, Value place, Value base, int64_t rows,
                   int64_t columns, Type element, int64_t tileRows,
                   ImplicitLocOpBuilder &b) {
  auto number = [&](ImplicitLocOpBuilder &b, int64_t value) {
    return arith::ConstantOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  auto wide = [&](ImplicitLocOpBuilder &b, int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  auto only =
      scf::IfOp::create(b,
                        arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                              thread, number(b, 32)),
                        /*withElseRegion=*/false);
  ImplicitLocOpBuilder in(b.getLoc(), only.thenYield());
  Value word = arith::AddIOp::create(
      in, place, arith::MulIOp::create(in, thread, number(in, 4)));
  emitText(in, "st.shared.b32 [$0], 0;", "r", {word});
  emitText(in, "bar.warp.sync -1;", "", {});
  auto first =
      scf::IfOp::create(in,
                        arith::CmpIOp::create(in, arith::CmpIPredicate::eq,
                                              thread, number(in, 0)),
                        /*withElseRegion=*/false);
  ImplicitLocOpBuilder one(b.getLoc(), first.thenYield());
  auto replace = [&](StringRef field, StringRef type, StringRef rest,
                     StringRef constraint, Value value) {
    emitText(one,
             ("tensormap.replace.tile." + field + ".shared::cta.b1024." + type +
              " [$0], " + rest + ";")
                 .str(),
             value ? ("r," + constraint).str() : std::string("r"),
             value ? SmallVector<Value>{place, value}
                   : SmallVector<Value>{place});
  };
  replace("global_address", "b64", "$1", "l", base);
  replace("rank", "b32", "1", "", {});
  replace("box_dim", "b32", "0, $1", "r", number(one, kRowBytes / bytes));
  replace("box_dim", "b32", "1, $1", "r", number(one, tileRows));
  replace("global_dim", "b32", "0, $1", "r", number(one, columns));
  replace("global_dim", "b32", "1, $1", "r", number(one, rows));
  replace("global_stride", "b64", "0, $1", "l", wide(one, columns * bytes));
  replace("element_stride", "b32", "0, $1", "r", number(one, 1));
  replace("element_stride", "b32", "1, $1", "r", number(one, 1));
  StringRef kind = bytes == 1 ? "0" : element.isBF16() ? "10" : "6";
  replace("elemtype", "b32", kind, "", {});
  replace("interleave_layout", "b32", "0", "", {});
  replace("swizzle_mode", "b32", "3", "", {});
  replace("fill_mode", "b32", "0", "", {});
  emitText(in, "bar.warp.sync -1;", "", {});
  emitText(in,
           "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic."
           "release.gpu.sync.aligned [$0], [$1], 128;",
           "l,r", {map, place});
}

//===----------------------------------------------------------------------===//
// Shared memory to sums
//===----------------------------------------------------------------------===//

/// The four registers of a block of 16 by 16 of an operand: those of mma's left
/// operand, or of two right ones of eight columns each.
SmallVector<Value> Emitter::loadBlock(ImplicitLocOpBuilder &b,
                                      const Operand &operand, Value stage,
                                      Value warp, int64_t blocks, int64_t block,
                                      int64_t term, bool isLhs) {
  Int mine(b, lane), across = (Int(b, warp) * blocks + block) * 16;
  // Two of the four matrices of 8 by 8 are lower, and two further right: which
  // is said by bits 3 and 4 of the lane.
  Int low = mine % 8, middle = (mine / 8) % 2, high = mine / 16;
  bool highIsColumn = isLhs == operand.alongDepth;
  Int row = low + (highIsColumn ? middle : high) * 8,
      chunk = highIsColumn ? high : middle;
  if (operand.alongDepth) {
    row = row + across;
    chunk = chunk + term / 8;
  } else {
    row = row + term;
    chunk = chunk + across / 8;
  }
  Int line = (chunk / 8) * operand.getRows() + row;
  Int place = line * kRowBytes + ((chunk % 8) ^ low) * 16 + operand.at;
  Value address = arith::AddIOp::create(b, stage, place.value);
  std::string text = "ldmatrix.sync.aligned.m8n8.x4";
  if (!operand.alongDepth)
    text += ".trans";
  text += ".shared.b16 {$0, $1, $2, $3}, [$4];";
  Value record =
      emitText(b, text, "=r,=r,=r,=r,r", {address}, getRecord(b, i32, 4));
  return split(b, record, 4);
}

void Emitter::multiplyStage(ImplicitLocOpBuilder &b, Value stage, Sums &sums) {
  std::string type = lhs.element.isBF16() ? "bf16" : "f16";
  std::string text = "mma.sync.aligned.m16n8k16.row.col.f32." + type + "." +
                     type +
                     ".f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
                     "{$10, $11, $12, $13};";
  for (int64_t term = 0; term < kDepth; term += 16) {
    SmallVector<SmallVector<Value>> left, right;
    for (int64_t m = 0; m < shape.rowBlocks; ++m)
      left.push_back(loadBlock(b, lhs, stage, warpRow, shape.rowBlocks, m, term,
                               /*isLhs=*/true));
    for (int64_t n = 0; n < shape.columnBlocks; ++n)
      right.push_back(loadBlock(b, rhs, stage, warpColumn, shape.columnBlocks,
                                n, term, /*isLhs=*/false));
    for (int64_t m = 0; m < shape.rowBlocks; ++m)
      for (int64_t n = 0; n < 2 * shape.columnBlocks; ++n) {
        auto *sum = &sums[(m * 2 * shape.columnBlocks + n) * 4];
        SmallVector<Value> operands(left[m]);
        operands.append({right[n / 2][n % 2 * 2], right[n / 2][n % 2 * 2 + 1]});
        operands.append(sum, sum + 4);
        Value record = emitText(b, text, "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f",
                                operands, getRecord(b, f32, 4));
        llvm::copy(split(b, record, 4), sum);
      }
  }
}

//===----------------------------------------------------------------------===//
// The same by groups of four warps
//===----------------------------------------------------------------------===//

/// What wgmma knows of an operand in shared memory from one row (or column) on:
/// its place, the distance of two panels and of two patterns of eight rows, all
/// in units of 16 bytes, and the pattern. All places are below 2^14 units, so
/// that a term's descriptor is a sum.
static Value describeOperand(ImplicitLocOpBuilder &b, const Operand &operand,
                             Value stage, Int across) {
  Int place = operand.alongDepth ? across * kRowBytes
                                 : (across / 64) * (kDepth * kRowBytes);
  Int address(b, arith::AddIOp::create(b, stage, (place + operand.at).value));
  Int units = (address / 16) % (1 << 14);
  // The same in all lanes: in a register of the warp.
  units.value = emitText(b, "redux.sync.or.b32 $0, $1, -1;", "=r,r",
                         {units.value}, b.getI32Type());
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), units.value);
  uint64_t panel = operand.alongDepth ? 1 : kDepth * kRowBytes / 16;
  uint64_t rest =
      uint64_t(1) << 62 | uint64_t(8 * kRowBytes / 16) << 32 | panel << 16;
  Value constant =
      arith::ConstantOp::create(b, b.getI64IntegerAttr(int64_t(rest)));
  return arith::OrIOp::create(b, wide, constant);
}

/// Units from a stage's first term to a later one.
static int64_t getUnitsBefore(const ContractShape &shape,
                              const Operand &operand, int64_t term) {
  return term * (operand.alongDepth ? shape.elementBytes : kRowBytes) / 16;
}

/// The name of an operand's elements in a stage.
static StringRef nameElement(const ContractShape &shape, Type element) {
  if (shape.elementBytes == 1)
    return isa<Float8E5M2Type>(element) ? "e5m2" : "e4m3";
  return element.isBF16() ? "bf16" : "f16";
}

/// What wgmma knows of all blocks of rows of this group, and of its columns.
Emitter::Descriptors Emitter::describe(ImplicitLocOpBuilder &b, Value stage) {
  Descriptors descriptors;
  for (int64_t m = 0; m < shape.rowBlocks; ++m)
    descriptors.lhs.push_back(describeOperand(
        b, lhs, stage, Int(b, warpRow) * shape.getWarpRows() + 64 * m));
  descriptors.rhs = describeOperand(
      b, rhs, stage, Int(b, warpColumn) * shape.getWarpColumns());
  return descriptors;
}

/// The first operands of an assembly, separated by commas.
static std::string listOperands(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(i);
  return text;
}

/// Constraints for `count` numbers that an assembly changes, before those of
/// its other operands.
static std::string tieOperands(int64_t count, StringRef others) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += i ? ",=f" : "=f";
  if (!others.empty())
    text += ("," + others).str();
  for (int64_t i = 0; i < count; ++i)
    text += "," + std::to_string(i);
  return text;
}

/// The instructions that multiply the terms of a stage by one block of rows,
/// whose `count` sums are the first operands. With `anew` the sums begin with
/// 0.
std::string Emitter::spellProducts(int64_t count, bool anew) {
  std::string text = "{ .reg .pred p; setp.ne.b32 p, 1, 0; ";
  if (anew)
    text += ".reg .pred q; setp.eq.b32 q, 1, 0; ";
  StringRef left = nameElement(shape, lhs.element),
            right = nameElement(shape, rhs.element);
  // Only elements of 16 bits may lie transposed.
  std::string layout = shape.elementBytes == 1
                           ? ""
                           : (", " + Twine(int(!lhs.alongDepth)) + ", " +
                              Twine(int(!rhs.alongDepth)))
                                 .str();
  for (int64_t at = 0; at < shape.getDepth() / shape.getTerms(); ++at)
    text += ("wgmma.mma_async.sync.aligned.m64n" + Twine(count * 2) + "k" +
             Twine(shape.getTerms()) + ".f32." + left + "." + right + " {" +
             listOperands(count) + "}, $" + Twine(count + 2 * at) + ", $" +
             Twine(count + 2 * at + 1) + (anew && at == 0 ? ", q" : ", p") +
             ", 1, 1" + layout + "; ")
                .str();
  return text + "}";
}

/// Starts the products of a stage and one portion of the sums: a block of rows
/// by some columns.
void Emitter::startPortion(ImplicitLocOpBuilder &b,
                           const Descriptors &descriptors, int64_t portion,
                           MutableArrayRef<Value> sums, bool anew) {
  int64_t count = sums.size();
  std::string constraints;
  SmallVector<Value> operands;
  auto later = [&](Value first, int64_t units) {
    Value constant = arith::ConstantOp::create(b, b.getI64IntegerAttr(units));
    return b.createOrFold<arith::AddIOp>(first, constant);
  };
  int64_t columns = portion % shape.getPortions() * count * 2;
  for (int64_t term = 0; term < shape.getDepth(); term += shape.getTerms()) {
    operands.push_back(later(descriptors.lhs[portion / shape.getPortions()],
                             getUnitsBefore(shape, lhs, term)));
    operands.push_back(later(descriptors.rhs, getUnitsBefore(shape, rhs, term) +
                                                  columns * kRowBytes / 16));
    constraints += constraints.empty() ? "l,l" : ",l,l";
  }
  operands.append(sums.begin(), sums.end());
  Value record =
      emitText(b, spellProducts(count, anew), tieOperands(count, constraints),
               operands, getRecord(b, f32, count));
  llvm::copy(split(b, record, count), sums.begin());
}

/// Starts the products of a stage. They end later: until then nothing may
/// touch the sums.
void Emitter::multiplyByGroups(ImplicitLocOpBuilder &b,
                               const Descriptors &descriptors, Sums &sums) {
  int64_t count = shape.columnBlocks * 8;
  emitText(b, "wgmma.fence.sync.aligned;", "", {});
  for (int64_t m = 0; m < shape.rowBlocks; ++m)
    startPortion(b, descriptors, m,
                 MutableArrayRef<Value>(sums).slice(m * count, count),
                 /*anew=*/false);
  emitText(b, "wgmma.commit_group.sync.aligned;", "", {});
}

/// All products have ended.
void Emitter::waitForGroups(ImplicitLocOpBuilder &b, Sums &sums) {
  int64_t count = sums.size();
  Value record =
      emitText(b, "wgmma.wait_group.sync.aligned 0;", tieOperands(count, ""),
               sums, getRecord(b, f32, count));
  sums = split(b, record, count);
}

//===----------------------------------------------------------------------===//
// Sums and memory
//===----------------------------------------------------------------------===//

/// Calls `body` for each pair of this thread's sums, which are neighbors in a
/// row: with the number of the first, its row and its column.
void Emitter::forSums(ImplicitLocOpBuilder &b,
                      llvm::function_ref<void(ImplicitLocOpBuilder &,
                                              int64_t at, Int row, Int column)>
                          body) {
  Int mine(b, lane);
  Int row = Int(b, warpRow) * shape.getWarpRows() + mine / 4,
      column = Int(b, warpColumn) * shape.getWarpColumns() + (mine % 4) * 2;
  if (shape.byGroups)
    row = row + (Int(b, thread) / 32 % 4) * 16;
  for (int64_t m = 0; m < shape.rowBlocks; ++m)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t n = 0; n < 2 * shape.columnBlocks; ++n)
        body(b, (m * 2 * shape.columnBlocks + n) * 4 + 2 * half,
             row + (m * shape.getBlockRows() + 8 * half), column + n * 8);
}

Value Emitter::addressOfSum(ImplicitLocOpBuilder &b,
                            const ContractMemory &memory, Int row, Int column) {
  Operand matrix = {};
  matrix.stride = memory.stride;
  matrix.bytes = memory.element.getIntOrFloatBitWidth() / 8;
  return offset(b, memory.address,
                distance(b, matrix, row + Int(b, firstRow),
                         column + Int(b, firstColumn)));
}

Value Emitter::widen(ImplicitLocOpBuilder &b, Value value) {
  if (value.getType().isF32())
    return value;
  if (value.getType().isBF16())
    return emitExtFromBF16(b, loc, value);
  return arith::ExtFOp::create(b, f32, value);
}

/// An element of memory in the place of a sum, as f32; 0 where none exists.
Value Emitter::loadSum(ImplicitLocOpBuilder &b, const ContractMemory &memory,
                       Int row, Int column, Int rows, Int columns) {
  Value exists =
      arith::AndIOp::create(b, row.isBelow(rows), column.isBelow(columns));
  auto branch = scf::IfOp::create(b, TypeRange{f32}, exists, true);
  ImplicitLocOpBuilder yes(b), no(b);
  yes.setInsertionPointToStart(branch.getBody(0));
  no.setInsertionPointToStart(branch.getBody(1));
  Int one(yes, row.value), other(yes, column.value);
  Value held = LLVM::LoadOp::create(yes, memory.element,
                                    addressOfSum(yes, memory, one, other),
                                    memory.element.getIntOrFloatBitWidth() / 8);
  scf::YieldOp::create(yes, widen(yes, held));
  scf::YieldOp::create(
      no, arith::ConstantOp::create(no, no.getF32FloatAttr(0)).getResult());
  return branch.getResult(0);
}

/// The sums and what memory holds in their places; with `replaces` only the
/// latter.
void Emitter::combine(ImplicitLocOpBuilder &b, const ContractMemory &memory,
                      Sums &sums, Int rows, Int columns, bool replaces) {
  forSums(b, [&](ImplicitLocOpBuilder &b, int64_t at, Int row, Int column) {
    for (int64_t i = 0; i < 2; ++i) {
      Value held = loadSum(b, memory, row, column + i, rows, columns);
      sums[at + i] =
          replaces ? held : arith::AddFOp::create(b, sums[at + i], held);
    }
  });
}

/// What the sums begin with: 0, or what memory holds.
Emitter::Sums Emitter::begin(ImplicitLocOpBuilder &b, Int rows, Int columns) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Sums sums(shape.rowBlocks * shape.columnBlocks * 8, zero);
  if (parts.accumulate && !isScaled())
    combine(b, parts.acc, sums, rows, columns, /*replaces=*/true);
  return sums;
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// The scale of a row (column) of this CTA's part of the product, and of the
/// terms from `term` on. Rows that do not exist have that of another.
Value Emitter::loadScale(ImplicitLocOpBuilder &b, const ContractScales &scales,
                         Int place, Value term) {
  Int across = place.constant(0), along = across;
  if (scales.across > 0 && scales.count > 1) {
    Int number = (place + scales.firstAcross) / scales.across,
        last = place.constant(scales.count - 1);
    across.value = arith::SelectOp::create(b, number.isBelow(last),
                                           number.value, last.value);
  }
  if (scales.terms > 0)
    along = (Int(b, term) + scales.firstTerm) / scales.terms;
  auto distance = [&](Int count, int64_t stride) -> Value {
    Value wide = arith::ExtUIOp::create(b, i64, count.value);
    Value bytes = arith::ConstantOp::create(b, b.getI64IntegerAttr(stride * 4));
    return arith::MulIOp::create(b, wide, bytes);
  };
  Value away = arith::AddIOp::create(b, distance(across, scales.acrossStride),
                                     distance(along, scales.termStride));
  return LLVM::LoadOp::create(b, f32, offset(b, scales.address, away), 4);
}

/// How many columns, counted from this warp's (group's) first, have one scale
/// for certain.
int64_t Emitter::getColumnsOfScale() {
  const ContractScales &scales = parts.rhsScales;
  if (scales.across == 0)
    return shape.getWarpColumns();
  int64_t columns = std::min(scales.across, scales.divisor);
  auto beginsWith = [&](int64_t step) {
    columns = std::min(columns, step & -step);
  };
  if (parts.tileColumns > shape.columns)
    beginsWith(shape.columns);
  if (shape.warpColumns > 1)
    beginsWith(shape.getWarpColumns());
  return columns;
}

/// The scales of each sum of the terms from `term` on: those of blocks of
/// terms, or those of all terms. Empty: there are none of these.
Emitter::Factors Emitter::loadFactors(ImplicitLocOpBuilder &b, Int term,
                                      bool ofBlocks) {
  auto isMeant = [&](const ContractScales &scales) {
    return scales.address && (scales.terms > 0) == ofBlocks;
  };
  bool ofRows = isMeant(parts.lhsScales), ofColumns = isMeant(parts.rhsScales);
  if (!ofRows && !ofColumns)
    return {};
  // A thread's sums are of few rows, and of columns that may share scales.
  llvm::DenseMap<int64_t, Value> rowScales, columnScales;
  int64_t shared = getColumnsOfScale(), blocks = 2 * shape.columnBlocks;
  Factors factors(blocks * shape.rowBlocks * 4);
  forSums(b, [&](ImplicitLocOpBuilder &b, int64_t at, Int row, Int column) {
    for (int64_t i = 0; i < 2; ++i) {
      if (ofRows) {
        Value &known = rowScales[at / 4 / blocks * 2 + at % 4 / 2];
        if (!known)
          known = loadScale(b, parts.lhsScales, row + firstRow, term.value);
        factors[at + i].row = known;
      }
      if (ofColumns) {
        int64_t first = at / 4 % blocks * 8;
        Value &known =
            columnScales[shared < 8 ? first + i : first / shared * shared];
        if (!known)
          known = loadScale(b, parts.rhsScales, column + firstColumn + i,
                            term.value);
        factors[at + i].column = known;
      }
    }
  });
  return factors;
}

/// What a sum is multiplied by, where it is: fewer registers hold the scales
/// than their products.
Value Emitter::multiply(ImplicitLocOpBuilder &b, const Factor &factor,
                        Products &known) {
  if (!factor.row || !factor.column)
    return factor.row ? factor.row : factor.column;
  Value &product = known[{factor.row, factor.column}];
  if (!product)
    product = arith::MulFOp::create(b, factor.row, factor.column);
  return product;
}

/// Adds sums of a stage's terms, each times its factor, to those of the stages
/// before.
void Emitter::addTerms(ImplicitLocOpBuilder &b, ArrayRef<Value> terms,
                       ArrayRef<Factor> factors, MutableArrayRef<Value> sums) {
  Products known;
  for (auto [i, term] : llvm::enumerate(terms)) {
    Value &sum = sums[i];
    if (factors.empty())
      sum = arith::AddFOp::create(b, sum, term);
    else
      sum = LLVM::FMAOp::create(b, term, multiply(b, factors[i], known), sum);
  }
}

/// Multiplies the sums of all terms by the scales of all terms, and adds what
/// memory holds.
void Emitter::finishSums(ImplicitLocOpBuilder &b, Sums &sums, Int rows,
                         Int columns) {
  if (!isScaled())
    return;
  Products known;
  Factors factors = loadFactors(b, rows.constant(0), /*ofBlocks=*/false);
  for (auto [sum, factor] : llvm::zip(sums, factors))
    sum = arith::MulFOp::create(b, sum, multiply(b, factor, known));
  if (parts.accumulate)
    combine(b, parts.acc, sums, rows, columns, /*replaces=*/false);
}

/// Two sums that are neighbors, as they are stored.
Value Emitter::narrow(ImplicitLocOpBuilder &b, ArrayRef<Value> sums,
                      int64_t at) {
  Value pair = vector::FromElementsOp::create(
      b, VectorType::get({2}, f32), ValueRange{sums[at], sums[at + 1]});
  Type element = parts.acc.element;
  if (element.isF32())
    return pair;
  return LLVM::FPTruncOp::create(b, VectorType::get({2}, element), pair);
}

/// Stores what exists of a pair.
void Emitter::storePair(ImplicitLocOpBuilder &b, Value pair, Int row,
                        Int column, Int rows, Int columns) {
  unsigned bytes = parts.acc.element.getIntOrFloatBitWidth() / 8;
  when(b, row.isBelow(rows), [&](ImplicitLocOpBuilder &in) {
    Int one(in, row.value), first(in, column.value);
    auto storeOne = [&](ImplicitLocOpBuilder &inner, int64_t i) {
      Int place(inner, row.value), next(inner, column.value);
      LLVM::StoreOp::create(inner, vector::ExtractOp::create(inner, pair, i),
                            addressOfSum(inner, parts.acc, place, next + i),
                            bytes);
    };
    Value alone = first.isBelow(columns), both = (first + 1).isBelow(columns);
    if (!parts.acc.paired) {
      when(in, alone, [&](ImplicitLocOpBuilder &inner) { storeOne(inner, 0); });
      when(in, both, [&](ImplicitLocOpBuilder &inner) { storeOne(inner, 1); });
      return;
    }
    auto branch = scf::IfOp::create(in, both, /*withElseRegion=*/true);
    ImplicitLocOpBuilder yes(loc, branch.thenYield()),
        no(loc, branch.elseYield());
    Int place(yes, row.value), next(yes, column.value);
    LLVM::StoreOp::create(yes, pair, addressOfSum(yes, parts.acc, place, next),
                          2 * bytes);
    when(no, alone, [&](ImplicitLocOpBuilder &inner) { storeOne(inner, 0); });
  });
}

/// Of four blocks of eight columns each of four lanes has two columns of
/// each: gives each lane one whole block, by exchanges between lanes at
/// distances 1 and 2.
SmallVector<Value> Emitter::turnBlocks(ImplicitLocOpBuilder &b,
                                       ArrayRef<Value> words) {
  auto isSet = [&](int64_t bit) {
    Value masked = arith::AndIOp::create(b, lane, number(b, bit));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, masked,
                                 number(b, 0));
  };
  auto exchange = [&](Value word, int64_t distance) {
    return emitText(b,
                    "shfl.sync.bfly.b32 $0, $1, " + std::to_string(distance) +
                        ", 31, -1;",
                    "=r,r", {word}, i32);
  };
  auto choose = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, condition, yes, no);
  };
  Value odd = isSet(1), high = isSet(2);
  SmallVector<Value> halves(4), result(4);
  for (int64_t i = 0; i < 4; i += 2) {
    Value got = exchange(choose(odd, words[i], words[i + 1]), 1);
    halves[i] = choose(odd, got, words[i]);
    halves[i + 1] = choose(odd, words[i + 1], got);
  }
  for (int64_t i = 0; i < 2; ++i) {
    Value got = exchange(choose(high, halves[i], halves[i + 2]), 2);
    result[i] = choose(high, got, halves[i]);
    result[i + 2] = choose(high, halves[i + 2], got);
  }
  return result;
}

/// The 16 bytes of a lane's block.
Value Emitter::turnToBlock(ImplicitLocOpBuilder &b, ArrayRef<Value> words) {
  return vector::FromElementsOp::create(b, VectorType::get({4}, i32),
                                        turnBlocks(b, words));
}

/// Stores four pairs of a row, of blocks that are neighbors: where all
/// columns exist, each lane 16 bytes of one block.
void Emitter::storeBlocks(ImplicitLocOpBuilder &b, ArrayRef<Value> pairs,
                          Int row, Int column, Int rows, Int columns) {
  Int quad = Int(b, lane) % 4, first = column - quad * 2;
  Value whole = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                      (first + 32).value, columns.value);
  auto branch = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  ImplicitLocOpBuilder yes(loc, branch.thenYield()),
      no(loc, branch.elseYield());
  SmallVector<Value> words;
  for (Value pair : pairs)
    words.push_back(LLVM::BitcastOp::create(yes, i32, pair));
  Value turned = turnToBlock(yes, words);
  when(yes, Int(yes, row.value).isBelow(rows), [&](ImplicitLocOpBuilder &in) {
    Int place(in, row.value), own = Int(in, quad.value) * 8;
    LLVM::StoreOp::create(
        in, turned,
        addressOfSum(in, parts.acc, place, own + Int(in, first.value)), 16);
  });
  for (auto [number, pair] : llvm::enumerate(pairs))
    storePair(no, pair, Int(no, row.value),
              Int(no, column.value) + 8 * int64_t(number), rows, columns);
}

/// Whether lanes can read and write 16 bytes of a block at a time.
bool Emitter::holdsBlocks(const ContractMemory &memory) {
  return memory.aligned && shape.columnBlocks % 2 == 0 &&
         memory.element.getIntOrFloatBitWidth() == 16;
}

/// Brings an addend to L2 while the product is made, where all columns exist.
void Emitter::prefetch(ImplicitLocOpBuilder &b, const ContractMemory &addend,
                       Int rows, Int columns) {
  constexpr int64_t kLineElements = 64;
  int64_t across = shape.columns / kLineElements;
  if (across == 0)
    return;
  Value whole = arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                      columns.value, number(b, shape.columns));
  when(b, whole, [&](ImplicitLocOpBuilder &in) {
    int64_t lines = shape.rows * across;
    for (int64_t first = 0; first < lines; first += threads) {
      Int line = Int(in, thread) + first;
      Int row = line / across;
      when(in, row.isBelow(Int(in, rows.value)),
           [&](ImplicitLocOpBuilder &inner) {
             Int place(inner, row.value),
                 column = Int(inner, line.value) % across * kLineElements;
             emitText(inner, "prefetch.global.L2 [$0];", "l",
                      {addressOfSum(inner, addend, place, column)});
           });
    }
  });
}

/// Stores the sums, whose addends are in them.
void Emitter::storeSums(ImplicitLocOpBuilder &b, ArrayRef<Value> sums, Int rows,
                        Int columns) {
  bool byBlocks = holdsBlocks(parts.acc);
  SmallVector<Value> pairs;
  forSums(b, [&](ImplicitLocOpBuilder &b, int64_t at, Int row, Int column) {
    Value pair = narrow(b, sums, at);
    if (!byBlocks)
      return storePair(b, pair, row, column, rows, columns);
    pairs.push_back(pair);
    if (pairs.size() < 4)
      return;
    storeBlocks(b, pairs, row, column - 24, rows, columns);
    pairs.clear();
  });
}

/// The sums by four blocks that are neighbors in a row, and where each four lie
/// behind the first four.
SmallVector<Emitter::FourBlocks> Emitter::getFourBlocks(ImplicitLocOpBuilder &b,
                                                        ArrayRef<Value> sums) {
  SmallVector<FourBlocks> all;
  int64_t across = 2 * shape.columnBlocks;
  forSums(b, [&](ImplicitLocOpBuilder &, int64_t at, Int row, Int column) {
    int64_t block = at / 4;
    if (all.empty() || all.back().sums.size() == 8)
      all.push_back({block / across * shape.getBlockRows() + at % 4 / 2 * 8,
                     block % across * 8,
                     {},
                     {}});
    all.back().sums.append({sums[at], sums[at + 1]});
  });
  return all;
}

/// The address of what is in the place of this lane's block of the first four.
Value Emitter::addressOfBlock(ImplicitLocOpBuilder &b,
                              const ContractMemory &memory) {
  std::optional<Value> address;
  forSums(b, [&](ImplicitLocOpBuilder &, int64_t, Int row, Int column) {
    if (!address)
      address = addressOfSum(b, memory, row, column + Int(b, lane) % 4 * 6);
  });
  return *address;
}

/// As far behind an address of `addressOfBlock` as four blocks are.
Value Emitter::behind(ImplicitLocOpBuilder &b, Value first,
                      const ContractMemory &memory, const FourBlocks &blocks) {
  int64_t elements = blocks.row * memory.stride + blocks.column;
  return offset(
      b, first,
      arith::ConstantOp::create(
          b, b.getI64IntegerAttr(
                 elements * (memory.element.getIntOrFloatBitWidth() / 8))));
}

/// The eight sums of this lane's block, of pairs of four blocks.
Emitter::Sums Emitter::turnSums(ImplicitLocOpBuilder &b, ArrayRef<Value> sums) {
  Sums own(8);
  for (int64_t odd = 0; odd < 2; ++odd) {
    SmallVector<Value> words;
    for (int64_t i = 0; i < 4; ++i)
      words.push_back(LLVM::BitcastOp::create(b, i32, sums[2 * i + odd]));
    for (auto [i, word] : llvm::enumerate(turnBlocks(b, words)))
      own[2 * i + odd] = LLVM::BitcastOp::create(b, f32, word);
  }
  return own;
}

/// Adds a lane's 16 bytes of an addend to the eight sums of its block.
void Emitter::addBlock(ImplicitLocOpBuilder &b, Type element, Value held,
                       Sums &own) {
  auto type = VectorType::get({2}, element);
  for (int64_t i = 0; i < 8; i += 2) {
    Value pair = LLVM::BitcastOp::create(
        b, type, vector::ExtractOp::create(b, held, i / 2));
    for (int64_t j = 0; j < 2; ++j)
      own[i + j] = arith::AddFOp::create(
          b, own[i + j], widen(b, vector::ExtractOp::create(b, pair, j)));
  }
}

/// Stores a product of which all exists, and adds addends before: some of these
/// are read ahead.
void Emitter::storeWhole(ImplicitLocOpBuilder &b, ArrayRef<Value> sums,
                         ArrayRef<ContractMemory> addends) {
  // What a thread holds of addends that it has read, in registers.
  constexpr size_t kHeld = 24;
  SmallVector<FourBlocks> all = getFourBlocks(b, sums);
  SmallVector<Value> firsts;
  for (const ContractMemory &memory : addends)
    firsts.push_back(addressOfBlock(b, memory));
  Value stored = addressOfBlock(b, parts.acc);
  auto load = [&](FourBlocks &blocks) {
    for (auto [memory, first] : llvm::zip_equal(addends, firsts))
      blocks.held.push_back(LLVM::LoadOp::create(
          b, VectorType::get({4}, i32), behind(b, first, memory, blocks), 16));
  };
  auto narrowAll = [&](ArrayRef<Value> own) {
    SmallVector<Value> words;
    for (int64_t at = 0; at < 8; at += 2)
      words.push_back(LLVM::BitcastOp::create(b, i32, narrow(b, own, at)));
    return words;
  };
  auto finish = [&](const FourBlocks &blocks) -> Value {
    // Narrow sums are turned faster.
    if (addends.empty())
      return turnToBlock(b, narrowAll(blocks.sums));
    Sums own = turnSums(b, blocks.sums);
    for (auto [addend, held] : llvm::zip_equal(addends, blocks.held))
      addBlock(b, addend.element, held, own);
    return vector::FromElementsOp::create(b, VectorType::get({4}, i32),
                                          narrowAll(own));
  };
  size_t ahead = addends.empty()
                     ? 0
                     : std::max<size_t>(1, kHeld / (4 * addends.size())) - 1;
  for (size_t i = 0; i < all.size() + ahead; ++i) {
    if (i < all.size())
      load(all[i]);
    if (i >= ahead)
      LLVM::StoreOp::create(b, finish(all[i - ahead]),
                            behind(b, stored, parts.acc, all[i - ahead]), 16);
  }
}

/// Adds a block of 16 by 16 elements at $8 to a lane's eight sums of it:
/// ldmatrix gives each lane the elements of its sums. In one text, since the
/// compiler else loads all blocks before it adds the first.
static std::string spellAddedBlock(Type element) {
  std::string text =
      "{ .reg .b32 w0, w1, w2, w3, v; .reg .b16 h0, h1; .reg .f32 x; "
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {w0, w1, w2, w3}, [$8]; ";
  for (int64_t i = 0; i < 8; ++i) {
    std::string word = "w" + std::to_string(i / 2),
                sum = "$" + std::to_string(i);
    if (element.isBF16())
      text += (i % 2 ? "and.b32 v, " + word + ", -65536; "
                     : "shl.b32 v, " + word + ", 16; ") +
              "mov.b32 x, v; ";
    else
      text += "mov.b32 {h0, h1}, " + word + "; cvt.f32.f16 x, h" +
              std::to_string(i % 2) + "; ";
    text += "add.rn.f32 " + sum + ", " + sum + ", x; ";
  }
  return text + "}";
}

/// Adds what a panel of an addend holds of the columns from `first` on.
void Emitter::addPanel(ImplicitLocOpBuilder &b, Int panel, Type element,
                       int64_t first, Sums &sums) {
  Int mine(b, lane), low = mine % 8;
  Int row = Int(b, warpRow) * shape.getWarpRows() +
            Int(b, thread) / 32 % 4 * 16 + mine / 8 % 2 * 8 + low;
  // A row's pieces are exchanged by its number.
  Int line = panel + (row * kRowBytes + ((mine / 16) ^ low) * 16);
  std::string text = spellAddedBlock(element);
  int64_t end = std::min<int64_t>(shape.columnBlocks, first / 16 + 4);
  for (int64_t n = first / 16; n < end; ++n) {
    Int place = line ^ line.constant(n % 4 * 32);
    for (int64_t m = 0; m < shape.rowBlocks; ++m) {
      auto own = MutableArrayRef<Value>(sums).slice(
          (m * shape.columnBlocks + n) * 8, 8);
      SmallVector<Value> operands = {
          (place + m * shape.getBlockRows() * kRowBytes).value};
      operands.append(own.begin(), own.end());
      Value record = emitText(b, text, tieOperands(8, "r"), operands,
                              getRecord(b, f32, 8));
      llvm::copy(split(b, record, 8), own.begin());
    }
  }
}

/// Adds the addends, whose tiles come in the stages behind those of the
/// operands.
void Emitter::addTiles(ImplicitLocOpBuilder &b, Sums &sums) {
  Stages stages(shape, parts.memory);
  int64_t held = shape.getPanelsOfStage(), bytes = shape.getPanelBytes(),
          all = shape.addends * shape.getAddendPanels();
  Int before(b, LLVM::LoadOp::create(b, i32, parts.counter)), place = before;
  forAddendPanels(shape, [&](int64_t panel, int64_t addend, int64_t column) {
    if (panel % held == 0) {
      // Unknown to the compiler, which else has all places in registers.
      place = Int(b, emitText(b, "mov.b32 $0, $1;", "=r,r",
                              {(before + panel / held).value}, i32));
      emitAwait(b, stages.getFull(b, place), stages.getTurn(place) % 2);
    }
    addPanel(b, Int(b, stages.getStage(b, place)) + panel % held * bytes,
             parts.addends[addend].element, column, sums);
    if ((panel + 1) % held != 0 && panel + 1 != all)
      return;
    emitText(b, "bar.warp.sync -1;", "", {});
    leaveStage(b, place);
  });
  LLVM::StoreOp::create(b, (before + shape.getAddendStages()).value,
                        parts.counter);
}

void Emitter::store(ImplicitLocOpBuilder &b, ArrayRef<Value> sums, Int rows,
                    Int columns) {
  if (parts.addends.empty())
    return storeSums(b, sums, rows, columns);
  Sums totals(sums);
  ArrayRef<ContractMemory> addends = parts.addends;
  if (shape.addends > 0) {
    addTiles(b, totals);
    addends = {};
  }
  auto storeAll = [&](ImplicitLocOpBuilder &b) {
    Int height(b, rows.value), width(b, columns.value);
    Sums added(totals);
    for (const ContractMemory &addend : addends)
      combine(b, addend, added, height, width, /*replaces=*/false);
    storeSums(b, added, height, width);
  };
  if (!holdsBlocks(parts.acc) ||
      !llvm::all_of(addends, [&](const ContractMemory &addend) {
        return holdsBlocks(addend);
      }))
    return storeAll(b);
  auto isWhole = [&](Int count, int64_t held) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sge, count.value,
                                 number(b, held));
  };
  Value whole = arith::AndIOp::create(
      b, isWhole(rows, shape.warpRows * shape.getWarpRows()),
      isWhole(columns, shape.warpColumns * shape.getWarpColumns()));
  auto branch = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  ImplicitLocOpBuilder yes(loc, branch.thenYield()),
      no(loc, branch.elseYield());
  storeWhole(yes, totals, addends);
  storeAll(no);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// Copies by all threads, which go on while they are made.
Emitter::Sums Emitter::multiplyByCopies(ImplicitLocOpBuilder &b, Int steps,
                                        Int rows, Int columns) {
  // Groups read a stage until they start on the next but one.
  int64_t ahead = shape.stages - (shape.byGroups ? 2 : 1);
  for (int64_t stage = 0; stage < ahead; ++stage)
    copyStage(b, steps.constant(stage), steps);
  Sums sums = begin(b, rows, columns);
  auto loop =
      scf::ForOp::create(b, number(b, 0), steps.value, number(b, 1), sums);
  {
    ImplicitLocOpBuilder in(b);
    in.setInsertionPointToStart(loop.getBody());
    emitText(in, "cp.async.wait_group " + std::to_string(ahead - 1) + ";", "",
             {});
    if (shape.byGroups)
      nvvm::emit(in, Ptx::FenceAsyncShared, {});
    NVVM::Barrier0Op::create(in);
    Int step(in, loop.getInductionVar());
    Sums carried(loop.getRegionIterArgs());
    if (shape.byGroups && !shape.hasBlockScales)
      multiplyByGroups(in, describe(in, getStage(in, step)), carried);
    copyStage(in, step + ahead, Int(in, steps.value));
    if (shape.hasBlockScales)
      addScaledStage(in, step, carried);
    else if (shape.byGroups)
      emitText(in, "wgmma.wait_group.sync.aligned 1;", "", {});
    else
      multiplyStage(in, getStage(in, step), carried);
    scf::YieldOp::create(in, carried);
  }
  Sums total(loop.getResults());
  if (shape.byGroups && !shape.hasBlockScales)
    waitForGroups(b, total);
  return total;
}

/// Multiplies a stage that threads have copied, and adds its sums, each times
/// its scales.
void Emitter::addScaledStage(ImplicitLocOpBuilder &b, Int step, Sums &sums) {
  Factors factors = loadFactors(b, step * kDepth, /*ofBlocks=*/true);
  if (shape.byGroups)
    return addStage(b, describe(b, getStage(b, step)), factors, sums);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Sums terms(sums.size(), zero);
  multiplyStage(b, getStage(b, step), terms);
  addTerms(b, terms, factors, sums);
}

/// The part of the product from one row and column on.
void Emitter::emitPart(ImplicitLocOpBuilder &b, Int fromRow, Int fromColumn) {
  firstRow = fromRow.value;
  firstColumn = fromColumn.value;
  // What is one part is no more than the tile.
  Int rows(b, parts.rows), columns(b, parts.columns);
  if (parts.tileRows > shape.rows)
    rows = fromRow.getRest(rows, shape.rows);
  if (parts.tileColumns > shape.columns)
    columns = fromColumn.getRest(columns, shape.columns);
  lhs = getOperand(b, true, fromRow, rows);
  rhs = getOperand(b, false, fromColumn, columns);
  int64_t depth = shape.getDepth();
  Int steps = (Int(b, parts.depth) + (depth - 1)) / depth;
  // What was in the stages has been read, also by who copies now; operands
  // may have been written.
  if (shape.byGroups && !shape.constantOperands)
    nvvm::emit(b, Ptx::FenceAsync, {});
  if (shape.byMaps && shape.constantOperands)
    announce(b, steps);
  NVVM::Barrier0Op::create(b);
  if (shape.byMaps && !shape.constantOperands)
    announce(b, steps);
  for (const ContractMemory &addend : parts.addends)
    if (shape.addends == 0 && holdsBlocks(addend))
      prefetch(b, addend, Int(b, rows.value), Int(b, columns.value));
  Sums total = shape.byMaps ? multiplyByMaps(b, steps, begin(b, rows, columns))
                            : multiplyByCopies(b, steps, rows, columns);
  finishSums(b, total, Int(b, rows.value), Int(b, columns.value));
  store(b, total, Int(b, rows.value), Int(b, columns.value));
}

void Emitter::emit(ImplicitLocOpBuilder &b) {
  bool tall = parts.tileRows > shape.rows,
       broad = parts.tileColumns > shape.columns;
  auto loop =
      [&](ImplicitLocOpBuilder &b, bool several, Value last, int64_t step,
          llvm::function_ref<void(ImplicitLocOpBuilder &, Value)> body) {
        if (!several)
          return body(b, number(b, 0));
        auto made = scf::ForOp::create(b, number(b, 0), last, number(b, step));
        ImplicitLocOpBuilder in(b);
        in.setInsertionPointToStart(made.getBody());
        body(in, made.getInductionVar());
      };
  loop(b, tall, parts.rows, shape.rows,
       [&](ImplicitLocOpBuilder &in, Value row) {
         loop(in, broad, parts.columns, shape.columns,
              [&](ImplicitLocOpBuilder &inner, Value column) {
                emitPart(inner, Int(inner, row), Int(inner, column));
              });
       });
  NVVM::Barrier0Op::create(b); // All may read the product.
}

void nvvm::emitContract(const ContractParts &parts, const ContractShape &shape,
                        int64_t threads, ImplicitLocOpBuilder &b) {
  Emitter(parts, shape, threads, b).emit(b);
}

//===----------------------------------------------------------------------===//
// Elements of f32
//===----------------------------------------------------------------------===//

/// Address of an element of a part.
static Value addressOf(const ContractMemory &memory, Value row, Value column,
                       bool transposed, ImplicitLocOpBuilder &b) {
  if (transposed)
    std::swap(row, column);
  Type i64 = b.getI64Type();
  Value stride =
      arith::ConstantOp::create(b, b.getI64IntegerAttr(memory.stride));
  Value before =
      arith::MulIOp::create(b, arith::ExtSIOp::create(b, i64, row), stride);
  Value place =
      arith::AddIOp::create(b, before, arith::ExtSIOp::create(b, i64, column));
  return LLVM::GEPOp::create(b, memory.address.getType(), memory.element,
                             memory.address, ValueRange{place});
}

/// One element of a product: its sum begins with what memory holds, or 0.
static void emitElement(const ContractParts &parts, bool transposeLhs,
                        bool transposeRhs, Value row, Value column,
                        ImplicitLocOpBuilder &b) {
  auto number = [&](int32_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  Type f32 = b.getF32Type(), element = parts.acc.element;
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  Value place = addressOf(parts.acc, row, column, false, b);
  Value begin = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  if (parts.accumulate) {
    begin = LLVM::LoadOp::create(b, element, place, bytes);
    if (!element.isF32())
      begin = LLVM::FPExtOp::create(b, f32, begin);
  }
  auto loop = scf::ForOp::create(b, number(0), parts.depth, number(1), begin);
  ImplicitLocOpBuilder in(b);
  in.setInsertionPointToStart(loop.getBody());
  Value k = loop.getInductionVar();
  Value left = LLVM::LoadOp::create(
      in, f32, addressOf(parts.lhs, row, k, transposeLhs, in), 4);
  Value right = LLVM::LoadOp::create(
      in, f32, addressOf(parts.rhs, k, column, transposeRhs, in), 4);
  Value term = arith::MulFOp::create(in, left, right);
  Value sum = arith::AddFOp::create(in, loop.getRegionIterArg(0), term);
  scf::YieldOp::create(in, sum);
  Value total = loop.getResult(0);
  for (const ContractMemory &addend : parts.addends) {
    Value held = LLVM::LoadOp::create(
        b, addend.element, addressOf(addend, row, column, false, b),
        addend.element.getIntOrFloatBitWidth() / 8);
    if (!addend.element.isF32())
      held = LLVM::FPExtOp::create(b, f32, held);
    total = arith::AddFOp::create(b, total, held);
  }
  Value nan = arith::ConstantOp::create(
      b, b.getFloatAttr(f32, APFloat::getQNaN(APFloat::IEEEsingle())));
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, total, total);
  total = arith::SelectOp::create(b, isNaN, nan, total);
  if (!element.isF32())
    total = LLVM::FPTruncOp::create(b, element, total);
  LLVM::StoreOp::create(b, total, place, bytes);
}

void nvvm::emitPlainContract(const ContractParts &parts, bool transposeLhs,
                             bool transposeRhs, int64_t threads,
                             ImplicitLocOpBuilder &b) {
  auto number = [&](int64_t value) {
    return arith::ConstantOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  NVVM::Barrier0Op::create(b);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  auto loop = scf::ForOp::create(
      b, thread, number(parts.tileRows * parts.tileColumns), number(threads));
  ImplicitLocOpBuilder in(b);
  in.setInsertionPointToStart(loop.getBody());
  Int place(in, loop.getInductionVar());
  Int row = place / parts.tileColumns, column = place % parts.tileColumns;
  Value exists = arith::AndIOp::create(in, row.isBelow(Int(in, parts.rows)),
                                       column.isBelow(Int(in, parts.columns)));
  auto only = scf::IfOp::create(in, exists, /*withElseRegion=*/false);
  ImplicitLocOpBuilder inner(b.getLoc(), only.thenYield());
  emitElement(parts, transposeLhs, transposeRhs, row.value, column.value,
              inner);
  NVVM::Barrier0Op::create(b);
}
