//===- Group.cpp - One rank of a group of processes -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Group.h"

#include "runtime/group/Error.h"

using namespace commsir;
using namespace commsir::group;

llvm::Expected<std::unique_ptr<Group>>
commsir::group::createGroup(const GroupOptions &options, Store &store) {
  if (options.device < 0)
    return createCpuGroup(options, store);
#ifdef COMMSIR_CUDA
  return createCudaGroup(options, store);
#else
  return makeError(GroupError::Kind::Usage,
                   "this build of CommsIR has no GPU target: device has to be "
                   "-1");
#endif
}
