//===- TensorLists.cpp - Tensors that a call is given ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/TensorLists.h"

using namespace commsir::torch_c10d;

const at::Tensor &commsir::torch_c10d::single(const char *name,
                                              const Tensors &tensors) {
  TORCH_CHECK(tensors.size() == 1, "commsir: ", name, " takes one tensor, got ",
              tensors.size(), "; call it once for each tensor");
  return tensors.front();
}

void commsir::torch_c10d::checkCount(const char *name, size_t got, int ranks) {
  TORCH_CHECK(got == static_cast<size_t>(ranks), "commsir: ", name, " got ",
              got, " tensors for ", ranks,
              " ranks; give a tensor for each rank");
}

void commsir::torch_c10d::checkRoot(const char *name, int64_t root, int ranks) {
  TORCH_CHECK(root >= 0 && root < ranks, "commsir: ", name, ": no rank ", root,
              " in a group of ", ranks);
}

void commsir::torch_c10d::checkType(const char *name, const at::Tensor &a,
                                    const at::Tensor &b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "commsir: ", name,
              " got tensors of the types ", a.scalar_type(), " and ",
              b.scalar_type(), "; give tensors of one type");
}

int64_t commsir::torch_c10d::mostElements(const Tensors &tensors) {
  int64_t most = 0;
  for (const at::Tensor &tensor : tensors)
    most = std::max(most, tensor.numel());
  return most;
}

/// A contiguous tensor as a row of integers, which every torch copies; complex
/// numbers of 16 bytes as they are.
static at::Tensor bitsOf(const at::Tensor &tensor) {
  at::Tensor row = tensor.as_strided({tensor.numel()}, {1});
  switch (tensor.element_size()) {
  case 1:
    return row.view(at::kChar);
  case 2:
    return row.view(at::kShort);
  case 4:
    return row.view(at::kInt);
  case 8:
    return row.view(at::kLong);
  default:
    return row;
  }
}

void commsir::torch_c10d::copyEach(const Tensors &to, const Tensors &from) {
  Tensors targets, sources;
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i].numel()) {
      targets.push_back(bitsOf(to[i]));
      sources.push_back(bitsOf(from[i]));
    }
  if (!targets.empty())
    at::_foreach_copy_(targets, sources);
}

Tensors commsir::torch_c10d::partsLike(const Tensors &list,
                                       const at::Tensor &flat,
                                       std::optional<int64_t> stride) {
  Tensors parts;
  int64_t at = 0;
  for (const at::Tensor &tensor : list) {
    parts.push_back(flat.narrow(0, at, tensor.numel()));
    at += stride.value_or(tensor.numel());
  }
  return parts;
}

at::Tensor commsir::torch_c10d::packed(Call &call, const Tensors &tensors,
                                       int64_t each) {
  int64_t count = static_cast<int64_t>(tensors.size());
  at::Tensor flat = call.scratch(count * each, tensors.front().options());
  call.pack.push_back(
      [=] { copyEach(partsLike(tensors, flat, each), tensors); });
  return flat;
}

at::Tensor commsir::torch_c10d::unpacked(Call &call, const Tensors &tensors,
                                         int64_t each) {
  int64_t count = static_cast<int64_t>(tensors.size());
  at::Tensor flat = call.scratch(count * each, tensors.front().options());
  call.unpack.push_back(
      [=] { copyEach(tensors, partsLike(tensors, flat, each)); });
  return flat;
}

void commsir::torch_c10d::copyLists(Call &call, const char *op,
                                    const Tensors &in, const Tensors &out,
                                    int64_t each, int64_t root) {
  const at::Tensor &known = in.empty() ? out.front() : in.front();
  auto isWhole = [&](const Tensors &list) {
    return list.size() == 1 && list.front().numel() == each &&
           list.front().is_contiguous();
  };
  if (known.is_cpu() && std::max(in.size(), out.size()) > 1)
    return call.copyPartsStep(op, in, out, each, root);
  at::Tensor from, to;
  if (!in.empty())
    from = isWhole(in) ? in.front() : packed(call, in, each);
  if (!out.empty())
    to = isWhole(out) ? out.front() : unpacked(call, out, each);
  call.copyStep(op, from, to, root);
}

static bool areAlike(const Tensors &list) {
  return std::all_of(list.begin(), list.end(), [&](const at::Tensor &tensor) {
    return tensor.numel() == list.front().numel();
  });
}

void commsir::torch_c10d::compareSizes(Call &call, const Tensors &list) {
  if (!list.front().is_cpu() || areAlike(list))
    return;
  std::vector<int64_t> sizes;
  for (const at::Tensor &tensor : list)
    sizes.push_back(tensor.numel());
  auto ranks = static_cast<int64_t>(sizes.size());
  at::Tensor own = call.kept.emplace_back(at::tensor(sizes, at::kLong));
  at::Tensor all = call.scratch(ranks * ranks, own.options());
  call.compare = [=, name = call.name](const Launch &launch) {
    launch({"all_gather", "", "i64", 0, own.data_ptr(), ranks, all.data_ptr(),
            ranks * ranks, kSizes});
    const int64_t *first = all.data_ptr<int64_t>();
    for (int64_t rank = 1; rank < ranks; ++rank)
      if (!std::equal(first, first + ranks, first + rank * ranks))
        C10_THROW_ERROR(
            DistBackendError,
            c10::str("commsir: ", name, ": rank 0 has a list of tensors of ",
                     at::IntArrayRef(first, ranks), " elements, rank ", rank,
                     " of ", at::IntArrayRef(first + rank * ranks, ranks),
                     "; give lists that are alike on all ranks"));
  };
}
