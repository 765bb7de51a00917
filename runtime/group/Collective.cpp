//===- Collective.cpp - One collective on arrays of a group ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Collective.h"

#include "runtime/driver/Element.h"
#include "runtime/group/Error.h"
#include "runtime/group/Shape.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

#include <cstring>
#include <list>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

/// Kernels that are kept for one set of ranks.
static constexpr size_t kKernels = 256;
/// Calls of one size after which it gets a kernel of its own.
static constexpr unsigned kUsesOfOwn = 4;
/// Sizes whose uses are counted.
static constexpr size_t kSizes = 4096;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// The kernels of one set of ranks, the last used first. All its ranks make the
/// same calls, and so keep and drop the same kernels.
struct Shelf {
  struct Kept {
    GroupKernel *kernel;
    std::list<std::string>::iterator use;
  };
  llvm::StringMap<Kept> kernels;
  std::list<std::string> uses;
  llvm::StringMap<unsigned> sizes;
};

/// Memory for arrays that a kernel cannot take where they lie.
struct Scratch {
  std::unique_ptr<char[]> memory;
  size_t bytes = 0;
  char *take(size_t needed) {
    if (bytes < needed) {
      bytes = llvm::PowerOf2Ceil(needed);
      memory.reset(new char[bytes + 64]());
    }
    return reinterpret_cast<char *>(
        llvm::alignTo(reinterpret_cast<uintptr_t>(memory.get()), 64));
  }
};
} // namespace

struct Collectives::Impl {
  explicit Impl(Group &group) : group(group) {}

  llvm::Expected<GroupKernel *> find(llvm::StringRef key,
                                     llvm::ArrayRef<int64_t> members,
                                     llvm::function_ref<KernelRequest()> write);
  bool deservesOwn(const Shape &shape, int64_t elements);
  llvm::Error runPiece(const Shape &shape, int64_t first, int64_t count,
                       void *stream);
  llvm::Error runWhole(const Shape &shape, void *stream);
  llvm::Error launch(const Shape &shape, int64_t elements, void *input,
                     void *output, void *stream);

  Group &group;
  std::map<std::vector<int64_t>, Shelf> shelves;
  Scratch packed, unpacked;
  StagingCounts counted;
  bool staged = false;
};

/// The kernel of that key; where there is none, of the text that `write` makes.
llvm::Expected<GroupKernel *>
Collectives::Impl::find(llvm::StringRef key, llvm::ArrayRef<int64_t> members,
                        llvm::function_ref<KernelRequest()> write) {
  Shelf &shelf = shelves[members.vec()];
  auto it = shelf.kernels.find(key);
  if (it != shelf.kernels.end()) {
    shelf.uses.splice(shelf.uses.begin(), shelf.uses, it->second.use);
    return it->second.kernel;
  }
  if (shelf.kernels.size() >= kKernels) {
    auto oldest = shelf.kernels.find(shelf.uses.back());
    if (llvm::Error error = group.discard(*oldest->second.kernel))
      return std::move(error);
    shelf.kernels.erase(oldest);
    shelf.uses.pop_back();
  }
  KernelRequest request = write();
  request.members = members.vec();
  auto kernel = group.prepare(request);
  if (!kernel)
    return kernel.takeError();
  shelf.uses.push_front(key.str());
  shelf.kernels[key] = {*kernel, shelf.uses.begin()};
  return *kernel;
}

//===----------------------------------------------------------------------===//
// Plain collectives
//===----------------------------------------------------------------------===//

llvm::Error Collectives::Impl::launch(const Shape &shape, int64_t elements,
                                      void *input, void *output, void *stream) {
  std::string key = shape.key() + " " + std::to_string(elements);
  auto kernel = find(key, shape.members, [&] { return shape.write(elements); });
  if (!kernel)
    return kernel.takeError();
  size_t width = shape.elementBytes;
  // Arrays that this rank does not have are not looked at.
  Argument arguments[] = {
      {input ? input : output, elements * shape.inputParts * width},
      {output ? output : input, elements * shape.outputParts * width}};
  return group.launch(**kernel, arguments, stream);
}

/// Copies `parts` pieces of `bytes` each, `from` and `to` apart.
static void copyParts(char *to, size_t toStride, const char *from,
                      size_t fromStride, int64_t parts, size_t bytes) {
  for (int64_t part = 0; part < parts; ++part)
    std::memcpy(to + part * toStride, from + part * fromStride, bytes);
}

/// Elements [first, first + count) of every part. Where the kernel is for more,
/// or parts do not lie one after the other, arrays go through scratch memory.
llvm::Error Collectives::Impl::runPiece(const Shape &shape, int64_t first,
                                        int64_t count, void *stream) {
  int64_t elements = count;
  if (count < shape.chunk && !deservesOwn(shape, count))
    elements = sizeClass(count);
  size_t width = shape.elementBytes, bytes = count * width;
  size_t whole = shape.elements * width, padded = elements * width;
  char *input = shape.input, *output = shape.output;
  bool cuts = count != shape.elements;
  bool pack = input && (elements != count || (cuts && shape.inputParts > 1));
  bool unpack =
      output && (elements != count || (cuts && shape.outputParts > 1));
  char *from = input ? input + first * width : nullptr;
  char *to = output ? output + first * width : nullptr;
  if (pack) {
    char *buffer = packed.take(padded * shape.inputParts);
    copyParts(buffer, padded, from, whole, shape.inputParts, bytes);
    from = buffer;
  }
  char *result = unpack ? unpacked.take(padded * shape.outputParts) : to;
  staged |= pack || unpack;
  if (llvm::Error error = launch(shape, elements, from, result, stream))
    return error;
  if (unpack)
    copyParts(to, whole, result, padded, shape.outputParts, bytes);
  return llvm::Error::success();
}

