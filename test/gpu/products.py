"""Matrix products of one kernel (`a @ b` in Python) against cuBLAS, on one GPU.

python test/gpu/products.py [--sizes 4096 6144 8192] [--rounds 5] [--json FILE]

Square products of bf16 (`a @ b` and `a @ b.T`; cuBLAS as torch.mm) and of fp8 (`a @ b.T`, also with scales for blocks
of 1 by 128 and 128 by 128; cuBLAS as torch._scaled_mm without fast accumulation), by 132 persistent blocks of 256
threads. Each result is compared with cuBLAS's; fp8 products of several distributions are compared with float64, by the
bounds of docs/Spec.md "Products". Prints µs per call: the minimum and the median of rounds in which contenders take
turns. Ends with status 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import commsir
import torch
from commsir import Array, bf16, block_id, contract, dims, f8, f8e5m2, f16, f32, num_blocks

m, k, n = dims("m k n")
SUPER = 16  # Rows of tiles that blocks share before the next columns.
Call = Callable[[], torch.Tensor]


@commsir.kernel
def straight(a: bf16[Array, m, k], b: bf16[Array, k, n], c: bf16[Array, m, n]) -> None:
    columns = n // 256
    for t in range(block_id(), (m // 128) * columns, num_blocks()):
        inside = t % (SUPER * columns)
        i = (t // (SUPER * columns) * SUPER + inside % SUPER) * 128
        j = inside // SUPER * 256
        c[i : i + 128, j : j + 256] = a[i : i + 128] @ b[:, j : j + 256]


@commsir.kernel
def turned(a: bf16[Array, m, k], b: bf16[Array, n, k], c: bf16[Array, m, n]) -> None:
    columns = n // 256
    for t in range(block_id(), (m // 128) * columns, num_blocks()):
        inside = t % (SUPER * columns)
        i = (t // (SUPER * columns) * SUPER + inside % SUPER) * 128
        j = inside // SUPER * 256
        c[i : i + 128, j : j + 256] = a[i : i + 128] @ b[j : j + 256].T


@commsir.kernel
def eight(a: f8[Array, m, k], b: f8[Array, n, k], c: bf16[Array, m, n]) -> None:
    columns = (n + 191) // 192
    for t in range(block_id(), (m // 128) * columns, num_blocks()):
        inside = t % (SUPER * columns)
        i = (t // (SUPER * columns) * SUPER + inside % SUPER) * 128
        j = inside // SUPER * 192
        c[i : i + 128, j : min(j + 192, n)] = a[i : i + 128] @ b[j : min(j + 192, n)].T


@commsir.kernel
def mixed(a: f8[Array, m, k], b: f8e5m2[Array, n, k], c: f32[Array, m, n]) -> None:
    for t in range(block_id(), m // 128, num_blocks()):
        for j in range(0, n, 128):
            c[t * 128 : (t + 1) * 128, j : j + 128] = a[t * 128 : (t + 1) * 128] @ b[j : j + 128].T


@commsir.kernel
def blocked(
    a: f8[Array, m, k],
    b: f8[Array, n, k],
    s: f32[Array, m, k // 128],
    t: f32[Array, n // 128, k // 128],
    c: bf16[Array, m, n],
) -> None:
    columns = (n + 191) // 192
    for tile in range(block_id(), (m // 128) * columns, num_blocks()):
        inside = tile % (SUPER * columns)
        i = (tile // (SUPER * columns) * SUPER + inside % SUPER) * 128
        j = inside // SUPER * 192
        contract(a[i : i + 128], b[j : min(j + 192, n)].T, c[i : i + 128, j : min(j + 192, n)], scales=(s, t))


@commsir.kernel
def of_columns(
    a: f8[Array, m, k],
    b: f8e5m2[Array, n, k],
    s: f32[Array, m, (k + 127) // 128],
    t: f32[Array, n, (k + 127) // 128],
    c: f32[Array, m, n],
) -> None:
    for i in range(block_id() * 128, m, num_blocks() * 128):
        for j in range(0, n, 128):
            contract(a[i : i + 128], b[j : j + 128].T, c[i : i + 128, j : j + 128], scales=(s, t))


@commsir.kernel
def of_rows(
    a: f8[Array, m, k],
    b: f8e5m2[Array, n, k],
    s: f32[Array, m, 1],
    t: f32[Array, n, 1],
    c: f32[Array, m, n],
) -> None:
    for i in range(block_id() * 128, m, num_blocks() * 128):
        for j in range(0, n, 128):
            contract(a[i : i + 128], b[j : j + 128].T, c[i : i + 128, j : j + 128], scales=(s, t))


@commsir.kernel
def of_blocks(
    a: f8[Array, m, k],
    b: f8e5m2[Array, n, k],
    s: f32[Array, m, (k + 127) // 128],
    t: f32[Array, n // 128, (k + 127) // 128],
    c: f32[Array, m, n],
) -> None:
    for i in range(block_id() * 128, m, num_blocks() * 128):
        for j in range(0, n, 192):
            contract(a[i : i + 128], b[j : min(j + 192, n)].T, c[i : i + 128, j : min(j + 192, n)], True, scales=(s, t))


@commsir.kernel
def added(a: bf16[Array, m, k], b: bf16[Array, k, n], d: bf16[Array, 2, m, n], c: bf16[Array, m, n]) -> None:
    for t in range(block_id(), (m + 127) // 128, num_blocks()):
        i = t * 128
        for j in range(0, n, 256):
            c[i : min(i + 128, m), j : min(j + 256, n)] = (
                a[i : min(i + 128, m)] @ b[:, j : min(j + 256, n)]
                + d[0, i : min(i + 128, m), j : min(j + 256, n)]
                + d[1, i : min(i + 128, m), j : min(j + 256, n)]
            )


@commsir.kernel
def written(a: f16[Array, m, k], b: f16[Array, k, n], d: f16[Array, m, n], c: f16[Array, m, n]) -> None:
    """The second product's addend is what the kernel wrote."""
    for t in range(block_id(), (m + 127) // 128, num_blocks()):
        i = t * 128
        for j in range(0, n, 256):
            d[i : min(i + 128, m), j : min(j + 256, n)] = a[i : min(i + 128, m)] @ b[:, j : min(j + 256, n)]
            c[i : min(i + 128, m), j : min(j + 256, n)] = (
                a[i : min(i + 128, m)] @ b[:, j : min(j + 256, n)] + d[i : min(i + 128, m), j : min(j + 256, n)]
            )


@commsir.kernel
def narrow(a: f8[Array, m, k], b: f8[Array, n, k], d: bf16[Array, m, n], c: bf16[Array, m, n]) -> None:
    for t in range(block_id(), (m + 127) // 128, num_blocks()):
        i = t * 128
        for j in range(0, n, 192):
            c[i : min(i + 128, m), j : min(j + 192, n)] = (
                a[i : min(i + 128, m)] @ b[j : min(j + 192, n)].T + d[i : min(i + 128, m), j : min(j + 192, n)]
            )


def seconds(call: Call, calls: int = 20) -> float:
    """The time of one of several calls, one after the other."""
    event: Any = torch.cuda.Event
    begin, end = (event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / calls / 1e3


def compare(name: str, ours: Call, theirs: Call, rounds: int) -> dict[str, Any]:
    """Checks that both compute the same, to bf16's rounding, and times them in turns."""
    right, got = theirs().float(), ours().float()
    torch.cuda.synchronize()
    error = float((got - right).abs().max() / right.abs().max())
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for call, kept in zip((ours, theirs), times, strict=True):
            seconds(call, 3)
            kept.append(seconds(call) * 1e6)
    mine, other = (min(kept) for kept in times)
    middle = [statistics.median(kept) for kept in times]
    print(
        f"{name}: {mine:.1f} us (median {middle[0]:.1f}), cuBLAS {other:.1f} ({middle[1]:.1f}): "
        f"{other / mine:.3f} of its speed; error {error:.1e}",
        flush=True,
    )
    return {"name": name, "us": mine, "cublas": other, "ratio": other / mine, "right": error < 2**-7}


def prepare(group: Any, kernel: Any, *given: torch.Tensor) -> Call:
    """A square product by a kernel, on the current stream."""
    size = given[0].shape[0]
    made = group.kernel(kernel, blocks=132, threads=256, m=size, k=size, n=size)
    out = torch.zeros(size, size, device="cuda", dtype=torch.bfloat16)

    def launch() -> torch.Tensor:
        made(*given, out, stream=torch.cuda.current_stream().cuda_stream)
        return out

    return launch


def scaled(a: torch.Tensor, b: torch.Tensor, one: torch.Tensor) -> torch.Tensor:
    return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=False)


def scaled_in_blocks(a: torch.Tensor, b: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """`s` by columns, `t` by rows, as cuBLAS wants them."""
    return torch._scaled_mm(a, b.t(), s, t.t(), out_dtype=torch.bfloat16, use_fast_accum=False)


def multiply_turned(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b.t())


def speed(group: Any, sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    found = []
    for size in sizes:
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        one = torch.ones((), device="cuda")
        s, t = (torch.rand(*shape, device="cuda") + 0.5 for shape in ((size, size // 128), (size // 128, size // 128)))
        by_columns = s.t().contiguous().t()
        pairs: list[tuple[str, Call, Call]] = [
            ("fp8 a @ b.T", prepare(group, eight, a8, b8), partial(scaled, a8, b8, one)),
            ("bf16 a @ b", prepare(group, straight, a, b), partial(torch.mm, a, b)),
            ("bf16 a @ b.T", prepare(group, turned, a, b), partial(multiply_turned, a, b)),
            (
                "fp8 in blocks",
                prepare(group, blocked, a8, b8, s, t),
                partial(scaled_in_blocks, a8, b8, by_columns, t),
            ),
        ]
        found += [{"size": size, **compare(f"{size} {name}", ours, theirs, rounds)} for name, ours, theirs in pairs]
    return found


def bounds(group: Any) -> bool:
    """Products of fp8 against float64: the error in parts of the sum of absolute values."""
    generator, fine = torch.Generator().manual_seed(3), True
    for kind in ("normal", "positive", "wide"):
        for depth in (128, 384, 1024, 8192):
            x, y = (torch.randn(256, depth, generator=generator) for _ in range(2))
            if kind == "positive":
                x, y = x.abs(), y.abs()
            if kind == "wide":
                x, y = (v * torch.exp2(torch.randint(-6, 6, v.shape, generator=generator).float()) for v in (x, y))
            a, b = x.to(torch.float8_e4m3fn).cuda(), y.to(torch.float8_e5m2).cuda()
            c = torch.zeros(256, 256, device="cuda")
            made = group.kernel(mixed, blocks=2, m=256, k=depth, n=256)
            made(a, b, c, stream=torch.cuda.current_stream().cuda_stream)
            exact, size = a.double() @ b.double().T, a.double().abs() @ b.double().abs().T
            error = float(((c.double() - exact).abs() / size).max())
            fine &= error <= 2**-6
            print(f"fp8 {kind}, {depth} terms: error {error:.2e} of the absolute sum", flush=True)
    return fine


def spread(scale: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """A scale for each element of a matrix, in float64."""
    wide = scale.double().repeat_interleave(-(-rows // scale.shape[0]), 0)
    return wide.repeat_interleave(128 if scale.shape[1] > 1 else columns, 1)[:, :columns]


def scales(group: Any) -> bool:
    """Products of fp8 with scales against float64, by the bound of products without."""
    fine = True
    kinds = (("blocks", of_blocks, 2), ("columns of blocks", of_columns, 256), ("rows", of_rows, 256))
    for name, kernel, columns in kinds:
        for depth in (128, 192, 384, 1024, 8192):
            blocks = 1 if kernel is of_rows else -(-depth // 128)
            a, b = torch.randn(256, depth).to(torch.float8_e4m3fn).cuda(), torch.randn(256, depth).cuda()
            b = b.to(torch.float8_e5m2)
            s, t = (torch.exp2(torch.randn(*shape, device="cuda") * 4) for shape in ((256, blocks), (columns, blocks)))
            c = torch.randn(256, 256, device="cuda") if kernel is of_blocks else torch.zeros(256, 256, device="cuda")
            x, y = a.double() * spread(s, 256, depth), b.double() * spread(t, 256, depth)
            exact, size = x @ y.T + c.double(), x.abs() @ y.abs().T + c.double().abs()
            made = group.kernel(kernel, blocks=2, m=256, k=depth, n=256)
            made(a, b, s, t, c, stream=torch.cuda.current_stream().cuda_stream)
            error = float(((c.double() - exact).abs() / size).max())
            fine &= error <= 2**-6
            print(f"fp8 with scales of {name}, {depth} terms: error {error:.2e} of the absolute sum", flush=True)
    return fine


def sums(group: Any) -> bool:
    """Products with addends against float64: tiles that are whole, and tiles that are not; addends that are given, and
    one that the kernel writes before."""
    fine = True
    f8e4m3, f16s = torch.float8_e4m3fn, torch.float16
    kinds = ((added, torch.bfloat16, (2,)), (written, f16s, ()), (narrow, f8e4m3, ()))
    for (kernel, kind, several), (rows, depth, columns) in itertools.product(
        kinds, ((512, 256, 1024), (200, 128, 776), (130, 72, 260))
    ):
        a, b = (torch.randn(*shape, device="cuda").to(kind) for shape in ((rows, depth), (depth, columns)))
        result = f16s if kernel is written else torch.bfloat16
        d = torch.randn(*several, rows, columns, device="cuda").to(result)
        c = torch.zeros(rows, columns, device="cuda", dtype=result)
        product = a.double() @ b.double()
        made = group.kernel(kernel, blocks=3, threads=256, m=rows, k=depth, n=columns)
        made(a, b.T.contiguous() if kernel is narrow else b, d, c, stream=torch.cuda.current_stream().cuda_stream)
        exact = product + (d.double().sum(0) if several else d.double())
        # Tensor cores add products of fp8 with fewer bits than f32 has.
        lost = 2**-11 * (a.double().abs() @ b.double().abs()) if kernel is narrow else 0.0
        bound = (2**-8 + 2**-10) * (exact.abs() + 2**-6 * depth**0.5) + lost
        error = float(((c.double() - exact).abs() / bound).max())
        fine &= error <= 1
        print(f"{kernel.__name__}, {rows} x {depth} x {columns}: {error:.2f} of the error that is allowed", flush=True)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4096, 6144, 8192], help="multiples of 256")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        group = commsir.Group(0, 1, folder=folder, device=0)
        fine = bounds(group) and scales(group) and sums(group)
        found = speed(group, options.sizes, options.rounds)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    return 0 if fine and all(entry["right"] for entry in found) else 1


if __name__ == "__main__":
    sys.exit(main())
