"""Random calls of the ops of matmuls with collectives, and what float64 makes of them; and calls in which ranks
disagree. The ranks' part of test_drawn.py.

A call is drawn on every rank from one seed: an op, types, shapes, how operands lie in memory, scales, groups of rows,
and what surrounds the call. Each rank knows what all ranks give, so it computes what it should get by itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import time
from collections.abc import Callable
from datetime import timedelta
from math import prod
from typing import Any

import commsir.torch.matmul.ops  # noqa: F401
import torch
import torch.distributed
from commsir.torch.matmul.factor import BLOCK, FP8, padded
from torch._subclasses.fake_tensor import FakeTensorMode

dist: Any = torch.distributed
#: Of commsir.torch.matmul.ops.
_OPS: Any = torch.ops
Tensor = torch.Tensor

ROWS = (0, 1, 3, 7, 16, 64, 127, 128, 129)
SIZES = (0, 1, 2, 4, 7, 16, 24, 64, 127, 129, 256, 300)
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
OTHERS = (torch.int32, torch.int64, torch.int8, torch.complex64, torch.complex128)
RESULTS = (torch.float32, torch.bfloat16, torch.float16)


# ---------------------------------------------------------------------------------------------------------------------
# Operands
# ---------------------------------------------------------------------------------------------------------------------


def _wider(x: Tensor) -> Tensor:
    """With memory between the rows."""
    room = x.new_empty(*x.shape[:-1], x.shape[-1] + 3)
    room[..., : x.shape[-1]] = x
    return room[..., : x.shape[-1]]


def _unaligned(x: Tensor) -> Tensor:
    room = x.new_empty(x.numel() + 1)
    room[1:] = x.flatten()
    return room[1:].view(x.shape)


def _every_other(x: Tensor) -> Tensor:
    room = x.new_empty(*x.shape, 2)
    room[..., 0] = x
    return room[..., 0]


def _permuted(x: Tensor) -> Tensor:
    """The first dimension innermost."""
    return x.movedim(0, -1).contiguous().movedim(-1, 0)


#: How the elements of a tensor can lie in memory. Each gives a tensor with the same elements.
LIES: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda x: x,
    "turned": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.dim() > 1 else x,
    "permuted": _permuted,
    "every other": _every_other,
    "wider": _wider,
    "unaligned": _unaligned,
    "negated": lambda x: torch._neg_view(-x) if x.dtype in (*FLOATS, torch.int32, torch.int64) else x,
    "conjugated": lambda x: x.conj().resolve_conj().conj() if x.is_complex() else x,
    "parameter": lambda x: torch.nn.Parameter(x, requires_grad=False),
    "expanded": lambda x: x[:1].expand(x.shape) if x.dim() and x.shape[0] else x,
}


def _drawn(seed: int, rank: int, shape: tuple[int, ...], dtype: torch.dtype, lies: str) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(1000 * seed + rank)
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex128 if dtype.is_complex else torch.float64
        values = (torch.randn(shape, generator=generator, dtype=wide, device="cpu") / 2).to(dtype)
    else:
        values = torch.randint(-5, 6, shape, generator=generator, dtype=torch.int64, device="cpu").to(dtype)
    return LIES[lies](values)


@dataclasses.dataclass(frozen=True)
class Operand:
    """A tensor that every rank has, in its own version or in the same one."""

    seed: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    lies: str = "plain"
    is_common: bool = False
    is_scale: bool = False

    def of(self, rank: int) -> Tensor:
        made = _drawn(self.seed, 0 if self.is_common else rank, self.shape, self.dtype, self.lies)
        return made.abs() + 0.25 if self.is_scale else made


def wide(x: Tensor) -> Tensor:
    """With more bits: exact, except for the rounding of sums."""
    if x.is_complex():
        return x.to(torch.complex128).resolve_conj()
    return x.double() if x.is_floating_point() else x.long()


# ---------------------------------------------------------------------------------------------------------------------
# What surrounds a call
# ---------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _default_type() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def _deterministic() -> Any:
    """Also fills new memory with NaN."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


SURROUNDINGS: dict[str, Callable[[], Any]] = {
    "nothing": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "default type": _default_type,
    "default device": lambda: torch.device("meta"),
    "deterministic": _deterministic,
}


# ---------------------------------------------------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------------------------------------------------

BEFORE = ("all_gather", "all_to_all")
BEHIND = ("reduce_scatter", "all_reduce", "all_to_all")


