"""The matrix instructions of the PTX emulator: ldmatrix, mma.sync, wgmma, asynchronous copies and copies of tiles."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from memory import SLOT, SYS, WEAK, Fault, Memory, Viewer

KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
KINDS |= {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
LINE = 128  # Bytes of a row of a tile in shared memory.


class Copies:
    """The copies of one thread: groups, of which the last is open. What they bring is seen once they are waited for."""

    def __init__(self) -> None:
        self.groups: list[list[tuple[int, list[int]]]] = [[]]

    def start(self, memory: Memory, who: Viewer, dest: int, source: int, size: int) -> None:
        """cp.async of 16 bytes, of which `size` are read; the others become 0."""
        halves = memory.read(who, source, 2, size // 2, WEAK, SYS) if size else []
        self.groups[-1].append((dest, halves + [0] * (8 - len(halves))))

    def commit(self) -> None:
        self.groups.append([])

    def wait(self, memory: Memory, who: Viewer, count: int) -> None:
        """Until at most `count` of the closed groups are still to come."""
        done = max(len(self.groups) - 1 - count, 0)
        for group in self.groups[:done]:
            for dest, halves in group:
                memory.part(dest, 16)
                memory.store(dest, 2, halves)
                memory.proxies.note(who, dest, 16)
        del self.groups[:done]


class Groups:
    """The wgmma of one thread, by groups, of which the last is open. Until a group is waited for, shared memory has to
    keep its operands."""

    def __init__(self) -> None:
        self.groups: list[list[Callable[[], bytes]]] = [[]]
        self.read: list[list[bytes]] = [[]]
        self.is_fenced = False

    def fence(self) -> None:
        self.is_fenced = True

    def start(self, operands: Callable[[], bytes]) -> None:
        if not self.is_fenced:
            raise Fault("a wgmma without wgmma.fence: its registers may still be written")
        self.groups[-1].append(operands)
        self.read[-1].append(operands())

    def commit(self) -> None:
        self.is_fenced = False
        self.groups.append([])
        self.read.append([])

    def wait(self, count: int) -> None:
        done = max(len(self.groups) - 1 - count, 0)
        for group, read in zip(self.groups[:done], self.read[:done], strict=True):
            if any(operands() != before for operands, before in zip(group, read, strict=True)):
                raise Fault("shared memory changes while wgmma reads it")
        del self.groups[:done], self.read[:done]

    def end(self) -> None:
        if len(self.groups) > 1 or self.groups[0]:
            raise Fault("a thread ends before its wgmma")


def ldmatrix(memory: Memory, lanes: list[tuple[Any, ...]]) -> list[list[int]]:
    """Four matrices of 8 by 8: lanes 8j to 8j + 7 have the addresses of the rows of matrix j."""
    rows = [memory.load(address, 2, 8) for _, address in lanes]
    is_turned = lanes[0][0]

    def word(matrix: int, lane: int) -> int:
        i, j = lane // 4, 2 * (lane % 4)
        picked = [(j, i), (j + 1, i)] if is_turned else [(i, j), (i, j + 1)]
        low, high = (rows[8 * matrix + row][column] for row, column in picked)
        return low | high << 16

    return [[word(matrix, lane) for matrix in range(4)] for lane in range(32)]


def _numbers(words: list[int], kind: str) -> Any:
    halves = np.array([half for word in words for half in (word & 0xFFFF, word >> 16)], np.uint16)
    return halves.view(KINDS[kind]).astype(np.float64)


def mma(memory: Memory, lanes: list[tuple[Any, ...]]) -> list[list[int]]:
    """m16n8k16: c + a b, rounded once. GPUs add up otherwise, except sums that are exact."""
    kind = lanes[0][0]
    a, b, c = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
    for lane, (_, *words) in enumerate(lanes):
        g, t = lane // 4, 2 * (lane % 4)
        left, right = _numbers(words[:4], kind), _numbers(words[4:6], kind)
        for number, (row, column) in enumerate(((g, t), (g + 8, t), (g, t + 8), (g + 8, t + 8))):
            a[row, column : column + 2] = left[2 * number : 2 * number + 2]
        b[t : t + 2, g], b[t + 8 : t + 10, g] = right[:2], right[2:]
        sums = np.array([word & 0xFFFFFFFF for word in words[6:]], np.uint32).view(np.float32)
        c[g, t : t + 2], c[g + 8, t : t + 2] = sums[:2], sums[2:]
    d = (c + a @ b).astype(np.float32).view(np.uint32)
    return [
        [int(d[row, column]) for row in (lane // 4, lane // 4 + 8) for column in (2 * (lane % 4), 2 * (lane % 4) + 1)]
        for lane in range(32)
    ]


def exchanged(address: int) -> int:
    """The place of a byte where pieces of 16 bytes are exchanged by their row (128B swizzle)."""
    return address ^ (address >> 3 & 0x70)


@dataclasses.dataclass
class Descriptor:
    """An operand of wgmma in shared memory: its first element, and bytes between panels and between eight rows."""

    address: int
    panels: int
    rows: int

    @staticmethod
    def read(word: int, shared: int) -> "Descriptor":
        if word >> 62 & 3 != 1:
            raise Fault("an operand of wgmma without the exchange of 128 bytes")
        first, panels, rows = (16 * (word >> at & 0x3FFF) for at in (0, 16, 32))
        return Descriptor(shared + first, panels, rows)

    def read_bytes(self, memory: Memory, across: int, terms: int, kind: str, is_turned: bool) -> Any:
        """Its elements, [across, terms], each as its bytes."""
        size = np.dtype(KINDS[kind]).itemsize
        i, k = np.meshgrid(np.arange(across), np.arange(terms), indexing="ij")
        line, column = (k, i) if is_turned else (i, k)
        panel = column // (LINE // size) if is_turned else 0 * column
        place = panel * self.panels + line // 8 * self.rows + line % 8 * LINE + column % (LINE // size) * size
        at: Any = exchanged(self.address + place) & (1 << SLOT) - 1
        data = np.frombuffer(bytes(memory.parts[self.address >> SLOT]), np.uint8)
        if at.max() + size > len(data):
            raise Fault(f"wgmma reads beyond {len(data)} bytes of shared memory")
        return np.ascontiguousarray(np.stack([data[at + byte] for byte in range(size)], -1)), np.unique(at >> 4)


def _bytes_of(read: Callable[[], tuple[Any, Any]]) -> bytes:
    return bytes(read()[0].tobytes())


def wgmma(
    memory: Memory,
    who: Viewer,
    groups: Groups,
    shared: int,
    shape: str,
    kinds: tuple[str, str],
    threads: list[tuple[Any, ...]],
) -> Any:
    """d = a b + d of 64 rows by 128 threads, rounded once. GPUs add up otherwise, except sums that are exact."""
    n, terms = (int(part) for part in shape[len("m64n") :].split("k"))
    left, right, keeps, turns = threads[0][:4]
    if any(given[:4] != threads[0][:4] for given in threads):
        raise Fault("threads of a group give wgmma other operands")
    operands = []
    for word, across, kind, is_turned in ((left, 64, kinds[0], turns[0]), (right, n, kinds[1], turns[1])):
        read = functools.partial(Descriptor.read(word, shared).read_bytes, memory, across, terms, kind, is_turned)
        picked, pieces = read()
        for piece in pieces:
            memory.proxies.check(who, (shared >> SLOT << SLOT) + int(piece) * 16, 16)
        groups.start(functools.partial(_bytes_of, read))
        operands.append(picked.view(KINDS[kind])[..., 0].astype(np.float64))
    a, b = operands
    sums = np.array([given[4] for given in threads], np.uint64).astype(np.uint32).view(np.float32)
    thread, at = np.meshgrid(np.arange(128), np.arange(n // 2), indexing="ij")
    row = thread // 32 * 16 + thread % 32 // 4 + at % 4 // 2 * 8
    column = at // 4 * 8 + thread % 4 * 2 + at % 2
    d = (a @ b.T)[row, column] + (sums if keeps else 0)
    return d.astype(np.float32).view(np.uint32).tolist()


#: The fields of a map of a tensor in memory, each at its byte and of its size. GPUs have them elsewhere.
FIELDS = {"global_address": (0, 8), "rank": (8, 4), "elemtype": (12, 4), "interleave_layout": (16, 4)}
FIELDS |= {"swizzle_mode": (20, 4), "fill_mode": (24, 4), "box_dim": (32, 4), "global_dim": (52, 4)}
FIELDS |= {"global_stride": (72, 8), "element_stride": (104, 4)}
MAP_BYTES = 128


class Maps:
    """The maps that a thread block has read. What changes in memory is seen after a fence only."""

    def __init__(self) -> None:
        self.known: dict[int, bytes] = {}

    def replace(self, memory: Memory, address: int, field: str, number: int, value: int) -> None:
        """Changes a map in shared memory."""
        at, size = FIELDS[field]
        memory.store(address + at + number * size, size, [value])

    def acquire(self, memory: Memory, address: int) -> None:
        data, at = memory.part(address, MAP_BYTES)
        self.known[address] = bytes(data[at : at + MAP_BYTES])

    def field(self, address: int, field: str, number: int = 0) -> int:
        if address not in self.known:
            raise Fault("a map is used without fence.proxy.tensormap")
        at, size = FIELDS[field]
        return int.from_bytes(self.known[address][at + number * size :][:size], "little")

    def copy(self, memory: Memory, who: Viewer, dest: int, address: int, column: int, row: int, barrier: int) -> None:
        """cp.async.bulk.tensor.2d: a tile, of which what lies outside of the tensor is 0. It comes later."""
        size = {0: 1, 6: 2, 10: 2}[self.field(address, "elemtype")]
        width, height = (self.field(address, "box_dim", i) for i in range(2))
        columns, rows = (self.field(address, "global_dim", i) for i in range(2))
        base, stride = self.field(address, "global_address"), self.field(address, "global_stride")
        if width * size != LINE or self.field(address, "swizzle_mode") != 3 or height > 256:
            raise Fault(f"tiles of {height} rows of {width * size} bytes, exchanged otherwise than by 128 bytes")
        if base % 16 or stride % 16 or dest % (8 * LINE):
            raise Fault("a copy of tiles that is not aligned")
        wide = max(min(columns - column, width), 0) * size
        for line in range(min(height, rows - row)):
            memory.proxies.check(who, base + (row + line) * stride + column * size, wide)

        def come() -> None:
            data, at = memory.part(dest, 1)
            for line in range(height):
                given = b""
                if row + line < rows and wide:
                    source, first = memory.part(base + (row + line) * stride + column * size, 1)
                    given = bytes(source[first : first + wide])
                given = given.ljust(LINE, b"\0")
                for piece in range(0, LINE, 16):
                    place = exchanged(at + line * LINE + piece)
                    if place + 16 > len(data):
                        raise Fault(f"a tile is copied beyond {len(data)} bytes of shared memory")
                    data[place : place + 16] = given[piece : piece + 16]
            memory.expect(None, barrier, 0, -height * LINE)

        memory.transfers.append(come)


#: What a warp does together, by name: of what each lane gives, what each lane gets.
TOGETHER = {"ldmatrix": ldmatrix, "mma": mma}
