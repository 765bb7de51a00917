//===- GroupCollectiveTest.cpp - Collectives of processes -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"
#include "Ranks.h"

#include "runtime/group/Shape.h"
#include "runtime/support/Element.h"

#include <algorithm>
#include <array>
#include <random>

using namespace commsir;
using namespace commsir::test;
using driver::Element;

namespace {
/// One call, as all ranks know it.
struct Case {
  std::string op, reduction;
  Element element = Element::F32;
  int64_t part = 0, root = 0;
  uint64_t seed = 0;

  size_t width() const { return driver::elementBytes(element); }
  bool cuts() const {
    return op == "reduce_scatter" || op == "all_to_all" || op == "scatter";
  }
  bool joins() const {
    return op == "all_gather" || op == "all_to_all" || op == "gather";
  }
  /// Small whole numbers: exact in every type, their sums too.
  double value(int64_t rank, int64_t index) const {
    return double((uint64_t(index) * 7 + rank * 5 + seed) % 3);
  }
  std::vector<char> input(int64_t rank, int64_t ranks) const {
    int64_t count = part * (cuts() ? ranks : 1);
    std::vector<char> bytes(count * width());
    for (int64_t i = 0; i < count; ++i)
      driver::encode(element, value(rank, i), bytes.data() + i * width());
    return bytes;
  }
  double combine(double a, double b) const {
    if (reduction == "sum")
      return a + b;
    if (reduction == "prod")
      return a * b;
    if (reduction == "min")
      return std::min(a, b);
    if (reduction == "max")
      return std::max(a, b);
    auto x = int64_t(a), y = int64_t(b);
    return double(reduction == "and"  ? x & y
                  : reduction == "or" ? x | y
                                      : x ^ y);
  }
  /// Element `index` of the result of `rank`.
  double expected(int64_t rank, int64_t ranks, int64_t index) const {
    if (op == "broadcast")
      return value(root, index);
    if (op == "scatter")
      return value(root, rank * part + index);
    if (op == "all_to_all")
      return value(index / part, rank * part + index % part);
    if (joins())
      return value(index / part, index % part);
    int64_t at = op == "reduce_scatter" ? rank * part + index : index;
    double result = value(0, at);
    for (int64_t peer = 1; peer < ranks; ++peer)
      result = combine(result, value(peer, at));
    return result;
  }
  bool hasOutput(int64_t rank) const {
    return (op != "reduce" && op != "gather") || rank == root;
  }
  group::CollectiveCall call(std::vector<char> &in,
                             std::vector<char> &out) const {
    group::CollectiveCall made;
    made.op = op;
    made.reduction = reduction;
    made.elementType = driver::elementName(element).str();
    made.root = root;
    made.input = {in.data(), int64_t(in.size() / width())};
    made.output = {out.data(), int64_t(out.size() / width())};
    return made;
  }
};
} // namespace

static const char *const kOps[] = {"all_reduce", "reduce_scatter", "all_gather",
                                   "all_to_all", "broadcast",      "reduce",
                                   "gather",     "scatter"};
static const Element kElements[] = {
    Element::I8,  Element::I16,      Element::I32,    Element::I64,
    Element::F16, Element::F8E4M3FN, Element::F8E5M2, Element::BF16,
    Element::F32, Element::F64};

/// Runs the case; notes what differs. Outputs that a rank does not have stay.
static bool runCase(Member &member, group::Collectives &collectives,
                    const Case &one) {
  int64_t ranks = member.ranks;
  std::vector<char> in = one.input(member.rank, ranks);
  int64_t count = one.part * (one.joins() ? ranks : 1);
  std::vector<char> out(count * one.width(), 0x55), kept = out;
  std::string what = one.op + " " + one.reduction + " of " +
                     std::to_string(one.part) + " " +
                     driver::elementName(one.element).str();
  if (llvm::Error error = collectives.run(one.call(in, out), nullptr)) {
    member.complain(what + ": " + llvm::toString(std::move(error)));
    return false;
  }
  if (one.hasOutput(member.rank))
    for (int64_t i = 0; i < count; ++i)
      driver::encode(one.element, one.expected(member.rank, ranks, i),
                     kept.data() + i * one.width());
  if (out == kept)
    return true;
  auto at =
      std::mismatch(out.begin(), out.end(), kept.begin()).first - out.begin();
  member.complain(what + ": wrong at element " +
                  llvm::Twine(at / int64_t(one.width())));
  return false;
}

