"""A quantized all-reduce: fp8 values and a scale for each row travel, float32 is summed.

Reduce-scatter and all-gather in one kernel: each rank sums its share of the rows, and quantizes the sums once more.
"""

from __future__ import annotations

import numpy as np

import commsir
from commsir import Array, Tile, all_gather, all_to_all, dims, f8, f32, maximum


def pack(row: Tile) -> tuple[Tile, Tile]:
    """A row as fp8 and its scale."""
    scale = maximum(abs(row).max(), 1e-12) / 448.0
    return (row / scale).astype(f8), scale


def unpack(packed: Tile, scale: Tile) -> Tile:
    return packed.astype(f32) * scale


rows, share, n = dims("rows share n")


@commsir.kernel(blocks=1)
def quantized(
    x: f32[Array, rows, n], parts: f32[Array, rows, n], mine: f32[Array, share, n], y: f32[Array, rows, n]
) -> None:
    all_to_all(x, outs=parts, produce=pack, consume=unpack)
    for row in range(share):
        total = parts[row]
        for source in range(1, rows // share):
            total += parts[source * share + row]
        mine[row] = total
    all_gather(mine, outs=y, produce=pack, consume=unpack)


def main(ranks: int = 4) -> None:
    x = [np.random.default_rng(r).normal(size=(8, 256)).astype(np.float32) for r in range(ranks)]
    report = quantized.specialize(share=8 // ranks).simulate(ranks, {"x": x})
    print(report)
    wanted = sum(x)
    error = np.abs(report["y"][0] - wanted).max() / np.abs(wanted).max()
    print(f"largest error: {100 * error:.1f} % of the largest sum")
    assert error < 0.1


if __name__ == "__main__":
    main()
