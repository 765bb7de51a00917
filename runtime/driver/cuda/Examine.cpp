//===- Examine.cpp - Inspects this machine's GPUs -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/Examine.h"

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/jit/cuda/Link.h"

using namespace commsir;
using llvm::json::Object;

/// A copy of `text` that JSON can hold.
static std::string jsonText(llvm::StringRef text) {
  return llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text);
}

static Object problem(llvm::Error error) {
  return Object{{"problem", jsonText(llvm::toString(std::move(error)))}};
}

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

void commsir::driver::examineCuda(Object &report) {
  report["cuda"] = lookAtCuda();
  report["nccl"] = lookAtNccl();
  report["linker"] = lookAtLinker();
}
