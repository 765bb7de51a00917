//===- CollectiveMeeting.cpp - Ranks compare what they call ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small collectives by which ranks compare calls, or wait for each other.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CollectivesImpl.h"

#include "runtime/support/GroupError.h"

#include "llvm/Support/xxhash.h"

using namespace commsir;
using namespace commsir::group;

/// GPU: ranks that name different roots would launch one kernel, and might all
/// end without a result. They compare the first call of each root, but in a
/// capture, which needs no meeting.
llvm::Error Collectives::Impl::compareRoot(const Shape &shape, void *stream) {
  llvm::StringSet<> &known = cacheOf({}).roots;
  if (!group.onGpu() || shape.rootText.empty() ||
      known.contains(shape.rootText) || group.captureOf(stream))
    return llvm::Error::success();
  if (llvm::Error error = group.compare(shape.text))
    return error;
  known.insert(shape.rootText);
  return llvm::Error::success();
}

/// Elements of the array of a meeting, and what their number is a multiple of.
static constexpr int64_t kMeetElements = 16384, kMeetStep = 64;

/// What is behind it in `stream` runs once all ranks have come to it. Its size
/// tells calls apart: ranks that are not in the same call wait for elements
/// that do not come, and time out with what each of them runs.
llvm::Error Collectives::Impl::meet(uint64_t digest, unsigned place,
                                    void *stream) {
  if (!met) {
    auto memory = group.allocateOwn(2 * kMeetElements * sizeof(int32_t));
    if (!memory)
      return memory.takeError();
    met = static_cast<char *>(*memory);
  }
  CollectiveCall call;
  call.op = "all_reduce";
  call.reduction = "max";
  call.elementType = "i32";
  call.typeName = "a meeting";
  call.input = {met, kMeetElements};
  call.output = {met + kMeetElements * sizeof(int32_t), kMeetElements};
  auto plan = planOf(call);
  if (!plan)
    return plan.takeError();
  Shape &shape = (*plan)->shape;
  auto kept = find(cacheOf({}), "meet", {}, shape.text, stream,
                   [&] { return shape.writeSized(kMeetElements, kMeetStep); });
  if (!kept)
    return kept.takeError();
  int64_t steps = kMeetElements / kMeetStep;
  uint64_t number = place ? digest / steps : digest;
  int64_t extent = kMeetStep * int64_t(1 + number % steps);
  return launch(shape, extent, *(*kept)->kernel, shape.input, shape.output,
                stream, extent);
}

/// CPU: a step in which ranks compare a digest and nothing else happens.
llvm::Error Collectives::Impl::meetAs(uint64_t digest, llvm::StringRef text) {
  int32_t sent[16] = {}, heard[16];
  CollectiveCall call;
  call.op = "all_reduce";
  call.reduction = "max";
  call.elementType = "i32";
  call.input = {sent, std::size(sent)};
  call.output = {heard, std::size(heard)};
  auto meeting = planOf(call);
  if (!meeting)
    return meeting.takeError();
  group.announce(digest, text);
  llvm::Error error = runWhole(**meeting, /*stream=*/nullptr);
  group.announce(0, "");
  return error;
}

/// CPU: a call of no elements, which ranks compare like others: one with some
/// would wait for a rank that has none.
llvm::Error Collectives::Impl::runEmpty(const PlainPlan &plan) {
  if (group.onGpu() || group.options().ranks < 2 || !plan.shape.members.empty())
    return llvm::Error::success();
  // Copies: plans may be dropped.
  uint64_t digest = plan.digest;
  std::string text = plan.shape.text;
  return meetAs(digest, text);
}

llvm::Error Collectives::compare(llvm::StringRef text, void *stream) {
  Group &group = impl->group;
  if (group.options().ranks < 2)
    return llvm::Error::success();
  if (llvm::Error error = impl->begin())
    return error;
  if (!group.onGpu())
    return impl->note(impl->meetAs(llvm::xxh3_64bits(text), text));
  if (group.captureOf(stream))
    return llvm::Error::success();
  return impl->note(group.compare(text));
}
