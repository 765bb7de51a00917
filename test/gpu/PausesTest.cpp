//===- PausesTest.cpp - Kernels that stop on the way, on the CPU ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The CPU side of the scenario `pauses` of processes.py: blocks stop where they
// should, and only there, and the sums are still right.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/processes/Pauses.h"
#include "test/runtime/Ranks.h"

#include <random>

using namespace commsir;
using namespace commsir::test;

namespace {

constexpr int64_t kCount = 768, kBlocks = 2, kTurns = 100000;

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

/// One launch, in which `turns` says who stops; what its loops have computed.
std::vector<int64_t> sumOnce(Member &member, group::GroupKernel &kernel,
                             float *x, float *y, std::vector<int64_t> &turns,
                             int launch) {
  for (int64_t i = 0; i < kCount; ++i)
    x[i] = float(100 * launch + 10 * member.rank + i % 7);
  std::vector<int64_t> done(turns.size(), processes::kUntouched);
  size_t bytes = kCount * sizeof(float), counters = turns.size() * 8;
  group::Argument arguments[] = {{x, bytes},
                                 {y, bytes},
                                 {turns.data(), counters},
                                 {done.data(), counters}};
  if (!member.good(member.group->launch(kernel, arguments, nullptr)))
    return done;
  for (int64_t i = 0; i < kCount; ++i)
    if (y[i] != float(member.ranks * (100 * launch + i % 7) +
                      5 * member.ranks * (member.ranks - 1))) {
      member.complain("element " + llvm::Twine(i) + " is wrong");
      break;
    }
  return done;
}

/// Some block of some rank comes to each place: none is outside the kernel.
void expectAllReached(Member &member, const std::string &name, int64_t places,
                      llvm::ArrayRef<int64_t> reached) {
  std::string mine(size_t(places), '-');
  for (int64_t at : reached)
    mine[size_t(at % places)] = 'x';
  member.good(member.store->set(name + std::to_string(member.rank), mine));
  std::string all(size_t(places), '-');
  for (int64_t rank = 0; rank < member.ranks; ++rank) {
    auto theirs = member.store->get(name + std::to_string(rank), 60);
    if (!theirs)
      return member.complain(llvm::toString(theirs.takeError()));
    for (size_t place = 0; place < all.size(); ++place)
      if ((*theirs)[place] == 'x')
        all[place] = 'x';
  }
  if (all.find('-') != std::string::npos)
    member.complain("nobody comes to some of the places: " + all);
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
  std::vector<int64_t> turns(size_t(kBlocks * paused->places));
  const std::vector<int64_t> idle =
      sumOnce(member, **kernel, x, y, turns, /*launch=*/0);
  const std::vector<int64_t> reached = processes::findReached(idle);
  if (reached.empty())
    member.complain("no block comes to any place");
  expectAllReached(member, (llvm::Twine(algorithm) + protocol).str(),
                   paused->places, reached);
  std::mt19937 random(3); // The same on all ranks.
  for (int launch = 1; launch <= 8 && member.said.empty(); ++launch) {
    int64_t victim = random() % member.ranks;
    int64_t at = reached[random() % reached.size()];
    std::vector<int64_t> wanted = idle;
    if (victim == member.rank)
      wanted[size_t(at)] = processes::spin(turns[size_t(at)] = kTurns);
    if (sumOnce(member, **kernel, x, y, turns, launch) != wanted)
      member.complain("place " + llvm::Twine(at) +
                      " alone had to stop, if any, as long as it was told to");
    turns[size_t(at)] = 0;
  }
  member.good(member.group->release(*memory));
}

class PausesTest : public testing::TestWithParam<int64_t> {};

TEST_P(PausesTest, SumsAreRightWhereverABlockStops) {
  runRanks(GetParam(), [](Member &member) {
    for (const char *algorithm :
         {"one_shot", "two_shot", "ring", "permutation"})
      for (const char *protocol : {"ll", "ll128", "lamport", "push", "pull"}) {
        sumWithPauses(member, algorithm, protocol);
        if (!member.said.empty())
          return member.complain(llvm::Twine(algorithm) + " over " + protocol);
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, PausesTest, testing::Values(2, 3, 8));

} // namespace
