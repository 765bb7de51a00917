//===- FusedCollective.cpp - Collectives with arithmetic ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives with arithmetic on rows, in one launch or in pieces of rows.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CollectivesImpl.h"

#include "runtime/support/Element.h"
#include "runtime/support/GroupError.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

using namespace commsir;
using namespace commsir::group;

static Key keyOf(const FusedCall &call) {
  Key key;
  key << call.op << call.reduction << call.elementType << call.rows
      << call.columns << call.input.elements << call.produce << call.consume;
  for (const auto *operands : {&call.sources, &call.arguments, &call.outputs}) {
    key << static_cast<int64_t>(operands->size());
    for (const FusedCall::Operand &one : *operands)
      key << one.array.elements << one.elementType
          << static_cast<int64_t>(one.perRow) << one.columns;
  }
  return key;
}

/// Whether a kernel for any number of rows carries the call out.
bool Collectives::Impl::takesExtent(const FusedCall &call) const {
  return group.onGpu() && group.options().ranks > 1 &&
         call.op == "all_reduce" && call.rows > 0;
}

/// Rows of the kernel that takes so many.
static int64_t capacityOf(int64_t rows) {
  return int64_t(llvm::PowerOf2Ceil(std::max<int64_t>(rows, 1)));
}

/// The same call with another number of rows.
static FusedCall withRows(const FusedCall &call, int64_t rows) {
  FusedCall other = call;
  other.rows = rows;
  other.input.elements = rows * call.columns;
  for (auto *operands : {&other.sources, &other.arguments, &other.outputs})
    for (FusedCall::Operand &one : *operands)
      if (one.perRow)
        one.array.elements = rows * one.columns;
  return other;
}

llvm::Expected<FusedPlan *> Collectives::Impl::planOf(const FusedCall &call,
                                                      void *stream) {
  Key key = keyOf(call);
  auto known = fused.find(key.str());
  if (known != fused.end() && isCurrent(known->second)) {
    known->second.cache->touch(*known->second.kept);
    return &known->second;
  }
  bool isSized = takesExtent(call);
  auto request = writeFused(call, group, isSized ? capacityOf(call.rows) : 0);
  if (!request)
    return request.takeError();
  FusedPlan plan;
  if (isSized)
    plan.extent = call.rows * call.columns;
  plan.digest = llvm::xxh3_64bits(request->source);
  plan.text =
      llvm::formatv("{0} {1} of {2}x{3} {4} with arithmetic", call.op,
                    call.reduction, call.rows, call.columns, call.elementType);
  KernelCache &cache = cacheOf({});
  group.announce(plan.digest, plan.text);
  auto kept = find(cache, request->source, {}, plan.text, stream,
                   [&] { return *request; });
  group.announce(0, "");
  if (!kept)
    return note(kept.takeError());
  keep(plan, cache, **kept);
  plan.widths.push_back(*elementBytesOf(call.elementType));
  for (const auto *operands : {&call.sources, &call.arguments, &call.outputs})
    for (const FusedCall::Operand &one : *operands)
      plan.widths.push_back(*elementBytesOf(one.elementType));
  if (fused.size() >= kPlans) {
    fused.clear();
    ++fusedGeneration;
  }
  FusedPlan &made = fused[key.str()];
  made = std::move(plan);
  return &made;
}

std::string Collectives::Impl::pieceKeyOf(const FusedCall &call) const {
  bool isSized = takesExtent(call);
  return (isSized ? "any " : "") +
         keyOf(isSized ? withRows(call, 1) : call).str().str();
}

/// The least number of rows behind which every array is aligned.
int64_t Collectives::Impl::alignedRows(const FusedCall &call) const {
  auto isAlignedAt = [&](int64_t rows) {
    auto fits = [&](int64_t columns, llvm::StringRef type) {
      return rows * columns * *elementBytesOf(type) % alignment == 0;
    };
    auto fitsAll = [&](llvm::ArrayRef<FusedCall::Operand> operands) {
      return llvm::all_of(operands, [&](const FusedCall::Operand &one) {
        return !one.perRow || fits(one.columns, one.elementType);
      });
    };
    return fits(call.columns, call.elementType) && fitsAll(call.sources) &&
           fitsAll(call.arguments) && fitsAll(call.outputs);
  };
  int64_t step = 1;
  while (!isAlignedAt(step)) // Ends at `alignment`.
    step *= 2;
  return step;
}

