//===- Collective.cpp - One collective on arrays of a group ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans of calls, and their way from a call to launches. CollectivesImpl.h
// names the files of the steps.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CollectivesImpl.h"

#include "runtime/support/GroupError.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

/// GPU: elements below which no call is cut into pieces.
static constexpr int64_t kLeastPiece = 4096;

/// A call with longer texts is not kept.
void RecentCall::set(const CollectiveTexts &call, PlainPlan &made) {
  const char *given[kTexts] = {call.op,       call.reduction, call.elementType,
                               call.typeName, call.algorithm, call.protocol};
  plan = nullptr;
  for (size_t i = 0; i < kTexts; ++i) {
    llvm::StringRef text = given[i] ? given[i] : "";
    if (text.size() >= kMost)
      return;
    std::memset(texts[i], 0, kMost);
    llvm::copy(text, texts[i]);
  }
  inputElements = call.input.elements;
  outputElements = call.output.elements;
  root = call.root;
  peer = call.peer;
  plan = &made;
}

static Key keyOf(const CollectiveCall &call) {
  Key key;
  key << call.op << call.reduction << call.elementType << call.typeName
      << call.root << call.peer << call.input.elements << call.output.elements
      << call.algorithm << call.protocol << call.partElements
      << static_cast<int64_t>(call.inputParts.size())
      << static_cast<int64_t>(call.outputParts.size());
  return key;
}

Collectives::Collectives(Group &group, CollectiveLimits limits)
    : impl(std::make_unique<Impl>(group, limits)) {}
Collectives::~Collectives() = default;

Collectives::Impl::~Impl() {
  for (auto &uses : scratch)
    for (Scratch &one : uses)
      if (one.memory)
        group.releaseOwn(one.memory);
  for (char *memory : ofGraphs)
    group.releaseOwn(memory);
  if (met)
    group.releaseOwn(met);
}

void Collectives::Impl::dropPlans() {
  plain.clear();
  recent.fill({});
  ++generation;
}

/// Keeps in mind that a call has failed. In one that differed by rank they have
/// counted different sizes, and would choose different kernels later.
llvm::Error Collectives::Impl::note(llvm::Error error) {
  if (!error)
    return error;
  recoveryPending = true;
  bool differs = false;
  llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &one) {
    differs |= one.isA<GroupError>() &&
               static_cast<const GroupError &>(one).getKind() == Kind::Disagree;
  });
  if (!differs)
    return error;
  ++age;
  KernelCache &all = cacheOf({});
  all.sizes.clear();
  all.owned.clear();
  all.labels.clear();
  all.roots.clear();
  dropPlans();
  return error;
}

/// After a call that has failed, or kernels that are gone.
llvm::Error Collectives::Impl::recover() {
  if (llvm::Error error = group.recover())
    return error;
  recoveryPending = false;
  if (recoveries == group.timesRecovered())
    return llvm::Error::success();
  recoveries = group.timesRecovered();
  ++age;
  cacheOf({}) = KernelCache();
  fusedPieces.clear();
  return llvm::Error::success();
}

/// What a call does before it looks for its kernel.
llvm::Error Collectives::Impl::begin() {
  if (mayNeedRecovery())
    if (llvm::Error error = recover())
      return error;
  return group.onGpu() ? followTables() : llvm::Error::success();
}

llvm::Error Collectives::Impl::launch(const Shape &shape, int64_t elements,
                                      GroupKernel &kernel, void *input,
                                      void *output, void *stream,
                                      uint64_t extent) {
  size_t width = shape.elementBytes;
  int64_t root = shape.root;
  // Arrays that this rank does not have are not looked at.
  Argument arguments[] = {
      {input ? input : output, elements * shape.inputParts * width},
      {output ? output : input, elements * shape.outputParts * width},
      {&root, sizeof root}};
  return group.launch(kernel,
                      llvm::ArrayRef(arguments).drop_back(!shape.takesRoot()),
                      stream, extent);
}

/// Whether it takes the arrays where they lie, by a kernel that is its own.
bool Collectives::Impl::isPlain(const PlainPlan &plan) const {
  const Shape &shape = plan.shape;
  return isCurrent(plan) && shape.elements && shape.inputList.empty() &&
         shape.outputList.empty() && isAligned(shape.input) &&
         isAligned(shape.output) && !writesOverInput(shape) &&
         !isShifted(shape);
}

