"""Matrix products overlapped with communication, tile by tile: ranks wait for and send tiles rather than arrays.

`all_gather_matmul` multiplies the rows of all ranks: one block sends this rank's rows, the others multiply what has
come, their own rows first. `all_gather_matmul_fp8` does so with rows of fp8, whose scales (one for every 128 elements)
travel before them. `matmul_reduce_scatter` stores each tile of its partial product at the rank that owns it,
which adds the tiles of all ranks in their order. The halves of the boxes alternate from launch to launch.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import commsir
from commsir import (
    Array,
    Signal,
    Window,
    bf16,
    block_id,
    contract,
    dims,
    epoch,
    f8,
    f32,
    i64,
    put,
    put_signal,
    ranks,
    role,
    signal,
    team,
    wait_signal_from,
    zeros,
)

rows, k, n = dims("rows k n")
TILE, WORKERS = 16, 3


@commsir.kernel
def all_gather_matmul(
    x: bf16[Array, rows, k],
    w: bf16[Array, k, n],
    box: bf16[Window, 2 * ranks, rows, k],
    come: i64[Signal, 64],
    y: f32[Array, rows * ranks, n],
) -> None:
    world = team()
    half = epoch() % 2 * world.size
    tiles = rows // TILE
    with role("send", 0, 1):
        for t in range(tiles):
            for peer in world.peers():
                first = t * TILE
                put_signal(
                    x[first : first + TILE],
                    box[half + world.rank, first : first + TILE],
                    peer,
                    come[world.rank * tiles + t],
                )
    with role("multiply", 1, 1 + WORKERS):
        for i in range(block_id() - 1, world.size * tiles, WORKERS):
            source = (world.rank + i // tiles) % world.size
            first = i % tiles * TILE
            row = source * rows + first
            if source == world.rank:
                y[row : row + TILE, :] = x[first : first + TILE] @ w
            else:
                wait_signal_from(come[source * tiles + i % tiles], source, ge=epoch())
                y[row : row + TILE, :] = box[half + source, first : first + TILE] @ w


@commsir.kernel
def all_gather_matmul_fp8(
    x: f8[Array, rows, k],
    x_scales: f32[Array, rows, (k + 127) // 128],
    w: f8[Array, n, k],
    w_scales: f32[Array, (n + 127) // 128, (k + 127) // 128],
    box: f8[Window, 2 * ranks, rows, k],
    box_scales: f32[Window, 2 * ranks, rows, (k + 127) // 128],
    come: i64[Signal, 64],
    y: bf16[Array, rows * ranks, n],
) -> None:
    world = team()
    half = epoch() % 2 * world.size
    tiles = rows // TILE
    with role("send", 0, 1):
        for t in range(tiles):
            for peer in world.peers():
                first = t * TILE
                put(x_scales[first : first + TILE], box_scales[half + world.rank, first : first + TILE], peer)
                put_signal(
                    x[first : first + TILE],
                    box[half + world.rank, first : first + TILE],
                    peer,
                    come[world.rank * tiles + t],
                )
    with role("multiply", 1, 1 + WORKERS):
        for i in range(block_id() - 1, world.size * tiles, WORKERS):
            source = (world.rank + i // tiles) % world.size
            first = i % tiles * TILE
            row = source * rows + first
            if source == world.rank:
                contract(x[first : first + TILE], w.T, y[row : row + TILE, :], scales=(x_scales, w_scales))
            else:
                wait_signal_from(come[source * tiles + i % tiles], source, ge=epoch())
                contract(
                    box[half + source, first : first + TILE],
                    w.T,
                    y[row : row + TILE, :],
                    scales=(box_scales, w_scales),
                )


@commsir.kernel
def matmul_reduce_scatter(
    x: bf16[Array, rows * ranks, k],
    w: bf16[Array, k, n],
    box: f32[Window, 2 * ranks, rows, n],
    done: i64[Signal, 64],
    y: f32[Array, rows, n],
) -> None:
    world = team()
    half = epoch() % 2 * world.size
    tiles = rows // TILE
    with role("multiply", 0, WORKERS):
        for i in range(block_id(), world.size * tiles, WORKERS):
            owner = (world.rank + 1 + i // tiles) % world.size
            first = i % tiles * TILE
            row = owner * rows + first
            box.peer(owner)[half + world.rank, first : first + TILE] = x[row : row + TILE] @ w
            signal(done[world.rank * tiles + i % tiles], owner)
    with role("add", WORKERS, WORKERS + 1):
        for t in range(tiles):
            for source in range(world.size):
                wait_signal_from(done[source * tiles + t], source, ge=epoch())
            for r in range(TILE):
                total = zeros(n)
                for source in range(world.size):
                    total += box[half + source, t * TILE + r]
                y[t * TILE + r] = total


def quantized(values: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """In fp8, and a scale for every `block` x 128 elements; the sizes are multiples of those."""
    m, k = values.shape
    parts = values.reshape(m // block, block, k // 128, 128)
    scales = np.abs(parts).max((1, 3), keepdims=True) / 448
    return (parts / scales).reshape(m, k).astype(ml_dtypes.float8_e4m3fn), scales[:, 0, :, 0].astype(np.float32)


def run_fp8(world: int, rng: np.random.Generator) -> None:
    given = [quantized(rng.normal(size=(32, 256)), 1) for _ in range(world)]
    w, w_scales = quantized(rng.normal(size=(128, 256)), 128)
    gather = all_gather_matmul_fp8.specialize(rows=32, k=256, n=128)
    print(gather.check(ranks=world))
    inputs = {"x": [x for x, _ in given], "x_scales": [scales for _, scales in given], "w": w, "w_scales": w_scales}
    report = gather.simulate(world, inputs, launches=3, fuzz=5)
    print(report)
    every = np.concatenate([x.astype(np.float64) * scales.repeat(128, 1) for x, scales in given])
    weight = w.astype(np.float64) * w_scales.repeat(128, 0).repeat(128, 1)
    for mine in report["y"]:
        np.testing.assert_allclose(mine.astype(np.float64), every @ weight.T, rtol=2**-8, atol=1e-4)


def main(world: int = 4) -> None:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> list[np.ndarray]:
        return [rng.normal(size=shape).astype(ml_dtypes.bfloat16) for _ in range(world)]

    x, w = draw(32, 48), draw(48, 24)
    gather = all_gather_matmul.specialize(rows=32, k=48, n=24)
    print(gather.check(ranks=world))
    report = gather.simulate(world, {"x": x, "w": w}, launches=3, fuzz=5)
    print(report)
    every = np.concatenate(x).astype(np.float64)
    for mine, weight in zip(report["y"], w, strict=True):
        np.testing.assert_allclose(mine, every @ weight.astype(np.float64), rtol=1e-5, atol=1e-4)

    run_fp8(world, rng)

    x = draw(32 * world, 48)
    scatter = matmul_reduce_scatter.specialize(rows=32, k=48, n=24)
    print(scatter.check(ranks=world))
    report = scatter.simulate(world, {"x": x, "w": w}, launches=3, fuzz=5)
    print(report)
    total = sum(a.astype(np.float64) @ b.astype(np.float64) for a, b in zip(x, w, strict=True))
    np.testing.assert_allclose(np.concatenate(report["y"]), total, rtol=1e-5, atol=1e-4)


if __name__ == "__main__":
    main()
