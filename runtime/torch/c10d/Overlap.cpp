//===- Overlap.cpp - Tensors that share memory ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Overlap.h"

#include <algorithm>
#include <numeric>

using namespace commsir::torch_c10d;

/// Steps after which a search gives up. Strides of real programs nest, so that
/// each needs a few.
static constexpr int64_t kMostSteps = int64_t(1) << 16;

namespace {
/// A sum of multiples: `least` to `most` times `stride`.
struct Term {
  int64_t stride, least, most;
};

/// Finds out whether some multiples of strides add up to a distance. `terms`
/// begin with the largest stride.
class Search {
public:
  explicit Search(std::vector<Term> given) : terms(std::move(given)) {
    low.resize(terms.size() + 1);
    high.resize(terms.size() + 1);
    for (size_t i = terms.size(); i-- > 0;) {
      low[i] = low[i + 1] + terms[i].least * terms[i].stride;
      high[i] = high[i + 1] + terms[i].most * terms[i].stride;
    }
  }
  bool reaches(int64_t distance) { return reaches(0, distance); }

private:
  /// Only multiples from which the rest of the terms can reach the distance are
  /// tried.
  bool reaches(size_t i, int64_t distance) {
    if (i == terms.size())
      return distance == 0;
    const Term &term = terms[i];
    auto down = [&](int64_t value) {
      return value / term.stride - (value % term.stride < 0);
    };
    int64_t first = std::max(term.least, -down(high[i + 1] - distance));
    int64_t last = std::min(term.most, down(distance - low[i + 1]));
    for (int64_t times = first; times <= last && steps < kMostSteps; ++times) {
      ++steps;
      if (reaches(i + 1, distance - times * term.stride))
        return true;
    }
    return false;
  }

  std::vector<Term> terms;
  /// The least and the most that terms from number i on add up to.
  std::vector<int64_t> low, high;
  int64_t steps = 0;
};

/// The address range of a tensor. A tensor without memory has none.
struct Extent {
  int64_t begin = 0, end = 0;

  explicit Extent(const at::Tensor &tensor) {
    if (tensor.layout() != at::kStrided || tensor.numel() == 0)
      return;
    begin = reinterpret_cast<int64_t>(tensor.unsafeGetTensorImpl()->data());
    int64_t last = 0;
    for (int64_t i = 0; i < tensor.dim(); ++i)
      last += (tensor.size(i) - 1) * tensor.stride(i);
    if (begin)
      end = begin + (last + 1) * static_cast<int64_t>(tensor.element_size());
  }
  bool meets(const Extent &other) const {
    return begin < other.end && other.begin < end;
  }
};
} // namespace

static void sortByStride(std::vector<Term> &terms) {
  std::sort(terms.begin(), terms.end(),
            [](const Term &a, const Term &b) { return a.stride > b.stride; });
}

/// The terms of a tensor's elements, in bytes; dimensions that lead nowhere are
/// left out.
static void addTerms(const at::Tensor &tensor, bool isNegative,
                     std::vector<Term> &terms) {
  auto width = static_cast<int64_t>(tensor.element_size());
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    int64_t most = tensor.size(i) - 1;
    if (most && tensor.stride(i))
      terms.push_back({tensor.stride(i) * width, isNegative ? -most : 0,
                       isNegative ? 0 : most});
  }
}

bool commsir::torch_c10d::doOverlap(const at::Tensor &a, const at::Tensor &b) {
  Extent one(a), two(b);
  if (a.device() != b.device() || !one.meets(two))
    return false;
  if (a.is_non_overlapping_and_dense() && b.is_non_overlapping_and_dense())
    return true;
  std::vector<Term> terms;
  addTerms(a, /*isNegative=*/false, terms);
  addTerms(b, /*isNegative=*/true, terms);
  // Elements have several bytes.
  terms.push_back({1, 1 - static_cast<int64_t>(b.element_size()),
                   static_cast<int64_t>(a.element_size()) - 1});
  sortByStride(terms);
  return Search(std::move(terms)).reaches(two.begin - one.begin);
}

bool commsir::torch_c10d::overlapsItself(const at::Tensor &tensor) {
  if (tensor.layout() != at::kStrided || tensor.numel() < 2 ||
      tensor.is_non_overlapping_and_dense())
    return false;
  std::vector<Term> terms;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    int64_t most = tensor.size(i) - 1;
    if (most && !tensor.stride(i))
      return true;
    if (most)
      terms.push_back({tensor.stride(i), -most, most});
  }
  sortByStride(terms);
  // Of two elements at one place one is ahead in the first dimension in which
  // they differ.
  for (auto first = terms.begin(); first != terms.end(); ++first) {
    std::vector<Term> rest(first, terms.end());
    rest.front().least = 1;
    if (Search(std::move(rest)).reaches(0))
      return true;
  }
  return false;
}

void commsir::torch_c10d::checkApart(const char *call,
                                     const std::vector<at::Tensor> &outputs) {
  for (const at::Tensor &output : outputs)
    TORCH_CHECK(!overlapsItself(output), "commsir: ", call,
                ": elements of an output share memory, as those of an expanded "
                "tensor do, and only one of them could be kept; call .clone() "
                "on it first");
  std::vector<Extent> extents(outputs.begin(), outputs.end());
  std::vector<size_t> order(outputs.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return extents[a].begin < extents[b].begin;
  });
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = i + 1;
         j < order.size() && extents[order[j]].begin < extents[order[i]].end;
         ++j) {
      auto [a, b] = std::minmax(order[i], order[j]);
      TORCH_CHECK(!doOverlap(outputs[a], outputs[b]), "commsir: ", call,
                  ": outputs ", a, " and ", b,
                  " share memory, and only one of them could be kept; give "
                  "each output its own memory");
    }
}
