//===- CollectivePieces.cpp - Calls that go in pieces ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches of a part of a call, with copies through scratch memory if the
// kernel cannot take the arrays where they lie.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CollectivesImpl.h"

#include "runtime/support/GroupError.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace commsir;
using namespace commsir::group;

/// GPU: calls of one size in pieces after which it gets a kernel of its own.
/// Pieces take no copies of the whole, but a few launches more.
static constexpr unsigned kUsesOfLarge = 1;

llvm::Expected<char *> Collectives::Impl::take(Scratch::Use use, size_t bytes,
                                               uint64_t capture) {
  Scratch &one = scratch[capture != 0][use];
  if (one.bytes >= bytes && one.capture == capture)
    return one.memory;
  size_t size = llvm::PowerOf2Ceil(std::max<size_t>(bytes, 4096));
  auto memory = group.allocateOwn(size);
  if (!memory)
    return memory.takeError();
  if (one.memory && one.capture)
    ofGraphs.push_back(one.memory);
  else if (one.memory)
    group.releaseOwn(one.memory);
  one = {static_cast<char *>(*memory), size, capture};
  return one.memory;
}

/// GPU: whether a size beyond those that kernels of any size take goes in
/// pieces, of few sizes, and not by a kernel of its own: until it is repeated,
/// and all ranks have compiled that. An all_reduce does always.
llvm::Expected<bool> Collectives::Impl::takesPieces(const Shape &shape,
                                                    uint64_t capture) {
  if (shape.pieceOf(shape.elements) == shape.elements)
    return false;
  if (shape.op == "all_reduce")
    return true;
  KernelCache &cache = cacheOf({});
  std::string key = shape.key() + " " + std::to_string(shape.elements);
  // Copy engines had carried out the first calls.
  if (cache.kernels.contains(key) || CopiedCollective::fits(shape))
    return false;
  // A captured call takes what there is.
  if (capture)
    return true;
  unsigned &uses = usesOf(shape, key);
  if (uses < kUsesOfLarge) {
    ++uses;
    return true;
  }
  if (!cache.hasRoom(limits.kernels))
    return true;
  return lacksKernel(shape, ++uses);
}

/// The elements that the kernel has which takes `count` of them.
int64_t Collectives::Impl::roundUp(const Shape &shape, int64_t count,
                                   uint64_t capture) {
  // GPU: what is not for any size is a piece, or a size of its own.
  if (shape.mostSized() || (!group.onGpu() && count == shape.chunk))
    return count;
  return shouldSpecialize(shape, count, capture) ? count : sizeClass(count);
}

/// Elements [first, first + count) of every part. Where the kernel is for more,
/// parts do not lie one after the other, or the output is the input, arrays go
/// through scratch memory. Which kernel it is does not depend on where they
/// lie, which differs by rank.
llvm::Error Collectives::Impl::runPiece(PlainPlan &plan, int64_t first,
                                        int64_t count, uint64_t capture,
                                        void *stream) {
  const Shape &shape = plan.shape;
  bool isSized = count <= shape.mostSized();
  int64_t elements = roundUp(shape, count, capture);
  if (shape.takesParts(elements))
    return runParts(shape, first, elements);
  size_t width = shape.elementBytes, bytes = count * width;
  size_t whole = shape.elements * width, padded = elements * width;
  bool cuts = count != shape.elements;
  char *from = shape.input ? shape.input + first * width : nullptr;
  char *to = shape.output ? shape.output + first * width : nullptr;
  bool drops = shape.dropsElsewhere && !shape.hasOutput;
  bool pack = !shape.inputList.empty() ||
              (from && (elements != count || (cuts && shape.inputParts > 1) ||
                        !isAligned(from) || writesOverInput(shape)));
  bool unpack = !shape.outputList.empty() ||
                (to && (elements != count || (cuts && shape.outputParts > 1) ||
                        !isAligned(to)));
  KernelCache &cache = cacheOf(shape.members);
  std::string key = shape.key() + " " + std::to_string(elements);
  auto kept = isSized ? findSized(shape, first, count, stream)
                      : find(cache, key, shape.members, shape.text, stream,
                             [&] { return shape.write(elements); });
  if (!kept) {
    llvm::Error error = kept.takeError();
    isTooLarge = isLimit(error);
    return error;
  }
  char *result = to;
  if (pack) {
    auto buffer = take(Scratch::Packed, padded * shape.inputParts, capture);
    if (!buffer)
      return buffer.takeError();
    llvm::Error error =
        from ? group.copy(*buffer, padded, from, whole, bytes, shape.inputParts,
                          stream)
             : copyParts(shape.inputList, shape, first, count, padded, *buffer,
                         /*in=*/true, stream);
    if (error)
      return error;
    from = *buffer;
  }
  if (unpack || drops) {
    auto buffer = take(Scratch::Unpacked, padded * shape.outputParts, capture);
    if (!buffer)
      return buffer.takeError();
    result = *buffer;
  }
  staged |= pack || unpack;
  // In a capture a size is not counted.
  if (elements == count && !cuts && (isSized || !capture) && !shape.isInParts &&
      !drops) {
    plan.extent = isSized ? count : 0;
    keep(plan, cache, **kept);
  }
  if (llvm::Error error = launch(shape, elements, *(*kept)->kernel, from,
                                 result, stream, isSized ? count : 0))
    return error;
  if (!unpack)
    return llvm::Error::success();
  if (!to)
    return copyParts(shape.outputList, shape, first, count, padded, result,
                     /*in=*/false, stream);
  return group.copy(to, whole, result, padded, bytes, shape.outputParts,
                    stream);
}

