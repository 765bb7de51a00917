//===- CollectiveCalls.cpp - Collectives of a group, for C ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/GroupHandle.h"
#include "runtime/capi/HandlePool.h"
#include "runtime/capi/Sized.h"

using namespace commsir;
using capi::fail;
using capi::failNull;
using capi::failOther;
using capi::guard;
using capi::inTurn;
using capi::OpenGroup;
using capi::readSized;
using capi::reportGroup;
using capi::runConcurrently;
using capi::textOf;

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static group::CollectiveCall callOf(const commsir_collective &call,
                                    int64_t ranks) {
  group::CollectiveCall made;
  // For each call of a program: no string is made on the way.
  auto set = [](std::string &to, const char *text) {
    if (text)
      to = text;
  };
  set(made.op, call.op);
  set(made.reduction, call.reduction);
  set(made.elementType, call.type);
  set(made.typeName, call.type_name);
  set(made.algorithm, call.algorithm);
  set(made.protocol, call.protocol);
  made.root = call.root;
  made.peer = call.peer;
  made.input = {const_cast<void *>(call.input), call.input_elements};
  made.output = {call.output, call.output_elements};
  if (made.op == "all_to_all_v" && call.send_counts && call.recv_counts) {
    made.sendCounts.assign(call.send_counts, call.send_counts + ranks);
    made.recvCounts.assign(call.recv_counts, call.recv_counts + ranks);
  }
  return made;
}

static std::vector<group::Array> listOf(const commsir_part *parts,
                                        size_t count) {
  std::vector<group::Array> made;
  for (size_t i = 0; parts && i < count; ++i)
    made.push_back({parts[i].data, parts[i].elements});
  return made;
}

static group::CollectiveTexts textsOf(const commsir_collective &call) {
  return {call.op,
          call.reduction,
          call.type,
          call.type_name,
          call.algorithm,
          call.protocol,
          call.root,
          call.peer,
          {const_cast<void *>(call.input), call.input_elements},
          {call.output, call.output_elements}};
}

commsir_status commsir_group_collective(commsir_group *group,
                                        const commsir_collective *given,
                                        void *stream) {
  return inTurn(group, "a collective", [&](OpenGroup &open) {
    if (!given)
      return failNull("an argument of commsir_group_collective");
    commsir_collective call;
    if (auto bad = readSized("commsir_collective", given, call))
      return bad;
    group::CollectiveTexts texts = textsOf(call);
    if (!call.send_counts)
      if (auto done = open.collectives.repeat(texts, stream))
        return reportGroup(std::move(*done));
    group::CollectiveCall made = callOf(call, open.group->options().ranks);
    llvm::Error error = open.collectives.run(made, stream);
    if (!error && !call.send_counts)
      open.collectives.remember(texts, made);
    return reportGroup(std::move(error));
  });
}

commsir_status commsir_group_compare(commsir_group *group, const char *text,
                                     void *stream) {
  return inTurn(group, "a comparison", [&](OpenGroup &open) {
    if (!text)
      return failNull("`text` of commsir_group_compare");
    return reportGroup(open.collectives.compare(text, stream));
  });
}

//===----------------------------------------------------------------------===//
// Prepared collectives
//===----------------------------------------------------------------------===//

using PreparedCalls = capi::HandlePool<commsir_prepared>;

/// Reads the options of a prepared call, or their defaults if `given` is null.
static commsir_status readPrepareOptions(const commsir_prepare_options *given,
                                         commsir_prepare_options &options) {
  options = {};
  if (!given)
    return COMMSIR_OK;
  if (auto bad = readSized("commsir_prepare_options", given, options))
    return bad;
  // A NaN fails this test, too.
  if (options.timeout >= 0)
    return COMMSIR_OK;
  return fail(COMMSIR_USAGE, "commsir_prepare_options: the timeout must be "
                             "more than 0 seconds, or 0 for the group's");
}

