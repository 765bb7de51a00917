//===- FusedCall.h - Parts of a fused collective's call ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ops and prepared calls have in common.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_OPS_FUSEDCALL_H
#define COMMSIR_RUNTIME_TORCH_OPS_FUSEDCALL_H

#include "runtime/capi/commsir.h"
#include "runtime/torch/PreparedCall.h"

#include <torch/headeronly/core/ScalarType.h>

#include <string>

namespace commsir::torch_ops {

commsir_operand operand(const PreparedTensor &tensor);

/// Returns the reduction of what a call sends; "" if it reduces nothing. With
/// `isProduced`, a region makes numbers of an input of `type`, which may be a
/// mask or unsigned.
std::string reductionOfSent(const std::string &op,
                            torch::headeronly::ScalarType type,
                            const std::string &reduce, bool isProduced);

/// Shares out `count` arguments between a call's two regions: `produce` reads
/// the first `sources`, `consume` the others. Throws if there are fewer.
void setArguments(commsir_fused &call, const char *produce, size_t sources,
                  const commsir_operand *arguments, size_t count);

} // namespace commsir::torch_ops

#endif // COMMSIR_RUNTIME_TORCH_OPS_FUSEDCALL_H
