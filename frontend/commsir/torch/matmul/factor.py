"""What rows are multiplied by: one matrix, or one for each group of rows; of fp8 with scales, for blocks of 128 terms,
too.

Any block of consecutive rows can be multiplied by itself, with the vendor's matmul for the kind: mm, _scaled_mm, bmm,
_grouped_mm or _scaled_grouped_mm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["BLOCK", "FP8", "Factor", "padded", "scaled_rows"]

_ATEN: Any = torch.ops.aten
#: Types that are multiplied with scales alone.
FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
#: What torch calls scales of 1 by 128 and of 128 by 128 elements.
_BY_ROWS, _BY_BLOCKS = 4, 5
#: Terms, or columns, that share a scale where each block has its own.
BLOCK = 128


def padded(blocks: int) -> int:
    """How many scales of 128 by 128 elements torch has along the terms, of which the last may be unused."""
    return -(-blocks // 4) * 4


def scaled_rows(row_scale: torch.Tensor) -> int:
    """Of how many rows there are scales; 1: one is that of all."""
    return 1 if row_scale.numel() == 1 else int(row_scale.shape[0])


def _spread(scale: torch.Tensor, shape: torch.Size, terms: int) -> torch.Tensor:
    """A scale for each element of a matrix, whose dimension `terms` is that of the terms. There, scales are never of
    one element: 4 terms may have `padded(1)` scales."""
    if scale.numel() == 1:
        return scale
    for dim, size in enumerate(shape):
        if scale.shape[dim] not in ((1,) if dim == terms else (1, size)):
            scale = scale.repeat_interleave(BLOCK, dim).narrow(dim, 0, size)
    return scale


def _with_room(scale: torch.Tensor, rows: int) -> torch.Tensor:
    """The scales of 128 by 128 elements by columns, each with room for so many. The vendor's matmul counts on the room,
    which torch's older op does not ask for."""
    if scale.shape[0] == rows:
        return scale
    room = scale.new_zeros(scale.shape[1], rows)
    room[:, : scale.shape[0]] = scale.t()
    return room.t()