commsir_status commsir_prepare(commsir_group *group,
                               const commsir_collective *given,
                               const commsir_prepare_options *givenOptions,
                               commsir_prepared **prepared) {
  return runConcurrently(group, [&](OpenGroup &open) {
    if (!given || !prepared)
      return failNull("an argument of commsir_prepare");
    commsir_collective call;
    if (auto bad = readSized("commsir_collective", given, call))
      return bad;
    commsir_prepare_options options;
    if (auto bad = readPrepareOptions(givenOptions, options))
      return bad;
    if (!call.op)
      return failNull("`op` of a collective");
    group::CollectiveCall made = callOf(call, open.group->options().ranks);
    if (made.op == "all_to_all_v")
      return fail(COMMSIR_USAGE,
                  "commsir_prepare: the sizes of all_to_all_v may differ by "
                  "call; call commsir_group_collective");
    if (llvm::Error error = open.collectives.check(made))
      return reportGroup(std::move(error));
    *prepared = PreparedCalls::get().make(
        {group, options.timeout,
         std::make_unique<group::PreparedCollective>(std::move(made)),
         nullptr});
    return COMMSIR_OK;
  });
}

/// Reports what has failed since, and sets the timeout of waits to come. On the
/// CPU launches have reported it themselves, and a group whose ranks disagreed
/// recovers in the launch.
static commsir_status beforeLaunch(OpenGroup &open, double timeout,
                                   void *stream) {
  if (stream && !open.group->onGpu())
    return fail(COMMSIR_USAGE, "a group on the CPU has no streams; give a null "
                               "pointer for `stream`");
  if (open.group->onGpu())
    if (llvm::Error error = open.group->poll())
      return capi::markEarlier(reportGroup(std::move(error)));
  if (timeout > 0)
    return reportGroup(open.group->setTimeout(timeout));
  return COMMSIR_OK;
}

commsir_status commsir_launch(commsir_prepared *prepared, const void *input,
                              void *output, void *stream) {
  if (!prepared || !capi::isWhole(prepared))
    return guard([&] {
      return prepared ? failOther("a prepared call") : failNull("prepared");
    });
  const commsir_prepared::Content &content = prepared->content;
  return inTurn(content.group, "a prepared collective", [&](OpenGroup &open) {
    if (!content.call)
      return fail(COMMSIR_USAGE,
                  "commsir_launch: the call was prepared by "
                  "commsir_prepare_fused; launch it by commsir_launch_fused");
    if (commsir_status status = beforeLaunch(open, content.timeout, stream))
      return status;
    return reportGroup(open.collectives.launch(
        *content.call, const_cast<void *>(input), output, stream));
  });
}

void commsir_prepared_release(commsir_prepared *prepared) {
  if (prepared)
    PreparedCalls::get().release(prepared);
}

//===----------------------------------------------------------------------===//
// Collectives on parts, and with arithmetic
//===----------------------------------------------------------------------===//

commsir_status commsir_group_collective_parts(commsir_group *group,
                                              const commsir_collective *given,
                                              const commsir_parts *givenParts,
                                              void *stream) {
  return inTurn(group, "a collective", [&](OpenGroup &open) {
    if (!given || !givenParts)
      return failNull("an argument of commsir_group_collective_parts");
    commsir_collective call;
    if (auto bad = readSized("commsir_collective", given, call))
      return bad;
    commsir_parts parts;
    if (auto bad = readSized("commsir_parts", givenParts, parts))
      return bad;
    group::CollectiveCall made = callOf(call, open.group->options().ranks);
    made.inputParts = listOf(parts.inputs, parts.input_count);
    made.outputParts = listOf(parts.outputs, parts.output_count);
    made.partElements = parts.elements;
    return reportGroup(open.collectives.run(made, stream));
  });
}

char *commsir_group_why_not(commsir_group *group,
                            const commsir_collective *given) {
  char *text = nullptr;
  commsir_status status = runConcurrently(group, [&](OpenGroup &open) {
    if (!given)
      return failNull("an argument of commsir_group_why_not");
    commsir_collective call;
    if (auto bad = readSized("commsir_collective", given, call))
      return bad;
    if (auto why = open.collectives.unsupportedReason(
            callOf(call, open.group->options().ranks)))
      text = capi::copyText(*why);
    return COMMSIR_OK;
  });
  return status == COMMSIR_OK ? text : capi::copyText(commsir_error_message());
}