/// What only moves bytes is compared, too.
TEST(GroupCollectiveTest, TypesOfOneWidthAreDistinguished) {
  for (const char *op : {"all_gather", "all_to_all", "all_reduce"})
    runRanks(3, [&](Member &member) {
      group::Collectives collectives(*member.group);
      std::vector<int32_t> x(12), y(36);
      group::CollectiveCall call;
      call.op = op;
      bool reduces = call.op == "all_reduce", grows = call.op == "all_gather";
      call.reduction = reduces ? "sum" : "";
      call.elementType = "i32";
      call.typeName = "ui32";
      call.input = {x.data(), grows ? 4 : 12};
      call.output = {y.data(), 12};
      const char *odd = reduces ? "i32" : "f32";
      // The kernel is one, which all have.
      for (int turn = 0; turn < 3; ++turn) {
        call.typeName = "ui32";
        if (!member.good(collectives.run(call, nullptr)))
          return;
        if (member.rank == 2)
          call.typeName = odd;
        member.expect(collectives.run(call, nullptr),
                      group::GroupError::Kind::Disagree,
                      {" ui32", std::string(" ") + odd, "rank 2"});
      }
      if (member.group->counts().compiled + member.group->counts().fromCache >
          4)
        member.complain("a kernel was made for a type");
    });
}

/// Of the ranks that only read, one may be done before another comes.
TEST(GroupCollectiveTest, TypesOfABroadcastAreDistinguished) {
  runRanks(3, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::vector<int32_t> x(4, int32_t(member.rank)), y(4);
    group::CollectiveCall call;
    call.op = "broadcast";
    call.elementType = "i32";
    call.typeName = member.rank == 2 ? "i32" : "f32";
    call.input = {x.data(), 4};
    call.output = {y.data(), 4};
    llvm::Error error = collectives.run(call, nullptr);
    if (member.rank == 1 && !error) {
      if (y[0] != 0)
        member.complain("it has got something else");
      error = collectives.run(call, nullptr);
      return member.expect(std::move(error), group::GroupError::Kind::Peer,
                           {"4 f32", "4 i32", "rank 2"});
    }
    member.expect(std::move(error), group::GroupError::Kind::Disagree,
                  {"broadcast of 4 f32", "broadcast of 4 i32", "rank 2"});
  });
}

/// Every operation on every type that arrays hold, every reduction on some.
static void runAll(int64_t ranks) {
  runRanks(ranks, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::mt19937 random(static_cast<unsigned>(ranks));
    auto draw = [&](int64_t below) { return int64_t(random() % below); };
    const char *reductions[] = {"sum", "max", "min", "prod",
                                "and", "or",  "xor"};
    unsigned turn = 0;
    for (const char *op : kOps)
      for (Element element : kElements) {
        Case one;
        one.op = op;
        one.element = element;
        llvm::StringRef name = op;
        if (name.contains("reduce"))
          one.reduction =
              reductions[turn++ % (driver::isFloat(element) ? 4 : 7)];
        one.part = 1 + draw(element == Element::F32 ? 3000 : 90);
        one.root = draw(ranks);
        one.seed = turn;
        if (!runCase(member, collectives, one))
          return;
      }
  });
}

TEST(GroupCollectiveTest, EveryOperationAndTypeOn1Rank) { runAll(1); }
TEST(GroupCollectiveTest, EveryOperationAndTypeOn2Ranks) { runAll(2); }
TEST(GroupCollectiveTest, EveryOperationAndTypeOn3Ranks) { runAll(3); }
TEST(GroupCollectiveTest, EveryOperationAndTypeOn5Ranks) { runAll(5); }

