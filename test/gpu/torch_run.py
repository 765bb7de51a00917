"""The torch ops, torch.compile and the backend on the GPUs of this machine, and the times of their calls.

Usage: torchrun --nproc-per-node 4 test/gpu/torch_run.py [--only PART] [--json FILE]
PARTs: checks, backend, windows, interop, compile, registered, speed, host.

The checks are those of test/python/torch, on CUDA tensors. Speed is measured against NCCL and torch's symmetric memory,
for eager calls and in CUDA graphs: the slowest rank, the median of 9 rounds in which contenders take turns. Ends with
status 1 if a check failed.

With COMMSIR_SHARE_GPU=1 the checks may run with more ranks than GPUs. The world is then CommsIR's rather than NCCL's,
because NCCL refuses such ranks; checks that need a communicator of NCCL are skipped.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pathlib
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
os.environ["CHECK_DEVICE"] = "cuda"

import torch
import torch.distributed as dist
import torch.utils.dlpack
from switches import SHARES

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "python" / "torch" / part) for part in ("ops", "c10d")]

SIZES = [1 << power for power in (10, 13, 16, 18, 20, 22)]
ROUNDS = 9


def say(*text: object) -> None:
    if dist.get_rank() == 0:
        print(*text, flush=True)


def attempt(name: str, check: Callable[[], Any], failed: list[str]) -> Any:
    """Runs a check on all ranks; all learn whether it held on every one."""
    result, wrong, began = None, 0, time.monotonic()
    try:
        result = check()
    except Exception:
        wrong = 1
        print(f"FAILED {name} on rank {dist.get_rank()}\n{traceback.format_exc()}", flush=True)
    torch.cuda.synchronize()
    count = torch.tensor([wrong], device="cuda")
    dist.all_reduce(count)
    if int(count):
        failed.append(name)
    say(f"{'failed' if int(count) else 'ok':6} {name} ({time.monotonic() - began:.1f} s)")
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Checks
# ---------------------------------------------------------------------------------------------------------------------


def graphs(rank: int, size: int) -> None:
    """Captured calls, replayed with other data, between eager ones."""
    import commsir.torch.ops as ops

    x = torch.zeros(4096, device="cuda", dtype=torch.bfloat16)
    ops.all_reduce(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = ops.all_reduce(x)
        z = ops.all_reduce(y)
    for turn in range(20):
        x.fill_(rank + turn)
        graph.replay()
        eager = ops.all_reduce(x)
        want = sum(r + turn for r in range(size))
        assert torch.all(eager == want) and torch.all(y == want) and torch.all(z.float() == float(want * size)), turn


def many_sizes(rank: int, size: int) -> None:
    """Sizes that grow and shrink between calls."""
    import commsir.torch.ops as ops

    for elements in (1, 7, 4096, 33, 100_003, 64, 1 << 20, 5, 3_000_001, 8):
        for turn in range(3):
            x = torch.full((elements,), float(rank + turn), device="cuda")
            got = ops.all_reduce(x)
            assert torch.all(got == sum(r + turn for r in range(size))), (elements, turn)


def part(source: int, elements: int, turn: int) -> torch.Tensor:
    """What a rank sends."""
    return (torch.arange(elements, device="cuda") % 1000 + 7 * source + turn).to(torch.float32)


def moved(rank: int, size: int, elements: int, in_place: bool) -> None:
    """all_gather and all_to_all of a size, eager and in a graph."""
    import commsir.torch.ops as ops

    whole = torch.empty(size * elements, device="cuda")
    shard = whole[rank * elements : (rank + 1) * elements] if in_place else torch.empty(elements, device="cuda")
    given = torch.empty(elements, device="cuda")
    swapped = given if in_place else torch.empty(elements, device="cuda")
    name = ops._named(None)

    def call() -> None:
        torch.ops.commsir.all_gather.out(shard, name, out=whole)
        torch.ops.commsir.all_to_all.out(given, name, out=swapped)

    def check(turn: int, run: Callable[[], Any]) -> None:
        shard.copy_(part(rank, elements, turn))
        given.copy_(torch.cat([part(rank, elements // size, turn + to) for to in range(size)]))
        run()
        for source in range(size):
            assert torch.equal(whole.view(size, -1)[source], part(source, elements, turn)), (turn, source)
            assert torch.equal(swapped.view(size, -1)[source], part(source, elements // size, turn + rank)), turn

    for turn in range(2):
        check(turn, call)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    for turn in range(2, 6):
        check(turn, graph.replay)
        check(turn + 10, call)


def copied(rank: int, size: int) -> None:
    """Sizes that copy engines move: large ones, and the first uses of others, which compile nothing."""
    import commsir.torch.ops as ops

    for elements in (400_000 * size, 5_000_000 * size, 18_000_000 * size):
        for in_place in (False, True):
            moved(rank, size, elements, in_place)
    world: Any = dist.group.WORLD
    before = ops.counts_of(world)["cuda.ops"]
    ops.all_gather(torch.zeros(3_000_001, device="cuda"))
    now = ops.counts_of(world)["cuda.ops"]
    assert all(now[kind] == before[kind] for kind in ("compiled", "from_cache")), (before, now)


def check_ops(rank: int, size: int, failed: list[str]) -> None:
    import ops_checks

    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int64):
        attempt(f"plain {dtype}", partial(ops_checks.plain, rank, size, dtype, (2 * size, 33)), failed)
    for one in (
        ops_checks.strided,
        ops_checks.gradients,
        ops_checks.without_derivatives,
        ops_checks.fused,
        ops_checks.mistakes,
        ops_checks.wrong_results,
        ops_checks.wrong_operands,
        graphs,
        many_sizes,
        copied,
    ):
        attempt(one.__name__, partial(one, rank, size), failed)
    if size >= 4:
        attempt("subgroups", lambda: ops_checks.subgroups(rank, size), failed)


def check_compile(rank: int, size: int, failed: list[str]) -> None:
    import compile_checks

    for name in compile_checks.FUSED:
        said = attempt(f"compile {name}", partial(compile_checks.fuses, rank, size, name, torch.bfloat16), failed)
        say("      ", said)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        attempt(f"compile casts to {dtype}", partial(compile_checks.overflows, rank, size, dtype), failed)
    for name in ("log", "exp", "tanh", "erf", "rsqrt"):
        attempt(f"compile {name}", partial(compile_checks.ends_of_functions, rank, size, name), failed)
    for shape in ((0, 16), (4, 0), (4, 1)):
        attempt(f"compile {shape}", partial(compile_checks.without_elements, rank, size, shape), failed)
    for ordered in (
        compile_checks.used_in_another_order,
        compile_checks.each_needs_the_other,
        compile_checks.ops_keep_their_order,
    ):
        attempt(f"compile {ordered.__name__}", partial(ordered, rank, size), failed)
    counts = attempt("profile", lambda: compile_checks.kernels(rank, size), failed)
    say("       ops and kernels of one call:", {k: v for k, v in (counts or {}).items() if v and "cuda" not in k})


def check_registered(rank: int, size: int, failed: list[str]) -> None:
    """Operations of an engine that are registered as collectives, on all ranks or on some."""
    import foreign_checks as checks

    def along(name: str) -> None:
        assert checks.ALONG[name][1] in checks.along(rank, size, name)[0]

    def engine() -> None:
        ran = checks.engine(rank, size, list(checks.ENGINE), "own")
        assert all((ran[name][-1] == 0) == fused for name, (_, fused) in checks.ENGINE.items()), ran

    def differ(how: str) -> None:
        ran, fused = checks.differ(rank, size, how, "own"), checks.REGISTRATIONS[how][1]
        assert (ran["norm"][-1] == 0) == fused and ran["norm again"][-1] == ran["norm"][-1], ran
        assert all(ran["another"]), ran

    def not_compiled() -> None:
        ran = checks.not_compiled(rank, size, "own")
        assert ran == [1] * checks.CALLS, ran

    def overlapped(how: str) -> None:
        _, ran = checks.overlapped(rank, size, how)
        assert (ran[-1] == 0) == checks.REGISTRATIONS[how][1], ran

    def gradients() -> None:
        forward, backward = checks.gradients(rank, size, "own")
        assert "aten.rsqrt" in forward and backward, (forward, backward)

    for how in ("last rank not", "one each", "same"):
        attempt(f"registered by ranks: {how}", partial(differ, how), failed)
        attempt(f"registered behind a matmul: {how}", partial(overlapped, how), failed)
    for one in (not_compiled, gradients):
        attempt(f"registered, {one.__name__}", one, failed)
    attempt("registered operations of an engine", engine, failed)
    for name in checks.ALONG:
        attempt(f"registered {name}", partial(along, name), failed)


def check_backend(rank: int, size: int, failed: list[str]) -> None:
    """The backend's calls on CUDA tensors, against NCCL's."""
    import commsir.torch

    commsir.torch.register()
    ours = dist.new_group(backend="commsir")

    def same(name: str, call: Callable[[Any], torch.Tensor]) -> None:
        def check() -> None:
            got, want = call(ours), call(dist.group.WORLD)
            torch.testing.assert_close(got.float(), want.float(), rtol=2e-2, atol=2e-2)

        attempt(f"backend {name}", check, failed)

    def data(elements: int, dtype: torch.dtype) -> torch.Tensor:
        generator = torch.Generator(device="cuda").manual_seed(rank)
        return torch.randn(elements, device="cuda", generator=generator).to(dtype)

    def all_reduce(group: Any) -> torch.Tensor:
        x = data(10_001, torch.bfloat16)
        dist.all_reduce(x, group=group)
        return x

    def all_gather(group: Any) -> torch.Tensor:
        out = torch.empty(size * 1000, device="cuda")
        dist.all_gather_into_tensor(out, data(1000, torch.float32), group=group)
        return out

    def reduce_scatter(group: Any) -> torch.Tensor:
        out = torch.empty(1000, device="cuda")
        dist.reduce_scatter_tensor(out, data(1000 * size, torch.float32), group=group, op=dist.ReduceOp.AVG)
        return out

    def all_to_all(group: Any) -> torch.Tensor:
        out = torch.empty(size * 100, device="cuda")
        dist.all_to_all_single(out, data(size * 100, torch.float32), group=group)
        return out

    def broadcast(group: Any) -> torch.Tensor:
        x = data(5000, torch.float16)
        dist.broadcast(x, 1, group=group)
        return x

    def exchange(group: Any) -> torch.Tensor:
        x, out = data(100, torch.float32), torch.empty(100, device="cuda")
        sends = [
            dist.P2POp(dist.isend, x, (rank + 1) % size, group),
            dist.P2POp(dist.irecv, out, (rank - 1) % size, group),
        ]
        for work in dist.batch_isend_irecv(sends):
            work.wait()
        return out

    def parts_that_differ(group: Any) -> torch.Tensor:
        to = [100 * rank + 7 * peer + 1 for peer in range(size)]
        back = [100 * peer + 7 * rank + 1 for peer in range(size)]
        out = torch.empty(sum(back), device="cuda")
        for _ in range(3):
            dist.all_to_all_single(out, data(sum(to), torch.float32), back, to, group=group)
        return out

    def beside_another_device() -> None:
        """Whichever device is current: a wait for a call is in the stream of its tensors' device."""
        x = torch.full((16 << 20,), rank + 1.0, device="cuda")
        out = torch.empty(size * x.numel(), device="cuda")
        with torch.cuda.device((torch.cuda.current_device() + 1) % torch.cuda.device_count()):
            for turn in range(5):
                out.fill_(float("nan"))
                work = dist.all_gather_into_tensor(out, x, group=ours, async_op=True)
                assert work
                work.wait()
                assert torch.all(out.view(size, -1).mean(1).cpu() == torch.arange(1.0, size + 1)), turn

    for one in (all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, exchange, parts_that_differ):
        same(one.__name__, one)
    attempt("backend next to another device", beside_another_device, failed)
    say("       paths:", commsir.torch.stats())