/// Rows of about half of a call, at which every array is aligned; 0: it cannot
/// be cut. Rows know nothing of each other, and in an all-reduce each array has
/// its rows in one order.
int64_t Collectives::Impl::cutRows(const FusedCall &call) const {
  if (call.op != "all_reduce")
    return 0;
  // Of those for any number of rows, the largest kernel that may fit.
  int64_t half = takesExtent(call) ? capacityOf(call.rows) / 2
                                   : llvm::divideCeil(call.rows, 2);
  int64_t piece = int64_t(llvm::alignTo(half, alignedRows(call)));
  return piece < call.rows ? piece : 0;
}

/// The most rows of a piece for which a kernel of any number of rows has no
/// more than kMostSizedReduce bytes; 0: it has no more for the whole call.
int64_t Collectives::Impl::mostRows(const FusedCall &call) const {
  int64_t width = elementBytesOf(call.elementType).value_or(1);
  // The capacity is less than twice as much as the call.
  bool mayBeLarge = call.input.elements > kMostSizedReduce / width / 2;
  if (!takesExtent(call) || !mayBeLarge)
    return 0;
  if (llvm::Error error = writeFused(call, group).takeError()) {
    llvm::consumeError(std::move(error)); // `run` says so.
    return 0;
  }
  auto most = std::max<uint64_t>(kMostSizedReduce / (call.columns * width), 1);
  return capacityOf(call.rows) > int64_t(most)
             ? std::max(int64_t(llvm::bit_floor(most)), alignedRows(call))
             : 0;
}

/// Rows of the pieces that a call goes in; 0: it goes in one. Pieces of a large
/// call are about equal: each takes about its share of the time of the whole.
int64_t Collectives::Impl::pieceOf(const FusedCall &call) const {
  int64_t piece =
      fusedPieces.empty() ? 0 : fusedPieces.lookup(pieceKeyOf(call));
  if (int64_t most = mostRows(call)) {
    most = piece ? std::min(piece, most) : most;
    int64_t count = llvm::divideCeil(call.rows, most);
    piece = int64_t(
        llvm::alignTo(llvm::divideCeil(call.rows, count), alignedRows(call)));
  }
  return piece < call.rows ? piece : 0;
}

llvm::Error Collectives::Impl::runRows(Collectives &collectives,
                                       const FusedCall &call, int64_t piece,
                                       void *stream) {
  StagingCounts before = counted;
  for (int64_t first = 0; first < call.rows; first += piece) {
    FusedCall part = call;
    part.rows = std::min(piece, call.rows - first);
    auto cut = [&](Array &array, int64_t columns, llvm::StringRef type) {
      auto *data = static_cast<char *>(array.data);
      array.data = data + first * columns * *elementBytesOf(type);
      array.elements = part.rows * columns;
    };
    cut(part.input, part.columns, part.elementType);
    for (auto *operands : {&part.sources, &part.arguments, &part.outputs})
      for (FusedCall::Operand &one : *operands)
        if (one.perRow)
          cut(one.array, one.columns, one.elementType);
    if (llvm::Error error = collectives.run(part, stream))
      return error;
  }
  counted = before;
  ++counted.inPlace;
  return llvm::Error::success();
}

/// As runRows, for a prepared call, each piece of which is prepared.
llvm::Error Collectives::Impl::launchRows(Collectives &collectives,
                                          PreparedFused &prepared,
                                          void *stream) {
  const FusedCall &call = prepared.call;
  const int64_t piece = prepared.pieceRows;
  StagingCounts before = counted;
  for (int64_t first = 0; first < call.rows; first += piece) {
    int64_t rows = std::min(piece, call.rows - first);
    auto &part = prepared.pieces[rows == piece ? 0 : 1];
    if (!part || part->call.rows != rows)
      part = std::make_unique<PreparedFused>(withRows(call, rows));
    llvm::SmallVector<void *, 8> arrays;
    auto add = [&](const Array &array, int64_t columns, llvm::StringRef type) {
      arrays.push_back(static_cast<char *>(array.data) +
                       first * columns * *elementBytesOf(type));
    };
    add(call.input, call.columns, call.elementType);
    for (const auto *operands : {&call.sources, &call.arguments, &call.outputs})
      for (const FusedCall::Operand &one : *operands)
        add(one.array, one.perRow ? one.columns : 0, one.elementType);
    if (llvm::Error error = collectives.launch(*part, arrays, stream))
      return error;
  }
  counted = before;
  ++counted.inPlace;
  return llvm::Error::success();
}

