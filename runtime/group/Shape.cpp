//===- Shape.cpp - The shape of a collective call -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Shape.h"

#include "dialect/Collectives.h"
#include "runtime/support/Element.h"
#include "runtime/support/ForeignText.h"
#include "runtime/support/GroupError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

//===----------------------------------------------------------------------===//
// Operations and types
//===----------------------------------------------------------------------===//

namespace {
struct Operation {
  llvm::StringRef name;
  /// Arrays hold one part a rank, not one part.
  bool cutsInput, joinsOutput;
  bool reduces, hasRoot;
  /// On other ranks than the root there is no input, or no output.
  bool rootSends, rootReceives;
};
} // namespace

/// The collectives of calls: those of the dialect, but that each end of a
/// send_recv is a call of its own, and all_to_all_v is made of all_to_all.
static llvm::ArrayRef<Operation> getOperations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> made;
    for (const mlir::comms::CollectiveKind &kind :
         mlir::comms::getCollectiveKinds()) {
      using mlir::comms::Direction;
      if (kind.rowsVary)
        continue;
      auto add = [&](llvm::StringRef name) {
        made.push_back({name, kind.cutsInput(), kind.joinsOutput(),
                        kind.reduces, kind.hasRoot(),
                        kind.direction == Direction::RootToAll,
                        kind.direction == Direction::AllToRoot});
      };
      if (kind.direction != Direction::OneToOne) {
        add(kind.name);
        continue;
      }
      add("send");
      add("recv");
    }
    return made;
  }();
  return all;
}

static const Operation *findOperation(llvm::StringRef name) {
  auto all = getOperations();
  const auto *it = llvm::find_if(
      all, [&](const Operation &one) { return one.name == name; });
  return it == all.end() ? nullptr : it;
}

std::optional<size_t> commsir::group::elementBytesOf(llvm::StringRef type) {
  // Formats of 8 bits that files do not know.
  if (type == "f8E4M3" || type == "f8E4M3FNUZ" || type == "f8E5M2FNUZ" ||
      type == "f8E4M3B11FNUZ" || type == "f8E3M4" || type == "f8E8M0FNU")
    return 1;
  auto element = driver::parseElement(type);
  if (!element || *element == driver::Element::I1 ||
      driver::isUnsigned(*element) || type == "index")
    return std::nullopt;
  return driver::elementBytes(*element);
}

static bool isFloat(llvm::StringRef type) {
  return type.starts_with("f") || type == "bf16";
}