def check_windows(rank: int, size: int, failed: list[str]) -> None:
    """One-sided access in streams, and what a group does in addition to the collectives of the backend."""
    import windows_checks

    attempt("windows", lambda: windows_checks.tensors(rank, size), failed)
    if size % 2 == 0:
        attempt("windows of pairs", lambda: windows_checks.groups(rank, size), failed)
    attempt("arrays of a group", lambda: arrays(rank, size), failed)
    attempt("messages in pieces", lambda: pieces(rank, size), failed)
    attempt("tables loaded between calls", lambda: tables(rank, size), failed)
    attempt("groups that are dropped", lambda: dropped(rank, size), failed)


def arrays(rank: int, size: int) -> None:
    """commsir.Group on a GPU: sends between two ranks, parts of sizes that differ, unsigned bytes at odd addresses."""
    with own_group(rank, size, "arrays") as group:
        for elements in (1, 1000, 70_001, 3_000_000):
            x = torch.arange(elements, device="cuda", dtype=torch.float32) % 251 + rank
            y = torch.full_like(x, -1)
            if size == 2:
                group.collective("send", x, None, peer=1) if rank == 0 else group.collective("recv", None, y, peer=0)
                torch.cuda.synchronize()
                assert rank == 0 or torch.equal(y, x - 1), elements
            group.all_reduce(x, y)
            ranks = torch.arange(elements, device="cuda", dtype=torch.float32) % 251 * size + size * (size - 1) / 2
            assert torch.equal(y, ranks), elements
        bytes_in = (torch.arange(1003, device="cuda") % 200).to(torch.uint8)[3:]
        out = torch.zeros(1000 * size + 1, dtype=torch.uint8, device="cuda")[1:]
        group.all_gather(bytes_in, out)
        assert torch.equal(out, bytes_in.repeat(size))


