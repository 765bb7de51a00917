//===- PausesTest.cpp - Kernels that stop on the way, on the CPU ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What processes.py runs on GPUs as `pauses`: that blocks stop where they are
// told to, and only there, and that sums are right nevertheless.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/processes/Pauses.h"
#include "test/runtime/Ranks.h"

#include <random>

using namespace commsir;
using namespace commsir::test;

namespace {

constexpr int64_t kCount = 768, kBlocks = 2, kRanks = 3;

group::KernelRequest request(const char *algorithm, const char *protocol) {
  std::string window = "!comms.window<" + std::to_string(kCount) + "xf32>";
  group::KernelRequest made;
  made.source = "comms.kernel @sum(%x: " + window + ", %y: " + window +
                ") {\n  %team = comms.team world\n  comms.all_reduce sum "
                "%team ins(%x : " +
                window + ") outs(%y : " + window + ")\n  comms.return\n}\n";
  made.algorithm = algorithm;
  made.protocol = protocol;
  made.blocks = kBlocks;
  made.threads = 64;
  return made;
}

/// One launch, in which `turns` says who stops.
void sumOnce(Member &member, group::GroupKernel &kernel, float *x, float *y,
             std::vector<int64_t> &turns, int launch) {
  for (int64_t i = 0; i < kCount; ++i)
    x[i] = float(100 * launch + 10 * member.rank + i % 7);
  std::vector<int64_t> done(turns.size(), -1);
  size_t bytes = kCount * sizeof(float), counters = turns.size() * 8;
  group::Argument arguments[] = {{x, bytes},
                                 {y, bytes},
                                 {turns.data(), counters},
                                 {done.data(), counters}};
  if (!member.good(member.group->launch(kernel, arguments, nullptr)))
    return;
  for (int64_t i = 0; i < kCount; ++i)
    if (y[i] != float(kRanks * (100 * launch + i % 7) + 10 * (0 + 1 + 2)))
      return member.complain("element " + llvm::Twine(i) + " is wrong");
  // A place that no block comes to, as in a branch of other ranks, is left.
  for (size_t at = 0; at < turns.size(); ++at)
    if (turns[at] ? done[at] == 0 : done[at] != 0 && done[at] != -1)
      return member.complain("place " + llvm::Twine(at) +
                             " did not stop as it was told to");
}

void sumWithPauses(Member &member, const char *algorithm,
                   const char *protocol) {
  auto paused =
      processes::insertPauses(request(algorithm, protocol), member.ranks);
  if (!paused)
    return member.complain(llvm::toString(paused.takeError()));
  if (paused->places < 4)
    member.complain("a sum has a send, a receive, a barrier and an end");
  auto kernel = member.group->prepare(paused->request);
  auto memory = member.group->allocate(2 * kCount * sizeof(float));
  if (!kernel || !memory)
    return member.complain(llvm::toString(
        llvm::joinErrors(kernel.takeError(), memory.takeError())));
  auto *x = static_cast<float *>(*memory), *y = x + kCount;
  std::mt19937 random(3); // The same on all ranks.
  for (int launch = 0; launch < 8 && member.said.empty(); ++launch) {
    std::vector<int64_t> turns(size_t(kBlocks * paused->places));
    int64_t victim = random() % kRanks;
    size_t at = random() % turns.size();
    if (victim == member.rank)
      turns[at] = 100000;
    sumOnce(member, **kernel, x, y, turns, launch);
  }
  member.good(member.group->release(*memory));
}

TEST(PausesTest, SumsAreRightWhereverABlockStops) {
  runRanks(kRanks, [](Member &member) {
    for (const char *algorithm :
         {"one_shot", "two_shot", "ring", "permutation"})
      for (const char *protocol : {"ll", "ll128", "lamport", "push", "pull"}) {
        sumWithPauses(member, algorithm, protocol);
        if (!member.said.empty())
          return member.complain(llvm::Twine(algorithm) + " over " + protocol);
      }
  });
}

} // namespace