static llvm::SmallVector<group::FusedCall::Operand, 4>
operandsOf(const commsir_operand *operands, size_t count) {
  llvm::SmallVector<group::FusedCall::Operand, 4> made;
  for (const commsir_operand &one : llvm::ArrayRef(operands, count))
    made.push_back({{one.data, one.elements},
                    textOf(one.type),
                    one.per_row != 0,
                    one.columns});
  return made;
}

/// Reads a fused call; its arrays of operands must exist.
static commsir_status readFused(const commsir_fused *given,
                                commsir_fused &call) {
  if (auto bad = readSized("commsir_fused", given, call))
    return bad;
  bool hasOperands = (!call.source_count || call.sources) &&
                     (!call.argument_count || call.arguments) &&
                     (!call.output_count || call.outputs);
  return hasOperands ? COMMSIR_OK : failNull("an array of operands");
}

static group::FusedCall fusedOf(const commsir_fused &call) {
  group::FusedCall made;
  made.op = textOf(call.op);
  made.reduction = textOf(call.reduction);
  made.elementType = textOf(call.type);
  made.rows = call.rows;
  made.columns = call.columns;
  // What does not fit is refused by its rows and columns.
  int64_t elements = 0;
  if (__builtin_mul_overflow(call.rows, call.columns, &elements))
    elements = -1;
  made.input = {const_cast<void *>(call.input), elements};
  made.sources = operandsOf(call.sources, call.source_count);
  made.arguments = operandsOf(call.arguments, call.argument_count);
  made.outputs = operandsOf(call.outputs, call.output_count);
  made.produce = llvm::StringRef(call.produce ? call.produce : "");
  made.consume = llvm::StringRef(call.consume ? call.consume : "");
  return made;
}

commsir_status commsir_group_fused(commsir_group *group,
                                   const commsir_fused *given, void *stream) {
  return inTurn(group, "a fused collective", [&](OpenGroup &open) {
    if (!given)
      return failNull("an argument of commsir_group_fused");
    commsir_fused call;
    if (auto bad = readFused(given, call))
      return bad;
    return reportGroup(open.collectives.run(fusedOf(call), stream));
  });
}

commsir_status
commsir_prepare_fused(commsir_group *group, const commsir_fused *given,
                      const commsir_prepare_options *givenOptions,
                      commsir_prepared **prepared) {
  return runConcurrently(group, [&](OpenGroup &open) {
    if (!given || !prepared)
      return failNull("an argument of commsir_prepare_fused");
    commsir_fused call;
    if (auto bad = readFused(given, call))
      return bad;
    commsir_prepare_options options;
    if (auto bad = readPrepareOptions(givenOptions, options))
      return bad;
    group::FusedCall made = fusedOf(call);
    if (llvm::Error error = open.collectives.check(made))
      return reportGroup(std::move(error));
    *prepared = PreparedCalls::get().make(
        {group, options.timeout, nullptr,
         std::make_unique<group::PreparedFused>(made)});
    return COMMSIR_OK;
  });
}

commsir_status commsir_launch_fused(commsir_prepared *prepared,
                                    void *const *arrays, size_t count,
                                    void *stream) {
  if (!prepared || !capi::isWhole(prepared))
    return guard([&] {
      return prepared ? failOther("a prepared call") : failNull("prepared");
    });
  const commsir_prepared::Content &content = prepared->content;
  return inTurn(
      content.group, "a prepared fused collective", [&](OpenGroup &open) {
        if (!content.fused)
          return fail(COMMSIR_USAGE,
                      "commsir_launch_fused: the call was prepared by "
                      "commsir_prepare; launch it by commsir_launch");
        if (!arrays)
          return failNull("arrays");
        if (size_t wanted = content.fused->countArrays(); count != wanted)
          return fail(COMMSIR_USAGE,
                      "commsir_launch_fused: there are " +
                          std::to_string(count) +
                          " arrays; the call was prepared with " +
                          std::to_string(wanted) +
                          ": the input, sources, arguments and outputs");
        if (commsir_status status = beforeLaunch(open, content.timeout, stream))
          return status;
        return reportGroup(open.collectives.launch(
            *content.fused, llvm::ArrayRef(arrays, count), stream));
      });
}