def pieces(rank: int, size: int) -> None:
    """Messages that need more channel memory than a group may have."""
    os.environ["COMMSIR_CHANNEL_BYTES"] = str(64 << 20)
    try:
        with own_group(rank, size, "pieces") as group:
            for elements in (96_000_000 + 8, 5, 48_000_000):
                part = elements // size
                x = torch.arange(part * size, device="cuda", dtype=torch.int32) + rank
                total = (x - rank) * size + size * (size - 1) // 2
                assert torch.equal(group.all_reduce(x, torch.empty_like(x)), total), elements
                mine = slice(rank * part, (rank + 1) * part)
                assert torch.equal(group.reduce_scatter(x, torch.empty_like(x[:part])), total[mine]), elements
                everyone = torch.cat([x[mine] - rank + peer for peer in range(size)])
                assert torch.equal(group.all_to_all(x, torch.empty_like(x)), everyone), elements
                everyone = torch.cat([x[:part] - rank + peer for peer in range(size)])
                assert torch.equal(group.all_gather(x[:part], torch.empty_like(x)), everyone), elements
    finally:
        del os.environ["COMMSIR_CHANNEL_BYTES"]


def tables(rank: int, size: int) -> None:
    """A running program takes tables, and goes back to those that are shipped."""
    import tempfile

    import commsir

    section = {"op": "all_reduce", "type": "f32", "columns": 0, "points": [[1 << 22, 0, 1.0]]}
    device, chip = torch.cuda.get_device_name(), "sm_{}{}".format(*torch.cuda.get_device_capability())
    head = {"format": "commsir-table-1", "device": device, "chip": chip, "ranks": size, "date": "2026-11-22"}
    x = torch.arange(1 << 20, device="cuda", dtype=torch.float32) % 97 + rank
    want = (x - rank) * size + size * (size - 1) / 2
    with own_group(rank, size, "tables") as group, tempfile.TemporaryDirectory() as folder:
        seen = 0
        for algorithm in ("", "ring", "one_shot", ""):
            path = os.path.join(folder, f"{algorithm}.json")
            if algorithm:
                recipe = [algorithm, "push", 512, 1, 1, 8]
                with open(path, "w") as file:
                    json.dump({**head, "recipes": [recipe], "sections": [section]}, file)
            commsir.load_tables(path if algorithm else None)
            for _ in range(3):
                assert torch.equal(group.all_reduce(x, torch.empty_like(x)), want), algorithm
            counts = group.stats()
            made = counts["compiled"] + counts["from_cache"]
            assert made > seen, f"{algorithm or 'what is shipped'} was not taken: {counts}"
            seen = made
            torch.cuda.synchronize()
            dist.barrier()


