//===- TimedStream.cpp - Launches in a row, and their time ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/TimedStream.h"

#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;

/// Launches that one graph may hold.
static constexpr int64_t kMaxGraphLaunches = 4096;

llvm::Error TimedStream::checkGraph(int64_t launches) {
  if (launches <= kMaxGraphLaunches)
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("{0} launches in one graph are too many; at most {1}",
                    launches, kMaxGraphLaunches)
          .str());
}

llvm::Error TimedStream::create(const Driver &cu) {
  driver = &cu;
  if (auto error = cu.check(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                            "cuStreamCreate"))
    return error;
  for (CUevent *event : {&begin, &end})
    if (auto error =
            cu.check(cu.EventCreate(event, CU_EVENT_DEFAULT), "cuEventCreate"))
      return error;
  return llvm::Error::success();
}

void TimedStream::destroy() {
  if (replay)
    driver->GraphExecDestroy(replay);
  if (graph)
    driver->GraphDestroy(graph);
  for (CUevent event : {begin, end})
    if (event)
      driver->EventDestroy(event);
  if (stream)
    driver->StreamDestroy(stream);
  *this = TimedStream();
}

llvm::Error TimedStream::capture(int64_t launches, Launch launch) {
  // The mode restricts this thread only: other ranks' threads allocate and copy
  // at the same time.
  if (auto error =
          driver->check(driver->StreamBeginCapture(
                            stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                        "cuStreamBeginCapture"))
    return error;
  llvm::Error failure = llvm::Error::success();
  for (int64_t i = 0; i < launches && !failure; ++i)
    failure = launch(stream);
  // After a failure, too: the stream must leave its capture.
  CUresult ended = driver->StreamEndCapture(stream, &graph);
  if (failure)
    return failure;
  if (auto error = driver->check(ended, "cuStreamEndCapture"))
    return error;
  return driver->check(driver->GraphInstantiate(&replay, graph, 0),
                       "cuGraphInstantiate");
}

llvm::Error TimedStream::start(int64_t launches, Launch launch,
                               llvm::function_ref<bool()> stops) {
  if (auto error =
          driver->check(driver->EventRecord(begin, stream), "cuEventRecord"))
    return error;
  if (replay) {
    if (auto error =
            driver->check(driver->GraphLaunch(replay, stream), "cuGraphLaunch"))
      return error;
  } else {
    for (int64_t i = 0; i < launches && !(stops && stops()); ++i)
      if (auto error = launch(stream))
        return error;
  }
  return driver->check(driver->EventRecord(end, stream), "cuEventRecord");
}

llvm::Expected<double> TimedStream::microseconds() const {
  float milliseconds = 0;
  if (auto error =
          driver->check(driver->EventElapsedTime(&milliseconds, begin, end),
                        "cuEventElapsedTime"))
    return error;
  return double(milliseconds) * 1000;
}
