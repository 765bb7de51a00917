"""Layers of a tensor-parallel model as one kernel each: their products, the arithmetic between, and the exchange.

`gated` is a gated MLP: two products, SiLU, a third product whose partial sums a reduce-scatter adds. `linear` adds
the partial sums of a product by an all-reduce, and then the bias and GELU. `decode` is for few rows: each block
multiplies a part of the terms (split-K). Blocks of a rank wait for one another, `together`, before some read what
others have written.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

import commsir
from commsir import (
    Array,
    Tile,
    Window,
    all_reduce,
    barrier,
    bf16,
    block_id,
    dims,
    erf,
    exp,
    f32,
    num_blocks,
    ranks,
    reduce_scatter,
    team,
    team_split,
)

m, h, n = dims("m h n")
TILE, PARTS = 16, 4


def together() -> None:
    """All blocks of this rank have come, and see what all have written."""
    barrier(team_split(team(), "inner", 1), "grid")


@commsir.kernel
def gated(
    x: bf16[Array, m, h],
    gate: bf16[Array, h, n],
    up: bf16[Array, h, n],
    down: bf16[Array, n, h],
    active: bf16[Array, m, n],
    part: f32[Window, m, h],
    y: bf16[Array, m // ranks, h],
) -> None:
    for i in range(block_id() * TILE, m, num_blocks() * TILE):
        g = x[i : min(i + TILE, m)] @ gate
        u = x[i : min(i + TILE, m)] @ up
        for r in range(min(TILE, m - i)):
            active[i + r] = g[r] / (1.0 + exp(-g[r])) * u[r]
        part[i : min(i + TILE, m)] = active[i : min(i + TILE, m)] @ down
    together()
    reduce_scatter(part, outs=y)


@commsir.kernel
def linear(
    x: bf16[Array, m, h],
    w: bf16[Array, n, h],
    bias: f32[Array, n],
    part: f32[Window, m, n],
    y: bf16[Array, m, n],
) -> None:
    def gelu(total: Tile, bias: Tile) -> Tile:
        t = total + bias
        return 0.5 * t * (1.0 + erf(t * math.sqrt(0.5)))

    for i in range(block_id() * TILE, m, num_blocks() * TILE):
        part[i : min(i + TILE, m)] = x[i : min(i + TILE, m)] @ w.T
    together()
    all_reduce(part, outs=y, args=(bias,), consume=gelu)


@commsir.kernel(blocks=PARTS)
def decode(
    x: bf16[Array, m, h],
    w: bf16[Array, h, n],
    parts: f32[Array, PARTS, m, n],
    part: f32[Window, m, n],
    y: f32[Array, m, n],
) -> None:
    k = h // PARTS
    first = block_id() * k
    parts[block_id()] = x[:, first : first + k] @ w[first : first + k, :]
    together()
    for r in range(block_id(), m, num_blocks()):
        total = parts[0, r]
        for p in range(1, PARTS):
            total = total + parts[p, r]
        part[r] = total
    together()
    all_reduce(part, outs=y)


def run(kernel: Any, world: int, inputs: dict[str, Any], want: Any, blocks: int | None = None) -> None:
    print(kernel.check(ranks=world, blocks=blocks))
    report = kernel.simulate(world, inputs, blocks=blocks, launches=2, fuzz=5)
    print(report)
    got = np.stack(report["y"]).reshape(-1, *np.shape(want)).astype(np.float64)
    np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=2e-2, atol=2e-2)


def main(world: int = 4) -> None:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        """An array for each rank."""
        return (rng.normal(size=(world, *shape)) / 4).astype(ml_dtypes.bfloat16)

    def wide(array: Any) -> Any:
        return array.astype(np.float64)

    x, gate, up, down = draw(10 * world, 32)[:1], draw(32, 48), draw(32, 48), draw(48, 32)
    x = np.repeat(x, world, 0)  # Ranks have the same rows, and columns of the weights of their own.
    g, u = wide(x) @ wide(gate), wide(x) @ wide(up)
    inputs = {"x": x, "gate": gate, "up": up, "down": down}
    want = (g / (1 + np.exp(-g)) * u @ wide(down)).sum(0)
    run(gated.specialize(m=10 * world, h=32, n=48), world, inputs, want, blocks=3)

    x, w, bias = draw(20, 32), draw(24, 32), rng.normal(size=24).astype(np.float32)
    t = (wide(x) @ wide(w).swapaxes(1, 2)).sum(0) + bias
    want = 0.5 * t * (1 + np.vectorize(math.erf)(t / math.sqrt(2)))
    run(linear.specialize(m=20, h=32, n=24), world, {"x": x, "w": w, "bias": bias}, want, blocks=2)

    x, w = draw(3, 64), draw(64, 40)
    run(decode.specialize(m=3, h=64, n=40), world, {"x": x, "w": w}, (wide(x) @ wide(w)).sum(0))


if __name__ == "__main__":
    main()
