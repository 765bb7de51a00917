"""What ranks give, and what they should get."""

from __future__ import annotations

from typing import Any

import commsir.torch
import torch
import torch.distributed

dist: Any = torch.distributed
R = dist.ReduceOp
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]


def odd_one(size: int) -> int:
    """The rank that is late, fails or differs, where tests have one: never rank 0."""
    return min(2, size - 1)


def halves_of(size: int) -> list[list[int]]:
    """The ranks in two parts, which differ by one rank where their number is odd."""
    return [list(range(size // 2)), list(range(size // 2, size))]


def data(rank: int, shape: int | tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """What a rank gives: the same wherever it is asked for."""
    generator = torch.Generator().manual_seed(1000 + rank)
    shape = (shape,) if isinstance(shape, int) else shape
    place = torch.get_default_device()
    with torch.device("cpu"):
        if dtype == torch.bool:
            return (torch.rand(shape, generator=generator) < 0.4).to(place)
        if dtype.is_complex:
            return torch.view_as_complex(torch.randn((*shape, 2), generator=generator)).to(place, dtype)
        if dtype.is_floating_point:
            return torch.randn(shape, generator=generator).to(place, dtype)
        low = 0 if dtype == torch.uint8 else -20
        return torch.randint(low, 250 if dtype == torch.uint8 else 20, shape, generator=generator).to(place, dtype)


def reduced(op: Any, parts: list[torch.Tensor]) -> torch.Tensor:
    """What ranks should get, computed in double or in integers."""
    dtype = parts[0].dtype
    if dtype == torch.bool:
        stacked = torch.stack(parts)
        if op == R.BXOR:
            return stacked.sum(0) % 2 == 1
        return stacked.all(0) if op in (R.PRODUCT, R.MIN, R.BAND) else stacked.any(0)
    if dtype.is_complex:
        return torch.stack(parts).sum(0) / (len(parts) if op == R.AVG else 1)
    wide = torch.stack([part.to(torch.float64 if dtype.is_floating_point else torch.int64) for part in parts])
    if op == R.SUM:
        result = wide.sum(0)
    elif op == R.AVG:
        total = wide.sum(0)
        rounding = None if dtype.is_floating_point else "trunc"
        total = total if dtype.is_floating_point else total.to(dtype).to(torch.int64)
        result = torch.div(total, len(parts), rounding_mode=rounding)
    elif op == R.PRODUCT:
        result = wide.prod(0)
    elif op in (R.MIN, R.MAX):
        result = wide.amin(0) if op == R.MIN else wide.amax(0)
    else:
        result = wide[0]
        for part in wide[1:]:
            result = result & part if op == R.BAND else result | part if op == R.BOR else result ^ part
    return result.to(dtype)


def close(got: torch.Tensor, wanted: torch.Tensor, what: str = "") -> None:
    exact = not (got.dtype.is_floating_point or got.dtype.is_complex)
    bound = {torch.float16: 1e-2, torch.bfloat16: 5e-2}.get(got.dtype, 1e-4)
    torch.testing.assert_close(
        got, wanted, rtol=0 if exact else bound, atol=0 if exact else bound, msg=lambda text: f"{what}: {text}"
    )


def paths() -> dict[tuple[str, str], str]:
    """(op, path): reason, of the calls since `clear_stats`."""
    return {(c["op"], c["path"]): c["reason"] for c in commsir.torch.stats()["calls"]}


def assert_own(*ops: str) -> None:
    """These ops, and all others but sends and receives on GPUs, have run on CommsIR."""
    seen = paths()
    for op in ops:
        assert (op, "commsir") in seen, f"{op} has not run on CommsIR: {seen}"
    others = {
        key: why for key, why in seen.items() if key[1] != "commsir" and key not in {("send", "nccl"), ("recv", "nccl")}
    }
    assert not others, f"delegated: {others}"


def error_of(call: Any) -> str:
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


def told(call: Any) -> str:
    """What a call that fails says: by itself on the CPU; on a GPU, where it has returned by then, by the next one."""
    text = error_of(call)
    if not text and torch.get_default_device().type == "cuda":
        torch.cuda.synchronize()
        text = error_of(call)
    return text