/// Sizes around those at which the way changes: classes, chunks, their ends.
TEST(GroupCollectiveTest, LargeAndOddSizes) {
  runRanks(4, [&](Member &member) {
    group::Collectives collectives(*member.group);
    for (const char *op : {"all_reduce", "reduce_scatter", "all_gather",
                           "all_to_all", "broadcast"})
      for (int64_t part : {131071, 131072, 131073, 524289}) {
        Case one;
        one.op = op;
        if (llvm::StringRef(op).contains("reduce"))
          one.reduction = "sum";
        one.part = part;
        one.root = 2;
        if (!runCase(member, collectives, one))
          return;
      }
  });
}

/// Kernels see two arrays, and what came may lie where something waits to be
/// sent: the input goes through scratch memory, in the first call and later.
TEST(GroupCollectiveTest, PartsAreExchangedInPlace) {
  runRanks(4, [&](Member &member) {
    for (int64_t part : {64, 16384}) {
      group::Collectives collectives(*member.group);
      std::vector<float> x(4 * part), y(4 * part);
      group::CollectiveCall call;
      call.op = "all_to_all";
      call.elementType = "f32";
      call.input = call.output = {x.data(), int64_t(x.size())};
      for (int turn = 0; turn < 4; ++turn) {
        bool inPlace = turn % 2;
        call.output.data = inPlace ? x.data() : y.data();
        for (int64_t i = 0; i < 4 * part; ++i)
          x[i] = float(100000 * member.rank + i);
        if (llvm::Error error = collectives.run(call, nullptr))
          return member.complain(llvm::toString(std::move(error)));
        for (int64_t i = 0; i < 4 * part; ++i)
          if ((inPlace ? x : y)[i] !=
              float(100000 * (i / part) + part * member.rank + i % part))
            return member.complain("element " + std::to_string(i) + " differs");
      }
      group::StagingCounts counts = collectives.counts();
      if (counts.staged != 2 || counts.inPlace != 2)
        member.complain(std::to_string(counts.staged) + " calls were staged");
    }
  });
}

namespace {
/// An array whose parts lie apart, in an order of their own, or one after the
/// other.
struct Apart {
  std::vector<std::vector<int32_t>> memory;
  std::vector<group::Array> parts;

  Apart(llvm::ArrayRef<int64_t> sizes, bool together) {
    int64_t total = 0;
    for (int64_t size : sizes)
      total += size;
    if (together)
      memory.emplace_back(total + 1, -1);
    int32_t *next = together ? memory.front().data() : nullptr;
    for (int64_t size : sizes) {
      if (!together)
        next = memory.emplace_back(size + 1, -1).data();
      parts.push_back({next, size});
      next += size;
    }
  }
  int32_t *at(int64_t part) const {
    return static_cast<int32_t *>(parts[part].data);
  }
};

int32_t partValue(int64_t from, int64_t to, int64_t i) {
  return static_cast<int32_t>(from * 10000000 + to * 1000000 + i);
}
} // namespace

/// Parts of several sizes, that lie apart on some ranks, in several launches:
/// what a part has is moved, and nothing is written behind it.
static void moveParts(Member &member, group::Collectives &collectives,
                      llvm::StringRef op, int64_t most, bool ragged,
                      bool together) {
  int64_t ranks = 4, own = member.rank, root = 1;
  // As much from a to b as from b to a; of gathers the same for all.
  auto sizeOf = [&](int64_t from, int64_t to) {
    if (!ragged)
      return most;
    return most - (op == "all_to_all" ? (from + to) % 4 : from) * (most / 4);
  };
  bool sends = op != "scatter" || own == root;
  bool hears = op != "gather" || own == root;
  bool sendsMany = op == "all_to_all" || op == "scatter";
  bool hearsMany = op != "scatter";
  std::vector<int64_t> in, out;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (sends && (sendsMany || rank == own))
      in.push_back(sizeOf(op == "scatter" ? rank : own, rank));
    if (hears && (hearsMany || rank == own))
      out.push_back(sizeOf(op == "scatter" ? own : rank, own));
  }
  Apart x(in, together), y(out, together);
  for (auto [i, part] : llvm::enumerate(x.parts))
    for (int64_t k = 0; k < part.elements; ++k)
      x.at(i)[k] = partValue(own, sendsMany ? i : 0, k);
  group::CollectiveCall call;
  call.op = op.str();
  call.elementType = "i32";
  call.root = root;
  call.inputParts = x.parts;
  call.outputParts = y.parts;
  call.partElements = most;
  if (!member.good(collectives.run(call, nullptr)))
    return;
  for (auto [i, part] : llvm::enumerate(y.parts)) {
    int64_t from = hearsMany ? i : root;
    for (int64_t k = 0; k < part.elements; ++k)
      if (y.at(i)[k] != partValue(from, sendsMany ? own : 0, k))
        return member.complain(op.str() + ": element " + std::to_string(k) +
                               " from rank " + std::to_string(from));
  }
  for (const auto &memory : y.memory)
    if (memory.back() != -1)
      return member.complain(op.str() + ": there is something behind a part");
}

