//===- GroupHandle.h - Groups, as C sees them -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which calls of a group may run beside which is decided here, once for all
// languages: a call is made by `runConcurrently`, by any thread at any time, or
// by `inTurn`, one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CAPI_GROUPHANDLE_H
#define COMMSIR_RUNTIME_CAPI_GROUPHANDLE_H

#include "runtime/capi/Error.h"
#include "runtime/capi/Handle.h"
#include "runtime/group/CallQueue.h"
#include "runtime/group/Collective.h"
#include "runtime/group/OneSided.h"
#include "runtime/group/Process.h"

#include <memory>
#include <vector>

/// A kernel, as C sees it. It stays, as its group's handle does.
struct commsir_kernel final : commsir::capi::Tagged {
  static constexpr Kind kKind = Kind::Kernel;
  commsir_kernel(commsir_group &group, commsir::group::GroupKernel &kernel)
      : Tagged(kKind), group(group), kernel(kernel) {}
  commsir_group &group;
  /// Only in a call of the group.
  commsir::group::GroupKernel &kernel;
};

/// A prepared collective, as C sees it.
struct commsir_prepared final : commsir::capi::Tagged {
  static constexpr Kind kKind = Kind::Prepared;
  commsir_prepared() : Tagged(kKind) {}
  struct Content {
    /// A handle, which stays when the group ends.
    commsir_group *group = nullptr;
    /// Seconds; 0: the group's.
    double timeout = 0;
    /// Used by calls of the group in their turns.
    std::unique_ptr<commsir::group::PreparedCollective> call;
  } content;
};

namespace commsir::capi {

/// A group while it is there.
struct OpenGroup {
  explicit OpenGroup(std::unique_ptr<group::Group> made)
      : group(std::move(made)), collectives(*group), oneSided(*group) {}
  /// This process is a child of the one that has made it.
  bool isForked() const { return forks != group::countForks(); }
  std::unique_ptr<group::Group> group;
  group::Collectives collectives;
  group::OneSided oneSided;
  group::CallQueue callQueue;

private:
  const unsigned forks = group::countForks();
};

} // namespace commsir::capi

/// A group, as C sees it.
struct commsir_group final : commsir::capi::Handle {
  static constexpr Kind kKind = Kind::Group;
  explicit commsir_group(std::unique_ptr<commsir::group::Group> made)
      : Handle(kKind), open(new commsir::capi::OpenGroup(std::move(made))) {}
  /// Only in a call.
  commsir::capi::OpenGroup *open;
  /// One for each that was asked for. Changed by calls in their turns.
  std::vector<std::unique_ptr<commsir_kernel>> kernels;
  /// A group that is dropped waits for nothing.
  std::atomic<bool> isDropped{false};

private:
  void end(bool isLate) override;
};

namespace commsir::capi {

using GroupBody = llvm::function_ref<commsir_status(OpenGroup &)>;

/// A call that may run beside all others.
commsir_status runConcurrently(commsir_group *group, GroupBody body);
/// A call that waits until no other such call of the group runs. `what` is what
/// messages call it, a literal.
commsir_status inTurn(commsir_group *group, const char *what, GroupBody body);

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

#endif // COMMSIR_RUNTIME_CAPI_GROUPHANDLE_H
