//===- GroupHandle.h - Groups, as C sees them -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides, once for all languages, which calls of a group may run concurrently.
// A call is made either by `runConcurrently`, from any thread at any time, or
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

/// A kernel handle of the C API. It lives as long as its group's handle.
struct commsir_kernel final : commsir::capi::Tagged {
  static constexpr Kind kKind = Kind::Kernel;
  commsir_kernel(commsir_group &group, commsir::group::GroupKernel &kernel)
      : Tagged(kKind), group(group), kernel(kernel) {}
  commsir_group &group;
  /// Valid only during a call of the group.
  commsir::group::GroupKernel &kernel;
};

/// A prepared collective of the C API.
struct commsir_prepared final : commsir::capi::Tagged {
  static constexpr Kind kKind = Kind::Prepared;
  commsir_prepared() : Tagged(kKind) {}
  struct Content {
    /// A handle; it stays valid after the group ends.
    commsir_group *group = nullptr;
    /// Timeout in seconds; 0: the group's.
    double timeout = 0;
    /// One of both, used by calls of the group in their turns.
    std::unique_ptr<commsir::group::PreparedCollective> call;
    std::unique_ptr<commsir::group::PreparedFused> fused;
  } content;
};

namespace commsir::capi {

/// The state of a group that has not ended.
struct OpenGroup {
  explicit OpenGroup(std::unique_ptr<group::Group> made)
      : group(std::move(made)), collectives(*group), oneSided(*group) {}
  /// Whether this process is a fork of the one that made the group.
  bool isForked() const { return forks != group::countForks(); }
  std::unique_ptr<group::Group> group;
  group::Collectives collectives;
  group::OneSided oneSided;
  group::CallQueue callQueue;

private:
  const unsigned forks = group::countForks();
};

} // namespace commsir::capi

/// A group handle of the C API.
struct commsir_group final : commsir::capi::Handle {
  static constexpr Kind kKind = Kind::Group;
  explicit commsir_group(std::unique_ptr<commsir::group::Group> made)
      : Handle(kKind), open(new commsir::capi::OpenGroup(std::move(made))) {}
  /// Valid only during a call.
  commsir::capi::OpenGroup *open;
  /// One handle per prepared kernel. Changed by queued calls only.
  std::vector<std::unique_ptr<commsir_kernel>> kernels;
  /// A dropped group waits for nothing.
  std::atomic<bool> isDropped{false};

private:
  void end(bool isLate) override;
};

namespace commsir::capi {

using GroupBody = llvm::function_ref<commsir_status(OpenGroup &)>;

/// Runs `body` concurrently with any other call of the group.
commsir_status runConcurrently(commsir_group *group, GroupBody body);
/// Runs `body` once no other queued call of the group runs. `what` names the
/// call in messages; it must be a literal.
commsir_status inTurn(commsir_group *group, const char *what, GroupBody body);

/// Copies the caller's store to `known`. Both functions must be set.
commsir_status readStore(const commsir_store *given, commsir_store &known);

/// A store that the caller implements.
class CallerStore : public group::Store {
public:
  explicit CallerStore(const commsir_store &store) : store(store) {}
  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override;
  llvm::Expected<std::string> get(llvm::StringRef key, double timeout) override;

private:
  const commsir_store store;
};

/// Calls `body`, or returns the error that the handle is null or ended. A call
/// with `evenClosed` is made after `commsir_group_close`, too.
commsir_status makeCall(commsir_group *group, bool evenClosed, GroupBody body);

/// Records a group's error and returns its status.
commsir_status reportGroup(llvm::Error error);
/// Record that the argument `what` is null, or a handle of something else.
commsir_status failNull(const char *what);
commsir_status failOther(const char *what);
/// The text, or "" for null.
std::string textOf(const char *text);
} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_GROUPHANDLE_H