class Call:
    """A drawn call of `size` ranks."""

    def __init__(self, seed: int, size: int) -> None:
        self.lots, self.size, self.seed = random.Random(seed), size, 100 * seed
        lots = self.lots
        self.comes_before = lots.random() < 0.5
        self.keeps_rows = self.comes_before and lots.random() < 0.3
        self.collective = lots.choice(BEFORE if self.comes_before else BEHIND)
        self.kind = lots.choice(["plain"] * 5 + ["scaled", "scaled", "ends", "groups"])
        if self.kind == "scaled":
            self.dtype = FP8[0]
        elif self.kind == "ends":
            self.dtype = torch.bfloat16
        else:
            self.dtype = lots.choice(FLOATS * 3 + OTHERS)
        self.surrounding = lots.choice(list(SURROUNDINGS) if self.kind != "ends" else ["nothing", "no_grad"])
        self._draw_shapes()
        self._draw_factors()

    def _draw_shapes(self) -> None:
        lots, shares = self.lots, self.collective not in ("all_gather", "all_reduce")
        rows = lots.choice(ROWS) if lots.random() < 0.97 else 4096
        self.k, columns = lots.choice(SIZES), lots.choice(SIZES)
        if self.kind == "ends":  # torch wants rows of 16 bytes.
            self.k, columns = -(-self.k // 8) * 8, -(-columns // 8) * 8
        middle = lots.choice([(), (), (), (2,), (3, 1), (0,)])
        if shares and lots.random() < 0.9:
            rows = -(-rows // self.size) * self.size
        self.is_refused = shares and rows % self.size != 0
        if rows * prod(middle) * max(self.k, 1) * max(columns, 1) > 1 << 24:
            self.k, columns = 16, 16
        self.columns = columns
        lies = self._lies() if self.kind != "scaled" else lots.choice(["plain", "turned", "wider"])
        self.a = Operand(self.seed, (rows, *middle, self.k), self.dtype, lies)
        self.whole = rows * prod(middle) * (self.size if self.collective == "all_gather" else 1)

    def _lies(self) -> str:
        return self.lots.choice(["plain", "plain", *LIES])

    def _draw_factors(self) -> None:
        lots = self.lots
        count = lots.choice([1, 1, 2, 3]) if self.comes_before else 1
        self.given: dict[str, Any] = {}
        self.ends: Tensor | None = None
        self.groups = 1
        self.row_scale: Operand | None = None
        self.scales: list[Operand] = []
        shape: tuple[int, ...] = (self.k, self.columns)
        if self.kind == "ends":
            self.groups = lots.choice([1, 2, 4])
            inner = sorted(lots.randrange(self.whole + 1) for _ in range(self.groups - 1))
            self.ends = torch.tensor([*inner, self.whole], dtype=torch.int32)
            shape = (self.groups, *shape)
        elif self.kind == "groups":
            self.groups = lots.choice([1, 2, 4])
            shape = (self.groups, *shape)
            self.given["group_rows"] = lots.choice([1, 3, 16])
        lie = "turned" if self.kind == "scaled" else self._lies() if self.kind != "ends" else "plain"
        self.weights = [Operand(self.seed + 10 + i, shape, self.dtype, lie, lots.random() < 0.3) for i in range(count)]
        has_bias = self.comes_before and self.kind == "plain"
        of_bias = (self.columns,)
        self.biases = [
            Operand(self.seed + 20 + i, of_bias, self.dtype, self._lies()) if has_bias and lots.random() < 0.5 else None
            for i in range(count)
        ]
        if self.kind == "scaled":
            self._draw_scales(count)
        self.result = self.given.get("dtype") or self.dtype

    def _draw_scales(self, count: int) -> None:
        rows, k, n = self.whole, self.k, self.columns
        blocks = -(-k // BLOCK)
        wide_blocks = -(-n // BLOCK)
        self.form, of_rows, of_weight = self.lots.choice(
            [
                ("whole", (rows, 1), (1, n)),
                ("whole", (1, 1), (1, n)),
                ("rows of blocks", (rows, blocks), (blocks, n)),
                ("blocks", (rows, blocks), (blocks, wide_blocks)),
                ("blocks", (rows, blocks), (padded(blocks), wide_blocks)),
            ]
        )
        # An op gathers scales of its own rows.
        self.gathers_scales = self.collective == "all_gather" and of_rows[0] == rows and self.lots.random() < 0.5
        if self.gathers_scales:
            of_rows = (rows // self.size, of_rows[1])
        lie = self.lots.choice(["plain", "turned", "wider", "every other"])
        self.row_scale = Operand(
            self.seed + 30, of_rows, torch.float32, lie, not self.gathers_scales and self.comes_before, True
        )
        self.scales = [Operand(self.seed + 40 + i, of_weight, torch.float32, lie, False, True) for i in range(count)]
        self.given["dtype"] = self.lots.choice(RESULTS)

    def __str__(self) -> str:
        return (
            f"{self.collective} {'before' if self.comes_before else 'behind'}, {self.kind}, {self.size} ranks, "
            f"{self.a}, {self.weights}, {self.biases}, {self.row_scale}, {self.scales}, {self.given}, "
            f"{self.surrounding}"
        )

    # The call.

    def make(self, rank: int, group: Any, shown: Callable[[Tensor], Tensor] = lambda x: x) -> list[Tensor]:
        """The call's results; `shown` makes the operands that it gets."""
        name, given = group.group_name, dict(self.given)
        a, weights = shown(self.a.of(rank)), [shown(one.of(rank)) for one in self.weights]
        biases = [one and shown(one.of(rank)) for one in self.biases]
        given.update({"ends": shown(self.ends)} if self.ends is not None else {})
        if self.row_scale:
            given["row_scale"] = shown(self.row_scale.of(rank))
            scales = [shown(one.of(rank)) for one in self.scales]
            given.update({"scales": scales} if self.comes_before else {"scale": scales[0]})
        with SURROUNDINGS[self.surrounding]():
            if self.comes_before:
                op = getattr(_OPS.commsir, f"{self.collective}_matmul")
                return list(op(a, weights, biases, self.keeps_rows, name, **given))
            return [getattr(_OPS.commsir, f"matmul_{self.collective}")(a, weights[0], name, **given)]

    # What it should give.

    def _scaled(self, values: Tensor, scale: Tensor | None, terms: int) -> Tensor:
        """Times the scales, of which each is for 128 terms if they are of blocks."""
        if scale is None:
            return wide(values)
        scale = wide(scale)
        for dim, length in enumerate(values.shape):
            if self.form != "whole" and (dim == terms or (self.form == "blocks" and terms == 0)):
                scale = scale.repeat_interleave(BLOCK, dim).narrow(dim, 0, length)
        return wide(values) * scale

    def _product(self, rows: Tensor, rank: int, number: int, row_scale: Tensor | None) -> tuple[Tensor, Tensor]:
        """The product of all rows by a weight of a rank, and its error."""
        weight = self.weights[number].of(rank)
        a = self._scaled(rows, row_scale, 1)
        b = self._scaled(weight, self.scales[number].of(rank) if self.scales else None, 0)
        if self.kind == "plain" or self.kind == "scaled":
            exact, size = a @ b, a.abs().to(_real(a)) @ b.abs().to(_real(b))
        else:
            index = torch.arange(rows.shape[0])
            if self.ends is not None:
                group = torch.searchsorted(self.ends.long(), index, right=True)
            else:
                group = index // self.given["group_rows"] % self.groups
            exact = torch.stack([a[i] @ b[g] for i, g in enumerate(group)]) if len(group) else a @ b[0]
            size = torch.stack([a[i].abs() @ b[g].abs() for i, g in enumerate(group)]) if len(group) else exact.abs()
        bias = self.biases[number]
        if bias is not None:
            exact, size = exact + wide(bias.of(rank)), size + wide(bias.of(rank)).abs()
        terms = self.k + 2 + 4 * -(-self.k // BLOCK)
        return exact, 2 * terms * _unit(self.dtype) * size + 2 * self._stored(size)

    def _stored(self, size: Tensor) -> Tensor:
        if not (self.result.is_floating_point or self.result.is_complex):
            return torch.zeros(size.shape, dtype=torch.float64)
        return torch.finfo(self.result).eps * size + torch.finfo(self.result).tiny

    def wanted(self, rank: int) -> list[tuple[Tensor, Tensor]]:
        """Each result of a rank, and how much it may differ."""
        flat = [self.a.of(one).reshape(prod(self.a.shape[:-1]), self.k) for one in range(self.size)]
        return self._behind_wanted(rank, flat) if not self.comes_before else self._before_wanted(rank, flat)

    def _before_wanted(self, rank: int, flat: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        if self.collective == "all_gather":
            given = torch.cat(flat)
        else:
            given = torch.cat([one.tensor_split(self.size)[rank] if len(one) else one for one in flat])
        row_scale = None
        if self.row_scale:
            own = [self.row_scale.of(one) for one in range(self.size)]
            row_scale = torch.cat(own) if self.gathers_scales else own[rank]
        made = [self._product(given, rank, i, row_scale) for i in range(len(self.weights))]
        if self.keeps_rows:
            made.append((wide(given), torch.zeros(given.shape, dtype=torch.float64)))
        return made

    def _behind_wanted(self, rank: int, flat: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        parts = [
            self._product(one, r, 0, self.row_scale.of(r) if self.row_scale else None) for r, one in enumerate(flat)
        ]
        if self.collective == "all_to_all":
            exact, error = (torch.cat([_share(one[i], rank, self.size) for one in parts]) for i in range(2))
            return [(exact, error)]
        total = torch.stack([exact for exact, _ in parts]).sum(0)
        size = torch.stack([exact.abs() for exact, _ in parts]).sum(0)
        error = torch.stack([error for _, error in parts]).sum(0)
        error = error + 2 * self.size * (_unit(self.result) * size + self._stored(size + error))
        if self.collective == "all_reduce":
            return [(total, error)]
        return [(_share(total, rank, self.size), _share(error, rank, self.size))]


def _real(x: Tensor) -> torch.dtype:
    return torch.int64 if x.dtype == torch.int64 else torch.float64


def _unit(dtype: torch.dtype) -> float:
    """The rounding of sums; whole numbers have none."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    return 2.0**-53 if dtype in (torch.float64, torch.complex128) else 2.0**-24


def _share(x: Tensor, rank: int, size: int) -> Tensor:
    rows = x.shape[0] // size
    return x[rank * rows : (rank + 1) * rows]


def _fake_difference(call: Call, rank: int, group: Any, made: list[Tensor]) -> str:
    """What torch.compile sees has the types, shapes and strides of what is made."""
    with FakeTensorMode() as mode:
        seen = call.make(rank, group, mode.from_tensor)
    given = [[(one.dtype, list(one.shape), one.stride()) for one in some] for some in (seen, made)]
    return "" if given[0] == given[1] else f"torch.compile sees {given[0]}, and gets {given[1]}"


def _difference(call: Call, rank: int, made: list[Tensor]) -> str:
    wanted = call.wanted(rank)
    if len(made) != len(wanted):
        return f"{len(made)} results, not {len(wanted)}"
    shape = list(call.a.shape[:-1])
    if call.collective == "all_gather":
        shape[0] *= call.size
    if call.collective == "reduce_scatter":
        shape[0] //= call.size
    for number, (got, (want, error)) in enumerate(zip(made, wanted, strict=True)):
        is_rows = number == len(call.weights)
        of_result = [*shape, call.k if is_rows else call.columns]
        dtype = call.dtype if is_rows else call.result
        if list(got.shape) != of_result or got.dtype != dtype:
            return f"result {number} is {got.dtype} {list(got.shape)}, not {dtype} {of_result}"
        if got.numel() == 0:
            continue
        flat = wide(got).reshape(want.shape)
        if not dtype.is_floating_point and not dtype.is_complex:
            want = want.to(dtype).long()  # noqa: PLW2901
        off = (flat - want).abs() - error
        if not bool((off <= 0).all()):
            at = int(off.nan_to_num(torch.inf).argmax())
            return f"result {number} at {at}: {flat.flatten()[at]}, not {want.flatten()[at]} ± {error.flatten()[at]}"
    return ""


def runs(rank: int, size: int, first: int, count: int, keeps_on: bool = False) -> list[str]:
    """What is wrong with any of the drawn calls on this rank. Groups of 1 to `size` ranks call in turns."""
    groups = [dist.new_group(list(range(ranks))) for ranks in range(1, size + 1)]
    wrong: list[str] = []
    for seed in range(first, first + count):
        ranks = random.Random(-seed).randrange(size) + 1
        if rank >= ranks:
            continue
        call = Call(seed, ranks)
        try:
            made = call.make(rank, groups[ranks - 1])
            said = _difference(call, rank, made) or _fake_difference(call, rank, groups[ranks - 1], made)
            if call.is_refused:
                said = "rows that cannot be shared out were taken"
        except RuntimeError as error:
            is_right = call.is_refused and "cannot be shared out" in str(error)
            said = "" if is_right else f"{type(error).__name__}: {error}"
        if said:
            wrong.append(f"seed {seed}: {said}\n    {call}")
            if not keeps_on:
                break
    return wrong


# ---------------------------------------------------------------------------------------------------------------------
# Ranks that disagree
# ---------------------------------------------------------------------------------------------------------------------

#: Each op, and one that sends something else.
OTHERS_CALL = {
    "all_gather_matmul": "matmul_all_reduce",
    "all_to_all_matmul": "matmul_reduce_scatter",
    "matmul_all_reduce": "all_to_all_matmul",
    "matmul_reduce_scatter": "all_gather_matmul",
    "matmul_all_to_all": "matmul_all_reduce",
}


@dataclasses.dataclass(frozen=True)
class Given:
    """Operands of a rank: `a` has so many rows for each rank, and columns; its weight terms and columns."""

    rows: int = 2
    dtype: torch.dtype = torch.float32
    terms: int = 6
    weight_terms: int = 6
    width: int = 5


#: What the odd rank gives, or does otherwise.
DISAGREEMENTS: dict[str, Given] = {
    "more rows": Given(rows=4),
    "no rows": Given(rows=0),
    "another shape of the same size": Given(rows=1, terms=12, weight_terms=12, width=10),
    "another type": Given(dtype=torch.float64),
    "another type of the same size": Given(dtype=torch.int32),
    "another op": Given(),
    "no call": Given(),
    "a call that is refused": Given(weight_terms=7),
}


def _call(name: str, group: Any, given: Given) -> list[Tensor]:
    """On a tensor of ones and one of threes."""
    ranks, device = dist.get_world_size(), os.environ.get("CHECK_DEVICE", "cpu")
    a = torch.ones(given.rows * ranks, given.terms, device=device).to(given.dtype)
    weight = torch.full((given.weight_terms, given.width), 3, device=device).to(given.dtype)
    op = getattr(_OPS.commsir, name)
    if name.startswith("matmul"):
        return [op(a, weight, group)]
    made: list[Tensor] = op(a, [weight], [None], False, group)
    return made


def _said(name: str, group: Any, given: Given) -> str:
    """What the error of a call says; nothing if it has none."""
    try:
        _call(name, group, given)
    except RuntimeError as error:
        return str(error)
    return ""


def disagrees(rank: int, size: int, how: str, repeated: bool) -> dict[str, str]:
    """Rank 1 calls each op in another way than the others, perhaps after some calls that are right; what is said."""
    given = DISAGREEMENTS[how] if rank == 1 else Given()
    said = {}
    # Where a rank does not come, the others wait until the timeout, which is long enough for a busy machine.
    waits = how in ("no call", "a call that is refused")
    names = ["all_gather_matmul" if how == "no call" else "matmul_all_reduce"] if waits else list(OTHERS_CALL)
    for name in names:
        other = OTHERS_CALL[name]
        made = dist.new_group(list(range(size)), timeout=timedelta(seconds=5 if waits else 60))
        for _ in range(3 if repeated else 0):
            assert not _said(name, made.group_name, Given())
        called = other if how == "another op" and rank == 1 else name
        silent = how == "no call" and rank == 1
        began = time.monotonic()
        said[name] = "" if silent else _said(called, made.group_name, given)
        assert time.monotonic() - began < 30, f"{how}, {name}: too late"
        dist.barrier()
    return said


def shapes_differ(rank: int, size: int) -> dict[str, list[str]]:
    """What each op says when rank 1 gives as many elements in another shape, twice; then all give the same."""
    name, odd = dist.group.WORLD.group_name, DISAGREEMENTS["another shape of the same size"]
    said = {}
    for op in OTHERS_CALL:
        said[op] = [_said(op, name, odd if rank == 1 else Given()) for _ in range(2)]
        made = _call(op, name, Given())
        times = size if op in ("matmul_all_reduce", "matmul_reduce_scatter") else 1
        assert all(bool((one == 18 * times).all()) for one in made), f"{op}: {made}"
    return said


def sizes_may_differ(rank: int, size: int) -> dict[str, list[int]]:
    """Each rank has as many terms as it likes where products are summed, and weights as wide where rows arrive."""
    name, shapes = dist.group.WORLD.group_name, {}
    for op in OTHERS_CALL:
        arrives, terms = not op.startswith("matmul"), 3 + rank
        given = Given(width=4 + rank) if arrives else Given(terms=terms, weight_terms=terms)
        (made,) = _call(op, name, given)
        if op == "matmul_all_to_all":
            wants = [3.0 * (3 + other) for other in range(size) for _ in range(2)]
        else:
            summed = sum(3.0 * (3 + other) for other in range(size))
            wants = [18.0 if arrives else summed] * made.shape[0]
        assert torch.equal(made, torch.tensor(wants).to(made).view(-1, 1).expand(made.shape)), f"{op}: {made}"
        shapes[op] = list(made.shape)
    return shapes
