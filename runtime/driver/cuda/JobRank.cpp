//===- JobRank.cpp - A process's place in a job of ranks ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/JobRank.h"

#include "runtime/support/JobVariables.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"

#include <climits>
#include <optional>

using namespace commsir;
using namespace commsir::driver;

static llvm::Error fail(const llvm::Twine &text) {
  return llvm::createStringError(text);
}

/// The number in the first of the variables that is set; none: none is.
static llvm::Expected<std::optional<int64_t>>
readFirst(llvm::ArrayRef<const char *> names) {
  for (const char *name : names) {
    std::optional<std::string> text = llvm::sys::Process::GetEnv(name);
    if (!text)
      continue;
    int64_t number = 0;
    if (llvm::StringRef(*text).getAsInteger(10, number) || number < 0)
      return fail(llvm::Twine(name) + " is '" + *text +
                  "', which is not a number of at least 0");
    return std::optional(number);
  }
  return std::optional<int64_t>();
}

llvm::Expected<JobRank> JobRank::find() {
  auto rank = readFirst(kRankVariables);
  if (!rank)
    return rank.takeError();
  auto ranks = readFirst(kRanksVariables);
  if (!ranks)
    return ranks.takeError();
  if (!*rank || !*ranks)
    return fail("--rendezvous makes this process one rank of a job: the "
                "variables RANK and WORLD_SIZE (as torchrun sets them) must "
                "say which");
  if (**rank >= **ranks)
    return fail(llvm::formatv("RANK is {0} and WORLD_SIZE {1}: ranks count "
                              "from 0",
                              **rank, **ranks)
                    .str());
  auto local = readFirst(kLocalRankVariables);
  if (!local)
    return local.takeError();
  int64_t place = local->value_or(**rank);
  if (place > INT_MAX)
    return fail(
        llvm::formatv("rank {0} of this host: no host has as many GPUs", place)
            .str());
  return JobRank{**rank, **ranks, int(place)};
}
