//===- FakeDriver.h - What the fake driver's parts share --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// FakeCuda.cpp has the driver's functions, FakeStreams.cpp those of streams and
// graphs, FakeKernels.cpp the kernels that they run.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_FAKEDRIVER_H
#define COMMSIR_TEST_GPU_FAKEDRIVER_H

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace commsir::fake::driver {

/// A captured launch, by value, a copy, or an operation on a cell.
struct Launch {
  std::vector<char> params;
  CUdeviceptr to = 0, from = 0;
  size_t bytes = 0;
  std::function<void()> cell = nullptr;
};

struct Graph {
  unsigned long long id = 0;
  std::vector<Launch> launches;
  bool isInvalid = false;
  /// Whose stream it is captured from.
  CUcontext context = nullptr;
};

struct Stream {
  /// What is captured, or null.
  Graph *capture = nullptr;
  /// State of a kernel that runs until it is aborted, or null.
  volatile uint64_t *running = nullptr;
  bool forever = false;
  CUcontext context = nullptr;
};

/// The value of an environment variable; "": it is not set.
std::string environment(const char *name);

/// COMMSIR_FAKE_QUICK: nothing is counted, fails or runs.
extern const bool isQuick;
/// A kernel of this process runs forever.
extern std::atomic<bool> runsForever;

/// Of all that calls share.
extern std::mutex mutex;
/// The thread's current context, or null.
CUcontext current();

/// Counts a call.
void note(const char *function);
/// Counts the call of a driver function (less its `cu`). Returns how it fails,
/// if it is to.
CUresult enter(const char *function);
/// Begins a driver function: counts the call, and returns if it is to fail.
#define ENTER(name)                                                            \
  if (CUresult bad = enter(#name))                                             \
  return bad

/// A kernel of the device library. Its handle is the address of its entry in a
/// table; every other kernel has the handle of an entry that runs nothing.
struct LibraryKernel {
  const char *name;
  /// Runs it, or adds it to the graph that the stream captures.
  void (*run)(const CUlaunchConfig &config, void **arguments);
};
const LibraryKernel &findLibraryKernel(const char *name);

/// Bytes of the parameters that a kernel known here reads.
size_t paramBytes(const char *params);
/// Runs a kernel of CommsIR, as COMMSIR_FAKE_KERNEL says.
void runKernel(Stream &stream, const char *params);

/// Does `operation` now, or when the graph that the stream captures runs.
void operate(CUstream stream, std::function<void()> operation);
void copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t bytes);
/// A cell of signals.
uint64_t *cellAt(CUdeviceptr cell);
/// Waits for a value of a cell, as cuStreamWaitValue64 with `flags`.
void await(CUdeviceptr cell, uint64_t value, unsigned flags);

/// Ends the captures from streams of a context, as a synchronization does.
/// Returns whether there are any.
bool invalidateCaptures(CUcontext context);

} // namespace commsir::fake::driver

#endif // COMMSIR_TEST_GPU_FAKEDRIVER_H
