"""Tensors that share memory: runtime/torch/c10d/Overlap.h in Python.

A collective writes each element of its outputs once, in no order that a program knows. Outputs that share memory would
hold what happened to come last, and an input that shares memory with an output could change before it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensor

__all__ = ["check_apart", "overlap", "overlaps_itself"]

#: Steps after which a search gives up. Strides of real programs nest, so that each needs a few.
_MOST_STEPS = 1 << 16

#: A sum of multiples: stride, and how often it is taken at the least and at the most.
_Term = tuple[int, int, int]


def _reaches(terms: list[_Term], distance: int) -> bool:
    """Whether some multiples of strides add up to a distance."""
    terms = sorted(terms, reverse=True)
    low, high = [0], [0]
    for stride, least, most in reversed(terms):
        low.insert(0, low[0] + least * stride)
        high.insert(0, high[0] + most * stride)
    steps = 0

    def search(i: int, left: int) -> bool:
        nonlocal steps
        if i == len(terms):
            return left == 0
        stride, least, most = terms[i]
        # Only multiples from which the rest of the terms can reach the distance are tried.
        for times in range(max(least, -((high[i + 1] - left) // stride)), min(most, (left - low[i + 1]) // stride) + 1):
            steps += 1
            if steps > _MOST_STEPS:
                return False
            if search(i + 1, left - times * stride):
                return True
        return False

    return search(0, distance)


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Where its bytes begin and end. A tensor without memory has none."""
    if tensor.layout != torch.strided or isinstance(tensor, FakeTensor) or tensor.is_meta or not tensor.numel():
        return 0, 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    begin = tensor.data_ptr()
    return begin, begin + (last + 1) * tensor.element_size()


def _dimensions(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Stride and largest index of each dimension that has more than one element."""
    return [(step, size - 1) for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether an element of `a` shares memory with an element of `b`. Columns of one matrix do not."""
    (begin, end), (other, after) = _extent(a), _extent(b)
    if a.device != b.device or begin >= after or other >= end:
        return False
    if a.is_contiguous() and b.is_contiguous():
        return True
    width, theirs = a.element_size(), b.element_size()
    terms = [(step * width, 0, most) for step, most in _dimensions(a) if step]
    terms += [(step * theirs, -most, 0) for step, most in _dimensions(b) if step]
    # Elements have several bytes.
    return _reaches([*terms, (1, 1 - theirs, width - 1)], other - begin)


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two elements of the tensor share memory, as in an expanded one."""
    if tensor.layout != torch.strided or tensor.numel() < 2 or tensor.is_contiguous():
        return False
    dimensions = sorted(_dimensions(tensor), reverse=True)
    if any(step == 0 for step, _ in dimensions):
        return True
    terms = [(step, -most, most) for step, most in dimensions]
    # Of two elements at one place one is ahead in the first dimension in which they differ.
    return any(_reaches([(step, 1, most), *terms[number + 1 :]], 0) for number, (step, most) in enumerate(dimensions))


def check_apart(call: str, outputs: Sequence[torch.Tensor]) -> None:
    """Raises if a tensor of `outputs` shares memory with itself or another one."""
    if any(map(overlaps_itself, outputs)):
        raise RuntimeError(
            f"commsir: {call}: elements of an output share memory, as those of an expanded tensor do, and only one of "
            "them could be kept; call .clone() on it first"
        )
    extents = list(map(_extent, outputs))
    order = sorted(range(len(outputs)), key=lambda number: extents[number][0])
    for i, first in enumerate(order):
        for second in order[i + 1 :]:
            if extents[second][0] >= extents[first][1]:
                break
            if overlap(outputs[first], outputs[second]):
                raise RuntimeError(
                    f"commsir: {call}: outputs {min(first, second)} and {max(first, second)} share memory, and only "
                    "one of them could be kept; give each output memory of its own"
                )
