//===- Call.h - One call of a process group ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call is what torch asked for, taken apart: copies that make its tensors
// flat, collectives of CommsIR between them, and the same call on another
// backend for when CommsIR does not compile it.
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

/// Letters of "commsir:", by which titles begin.
inline constexpr size_t kTitlePrefix = 8;

/// Arrays of which each part lies by itself, as commsir_parts has them.
struct Parts {
  std::vector<commsir_part> inputs, outputs;
  int64_t elements = 0;
};

/// One collective of CommsIR on flat memory.
struct Step {
  const char *op = "";
  const char *reduction = "", *type = "";
  int64_t root = 0;
  const void *input = nullptr;
  int64_t inputElements = 0;
  void *output = nullptr;
  int64_t outputElements = 0;
  /// What torch takes the elements for, in MLIR's words.
  const char *named = "";
  /// In place of arrays: their parts.
  std::shared_ptr<const Parts> parts = nullptr;
};
using Launch = std::function<void(const Step &)>;

/// Whether `part` lies in `whole` as its part of that number.
bool isPartOf(const at::Tensor &part, const at::Tensor &whole, int64_t number);

/// Events of this process that are in no use: to make one costs as much as to
/// record it. They are never destroyed, since nothing says when the last Work
/// is, and CUDA may be gone by then.
class Events {
public:
  static Events &get();
  /// Recorded in `stream`.
  c10::Event record(const c10::Stream &stream);
  /// Who waits for it has told its stream so.
  void give(c10::Event event);

private:
  std::mutex mutex;
  std::vector<c10::Event> idle;
};

/// The Work that a program holds. It is done when its call is, and, for sends
/// and receives, when those are: they only begin in issue order.
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

  /// The side of the group: the call has been carried out (CPU), put into a
  /// stream (GPU), or begun (sends and receives).
  void complete(std::exception_ptr error = nullptr);
  void begun(WorkPtr inner, std::vector<std::function<void()>> after);
  /// The call's work ends where `stream` is now. With `later`, an event that
  /// says so is recorded only when somebody asks: right, if a little late, and
  /// free for whoever goes on in that stream.
  void recordEnd(const c10::Stream &stream, bool hostWaits, bool later);

private:
  /// The event of the call's end; null on the CPU.
  c10::Event *ended();
  void settle(std::chrono::milliseconds timeout);
  /// Copies what was received to where it belongs, once, when that is there for
  /// the current stream.
  void copyBack();
  bool mustCopyBack();
  /// The same for who only asks, once all is there; false: a GPU is at it.
  bool hasCopiedBack();
  /// Waits on the host for the end of what the call put into its stream.
  void waitForEnd(std::chrono::milliseconds limit);
  /// Ends the group and throws: nobody has come within `limit`, or Ctrl-C has.
  [[noreturn]] void giveUp(std::chrono::milliseconds limit, const char *why);
  /// The future, if somebody has asked for it.
  c10::intrusive_ptr<c10::ivalue::Future> futureMade();

  std::vector<at::Tensor> outputs;
  uint64_t sequence;
  std::chrono::milliseconds timeout;
  std::function<void(const std::string &)> abortGroup;
  /// Throws what launches on that GPU have reported.
  std::function<void(const c10::Device &)> pollGroup;
  std::optional<c10::Stream> used;
  std::optional<c10::Event> end;
  std::mutex endMutex;
  std::vector<WorkPtr> inner;
  std::vector<std::function<void()>> after;
  /// `after` has not run; not before it has ended is this false.
  bool isApart = false;
  std::mutex copying;
  /// On a GPU: where `after` ended.
  std::optional<c10::Event> copied;
  c10::intrusive_ptr<c10::ivalue::Future> future;
  /// The future, if there is one, is or will be marked by `complete`.
  bool settled = false;
  bool hostWaits = false;
  /// Somebody has waited for `inner`.
  bool waited = false;
  mutable std::mutex innerMutex;
};

