//===- CudaGroupState.h - One GPU of a group of processes -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The group behind runtime/group/cuda/CudaGroup.h, for the files that make it
// up:
//
//   CudaGroup.cpp      starting, shrinking, ending
//   GroupWindows.cpp   memory that peers can access
//   GroupRequest.cpp   from a request to machine code
//   GroupKernels.cpp   preparing and discarding kernels, and their channels
//   GroupShared.cpp    channel memory that kernels take in turn
//   GroupLaunch.cpp    arguments, launches, copies
//   GroupCells.cpp     one-sided access
//   GroupFailure.cpp   failures, and the state of the peers
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_CUDAGROUPSTATE_H
#define COMMSIR_RUNTIME_GROUP_CUDA_CUDAGROUPSTATE_H

#include "runtime/cuda/Mesh.h"
#include "runtime/cuda/PeerMemory.h"
#include "runtime/cuda/Seconds.h"
#include "runtime/group/cuda/Channels.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "runtime/group/cuda/EarlyCode.h"
#include "runtime/group/cuda/GroupRequest.h"
#include "runtime/group/cuda/SharedChannels.h"
#include "runtime/group/cuda/StreamSignals.h"
#include "runtime/support/GroupError.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <unistd.h>

namespace commsir::cuda {

namespace abi = mlir::comms::nvvm;

/// Minimum time in seconds that ranks wait for each other while they open GPUs
/// and start NCCL; and a time without limit.
constexpr double kOpeningSeconds = 60, kForever = 1e9;
/// Bytes of pinned memory for reading the states of peers.
constexpr size_t kStagingBytes = size_t(256) << 10;

inline llvm::Error usage(const llvm::Twine &text) {
  return group::makeError(group::GroupError::Kind::Usage, text);
}

/// Converts an error of the driver or of NCCL to a group error.
inline llvm::Error asGroupError(llvm::Error error) {
  if (!error || error.isA<group::GroupError>())
    return error;
  return usage(llvm::toString(std::move(error)));
}

/// Makes the context current for this scope; the thread may have another one,
/// or none.
class CurrentContext {
public:
  CurrentContext(const Driver &cu, CUcontext wanted) : cu(cu) {
    CUcontext now = nullptr;
    pushed = cu.CtxGetCurrent(&now) != CUDA_SUCCESS || now != wanted;
    if (pushed)
      cu.CtxPushCurrent(wanted);
  }
  ~CurrentContext() {
    CUcontext popped;
    if (pushed)
      cu.CtxPopCurrent(&popped);
  }
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

private:
  const Driver &cu;
  bool pushed;
};

class CudaGroupKernel final : public group::GroupKernel {
public:
  llvm::StringRef name() const override { return kernel->name(); }
  llvm::ArrayRef<jit::ArgInfo> args() const override { return visible; }
  llvm::ArrayRef<jit::Choice> choices() const override {
    return kernel->choices();
  }
  const jit::ProofInfo &proof() const override { return kernel->proof(); }

  /// "all_reduce 'k' by one_shot/lamport, 8 blocks of 1 x 512 threads".
  std::string describe() const {
    jit::LaunchShape shape = kernel->shape();
    std::string text = "kernel '" + name().str() + "'" +
                       (label.empty() ? "" : " of " + label) + " (";
    for (const jit::Choice &choice : choices())
      text +=
          choice.op + " by " + choice.algorithm + "/" + choice.protocol + ", ";
    return text + llvm::formatv("{0} blocks of {1} x {2} threads)",
                                shape.blocks, shape.cluster, shape.threads)
                      .str();
  }

