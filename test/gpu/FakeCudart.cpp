//===- FakeCudart.cpp - The CUDA runtime over a driver without a GPU ------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Preloaded before libcudart.so, so that torch has CUDA tensors, streams,
// events and graphs on any machine, over the driver of FakeCuda.cpp, which
// counts the calls. torch's own kernels do nothing; copies and memset work.
// With COMMSIR_FAKE_BUSY, no event is complete when it is queried; queries are
// errors while a stream is captured. Other functions come from the real
// runtime, which finds no GPU.
//
//===----------------------------------------------------------------------===//

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

/// Of FakeCuda.cpp.
extern "C" void fakeCount(const char *function);
extern "C" int fakeMayAskInCaptures();

namespace {

thread_local int current = 0;
/// Whether this thread has made a context current.
thread_local bool entered = false;
/// Captures of this process.
std::atomic<int> captures{0};

CUcontext contextOf(int device) {
  CUcontext context = nullptr;
  cuDevicePrimaryCtxRetain(&context, device);
  return context;
}

/// Makes the current device's context current, as the runtime does before
/// whatever needs one.
void enter() {
  if (entered)
    return;
  cuCtxSetCurrent(contextOf(current));
  entered = true;
}

cudaError_t as(CUresult result) { return static_cast<cudaError_t>(result); }

CUstream driverStream(cudaStream_t stream) {
  return reinterpret_cast<CUstream>(stream);
}
CUevent driverEvent(cudaEvent_t event) {
  return reinterpret_cast<CUevent>(event);
}
CUdeviceptr address(const void *memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

} // namespace

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
  cuInit(0);
  return as(cuDeviceGetCount(count));
}

cudaError_t cudaGetDevice(int *device) {
  fakeCount("cudaGetDevice");
  *device = current;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  fakeCount("cudaSetDevice");
  current = device;
  entered = false;
  enter();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
  std::memset(properties, 0, sizeof(*properties));
  std::strcpy(properties->name, "fake");
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->totalGlobalMem = size_t(1) << 34;
  for (int &most : properties->maxGridSize)
    most = 65535;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int device) {
  return as(cuDeviceGetAttribute(
      value, static_cast<CUdevice_attribute>(attribute), device));
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int) {
  std::strncpy(text, "0000:00:00.0", size_t(bytes));
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  return as(cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  enter();
  return as(cuCtxSynchronize());
}

cudaError_t cudaDriverGetVersion(int *version) {
  return as(cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

/// Functions that the driver here does not have fail when they are called.
cudaError_t
cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                 unsigned long long,
                                 cudaDriverEntryPointQueryResult *found) {
  static void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  std::string name = symbol;
  *function = dlsym(driver, (name + "_v2").c_str());
  if (!*function)
    *function = dlsym(driver, symbol);
  if (!*function)
    *function = reinterpret_cast<void *>(
        +[]() -> CUresult { return CUDA_ERROR_NOT_SUPPORTED; });
  if (found)
    *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  enter();
  return as(cuMemAlloc(reinterpret_cast<CUdeviceptr *>(memory), bytes));
}

cudaError_t cudaFree(void *memory) {
  enter();
  return memory ? as(cuMemFree(address(memory))) : cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
  enter();
  return as(cuMemHostAlloc(memory, bytes, flags));
}

cudaError_t cudaFreeHost(void *memory) { return as(cuMemFreeHost(memory)); }

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  enter();
  return as(cuMemGetInfo(free, total));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes,
                                     const void *memory) {
  std::memset(attributes, 0, sizeof(*attributes));
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->hostPointer = const_cast<void *>(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  enter();
  return as(
      cuMemcpyAsync(address(to), address(from), bytes, driverStream(stream)));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream) {
  enter();
  return as(cuMemsetD8Async(address(to), static_cast<unsigned char>(value),
                            bytes, driverStream(stream)));
}

//===----------------------------------------------------------------------===//
// Streams, events and graphs
//===----------------------------------------------------------------------===//

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                         int) {
  enter();
  return as(cuStreamCreate(reinterpret_cast<CUstream *>(stream), flags));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return as(cuStreamDestroy(driverStream(stream)));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return stream ? as(cuStreamQuery(driverStream(stream))) : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return as(cuStreamSynchronize(driverStream(stream)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags) {
  return as(cuStreamWaitEvent(driverStream(stream), driverEvent(event), flags));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus *status) {
  return as(cuStreamIsCapturing(
      driverStream(stream), reinterpret_cast<CUstreamCaptureStatus *>(status)));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *,
                                     const cudaGraphNode_t **,
                                     const cudaGraphEdgeData **, size_t *) {
  cuuint64_t number = 0;
  CUresult result = cuStreamGetCaptureInfo(
      driverStream(stream), reinterpret_cast<CUstreamCaptureStatus *>(status),
      &number, nullptr, nullptr, nullptr, nullptr);
  if (id)
    *id = number;
  return as(result);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  return as(cuThreadExchangeStreamCaptureMode(
      reinterpret_cast<CUstreamCaptureMode *>(mode)));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode) {
  ++captures;
  return as(cuStreamBeginCapture(driverStream(stream),
                                 static_cast<CUstreamCaptureMode>(mode)));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  --captures;
  return as(cuStreamEndCapture(driverStream(stream),
                               reinterpret_cast<CUgraph *>(graph)));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t *, size_t *count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec,
                                          cudaGraph_t graph,
                                          unsigned long long flags) {
  return as(cuGraphInstantiate(reinterpret_cast<CUgraphExec *>(exec),
                               reinterpret_cast<CUgraph>(graph), flags));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return as(
      cuGraphLaunch(reinterpret_cast<CUgraphExec>(exec), driverStream(stream)));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return as(cuGraphDestroy(reinterpret_cast<CUgraph>(graph)));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return as(cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(exec)));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  enter();
  return as(cuEventCreate(reinterpret_cast<CUevent *>(event), flags));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return as(cuEventRecord(driverEvent(event), driverStream(stream)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t) {
  fakeCount("EventQuery");
  if (captures && !fakeMayAskInCaptures())
    return cudaErrorStreamCaptureUnsupported;
  return std::getenv("COMMSIR_FAKE_BUSY") ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (captures)
    return cudaErrorStreamCaptureUnsupported;
  return as(cuEventSynchronize(driverEvent(event)));
}

cudaError_t cudaEventElapsedTime(float *time, cudaEvent_t start,
                                 cudaEvent_t stop) {
  return as(cuEventElapsedTime(time, driverEvent(start), driverEvent(stop)));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return as(cuEventDestroy(driverEvent(event)));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t,
                               cudaStream_t) {
  fakeCount("cudaLaunchKernel");
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *,
                                void **) {
  fakeCount("cudaLaunchKernel");
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *) {
  *kernel = nullptr;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *,
                                                                   int, size_t,
                                                                   unsigned) {
  *blocks = 1;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes,
                                  const void *) {
  std::memset(attributes, 0, sizeof(*attributes));
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}

} // extern "C"