def dropped(rank: int, size: int) -> None:
    """Garbage waits for no rank, also while a graph is captured; its memory is there again when the last drops it."""
    gc.collect()
    torch.cuda.synchronize()
    free, elements = torch.cuda.mem_get_info()[0], 64 << 20
    group: Any = own_group(rank, size, "dropped")
    window = group.allocate(elements, "f32", to=torch.utils.dlpack.from_dlpack)
    total = torch.full((), -1.0, device="cuda")
    group.all_reduce(window.fill_(rank), window)
    x = torch.ones(1 << 16, device="cuda")
    assert float(group.all_reduce(x, torch.empty_like(x))[-1]) == size  # By copies of its own.
    torch.cuda.synchronize()
    assert torch.cuda.mem_get_info()[0] < free - 4 * elements
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total.add_(1)
        if rank == 0:
            begin = time.monotonic()
            del group, window
            gc.collect()
            took = time.monotonic() - begin
            assert took < 1, f"rank 0 waited {took:.1f} s for nobody"
            time.sleep(0.5)
        total.add_(1)
    for _ in range(3):
        graph.replay()
    assert float(total) == 5, float(total)
    dist.barrier()
    if rank != 0:
        assert float(window[-1]) == size * (size - 1) / 2
        del group, window
    end = time.monotonic() + 10
    while torch.cuda.mem_get_info()[0] < free - elements:
        assert time.monotonic() < end, f"{(free - torch.cuda.mem_get_info()[0]) >> 20} MiB are lost"
        gc.collect()
        time.sleep(0.05)