TEST(GroupCollectiveTest, PartsThatLieApart) {
  runRanks(4, [&](Member &member) {
    group::Collectives collectives(*member.group);
    for (llvm::StringRef op : {"all_gather", "all_to_all", "gather", "scatter"})
      for (int64_t most : {1, 100, 16384, 131073, 300000})
        for (bool ragged : {false, true})
          moveParts(member, collectives, op, most, ragged,
                    /*together=*/member.rank % 2 && !ragged);
  });
}

TEST(GroupCollectiveTest, PartsThatDoNotFitAreRefused) {
  runRanks(2, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::vector<int32_t> x(8), y(8);
    group::CollectiveCall call;
    call.op = "all_gather";
    call.elementType = "i32";
    call.input = {x.data(), 4};
    call.partElements = 4;
    auto refuses = [&](std::vector<group::Array> parts) {
      call.outputParts = std::move(parts);
      member.expect(collectives.run(call, nullptr),
                    group::GroupError::Kind::Usage, {"all_gather"});
    };
    refuses({{y.data(), 4}});
    refuses({{y.data(), 4}, {y.data() + 4, 5}});
    refuses({{y.data(), 4}, {nullptr, 4}});
    call.partElements = 3;
    refuses({{y.data(), 3}, {y.data() + 4, 3}});
    call.partElements = 4;
    call.outputParts = {{y.data() + 4, 4}, {y.data(), 4}};
    member.good(collectives.run(call, nullptr));
  });
}

TEST(GroupCollectiveTest, HundredsOfRandomCallsOn8Ranks) {
  runRanks(8, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::mt19937 random(5);
    for (int call = 0; call < 300; ++call) {
      Case one;
      one.op = kOps[random() % 4];
      if (llvm::StringRef(one.op).contains("reduce"))
        one.reduction = "max";
      one.element = random() % 2 ? Element::F32 : Element::I32;
      one.part = 1 + random() % (random() % 8 ? 50 : 3000);
      one.seed = call;
      if (!runCase(member, collectives, one))
        return;
    }
    // Sizes share kernels.
    if (member.group->counts().compiled + member.group->counts().fromCache >
        180)
      member.complain("every size has a kernel of its own");
  });
}

TEST(GroupCollectiveTest, SendAndRecvBetweenAnyTwo) {
  runRanks(4, [&](Member &member) {
    group::Collectives collectives(*member.group);
    for (int round = 0; round < 30; ++round) {
      // Two pairs at a time, in changing directions; others go on.
      int64_t distance = 1 + round % 3;
      int64_t peer = member.rank ^ distance;
      bool sends = (member.rank < peer) == (round % 2 == 0);
      int64_t from = sends ? member.rank : peer, count = 1 + round * 37;
      std::vector<float> data(count), wanted(count);
      for (int64_t i = 0; i < count; ++i)
        wanted[i] = float(from * 1000 + i + round);
      if (sends)
        data = wanted;
      group::CollectiveCall call;
      call.op = sends ? "send" : "recv";
      call.elementType = "f32";
      call.peer = peer;
      (sends ? call.input : call.output) = {data.data(), count};
      if (!member.good(collectives.run(call, nullptr)))
        return;
      if (data != wanted)
        return member.complain("something else arrived");
    }
  });
}

