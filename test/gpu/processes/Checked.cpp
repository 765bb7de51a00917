//===- Checked.cpp - Operations whose results the GPU checks --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/processes/Scenarios.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <random>

using namespace commsir;
using namespace commsir::processes;

namespace {

// As Load.cu numbers them.
enum Op { AllReduce, Max, AllGather, ReduceScatter, AllToAll, Broadcast };
const std::pair<const char *, size_t> types[] = {
    {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i32", 4}};

/// One operation, type and size.
struct Operation {
  GroupKernel *kernel = nullptr;
  int op = 0, type = 0;
  unsigned count = 0, inputs = 0, outputs = 0;
  size_t width = 0;
};

/// As the request names algorithm, protocol and the rest.
Operation makeOperation(Rank &me, Op op, int type, unsigned count,
                        KernelRequest request = {}) {
  struct Kind {
    std::string text;
    unsigned inputParts, outputParts;
  };
  auto ranks = unsigned(me.options.ranks);
  const Kind kinds[] = {{"all_reduce sum", 1, 1},
                        {"all_reduce max", 1, 1},
                        {"all_gather", 1, ranks},
                        {"reduce_scatter sum", ranks, 1},
                        {"all_to_all", ranks, ranks},
                        {"broadcast root " + std::to_string(ranks - 1), 1, 1}};
  const Kind &kind = kinds[op];
  Operation one{nullptr,
                op,
                type,
                count,
                count * kind.inputParts,
                count * kind.outputParts,
                types[type].second};
  request.source =
      llvm::formatv(
          "comms.kernel @one(%x: {1}, %y: {2}) {{\n"
          "  %team = comms.team world\n"
          "  comms.{0} %team ins(%x : {1}) outs(%y : {2})\n"
          "  comms.return\n}\n",
          kind.text,
          llvm::formatv("!comms.window<{0}x{1}>", one.inputs, types[type].first)
              .str(),
          llvm::formatv("!comms.window<{0}x{1}>", one.outputs,
                        types[type].first)
              .str())
          .str();
  one.kernel = me.take(me.group->prepare(request));
  return one;
}

/// Arrays for operations of up to `most` elements of 4 bytes a part, and what
/// was found in them.
class Checked {
public:
  Checked(Rank &me, unsigned most) : me(me) {
    size_t bytes = size_t(most) * 4 * size_t(me.options.ranks);
    x = me.take(me.group->allocate(bytes));
    y = me.take(me.group->allocate(bytes));
    wrong = CUdeviceptr(me.take(me.group->allocateOwn(12)));
    me.check(me.driver().MemsetD8Async(wrong, 0, 12, stream()), "clearing");
  }
  CUstream stream() { return me.streams[0]; }

  /// Fresh data, `between`, the launch, and the check.
  void run(
      const Operation &one, int64_t launch,
      llvm::function_ref<void()> between = [] {}) {
    auto rank = unsigned(me.options.rank), ranks = unsigned(me.options.ranks);
    unsigned most = std::max(one.inputs, one.outputs);
    unsigned blocks = std::min(most / 1024 + 1, 64u);
    me.load("fill", blocks, 256, stream(), x, one.inputs, y, one.outputs,
            one.type, rank, unsigned(launch));
    between();
    Argument arguments[] = {{x, one.inputs * one.width},
                            {y, one.outputs * one.width}};
    me.check(me.group->launch(*one.kernel, arguments, stream()));
    me.load("check", blocks, 256, stream(), y, one.outputs, one.type, one.op,
            one.count, rank, ranks, unsigned(launch), wrong);
  }

  /// Waits; ends the process where anything was wrong up to `launch`.
  void look(int64_t launch) {
    me.check(me.wait(stream()));
    unsigned said[3] = {};
    me.check(me.driver().MemcpyDtoHAsync(said, wrong, sizeof(said), stream()),
             "reading");
    me.check(me.driver().StreamSynchronize(stream()), "reading");
    if (said[0])
      me.fail(llvm::formatv("{0} wrong elements by launch {1}, the first in "
                            "launch {2}, element {3}",
                            said[0], launch, int64_t(said[1]) - 1, said[2])
                  .str());
  }

private:
  Rank &me;
  void *x = nullptr, *y = nullptr;
  CUdeviceptr wrong = 0;
};

} // namespace

/// `number` launches of more than 200 operations, types and sizes: the data of
/// each are new, each result is checked on the device, and now and then a rank
/// is up to 10 ms late.
std::string processes::runChecked(Rank &me) {
  me.join();
  std::vector<Operation> operations;
  for (Op op : {AllReduce, Max, AllGather, ReduceScatter, AllToAll, Broadcast})
    for (int type = 0; type < int(std::size(types)); ++type)
      for (unsigned count :
           {1u, 7u, 64u, 257u, 1024u, 3000u, 8192u, 20001u, 65536u})
        operations.push_back(makeOperation(me, op, type, count));
  Checked checked(me, 65536);
  // The same choices on all ranks, except which of them is late.
  std::mt19937 random(1), late{unsigned(me.options.rank + 2)};
  double start = now();
  for (int64_t launch = 0; launch < me.number; ++launch) {
    checked.run(operations[random() % operations.size()], launch, [&] {
      if (late() % 1000 == 0)
        me.load("delay", 1, 1, checked.stream(), uint64_t(late() % 10'000'000));
    });
    if (launch % 1000 == 999 || launch + 1 == me.number)
      checked.look(launch);
  }
  return llvm::formatv("{0} launches of {1} operations, all checked, in {2:f1} "
                       "s",
                       me.number, operations.size(), now() - start)
      .str();
}

namespace {

/// An all-reduce of rows, less the mean of each row.
class Rows {
public:
  static constexpr int64_t rows = 6, columns = 1024;

  /// Over the arrays of `like`, or its own.
  Rows(Rank &me, KernelRequest request, const Rows *like) : me(me) {
    request.source = llvm::formatv(R"(
comms.kernel @rows(%x: !comms.window<{0}x{1}xf32>, %y: memref<{0}x{1}xf32>) {{
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<{0}x{1}xf32>) outs(%y : memref<{0}x{1}xf32>)
  consume (%sum: tensor<{1}xf32>) {{
    %count = arith.constant dense<{1}.0> : tensor<1xf32>
    %total = comms.row_reduce sum %sum : tensor<{1}xf32> -> tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %means = comms.broadcast_row %mean : tensor<1xf32> -> tensor<{1}xf32>
    %out = arith.subf %sum, %means : tensor<{1}xf32>
    comms.yield %out : tensor<{1}xf32>
  }
  comms.return
})",
                                   rows, columns)
                         .str();
    sum = me.makeSum(request, rows * columns, like ? &like->sum : nullptr);
  }

  /// All numbers are exact.
  void run(int64_t launch) {
    CUstream stream = me.streams[0];
    me.fill(sum, launch, stream);
    me.check(me.launch(sum, stream));
    me.check(me.wait(stream));
    me.check(me.driver().MemcpyDtoHAsync(sum.host.data(), CUdeviceptr(sum.y),
                                         sum.host.size() * 4, stream),
             "reading");
    me.check(me.driver().StreamSynchronize(stream), "reading");
    for (int64_t row = 0; row < rows; ++row) {
      float total = 0;
      for (int64_t i = 0; i < columns; ++i)
        total += wanted(launch, row * columns + i);
      for (int64_t i = 0; i < columns; ++i)
        if (float is = sum.host[size_t(row * columns + i)],
            right = wanted(launch, row * columns + i) - total / columns;
            is != right)
          me.fail(llvm::formatv("row {0}, column {1} is {2}, not {3}", row, i,
                                is, right)
                      .str());
    }
  }

private:
  float wanted(int64_t launch, int64_t i) {
    float sum = 0;
    for (int64_t rank = 0; rank < me.options.ranks; ++rank)
      sum += me.value(rank, launch, i);
    return sum;
  }

  Rank &me;
  Sum sum;
};

KernelRequest by(const char *algorithm, const char *protocol,
                 int64_t cluster = 1) {
  KernelRequest request;
  request.algorithm = algorithm;
  request.protocol = protocol;
  request.blocks = 3;
  request.threads = 128;
  request.cluster = cluster;
  return request;
}

} // namespace

/// A little of everything, for tools under which kernels are slow: each
/// algorithm and protocol, each collective, and rows of one CTA and of a
/// cluster; 1 + `number` launches each.
std::string processes::runVariety(Rank &me) {
  me.join();
  std::vector<Operation> operations;
  auto add = [&](Op op, const char *algorithm, const char *protocol) {
    operations.push_back(
        makeOperation(me, op, 0, 1000, by(algorithm, protocol)));
  };
  for (const char *protocol : {"ll", "ll128", "lamport", "push", "pull"})
    for (const char *algorithm : {"one_shot", "two_shot", "permutation"})
      add(AllReduce, algorithm, protocol);
  add(AllReduce, "ring", "ll");
  add(Max, "one_shot", "ll");
  for (const char *protocol : {"ll", "push", "pull"})
    for (Op op : {AllGather, ReduceScatter, AllToAll, Broadcast})
      add(op, "one_shot", protocol);
  for (Op op : {AllGather, ReduceScatter, AllToAll, Broadcast})
    add(op, "permutation", "push");
  std::vector<Rows> rows;
  rows.reserve(8);
  for (const char *protocol : {"ll", "lamport", "push", "pull"})
    for (int64_t cluster : {1, 4})
      rows.emplace_back(me, by("one_shot", protocol, cluster),
                        rows.empty() ? nullptr : &rows.front());
  Checked checked(me, 1000);
  int64_t launches = 0;
  for (int64_t round = 0; round <= me.number; ++round) {
    for (const Operation &one : operations)
      checked.run(one, launches++);
    checked.look(launches - 1);
    for (Rows &one : rows)
      one.run(launches++ % 50);
  }
  return llvm::formatv("{0} launches of {1} kernels", launches,
                       operations.size() + rows.size())
      .str();
}
