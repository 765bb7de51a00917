//===- Pauses.cpp - Kernels that stop on the way --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/processes/Pauses.h"

#include "lowering/Passes.h"
#include "lowering/Register.h"
#include "runtime/jit/Prepare.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::comms;
using namespace commsir;
using namespace commsir::processes;

namespace {

/// A round of the loop: last = (last ^ last >> kShift) * kFactor.
constexpr int kShift = 13;
constexpr int64_t kFactor = 0x2545F4914F6CDD1D;

/// Where one kernel's pauses are counted and kept.
struct Counters {
  Value turns, done, base;
};

/// A loop that no compiler shortens: what a round computes hangs on the last.
void insertPause(Operation *before, const Counters &counters, int64_t place) {
  ImplicitLocOpBuilder b(before->getLoc(), before);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value at = arith::AddIOp::create(b, counters.base, constant(place));
  Value turns = memref::LoadOp::create(b, counters.turns, at);
  Value end = arith::IndexCastOp::create(b, b.getIndexType(), turns);
  Value shift = arith::ConstantIntOp::create(b, kShift, 64);
  Value factor = arith::ConstantIntOp::create(b, kFactor, 64);
  auto loop = scf::ForOp::create(
      b, constant(0), end, constant(1), ValueRange{turns},
      [&](OpBuilder &body, Location loc, Value, ValueRange carried) {
        Value last = carried.front();
        Value high = arith::ShRUIOp::create(body, loc, last, shift);
        Value mixed = arith::XOrIOp::create(body, loc, last, high);
        Value next = arith::MulIOp::create(body, loc, mixed, factor);
        scf::YieldOp::create(body, loc, next);
      });
  memref::StoreOp::create(b, loop.getResult(0), counters.done, at);
}

/// Returns the number of places.
int64_t insertPauses(KernelOp kernel) {
  SmallVector<Operation *> late;
  kernel->walk([&](Operation *op) {
    if (isa<SendOp, RecvOp, ChannelBarrierOp, BarrierOp, ReturnOp>(op))
      late.push_back(op);
  });
  auto places = int64_t(late.size());
  OpBuilder b(kernel.getContext());
  auto type =
      MemRefType::get({places * int64_t(*kernel.getBlocks())}, b.getI64Type());
  Counters counters;
  for (auto [value, name] : {std::pair(&counters.turns, "turns"),
                             std::pair(&counters.done, "done")}) {
    auto attributes = b.getDictionaryAttr(b.getNamedAttr(
        KernelOp::getArgumentNameAttrName(), b.getStringAttr(name)));
    unsigned index = kernel.getNumArguments();
    if (failed(kernel.insertArgument(index, type, attributes, kernel.getLoc())))
      return 0;
    *value = kernel.getArgument(index);
  }
  b.setInsertionPointToStart(&kernel.getBody().front());
  Location loc = kernel.getLoc();
  Value block = BlockIdOp::create(b, loc);
  Value size = arith::ConstantIndexOp::create(b, loc, places);
  counters.base = arith::MulIOp::create(b, loc, block, size);
  for (auto [place, op] : llvm::enumerate(late))
    insertPause(op, counters, int64_t(place));
  return places;
}

} // namespace

int64_t processes::spin(int64_t turns) {
  auto last = uint64_t(turns);
  for (int64_t i = 0; i < turns; ++i)
    last = (last ^ last >> kShift) * uint64_t(kFactor);
  return int64_t(last);
}

std::vector<int64_t> processes::findReached(llvm::ArrayRef<int64_t> done) {
  std::vector<int64_t> reached;
  for (auto [at, value] : llvm::enumerate(done))
    if (value != kUntouched)
      reached.push_back(int64_t(at));
  return reached;
}

llvm::Expected<Paused>
processes::insertPauses(const group::KernelRequest &request, int64_t ranks) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto module = parseSourceString<ModuleOp>(request.source, &context);
  if (!module)
    return llvm::createStringError("the kernel could not be parsed");
  auto kernel =
      jit::prepareKernel(*module, request.name, ranks, request.blocks);
  if (!kernel)
    return kernel.takeError();
  ExpandCollectivesOptions expand;
  expand.ranks = ranks;
  expand.blocks = request.blocks;
  expand.algorithm = request.algorithm;
  expand.protocol = request.protocol;
  expand.threads = request.threads;
  if (auto error = jit::runPipeline(*module, [&](OpPassManager &manager) {
        manager.addNestedPass<KernelOp>(createExpandCollectives(expand));
      }))
    return std::move(error);
  Paused paused;
  paused.request = request;
  paused.places = ::insertPauses(*kernel);
  if (!paused.places || failed(verify(*module)))
    return llvm::createStringError("pauses do not fit into the kernel");
  paused.request.source.clear();
  llvm::raw_string_ostream(paused.request.source) << *module;
  return paused;
}
