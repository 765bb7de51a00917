//===- GroupLaunch.cpp - Arguments, launches and copies of a group --------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroupState.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;
using group::Argument;
using group::GroupKernel;
using group::makeError;
using Kind = group::GroupError::Kind;

llvm::Error CudaGroup::bindOne(const CudaGroupKernel &kernel, ChannelSet &set,
                               size_t i, const Argument &argument,
                               uint64_t extent) {
  const jit::ArgInfo &info = kernel.visible[i];
  auto bad = [&](const llvm::Twine &why) {
    return usage("argument '" + info.name + "' of kernel '" + kernel.name() +
                 "' " + why);
  };
  uint64_t *place = &set.params[kernel.code->placeOf(kernel.numbers[i])];
  if (isGroups(info))
    return argument.data ? bad("is the group's own: give no memory for it")
                         : llvm::Error::success();
  if (info.kind == jit::ArgKind::Scalar) {
    if (!argument.data || argument.bytes != info.elementBytes)
      return bad(llvm::formatv("is a scalar of {0} bytes, {1} were given",
                               info.elementBytes, argument.bytes)
                     .str());
    *place = 0;
    std::memcpy(place, argument.data, argument.bytes);
    return llvm::Error::success();
  }
  auto address = reinterpret_cast<CUdeviceptr>(argument.data);
  // With an extent the caller has seen to it that there are enough.
  size_t bytes = extent ? argument.bytes : info.bytes();
  if (argument.bytes < bytes || (!address && bytes))
    return bad(llvm::formatv("takes {0} bytes, {1} were given", bytes,
                             address ? argument.bytes : 0)
                   .str());
  if (address % abi::kAlignment)
    return bad(llvm::formatv("lies at {0:x}, which is not a multiple of {1} "
                             "bytes",
                             address, abi::kAlignment)
                   .str());
  if (info.kind == jit::ArgKind::Memory) {
    *place = address;
  } else {
    auto range = windows.find(argument.data, bytes);
    if (!range)
      return bad(llvm::formatv("at {0:x} is not symmetric memory of the group: "
                               "allocate it by the group, or adopt it",
                               address)
                     .str());
    uint64_t offset = range->offsetOf(argument.data);
    uint64_t handle = range->window ? range->window->ncclHandle() : 0;
    if (kernel.kernel->nccl() && !handle)
      return bad("is memory that NCCL has not registered for this group, which "
                 "its device library does not reach: allocate it by the group");
    kernel.code->bindNcclWindow(set.params.data(), kernel.numbers[i], handle,
                                offset);
    for (auto [peer, part] : llvm::enumerate(range->parts))
      place[peer] = part ? part + offset : 0;
  }
  set.bound[i] = argument.data;
  return llvm::Error::success();
}

llvm::Error CudaGroup::bind(const CudaGroupKernel &kernel, ChannelSet &set,
                            llvm::ArrayRef<Argument> arguments,
                            uint64_t extent) {
  if (arguments.size() != kernel.visible.size())
    return usage(llvm::formatv("kernel '{0}' takes {1} arguments, {2} were "
                               "given",
                               kernel.name(), kernel.visible.size(),
                               arguments.size())
                     .str());
  if (uint64_t version = windows.getVersion(); set.windowsVersion != version) {
    llvm::fill(set.bound, nullptr);
    set.windowsVersion = version;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    // Mostly the arrays of the launch before.
    if (arguments[i].data && arguments[i].data == set.bound[i] &&
        (extent || arguments[i].bytes >= kernel.visible[i].bytes()))
      continue;
    set.bound[i] = nullptr;
    if (auto error = bindOne(kernel, set, i, arguments[i], extent))
      return error;
  }
  return llvm::Error::success();
}

/// Makes `stream` wait for the group's last launch, if that is in another: two
/// ranks that start two kernels in opposite order would wait for each other.
llvm::Error CudaGroup::follow(CUstream stream, unsigned long long capture) {
  if (capture && capture != captureId) {
    captureId = capture;
    captureLast = LastLaunch();
  }
  LastLaunch &last = capture ? captureLast : eagerLast;
  if (last.any && last.stream != stream) {
    CUevent event = capture ? captureOrder : order;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    // A stream that is captured by now is in another order of things.
    bool joins = cu.StreamIsCapturing(last.stream, &status) == CUDA_SUCCESS &&
                 (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) == (capture != 0);
    if (joins) {
      if (auto error = cu.check(cu.EventRecord(event, last.stream),
                                "ordering a launch after the last one"))
        return error;
      if (auto error = cu.check(cu.StreamWaitEvent(stream, event, 0),
                                "ordering a launch after the last one"))
        return error;
    }
  }
  last.stream = stream;
  last.any = true;
  return llvm::Error::success();
}