# ---------------------------------------------------------------------------------------------------------------------
# Arrays, memory and communicators of others
# ---------------------------------------------------------------------------------------------------------------------


def own_group(rank: int, size: int, name: str, **options: Any) -> Any:
    """A commsir.Group of this process's GPU, over torch's store."""
    import commsir

    distributed: Any = dist
    store = distributed.PrefixStore(f"torch_run/{name}", distributed.distributed_c10d._get_default_store().clone())
    return commsir.Group(rank, size, store=store, name=name, device=torch.cuda.current_device(), **options)


def arrays_of_cupy(rank: int, size: int) -> None:
    """Arrays of CuPy go in and come out, and outputs that were left out are CuPy's."""
    import cupy

    device = torch.cuda.current_device()
    with own_group(rank, size, "arrays of cupy") as group, cupy.cuda.Device(device):
        x, y = cupy.arange(5000, dtype=cupy.float32) + rank, cupy.zeros(5000, dtype=cupy.float32)
        cupy.cuda.Device(device).synchronize()
        group.all_reduce(x, y)
        gathered = group.all_gather(x)
        group.finish()
        assert isinstance(gathered, cupy.ndarray)
        check_sums(rank, size, y, gathered)


def arrays_of_jax(rank: int, size: int) -> None:
    """Arrays of JAX go in, and what comes out are new ones, where JAX computes on at once."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    device = torch.cuda.current_device()
    try:
        import commsir
        import jax

        place = next(one for one in jax.local_devices() if one.local_hardware_id == device)
        torch.cuda.set_device(device)  # JAX has made others current.
        with own_group(rank, size, "arrays of jax") as group:
            x = jax.device_put(jax.numpy.arange(5000, dtype=jax.numpy.float32) + rank, place)
            for turn in range(20):
                # Nobody waits, before or after.
                y = group.all_reduce(x * 1)
                z = y + turn
                gathered = group.all_gather(x)
                assert isinstance(y, jax.Array) and y.devices() == gathered.devices() == {place}
                check_sums(rank, size, z - turn, gathered)
            shared = group.broadcast(x[:8].astype(jax.numpy.bfloat16), root=size - 1)
            assert shared.dtype == jax.numpy.bfloat16 and float(shared[0]) == size - 1
            calls: list[Callable[[], Any]] = [lambda: group.all_reduce(x, y), lambda: group.share(x)]
            for refused in calls:
                try:
                    refused()
                except commsir.UsageError as error:
                    assert "never change" in str(error) or "immutable" in str(error), error
                else:
                    raise AssertionError("an array of JAX was to be written")
    finally:
        torch.cuda.set_device(device)  # As above.


def check_sums(rank: int, size: int, sums: Any, gathered: Any) -> None:
    """Of what `arrays_of_…` put in."""
    total, parts = torch.utils.dlpack.from_dlpack(sums), torch.utils.dlpack.from_dlpack(gathered)
    base = torch.arange(5000.0, device=total.device)  # Not "cuda": JAX makes others current.
    assert total.get_device() == parts.get_device() == torch.cuda.current_device()
    assert torch.equal(total, base * size + size * (size - 1) / 2)
    assert torch.equal(parts, torch.cat([base + r for r in range(size)]))


def another_device_is_current(rank: int, size: int) -> None:
    """A group works on its own GPU, whichever the thread has made current."""
    own, other = torch.cuda.current_device(), (torch.cuda.current_device() + 1) % torch.cuda.device_count()
    with own_group(rank, size, "elsewhere") as group:
        x = torch.full((5000,), rank + 1.0, device="cuda")
        with torch.cuda.device(other):
            y = group.allocate(5000, to=torch.utils.dlpack.from_dlpack)
            odd = group.all_gather(x[1:])  # Copied: at no address that kernels take.
            group.all_reduce(x, y)
            group.finish()
            assert torch.cuda.current_device() == other and y.device == odd.device == x.device
        assert torch.cuda.current_device() == own
        assert torch.all(y == size * (size + 1) / 2) and torch.equal(
            odd[:: x.numel() - 1], y.new_tensor(range(1, size + 1))
        )


def communicator_of_nccl4py(rank: int, size: int) -> None:
    import nccl.core

    made = [nccl.core.get_unique_id().as_bytes if rank == 0 else None]
    dist.broadcast_object_list(made, 0)
    theirs = nccl.core.Communicator.init(size, rank, nccl.core.UniqueId.from_bytes(made[0]))
    with own_group(rank, size, "nccl4py", communicator=theirs) as group:
        x = torch.full((3000,), rank + 1.0, device="cuda")
        y = torch.empty_like(x)
        group.all_reduce(x, y)
        torch.cuda.synchronize()
        assert torch.all(y == size * (size + 1) / 2)


def shared(rank: int, size: int, kind: str) -> None:
    """Memory that torch, its symmetric memory or NCCL's allocator made is used in place, before and after reuse."""
    import commsir.torch
    import commsir.torch.ops as ops
    import torch.distributed._symmetric_memory as symm_mem

    symmetric: Any = symm_mem
    world: Any = dist.group.WORLD
    elements = 1 << 20
    if kind == "tensor":
        memory: Any = torch.empty(2 * elements, device="cuda")
        x, y = memory[:elements], memory[elements:]
    elif kind == "symmetric memory":
        memory = symmetric.empty(2 * elements, dtype=torch.float32, device="cuda")
        x, y = memory[:elements], memory[elements:]
    else:
        memory = torch.cuda.MemPool(world._get_backend(torch.device("cuda")).mem_allocator)
        with torch.cuda.use_mem_pool(memory):
            x, y = torch.empty(elements, device="cuda"), torch.empty(elements, device="cuda")
    commsir.torch.share(memory)
    for turn in range(3):
        x.fill_(rank + turn)
        torch.ops.commsir.all_reduce.out(x, "sum", world.group_name, out=y)
        torch.cuda.synchronize()
        assert torch.all(y == sum(r + turn for r in range(size))), (kind, turn)
        if kind == "pool":
            del x, y
            with torch.cuda.use_mem_pool(memory):
                x, y = torch.empty(elements, device="cuda"), torch.empty(elements, device="cuda")
    counts = ops.group_of(world.group_name, torch.cuda.current_device()).counts()
    assert counts["in_place"] >= 3, counts
    torch.cuda.synchronize()
    dist.barrier()
    commsir.torch.unshare(memory)


