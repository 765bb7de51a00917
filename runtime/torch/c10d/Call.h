//===- Call.h - One call of a process group ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call represents a request of torch in parts: copies that make its tensors
// contiguous, collectives of CommsIR between the copies, and the same call on
// another backend in case CommsIR does not compile it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_CALL_H
#define COMMSIR_RUNTIME_TORCH_C10D_CALL_H

#include "runtime/capi/commsir.h"
#include "runtime/torch/c10d/Counters.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <deque>

namespace commsir::torch_c10d {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// Length of "commsir:", the prefix of titles.
inline constexpr size_t kTitlePrefix = 8;

/// Arrays with separate parts, as in commsir_parts.
struct Parts {
  std::vector<commsir_part> inputs, outputs;
  int64_t elements = 0;
};

/// One collective of CommsIR on contiguous memory.
struct Step {
  const char *op = "";
  const char *reduction = "", *type = "";
  int64_t root = 0;
  const void *input = nullptr;
  int64_t inputElements = 0;
  void *output = nullptr;
  int64_t outputElements = 0;
  /// Torch's element type in MLIR syntax.
  const char *named = "";
  /// Separate parts, used in place of the arrays.
  std::shared_ptr<const Parts> parts = nullptr;
};
using Launch = std::function<void(const Step &)>;

/// Whether the storage of `tensor` has all its elements. It does not after
/// `untyped_storage().resize_()` with fewer bytes.
bool isInStorage(const at::Tensor &tensor);

/// Whether `part` is part number `number` of `whole`.
bool isPartOf(const at::Tensor &part, const at::Tensor &whole, int64_t number);

/// A pool of unused events of this process: making one costs as much as
/// recording it. Events are never destroyed, because nothing signals the last
/// Work, and CUDA may be gone by then.
class Events {
public:
  static Events &get();
  /// Returns an event that is recorded in `stream`.
  c10::Event record(const c10::Stream &stream);
  /// Returns an event. All streams that wait for it must have enqueued the
  /// wait.
  void give(c10::Event event);

private:
  std::mutex mutex;
  std::vector<c10::Event> idle;
};

/// The Work that a program holds. It is done when its call is done; a send or
/// receive is done when its transfer is, because the call only begins it in
/// issue order.
class CallWork : public c10d::Work {
public:
  CallWork(int rank, c10d::OpType type, const char *title,
           std::vector<at::Tensor> inputs, std::vector<at::Tensor> outputs,
           uint64_t sequence, std::chrono::milliseconds timeout,
           std::function<void(const std::string &)> abortGroup,
           std::function<void(const c10::Device &)> pollGroup);

  bool isCompleted() override;
  bool isSuccess() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  void blockCurrentStream() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence; }
  ~CallWork() override;

  /// Called by the group when the call was carried out (CPU), enqueued in a
  /// stream (GPU), or begun (sends and receives).
  void complete(std::exception_ptr error = nullptr);
  void begun(WorkPtr inner, std::vector<std::function<void()>> after);
  /// Notes that the call ends at the present point of `stream`. `later`: the
  /// event is recorded only when asked for. It may then be slightly late, but
  /// costs nothing if the program continues in the same stream.
  void recordEnd(const c10::Stream &stream, bool hostWaits, bool later);

private:
  /// The event at the call's end; null on the CPU.
  c10::Event *ended();
  void settle(std::chrono::milliseconds timeout);
  /// Copies received data to its place, once, ordered in the current stream.
  void copyBack();
  bool mustCopyBack();
  /// Same for a query without waiting. Returns false while a GPU is still
  /// working.
  bool hasCopiedBack();
  /// Waits on the host for the end of the call's work in its stream.
  void waitForEnd(std::chrono::milliseconds limit);
  /// Ends the group and throws, because ranks have not arrived within `limit`
  /// or Ctrl-C was pressed.
  [[noreturn]] void giveUp(std::chrono::milliseconds limit, const char *why);
  /// The future, if one was requested.
  c10::intrusive_ptr<c10::ivalue::Future> futureMade();

  std::vector<at::Tensor> outputs;
  uint64_t sequence;
  std::chrono::milliseconds timeout;
  std::function<void(const std::string &)> abortGroup;
  /// Throws failures that launches on that GPU have reported.
  std::function<void(const c10::Device &)> pollGroup;
  std::optional<c10::Stream> used;
  std::optional<c10::Event> end;
  std::mutex endMutex;
  std::vector<WorkPtr> inner;
  std::vector<std::function<void()>> after;
  /// `after` has not run. Stays true until it has ended.
  bool isApart = false;
  std::mutex copying;
  /// GPU: the end of `after`.
  std::optional<c10::Event> copied;
  c10::intrusive_ptr<c10::ivalue::Future> future;
  /// `complete` has marked, or will mark, the future if there is one.
  bool settled = false;
  bool hostWaits = false;
  /// The program has waited for `inner`.
  bool waited = false;
  mutable std::mutex innerMutex;
};