/// In the order of the stream: launches before keep theirs. No kernel reads it
/// between the halves, as launches on a set of channels follow each other.
llvm::Error CudaGroup::writeTimeout(ChannelSet &set, CUstream stream) {
  uint64_t limit = toNanoseconds(timeout());
  CUdeviceptr place = set.state + abi::kTimeoutOffset;
  const char *what = "changing the timeout of a kernel";
  for (auto [at, half] : {std::pair(place, uint32_t(limit)),
                          std::pair(place + 4, uint32_t(limit >> 32))})
    if (auto error = cu.check(cu.MemsetD32Async(at, half, 1, stream), what))
      return error;
  std::lock_guard lock(kernelsMutex);
  timeoutOf(set) = timeout();
  return llvm::Error::success();
}

llvm::Error CudaGroup::launch(GroupKernel &which,
                              llvm::ArrayRef<Argument> arguments,
                              void *streamPointer, uint64_t extent) {
  auto &kernel = static_cast<CudaGroupKernel &>(which);
  auto *stream = static_cast<CUstream>(streamPointer);
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  CurrentContext current(cu, device->context());
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUresult known = cu.StreamGetCaptureInfo(stream, &status, &id, nullptr,
                                           nullptr, nullptr, nullptr);
  if (known != CUDA_SUCCESS)
    return usage(llvm::toString(
        cu.check(known, "launching kernel '" + kernel.name() + "'")));
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
    return usage("the capture of the stream has failed before");
  unsigned long long capture =
      status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
  if (kernel.isShared())
    if (auto error = followShared(kernel))
      return error;
  ChannelSet *set = kernel.eager;
  if (capture) {
    auto own = setFor(kernel, capture);
    if (!own)
      return own.takeError();
    set = *own;
  }
  // A failure of these channels is told before more is launched on them.
  if (__atomic_load_n(&set->record.host->valid, __ATOMIC_RELAXED))
    return poll();
  if (auto error = bind(kernel, *set, arguments, extent))
    return error;
  set->params[KernelCode::kExtentPlace] = extent;
  if (!kernel.concurrent)
    if (auto error = follow(stream, capture))
      return asGroupError(std::move(error));
  if (timeoutOf(*set) != timeout())
    if (auto error = writeTimeout(*set, stream))
      return asGroupError(std::move(error));
  if (set->shared)
    if (auto error = awaitShared(*set->shared, stream, capture))
      return asGroupError(std::move(error));
  CUresult result = kernel.code->launch(set->params.data(), stream);
  if (result != CUDA_SUCCESS)
    return asGroupError(kernel.code->explain(result));
  if (set->shared)
    if (auto error = recordShared(*set->shared, stream, capture))
      return asGroupError(std::move(error));
  ++done.launches;
  return llvm::Error::success();
}

llvm::Expected<void *> CudaGroup::allocateOwn(size_t bytes) {
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  CUdeviceptr memory = 0;
  if (cu.MemAlloc(&memory, std::max<size_t>(bytes, 1)) != CUDA_SUCCESS)
    return makeError(
        Kind::Limit,
        llvm::formatv("GPU {0} has no {1} KiB left for copies of arrays",
                      settings.device, bytes >> 10)
            .str());
  return reinterpret_cast<void *>(memory);
}

void CudaGroup::releaseOwn(void *memory) {
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  freeMemory(*device, reinterpret_cast<CUdeviceptr>(memory));
}

uint64_t CudaGroup::captureOf(void *stream) const {
  CurrentContext current(cu, device->context());
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUresult known =
      cu.StreamGetCaptureInfo(static_cast<CUstream>(stream), &status, &id,
                              nullptr, nullptr, nullptr, nullptr);
  return known == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id
                                                                            : 0;
}

llvm::Error CudaGroup::copy(void *to, size_t toPitch, const void *from,
                            size_t fromPitch, size_t bytes, int64_t rows,
                            void *streamPointer) {
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  auto *stream = static_cast<CUstream>(streamPointer);
  uint64_t capture = captureOf(stream);
  CurrentContext current(cu, device->context());
  // The memory may be what the group's last launch reads, in another stream.
  if (auto error = follow(stream, capture))
    return asGroupError(std::move(error));
  auto target = reinterpret_cast<CUdeviceptr>(to);
  auto source = reinterpret_cast<CUdeviceptr>(from);
  for (int64_t row = 0; row < rows && bytes; ++row)
    if (auto error =
            cu.check(cu.MemcpyAsync(target + row * toPitch,
                                    source + row * fromPitch, bytes, stream),
                     "copying an array of a collective"))
      return asGroupError(std::move(error));
  return llvm::Error::success();
}

llvm::Error CudaGroup::finish(void *stream) {
  {
    CurrentContext current(cu, device->context());
    if (auto error =
            cu.check(cu.StreamSynchronize(static_cast<CUstream>(stream)),
                     "waiting for a collective"))
      return asGroupError(std::move(error));
  }
  return poll();
}
