//===- FakeStreams.cpp - Streams and graphs of the fake driver ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/FakeDriver.h"

#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

using namespace commsir::fake;
using namespace commsir::fake::driver;

namespace {

struct Event {
  std::chrono::steady_clock::time_point time;
};

unsigned long long captures = 0;
/// Captures in progress.
std::set<Graph *> capturing;
thread_local CUstreamCaptureMode captureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;

} // namespace

void driver::operate(CUstream stream, std::function<void()> operation) {
  auto *own = reinterpret_cast<Stream *>(stream);
  if (own && own->capture)
    own->capture->launches.push_back({{}, 0, 0, 0, std::move(operation)});
  else
    operation();
}

uint64_t *driver::cellAt(CUdeviceptr cell) {
  return reinterpret_cast<uint64_t *>(cell);
}

// Streams do what they are given at once, so that a wait blocks its caller.
void driver::await(CUdeviceptr where, uint64_t value, unsigned flags) {
  while (true) {
    uint64_t now = __atomic_load_n(cellAt(where), __ATOMIC_ACQUIRE);
    if (flags == CU_STREAM_WAIT_VALUE_EQ ? now == value
                                         : int64_t(now - value) >= 0)
      return;
    std::this_thread::yield();
  }
}

void driver::copy(CUstream stream, CUdeviceptr to, CUdeviceptr from,
                  size_t bytes) {
  auto *own = reinterpret_cast<Stream *>(stream);
  if (own && own->capture)
    own->capture->launches.push_back({{}, to, from, bytes});
  else
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
                bytes);
}

/// Whatever the thread's mode, as on an H200. Captures of other GPUs go on.
bool driver::invalidateCaptures(CUcontext context) {
  std::lock_guard lock(mutex);
  bool ended = false;
  for (Graph *graph : capturing)
    if (graph->context == context)
      ended = graph->isInvalid = true;
  return ended;
}

extern "C" CUresult cuStreamCreate(CUstream *stream, unsigned) {
  ENTER(StreamCreate);
  *stream = reinterpret_cast<CUstream>(new Stream);
  reinterpret_cast<Stream *>(*stream)->context = current();
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamDestroy(CUstream stream) {
  ENTER(StreamDestroy);
  delete reinterpret_cast<Stream *>(stream);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamQuery(CUstream stream) {
  ENTER(StreamQuery);
  auto &s = *reinterpret_cast<Stream *>(stream);
  if (s.forever || (s.running && !*s.running))
    return CUDA_ERROR_NOT_READY;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamSynchronize(CUstream) {
  ENTER(StreamSynchronize);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  ENTER(StreamBeginCapture);
  std::lock_guard lock(mutex);
  auto *own = reinterpret_cast<Stream *>(stream);
  own->capture = new Graph{++captures, {}, false, own->context};
  capturing.insert(own->capture);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  ENTER(StreamEndCapture);
  std::lock_guard lock(mutex);
  auto *own =
      std::exchange(reinterpret_cast<Stream *>(stream)->capture, nullptr);
  capturing.erase(own);
  if (own->isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = reinterpret_cast<CUgraph>(own);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamGetCaptureInfo(CUstream stream,
                                           CUstreamCaptureStatus *status,
                                           cuuint64_t *id, CUgraph *,
                                           const CUgraphNode **,
                                           const CUgraphEdgeData **, size_t *) {
  ENTER(StreamGetCaptureInfo);
  auto *own = reinterpret_cast<Stream *>(stream);
  bool active = own && own->capture;
  *status =
      active ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (active && id)
    *id = own->capture->id;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamIsCapturing(CUstream stream,
                                        CUstreamCaptureStatus *status) {
  ENTER(StreamIsCapturing);
  auto *own = reinterpret_cast<Stream *>(stream);
  *status = own && own->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr cell,
                                         cuuint64_t value, unsigned) {
  ENTER(StreamWriteValue64);
  operate(stream,
          [=] { __atomic_store_n(cellAt(cell), value, __ATOMIC_RELEASE); });
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr cell,
                                        cuuint64_t value, unsigned flags) {
  ENTER(StreamWaitValue64);
  operate(stream, [=] { await(cell, value, flags); });
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
  ENTER(StreamWaitEvent);
  return CUDA_SUCCESS;
}

extern "C" CUresult
cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER(ThreadExchangeStreamCaptureMode);
  std::swap(*mode, captureMode);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph,
                                       unsigned long long) {
  ENTER(GraphInstantiate);
  *exec = reinterpret_cast<CUgraphExec>(
      new Graph(*reinterpret_cast<Graph *>(graph)));
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  ENTER(GraphLaunch);
  for (const Launch &launch : reinterpret_cast<Graph *>(exec)->launches)
    if (launch.bytes)
      copy(nullptr, launch.to, launch.from, launch.bytes);
    else if (launch.cell)
      launch.cell();
    else
      runKernel(*reinterpret_cast<Stream *>(stream), launch.params.data());
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph,
                                              const CUgraphNode *, size_t,
                                              CUevent event) {
  ENTER(GraphAddEventRecordNode);
  *node = reinterpret_cast<CUgraphNode>(event);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode *,
                                           const CUgraphNode *,
                                           const CUgraphEdgeData *, size_t) {
  ENTER(GraphAddDependencies);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGraphRemoveDependencies(CUgraph, const CUgraphNode *,
                                              const CUgraphNode *,
                                              const CUgraphEdgeData *, size_t) {
  ENTER(GraphRemoveDependencies);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGraphDestroy(CUgraph graph) {
  ENTER(GraphDestroy);
  delete reinterpret_cast<Graph *>(graph);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGraphExecDestroy(CUgraphExec exec) {
  ENTER(GraphExecDestroy);
  delete reinterpret_cast<Graph *>(exec);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuEventCreate(CUevent *event, unsigned) {
  ENTER(EventCreate);
  *event = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuEventRecord(CUevent event, CUstream) {
  ENTER(EventRecord);
  reinterpret_cast<Event *>(event)->time = std::chrono::steady_clock::now();
  return CUDA_SUCCESS;
}

extern "C" CUresult cuEventSynchronize(CUevent) {
  ENTER(EventSynchronize);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuEventElapsedTime(float *time, CUevent start,
                                       CUevent stop) {
  ENTER(EventElapsedTime);
  *time = std::chrono::duration<float, std::milli>(
              reinterpret_cast<Event *>(stop)->time -
              reinterpret_cast<Event *>(start)->time)
              .count();
  return CUDA_SUCCESS;
}

extern "C" CUresult cuEventDestroy(CUevent event) {
  ENTER(EventDestroy);
  delete reinterpret_cast<Event *>(event);
  return CUDA_SUCCESS;
}

/// Whether this thread has said that captures of others are none of its
/// business.
extern "C" int fakeMayAskInCaptures() {
  return captureMode == CU_STREAM_CAPTURE_MODE_RELAXED;
}