def own_kernel(rank: int, size: int) -> None:
    """A kernel on tensors by a group over NCCL's communicator: its window is the caller's, its signals the group's."""
    from commsir.examples.one_shot import one_shot
    from commsir.torch import interop

    group = interop.wrap_process_group(name="own_kernel")
    kernel = group.kernel(one_shot, slots=2 * size, n=4096)
    inbox = interop.window_tensor(group, (2 * size, 4096))
    assert inbox.get_device() == torch.cuda.current_device() and not inbox.any()
    x, y = torch.zeros(4096, device="cuda"), torch.zeros(4096, device="cuda")
    another: Any = torch.cuda.Stream
    for stream in (torch.cuda.current_stream(), another()):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for turn in range(10):
                x.fill_(rank + turn)
                kernel(x, inbox, y)
                assert torch.all(y == sum(r + turn for r in range(size))), turn
        torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    dist.barrier()
    group.destroy()


def pools_differ(rank: int, size: int) -> None:
    """All ranks hear of it, and go on."""
    import commsir.torch

    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = torch.empty((1 + (rank == 0)) * (32 << 20), dtype=torch.uint8, device="cuda")
    try:
        commsir.torch.share(pool)
    except RuntimeError as error:
        assert "ranks share memory that is not alike" in str(error) and "rank 0: 1 piece of" in str(error), error
    else:
        raise AssertionError("pools that differ were shared")
    del kept


