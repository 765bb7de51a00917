//===- VaryingCollective.cpp - All-to-all of different sizes --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks exchange the sizes before the data: all_to_all_v.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CollectivesImpl.h"

#include "runtime/support/Element.h"
#include "runtime/support/GroupError.h"

#include "llvm/Support/MathExtras.h"

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

/// Different sizes for each pair of ranks: ranks tell each other the sizes, and
/// then exchange parts of the largest. Each hears what it is sent, and refuses
/// what it did not expect after all have what is theirs.
llvm::Error Collectives::Impl::runVarying(Collectives &collectives,
                                          const CollectiveCall &call,
                                          void *stream) {
  int64_t ranks = group.options().ranks;
  auto refuse = [&](Kind kind, const llvm::Twine &why) {
    return makeError(kind, "all_to_all_v: " + why);
  };
  auto fits = [&](const std::vector<int64_t> &counts, const Array &array) {
    int64_t total = 0;
    for (int64_t count : counts)
      if (count < 0 || __builtin_add_overflow(total, count, &total))
        return false;
    return static_cast<int64_t>(counts.size()) == ranks &&
           total <= array.elements && (array.data || !total);
  };
  if (!fits(call.sendCounts, call.input) || !fits(call.recvCounts, call.output))
    return refuse(Kind::Usage,
                  "there must be one count per rank, none of them negative, "
                  "and together they must fit the arrays");
  if (group.captureOf(stream))
    return refuse(Kind::Usage,
                  "the ranks' hosts exchange the sizes, so that it cannot be "
                  "captured in a graph: exchange parts of one size by "
                  "all_to_all, or leave it out of the graph");
  std::vector<int64_t> heard(ranks);
  auto largest = exchangeSizes(collectives, call.sendCounts, heard, stream);
  if (!largest)
    return largest.takeError();
  CollectiveCall exchange;
  exchange.op = "all_to_all";
  exchange.elementType = call.elementType;
  exchange.typeName = call.typeName;
  // On a GPU in one launch, of a size that has a kernel.
  exchange.partElements =
      group.onGpu() && *largest ? sizeClass(*largest) : *largest;
  size_t width = *elementBytesOf(call.elementType);
  auto cut = [&](const Array &array, llvm::ArrayRef<int64_t> counts,
                 std::vector<Array> &parts) {
    auto *at = static_cast<char *>(array.data);
    for (int64_t count : counts) {
      parts.push_back({at, count});
      at += count * width;
    }
  };
  cut(call.input, call.sendCounts, exchange.inputParts);
  cut(call.output, call.recvCounts, exchange.outputParts);
  // What is not as expected is not written.
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (heard[rank] != call.recvCounts[rank])
      exchange.outputParts[rank].elements = 0;
  if (*largest)
    if (llvm::Error error = collectives.run(exchange, stream))
      return error;
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (heard[rank] != call.recvCounts[rank])
      return refuse(Kind::Disagree,
                    "rank " + llvm::Twine(rank) + " sends " +
                        llvm::Twine(heard[rank]) + " elements to rank " +
                        llvm::Twine(group.options().rank) + ", which expects " +
                        llvm::Twine(call.recvCounts[rank]));
  return llvm::Error::success();
}

/// Tells each rank what it is sent; returns the most that any is.
llvm::Expected<int64_t> Collectives::Impl::exchangeSizes(
    Collectives &collectives, llvm::ArrayRef<int64_t> sizes,
    llvm::MutableArrayRef<int64_t> heard, void *stream) {
  size_t bytes = sizes.size() * sizeof(int64_t);
  size_t stride = llvm::alignTo(bytes, std::max<size_t>(alignment, 64));
  auto memory = take(Scratch::Sizes, 4 * stride, 0);
  if (!memory)
    return memory.takeError();
  auto place = [&](int index) { return *memory + index * stride; };
  int64_t own = *llvm::max_element(sizes), largest = 0;
  auto copy = [&](void *to, const void *from, size_t count) {
    return group.copy(to, count, from, count, count, 1, stream);
  };
  auto count = static_cast<int64_t>(sizes.size());
  CollectiveCall each;
  each.op = "all_to_all";
  each.elementType = "i64";
  each.typeName = "sizes";
  each.input = {place(0), count};
  each.output = {place(1), count};
  CollectiveCall most;
  most.op = "all_reduce";
  most.reduction = "max";
  most.elementType = "i64";
  most.typeName = "sizes";
  most.input = {place(2), 1};
  most.output = {place(3), 1};
  StagingCounts before = counted;
  llvm::Error error = copy(place(0), sizes.data(), bytes);
  if (!error)
    error = copy(place(2), &own, sizeof own);
  if (!error)
    error = collectives.run(each, stream);
  if (!error)
    error = collectives.run(most, stream);
  if (!error)
    error = copy(heard.data(), place(1), bytes);
  if (!error)
    error = copy(&largest, place(3), sizeof largest);
  if (!error)
    error = group.finish(stream);
  counted = before;
  if (error)
    return std::move(error);
  return largest;
}
