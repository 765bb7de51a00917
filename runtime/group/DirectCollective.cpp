//===- DirectCollective.cpp - Calls that write to windows -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the CPU, large copies cross memory once if the outputs of all ranks are in
// symmetric memory. Ranks ask each other, since each knows only its own.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CollectivesImpl.h"

#include "runtime/support/GroupError.h"

using namespace commsir;
using namespace commsir::group;

/// CPU: bytes of an output from which ranks ask each other whether they can
/// write to it: that costs a small collective.
static constexpr int64_t kDirectBytes = int64_t(4) << 20;
/// Uses of a size that gets no kernel which writes to windows.
static constexpr unsigned kNever = ~0u;

static std::string directKey(const Shape &shape) {
  return "direct " + shape.key() + " " + std::to_string(shape.elements);
}

/// Whether the call is one that crosses memory once where outputs are windows:
/// a large copy, of a size that is used often enough to get a kernel.
bool Collectives::Impl::mayBeDirect(const Shape &shape) {
  bool copies = shape.op == "all_gather" || shape.op == "all_to_all";
  int64_t bytes =
      shape.elements * shape.outputParts * int64_t(shape.elementBytes);
  if (group.onGpu() || !copies || !shape.isChosen || shape.ranks < 2 ||
      bytes < kDirectBytes)
    return false;
  unsigned &uses = usesOf(shape, directKey(shape));
  if (uses >= kUsesOfOwn)
    return uses != kNever;
  ++uses;
  return false;
}

/// Whether all ranks have their outputs at one place in symmetric memory, and
/// nothing in them that is to be read.
llvm::Expected<bool> Collectives::Impl::agreeOnWindow(Collectives &collectives,
                                                      const Shape &shape) {
  size_t part = shape.elements * shape.elementBytes;
  size_t bytes = part * shape.outputParts;
  char *gathered = shape.output + group.options().rank * part;
  bool isApart = shape.input + part * shape.inputParts <= shape.output ||
                 shape.output + bytes <= shape.input ||
                 (shape.op == "all_gather" && shape.input == gathered);
  isApart &= shape.input && shape.output;
  uint64_t place = isApart ? group.symmetricPlace(shape.output, bytes) : 0;
  auto own = static_cast<int64_t>(place);
  // The most of both is their own only when all are equal.
  // As many as have a kernel: see sizeClass.
  int64_t said[16] = {own, ~own}, heard[16];
  CollectiveCall call;
  call.op = "all_reduce";
  call.reduction = "max";
  call.elementType = "i64";
  call.typeName = "places, before " + shape.text;
  call.input = {said, std::size(said)};
  call.output = {heard, std::size(heard)};
  StagingCounts before = counted;
  if (llvm::Error error = collectives.run(call, nullptr))
    return std::move(error);
  counted = before;
  return heard[0] != 0 && heard[0] == ~heard[1];
}

/// False: there is no memory for such a kernel, on any rank.
llvm::Expected<bool> Collectives::Impl::runDirectly(const Shape &shape) {
  auto kept = find(
      cacheOf({}), directKey(shape), {}, shape.text, nullptr,
      [&] { return shape.write(shape.elements, /*direct=*/true); },
      /*makesRoom=*/false);
  if (kept) {
    if (llvm::Error error = launch(shape, shape.elements, *(*kept)->kernel,
                                   shape.input, shape.output, nullptr))
      return std::move(error);
    return true;
  }
  llvm::Error error = kept.takeError();
  if (!isLimit(error))
    return std::move(error);
  llvm::consumeError(std::move(error));
  usesOf(shape, directKey(shape)) = kNever;
  return false;
}