struct Call {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  /// "commsir:all_reduce", for profiles, and the part after the colon.
  const char *title = "", *name = "";
  /// "sum", …; empty for copies.
  const char *reduction = "";
  int64_t root = -1;
  /// Contiguous tensors, as the delegate gets them; `kept` are packed ones.
  std::vector<at::Tensor> inputs, outputs, kept;
  /// Copies around the call, and around the steps alone.
  std::vector<std::function<void()>> before, after, pack, unpack;
  std::vector<Step> steps;
  /// What ranks do before the steps: they compare what kernels do not see.
  std::function<void(const Launch &)> compare;
  /// Names of types that are no constants.
  std::deque<std::string> names;
  /// In place of running the steps, which then only say what will be asked.
  std::function<void(const Launch &)> own;
  /// By a backend for all ranks; a send or a receive on a GPU by one for this
  /// rank and its peer.
  std::function<WorkPtr(c10d::Backend &)> delegated;
  /// A send or a receive on the CPU, by CommsIR.
  std::function<WorkPtr()> begins;
  /// Why CommsIR has nothing for the call; empty: it is asked.
  std::string notOwn;
  /// `hostWaits`: who waits for the work waits for the GPU. `reduces`: what is
  /// read is calculated with, which takes booleans that are 0 or 1.
  bool pointToPoint = false, async = true, hostWaits = false, reduces = false;
  uint64_t sequence = 0;
  /// Of the group's recorder.
  size_t ticket = 0;
  std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
  c10::Device device = c10::kCPU;
  c10::intrusive_ptr<CallWork> work;

  /// `tensor` if its memory is what it holds, elements behind each other and
  /// booleans 0 or 1 if `reduces`; else a stand-in that is filled before the
  /// call (`in`) and copied back after it (`out`).
  at::Tensor dense(const at::Tensor &tensor, bool in, bool out);
  at::Tensor input(const at::Tensor &t) {
    return inputs.emplace_back(dense(t, true, false));
  }
  /// The same of a tensor that may share memory with what the call writes: it
  /// is copied before that, unless it `isOwn`, this rank's own part of it.
  at::Tensor input(const at::Tensor &t, const std::vector<at::Tensor> &written,
                   bool isOwn);
  at::Tensor output(const at::Tensor &t) {
    return outputs.emplace_back(dense(t, false, true));
  }
  /// Outputs that have memory of their own each. Returns what stands for them.
  std::vector<at::Tensor> outputList(const std::vector<at::Tensor> &list);
  at::Tensor both(const at::Tensor &t, bool in = true, bool out = true) {
    inputs.push_back(dense(t, in, out));
    return outputs.emplace_back(inputs.back());
  }
  /// Memory for the time of the call.
  at::Tensor scratch(int64_t elements, const at::TensorOptions &options);

  /// A step that moves bytes: root, and tensors (undefined: none).
  void copyStep(const char *op, const at::Tensor &in, const at::Tensor &out,
                int64_t root = 0);
  /// The same on CPU tensors that are parts of arrays, one or one a rank, and
  /// have at most `each` elements; a list may be empty.
  void copyPartsStep(const char *op, const std::vector<at::Tensor> &in,
                     const std::vector<at::Tensor> &out, int64_t each,
                     int64_t root = 0);
  /// A step that reduces, with what c10d's reductions need around it. `result`:
  /// whether this rank gets one.
  void reduceStep(const char *op, const c10d::ReduceOp &reduceOp, at::Tensor in,
                  at::Tensor out, int64_t ranks, int64_t root = 0,
                  bool result = true);
  /// How another backend reduces what `reduceStep` does with `op`.
  c10d::ReduceOp delegatedOp(const c10d::ReduceOp &op) const;
  /// reduce_scatter of CPU tensors as they lie; false: there is more to do.
  bool reducePartsStep(const char *op, const c10d::ReduceOp &reduceOp,
                       const std::vector<at::Tensor> &in, const at::Tensor &out,
                       int64_t each);

  /// Lets the last step, whose array holds these tensors, tell of their sizes:
  /// ranks have to agree in each, and the array's own does not say it.
  void recordSizes(const std::vector<at::Tensor> &tensors);

  /// What the elements of a step's array are taken for: it may hold tensors of
  /// several types, as words.
  const char *nameOf(const at::Tensor &tensor);

  std::shared_ptr<const Parts> partsOf(const std::vector<at::Tensor> &in,
                                       const std::vector<at::Tensor> &out,
                                       int64_t each);

  /// Lets go of tensors, and of copies and calls that hold them.
  void drop();

  void write(CallRecord &record) const;
  CallRecord record() const;
};

/// A call that is one step on tensors as they lie, which costs little more than
/// the step. What it comes to is as of a Call.
struct PlainCall {
  c10d::OpType type;
  const char *title;
  const at::Tensor &input, &output;
  std::chrono::milliseconds timeout;
  bool async;
  int64_t root = -1;
  /// The caller's own, where arrays have a part of each.
  int rank = 0;
  uint64_t sequence = 0;
  Step step = {};

  const char *name() const { return title + kTitlePrefix; }
  /// Makes the step; false: there is more to do, or something is wrong.
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