llvm::Error Collectives::Impl::launchFused(FusedPlan &plan,
                                           const FusedCall &call,
                                           void *stream) {
  llvm::SmallVector<Argument, 8> arguments;
  auto add = [&](const Array &array) {
    size_t width = plan.widths[arguments.size()];
    arguments.push_back({array.data, size_t(array.elements) * width});
  };
  add(call.input);
  for (const auto *operands : {&call.sources, &call.arguments, &call.outputs})
    for (const FusedCall::Operand &one : *operands)
      add(one.array);
  bool fits = llvm::all_of(
      arguments, [&](const Argument &one) { return isAligned(one.data); });
  ++(fits ? counted.inPlace : counted.staged);
  group.announce(plan.digest, plan.text);
  llvm::Error error =
      fits ? group.launch(*plan.kept->kernel, arguments, stream, plan.extent)
           : launchElsewhere(plan, call, arguments, stream);
  group.announce(0, "");
  return note(std::move(error));
}

/// Arrays that no kernel takes where they lie go through scratch memory. Ranks
/// need not agree on which.
llvm::Error
Collectives::Impl::launchElsewhere(FusedPlan &plan, const FusedCall &call,
                                   llvm::MutableArrayRef<Argument> arguments,
                                   void *stream) {
  const size_t inputs = arguments.size() - call.outputs.size();
  size_t size = 0;
  for (const Argument &one : arguments)
    if (!isAligned(one.data))
      size += llvm::alignTo(one.bytes, alignment);
  auto scratch = take(Scratch::Operands, size, group.captureOf(stream));
  if (!scratch)
    return scratch.takeError();
  char *free = *scratch;
  auto copy = [&](void *to, const void *from, size_t bytes) {
    return group.copy(to, bytes, from, bytes, bytes, 1, stream);
  };
  llvm::SmallVector<std::pair<Argument, void *>, 4> results;
  for (auto [number, one] : llvm::enumerate(arguments)) {
    if (isAligned(one.data))
      continue;
    if (number >= inputs)
      results.emplace_back(one, free);
    else if (llvm::Error error = copy(free, one.data, one.bytes))
      return error;
    one.data = free;
    free += llvm::alignTo(one.bytes, alignment);
  }
  if (llvm::Error error =
          group.launch(*plan.kept->kernel, arguments, stream, plan.extent))
    return error;
  for (auto &[place, made] : results)
    if (llvm::Error error = copy(place.data, made, place.bytes))
      return error;
  return llvm::Error::success();
}

llvm::Error Collectives::run(const FusedCall &call, void *stream) {
  if (llvm::Error error = impl->begin())
    return error;
  if (int64_t piece = impl->pieceOf(call))
    return impl->runRows(*this, call, piece, stream);
  auto plan = impl->planOf(call, stream);
  if (!plan) {
    llvm::Error error = plan.takeError();
    // All ranks are told, and cut alike.
    int64_t piece = isLimit(error) ? impl->cutRows(call) : 0;
    if (!piece)
      return error;
    llvm::consumeError(std::move(error));
    if (impl->fusedPieces.size() >= kPlans)
      impl->fusedPieces.clear();
    impl->fusedPieces[impl->pieceKeyOf(call)] = piece;
    ++impl->age; // Calls that had plans may go in pieces now.
    return impl->runRows(*this, call, piece, stream);
  }
  return impl->launchFused(**plan, call, stream);
}

PreparedFused::PreparedFused(const FusedCall &call)
    : produce(call.produce), consume(call.consume), call(call) {
  this->call.produce = produce;
  this->call.consume = consume;
}

/// Whether a launch comes to the plan of the last one.
bool Collectives::Impl::mayRepeat(const PreparedFused &prepared) const {
  return prepared.generation == fusedGeneration && isCurrent(*prepared.plan) &&
         !mayNeedRecovery() &&
         (!group.onGpu() || tune::getTablesDigest() == tables);
}

llvm::Error Collectives::launch(PreparedFused &prepared,
                                llvm::ArrayRef<void *> arrays, void *stream) {
  FusedCall &call = prepared.call;
  const auto *next = arrays.begin();
  call.input.data = *next++;
  for (auto *operands : {&call.sources, &call.arguments, &call.outputs})
    for (FusedCall::Operand &one : *operands)
      one.array.data = *next++;
  if (impl->mayRepeat(prepared)) {
    prepared.plan->cache->touch(*prepared.plan->kept);
    return impl->launchFused(*prepared.plan, call, stream);
  }
  if (prepared.piecesAge != impl->age) {
    prepared.piecesAge = impl->age;
    prepared.pieceRows = impl->pieceOf(call);
  }
  if (prepared.pieceRows)
    return impl->launchRows(*this, prepared, stream);
  if (llvm::Error error = run(call, stream))
    return error;
  auto known = impl->fused.find(keyOf(call).str());
  if (known != impl->fused.end()) {
    prepared.plan = &known->second;
    prepared.generation = impl->fusedGeneration;
  }
  return llvm::Error::success();
}

llvm::Error Collectives::check(const FusedCall &call) const {
  return writeFused(call, impl->group).takeError();
}