  /// Shared by kernels that differ only in their labels.
  std::shared_ptr<jit::CudaKernel> kernel;
  std::shared_ptr<KernelCode> code;
  ChannelLayout layout;
  /// Describes the contents of the arrays if the source does not.
  std::string label;
  uint64_t digest = 0;
  bool concurrent = false;
  /// Number of the first launch.
  uint64_t firstLaunch = 1;
  /// Number of times it was prepared and not discarded.
  unsigned users = 1;
  /// Arguments of `launch`, and their indices in the kernel.
  std::vector<jit::ArgInfo> visible;
  std::vector<unsigned> numbers;
  bool isShared() const { return takesShared(*kernel); }
  /// Maximum bytes of its channels in shared memory.
  uint64_t channelBytes = 0;
  /// Channel set of launches outside of captures.
  ChannelSet *eager = nullptr;
  /// Shared memory: channel set of future captures.
  ChannelSet *graph = nullptr;
  /// Why there was no memory for `graph` when the kernel was prepared.
  std::string uncapturable;
  /// All sets, including `eager`.
  std::deque<ChannelSet> sets;
  std::vector<ChannelSet *> spares;
};

class CudaGroup final : public group::Group {
public:
  CudaGroup(group::GroupOptions options, std::unique_ptr<Device> device,
            std::unique_ptr<Mesh> mesh)
      : Group(std::move(options)), device(std::move(device)),
        cu(this->device->driver()), mesh(std::move(mesh)) {}
  ~CudaGroup() override;
  llvm::Error start();

  llvm::Error setTimeout(double seconds) override;
  llvm::Expected<void *> allocate(size_t bytes,
                                  llvm::StringRef purpose = {}) override;
  llvm::Error release(void *base) override;
  llvm::Error adopt(void *own, size_t bytes,
                    llvm::ArrayRef<uint64_t> parts) override;
  llvm::Error share(void *own, size_t bytes) override;
  void forget(void *own) override;
  std::shared_ptr<group::WindowRecord> findWindow(const void *data,
                                                  size_t bytes) const override {
    return windows.find(data, bytes);
  }
  void *peerAddress(const void *data, int64_t peer) const override;
  llvm::Expected<group::GroupKernel *>
  prepare(const group::KernelRequest &request) override;
  llvm::Expected<bool>
  compileEarly(const group::KernelRequest &request) override;
  llvm::Error discard(group::GroupKernel &which) override;
  llvm::Error compare(llvm::StringRef text) override;
  llvm::Expected<void *> allocateOwn(size_t bytes) override;
  void releaseOwn(void *memory) override;
  llvm::Error copy(void *to, size_t toPitch, const void *from, size_t fromPitch,
                   size_t bytes, int64_t rows, void *stream) override;
  uint64_t captureOf(void *stream) const override;
  size_t alignment() const override { return abi::kAlignment; }
  tune::Config configOf(tune::ConfigQuery &query) const override;
  llvm::Error finish(void *stream) override;
  llvm::Error checkPeer(int64_t peer) override;
  llvm::Error move(void *to, const void *from, size_t bytes,
                   void *stream) override;
  llvm::Error signalCell(const group::CellSignal &signal,
                         void *stream) override;
  llvm::Error waitCell(const group::CellWait &wait, void *stream) override;
  llvm::Error signalCells(llvm::ArrayRef<group::CellSignal> signals,
                          void *stream) override;
  llvm::Error waitCells(llvm::ArrayRef<group::CellWait> waits,
                        void *stream) override;
  llvm::Expected<int64_t> readCell(const int64_t *own) override;
  llvm::Error launch(group::GroupKernel &kernel,
                     llvm::ArrayRef<group::Argument> arguments, void *stream,
                     uint64_t extent) override;
  llvm::Error poll() override;
  std::optional<std::string> ended() const override;
  void abort(llvm::StringRef reason) override;
  llvm::Expected<std::unique_ptr<Group>>
  shrink(llvm::ArrayRef<int64_t> survivors, group::Store &store) override;
  group::GroupCounts counts() const override;
  bool endsSlowly() const override { return true; }
  bool isKept() const override;
  void awaitIdle() override;
  void awaitPeers() override { rendezvousAtEnd(kForever); }
  llvm::StringRef getWindowsNote() const { return windowsNote; }
  const Device &getDevice() const { return *device; }

private:
  /// Symmetric memory.
  struct Range final : group::WindowRecord {
    using WindowRecord::WindowRecord;
    void *reach(const void *data, int64_t peer) const override {
      return parts[peer]
                 ? reinterpret_cast<void *>(parts[peer] + offsetOf(data))
                 : nullptr;
    }
    /// Address of every rank's part as this rank reaches it; 0: out of reach.
    std::vector<CUdeviceptr> parts;
    /// Null: allocated elsewhere.
    std::unique_ptr<Window> window;
    /// Set if the memory was allocated elsewhere and the group shares it.
    std::unique_ptr<PeerMemory> shared;
  };
  /// The last launch of a chain: launches of a group are ordered.
  struct LastLaunch {
    CUstream stream = nullptr;
    bool any = false;
  };
  /// A peer's state of one channel set.
  struct View {
    /// Null: shared memory whose state names a kernel that this rank does not
    /// know.
    const CudaGroupKernel *kernel;
    /// Exactly one of the two is set.
    const ChannelSet *set;
    const SharedChannels *shared;
    abi::State state;
    /// Minimum over all blocks, and the number of busy blocks.
    uint64_t epoch = 0;
    uint32_t busy = 0;
  };