/// Whether a size is used so often that it gets a kernel of its own, and is
/// spared the copies.
bool Collectives::Impl::deservesOwn(const Shape &shape, int64_t elements) {
  if (sizeClass(elements) == elements)
    return true;
  Shelf &shelf = shelves[shape.members];
  if (shelf.sizes.size() >= kSizes)
    shelf.sizes.clear();
  unsigned &uses = shelf.sizes[shape.key() + " " + std::to_string(elements)];
  if (uses >= kUsesOfOwn)
    return true;
  ++uses;
  return false;
}

llvm::Error Collectives::Impl::runWhole(const Shape &shape, void *stream) {
  if (group.onGpu())
    return launch(shape, shape.elements, shape.input, shape.output, stream);
  for (int64_t first = 0; first < shape.elements; first += shape.chunk)
    if (llvm::Error error =
            runPiece(shape, first,
                     std::min(shape.chunk, shape.elements - first), stream))
      return error;
  return llvm::Error::success();
}

Collectives::Collectives(Group &group) : impl(std::make_unique<Impl>(group)) {}
Collectives::~Collectives() = default;

/// Different sizes for each pair of ranks: ranks tell each other the sizes, and
/// then exchange parts of the largest. Each hears what it is sent, and refuses
/// what it did not expect after all have what is theirs.
static llvm::Error runVarying(Collectives &collectives, Group &group,
                              const CollectiveCall &call, void *stream) {
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
    return refuse(Kind::Usage, "there is one count for each rank, none is "
                               "negative, and together they fit the arrays");
  std::vector<int64_t> sizes = call.sendCounts, heard(ranks);
  CollectiveCall part;
  part.op = "all_to_all";
  part.elementType = "i64";
  part.input = {sizes.data(), ranks};
  part.output = {heard.data(), ranks};
  if (llvm::Error error = collectives.run(part, stream))
    return error;
  int64_t own = *llvm::max_element(sizes), largest = 0;
  part.op = "all_reduce";
  part.reduction = "max";
  part.input = {&own, 1};
  part.output = {&largest, 1};
  if (llvm::Error error = collectives.run(part, stream))
    return error;
  size_t width = *elementBytesOf(call.elementType);
  std::vector<char> in(largest * ranks * width), out(in.size());
  auto *from = static_cast<const char *>(call.input.data);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    size_t bytes = sizes[rank] * width;
    if (bytes)
      std::memcpy(in.data() + rank * largest * width, from, bytes);
    from += bytes;
  }
  part.op = "all_to_all";
  part.reduction.clear();
  part.elementType = call.elementType;
  part.input = {in.data(), largest * ranks};
  part.output = {out.data(), largest * ranks};
  if (llvm::Error error = collectives.run(part, stream))
    return error;
  auto *to = static_cast<char *>(call.output.data);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (heard[rank] != call.recvCounts[rank])
      return refuse(Kind::Disagree,
                    "rank " + llvm::Twine(rank) + " sends " +
                        llvm::Twine(heard[rank]) + " elements to rank " +
                        llvm::Twine(group.options().rank) + ", which expects " +
                        llvm::Twine(call.recvCounts[rank]));
    size_t bytes = heard[rank] * width;
    if (bytes)
      std::memcpy(to, out.data() + rank * largest * width, bytes);
    to += bytes;
  }
  return llvm::Error::success();
}

llvm::Error Collectives::run(const CollectiveCall &call, void *stream) {
  if (call.op == "all_to_all_v" && !whyNot(call))
    return runVarying(*this, impl->group, call, stream);
  auto shape = resolveShape(call, impl->group);
  if (!shape)
    return shape.takeError();
  if (shape->elements == 0)
    return llvm::Error::success();
  impl->staged = false;
  impl->group.announce(llvm::xxh3_64bits(shape->text), shape->text);
  llvm::Error error = impl->runWhole(*shape, stream);
  impl->group.announce(0, "");
  ++(impl->staged ? impl->counted.staged : impl->counted.inPlace);
  return error;
}

std::optional<std::string>
Collectives::whyNot(const CollectiveCall &call) const {
  return whyNoKernel(call, impl->group);
}

StagingCounts Collectives::counts() const { return impl->counted; }

//===----------------------------------------------------------------------===//
// Collectives with arithmetic
//===----------------------------------------------------------------------===//

llvm::Error Collectives::run(const FusedCall &call, void *stream) {
  auto source = writeFused(call, impl->group);
  if (!source)
    return source.takeError();
  auto kernel = impl->find(*source, {}, [&] {
    KernelRequest request;
    request.source = *source;
    request.name = call.op;
    return request;
  });
  if (!kernel)
    return kernel.takeError();
  llvm::SmallVector<Argument, 8> arguments;
  auto add = [&](const Array &array, size_t width) {
    arguments.push_back({array.data, size_t(array.elements) * width});
  };
  auto widthOf = [](llvm::StringRef type) {
    return elementBytesOf(type).value_or(0);
  };
  add(call.input, widthOf(call.elementType));
  for (const FusedCall::Operand &one : call.arguments)
    add(one.array, widthOf(one.elementType));
  for (const FusedCall::Operand &one : call.outputs)
    add(one.array, widthOf(one.elementType));
  impl->group.announce(llvm::xxh3_64bits(*source),
                       llvm::formatv("{0} {1} of {2}x{3} {4} with arithmetic",
                                     call.op, call.reduction, call.rows,
                                     call.columns, call.elementType)
                           .str());
  llvm::Error error = impl->group.launch(**kernel, arguments, stream);
  impl->group.announce(0, "");
  ++impl->counted.inPlace;
  return error;
}
