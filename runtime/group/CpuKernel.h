//===- CpuKernel.h - A kernel of a group on the CPU -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CPUKERNEL_H
#define COMMSIR_RUNTIME_GROUP_CPUKERNEL_H

#include "runtime/cpu/Scheduler.h"
#include "runtime/group/CpuGroup.h"

namespace commsir::group {

/// A kernel whose blocks run as fibers of this process.
class CpuKernel final : public GroupKernel, private cpu::Peers {
public:
  static llvm::Expected<std::unique_ptr<CpuKernel>>
  create(CpuGroup &group, Subgroup &subgroup, const KernelRequest &request);

  llvm::StringRef name() const override { return code->name(); }
  llvm::ArrayRef<jit::ArgInfo> args() const override { return visible; }
  llvm::ArrayRef<jit::Choice> choices() const override {
    return code->choices();
  }
  const jit::ProofInfo &proof() const override { return code->proof(); }

  /// Takes channel memory from the subgroup and initializes this rank's part.
  llvm::Error reserve();
  /// Called when the program also holds the kernel: it is then no longer
  /// internal to collectives.
  void keep() { isKept = true; }
  bool isOfCollectives() const { return !isKept; }
  void releaseMemory();
  llvm::Error launch(llvm::ArrayRef<Argument> arguments);
  Subgroup &getSubgroup() const { return subgroup; }

  /// Number of times the kernel was prepared and not discarded.
  unsigned users = 1;

private:
  CpuKernel(CpuGroup &group, Subgroup &subgroup,
            std::unique_ptr<jit::Kernel> compiled, int64_t blocks);
  llvm::Error bind(llvm::ArrayRef<Argument> arguments);
  std::pair<uint64_t, uint64_t> placeOf(const Argument &argument) const;
  const std::string &describe(llvm::ArrayRef<Argument> arguments);
  llvm::Error bindOne(size_t number, const Argument &argument);
  uint64_t digest() const;
  uint64_t barrierBytes() const;
  llvm::Error fail(const cpu::RunError &report);
  bool mayBe(const cpu::BarrierKey &key) const;
  bool goesOn(unsigned tries, Waiter::Clock::time_point &begun);

  // Implementation of cpu::Peers.
  cpu::SharedBarrier findBarrier(const cpu::BarrierKey &key) override;
  void wrote(const char *address, int64_t bytes) override;
  void opened() override { group.wakeAll(); }
  bool rest(llvm::function_ref<bool()> ready) override {
    return group.waiter.rest(subgroup, ready);
  }
  bool poll(bool moves) override { return group.waiter.poll(subgroup, moves); }
  void lock() override;
  void unlock() override;
  std::string describe(int64_t rank) override;
  std::string others() override;

  CpuGroup &group;
  Subgroup &subgroup;
  std::unique_ptr<jit::Kernel> code;
  std::vector<jit::ArgInfo> visible;
  cpu::RunOptions options;
  cpu::Scheduler scheduler;
  /// Offset of this kernel's memory in the subgroup's arena.
  int64_t offset = -1;
  uint64_t bytes = 0;
  std::vector<std::array<char, 16>> scalars;
  int64_t epoch = 0;
  bool isKept = false;
  uint64_t places = 0, describedPlaces = 0;
  /// Text of launches that the caller announced under no other name.
  std::string launchText;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_CPUKERNEL_H