  /// Seconds that ranks wait for each other while the group is made and before
  /// launches, because a peer may be compiling. A peer that is gone is noticed
  /// at once.
  double opening() const { return std::max(timeout(), kOpeningSeconds); }
  double patience() const { return timeout(); }
  llvm::Error makeCommunicator();
  llvm::Expected<bool> agreeOnNccl(std::string &why);
  llvm::Error agreeOnLimits();
  llvm::Error identifyPeers();
  llvm::Error checkRange(const void *own, size_t bytes) const;
  llvm::Error checkOwn(const void *own, size_t bytes) const;
  std::shared_ptr<Range> makeRange(void *own, size_t bytes,
                                   llvm::ArrayRef<CUdeviceptr> parts) const;

  EarlyCode::Compile compilerOf(const group::KernelRequest &request) const;
  llvm::Error loadCode(const group::KernelRequest &request,
                       CudaGroupKernel &made);
  llvm::Error prepareOwn(const group::KernelRequest &request,
                         CudaGroupKernel &made);
  double shareOf(const CudaGroupKernel &kernel) const;
  llvm::Error checkConcurrent(const CudaGroupKernel &made) const;
  llvm::Error comparePeers(const CudaGroupKernel &made);
  llvm::Expected<ChannelSet *>
  makeSet(CudaGroupKernel &kernel, std::unique_ptr<DeviceComm> deviceComm = {});
  llvm::Error makeSets(CudaGroupKernel &kernel);
  uint64_t sharedKernelBytes(uint64_t asked) const;
  llvm::Error makeSharedSets(CudaGroupKernel &kernel);
  SharedChannels *&memoryFor(const CudaGroupKernel &kernel, bool isGraph);
  SharedChannels *&nowOf(SharedChannels::Use use, SharedChannels::Slots slots) {
    return sharedNow[size_t(use) * SharedChannels::kSlots + size_t(slots)];
  }
  llvm::Error growShared(SharedChannels::Use use,
                         const SharedChannelSizes &needs);
  llvm::Error replaceShared(SharedChannels *made);
  llvm::Expected<ChannelSet *>
  bindShared(CudaGroupKernel &kernel, ChannelSet *set, SharedChannels &shared);
  llvm::Error followShared(CudaGroupKernel &kernel);
  llvm::Expected<ChannelSet *> sharedSetFor(CudaGroupKernel &kernel,
                                            unsigned long long capture);
  llvm::Error awaitShared(SharedChannels &memory, CUstream stream,
                          unsigned long long capture);
  llvm::Error recordShared(SharedChannels &memory, CUstream stream,
                           unsigned long long capture);
  llvm::Error recordGraph(SharedChannels &memory, CUstream stream);
  double &timeoutOf(ChannelSet &set) {
    return set.shared ? set.shared->timeout : set.timeout;
  }
  bool hasFailed(const ChannelSet &set) const;
  bool isLaunchedByGraphsOnly(const View &view) const;
  llvm::Expected<View> readView(int64_t peer, CUdeviceptr state,
                                int64_t blocks);
  void dropSets(CudaGroupKernel &kernel, size_t from);
  llvm::Error writeTimeouts();
  llvm::Error writeTimeout(ChannelSet &set, CUstream stream);
  llvm::Expected<std::vector<std::unique_ptr<DeviceComm>>>
  makeDeviceComms(const CudaGroupKernel &kernel, int count);
  bool isEagerIdle();
  llvm::Expected<bool> awaitLaunches(const CudaGroupKernel &kernel);
  llvm::Error fillSet(const CudaGroupKernel &kernel, const ChannelSet &set,
                      const ChannelPool::Piece &piece);
  llvm::Expected<ChannelSet *> setFor(CudaGroupKernel &kernel,
                                      unsigned long long capture);
  llvm::Error bind(const CudaGroupKernel &kernel, ChannelSet &set,
                   llvm::ArrayRef<group::Argument> arguments, uint64_t extent);
  llvm::Error bindOne(const CudaGroupKernel &kernel, ChannelSet &set, size_t i,
                      const group::Argument &argument, uint64_t extent);
  llvm::Error follow(CUstream stream, unsigned long long capture);

