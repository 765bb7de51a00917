"""The ranks' part of test_ops.py on the CPU, or, by CHECK_DEVICE, of test/gpu/torch_run.py on GPUs."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from unittest import mock

import commsir
import commsir.torch.ops as ops
import torch
import torch.distributed
from commsir.torch import op_groups

DEVICE = os.environ.get("CHECK_DEVICE", "cpu")
#: Much of it is without types.
dist: Any = torch.distributed


def _input(rank: int, shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float32).to(DEVICE, dtype)
    return torch.randint(-5, 6, shape, generator=generator, device="cpu").to(DEVICE, dtype)


def plain(rank: int, size: int, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """Every op, functional and out, against what the inputs of all ranks say."""
    group = dist.group.WORLD.group_name
    inputs = [_input(r, shape, dtype) for r in range(size)]
    x = inputs[rank]
    kept = x.clone()
    total = torch.stack([one.double() for one in inputs]).sum(0)
    rows = shape[0] // size
    mine = slice(rank * rows, (rank + 1) * rows)
    largest = torch.stack([one.double() for one in inputs]).amax(0)
    tolerance = {torch.bfloat16: 4e-2, torch.float16: 5e-3, torch.float32: 1e-5}.get(dtype, 0)
    parts = [one[mine] for one in inputs]
    expected = {
        "all_reduce": (("sum",), total),
        "reduce_scatter": (("sum",), total[mine]),
        "all_gather": ((), torch.cat(inputs)),
        "all_to_all": ((), torch.cat(parts)),
        "broadcast": ((1,), inputs[1]),
    }
    for name, (options, want) in expected.items():
        op = getattr(torch.ops.commsir, name)
        got = op(x, *options, group)
        assert got.dtype == dtype and got.shape == want.shape, (name, got.shape)
        torch.testing.assert_close(got.double(), want.double(), rtol=tolerance, atol=tolerance)
        out = torch.full_like(got, 3)
        assert op.out(x, *options, group, out=out) is None
        assert torch.equal(out, got), name
    got = ops.all_reduce(x, "max")
    assert torch.equal(got.double(), largest)
    assert torch.equal(x, kept), "an op has changed its input"
    everywhere = [None] * size
    dist.all_gather_object(
        everywhere, torch.ops.commsir.all_reduce(x, "sum", group).view(torch.uint8).cpu().numpy().tobytes()
    )
    assert len(set(everywhere)) == 1, "ranks differ in bits"


def strided(rank: int, size: int) -> None:
    """Inputs need not be contiguous; outputs have to be."""
    x = _input(rank, (12, 8), torch.float32).t()
    want = sum(_input(r, (12, 8), torch.float32).t() for r in range(size))
    torch.testing.assert_close(ops.all_reduce(x), want)
    out = torch.empty(12, 8, device=DEVICE).t()
    try:
        torch.ops.commsir.all_reduce.out(x, "sum", dist.group.WORLD.group_name, out=out)
    except RuntimeError as error:
        assert "contiguous" in str(error)
    else:
        raise AssertionError("an output with strides was taken")


def lazy_outputs(rank: int, size: int) -> None:
    """Outputs that negate or conjugate lazily hold the result as it is read; torch would end the process."""
    name, op = dist.group.WORLD.group_name, torch.ops.commsir
    own = [torch.arange(float(size)).add(10 * r).to(DEVICE) for r in range(size)]
    total = torch.stack(own).sum(0)
    part = slice(rank, rank + 1)
    for call, want in (
        (partial(op.all_reduce.out, own[rank], "sum"), total),
        (partial(op.all_gather.out, own[rank]), torch.cat(own)),
        (partial(op.reduce_scatter.out, own[rank], "sum"), total[part]),
        (partial(op.all_to_all.out, own[rank]), torch.cat([one[part] for one in own])),
        (partial(op.broadcast.out, own[rank], 1), own[1]),
    ):
        out = torch._neg_view(torch.zeros_like(want))
        call(name, out=out)
        assert torch.equal(out, want), (call, out, want)
    negated = torch._neg_view(-own[rank])
    op.all_reduce.out(negated, "sum", name, out=negated)
    assert torch.equal(negated, total)
    conjugated = torch.zeros(2, dtype=torch.complex64, device=DEVICE).conj()
    op.all_reduce.out(torch.full((2,), 1 + 2j, device=DEVICE), "sum", name, out=conjugated)
    assert torch.equal(conjugated.resolve_conj(), torch.full((2,), size * (1 + 2j), device=DEVICE))
    text = f"(%a: tensor<{size}xf32>) {{\n  comms.yield %a : tensor<{size}xf32>\n}}"
    prepared = ops.prepare("all_reduce", text, [(torch.float32, size)], group=dist.group.WORLD)
    for fill in (
        lambda out: op.fused_collective.out("all_reduce", own[rank][None], [], "sum", text, False, name, outs=[out]),
        lambda out: prepared(own[rank][None], [], out=[out]),
    ):
        out = torch._neg_view(torch.zeros(1, size, device=DEVICE))
        fill(out)
        assert torch.equal(out[0], total), (out, total)


def _differentiate(loss: Any) -> None:
    loss.backward()


def gradients(rank: int, size: int) -> None:
    """Derivatives, by what the sum over ranks of each rank's loss says."""
    x = _input(rank, (size * 2, 3), torch.float32).requires_grad_()
    weights = [_input(r, (size * 2, 3), torch.float32, seed=7) for r in range(size)]
    _differentiate((ops.all_reduce(x) * weights[rank]).sum())
    torch.testing.assert_close(x.grad, sum(weights))
    x.grad = None
    _differentiate((ops.reduce_scatter(x) * weights[rank][:2]).sum())
    torch.testing.assert_close(x.grad, torch.cat([w[:2] for w in weights]))
    x.grad = None
    long = [_input(r, (size * size * 2, 3), torch.float32, seed=8) for r in range(size)]
    _differentiate((ops.all_gather(x) * long[rank]).sum())
    torch.testing.assert_close(x.grad, sum(w[rank * size * 2 : (rank + 1) * size * 2] for w in long))
    x.grad = None
    _differentiate((ops.all_to_all(x) * weights[rank]).sum())
    torch.testing.assert_close(x.grad, torch.cat([w[rank * 2 : rank * 2 + 2] for w in weights]))
    x.grad = None
    root = size - 1
    _differentiate((ops.broadcast(x, root) * weights[rank]).sum())
    torch.testing.assert_close(x.grad, sum(weights) if rank == root else torch.zeros_like(x))

    # Again, through the derivative: every rank is in the second one's collective.
    scaled = weights[rank].clone().requires_grad_()
    (first,) = torch.autograd.grad((ops.broadcast(x, root) * scaled).sum(), x, create_graph=True)
    _differentiate((first * first).sum())
    torch.testing.assert_close(scaled.grad, 2 * sum(weights))

    x.grad = None
    _differentiate((ops.all_reduce(x, "avg") * weights[rank]).sum())
    torch.testing.assert_close(x.grad, sum(weights) / size)
    x.grad = None
    _differentiate((ops.reduce_scatter(x, "avg") * weights[rank][:2]).sum())
    torch.testing.assert_close(x.grad, torch.cat([w[:2] for w in weights]) / size)