/// Two ranks are a pair and all: what is dropped of the one, after ranks have
/// disagreed, is dropped of the other.
TEST(GroupCollectiveTest, PairsOfTwoRanksGoOnAfterADisagreement) {
  runRanks(2, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::vector<float> x(100, 1), y(100);
    auto exchange = [&](int64_t count) {
      group::CollectiveCall call;
      call.op = member.rank == 0 ? "send" : "recv";
      call.elementType = "f32";
      call.peer = 1 - member.rank;
      (member.rank == 0 ? call.input : call.output) = {x.data(), count};
      return collectives.run(call, nullptr);
    };
    auto sum = [&](int64_t count) {
      group::CollectiveCall call;
      call.op = "all_reduce";
      call.reduction = "sum";
      call.elementType = "f32";
      call.input = {x.data(), count};
      call.output = {y.data(), count};
      return collectives.run(call, nullptr);
    };
    for (int turn = 0; turn < 3; ++turn) {
      if (!member.good(exchange(100)) || !member.good(sum(100)))
        return;
      member.expect(sum(member.rank == 0 ? 50 : 60),
                    group::GroupError::Kind::Disagree, {"50 f32", "60 f32"});
    }
    member.good(sum(100));
    member.good(exchange(100));
  });
}

/// Ranks compare what sizes do not show, and go on after they have differed.
TEST(GroupCollectiveTest, TextsAreCompared) {
  runRanks(3, [&](Member &member) {
    group::Collectives collectives(*member.group);
    for (int turn = 0; turn < 3; ++turn) {
      if (!member.good(collectives.compare("a matmul of 8 x 6", nullptr)))
        return;
      llvm::StringRef text =
          member.rank == 1 ? "a matmul of 4 x 12" : "a matmul of 8 x 6";
      member.expect(collectives.compare(text, nullptr),
                    group::GroupError::Kind::Disagree,
                    {"a matmul of 4 x 12", "a matmul of 8 x 6", "rank 1"});
    }
    member.good(collectives.compare("", nullptr));
  });
}

TEST(GroupCollectiveTest, SizesOfPairsMayDiffer) {
  runRanks(3, [&](Member &member) {
    group::Collectives collectives(*member.group);
    auto count = [](int64_t from, int64_t to) { return from * 40 + to; };
    for (int turn = 0; turn < 3; ++turn) {
      group::CollectiveCall call;
      call.op = "all_to_all_v";
      call.elementType = "f32";
      std::vector<float> in, out, wanted;
      for (int64_t peer = 0; peer < 3; ++peer) {
        call.sendCounts.push_back(count(member.rank, peer));
        call.recvCounts.push_back(count(peer, member.rank));
        in.insert(in.end(), call.sendCounts.back(),
                  float(member.rank * 10 + peer + turn));
        wanted.insert(wanted.end(), call.recvCounts.back(),
                      float(peer * 10 + member.rank + turn));
      }
      out.resize(wanted.size());
      call.input = {in.data(), int64_t(in.size())};
      call.output = {out.data(), int64_t(out.size())};
      if (!member.good(collectives.run(call, nullptr)))
        return;
      if (out != wanted)
        return member.complain("something else arrived");
      if (turn < 2)
        continue;
      // Rank 1 expects one element less of rank 2.
      if (member.rank == 1)
        --call.recvCounts[2];
      llvm::Error error = collectives.run(call, nullptr);
      if (member.rank == 1)
        member.expect(std::move(error), group::GroupError::Kind::Disagree,
                      {"rank 2 sends 81 elements to rank 1", "expects 80"});
      else
        member.good(std::move(error));
    }
  });
}

