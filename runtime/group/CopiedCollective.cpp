//===- CopiedCollective.cpp - Collectives by copy engines -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CopiedCollective.h"

#include "runtime/support/GroupError.h"

using namespace commsir;
using namespace commsir::group;

/// Bytes of inputs that are in symmetric memory at once: little, for what is
/// not large. Graphs keep what they were captured with, so that there are two
/// sizes.
static constexpr size_t kLittle = size_t(16) << 20, kMuch = size_t(64) << 20;

/// Bytes of a part from which copies that are made in place are as quick as a
/// kernel.
static constexpr size_t kLeastBytes = size_t(16) << 20;

static bool gathers(const Shape &shape) { return shape.op == "all_gather"; }

/// Bytes of all that a rank sends to others.
static size_t inputBytes(const Shape &shape) {
  return shape.elements * shape.inputParts * shape.elementBytes;
}

bool CopiedCollective::fits(const Shape &shape) {
  return shape.onGpu && shape.ranks > 1 && shape.algorithm.empty() &&
         shape.protocol.empty() &&
         (gathers(shape) || shape.op == "all_to_all") &&
         shape.members.empty() && !shape.isInParts;
}

bool CopiedCollective::isAsQuick(const Shape &shape, int64_t rank) {
  size_t bytes = shape.elements * shape.elementBytes;
  return gathers(shape) && bytes >= kLeastBytes &&
         shape.input == shape.output + rank * bytes;
}

llvm::Expected<bool> CopiedCollective::reserve(const Shape &shape,
                                               bool isCapturing) {
  size_t wanted = inputBytes(shape) <= kLittle ? kLittle : kMuch;
  if (wanted <= size)
    return true;
  if (isCapturing)
    return false;
  // The one before may be in graphs.
  auto made = group.allocate(wanted, "copies of inputs of collectives");
  if (!made)
    return made.takeError();
  window = static_cast<char *>(*made);
  size = wanted;
  return true;
}

llvm::Error CopiedCollective::run(const Shape &shape, void *stream, Meet meet) {
  size_t width = shape.elementBytes, whole = shape.elements * width;
  auto most = int64_t(size / (shape.inputParts * width));
  for (int64_t first = 0; first < shape.elements; first += most) {
    size_t bytes = std::min(most, shape.elements - first) * width;
    if (auto error = group.copy(window, bytes, shape.input + first * width,
                                whole, bytes, shape.inputParts, stream))
      return error;
    if (auto error = meet(0))
      return error;
    if (auto error = fetch(shape, first, bytes, stream))
      return error;
    if (auto error = meet(1))
      return error;
  }
  return llvm::Error::success();
}

/// What this rank gets of every rank's piece. At no time do two ranks read from
/// the same.
llvm::Error CopiedCollective::fetch(const Shape &shape, int64_t first,
                                    size_t bytes, void *stream) {
  int64_t rank = group.options().rank;
  size_t whole = shape.elements * shape.elementBytes;
  size_t place = gathers(shape) ? 0 : rank * bytes;
  for (int64_t step = 0; step < shape.ranks; ++step) {
    int64_t source = (rank + step) % shape.ranks;
    char *to = shape.output + source * whole + first * shape.elementBytes;
    const char *from = shape.input + first * shape.elementBytes;
    // A rank's own part is in its place already where that is the input.
    if (!step && gathers(shape) && to == from)
      continue;
    auto *base =
        step ? static_cast<char *>(group.peerAddress(window, source)) : window;
    if (!base)
      return makeError(GroupError::Kind::Usage,
                       "rank " + llvm::Twine(source) +
                           "'s memory is out of reach for copies");
    if (auto error = group.move(to, base + place, bytes, stream))
      return error;
  }
  return llvm::Error::success();
}
