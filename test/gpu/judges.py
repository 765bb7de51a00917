"""Expected results: to the bit, as docs/Spec.md (Bits) says, and close to float64.

A `Judge` reads the results of a run and returns what is wrong. Arrays are words (floats.py).
"""

import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np
from floats import DIGITS, GREATEST, STEP, Array, is_float, load, narrow, widen

SUMS = ("all_reduce", "reduce_scatter", "norm")
#: Added to the sum of the squares of a row, in "norm".
EPSILON = 2.0**-20


def accumulate(words: Array, element: str) -> Array:
    """Elements in the type in which ranks are summed."""
    return words.astype(np.int32) if element == "i8" else widen(words, element)


def traveled(numbers: Array, element: str) -> Array:
    """Sums that went to another rank, rounded to the type that travels."""
    return widen(narrow(numbers, element), element) if is_float(element) else numbers


def add(left: Array, right: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(left + right)


def in_rank_order(parts: list[Array], element: str) -> Array:
    """((x0 + x1) + x2) + …, not rounded yet."""
    total = accumulate(parts[0], element)
    for part in parts[1:]:
        total = add(total, accumulate(part, element))
    return total


def around_ring(parts: list[Array], element: str, first: int) -> Array:
    """The same beginning with rank `first`, rounded at each hop."""
    total = accumulate(parts[first], element)
    for hop in range(1, len(parts)):
        part = parts[(first + hop) % len(parts)]
        total = add(traveled(total, element), accumulate(part, element))
    return total


def greatest(parts: list[Array], element: str) -> Array:
    """The maximum; of zeros +0. No NaN."""
    most = widen(parts[0], element)
    for part in parts[1:]:
        other = widen(part, element)
        most = np.where((other > most) | ((other == most) & np.signbit(most)), other, most)
    return narrow(most, element)


def row_sums(rows: Array) -> Array:
    """Sums of rows by the tree of pairs, (rows, 1); rows of 16,384 elements at most."""
    while rows.shape[1] > 1:
        left, right = np.array(rows[:, 0::2]), rows[:, 1::2]
        left[:, : right.shape[1]] = add(left[:, : right.shape[1]], right)
        rows = left
    return rows


def normalize(total: Array, element: str) -> Array:
    """Rows over the root of the sum of their squares, as the kernel of "norm" computes them."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        root = np.sqrt(add(row_sums(total * total), np.float32(EPSILON)))
        return narrow(total / root, element)


@dataclasses.dataclass(frozen=True)
class Judge:
    """One collective of a kernel. `given`: files of the inputs, where the run writes over them."""

    op: str
    element: str
    ranks: int
    algorithm: str = "one_shot"
    x: str = "x"
    y: str = "y"
    root: int = 0
    #: Launches, each of which takes what the one before left.
    in_place: int = 0
    given: str = ""
    #: Rows of one part, by sender and receiver, of an exchange in which they vary.
    rows: tuple[tuple[int, ...], ...] = ()
    #: Ranks that reach each other by load and store.
    reach: int = 0

    def wrong(self, folder: pathlib.Path, prefix: str = "") -> str:
        """What is wrong with the results of all ranks in `folder`, or ""."""
        source = self.given or f"{folder}/{prefix}{self.x}-%r.npy"
        xs = [load(source.replace("%r", str(rank)), self.element) for rank in range(self.ranks)]
        ys = [load(folder / f"{prefix}{self.y}-{rank}.npy", self.element) for rank in range(self.ranks)]
        for _ in range(self.in_place - 1):
            xs = [self.outcomes(xs, rank)[0] for rank in range(self.ranks)]
        if self.op in ("all_reduce", "norm") and any(not np.array_equal(y, ys[0]) for y in ys):
            return f"{self.y}: ranks have different bits"
        for rank, got in enumerate(ys):
            outcomes = self.outcomes(xs, rank)
            if fault := differing(got, outcomes):
                return f"{self.y} of rank {rank} is not what the Spec says (Bits): {fault}"
            if fault := self.far(got, xs, rank):
                return f"{self.y} of rank {rank} is not what float64 gives: {fault}"
        return ""

    def parts(self, xs: list[Array], rank: int) -> list[Array]:
        """What is summed on `rank`."""
        return [np.split(x, self.ranks)[rank] for x in xs] if self.op == "reduce_scatter" else xs

    def outcomes(self, xs: list[Array], rank: int) -> list[Array]:
        """All that the Spec allows `rank` to have: more than one where a ring's order depends on tiles."""
        if self.op not in SUMS:
            return [self.moved(xs, rank)]
        parts = self.parts(xs, rank)
        if self.algorithm != "ring":
            return [self.finish(in_rank_order(parts, self.element))]
        # The part of a rank begins behind it; the parts of an all_reduce are tiles.
        starts = [(rank + 1) % self.ranks] if self.op == "reduce_scatter" else range(self.ranks)
        return [self.finish(around_ring(parts, self.element, first)) for first in starts]

    def finish(self, total: Array) -> Array:
        if self.op != "norm":
            return narrow(total, self.element)
        # All but a one-shot round what is handed on.
        return normalize(total if self.algorithm == "one_shot" else traveled(total, self.element), self.element)

    def moved(self, xs: list[Array], rank: int) -> Array:
        """What `rank` has of an operation that adds nothing."""
        untouched = np.zeros_like(np.concatenate(xs) if self.op == "gather" else xs[0])
        moves: dict[str, Callable[[], Array]] = {
            "all_gather": lambda: np.concatenate(xs),
            "all_to_all": lambda: np.concatenate([np.split(x, self.ranks)[rank] for x in xs]),
            "all_to_all_v": lambda: self.rows_for(xs, rank),
            "broadcast": lambda: xs[self.root],
            "reduce": lambda: greatest(xs, self.element) if rank == self.root else untouched,
            "gather": lambda: np.concatenate(xs) if rank == self.root else untouched,
            "scatter": lambda: np.split(xs[self.root], self.ranks)[rank],
            # From the root to the rank after it.
            "send_recv": lambda: xs[self.root] if rank == (self.root + 1) % self.ranks else untouched,
            "pass": lambda: xs[rank - 1],
            "next": lambda: xs[(rank + 1) % self.ranks],
            "triple": lambda: xs[rank - 1] * np.uint32(0xAAAAAAAB).astype(np.int32),
            "beside": lambda: xs[rank - rank % self.reach + (rank + 1) % self.reach],
        }
        return moves[self.op]()

    def rows_for(self, xs: list[Array], rank: int) -> Array:
        """The rows that all have for `rank`, and zeros behind them."""
        got = np.zeros_like(xs[0])
        end = 0
        for source, x in enumerate(xs):
            before, count = sum(self.rows[source][:rank]), self.rows[source][rank]
            got[end : end + count] = x[before : before + count]
            end += count
        return got

    def far(self, got: Array, xs: list[Array], rank: int) -> str:
        """Compares a sum with that of float64; "" where it is as near as its roundings allow."""
        if self.op not in SUMS or not is_float(self.element):
            return ""
        with np.errstate(over="ignore", invalid="ignore"):
            parts = np.array([widen(part, self.element).astype(np.float64) for part in self.parts(xs, rank)])
            exact, size = parts.sum(axis=0), np.abs(parts).sum(axis=0)
            hops = self.ranks if self.algorithm == "ring" else 2 if self.op == "norm" else 1
            inside = size <= GREATEST["f32" if self.op == "norm" else self.element]
            digits = DIGITS[self.element]
            allowed = hops * (size * 2.0**-digits + STEP[self.element]) + self.ranks * size * 2.0 ** -max(24, digits)
            if self.op == "norm":
                exact, allowed, inside = norm_of_float64(exact, allowed, inside, digits)
            # Infinities and NaN are what they are; a sum beyond the type's range is the Spec's matter.
            numbers = widen(got, self.element).astype(np.float64)
            same = (numbers == exact) | (np.isnan(numbers) & np.isnan(exact))
            near = np.where(np.isfinite(size), ~inside | (np.abs(numbers - exact) <= allowed), same)
        return describe(near, numbers, exact)


def norm_of_float64(exact: Array, error: Array, inside: Array, digits: int) -> tuple[Array, Array, Array]:
    """Rows over their length, how far from that results may be, and which are judged: no NaN and infinity beside."""
    root = np.sqrt((exact * exact).sum(axis=1, keepdims=True) + EPSILON)
    relative = np.sqrt((error * error).sum(axis=1, keepdims=True)) / root + exact.shape[1] * 2.0**-24
    rows = exact / root
    allowed = error / root + np.abs(rows) * (relative + 2.0**-digits) + 2.0**-133
    judged = inside.all(axis=1, keepdims=True) & (root < 1e18) & np.ones_like(inside)
    return rows, 2 * allowed, judged


def describe(good: Array, got: Array, want: Array) -> str:
    if good.all():
        return ""
    where = np.flatnonzero(~np.ravel(good))
    first = where[0]
    numbers = f"got {np.ravel(got)[first]}, expected {np.ravel(want)[first]}"
    return f"element {first}: {numbers}; {where.size} of {got.size} differ"


def differing(got: Array, outcomes: list[Array]) -> str:
    """Where `got` has the bits of none of `outcomes`."""
    shaped = [np.reshape(outcome, got.shape) for outcome in outcomes]
    good = np.any([got == outcome for outcome in shaped], axis=0)
    if good.all():
        return ""
    first = np.flatnonzero(~np.ravel(good))[0]
    width = 2 * got.dtype.itemsize
    mask = (1 << 4 * width) - 1

    def bits(array: Array) -> str:
        return f"0x{int(np.ravel(array)[first]) & mask:0{width}x}"

    allowed = " or ".join(sorted({bits(one) for one in shaped}))
    return f"element {first}: got {bits(got)}, expected {allowed}; {np.count_nonzero(~good)} of {got.size} differ"
