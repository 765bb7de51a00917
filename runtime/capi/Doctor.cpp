//===- Doctor.cpp - C API: what this machine has --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks, and leaves all as it is: opens no GPU and makes no communicator. What
// is missing has a "problem", which says what to do.
//
//===----------------------------------------------------------------------===//

#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"
#include "runtime/capi/Error.h"
#include "runtime/jit/Cache.h"
#include "runtime/support/Config.h"
#include "runtime/support/Memory.h"
#include "runtime/support/Version.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <thread>

#ifdef COMMSIR_CUDA
#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/jit/cuda/Link.h"
#endif

using namespace commsir;
using namespace commsir::capi;
using llvm::json::Object;

static Object problem(llvm::Error error) {
  return Object{{"problem", jsonText(llvm::toString(std::move(error)))}};
}

static Object lookAtCache() {
  jit::CacheSettings settings = jit::CacheSettings::fromEnvironment();
  Object report{{"folder", jsonText(settings.folder)},
                {"limit_bytes", int64_t(settings.diskLimit)},
                {"compiler", settings.build}};
  if (settings.folder.empty() || !settings.diskLimit) {
    report["problem"] = "kernels for GPUs are not kept on disk; set "
                        "COMMSIR_CACHE_DIR to a folder";
    return report;
  }
  // The cache makes the folder when it needs it: what has to be there and
  // writable is the nearest folder above.
  llvm::StringRef nearest = settings.folder;
  while (!nearest.empty() && !llvm::sys::fs::exists(nearest))
    nearest = llvm::sys::path::parent_path(nearest);
  if (!nearest.empty() &&
      llvm::sys::fs::access(nearest, llvm::sys::fs::AccessMode::Write))
    report["problem"] =
        jsonText(nearest.str() + " cannot be written; set COMMSIR_CACHE_DIR to "
                                 "another folder");
  return report;
}

#ifdef COMMSIR_CUDA

static Object lookAtGpu(const cuda::Driver &driver, int ordinal) {
  CUdevice device = 0;
  if (llvm::Error error =
          driver.check(driver.DeviceGet(&device, ordinal), "cuDeviceGet"))
    return problem(std::move(error));
  char name[256] = "";
  driver.DeviceGetName(name, sizeof(name), device);
  auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver.DeviceGetAttribute(&value, which, device);
    return value;
  };
  return Object{
      {"name", jsonText(name)},
      {"chip",
       "sm_" +
           std::to_string(
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))},
      {"multiprocessors", attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)}};
}

/// Whether each GPU reaches each other's memory.
static bool haveAllPeers(const cuda::Driver &driver, int count) {
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) {
      int reach = a == b;
      CUdevice from = 0, to = 0;
      driver.DeviceGet(&from, a);
      driver.DeviceGet(&to, b);
      if (a != b)
        driver.DeviceCanAccessPeer(&reach, from, to);
      if (!reach)
        return false;
    }
  return true;
}

static Object lookAtCuda() {
  auto driver = cuda::Driver::get();
  if (!driver)
    return problem(driver.takeError());
  int version = 0, count = 0;
  (*driver)->DriverGetVersion(&version);
  (*driver)->DeviceGetCount(&count);
  llvm::json::Array gpus;
  for (int i = 0; i < count; ++i)
    gpus.push_back(lookAtGpu(**driver, i));
  Object report{{"driver", std::to_string(version / 1000) + "." +
                               std::to_string(version % 1000 / 10)},
                {"gpus", std::move(gpus)}};
  if (!count)
    report["problem"] = "the driver has no GPU; look at CUDA_VISIBLE_DEVICES";
  else if (!haveAllPeers(**driver, count))
    report["problem"] = "some GPUs do not reach each other's memory: kernels "
                        "run only on those that do";
  return report;
}

static Object lookAtNccl() {
  auto nccl = cuda::Nccl::get();
  if (!nccl)
    return problem(nccl.takeError());
  int version = (*nccl)->version;
  return Object{{"version", std::to_string(version / 10000) + "." +
                                std::to_string(version / 100 % 100) + "." +
                                std::to_string(version % 100)},
                {"path", jsonText((*nccl)->path)}};
}

static Object lookAtLinker() {
  std::string found = jit::identifyLinker("");
  Object report{{"found", jsonText(found)}};
  if (found.empty() || llvm::StringRef(found).starts_with("driver"))
    report["problem"] = "neither nvJitLink nor ptxas is there, so that the "
                        "driver compiles at every start; pip install "
                        "nvidia-nvjitlink";
  return report;
}

#endif // COMMSIR_CUDA

/// Names of what is registered, as users write them.
template <typename T>
static llvm::json::Array listNames(llvm::ArrayRef<const T *> registered) {
  llvm::json::Array names;
  for (const T *one : registered)
    names.push_back(one->name);
  return names;
}

char *commsir_doctor(void) {
  char *text = nullptr;
  guard([&] {
    Object report{{"version", getVersion()},
                  {"processors", int64_t(std::thread::hardware_concurrency())},
                  {"memory_bytes", int64_t(driver::memoryLimit())},
                  {"cache", lookAtCache()},
                  {"algorithms", listNames(mlir::comms::getAlgorithms())},
                  {"protocols", listNames(mlir::comms::getProtocols())}};
#ifdef COMMSIR_CUDA
    report["cuda"] = lookAtCuda();
    report["nccl"] = lookAtNccl();
    report["linker"] = lookAtLinker();
#else
    report["cuda"] = Object{
        {"problem", "this build of CommsIR has no GPU target: build it where "
                    "the headers of CUDA and NCCL are"}};
#endif
    text = copyText(render(std::move(report)));
    return COMMSIR_OK;
  });
  return text;
}
