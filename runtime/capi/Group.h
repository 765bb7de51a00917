//===- Group.h - Groups, as C sees them -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CAPI_GROUP_H
#define COMMSIR_RUNTIME_CAPI_GROUP_H

#include "runtime/capi/Error.h"
#include "runtime/group/Collective.h"
#include "runtime/group/OneSided.h"

#include <memory>
#include <vector>

/// A kernel, as C sees it.
struct commsir_kernel {
  commsir::group::Group &group;
  commsir::group::GroupKernel &kernel;
};

/// A group, as C sees it.
struct commsir_group {
  explicit commsir_group(std::unique_ptr<commsir::group::Group> made)
      : group(std::move(made)), collectives(*group), oneSided(*group) {}
  std::unique_ptr<commsir::group::Group> group;
  commsir::group::Collectives collectives;
  commsir::group::OneSided oneSided;
  std::vector<std::unique_ptr<commsir_kernel>> kernels;
};

namespace commsir::capi {
/// A store that a caller has made.
class CallerStore : public group::Store {
public:
  explicit CallerStore(const commsir_store &store) : store(store) {}
  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override;
  llvm::Expected<std::string> get(llvm::StringRef key, double timeout) override;

private:
  const commsir_store store;
};

/// The status of a group's error, which it notes.
commsir_status reportGroup(llvm::Error error);
} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_GROUP_H