  llvm::Error explain(const CudaGroupKernel &kernel, const ChannelSet &set,
                      const abi::ErrorRecord &record);
  llvm::Expected<std::vector<View>> readPeer(int64_t peer);
  std::string describePeer(int64_t peer, const CudaGroupKernel &kernel,
                           const ChannelSet &set, uint64_t launch,
                           bool &differs);
  uint64_t launchNumber(const CudaGroupKernel &kernel, const ChannelSet &set,
                        uint32_t block);
  llvm::Error waitForControl(const llvm::Twine &what, double seconds);
  llvm::Expected<int64_t> lookAt(const group::CellWait &wait);
  llvm::Error waitOnHost(const group::CellWait &wait);
  llvm::Error takeCells(llvm::ArrayRef<group::CellWait> waits, CUstream stream);
  llvm::Error failedTake() const;
  void noteCapture(void *stream);
  void stop(llvm::StringRef reason, group::GroupError::Kind kind);
  llvm::Error stopped() const;
  void noteIdle(llvm::function_ref<bool()> wait);
  void rendezvousAtEnd(double seconds);

  const pid_t process = getpid();
  std::unique_ptr<Device> device;
  const Driver &cu;
  std::unique_ptr<Mesh> mesh;
  std::unique_ptr<Communicator> communicator;
  RequestLimits limits;
  std::unique_ptr<ChannelPool> pool;
  Records records;
  std::string windowsNote;
  /// Two or more ranks use the GPU (see mayShareGpus).
  bool gpuIsShared = false;
  /// Stream of the group's own work: copies, fills, abort words.
  CUstream control = nullptr;
  /// Serializes the use of `control` and `staging`, which `abort` shares.
  std::mutex controlMutex;
  std::optional<Memory> staging, abortWord;
  CUevent order = nullptr, captureOrder = nullptr;
  StreamSignals signals{*device};
  /// Where `take` kernels report timeouts, once there are any.
  Records::Place takes;

  group::WindowTable<Range> windows;

  llvm::StringMap<CudaGroupKernel *> byRequest;
  /// The code of requests, whatever their labels are, while a kernel has it.
  struct LoadedCode {
    std::weak_ptr<jit::CudaKernel> kernel;
    std::weak_ptr<KernelCode> code;
  };
  llvm::StringMap<LoadedCode> loaded;
  /// Code for requests that `prepare` will get.
  EarlyCode early;
  /// Changed, with their sets and records, under both `kernelsMutex` and
  /// `controlMutex`; read under either.
  std::list<CudaGroupKernel> kernels;
  /// Channel memory that kernels share: all that graphs may use, and, for each
  /// use and kind of slots (`nowOf`), the memory for future launches and
  /// captures.
  std::list<SharedChannels> shared;
  std::array<SharedChannels *,
             size_t(SharedChannels::kUses) * SharedChannels::kSlots>
      sharedNow{};
  /// Locked before `controlMutex`. Held while a failure is explained; `abort`
  /// does not wait for that.
  std::mutex kernelsMutex;
  LastLaunch eagerLast, captureLast;
  unsigned long long captureId = 0;

  group::GroupCounts done;
  std::atomic<bool> isStopped{false};
  mutable std::mutex stopMutex;
  group::GroupError::Kind stopKind = group::GroupError::Kind::Aborted;
  std::string stopReason;
  std::vector<cpu::Waiting> stopWaiting;
  /// Cached answer whether no work of the group runs here.
  std::optional<bool> isIdle;
  /// A peer has ended in another way.
  bool leaving = false;
  /// Graphs contain one-sided access.
  std::atomic<bool> hasCaptured{false};
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_CUDAGROUPSTATE_H