int64_t commsir::group::sizeClass(int64_t elements) {
  if (elements <= 16)
    return 16;
  int64_t step = int64_t(llvm::PowerOf2Ceil(elements)) / 8;
  return int64_t(llvm::alignTo(elements, std::max<int64_t>(step, 4)));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

std::optional<std::string>
commsir::group::noKernelReason(const CollectiveCall &call, const Group &group) {
  // Made of all_to_all: see Collective.cpp.
  bool varies = call.op == "all_to_all_v";
  const Operation *operation =
      findOperation(varies ? "all_to_all" : llvm::StringRef(call.op));
  if (!operation)
    return "there is no collective '" + call.op + "': it is one of " +
           llvm::join(
               llvm::map_range(getOperations(),
                               [](const Operation &one) { return one.name; }),
               ", ") +
           ", all_to_all_v";
  if (!elementBytesOf(call.elementType))
    return "arrays cannot hold elements of type '" + call.elementType + "'";
  if (call.op == "send" || call.op == "recv") {
    if (!group.takesMembers() && group.options().ranks != 2)
      return "on GPUs two ranks send and receive in a group of the two";
    return std::nullopt;
  }
  if (!operation->reduces)
    return std::nullopt;
  llvm::StringRef reduction = call.reduction;
  auto reductions = mlir::comms::getReductionNames();
  if (!llvm::is_contained(reductions, reduction))
    return "there is no reduction '" + showName(call.reduction) +
           "': it is one of " + llvm::join(reductions, ", ");
  llvm::StringRef type = call.elementType;
  if (isFloat(type) &&
      !llvm::is_contained({"f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2"},
                          type))
    return "no arithmetic is supported on '" + call.elementType +
           "'; it can be copied";
  bool bitwise = reduction == "and" || reduction == "or" || reduction == "xor";
  if (bitwise && isFloat(call.elementType))
    return "'" + call.reduction + "' of '" + call.elementType +
           "': floats have no bitwise reductions";
  return std::nullopt;
}

static llvm::Error refuse(const CollectiveCall &call, const llvm::Twine &why) {
  return makeError(Kind::Usage, showName(call.op) + ": " + why);
}

/// The elements of one part, from the arrays that this rank has.
static llvm::Error measure(const CollectiveCall &call, const Operation &kind,
                           int64_t rank, Shape &shape) {
  shape.inputParts = kind.cutsInput ? shape.ranks : 1;
  shape.outputParts = kind.joinsOutput ? shape.ranks : 1;
  bool isRoot = !kind.hasRoot || rank == call.root;
  bool hasInput = shape.hasInput =
      call.op != "recv" && (isRoot || !kind.rootSends);
  bool hasOutput = shape.hasOutput =
      call.op != "send" && (isRoot || !kind.rootReceives);
  int64_t in = call.input.elements, out = call.output.elements;
  if (in < 0 || out < 0 || call.partElements < 0)
    return refuse(call, "an array has a negative number of elements");
  bool isLarge = false;
  auto count = [&](const std::vector<Array> &list, int64_t parts,
                   int64_t &elements) {
    if (!list.empty())
      isLarge |= __builtin_mul_overflow(call.partElements, parts, &elements);
  };
  count(call.inputParts, shape.inputParts, in);
  count(call.outputParts, shape.outputParts, out);
  if (hasInput && in % shape.inputParts)
    return refuse(call, "the input has " + llvm::Twine(in) +
                            " elements, which cannot be cut into one part for "
                            "each of " +
                            llvm::Twine(shape.ranks) + " ranks");
  if (hasOutput && out % shape.outputParts)
    return refuse(call, "the output has " + llvm::Twine(out) +
                            " elements, which are not one part from each of " +
                            llvm::Twine(shape.ranks) + " ranks");
  if (hasInput && hasOutput && in / shape.inputParts != out / shape.outputParts)
    return refuse(call, "the input has " + llvm::Twine(in) +
                            " elements, the output " + llvm::Twine(out) +
                            "; of " + llvm::Twine(shape.ranks) +
                            " ranks these are parts of different sizes");
  // An array of the other ranks' may be as large as this one's times the ranks;
  // sizes that kernels are made for are a quarter larger at most.
  int64_t bytes = 0;
  if (isLarge || __builtin_mul_overflow(
                     std::max(in, out),
                     2 * shape.ranks * int64_t(shape.elementBytes), &bytes))
    return refuse(call, "arrays of " + llvm::Twine(std::max(in, out)) +
                            " elements on each of " + llvm::Twine(shape.ranks) +
                            " ranks are larger than any memory");
  shape.elements = hasInput ? in / shape.inputParts : out / shape.outputParts;
  if (call.partElements && call.partElements != shape.elements)
    return refuse(call, "the parts of an array have " +
                            llvm::Twine(shape.elements) + " elements, not " +
                            llvm::Twine(call.partElements));
  if (!pointAt(shape, call) && shape.elements)
    return refuse(call,
                  call.partElements
                      ? "there must be one array per part, none larger than "
                        "the stated maximum, and none may be a null pointer"
                      : "an array is a null pointer");
  return llvm::Error::success();
}

/// Parts that lie one after the other are an array. False: they are not as
/// `shape` wants them.
static bool pointAt(const Shape &shape, const Array &whole,
                    llvm::ArrayRef<Array> list, int64_t parts, char *&data,
                    llvm::ArrayRef<Array> &apart) {
  apart = {};
  data = static_cast<char *>(whole.data);
  if (list.empty())
    return data != nullptr;
  data = static_cast<char *>(list.front().data);
  bool isWhole = data, fits = static_cast<int64_t>(list.size()) == parts;
  char *next = data;
  for (const Array &part : list) {
    fits &= part.elements >= 0 && part.elements <= shape.elements &&
            (part.data || !part.elements);
    isWhole &= part.data == next && part.elements == shape.elements;
    next += shape.elements * shape.elementBytes;
  }
  if (!isWhole) {
    data = nullptr;
    apart = list;
  }
  return fits;
}

bool commsir::group::pointAt(Shape &shape, const CollectiveCall &call) {
  bool fits = true;
  shape.input = shape.output = nullptr;
  shape.inputList = shape.outputList = {};
  if (shape.hasInput)
    fits &= ::pointAt(shape, call.input, call.inputParts, shape.inputParts,
                      shape.input, shape.inputList);
  if (shape.hasOutput)
    fits &= ::pointAt(shape, call.output, call.outputParts, shape.outputParts,
                      shape.output, shape.outputList);
  return fits;
}

/// Bytes of the arrays of all ranks in one launch on the CPU, and of one rank
/// at the least and at the most. What a launch touches stays in the caches that
/// ranks share; ranks meet in each, and whoever has no core then waits for one,
/// which takes longer than to copy a few 100 KiB.
static constexpr int64_t kLaunchBytes = 8 << 20, kLeastChunkBytes = 512 << 10,
                         kMostChunkBytes = 2 << 20;
/// Bytes of all ranks' arrays together up to which all ranks reduce all. Four
/// processes on two cores are quicker so up to 300 KiB each, eight up to 150
/// KiB; with a core each, that every rank reads all counts for more.
static constexpr int64_t kOneShotBytes = 512 << 10;

/// Elements of a tile of kernels on parts, which chunks are multiples of.
static constexpr int64_t kPartTile = 2048;

/// On the CPU all channels are read where their senders wrote them.
static void chooseForCpu(Shape &shape) {
  shape.isChosen = shape.algorithm.empty() && shape.protocol.empty();
  int64_t parts = std::max(shape.inputParts, shape.outputParts);
  int64_t chunk =
      std::clamp(kLaunchBytes / shape.ranks, kLeastChunkBytes, kMostChunkBytes);
  // A pair has less memory for channels.
  if (!shape.members.empty())
    chunk = kLeastChunkBytes;
  shape.chunk =
      std::max<int64_t>(chunk / parts / int64_t(shape.elementBytes), 16);
  if (shape.chunk > kPartTile)
    shape.chunk -= shape.chunk % kPartTile;
  int64_t bytes = shape.elements * int64_t(shape.elementBytes);
  bool twoShot =
      shape.op == "all_reduce" && bytes * shape.ranks > kOneShotBytes;
  if (shape.algorithm.empty())
    shape.algorithm = twoShot ? "two_shot" : "one_shot";
  if (shape.protocol.empty())
    shape.protocol = "pull";
}

static void describe(const CollectiveCall &call, const Group &group,
                     Shape &shape) {
  int64_t rank = group.options().rank;
  bool sends = call.op == "send", receives = call.op == "recv";
  if (sends || receives) {
    shape.op = "send_recv";
    int64_t source = sends ? rank : call.peer;
    int64_t dest = sends ? call.peer : rank;
    shape.sendsUp = source < dest;
    if (group.takesMembers())
      shape.members = {source, dest};
    shape.text = llvm::formatv("send and recv of {0} {1} from {2} to {3}",
                               shape.elements, shape.typeName, source, dest);
    return;
  }
  shape.text = shape.op;
  if (!shape.reduction.empty())
    shape.text += " " + shape.reduction;
  shape.text += llvm::formatv(" of {0} {1}{2}", shape.elements, shape.typeName,
                              shape.inputParts > 1 || shape.outputParts > 1
                                  ? " for each rank"
                                  : "")
                    .str();
  if (!findOperation(shape.op)->hasRoot)
    return;
  std::string root = " with root " + std::to_string(shape.root);
  shape.text += root;
  shape.rootText = shape.op + root;
}

/// GPU: what a call shares with others. Copies move words of 4 bytes, whatever
/// they are of, where parts are made of them. A reduction to one rank goes to
/// all, who are no later for it, by the kernel of an all_reduce.
static void widen(Shape &shape) {
  bool isOpen = shape.algorithm.empty() && shape.protocol.empty();
  if (!isOpen || shape.ranks < 2 || shape.op == "send_recv")
    return;
  if (shape.op == "reduce") {
    shape.op = "all_reduce";
    shape.root = 0;
    shape.dropsElsewhere = true;
  }
  if (!shape.reduction.empty() || shape.isInParts)
    return;
  int64_t bytes = shape.elements * int64_t(shape.elementBytes);
  shape.elementBytes = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
  shape.elements = bytes / int64_t(shape.elementBytes);
  shape.elementType = "i" + std::to_string(8 * shape.elementBytes);
}

llvm::Expected<Shape> commsir::group::resolveShape(const CollectiveCall &call,
                                                   const Group &group) {
  if (auto why = noKernelReason(call, group))
    return refuse(call, *why);
  if (!findOperation(call.op))
    return refuse(call, "it has no kernel of its own");
  const Operation &kind = *findOperation(call.op);
  Shape shape;
  shape.op = call.op;
  shape.ranks = group.options().ranks;
  shape.onGpu = group.onGpu();
  shape.elementBytes = *elementBytesOf(call.elementType);
  shape.algorithm = call.algorithm;
  shape.protocol = call.protocol;
  // Copies move bits: floats and integers share their kernels.
  shape.elementType = kind.reduces
                          ? call.elementType
                          : "i" + std::to_string(8 * shape.elementBytes);
  shape.typeName = call.typeName.empty() ? call.elementType : call.typeName;
  if (kind.reduces)
    shape.reduction = call.reduction;
  int64_t other = kind.hasRoot ? call.root : call.peer;
  bool isPair = call.op == "send" || call.op == "recv";
  if ((kind.hasRoot || isPair) && (other < 0 || other >= shape.ranks))
    return refuse(call, "there is no rank " + llvm::Twine(other) +
                            " in a group of " + llvm::Twine(shape.ranks));
  if (isPair && other == group.options().rank)
    return refuse(call, "a rank cannot send to itself");
  if (kind.hasRoot)
    shape.root = call.root;
  if (llvm::Error error = measure(call, kind, group.options().rank, shape))
    return std::move(error);
  shape.isInParts = call.partElements != 0;
  describe(call, group, shape);
  if (shape.onGpu)
    widen(shape);
  shape.chunk = shape.elements;
  if (!group.onGpu())
    chooseForCpu(shape);
  return shape;
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

bool Shape::takesRoot() const {
  const Operation *operation = findOperation(op);
  return onGpu && operation && operation->hasRoot;
}

std::string Shape::key() const {
  // On GPUs ranks find out by their channels that they take bytes for different
  // things; on the CPU, by the call's text.
  return llvm::formatv("{0} {1} {2} {3} {4} {5} {6} {7}", op, reduction,
                       elementType, takesRoot() ? 0 : root, algorithm, protocol,
                       sendsUp, onGpu ? typeName : std::string());
}

/// Returns the text between the op's name and its arrays.
static std::string detail(const Shape &shape) {
  std::string text;
  if (!shape.reduction.empty())
    text += shape.reduction + " ";
  const Operation *operation = findOperation(shape.op);
  if (operation && operation->hasRoot)
    text += "root " + std::to_string(shape.takesRoot() ? 0 : shape.root) + " ";
  text += "%team ";
  if (shape.op != "send_recv")
    return text;
  // Of the two, the one of the lower rank is number 0.
  return text + (shape.sendsUp ? "from 0 to 1 " : "from 1 to 0 ");
}

/// A quarter of what kernels have by themselves: it bounds the channel memory
/// of a group, which has two buffers of it for eager launches and two for
/// graphs.
static constexpr int64_t kRoundBytes = int64_t(32) << 20;

/// GPU: bytes of a message, next to kMostSizedReduce, up to which kernels of
/// any size take it: each rank sends straight to all. A larger broadcast goes
/// from neighbor to neighbor, which takes no extent.
static constexpr int64_t kMostSizedCopy = int64_t(1) << 20,
                         kMostSizedBroadcast = int64_t(256) << 10;
/// GPU: bytes of the largest piece of a larger message. Links are busy with it
/// for so long that a launch more does not count. What is copied for it, or
/// dropped, takes as much memory.
static constexpr int64_t kLargestPiece = int64_t(64) << 20,
                         kLargestCopiedPiece = int64_t(16) << 20;
/// Bytes of channels, all buffers counted, of such a kernel: three buffers of
/// an all_reduce of 4 MiB in two shots. With more, rows are cut.
static constexpr uint64_t kSizedChannelBytes = uint64_t(26) << 20;

KernelRequest Shape::writeSized(int64_t most, int64_t step) const {
  KernelRequest request = write(most);
  // The one attribute becomes two.
  llvm::StringRef source = request.source;
  auto [head, rest] = source.split("attributes {");
  request.source = llvm::formatv("{0}attributes {{comms.run_time_extent = {1} "
                                 ": i64, {2}",
                                 head, step, rest);
  request.channelBytes = kSizedChannelBytes;
  return request;
}

int64_t Shape::mostSized() const {
  using mlir::comms::Direction, mlir::comms::Movement;
  bool isOpen = algorithm.empty() && protocol.empty();
  const mlir::comms::CollectiveKind *kind = mlir::comms::findCollectiveKind(op);
  if (!onGpu || ranks < 2 || !isOpen || !members.empty() || !kind ||
      kind->rowsVary || kind->direction == Direction::OneToOne)
    return 0;
  auto width = int64_t(elementBytes);
  if (kind->movement == Movement::Same)
    return (kind->reduces ? kMostSizedReduce : kMostSizedBroadcast) / width;
  return kMostSizedCopy / ranks / width;
}

int64_t Shape::pieceOf(int64_t left) const {
  int64_t most = mostSized();
  if (!most || left <= most)
    return left;
  int64_t parts = std::max(inputParts, outputParts);
  bool isCopied = parts > 1 || dropsElsewhere;
  int64_t largest = (isCopied ? kLargestCopiedPiece : kLargestPiece) / parts /
                    int64_t(elementBytes);
  auto piece = int64_t(llvm::bit_floor(uint64_t(most)));
  while (4 * piece <= std::min(left, largest))
    piece *= 4;
  return piece;
}

KernelRequest Shape::write(int64_t elements, bool direct) const {
  constexpr const char *text =
      R"(comms.kernel @{0}(%x: memref<{1}>, %y: {4}<{2}>{6})
    attributes {{comms.round_bytes = {5} : i64} {{
  %team = comms.team world
  comms.{0} {3}ins(%x : memref<{1}>) outs(%y : {4}<{2}>)
  comms.return
}
)";
  auto arrayOf = [&](int64_t parts) {
    return std::to_string(elements * parts) + "x" + elementType;
  };
  KernelRequest request;
  request.source = llvm::formatv(
      text, op, arrayOf(inputParts), arrayOf(outputParts), detail(*this),
      direct ? "!comms.window" : "memref", kRoundBytes,
      takesRoot() ? ", %root: index {comms.run_time_root}" : "");
  request.name = op;
  request.algorithm = direct              ? "permutation"
                      : op == "send_recv" ? ""
                                          : algorithm;
  request.protocol = protocol;
  request.blocks = onGpu ? 0 : 1;
  request.label = onGpu ? typeName : std::string();
  request.shared = onGpu;
  return request;
}

//===----------------------------------------------------------------------===//
// Kernels on parts
//===----------------------------------------------------------------------===//

/// Ranks for whose parts a kernel has an argument each.
static constexpr int64_t kPartRanks = 16;

/// Bytes of a part below which parts are packed: that takes no time.
static constexpr int64_t kLeastPartBytes = 32 << 10;

bool Shape::takesParts(int64_t elements) const {
  return !onGpu && isChosen && ranks > 1 && ranks <= kPartRanks &&
         elements % kPartTile == 0 &&
         elements * int64_t(elementBytes) >= kLeastPartBytes &&
         (op == "all_to_all" || op == "all_gather" || op == "gather" ||
          op == "scatter");
}

namespace {
/// Writes a kernel that moves each part by itself: a collective of the dialect
/// is on arrays in which parts lie one after the other.
class PartsKernel {
public:
  PartsKernel(const Shape &shape, int64_t elements)
      : shape(shape), slots(elements / kPartTile),
        array("memref<" + std::to_string(elements) + "x" + shape.elementType +
              ">"),
        tile("tensor<" + std::to_string(kPartTile) + "x" + shape.elementType +
             ">"),
        channel("!comms.channel<pull, " + std::to_string(kPartTile) + "x" +
                shape.elementType + ">") {}
  std::string write();

private:
  void open();
  /// `body` on the rank of that number, or on all others.
  void on(int64_t rank, bool isThat, llvm::function_ref<void()> body);
  void loop(llvm::function_ref<void()> body);
  void send(int64_t part, int64_t to);
  void receive(int64_t part, int64_t from);
  bool gathersAll() const { return shape.op == "all_gather"; }

  const Shape &shape;
  const int64_t slots;
  const std::string array, tile, channel;
  std::string text;
  llvm::raw_string_ostream os{text};
  unsigned conditions = 0;
};
} // namespace

void PartsKernel::open() {
  os << "comms.kernel @" << shape.op << "(";
  for (int64_t i = 0; i < shape.inputParts; ++i)
    os << (i ? ", " : "") << "%x" << i << ": " << array;
  for (int64_t i = 0; i < shape.outputParts; ++i)
    os << ", %y" << i << ": " << array;
  os << ") {\n  %team = comms.team world\n  %own = comms.rank %team\n";
  for (int64_t rank = 0; rank < shape.ranks; ++rank)
    os << "  %r" << rank << " = arith.constant " << rank << " : index\n";
  os << "  %slots = arith.constant " << slots << " : index\n"
     << "  %tile = arith.constant " << kPartTile << " : index\n"
     << "  %channel = comms.channel 0 "
     << (gathersAll() ? "multicast" : "pairwise") << " over %team slots "
     << slots << " : " << channel << "\n";
}

void PartsKernel::on(int64_t rank, bool isThat,
                     llvm::function_ref<void()> body) {
  unsigned number = conditions++;
  os << "  %c" << number << " = arith.cmpi " << (isThat ? "eq" : "ne")
     << ", %own, %r" << rank << " : index\n  scf.if %c" << number << " {\n";
  body();
  os << "  }\n";
}

void PartsKernel::loop(llvm::function_ref<void()> body) {
  os << "  scf.for %t = %r0 to %slots step %r1 {\n"
        "    %at = arith.muli %t, %tile : index\n";
  body();
  os << "  }\n";
}

void PartsKernel::send(int64_t part, int64_t to) {
  loop([&] {
    os << "    %v = comms.tile_load %x" << part << "[%at] : " << array << " -> "
       << tile << "\n    comms.send %v on %channel[%t] ";
    if (!gathersAll())
      os << "to %r" << to << " ";
    os << ": " << tile << ", " << channel << "\n";
  });
}

void PartsKernel::receive(int64_t part, int64_t from) {
  loop([&] {
    os << "    %v = comms.recv %channel[%t] from %r" << from << " : " << channel
       << " -> " << tile << "\n    comms.tile_store %v, %y" << part
       << "[%at] : " << tile << ", " << array << "\n";
  });
}

std::string PartsKernel::write() {
  bool gathers = shape.op == "gather", scatters = shape.op == "scatter";
  auto forOthers = [&](llvm::function_ref<void(int64_t)> body) {
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      if (rank != shape.root)
        body(rank);
  };
  auto forAll = [&](llvm::function_ref<void(int64_t)> body) {
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      on(rank, false, [&] { body(rank); });
  };
  open();
  if (gathers)
    on(shape.root, false, [&] { send(0, shape.root); });
  else if (scatters)
    on(shape.root, true,
       [&] { forOthers([&](int64_t rank) { send(rank, rank); }); });
  else if (gathersAll())
    send(0, 0);
  else
    forAll([&](int64_t rank) { send(rank, rank); });
  os << "  comms.channel_barrier %channel : " << channel << "\n";
  if (gathers)
    on(shape.root, true,
       [&] { forOthers([&](int64_t rank) { receive(rank, rank); }); });
  else if (scatters)
    on(shape.root, false, [&] { receive(0, shape.root); });
  else
    forAll([&](int64_t rank) { receive(rank, rank); });
  // A rank that only sends receives nothing.
  if (gathers || scatters)
    os << "  comms.barrier %team block\n";
  os << "  comms.return\n}\n";
  return text;
}

KernelRequest Shape::writeParts(int64_t elements) const {
  KernelRequest request;
  request.source = PartsKernel(*this, elements).write();
  request.name = op;
  request.blocks = 1;
  return request;
}

/// A region of a fused call. Its text is as between the keyword and the closing
/// brace, or with it.
static std::string regionOf(llvm::StringRef keyword, llvm::StringRef text) {
  if (text.empty())
    return "";
  std::string region = ("  " + keyword + " " + text + "\n").str();
  return text.rtrim().ends_with("}") ? region : region + "  }\n";
}

using Operands = llvm::ArrayRef<FusedCall::Operand>;

/// Whether an array of the call is larger than any memory, a row of any type on
/// any rank.
static bool isTooLarge(const FusedCall &call, int64_t ranks) {
  auto isLarge = [&](int64_t columns) {
    int64_t most = 0;
    return __builtin_mul_overflow(call.rows, columns, &most) ||
           __builtin_mul_overflow(most, 16 * ranks, &most);
  };
  auto hasLarge = [&](Operands operands) {
    return llvm::any_of(operands,
                        [&](const auto &one) { return isLarge(one.columns); });
  };
  return isLarge(call.columns) || hasLarge(call.sources) ||
         hasLarge(call.arguments) || hasLarge(call.outputs);
}

/// Why there is no kernel for the collective and shape of the call, or an empty
/// string.
static std::string findShapeMistake(const FusedCall &call,
                                    const Operation *operation, int64_t ranks) {
  if (!operation || call.op == "send" || call.op == "recv")
    return "there is no such collective";
  if (operation->hasRoot)
    return "collectives with a root are not supported";
  if (call.rows < 1 || call.columns < 1)
    return "there are no rows, or they are empty";
  if (isTooLarge(call, ranks))
    return llvm::formatv("{0} such rows are larger than any memory", call.rows);
  if (call.input.elements != call.rows * call.columns)
    return llvm::formatv("the input has {0} elements, not {1} rows of {2}",
                         call.input.elements, call.rows, call.columns);
  if (call.outputs.empty())
    return "there is no output";
  if (operation->cutsInput && call.rows % ranks)
    return llvm::formatv("{0} rows cannot be cut into parts for {1} ranks",
                         call.rows, ranks);
  return "";
}

static std::string noArraysOf(llvm::StringRef elementType) {
  return ("arrays cannot hold type '" + elementType + "'").str();
}

/// Why arrays do not fit `rows` rows, or an empty string. `title` names their
/// kind in the message.
static std::string findArrayMistake(Operands operands, llvm::StringRef title,
                                    int64_t rows) {
  std::string mistake;
  for (auto [i, one] : llvm::enumerate(operands)) {
    int64_t ownRows = one.perRow ? rows : 1;
    if (!elementBytesOf(one.elementType))
      mistake = noArraysOf(one.elementType);
    if (one.columns < 1 || one.array.elements != ownRows * one.columns)
      mistake =
          llvm::formatv("{0} {1} has {2} elements, not {3} rows of {4}", title,
                        i, one.array.elements, ownRows, one.columns);
  }
  return mistake;
}

/// The same for all arrays of the call; `rows` are those of the result.
static std::string findArrayMistake(const FusedCall &call, int64_t rows) {
  if (!elementBytesOf(call.elementType))
    return noArraysOf(call.elementType);
  if (!call.sources.empty() && call.produce.empty())
    return "sources are read by 'produce', which is empty";
  std::string mistake = findArrayMistake(call.outputs, "output", rows);
  if (mistake.empty())
    mistake = findArrayMistake(call.arguments, "argument", rows);
  if (mistake.empty())
    mistake = findArrayMistake(call.sources, "source", call.rows);
  return mistake;
}

namespace {
/// Arrays of one kind in the text of a kernel, separated by commas.
struct OperandTexts {
  std::string names, types;

  /// Also appends to the kernel's parameters.
  OperandTexts(Operands operands, char letter, int64_t rows,
               std::string &parameters) {
    for (auto [i, one] : llvm::enumerate(operands)) {
      std::string type = llvm::formatv(
          "memref<{0}{1}x{2}>", one.perRow ? std::to_string(rows) + "x" : "",
          one.columns, one.elementType);
      std::string name = llvm::formatv("%_{0}{1}", letter, i);
      parameters += ", " + name + ": " + type;
      names += (i ? ", " : "") + name;
      types += (i ? ", " : "") + type;
    }
  }
};
} // namespace

/// The kernel of a valid call. Its names begin with an underscore, so that they
/// differ from the regions' own, such as %x. `capacity`: as for writeFused;
/// `rows` are those of the result.
static std::string writeFusedText(const FusedCall &call, int64_t ranks,
                                  int64_t capacity, int64_t rows) {
  std::string parameters;
  OperandTexts sources(call.sources, 'p', capacity ? capacity : call.rows,
                       parameters);
  int64_t shown = capacity ? capacity : rows;
  OperandTexts arguments(call.arguments, 'a', shown, parameters);
  OperandTexts outputs(call.outputs, 'y', shown, parameters);
  std::string input =
      llvm::formatv("memref<{0}x{1}x{2}>", capacity ? capacity : call.rows,
                    call.columns, call.elementType);
  std::string args =
      arguments.names.empty()
          ? ""
          : " args(" + arguments.names + " : " + arguments.types + ")";
  // One row may be the part of one rank; of several it would be cut.
  std::string known = ranks == 1 ? " attributes {ranks = 1 : i64}" : "";
  if (capacity)
    known = llvm::formatv(" attributes {{comms.run_time_extent = {0} : i64}",
                          call.columns);
  auto join = [](const std::string &first, const std::string &rest) {
    return rest.empty() ? first : first + ", " + rest;
  };
  return llvm::formatv(
      "comms.kernel @{0}(%_x: {1}{2}){8} {{\n"
      "  %_team = comms.team world\n"
      "  comms.{0} {3}%_team ins({9} : {10}) outs({4} : {5}){6}\n"
      "{7}  comms.return\n}\n",
      call.op, input, parameters,
      call.reduction.empty() ? "" : call.reduction + " ", outputs.names,
      outputs.types, args,
      regionOf("produce", call.produce) + regionOf("consume", call.consume),
      known, join("%_x", sources.names), join(input, sources.types));
}

llvm::Expected<KernelRequest> commsir::group::writeFused(const FusedCall &call,
                                                         const Group &group,
                                                         int64_t capacity) {
  const Operation *operation = findOperation(call.op);
  int64_t ranks = group.options().ranks, rows = call.rows;
  std::string mistake = findShapeMistake(call, operation, ranks);
  if (mistake.empty()) {
    rows /= operation->cutsInput ? ranks : 1;
    rows *= operation->joinsOutput ? ranks : 1;
    mistake = findArrayMistake(call, rows);
  }
  if (!mistake.empty())
    return makeError(Kind::Usage,
                     showName(call.op) + " with arithmetic: " + mistake);
  KernelRequest request;
  request.name = call.op;
  request.shared = group.onGpu();
  request.channelBytes = capacity ? kSizedChannelBytes : 0;
  request.source = writeFusedText(call, ranks, capacity, rows);
  return request;
}