llvm::Error Collectives::Impl::launchPlain(PlainPlan &plan, void *stream) {
  const Shape &shape = plan.shape;
  plan.cache->touch(*plan.kept);
  return launch(shape, shape.elements, *plan.kept->kernel, shape.input,
                shape.output, stream, plan.extent);
}

/// GPU: whether copy engines carry the call out: large parts that are gathered
/// in place, as trainers do during matmuls, whose processors a kernel would
/// take; and sizes that no kernel takes yet, until they are repeated.
llvm::Expected<bool> Collectives::Impl::takesCopies(const Shape &shape,
                                                    uint64_t capture) {
  if (!CopiedCollective::fits(shape) || shape.elements <= shape.mostSized())
    return false;
  if (CopiedCollective::isAsQuick(shape, group.options().rank))
    return true;
  std::string key = shape.key() + " " + std::to_string(shape.elements);
  if (cacheOf({}).kernels.contains(key))
    return false;
  if (capture)
    return true;
  unsigned uses = ++usesOf(shape, "copied " + key);
  if (uses <= kUsesOfOwn)
    return true;
  if (!cacheOf({}).hasRoom(limits.kernels))
    return false;
  return lacksKernel(shape, uses);
}

llvm::Error Collectives::Impl::runWhole(PlainPlan &plan, void *stream) {
  Shape &shape = plan.shape;
  if (isPlain(plan))
    return launchPlain(plan, stream);
  uint64_t capture = group.captureOf(stream);
  if (isShifted(shape)) {
    size_t bytes = shape.elements * shape.inputParts * shape.elementBytes;
    auto apart = take(Scratch::Apart, bytes, capture);
    if (!apart)
      return apart.takeError();
    if (llvm::Error error = group.copy(*apart, bytes, shape.input, bytes, bytes,
                                       /*rows=*/1, stream))
      return error;
    shape.input = *apart;
    staged = true;
  }
  auto isCopied = takesCopies(shape, capture);
  if (!isCopied)
    return isCopied.takeError();
  if (*isCopied) {
    auto isReady = copies.reserve(shape, capture != 0);
    if (!isReady)
      return isReady.takeError();
    staged |= *isReady;
    // The plans of meetings may take the place of this one.
    Shape copied = shape;
    uint64_t digest = plan.digest;
    if (*isReady)
      return copies.run(copied, stream, [&](unsigned place) {
        return meet(digest, place, stream);
      });
  }
  auto isInPieces = takesPieces(shape, capture);
  if (!isInPieces)
    return isInPieces.takeError();
  for (int64_t first = 0; first < shape.elements;) {
    int64_t left = shape.elements - first;
    int64_t count =
        std::min(shape.chunk, *isInPieces ? shape.pieceOf(left) : left);
    isTooLarge = false;
    llvm::Error error = runPiece(plan, first, count, capture, stream);
    if (!error) {
      first += count;
      continue;
    }
    // All ranks are told, and go on in the same smaller pieces: so small that
    // there is room for what is left at the end, too.
    if (!isTooLarge || !group.onGpu() || count <= kLeastPiece)
      return error;
    llvm::consumeError(std::move(error));
    shape.chunk = std::max(int64_t(llvm::bit_floor(uint64_t(count - 1)) / 2),
                           kLeastPiece);
  }
  return llvm::Error::success();
}

llvm::Error Collectives::Impl::runPlan(PlainPlan &plan, bool isDirect,
                                       void *stream) {
  if (isDirect) {
    auto done = runDirectly(plan.shape);
    if (!done || *done)
      return done.takeError();
  }
  return runWhole(plan, stream);
}

/// Gives it the arrays of another such call; false: one of them is missing.
bool Collectives::Impl::point(Shape &shape, const Array &input,
                              const Array &output) {
  shape.input = shape.hasInput ? static_cast<char *>(input.data) : nullptr;
  shape.output = shape.hasOutput ? static_cast<char *>(output.data) : nullptr;
  shape.inputList = shape.outputList = {};
  return bool(shape.input) == shape.hasInput &&
         bool(shape.output) == shape.hasOutput;
}