struct Call {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  /// "commsir:all_reduce", for profilers, and the part after the colon.
  const char *title = "", *name = "";
  /// "sum", …; empty for copies.
  const char *reduction = "";
  int64_t root = -1;
  /// Contiguous tensors for the delegate; `kept` holds packed ones.
  std::vector<at::Tensor> inputs, outputs, kept;
  /// Copies around the whole call, and around the steps only.
  std::vector<std::function<void()>> before, after, pack, unpack;
  std::vector<Step> steps;
  /// Runs before the steps: ranks compare what kernels cannot see.
  std::function<void(const Launch &)> compare;
  /// Names of types that are not literals.
  std::deque<std::string> names;
  /// Runs in place of the steps, which then only describe the call.
  std::function<void(const Launch &)> own;
  /// Runs the call on a backend of all ranks; a send or receive on a GPU runs
  /// on a backend of this rank and its peer.
  std::function<WorkPtr(c10d::Backend &)> delegated;
  /// Begins a send or receive on the CPU by CommsIR.
  std::function<WorkPtr()> begins;
  /// Reason why CommsIR does not support the call; empty: ask the library.
  std::string notOwn;
  /// `hostWaits`: waiting for the Work also waits for the GPU on the host.
  /// `reduces`: elements are used in arithmetic, so that booleans must be 0 or
  /// 1.
  /// `refusesLate`: an output whose elements share memory is refused after the
  /// exchange, in which other ranks may only read such a tensor, and would
  /// wait for the rank that refuses it.
  bool pointToPoint = false, async = true, hostWaits = false, reduces = false,
       refusesLate = false;
  uint64_t sequence = 0;
  /// Ticket of the group's recorder.
  size_t ticket = 0;
  std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
  c10::Device device = c10::kCPU;
  c10::intrusive_ptr<CallWork> work;

  /// Returns `tensor` if its elements are contiguous and, with `reduces`, its
  /// booleans are 0 or 1. Otherwise returns a placeholder that is filled before
  /// the call (`in`) and copied back after it (`out`).
  at::Tensor dense(const at::Tensor &tensor, bool in, bool out);
  at::Tensor input(const at::Tensor &t) {
    return inputs.emplace_back(dense(t, true, false));
  }
  /// Same, for a tensor that may overlap outputs of the call: it is then copied
  /// first, unless it `isOwn`, this rank's own part of the output.
  at::Tensor input(const at::Tensor &t, const std::vector<at::Tensor> &written,
                   bool isOwn);
  at::Tensor output(const at::Tensor &t) {
    return outputs.emplace_back(dense(t, false, true));
  }
  /// Prepares outputs that must not overlap. Returns the tensors to use in
  /// their place.
  std::vector<at::Tensor> outputList(const std::vector<at::Tensor> &list);
  at::Tensor both(const at::Tensor &t, bool in = true, bool out = true) {
    inputs.push_back(dense(t, in, out));
    return outputs.emplace_back(inputs.back());
  }
  /// Allocates memory for the duration of the call.
  at::Tensor scratch(int64_t elements, const at::TensorOptions &options);

  /// Adds a step that moves data. Undefined tensors: none.
  void copyStep(const char *op, const at::Tensor &in, const at::Tensor &out,
                int64_t root = 0);
  /// Same, for CPU tensors that are the parts of arrays, one in all or one per
  /// rank, with at most `each` elements. A list may be empty.
  void copyPartsStep(const char *op, const std::vector<at::Tensor> &in,
                     const std::vector<at::Tensor> &out, int64_t each,
                     int64_t root = 0);
  /// Adds a step that reduces, with the extra work that c10d's reductions need.
  /// `result`: whether this rank gets the result.
  void reduceStep(const char *op, const c10d::ReduceOp &reduceOp, at::Tensor in,
                  at::Tensor out, int64_t ranks, int64_t root = 0,
                  bool result = true);
  /// The reduction by which another backend does what `reduceStep` does with
  /// `op`.
  c10d::ReduceOp delegatedOp(const c10d::ReduceOp &op) const;
  /// Returns the options for another backend in place of `opts`.
  template <typename Options>
  Options delegatedOptions(Options opts) const {
    opts.reduceOp = delegatedOp(opts.reduceOp);
    return opts;
  }
  /// Adds a reduce_scatter of CPU tensors in place. Returns false if more work
  /// is needed.
  bool reducePartsStep(const char *op, const c10d::ReduceOp &reduceOp,
                       const std::vector<at::Tensor> &in, const at::Tensor &out,
                       int64_t each);

  /// Records the sizes of the tensors that the last step's array holds. Ranks
  /// must agree on each of them.
  void recordSizes(const std::vector<at::Tensor> &tensors);

  /// Element type of a step's array for messages. The array may hold tensors of
  /// several types as words.
  const char *nameOf(const at::Tensor &tensor);

  std::shared_ptr<const Parts> partsOf(const std::vector<at::Tensor> &in,
                                       const std::vector<at::Tensor> &out,
                                       int64_t each);

  /// Drops tensors, and the copies and calls that hold them.
  void drop();

  void write(CallRecord &record) const;
  CallRecord record() const;
};

/// A call that is a single step on contiguous tensors, at little more than the
/// cost of the step. Equivalent to a Call.
struct PlainCall {
  c10d::OpType type;
  const char *title;
  const at::Tensor &input, &output;
  std::chrono::milliseconds timeout;
  bool async;
  int64_t root = -1;
  /// This rank's index, for arrays with a part per rank.
  int rank = 0;
  uint64_t sequence = 0;
  Step step = {};

  const char *name() const { return title + kTitlePrefix; }
  /// Makes the step. Returns false if more work is needed or an argument is
  /// wrong.
  bool copies(const char *op, int64_t stepRoot = 0);
  bool reduces(const char *op, const c10d::ReduceOp &reduceOp);
  void write(CallRecord &record) const;
  CallRecord record() const;

private:
  bool isPlainLayout() const;
  bool isInPlace() const;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_CALL_H