def by_rows(row_scale: torch.Tensor, scale: torch.Tensor, rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales as torch's matmul on GPUs takes them: [rows, 1] and [1, columns] without gaps, if either side has more
    than one. One of each, and those of blocks of terms, stay."""
    is_of_blocks = row_scale.numel() > 1 and row_scale.shape[-1] > 1
    if is_of_blocks or max(row_scale.numel(), scale.numel()) == 1:
        return row_scale, scale
    return row_scale.reshape(-1, 1).expand(rows, 1).contiguous(), scale.reshape(1, -1).expand(1, columns).contiguous()


@dataclass(frozen=True)
class Factor:
    """The right-hand side of a matmul of many rows, and the scales of both sides."""

    #: [k, n], or [groups, k, n].
    weight: torch.Tensor
    #: [n]; with one matrix only.
    bias: torch.Tensor | None = None
    #: Where groups of rows end, [groups] of int32. None: each group of consecutive rows has `group_rows`.
    ends: torch.Tensor | None = None
    #: Group `row // group_rows % groups` is that of a row.
    group_rows: int = 0
    #: fp8: one scale of all rows, or one for each row ([rows, 1]; with groups [rows]), or for every 128 terms of each
    #: row ([rows, k / 128], rounded up).
    row_scale: torch.Tensor | None = None
    #: fp8: one scale of the weight, or one for each column ([1, n]; with groups [groups, n]), or for every 128 terms of
    #: each column or of every 128 columns ([k / 128, n] or [k / 128, n / 128], rounded up). Of the latter there may be
    #: as many as `padded` says along the terms.
    scale: torch.Tensor | None = None
    #: Of the result; None: that of the rows.
    dtype: torch.dtype | None = None
    #: fp8: accumulates faster and less exactly.
    is_fast: bool = False

    @property
    def columns(self) -> int:
        return int(self.weight.shape[-1])

    @property
    def groups(self) -> int:
        """How many matrices there are."""
        return int(self.weight.shape[0]) if self.weight.dim() > 2 else 1

    def result_type(self, rows: torch.Tensor) -> torch.dtype:
        return self.dtype or rows.dtype

    def multiply(self, rows: torch.Tensor, start: int, out: torch.Tensor | None = None) -> torch.Tensor:
        """The product of `rows`, [count, k], of which the first is row `start` of all; `out` is [count, n]."""
        if out is None:
            out = rows.new_empty(rows.shape[0], self.columns, dtype=self.result_type(rows))
        if not out.numel():
            return out
        if not rows.shape[1]:
            return out.zero_() if self.bias is None else out.copy_(self.bias.expand(out.shape))
        if self.ends is not None:
            out.copy_(self._by_ends(rows, start, self.ends))
        elif self.groups > 1 or self.weight.dim() > 2:
            self._by_groups(rows, start, out)
        elif self.row_scale is not None:
            self._scaled(rows, start, out)
        elif self.bias is None:
            torch.mm(rows, self.weight, out=out)
        else:
            torch.addmm(self.bias, rows, self.weight, out=out)
        return out

    def add(self, others: torch.Tensor, rows: torch.Tensor, start: int, out: torch.Tensor) -> None:
        """Fills `out` with the product of `rows`, as in `multiply`, plus `others`, which may be `out`."""
        if self.weight.dim() == 2 and self.row_scale is None:
            torch.addmm(others, rows, self.weight, out=out)
        else:
            torch.add(others, self.multiply(rows, start), out=out)

    def _scale_of(self, start: int, count: int) -> torch.Tensor | None:
        """The scales of some rows."""
        scale = self.row_scale
        if scale is None or scale.numel() == 1:
            return scale
        scale = scale[start : start + count]
        # torch has scales of blocks by columns.
        return scale.t().contiguous().t() if scale.dim() > 1 and scale.shape[1] > 1 else scale

    def _is_in_blocks(self, scale: torch.Tensor) -> bool:
        """Whether there is a scale for every 128 by 128 elements of the weight."""
        return scale.dim() == 2 and scale.numel() > 1 and scale.shape[1] < self.columns

    def _scaled(self, rows: torch.Tensor, start: int, out: torch.Tensor) -> None:
        row_scale, scale = self._scale_of(start, rows.shape[0]), self.scale
        assert row_scale is not None and scale is not None
        if rows.is_cpu and max(row_scale.numel(), scale.numel()) > 1:
            # torch has scales of rows and of blocks on GPUs alone.
            given = rows.float() * _spread(row_scale, rows.shape, 1)
            product = given @ (self.weight.float() * _spread(scale, self.weight.shape, 0))
            out.copy_(product if self.bias is None else product + self.bias)
            return
        named = {"bias": self.bias, "out_dtype": out.dtype, "use_fast_accum": self.is_fast, "out": out}
        if self._is_in_blocks(scale):
            given = _with_room(scale, padded(-(-rows.shape[1] // BLOCK)))
            recipes: tuple[list[Any], ...] = [row_scale], [_BY_ROWS], [], [given], [_BY_BLOCKS], []
            _ATEN._scaled_mm_v2.out(rows, self.weight, *recipes, **named)
            return
        _ATEN._scaled_mm.out(rows, self.weight, *by_rows(row_scale, scale, rows.shape[0], self.columns), **named)

    def _by_ends(self, rows: torch.Tensor, start: int, ends: torch.Tensor) -> torch.Tensor:
        own = (ends - start).clamp_(0, rows.shape[0]) if start else ends.clamp(max=rows.shape[0])
        if self.row_scale is None:
            return torch.Tensor(_ATEN._grouped_mm.default(rows, self.weight, own, None, self.dtype))
        scales = [one.contiguous() for one in (self._scale_of(start, rows.shape[0]), self.scale) if one is not None]
        given = (rows, self.weight, *scales, own, None, None, self.dtype, self.is_fast)
        return torch.Tensor(_ATEN._scaled_grouped_mm.default(*given))

    def _by_groups(self, rows: torch.Tensor, start: int, out: torch.Tensor) -> None:
        for first, last, group, count in self._runs(start, rows.shape[0]):
            given, made = (one[first:last].view(count, (last - first) // count, -1) for one in (rows, out))
            torch.bmm(given, self.weight[group : group + count], out=made)

    def _runs(self, start: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """For each matmul of groups one after the other: its first row and the one after its last, of those that are
        given; its first group; and how many groups it has, all whole or one."""
        size, first = self.group_rows, 0
        while first < count:
            group, within = divmod(start + first, size)
            group %= self.groups
            whole = 0 if within else min((count - first) // size, self.groups - group)
            last = first + whole * size if whole else min(first + size - within, count)
            yield first, last, group, whole or 1
            first = last
