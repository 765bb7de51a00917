"""Which way a matmul next to a collective takes, by a model of both ways' time.

The model is of the vendor's matmul in bf16 and f16 on GPUs of compute capability 9.0, and of NVLink between them. Its
constants are fitted to test/gpu/matmul.py on 2 and 4×H100 (docs/history/2026-11-26.md). Ranks that ask about the same
sizes come to one answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch

from commsir.torch.matmul.factor import FP8

__all__ = [
    "OWN_TILE",
    "Choice",
    "Groups",
    "adds_in_product",
    "choose",
    "collective_time",
    "produce_gain",
    "region_gain",
    "saved_traffic",
]

#: Of the vendor's matmul: rows and columns of its tiles, and µs for each element of k. Then what a tile takes for
#: itself, a launch, and what it costs to add up parts of k, of which there may be several where tiles are few.
_TILES = (128, 256, 0.0108), (128, 128, 0.0061)
_PER_TILE, _LAUNCH, _ADDED_PARTS = 1.5, 1.0, 3.0
_PARTS = 1, 2, 4
#: Of a kernel that multiplies and adds (sums.py): rows and columns of its tiles, µs for each element of k: a thirtieth
#: more than the vendor's (docs/Results.md); and GB/s at which it reads what it adds, in addition to the operands.
OWN_TILE, _OWN_RATE, _OWN_READS = (128, 256), 0.0112, 3300.0
#: It has whole tiles, and a multiple of so many terms.
_OWN_TERMS = 64
#: How many times as fast fp8 is multiplied. Assumed, not measured: tensor cores have twice the rate.
_FP8_RATE = 1.7
#: GB/s from one GPU to another by copy engines beside a matmul; µs from a kernel to a copy behind it, of a copy and its
#: signal in addition to the transfer, and of a wait for a signal.
_LINK, _TO_COPY, _PER_COPY, _WAIT = 345.0, 10.0, 4.0, 2.0
#: µs that a product takes longer when a copy follows it, and what each block but the first costs.
_FORK, _PER_BLOCK = 2.0, 12.0
#: Of our own collectives, by their number of ranks (two, more): GB/s and µs in addition to the transfer.
_COLLECTIVES = {
    "all_gather": ((255.0, 20.0), (310.0, 24.0)),
    # Not measured by itself: as many bytes travel as by an all_gather.
    "all_to_all": ((255.0, 20.0), (310.0, 24.0)),
    "reduce_scatter": ((300.0, 4.0), (340.0, 8.0)),
    "all_reduce": ((315.0, 6.0), (345.0, 10.0)),
}
#: Ranks of a collective of which no number is known.
_USUAL_RANKS = 4
#: µs of a meeting of all ranks.
_MEETING = 5.0
#: GB/s of a kernel that only reads and writes memory.
_MEMORY = 2600.0
#: The overlapped way is taken where its predicted time is at most so much of the other's.
_MARGIN = 0.97
_MOST_BLOCKS = 4


@dataclass(frozen=True)
class Choice:
    """What the model says of one call; times in µs."""

    #: Blocks into which each rank's rows are cut; 0: the collective and the matmul one after the other.
    blocks: int
    plain: float
    overlapped: float
    #: Why the model has nothing to say, on a GPU; empty: it has.
    why_not: str = ""

    def __str__(self) -> str:
        return (
            self.why_not
            or f"{self.plain:.0f} µs predicted for one after the other, {self.overlapped:.0f} µs overlapped"
        )


@dataclass(frozen=True)
class Groups:
    """Groups of rows, each of which has a matrix of its own."""

    count: int = 1
    #: Rows of each; 0: they end where the data says.
    rows: int = 0

    def in_block(self, rows: int) -> int:
        """Over how many of them so many consecutive rows extend, at least one."""
        return -(-rows // self.rows) if self.rows else self.count


_ONE_GROUP = Groups()


@functools.cache
def _processors(device: int) -> int:
    """Of a GPU that the model is of; 0: it is of another kind."""
    is_known = torch.cuda.get_device_capability(device) == (9, 0)
    return int(torch.cuda.get_device_properties(device).multi_processor_count) if is_known else 0


def _sent(op: str, ranks: int, size: float) -> float:
    """µs of a collective in which each rank sends so many bytes."""
    rate, fixed = _COLLECTIVES[op][ranks > 2]
    return fixed + size / rate / 1e3


@dataclass(frozen=True)
class _Sizes:
    ranks: int
    rows: int
    n: int
    k: int
    itemsize: int
    processors: int
    groups: Groups = _ONE_GROUP
    #: Of an element of the result; 0: `itemsize`.
    made: int = 0

    @property
    def result_size(self) -> int:
        return self.made or self.itemsize

    def matmul(self, rows: int) -> float:
        groups = max(self.groups.in_block(rows), 1)
        rate = _FP8_RATE if self.itemsize == 1 else 1.0

        def by(tile: tuple[int, int, float], parts: int) -> float:
            tiles = groups * -(-rows // (groups * tile[0])) * -(-self.n // tile[1]) * parts
            waves = -(-tiles // self.processors)
            return waves * (tile[2] * self.k / parts / rate + _PER_TILE) + (_ADDED_PARTS if parts > 1 else 0.0)

        return min(by(tile, parts) for tile in _TILES for parts in _PARTS) + _LAUNCH

    def copied(self, size: int) -> float:
        """`size` in bytes."""
        return size / _LINK / 1e3

    def collective(self, op: str, size: int) -> float:
        """`size` are the bytes that a rank sends."""
        return _sent(op, self.ranks, size)

    def moved(self, elements: int) -> float:
        """Elements of results, within a GPU's memory."""
        return elements * self.result_size / _MEMORY / 1e3

    def added_by_vendor(self, rows: int) -> float:
        """A product of so many rows, and what the others have sent of them: a kernel adds that up, and the matmul reads
        the sum. Of one rank's, torch makes a copy for the matmul."""
        return self.moved(self.ranks * rows * self.n) + _LAUNCH + self.matmul(rows)

    def added_in_product(self, rows: int) -> float:
        """The same by one kernel (sums.py); infinite: there is none."""
        height, width = OWN_TILE
        is_even = rows % height == 0 and self.n % width == 0 and self.k % _OWN_TERMS == 0
        if not is_even or self.itemsize != 2 or self.result_size != 2 or self.groups != _ONE_GROUP:
            return float("inf")
        waves = -(-(rows // height * (self.n // width)) // self.processors)
        reads = (self.ranks - 1) * rows * self.n * self.result_size / _OWN_READS / 1e3
        return waves * (_OWN_RATE * self.k + _PER_TILE) + reads + _LAUNCH

    def added(self, rows: int) -> float:
        return min(self.added_by_vendor(rows), self.added_in_product(rows))


def _arrive(op: str, sizes: _Sizes, blocks: int) -> tuple[float, float]:
    """`rows` is those that a rank sends to each other one."""
    others, sent = sizes.ranks - 1, sizes.rows * sizes.k * sizes.itemsize
    plain = sizes.collective(op, others * sent) + sizes.matmul(sizes.ranks * sizes.rows)
    own = sizes.matmul(sizes.rows)
    end, arrived = _MEETING + own, _MEETING + _TO_COPY
    for _ in range(others):
        arrived += sizes.copied(sent) + _PER_COPY
        end = max(end, arrived) + _WAIT + own
    return plain, end if blocks == 1 else float("inf")


class _Products:
    """The times at which this rank's stream and its copies come to a place, while it makes blocks of products."""

    def __init__(self, sizes: _Sizes, blocks: int) -> None:
        self.sizes, self.rows = sizes, sizes.rows // (sizes.ranks * blocks)
        self.end = self.link = _MEETING
        self._product, self._arrived = sizes.matmul(self.rows), list[float]()
        self._copied = sizes.copied(self.rows * sizes.n * sizes.result_size)

    def copy(self) -> None:
        """Behind what the stream has done."""
        self.link = max(self.link, self.end + _TO_COPY) + self._copied + _PER_COPY

    def send(self) -> None:
        for _ in range(self.sizes.ranks - 1):
            self.end += self._product + _FORK
            self.copy()
        self._arrived.append(self.link)

    def total(self, block: int) -> None:
        waits = (self.sizes.ranks - 1) * _WAIT
        self.end = max(self.end, self._arrived[block]) + waits + self.sizes.added(self.rows)


def _scatter(sizes: _Sizes, blocks: int) -> tuple[float, float]:
    """`rows` is those of the whole product."""
    ranks = sizes.ranks
    plain = sizes.matmul(sizes.rows)
    plain += sizes.collective("reduce_scatter", (ranks - 1) * sizes.rows // ranks * sizes.n * sizes.result_size)
    products = _Products(sizes, blocks)
    for _ in range(blocks):
        products.send()
    for block in range(blocks):
        products.total(block)
    return plain, products.end


def _reduce(sizes: _Sizes, blocks: int) -> tuple[float, float]:
    """`rows` is those of the whole product."""
    ranks = sizes.ranks
    plain = sizes.matmul(sizes.rows)
    plain += sizes.collective("all_reduce", 2 * (ranks - 1) * sizes.rows // ranks * sizes.n * sizes.result_size)
    products = _Products(sizes, blocks)
    for block in range(blocks + 2):
        if block < blocks:
            products.send()
        if block > 1:
            for _ in range(ranks - 1):
                products.end += _WAIT
                products.copy()
            products.end += sizes.moved(2 * products.rows * sizes.n)
        if 0 < block <= blocks:
            products.total(block - 1)
            products.end += (ranks - 1) * _WAIT
    return plain, max(products.end, products.link)


def _exchange(sizes: _Sizes, blocks: int) -> tuple[float, float]:
    """`rows` is those of the whole product."""
    ranks = sizes.ranks
    sent = (ranks - 1) * sizes.rows // ranks * sizes.n
    plain = sizes.matmul(sizes.rows) + sizes.collective("all_to_all", sent * sizes.result_size)
    products = _Products(sizes, 1)
    products.send()
    products.end += sizes.matmul(products.rows)
    end = max(products.end, products.link) + (ranks - 1) * (_WAIT + _LAUNCH) + sizes.moved(2 * sent)
    return plain, end if blocks == 1 else float("inf")


_WAYS: dict[str, Callable[[_Sizes, int], tuple[float, float]]] = {
    "all_gather": functools.partial(_arrive, "all_gather"),
    "all_to_all_before": functools.partial(_arrive, "all_to_all"),
    "all_to_all_behind": _exchange,
    "reduce_scatter": _scatter,
    "all_reduce": _reduce,
}


@functools.lru_cache(maxsize=4096)
def _best(op: str, sizes: _Sizes) -> Choice:
    best = Choice(0, 0.0, float("inf"))
    for blocks in range(1, _MOST_BLOCKS + 1):
        if op not in ("all_gather", "all_to_all_before") and sizes.rows % (sizes.ranks * blocks):
            continue
        plain, overlapped = _WAYS[op](sizes, blocks)
        overlapped += _PER_BLOCK * (blocks - 1)
        if overlapped < best.overlapped:
            best = Choice(blocks if overlapped <= _MARGIN * plain else 0, plain, overlapped)
    return best


def choose(
    op: str,
    ranks: int,
    rows: int,
    n: int,
    k: int,
    dtype: torch.dtype,
    device: torch.device,
    groups: Groups = _ONE_GROUP,
    made: torch.dtype | None = None,
) -> Choice:
    """For a [rows, k] by [k, n] matmul, behind an all_gather or an `all_to_all_before` of `rows` from each rank, or
    before a reduce_scatter, an all_reduce or an `all_to_all_behind` of the whole product, whose type is `made`."""
    if device.type != "cuda" or ranks < 2 or not rows * n * k:
        return _nothing("")
    is_fp8 = dtype in FP8
    if dtype not in (torch.bfloat16, torch.float16) and not is_fp8:
        return _nothing(f"matmuls of {dtype} are not overlapped: those of bfloat16, float16 and fp8 are")
    # Copies between GPUs, and what matmuls read, are aligned.
    unit = 16 if is_fp8 else 8
    if n % unit or k % unit:
        return _nothing(f"a matmul by [{k}, {n}] is not overlapped: multiples of {unit} are")
    processors = _processors(torch.cuda.current_device() if device.index is None else int(device.index))
    if not processors:
        return _nothing("matmuls are overlapped only on GPUs of compute capability 9.0")
    size = (made or dtype).itemsize
    return _best(op, _Sizes(ranks, rows, n, k, dtype.itemsize, processors, groups, size))


@functools.lru_cache(maxsize=4096)
def _adds_in_product(sizes: _Sizes) -> bool:
    return sizes.added_in_product(sizes.rows) < sizes.added_by_vendor(sizes.rows)


def adds_in_product(ranks: int, rows: int, n: int, k: int, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether one kernel of ours multiplies [rows, k] by [k, n] and adds what all other ranks have sent of it faster
    than a kernel and the vendor's matmul."""
    processors = _processors(int(device.index)) if device.type == "cuda" else 0
    if not processors or dtype not in (torch.bfloat16, torch.float16):
        return False
    return _adds_in_product(_Sizes(ranks, rows, n, k, dtype.itemsize, processors))


def _nothing(why_not: str) -> Choice:
    return Choice(0, 0.0, float("inf"), why_not)


def collective_time(op: str, ranks: int, size: int) -> float:
    """µs of a sum by itself; `size`: bytes of its input."""
    steps = 2 if op == "all_reduce" else 1
    return _sent(op, ranks, steps * (ranks - 1) * size / ranks)


def saved_traffic(size: int) -> float:
    """µs that a kernel saves which neither writes nor reads so many bytes of a collective's result."""
    return 2 * size / _MEMORY / 1e3


def produce_gain(sent: int, written: int) -> float:
    """What a kernel gains, in µs, that makes the `sent` bytes of a collective's input itself. `written` are the bytes
    that have to be written for it, of values that other kernels would have made in passing."""
    return saved_traffic(sent) - saved_traffic(written) + (0.0 if written else _LAUNCH)


def region_gain(value: torch.Tensor, joined: int, has_arithmetic: bool) -> float | None:
    """What a kernel gains, in µs, that does a collective whose result is like `value` with the arithmetic after it, and
    in place of `joined` more of them. None: it is on the CPU, or its size is not known when it is compiled."""
    if value.device.type != "cuda" or not all(isinstance(size, int) for size in value.shape):
        return None
    size = value.numel() * value.dtype.itemsize
    saved = joined * collective_time("all_reduce", _USUAL_RANKS, size)
    return saved + (saved_traffic(size) + _LAUNCH if has_arithmetic else 0.0)