def without_derivatives(rank: int, size: int) -> None:
    """What has no derivative says so, where it would drop a gradient, and works where there is none to drop."""
    group: Any = dist.group.WORLD
    x, row = _input(rank, (4, 8), torch.float32), _input(0, (8,), torch.float32)
    consume = """(%sum: tensor<8xf32>, %r: tensor<8xf32>) {
        %0 = arith.addf %sum, %r : tensor<8xf32>
        comms.yield %0 : tensor<8xf32>
    }"""

    def fused(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ops.fused_collective("all_reduce", a, [b], consume, [(torch.float32, 8)])[0]

    for given in ((x.clone().requires_grad_(), row), (x, row.clone().requires_grad_())):
        _fails("fused_collective has no derivative, but an argument requires grad", partial(fused, *given))
        with torch.no_grad():
            torch.testing.assert_close(fused(*given), fused(x, row))
    needs, out = x.clone().requires_grad_(), torch.empty_like(x)
    named = torch.ops.commsir
    _fails("all_reduce.out writes into memory", lambda: named.all_reduce.out(needs, "sum", group.group_name, out=out))
    _fails("broadcast.out writes into memory", lambda: named.broadcast.out(needs, 0, group.group_name, out=out))
    with torch.no_grad():
        named.all_reduce.out(needs, "sum", group.group_name, out=out)
    torch.testing.assert_close(out, ops.all_reduce(x))


def other_types(rank: int, size: int) -> None:
    """Booleans stay 0 or 1, complex numbers are pairs; of integers without a sign there is what bits alone decide."""
    odd = torch.tensor([True, rank == 0, False, rank != 0], device=DEVICE)
    for op, want in (
        ("sum", [1, 1, 0, 1]),
        ("max", [1, 1, 0, 1]),
        ("or", [1, 1, 0, 1]),
        ("prod", [1, 0, 0, 0]),
        ("min", [1, 0, 0, 0]),
        ("and", [1, 0, 0, 0]),
    ):
        assert ops.all_reduce(odd, op).view(torch.uint8).tolist() == want, op
    assert ops.reduce_scatter(odd[:1].repeat(size)).view(torch.uint8).item() == 1
    _fails('no "avg" of Bool', lambda: ops.all_reduce(odd, "avg"))
    byte = torch.tensor([200 + rank], dtype=torch.uint8, device=DEVICE)
    assert ops.all_reduce(byte).item() == sum(200 + r for r in range(size)) % 256
    for op in ("min", "max", "avg"):
        _fails(f'no "{op}" of Byte', partial(ops.all_reduce, byte, op))
    for dtype in (torch.complex64, torch.complex128):
        x = torch.full((size, 3), complex(rank, 1), dtype=dtype, device=DEVICE)
        total = torch.full((size, 3), complex(sum(range(size)), size), dtype=dtype, device=DEVICE)
        torch.testing.assert_close(ops.all_reduce(x), total)
        torch.testing.assert_close(ops.all_reduce(x.conj(), "avg"), (total / size).conj().resolve_conj())
        torch.testing.assert_close(ops.reduce_scatter(x), total[:1])
        assert [z.real for z in ops.all_gather(x[:1])[:, 0].tolist()] == list(range(size))
        assert ops.all_to_all(x)[1, 0].item() == complex(1, 1) and ops.broadcast(x, 1)[0, 0].item() == complex(1, 1)
        _fails("complex numbers have sum and avg", partial(ops.all_reduce, x, "max"))
    for dtype in (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu, torch.float4_e2m1fn_x2):
        mine = torch.arange(size, dtype=torch.uint8, device=DEVICE) + 10 * rank
        moved = mine.view(dtype)
        gathered = ops.all_gather(moved[:1])
        assert gathered.dtype == dtype and gathered.view(torch.uint8).tolist() == [10 * r for r in range(size)]
        assert ops.all_to_all(moved).view(torch.uint8).tolist() == [10 * r + rank for r in range(size)]
        assert ops.broadcast(moved, 1).view(torch.uint8).tolist() == [10 + i for i in range(size)]
        _fails("can be moved but not reduced", partial(ops.all_reduce, moved))
    mixed = mine.view(torch.float8_e8m0fnu if rank == 0 else torch.float8_e4m3fnuz)
    _fails("Float8_e8m0fnu", partial(ops.all_gather, mixed))


def subgroups(rank: int, size: int) -> None:
    """Two halves, at work at the same time."""
    halves = [dist.new_group([0, 1]), dist.new_group(list(range(2, size)))]
    mine = halves[rank // 2]
    x = torch.full((5,), float(rank), device=DEVICE)
    assert ops.all_reduce(x, "sum", mine)[0] == (1 if rank < 2 else 5)
    assert ops.all_reduce(x)[0] == 6


def counted(rank: int, size: int) -> None:
    """The ops' groups are in `commsir.stats`, by the process group that they are of."""
    assert not commsir.stats()["groups"].keys() & {"cpu.ops", "cuda.ops"}
    part: Any = dist.new_group(list(range(size)))
    for _ in range(3):
        ops.all_reduce(torch.ones(5, device=DEVICE))
    ops.all_reduce(torch.ones(5, device=DEVICE), "sum", part)
    own, parts = commsir.stats()["groups"][f"{DEVICE}.ops"], commsir.stats(part)["groups"][f"{DEVICE}.ops"]
    assert own["launches"] == own["staged"] == 3 and parts["launches"] == parts["staged"] == 1, (own, parts)
    used = ops.group_of(part.group_name, -1 if DEVICE == "cpu" else torch.cuda.current_device())
    assert used.counts() == parts


def renamed(rank: int, size: int, store: Any) -> None:
    """A process group that has the name of one that was destroyed, and other ranks."""
    names = []
    for ranks in (size, size - 1):
        if rank < ranks:
            prefix = dist.PrefixStore(f"{ranks}", store)
            dist.init_process_group("gloo", store=prefix, rank=rank, world_size=ranks)
            names.append(dist.group.WORLD.group_name)
            assert ops.all_reduce(torch.ones(3, device=DEVICE))[0] == ranks
            assert ops.all_gather(torch.ones(2, device=DEVICE)).shape == (2 * ranks,)
            dist.destroy_process_group()
    assert len(set(names)) == 1, names


def _fails(text: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except RuntimeError as error:
        assert text in str(error), f"{text!r} is not in: {error}"
        return
    raise AssertionError(f"nothing was raised that says {text!r}")


def mistakes(rank: int, size: int) -> None:
    """Calls that make no sense say why, and the group goes on."""
    x = torch.ones(size * 2 + 1, 4, device=DEVICE)
    _fails("cannot be shared out", lambda: ops.reduce_scatter(x))
    _fails("harmonic", lambda: ops.all_reduce(x, "harmonic"))
    _fails("nonsense", lambda: ops.all_reduce(x, "sum", "nonsense"))
    _fails(
        "nonsense",
        lambda: ops.fused_collective("all_reduce", x, [], "(%a: tensor<4xf32>) { nonsense }", [(torch.float32, 4)]),
    )
    columns = partial(torch.ops.commsir.fused_collective, "all_reduce", x, [], "sum", "", "f32")
    _fails("output 0 of fused_collective has -4 columns", lambda: columns([-4], False, dist.group.WORLD.group_name))
    assert ops.all_reduce(x)[0, 0] == size


def disagreeing(rank: int, size: int) -> None:
    """Types and sizes that differ by rank fail on all ranks, and the ops go on."""
    group = dist.group.WORLD.group_name
    odd = rank == 1
    for dtype, other, names in (
        (torch.float32, torch.int32, ("all_gather of 6 f32", "all_gather of 6 i32")),
        (torch.uint8, torch.int8, ("all_gather of 6 ui8", "all_gather of 6 i8")),
    ):
        x = torch.ones(6, device=DEVICE).to(other if odd else dtype)
        for name in names:
            _fails(name, partial(torch.ops.commsir.all_gather, x, group))
            total = torch.ops.commsir.all_reduce(torch.ones(5, device=DEVICE), "sum", group)
            assert torch.equal(total, torch.full_like(total, float(size)))
    _fails("all_reduce sum of 6 f32", lambda: ops.all_reduce(torch.ones(7 if odd else 6, device=DEVICE)))
    # Where both sides would read the same, it says so.
    text = "(%s: tensor<8xf32>) {\n  %y = arith.{op}f %s, %s : tensor<8xf32>\n  comms.yield %y : tensor<8xf32>\n}"
    text, x = text.replace("{op}", "mul" if odd else "add"), torch.ones(2, 8, device=DEVICE)
    differ = "other arithmetic, source or options" if DEVICE == "cpu" else "another source"
    _fails(differ, lambda: ops.fused_collective("all_reduce", x, [], text, [(torch.float32, 8)]))


def wrong_results(rank: int, size: int) -> None:
    """What is not as the op's own result would be is refused before anything is sent, and nothing is written."""
    group = dist.group.WORLD.group_name
    x = torch.ones(size * 2, 4, device=DEVICE)
    memory = torch.zeros(size * size * 4, 4, device=DEVICE)
    rows = {
        "all_reduce": len(x),
        "all_gather": len(x) * size,
        "reduce_scatter": 2,
        "all_to_all": len(x),
        "broadcast": len(x),
    }
    options = {"all_reduce": ("sum",), "reduce_scatter": ("sum",), "broadcast": (0,)}
    for name, count in rows.items():
        op = getattr(torch.ops.commsir, name)
        good = memory[:count]
        wrong = {
            "the output is Double": good.double(),
            "the output is BFloat16": memory.view(torch.bfloat16)[: count // 2].view(count, 4),
            "has the shape": good.view(-1),
            f"({count}, 4)": memory[: count + 1],
            "the output is on meta": good.to("meta"),
            "contiguous": torch.zeros(4, count, device=DEVICE).t(),
        }
        if DEVICE == "cuda":
            wrong["the output is on cpu"] = good.cpu()
        for text, out in wrong.items():
            _fails(text, partial(op.out, x, *options.get(name, ()), group, out=out))
            # As traced functions see it.
            traced = x.cpu() if " on " in text else x.to("meta")
            _fails("commsir: ", partial(op.out, traced, *options.get(name, ()), group, out=out.to("meta")))
    assert not memory.any(), "a refused call has written"
    assert ops.all_reduce(x)[0, 0] == size


def wrong_operands(rank: int, size: int) -> None:
    """The same of collectives with arithmetic."""
    x, weight = torch.ones(4, 64, device=DEVICE), torch.ones(64, device=DEVICE)
    text = "(%s: tensor<64xf32>, %w: tensor<64xf32>) {\n  comms.yield %s : tensor<64xf32>\n}"
    op = torch.ops.commsir.fused_collective

    def call(args: list[torch.Tensor], outs: list[torch.Tensor], input: torch.Tensor = x) -> None:  # noqa: A002
        op.out("all_reduce", input, args, "sum", text, False, dist.group.WORLD.group_name, outs=outs)

    out = torch.zeros(4, 64, device=DEVICE)
    for says, args, outs in [
        ("an output is on meta", [weight], [out.to("meta")]),
        ("an argument is on meta", [weight.to("meta")], [out]),
        ("contiguous", [weight], [torch.zeros(64, 4, device=DEVICE).t()]),
        ("f64", [weight], [out.double()]),
        ("bf16", [weight], [out.bfloat16()]),
        ("", [weight.bfloat16()], [out]),
        ("output 0 has 128 elements", [weight], [out[:2]]),
        ("has 128 elements", [weight], [out[:, :32].contiguous()]),
        ("argument 0 has 32 elements", [weight[:32].view(1, 32)], [out]),
    ]:
        _fails(says, partial(call, args, outs))
    memory = torch.zeros(5, 64, device=DEVICE)
    row = text.replace("%w: tensor<64xf32>", "%w: tensor<64xf32>").replace("yield %s", "yield %w")
    with_rows = partial(op.out, "all_reduce", x, [memory[:4]], "sum", row, False, dist.group.WORLD.group_name)
    _fails("an output overlaps an argument", partial(with_rows, outs=[memory[1:]]))
    _fails("rows cannot be shared out", partial(ops.all_to_all, torch.ones(size + 1, 2, device=DEVICE)))
    for says, args, outs in [
        ("an argument is on", [weight], [out.to("meta")]),
        ("an output is on", [weight.to("meta")], [out]),
        ("contiguous", [weight.to("meta")], [torch.zeros(64, 4, device="meta").t()]),
    ]:
        _fails(says, partial(call, args, outs, x.to("meta")))
    if DEVICE == "cuda":
        _fails("an output is on cpu", partial(call, [weight], [out.cpu()]))
        _fails("an argument is on cpu", partial(call, [weight.cpu()], [out]))
    none = cast(Any, None)
    _fails("the input is None, not a tensor", partial(call, [weight], [out], none))
    for one in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"):
        given = {"broadcast": (0,), "all_gather": (), "all_to_all": ()}.get(one, ("sum",))
        to_none = partial(getattr(torch.ops.commsir, one).out, x, *given, dist.group.WORLD.group_name, out=none)
        _fails("the output is None, not a tensor", to_none)
    prepared = ops.prepare("x" * 100_000, text, [(torch.float32, 64)], group=dist.group.WORLD)
    _fails(f"{'x' * 80} [...] with arithmetic: there is no such collective", partial(prepared, x, [weight], out=[out]))
    _fails(f"no reduction '{'x' * 80} [...]'", partial(ops.all_reduce, x, "x" * 100_000))
    assert not out.any(), "a refused call has written"
    call([weight], [out])
    assert (out == size).all()


def not_symmetric(rank: int, size: int) -> None:
    """What one rank cannot reach in torch's symmetric memory is used in place by none."""

    def reached(name: str, device: int, data: int, length: int) -> list[int]:
        if rank == 1:
            raise RuntimeError("no way to rank 0")
        return [data] * size

    with mock.patch.object(op_groups, "_symmetric", reached), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        name = dist.group.WORLD.group_name.encode()
        assert [op_groups._adopt(name, -1, address, 64) for address in (4096, 8192)] == [1, 1]
    assert len(said) == 1 and "rank 1: no way to rank 0" in str(said[0].message), said
    assert ops.all_reduce(torch.ones(3, device=DEVICE))[0] == size


def symmetric_on_other_gpus(rank: int, size: int) -> None:
    """Ranks agree on symmetric memory though each has another GPU, of another number than its own."""
    taken: list[Any] = []
    group = mock.Mock(adopt=lambda *given: taken.append(given))

    def reached(name: str, device: int, data: int, length: int) -> list[int]:
        return [data] * size

    with (
        mock.patch.object(op_groups, "_symmetric", reached),
        mock.patch.object(op_groups, "group_of", return_value=group),
    ):
        name, device = dist.group.WORLD.group_name.encode(), (rank + 3) % (size + 1)
        assert [op_groups._adopt(name, device, address, 64) for address in (4096, 8192)] == [0, 0]
    assert taken == [(address, 64, [address] * size) for address in (4096, 8192)], taken


def symmetric_without_a_rank(rank: int, size: int) -> None:
    """Who does not come is named, within the group's timeout."""
    if rank == 1:
        dist.distributed_c10d._get_default_store().wait(["named"])
        return
    began = time.monotonic()
    try:
        op_groups._adopt(dist.group.WORLD.group_name.encode(), rank, 4096, 64)
    except RuntimeError as error:
        # Rank 0 names who is missing, and the others hear of it.
        assert "symmetric memory" in str(error) and "rank 1 of" in str(error), error
    else:
        raise AssertionError("rank 1 was not missed")
    assert time.monotonic() - began < 60
    if rank == 0:
        dist.distributed_c10d._get_default_store().set("named", "")


def interrupted(rank: int, size: int) -> list[str]:
    """Ctrl-C ends an op that waits for others, and is raised."""
    store = dist.distributed_c10d._get_default_store()
    x = torch.ones(3)
    ops.all_reduce(x)
    if rank != 0:
        store.wait(["over"])
        return []
    said = []
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        try:
            ops.all_reduce(x)
        except RuntimeError as error:
            kept = error
            while time.monotonic() < began + 20:
                pass
    except KeyboardInterrupt:
        said += [str(kept), f"{time.monotonic() - began:.0f} s"]
    try:
        ops.all_reduce(x)
    except RuntimeError as error:
        said.append(str(error))
    store.set("over", "")
    return said


_NORM = """(%w0: tensor<64xf32>, %b0: tensor<64xbf16>, %b1: tensor<64xbf16>) {
    %r = arith.extf %b0 : tensor<64xbf16> to tensor<64xf32>
    %a = arith.addf %w0, %r : tensor<64xf32>
    %g = arith.extf %b1 : tensor<64xbf16> to tensor<64xf32>
    %s = arith.mulf %a, %g : tensor<64xf32>
    %y = arith.truncf %s : tensor<64xf32> to tensor<64xbf16>
    %size = math.absf %a : tensor<64xf32>
    %m = comms.row_reduce max %size : tensor<64xf32> -> tensor<1xf32>
    comms.yield %y, %m : tensor<64xbf16>, tensor<1xf32>
  }"""


def fused(rank: int, size: int) -> None:
    """A region of the caller's own: two results of different types and widths."""
    inputs = [_input(r, (size, 2, 64), torch.bfloat16) for r in range(size)]
    weight = _input(0, (64,), torch.bfloat16, seed=3)
    total = torch.stack([one.float() for one in inputs]).sum(0)
    for op, result in (("all_reduce", total), ("reduce_scatter", total[rank : rank + 1])):
        residual = _input(9, tuple(result.shape), torch.bfloat16, seed=4)
        outputs = [(torch.bfloat16, 64), (torch.float32, 1)]
        y, largest = ops.fused_collective(op, inputs[rank], [residual, weight], _NORM, outputs)
        added = result + residual.float()
        assert y.shape == result.shape and largest.shape == (*result.shape[:-1], 1)
        torch.testing.assert_close(y.float(), added * weight.float(), rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(largest, added.abs().amax(-1, keepdim=True), rtol=1e-5, atol=1e-5)
        # Places come from anything that can be iterated over, once.
        places = [torch.empty_like(y), torch.empty_like(largest)]
        filled = ops.prepare(op, _NORM, outputs)(inputs[rank], [residual, weight], out=iter(places))
        assert len(filled) == 2 and all(one is place for one, place in zip(filled, places, strict=True))
        assert torch.equal(places[0], y) and torch.equal(places[1], largest)


_SCALED = """(%t: tensor<8xf32>, %w: tensor<8xf32>, %s: tensor<1xf32>) {
    %a = arith.mulf %t, %w : tensor<8xf32>
    %all = comms.broadcast_row %s : tensor<1xf32> -> tensor<8xf32>
    %y = arith.addf %a, %all : tensor<8xf32>
    comms.yield %y : tensor<8xf32>
  }"""


def shared_arguments(rank: int, size: int) -> None:
    """One dimension is one row for all rows, also where it has as many elements as there are rows; [rows, 1] is one
    value for each row, which one dimension never is."""
    weight = torch.arange(8.0, device=DEVICE)
    for op, parts in (("all_reduce", 1), ("reduce_scatter", size)):
        for rows in (4, 8, 16):
            scale = torch.arange(float(rows), device=DEVICE).view(rows, 1)
            x = torch.ones(rows * parts, 8, device=DEVICE)
            (y,) = ops.fused_collective(op, x, [weight, scale], _SCALED, [(torch.float32, 8)])
            assert torch.equal(y, size * weight + scale), (op, rows)
            flat = partial(ops.fused_collective, op, x, [weight, scale.view(-1)], _SCALED, [(torch.float32, 8)])
            _fails("has rank 1, so that all rows share it", flat)
