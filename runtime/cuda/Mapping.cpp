//===- Mapping.cpp - Physical memory at addresses -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Mapping.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace commsir::cuda;

Mapping::Mapping(Mapping &&other) noexcept
    : cu(other.cu), context(other.context),
      address(std::exchange(other.address, 0)),
      handles(std::exchange(other.handles, {})),
      sizes(std::exchange(other.sizes, {})), bytes(other.bytes),
      mapped(std::exchange(other.mapped, 0)) {}

Mapping::~Mapping() {
  ContextGuard guard(*cu, context);
  // As it was mapped, part by part.
  size_t at = 0;
  for (size_t size : sizes) {
    if (at + size > mapped)
      break;
    cu->MemUnmap(address + at, size);
    at += size;
  }
  if (address)
    cu->MemAddressFree(address, bytes);
  for (CUmemGenericAllocationHandle handle : handles)
    cu->MemRelease(handle);
}

llvm::Error Mapping::create(const Device &device, size_t size) {
  CUmemAllocationProp properties = describe(device);
  CUmemGenericAllocationHandle handle = 0;
  if (auto error = cu->check(cu->MemCreate(&handle, size, &properties, 0),
                             llvm::formatv("allocating {0} bytes on GPU {1}",
                                           size, device.getOrdinal())
                                 .str()))
    return error;
  add(handle, size);
  return llvm::Error::success();
}

llvm::Error Mapping::open(const File &file, size_t size, int peer) {
  auto *descriptor = reinterpret_cast<void *>(intptr_t(file.get()));
  CUmemGenericAllocationHandle handle = 0;
  if (auto error = cu->check(
          cu->MemImportFromShareableHandle(
              &handle, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          "opening the part of rank " + llvm::Twine(peer)))
    return error;
  add(handle, size);
  return llvm::Error::success();
}

void Mapping::add(CUmemGenericAllocationHandle handle, size_t size) {
  handles.push_back(handle);
  sizes.push_back(size);
}

llvm::Error Mapping::map(const Device &device, int peer) {
  for (size_t size : sizes)
    bytes += size;
  if (auto error = cu->check(cu->MemAddressReserve(&address, bytes, 0, 0, 0),
                             "reserving addresses for a window"))
    return error;
  for (auto [handle, size] : llvm::zip_equal(handles, sizes)) {
    if (auto error = cu->check(cu->MemMap(address + mapped, size, 0, handle, 0),
                               "mapping the part of rank " + llvm::Twine(peer)))
      return error;
    mapped += size;
  }
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device.handle();
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cu->check(
      cu->MemSetAccess(address, bytes, &access, 1),
      llvm::formatv("GPU {0} has no access to the memory of rank {1}: choose "
                    "GPUs that NVLink or PCIe peer-to-peer joins (nvidia-smi "
                    "topo -p2p r)",
                    device.getOrdinal(), peer)
          .str());
}

llvm::Expected<File> Mapping::share(size_t part) const {
  int descriptor = -1;
  if (auto error = cu->check(cu->MemExportToShareableHandle(
                                 &descriptor, handles[part],
                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                             "making a file of a window's part"))
    return std::move(error);
  return File(descriptor);
}

CUmemAllocationProp Mapping::describe(const Device &device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.handle();
  return properties;
}