def check_interop(rank: int, size: int, failed: list[str]) -> None:
    import importlib.util

    for kind in ("tensor",) if SHARES else ("tensor", "symmetric memory", "pool"):
        attempt(f"shared {kind}", partial(shared, rank, size, kind), failed)
    if not SHARES:
        attempt("a kernel of one's own", lambda: own_kernel(rank, size), failed)
    attempt("pools that differ", lambda: pools_differ(rank, size), failed)
    attempt("another device is current", lambda: another_device_is_current(rank, size), failed)
    for library, check in (("cupy", arrays_of_cupy), ("jax", arrays_of_jax)):
        if importlib.util.find_spec(library):
            attempt(f"arrays of {library}", partial(check, rank, size), failed)
        else:
            say(f"       {library} is not installed here")
    if SHARES:
        say("       memory and communicators of NCCL are left out: its ranks cannot share a GPU")
    elif importlib.util.find_spec("nccl"):
        attempt("communicator of nccl4py", partial(communicator_of_nccl4py, rank, size), failed)
    else:
        say("       nccl4py is not installed here")


# ---------------------------------------------------------------------------------------------------------------------
# Speed
# ---------------------------------------------------------------------------------------------------------------------


def speed(report: dict[str, Any], rounds: int) -> None:
    """As python -m commsir.bench has it; and an op that does nothing, to which calls of ours compare."""
    from commsir.torch import bench

    bench.warm_up(torch.bfloat16)
    for size in SIZES:
        entries = bench.measure("all_reduce", size, torch.bfloat16, rounds)
        for entry in entries:
            said = entry.get("message") or "  ".join(f"{way} {us:7.2f} us" for way, us in entry["us"].items())
            say(f"{size:9} {entry['contender']:24} {said}")
        say(bench.bests(entries))
        report[str(size)] = {
            entry["contender"]: {**entry["us"], "ratios": entry.get("ratios", {})}
            for entry in entries
            if entry["status"] == "ok"
        }
    host_costs(report)


def host_costs(report: dict[str, Any]) -> None:
    """What calls cost their caller, which has a processor of its own, next to those of others."""
    import host_calls
    from commsir.torch import bench

    name = dist.distributed_c10d._get_default_group().group_name
    x = torch.zeros(512, device="cuda", dtype=torch.bfloat16)
    called = host_calls.ways(name, bench._ours())
    called["dist.all_reduce, nccl"] = lambda: dist.all_reduce(x)
    try:
        called["torch.ops, symm_mem one-shot"] = bench._symmetric(512, torch.bfloat16, name)[0].made.call
    except Exception as error:
        say(f"host, symm_mem is missing: {error}")

    def meet() -> None:
        dist.barrier()
        torch.cuda.synchronize()

    allowed = os.sched_getaffinity(0)
    cpu = host_calls.pin(int(os.environ["LOCAL_RANK"]), int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size())))
    try:
        own = host_calls.measure(called, host_calls.ROUNDS, meet)
    finally:
        os.sched_setaffinity(0, allowed)
    said: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(said, (cpu, own))
    figures = host_calls.slowest([one for _, one in said])
    for line in host_calls.table(figures):
        say(line)
    say(f"host, on the processors {[one for one, _ in said]}")
    report["host"] = {way: {"least": least, "median": median} for way, (least, median) in figures.items()}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of each contender")
    options = parser.parse_args()
    local = int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()
    torch.cuda.set_device(local)
    if SHARES:
        import commsir.torch

        commsir.torch.register()
        dist.init_process_group("commsir")
    else:
        dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    rank, size = dist.get_rank(), dist.get_world_size()
    failed: list[str] = []
    report: dict[str, Any] = {"ranks": size, "device": torch.cuda.get_device_name(), "torch": torch.__version__}
    if options.only in ("", "checks"):
        check_ops(rank, size, failed)
    if options.only in ("", "backend") and not SHARES:
        check_backend(rank, size, failed)
    if options.only in ("", "windows"):
        check_windows(rank, size, failed)
    if options.only in ("", "interop"):
        check_interop(rank, size, failed)
    if options.only in ("", "compile"):
        check_compile(rank, size, failed)
    if options.only in ("", "registered"):
        check_registered(rank, size, failed)
    if options.only in ("", "speed") and not (failed or SHARES):
        speed(report, options.rounds)
    if options.only == "host":
        host_costs(report)
    report["failed"] = failed
    if rank == 0 and options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1))
    say(f"{len(failed)} failed" + "".join(f"\n  {name}" for name in failed))
    dist.barrier()
    sys.stdout.flush()
    # What failed may have left kernels that wait; the process leaves without cleaning up.
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    sys.exit(main())