namespace {
/// What is left of a part, as much as a kernel takes at the most.
struct PartPiece {
  /// In the array, and where the kernel takes it.
  char *place, *used;
  size_t bytes;
};
} // namespace

/// The pieces of an array from element `first` on. Those of less than
/// `elements`, or all that are to be `apart`, are taken in scratch memory.
static llvm::SmallVector<PartPiece, 16> piecesOf(const Shape &shape,
                                                 bool isInput, int64_t first,
                                                 int64_t elements,
                                                 char *scratch, bool apart) {
  size_t width = shape.elementBytes, most = elements * width;
  char *whole = isInput ? shape.input : shape.output;
  llvm::ArrayRef<Array> list = isInput ? shape.inputList : shape.outputList;
  int64_t count = isInput ? shape.inputParts : shape.outputParts;
  bool isThere = isInput ? shape.hasInput : shape.hasOutput;
  llvm::SmallVector<PartPiece, 16> pieces;
  for (int64_t part = 0; part < count; ++part, scratch += most) {
    PartPiece piece = {nullptr, scratch, 0};
    if (isThere) {
      bool isWhole = list.empty();
      int64_t has = (isWhole ? shape.elements : list[part].elements) - first;
      piece.bytes = std::clamp<int64_t>(has, 0, elements) * width;
      piece.place = (isWhole ? whole + part * shape.elements * width
                             : static_cast<char *>(list[part].data)) +
                    first * width;
      if (piece.bytes == most && !apart)
        piece.used = piece.place;
    }
    pieces.push_back(piece);
  }
  return pieces;
}

/// Up to `elements` of each part, by a kernel that takes them where they lie:
/// so each is copied twice on its way, to a channel and from there.
llvm::Error Collectives::Impl::runParts(const Shape &shape, int64_t first,
                                        int64_t elements) {
  size_t bytes = elements * shape.elementBytes;
  std::string key = "parts " + shape.key() + " " + std::to_string(elements);
  auto kept = find(cacheOf({}), key, {}, shape.text, nullptr,
                   [&] { return shape.writeParts(elements); });
  if (!kept)
    return kept.takeError();
  auto packed = take(Scratch::Packed, bytes * shape.inputParts, 0);
  if (!packed)
    return packed.takeError();
  auto unpacked = take(Scratch::Unpacked, bytes * shape.outputParts, 0);
  if (!unpacked)
    return unpacked.takeError();
  auto in =
      piecesOf(shape, true, first, elements, *packed, writesOverInput(shape));
  auto out =
      piecesOf(shape, false, first, elements, *unpacked, /*apart=*/false);
  auto copy = [&](char *to, const char *from, size_t count) {
    if (to == from || !count)
      return;
    staged = true;
    std::memmove(to, from, count);
  };
  llvm::SmallVector<Argument, 32> arguments;
  for (const PartPiece &piece : in) {
    copy(piece.used, piece.place, piece.bytes);
    arguments.push_back({piece.used, bytes});
  }
  for (const PartPiece &piece : out)
    arguments.push_back({piece.used, bytes});
  if (llvm::Error error =
          group.launch(*(*kept)->kernel, arguments, /*stream=*/nullptr))
    return error;
  if (!shape.hasOutput)
    return llvm::Error::success();
  int64_t own = group.options().rank;
  for (auto [i, piece] : llvm::enumerate(out)) {
    const PartPiece &source = in[in.size() == 1 ? 0 : own];
    bool isOwn = shape.hasInput && (out.size() == 1 || int64_t(i) == own);
    if (isOwn && piece.place != source.place)
      std::memmove(piece.place, source.used,
                   std::min(piece.bytes, source.bytes));
    else if (!isOwn)
      copy(piece.place, piece.used, piece.bytes);
  }
  return llvm::Error::success();
}

/// Elements [first, first + count) of each part that has them, into scratch
/// memory (`in`) or from there.
llvm::Error Collectives::Impl::copyParts(llvm::ArrayRef<Array> list,
                                         const Shape &shape, int64_t first,
                                         int64_t count, size_t pitch,
                                         char *scratch, bool in, void *stream) {
  size_t width = shape.elementBytes;
  for (const Array &part : list) {
    int64_t has = std::clamp<int64_t>(part.elements - first, 0, count);
    size_t bytes = has * width;
    char *at = static_cast<char *>(part.data) + first * width;
    if (bytes)
      if (llvm::Error error =
              group.copy(in ? scratch : at, bytes, in ? at : scratch, bytes,
                         bytes, 1, stream))
        return error;
    scratch += pitch;
  }
  return llvm::Error::success();
}