/// The same bits as in a world of fibers, of sums that rounding changes.
/// Large outputs in windows are written by the peers, from the fifth use on;
/// whenever a rank's output is none, as ever.
TEST(GroupCollectiveTest, LargeOutputsInWindows) {
  runRanks(3, [](Member &member) {
    group::Collectives collectives(*member.group);
    int64_t ranks = member.ranks, part = (2 << 20) / 4 + 13;
    size_t bytes = part * ranks * sizeof(int32_t);
    auto window = member.group->allocate(bytes);
    auto other = member.group->allocate(bytes);
    if (!window || !other)
      return member.complain("no windows");
    std::vector<int32_t> array(part * ranks), plain(part * ranks);
    auto valueOf = [&](int turn, int64_t rank, int64_t to, int64_t i) {
      return int32_t(turn * 7919 + rank * 101 + to * 13 + i % 1009);
    };
    auto run = [&](const char *op, int turn, int32_t *in, int32_t *out) {
      bool gathers = op == std::string("all_gather");
      for (int64_t to = 0; to < (gathers ? 1 : ranks); ++to)
        for (int64_t i = 0; i < part; ++i)
          in[to * part + i] = valueOf(turn, member.rank, to, i);
      group::CollectiveCall call;
      call.op = op;
      call.elementType = "i32";
      call.input = {in, gathers ? part : part * ranks};
      call.output = {out, part * ranks};
      if (!member.good(collectives.run(call, nullptr)))
        return;
      for (int64_t from = 0; from < ranks; ++from)
        for (int64_t i = 0; i < part; ++i)
          if (out[from * part + i] !=
              valueOf(turn, from, gathers ? 0 : member.rank, i))
            return member.complain(std::string(op) + " in turn " +
                                   llvm::Twine(turn) + ": wrong part " +
                                   llvm::Twine(from));
    };
    auto *out = static_cast<int32_t *>(*window);
    auto *apart = static_cast<int32_t *>(*other);
    for (const char *op : {"all_gather", "all_to_all"}) {
      for (int turn = 0; turn < 4; ++turn)
        run(op, turn, array.data(), out);
      uint64_t staged = collectives.counts().staged;
      for (int turn = 4; turn < 7; ++turn)
        run(op, turn, array.data(), turn % 2 ? out : apart);
      if (collectives.counts().staged != staged)
        member.complain(std::string(op) + " is copied still");
      // Not all in windows, and not all in the same.
      run(op, 7, array.data(), member.rank == 1 ? plain.data() : out);
      run(op, 8, array.data(), member.rank == 1 ? apart : out);
      if (collectives.counts().staged == staged)
        member.complain(std::string(op) + " without windows is not copied");
    }
    // In place: the input is this rank's part of the output.
    run("all_gather", 9, out + member.rank * part, out);
  });
}

TEST(GroupCollectiveTest, SameBitsAsTheWorld) {
  constexpr int64_t ranks = 4;
  auto fill = [](Element element, int64_t rank,
                 llvm::MutableArrayRef<char> to) {
    std::mt19937 random(static_cast<unsigned>(rank + 1));
    size_t width = driver::elementBytes(element);
    for (size_t i = 0; i < to.size(); i += width)
      driver::encode(element, double(random()) / 4e9 - 0.5, to.data() + i);
  };
  for (Element element : {Element::F32, Element::BF16, Element::F16})
    for (int64_t count : {64, 20480}) {
      int64_t width = driver::elementBytes(element);
      std::string type = driver::elementName(element).str();
      std::string array = "memref<" + std::to_string(count) + "x" + type + ">";
      std::string text = "comms.kernel @k(%x: " + array + ", %y: " + array +
                         ") {\n  %t = comms.team world\n  comms.all_reduce sum "
                         "%t ins(%x : " +
                         array + ") outs(%y : " + array +
                         ")\n  comms.return\n}\n";
      std::vector<char> wanted;
      // The parent forks afterwards: a world of one worker has no threads.
      {
        Source source;
        jit::CompileOptions options;
        options.ranks = ranks;
        options.algorithm = "one_shot";
        options.protocol = "pull";
        auto kernel = source.compile(text, options);
        ASSERT_TRUE(kernel);
        auto world = makeWorld(*kernel, cpu::RunOptions());
        ASSERT_TRUE(world);
        for (int64_t rank = 0; rank < ranks; ++rank)
          fill(element, rank, world->memory(0, rank));
        ASSERT_EQ(runReport(*world), "");
        llvm::MutableArrayRef<char> result = world->memory(1, 0);
        wanted.assign(result.begin(), result.end());
      }
      runRanks(ranks, [&](Member &member) {
        group::Collectives collectives(*member.group);
        std::vector<char> in(count * width), out(count * width);
        fill(element, member.rank, in);
        group::CollectiveCall call;
        call.op = "all_reduce";
        call.reduction = "sum";
        call.elementType = type;
        call.input = {in.data(), count};
        call.output = {out.data(), count};
        if (member.good(collectives.run(call, nullptr)) && out != wanted)
          member.complain("other bits than in the world: " + type);
      });
    }
}

