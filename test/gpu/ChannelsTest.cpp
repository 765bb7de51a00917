//===- ChannelsTest.cpp - Channel memory, without a GPU -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/Channels.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace commsir;
using namespace commsir::cuda;

namespace {

/// Memory of the host, behind which something lies.
class HostWindow final : public Window {
public:
  static constexpr size_t kBehind = 512;
  explicit HostWindow(size_t wanted) : memory(wanted + kBehind, char(0xAB)) {
    own = reinterpret_cast<CUdeviceptr>(memory.data());
    bytes = memory.size();
    table = {own};
  }
  std::vector<char> memory;
};

class HostCommunicator final : public Communicator {
public:
  explicit HostCommunicator(const Device &where) { device = &where; }
  llvm::Expected<std::unique_ptr<Window>> allocate(size_t bytes) override {
    auto window = std::make_unique<HostWindow>(bytes);
    last = window.get();
    return window;
  }
  HostWindow *last = nullptr;
};

} // namespace

/// Behind what was asked for lies the mark by which peers know the window. They
/// may look for it when this rank has gone on.
TEST(ChannelPool, TheMarkStays) {
  setenv("COMMSIR_FAKE_GPUS", "1", 1);
  auto device = Device::open(0);
  ASSERT_TRUE(bool(device)) << llvm::toString(device.takeError());
  ContextGuard guard(device->driver(), device->context());
  HostCommunicator communicator(*device);
  ChannelPool pool(communicator, uint64_t(1) << 30);
  auto error = pool.reserve(1000);
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  const std::vector<char> &memory = communicator.last->memory;
  auto behind = memory.end() - HostWindow::kBehind;
  EXPECT_EQ(std::count(memory.begin(), behind, 0), behind - memory.begin());
  EXPECT_EQ(std::count(behind, memory.end(), char(0xAB)),
            int64_t(HostWindow::kBehind));
  // A piece lies in its window, and what is no piece in none.
  ChannelPool::Piece piece = pool.take(1000);
  EXPECT_EQ(pool.windowOf(piece.own), communicator.last);
  EXPECT_EQ(pool.windowOf(0), nullptr);
}
