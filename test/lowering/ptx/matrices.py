"""The matrix instructions of the PTX emulator: ldmatrix, mma.sync and asynchronous copies."""

from typing import Any

import ml_dtypes
import numpy as np
from memory import SYS, WEAK, Memory, Viewer

KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


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

    def wait(self, memory: Memory, count: int) -> None:
        """Until at most `count` of the closed groups are still to come."""
        done = max(len(self.groups) - 1 - count, 0)
        for group in self.groups[:done]:
            for dest, halves in group:
                memory.part(dest, 16)
                memory.store(dest, 2, halves)
        del self.groups[:done]


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
    """m16n8k16: c + a b, rounded once. GPUs add up otherwise, but for sums that are exact."""
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


#: What a warp does together, by name: of what each lane gives, what each lane gets.
TOGETHER = {"ldmatrix": ldmatrix, "mma": mma}