/// The plan of such a call, with the call's own arrays.
llvm::Expected<PlainPlan *>
Collectives::Impl::planOf(const CollectiveCall &call) {
  Key key = keyOf(call);
  auto known = plain.find(key.str());
  if (known != plain.end() && pointAt(known->second.shape, call))
    return &known->second;
  auto shape = resolveShape(call, group);
  if (!shape)
    return shape.takeError();
  if (group.onGpu())
    boundLabels(*shape);
  if (plain.size() >= kPlans)
    dropPlans();
  PlainPlan &plan = plain[key.str()];
  plan.digest = llvm::xxh3_64bits(shape->text);
  plan.shape = std::move(*shape);
  return &plan;
}

llvm::Error Collectives::run(const CollectiveCall &call, void *stream) {
  if (call.op == "all_to_all_v" && !unsupportedReason(call))
    return impl->runVarying(*this, call, stream);
  if (llvm::Error error = impl->begin())
    return error;
  auto plan = impl->planOf(call);
  if (!plan)
    return plan.takeError();
  if ((*plan)->shape.elements == 0)
    return impl->note(impl->runEmpty(**plan));
  bool isDirect = false;
  if (impl->mayBeDirect((*plan)->shape)) {
    auto agreed = impl->agreeOnWindow(*this, (*plan)->shape);
    if (!agreed)
      return agreed.takeError();
    isDirect = *agreed;
    // That was a call, too, which may have dropped plans.
    plan = impl->planOf(call);
    if (!plan)
      return plan.takeError();
  }
  const Shape &shape = (*plan)->shape;
  if (llvm::Error error = impl->compareRoot(shape, stream))
    return impl->note(std::move(error));
  impl->staged = false;
  impl->group.announce((*plan)->digest, shape.text);
  llvm::Error error = impl->runPlan(**plan, isDirect, stream);
  impl->group.announce(0, "");
  ++(impl->staged ? impl->counted.staged : impl->counted.inPlace);
  return impl->note(std::move(error));
}

/// Launches a plan on the arrays of another such call; none: nothing was done,
/// since the plan is out of date or does not take these arrays.
std::optional<llvm::Error> Collectives::Impl::launchAgain(PlainPlan &plan,
                                                          const Array &input,
                                                          const Array &output,
                                                          void *stream) {
  // On the CPU ranks compare calls, and agree where outputs are windows.
  if (!group.onGpu() || mayNeedRecovery() ||
      tune::getTablesDigest() != tables || !point(plan.shape, input, output) ||
      !isPlain(plan))
    return std::nullopt;
  llvm::Error error = launchPlain(plan, stream);
  ++counted.inPlace;
  return note(std::move(error));
}

std::optional<llvm::Error> Collectives::repeat(const CollectiveTexts &call,
                                               void *stream) {
  if (!impl->group.onGpu())
    return std::nullopt;
  const RecentCall &recent = impl->recentOf(call);
  if (!recent.is(call))
    return std::nullopt;
  return impl->launchAgain(*recent.plan, call.input, call.output, stream);
}

llvm::Error Collectives::launch(PreparedCollective &prepared, void *input,
                                void *output, void *stream) {
  CollectiveCall &call = prepared.call;
  call.input.data = input;
  call.output.data = output;
  if (prepared.generation == impl->generation)
    if (auto done =
            impl->launchAgain(*prepared.plan, call.input, call.output, stream))
      return std::move(*done);
  llvm::Error error = run(call, stream);
  if (error || !impl->group.onGpu())
    return error;
  auto known = impl->plain.find(keyOf(call).str());
  if (known != impl->plain.end()) {
    prepared.plan = &known->second;
    prepared.generation = impl->generation;
  }
  return error;
}

llvm::Error Collectives::check(const CollectiveCall &call) const {
  CollectiveCall tried = call;
  // Only whether there are arrays counts.
  for (Array *array : {&tried.input, &tried.output})
    array->data = array->elements ? &tried : nullptr;
  return resolveShape(tried, impl->group).takeError();
}

void Collectives::remember(const CollectiveTexts &call,
                           const CollectiveCall &made) {
  if (!impl->group.onGpu())
    return;
  auto known = impl->plain.find(keyOf(made).str());
  if (known != impl->plain.end())
    impl->recentOf(call).set(call, known->second);
}

std::optional<std::string>
Collectives::unsupportedReason(const CollectiveCall &call) const {
  return noKernelReason(call, impl->group);
}

StagingCounts Collectives::counts() const { return impl->counted; }