TEST(GroupCollectiveTest, FusedArithmetic) {
  runRanks(3, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::vector<float> x(4 * 8, float(member.rank)), bias(8), y(4 * 8);
    for (int i = 0; i < 8; ++i)
      bias[i] = float(i);
    group::FusedCall call;
    call.op = "all_reduce";
    call.reduction = "sum";
    call.elementType = "f32";
    call.rows = 4;
    call.columns = 8;
    call.input = {x.data(), 32};
    call.arguments = {{{bias.data(), 8}, "f32", /*perRow=*/false, 8}};
    call.outputs = {{{y.data(), 32}, "f32", /*perRow=*/true, 8}};
    call.consume = "(%s: tensor<8xf32>, %b: tensor<8xf32>) {\n"
                   "    %o = arith.addf %s, %b : tensor<8xf32>\n"
                   "    comms.yield %o : tensor<8xf32>\n  }";
    for (int turn = 0; turn < 3; ++turn)
      if (!member.good(collectives.run(call, nullptr)))
        return;
    for (int i = 0; i < 32; ++i)
      if (y[i] != float(3 + i % 8))
        return member.complain("wrong at " + llvm::Twine(i));
    call.rows = 5;
    member.expect(collectives.run(call, nullptr),
                  group::GroupError::Kind::Usage,
                  {"the input has 32 elements"});
  });
}

TEST(GroupCollectiveTest, UnsupportedCallsHaveAReason) {
  runRanks(1, [&](Member &member) {
    group::Collectives collectives(*member.group);
    auto why = [&](const char *op, const char *reduction, const char *type) {
      group::CollectiveCall call;
      call.op = op;
      call.reduction = reduction;
      call.elementType = type;
      return collectives.unsupportedReason(call).value_or("");
    };
    if (!why("all_reduce", "sum", "bf16").empty() ||
        !why("all_reduce", "sum", "f8E5M2").empty() ||
        !why("broadcast", "", "f8E3M4").empty())
      member.complain("what can be compiled is refused");
    if (why("all_reduce", "xor", "f32").find("bitwise") == std::string::npos ||
        why("all_reduce", "sum", "complex<f32>").find("complex") ==
            std::string::npos ||
        why("all_reduce", "premul", "f32").find("premul") ==
            std::string::npos ||
        why("reduce", "max", "f8E3M4").find("copied") == std::string::npos ||
        why("shuffle", "", "f32").find("shuffle") == std::string::npos)
      member.complain("a reason is missing");
  });
}

TEST(GroupCollectiveTest, SizesThatNoMemoryHasAreRefused) {
  runRanks(1, [&](Member &member) {
    group::Collectives collectives(*member.group);
    float memory[8] = {};
    constexpr int64_t huge = int64_t(1) << 61;
    for (const char *op : {"all_reduce", "all_gather", "broadcast"}) {
      group::CollectiveCall call;
      call.op = op;
      call.reduction = call.op == "all_reduce" ? "sum" : "";
      call.elementType = "f32";
      call.input = call.output = {memory, huge};
      member.expect(collectives.run(call, nullptr),
                    group::GroupError::Kind::Usage,
                    {"are larger than any memory"});
    }
    group::FusedCall fused;
    fused.op = "all_reduce";
    fused.reduction = "sum";
    fused.elementType = "f32";
    fused.rows = fused.columns = int64_t(1) << 32;
    fused.input = {memory, 0};
    fused.outputs = {{{memory, 8}, "f32", /*perRow=*/true, 8}};
    member.expect(collectives.run(fused, nullptr),
                  group::GroupError::Kind::Usage,
                  {"4294967296 such rows are larger than any memory"});
  });
}
