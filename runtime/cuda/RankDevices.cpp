//===- RankDevices.cpp - Assigns GPUs to ranks ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/RankDevices.h"

#include "runtime/cuda/Cuda.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/YAMLParser.h"

#include <atomic>
#include <cstdlib>

using namespace commsir;
using namespace commsir::cuda;

static std::atomic<bool> keepOpen{false};

void commsir::cuda::keepDevicesOpen() { keepOpen = true; }

template <typename... Values>
static llvm::Error fail(const char *format, Values &&...values) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Values>(values)...).str());
}

bool commsir::cuda::mayShareGpus() {
  const char *value = std::getenv("COMMSIR_SHARE_GPU");
  return value && *value && llvm::StringRef(value) != "0" &&
         llvm::yaml::parseBool(value).value_or(true);
}

int commsir::cuda::getDeviceOf(int64_t rank, llvm::ArrayRef<int> devices) {
  if (size_t(rank) < devices.size())
    return devices[rank];
  if (!mayShareGpus())
    return int(rank);
  auto count = getDeviceCount();
  if (!count)
    llvm::consumeError(count.takeError());
  return count && *count > 0 ? int(rank % *count) : int(rank);
}

std::string commsir::cuda::explainOneGpu(bool canShare) {
  std::string text =
      "a GPU cannot be two ranks, because their kernels wait for each other";
  if (!canShare)
    return text;
  return text +
         " (COMMSIR_SHARE_GPU=1 lets processes take turns on it, for tests: "
         "their results are right, their speed is not)";
}

/// Whether there are as many GPUs as ranks.
static llvm::Error checkCount(int64_t ranks, llvm::ArrayRef<int> devices,
                              bool canShare) {
  auto count = getDeviceCount();
  if (!count)
    return count.takeError();
  if (*count == 0)
    return fail("the CUDA driver shows no GPU (CUDA_VISIBLE_DEVICES hides all, "
                "if it is empty); run on the CPU world (--target cpu)");
  if (!devices.empty() && int64_t(devices.size()) != ranks)
    return fail("{0} for {1} {2}: name one for each rank (--devices 0,1,...), "
                "or none, for the first {1}",
                devices.size() == 1
                    ? "1 GPU is named"
                    : llvm::formatv("{0} GPUs are named", devices.size()).str(),
                ranks, ranks == 1 ? "rank" : "ranks");
  if (devices.empty() && ranks > *count && !(canShare && mayShareGpus()))
    return fail("{0} ranks need {0} GPUs, and this machine shows {1}: {2}. "
                "Take --ranks {1}, or run on the CPU world (--target cpu)",
                ranks, *count, explainOneGpu(canShare));
  return llvm::Error::success();
}

namespace {

/// Takes GPU after GPU, and refuses those that cannot be ranks of one run.
class Gpus {
public:
  explicit Gpus(bool canShare) : canShare(canShare) {}
  llvm::Error add(int ordinal);
  std::string chip;

private:
  bool mayShare() const { return canShare && mayShareGpus(); }
  bool canShare;
  llvm::SmallVector<int> taken;
  /// By what names the GPU itself.
  llvm::StringMap<int> ordinals;
};

} // namespace

llvm::Error Gpus::add(int ordinal) {
  if (llvm::is_contained(taken, ordinal)) {
    if (mayShare())
      return llvm::Error::success();
    return fail("GPU {0} is named twice: {1}", ordinal,
                explainOneGpu(canShare));
  }
  taken.push_back(ordinal);
  auto found = getChip(ordinal);
  if (!found)
    return found.takeError();
  auto uuid = getUuid(ordinal);
  if (!uuid)
    return uuid.takeError();
  auto [known, isNew] = ordinals.try_emplace(*uuid, ordinal);
  if (!isNew && !mayShare())
    return fail("GPUs {0} and {1} are one GPU ({2}): {3}. Show each GPU once "
                "(CUDA_VISIBLE_DEVICES), or take fewer ranks",
                known->second, ordinal, llvm::toHex(*uuid, /*LowerCase=*/true),
                explainOneGpu(canShare));
  if (!chip.empty() && chip != *found)
    return fail("the GPUs are of different kinds ({0} and {1}); name GPUs of "
                "one kind with --devices",
                chip, *found);
  chip = *found;
  return llvm::Error::success();
}

llvm::Expected<std::string>
commsir::cuda::checkMachine(int64_t ranks, llvm::ArrayRef<int> devices,
                            bool canShare) {
  if (auto error = checkCount(ranks, devices, canShare))
    return std::move(error);
  Gpus gpus(canShare);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int ordinal = getDeviceOf(rank, devices);
    if (auto error = gpus.add(ordinal))
      return std::move(error);
    if (!keepOpen)
      continue;
    // One more reference to the primary context, which nobody gives back.
    auto device = Device::open(ordinal);
    if (!device)
      return device.takeError();
    (void)new Device(std::move(*device));
  }
  return gpus.chip;
}
