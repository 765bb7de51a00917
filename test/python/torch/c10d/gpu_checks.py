"""The driver calls that calls on CUDA tensors make, and their results.

Run by test_gpu.py over a driver without a GPU, where kernels do nothing or follow COMMSIR_FAKE_KERNEL.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import commsir
import commsir.torch
import cost_checks
import memory_checks
import torch
import torch.distributed
import torch.distributed.device_mesh
from commsir.torch import backend
from expected import error_of

dist: Any = torch.distributed
cuda: Any = torch.cuda
Calls = dict[str, int]

#: What libcommsir's launch asks the driver: whose context is current, whether the stream is captured, and the launch.
LAUNCH = {"CtxGetCurrent": 1, "StreamGetCaptureInfo": 1, "LaunchKernelEx": 1}


def _counted() -> Calls:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fakeCounts.restype = ctypes.c_char_p
    return {name: int(count) for name, count in map(str.split, driver.fakeCounts().decode().splitlines())}


def calls_of(call: Callable[[], Any]) -> Calls:
    """What the driver is asked by a call that was made before."""
    call()
    before = _counted()
    call()
    after = _counted()
    return {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}


def _recorded(group: Any, last: int) -> list[dict[str, Any]]:
    return (backend.calls_of(group) or [])[-last:]


def _tensors(*shapes: int) -> list[torch.Tensor]:
    return [torch.empty(shape, device="cuda") for shape in shapes]


def _collectives(size: int) -> dict[str, Callable[..., Any]]:
    x, y, whole = _tensors(64, 64, 64 * size)
    return {
        "all_reduce": lambda **options: dist.all_reduce(x, **options),
        "broadcast": lambda **options: dist.broadcast(x, size - 1, **options),
        "all_gather_into_tensor": lambda **options: dist.all_gather_into_tensor(whole, x, **options),
        "reduce_scatter_tensor": lambda **options: dist.reduce_scatter_tensor(x, whole, dist.ReduceOp.AVG, **options),
        "all_to_all_single": lambda **options: dist.all_to_all_single(y, x, **options),
    }


def a_synchronous_call_is_a_launch(size: int) -> None:
    for name, call in _collectives(size).items():
        assert calls_of(call) == LAUNCH, name


def an_op_is_a_launch(size: int) -> None:
    import commsir.torch.ops  # noqa: F401

    x, y = _tensors(64, 64)
    op, name = torch.ops.commsir.all_reduce, dist.group.WORLD.group_name
    assert calls_of(lambda: op.out(x, "sum", name, out=y)) == LAUNCH
    # The allocation asks which device is current.
    asked = calls_of(lambda: op(x, "sum", name))
    assert {**asked, **LAUNCH} == asked and not {"EventRecord", "MemAlloc"} & set(asked), asked


_SUM_AND_PRODUCT = """(%sum: tensor<64xf32>, %r: tensor<64xf32>, %w: tensor<64xf32>) {
  %h = arith.addf %sum, %r : tensor<64xf32>
  %y = arith.mulf %h, %w : tensor<64xf32>
  comms.yield %y, %h : tensor<64xf32>, tensor<64xf32>
}"""


def a_prepared_call_goes_past_the_dispatcher(size: int) -> None:
    """A launch, a quarter of what the op takes of memory, and the op's shapes; what is not plain goes to the op."""
    from commsir.torch import ops

    x, r, w = torch.empty(4, 64, device="cuda"), torch.empty(4, 64, device="cuda"), torch.empty(64, device="cuda")
    outputs = [(torch.float32, 64)] * 2
    call = ops.prepare("all_reduce", _SUM_AND_PRODUCT, outputs)
    ops_call: Any = torch.ops.commsir.fused_collective.default
    texts = (_SUM_AND_PRODUCT, "f32,f32", [64, 64], False, dist.group.WORLD.group_name)

    def by_op(x: torch.Tensor = x, r: torch.Tensor = r) -> list[torch.Tensor]:
        made: list[torch.Tensor] = ops_call("all_reduce", x, [r, w], "sum", *texts)
        return made

    assert [(y.shape, y.dtype) for y in call(x, [r, w])] == [(y.shape, y.dtype) for y in by_op()]
    asked = calls_of(lambda: call(x, [r, w]))
    assert {**asked, **LAUNCH} == asked and not {"EventRecord", "MemAlloc"} & set(asked), asked
    taken, least = (cost_checks.allocations_of(one) for one in (lambda: call(x, [r, w]), by_op))
    assert 4 * taken <= least, (taken, least)
    by_name = cost_checks.allocations_of(lambda: ops.fused_collective("all_reduce", x, [r, w], texts[0], outputs))
    assert 4 * by_name <= 5 * taken, (by_name, taken)  # The name of the process group is a text of torch's.
    seen = []

    mode: Any = torch.utils._python_dispatch.TorchDispatchMode

    class Watch(mode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    with Watch():
        call(x, [r, w])
    assert seen == ["commsir.fused_collective.default"], seen
    with torch.profiler.profile() as profile:
        call(x, [r, w])
    assert "commsir::fused_collective" in [event.key for event in profile.key_averages()]
    with torch.inference_mode():
        assert all(y.is_inference() for y in call(x, [r, w]))
    assert call(x[:0], [r[:0], w])[0].shape == (0, 64)
    assert call(x.t().contiguous().t(), [r, w])[0].shape == (4, 64)
    assert "no derivative" in error_of(lambda: call(x.clone().requires_grad_(), [r, w]))
    for given in ([r.cpu(), w], [r[:2], w], [r, w[:8]]):
        said = error_of(lambda given=given: call(x, given))
        assert said == error_of(lambda given=given: ops_call("all_reduce", x, given, "sum", *texts)) and said, said
    call(x, [r, w])  # Nothing of that was a step.


def a_prepared_call_fills_what_it_is_given(size: int) -> None:
    """A launch and no tensor; what does not fit, or shares memory, is the op's to refuse."""
    from commsir.torch import ops

    x, r, w = torch.empty(4, 64, device="cuda"), torch.empty(4, 64, device="cuda"), torch.empty(64, device="cuda")
    call = ops.prepare("all_reduce", _SUM_AND_PRODUCT, [(torch.float32, 64)] * 2)
    out = [torch.empty(4, 64, device="cuda") for _ in range(2)]
    assert all(a is b for a, b in zip(call(x, [r, w], out=out), out, strict=True))
    asked = calls_of(lambda: call(x, [r, w], out=out))
    assert {**asked, **LAUNCH} == asked and not {"EventRecord", "MemAlloc"} & set(asked), asked
    taken, less = (
        cost_checks.allocations_of(one) for one in (lambda: call(x, [r, w]), lambda: call(x, [r, w], out=out))
    )
    assert less < taken, (less, taken)
    # An argument's row is read before the same row of a result is written in its place.
    assert call(x, [r, w], out=[r, out[1]])[0] is r
    assert "two outputs share memory" in error_of(lambda: call(x, [r, w], out=[out[0], out[0]]))
    longer = torch.empty(5, 64, device="cuda")
    assert "rows are not its own" in error_of(lambda: call(x, [longer[1:], w], out=[out[0], longer[:4]]))
    wide = torch.empty(4, 64, device="cuda", dtype=torch.float64)
    for wrong in ([out[0], wide], [out[0]], [out[0], out[1][:2]], [out[0], out[1].cpu()]):
        assert error_of(lambda wrong=wrong: call(x, [r, w], out=wrong)), wrong
    sends = ops.prepare("all_to_all", _WIDENED, [(torch.float32, 64)], reduce_op="", produce=_SCALED, sources=2)
    s = torch.empty(4, 1, device="cuda")
    asked = calls_of(lambda: sends(x, [s, w, w], out=out[:1]))
    assert {**asked, **LAUNCH} == asked, asked
    # The op has no such form with `produce`: its results are copied.
    turned = torch.empty(64, 4, device="cuda").t()
    assert sends(x, [s, w, w], out=[turned])[0] is turned
    assert "has 2 tensors" in error_of(lambda: sends(x, [s, w, w], out=[turned, turned]))
    call(x, [r, w])  # Nothing of that was a step.


_SCALED = """(%x: tensor<64xf32>, %s: tensor<1xf32>, %w: tensor<64xf32>) {
  %wide = comms.broadcast_row %s : tensor<1xf32> -> tensor<64xf32>
  %scaled = arith.divf %x, %wide : tensor<64xf32>
  %shifted = arith.addf %scaled, %w : tensor<64xf32>
  %sent = arith.truncf %shifted : tensor<64xf32> to tensor<64xf8E4M3FN>
  comms.yield %sent : tensor<64xf8E4M3FN>
}"""
_WIDENED = """(%x: tensor<64xf8E4M3FN>, %w: tensor<64xf32>) {
  %wide = arith.extf %x : tensor<64xf8E4M3FN> to tensor<64xf32>
  %y = arith.mulf %wide, %w : tensor<64xf32>
  comms.yield %y : tensor<64xf32>
}"""


def a_prepared_call_makes_what_it_sends(size: int) -> None:
    """One launch, with what `produce` reads; the op gives the same shapes, and says the same of what does not fit."""
    from commsir.torch import ops

    x, s, w = (torch.empty(*shape, device="cuda") for shape in ((4, 64), (4, 1), (64,)))
    outputs = [(torch.float32, 64)]
    for op, rows in (("all_gather", 4 * size), ("all_to_all", 4)):
        how: dict[str, Any] = {"reduce_op": "", "produce": _SCALED, "sources": 2}
        call = ops.prepare(op, _WIDENED, outputs, **how)
        assert [y.shape for y in call(x, [s, w, w])] == [(rows, 64)]
        asked = calls_of(functools.partial(call, x, [s, w, w]))
        assert {**asked, **LAUNCH} == asked and not {"EventRecord", "MemAlloc"} & set(asked), asked
        assert ops.fused_collective(op, x, [s, w, w], _WIDENED, outputs, **how)[0].shape == (rows, 64)
        assert "source 0 has 2 elements, not 4 rows of 1" in error_of(lambda call=call: call(x, [s[:2], w, w]))
        few = ops.prepare(op, _WIDENED, outputs, **{**how, "sources": 4})
        assert "produce reads 4 arguments, but the call has 3" in error_of(lambda few=few: few(x, [s, w, w]))


def a_short_storage_is_refused(size: int) -> None:
    with torch.device("cuda"):
        memory_checks.short_storages(dist.get_rank(), size)


def a_warm_up_leaves_nothing_to_compile(size: int) -> None:
    """Whatever the row's length divides, with pieces of 4 MiB and any rest, eager and captured."""
    import commsir.torch.ops as ops

    group = ops.group_of(dist.group.WORLD.group_name, cuda.current_device())

    def made() -> int:
        counts = group.counts()
        return int(counts["compiled"]) + int(counts["from_cache"])

    for columns, rows, tried in ((64, 20, range(1, 21)), (2560, 900, [5, *range(1, 900, 37), 410, 820])):
        x = torch.ones(rows, columns, device="cuda")

        def call(count: int, x: torch.Tensor = x) -> torch.Tensor:
            return ops.all_reduce(x[:count], "sum", dist.group.WORLD)

        before = made()
        commsir.torch.warm_up(call, rows=rows)
        warm = made()
        assert warm > before
        for count in tried:
            call(count)
            assert made() == warm, f"{count} rows of {columns}"
        with cuda.graph(cuda.CUDAGraph()):
            call(rows - 3)

    x = torch.ones(size * 100_000, 4, device="cuda")
    before = made()
    commsir.torch.warm_up(lambda count: ops.all_to_all(x[: size * count], dist.group.WORLD), [99_999])
    warm = made()
    assert warm > before
    for _ in range(3):
        ops.all_to_all(x[: size * 99_999], dist.group.WORLD)
    assert made() == warm, "a listed count has its own kernel after one warm_up"


def _python_of(call: Callable[[], Any]) -> set[str]:
    """The functions of commsir that are called."""
    import commsir

    called, package = set(), Path(commsir.__file__).parent

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and package in Path(frame.f_code.co_filename).parents:
            called.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return called


def autograd_is_python_for_derivatives_alone(size: int) -> None:
    import commsir.torch.ops  # noqa: F401

    x, wanted = _tensors(64, 64)
    wanted.requires_grad_()
    op, name = torch.ops.commsir.all_reduce, dist.group.WORLD.group_name
    for one in (x, wanted):
        op(one, "sum", name)
    assert _python_of(lambda: op(x, "sum", name)) == set()
    assert {"call", "forward"} <= _python_of(lambda: op(wanted, "sum", name))
    with torch.no_grad():
        assert _python_of(lambda: op(wanted, "sum", name)) == set()
    assert op(wanted, "sum", name).grad_fn is not None and op(x, "sum", name).grad_fn is None


def nobody_gets_work_unasked(size: int) -> None:
    (x,) = _tensors(64)
    options = dist.AllreduceOptions()
    options.asyncOp = False
    # The first call of a type goes the long way.
    for tensor in (x, x, x.double(), x[::2], x.to(torch.uint8)):
        assert dist.group.WORLD.allreduce([tensor], options) is None
    assert isinstance(dist.all_reduce(x, async_op=True), dist.Work)


def _waited_for(call: Callable[..., Any]) -> None:
    call(async_op=True).wait()


def a_call_of_its_own_stream_is_waited_for(size: int) -> None:
    """What is current waits for the group's stream, which waited for it: two events, which are there, and two waits."""
    for name, call in _collectives(size).items():
        call()
        asked = calls_of(partial(_waited_for, call))
        assert {**asked, **LAUNCH} == asked, name
        assert asked["EventRecord"] == asked["StreamWaitEvent"] == 2 and "EventCreate" not in asked, name
        work = call(async_op=True)
        assert work.is_completed() and work.get_future().done(), name


def who_names_a_time_waits_for_the_gpu(size: int) -> None:
    """As with NCCL; where it does not come in time, the group is over."""
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    assert dist.all_reduce(x, group=group, async_op=True).wait(timedelta(seconds=5))
    work = dist.all_reduce(x, group=group, async_op=True)
    os.environ["COMMSIR_FAKE_BUSY"] = "1"
    try:
        said = error_of(lambda: work.wait(timedelta(milliseconds=20)))
        assert "Timed out waiting 20ms for ALLREDUCE number 2: it is still running on the GPU" in said, said
    finally:
        del os.environ["COMMSIR_FAKE_BUSY"]
    said = error_of(lambda: dist.all_reduce(x, group=group))
    assert "can no longer be used" in said and "Timed out waiting 20ms" in said, said


def a_stream_is_followed(size: int) -> None:
    """Launches of a group are in order, also where their streams are not the same."""
    (x,) = _tensors(64)
    other = cuda.Stream()

    def both() -> None:
        dist.all_reduce(x)
        with cuda.stream(other):
            dist.all_reduce(x)

    asked = calls_of(both)
    assert asked["LaunchKernelEx"] == 2 and asked["EventRecord"] == asked["StreamWaitEvent"] == 2, asked


def a_call_is_captured(size: int) -> None:
    (x,) = _tensors(64)
    dist.all_reduce(x)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        dist.all_reduce(x)
        work = dist.all_reduce(x, async_op=True)
        work.wait()
    # A launch of the graph is none of the driver's calls for a kernel.
    asked = calls_of(graph.replay)
    assert asked["GraphLaunch"] == 1 and "LaunchKernelEx" not in asked, asked


def who_waits_in_a_capture_asks_for_no_event(size: int) -> None:
    """Nothing runs then: who names a time, or waits for a barrier, waits in the stream alone."""
    (x,) = _tensors(64)
    before = dist.all_reduce(x, async_op=True)
    dist.barrier(device_ids=[x.get_device()])
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        work = dist.all_reduce(x, async_op=True)
        start = _counted()
        assert work.wait(timedelta(seconds=5)) and before.wait(timedelta(seconds=5))
        dist.barrier(device_ids=[x.get_device()])
        end = _counted()
        said = error_of(work.is_completed)
        assert "nothing is completed while a graph is captured; wait() for it" in said, said
    for name in ("EventQuery", "EventSynchronize"):
        assert end.get(name, 0) == start.get(name, 0), name
    graph.replay()
    assert before.is_completed() and dist.all_reduce(x, async_op=True).wait(timedelta(seconds=5))


def ctrl_c_ends_a_wait_for_the_gpu(size: int) -> None:
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    work = dist.all_reduce(x, group=group, async_op=True)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["COMMSIR_FAKE_BUSY"] = "1"
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    try:
        work.wait(timedelta(seconds=60))
    except KeyboardInterrupt:
        assert time.monotonic() - start < 20
    else:
        raise AssertionError("it was not heard")
    finally:
        timer.join()
        del os.environ["COMMSIR_FAKE_BUSY"]
        signal.signal(signal.SIGINT, handler)
    said = error_of(lambda: dist.all_reduce(x, group=group))
    assert "it was interrupted while it waited for ALLREDUCE number 1" in said, said


def a_hook_hears_of_a_call_when_its_stream_has_come_to_its_end(size: int) -> None:
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    dist.all_reduce(x, group=group)
    heard: list[Any] = []
    group._register_on_completion_hook(heard.append)
    os.environ["COMMSIR_FAKE_BUSY"] = "1"
    try:
        dist.all_reduce(x, group=group)
        work = dist.broadcast(x, 0, group=group, async_op=True)
        time.sleep(0.05)
        assert not heard
    finally:
        del os.environ["COMMSIR_FAKE_BUSY"]
    work.wait()
    group._wait_for_pending_works()
    assert [(str(info.op_type).split(".")[-1], info.seq) for info in heard] == [("ALLREDUCE", 2), ("BROADCAST", 3)]
    assert all(info.active_duration >= timedelta(milliseconds=40) for info in heard)
    # What is only recorded in a graph has no end.
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        dist.all_reduce(x, group=group)
    group._wait_for_pending_works()
    assert len(heard) == 2


def a_call_is_recorded(size: int) -> None:
    (x,) = _tensors(24)
    for _ in range(3):
        dist.all_reduce(x.view(4, 6), dist.ReduceOp.MAX)
    made = _recorded(dist.group.WORLD, 3)
    assert [one["state"] for one in made] == ["done"] * 3
    assert {one["what"] for one in made} == {"all_reduce(max) of 24 x Float"}
    assert [one["sequence"] - made[0]["sequence"] for one in made] == [0, 1, 2]
    assert all(one["created"] <= one["begun"] <= one["ended"] for one in made)
    assert made[-1]["inputs"] == made[-1]["outputs"] == [([4, 6], "Float")]


def calls_are_counted(size: int) -> None:
    for name, call in _collectives(size).items():
        call()
        commsir.torch.clear_stats()
        for _ in range(5):
            call()
        (counted,) = commsir.torch.stats()["calls"]
        assert (counted["op"], counted["path"], counted["count"]) == (name, "commsir", 5)


def a_profiler_is_shown_the_call(size: int) -> None:
    (x,) = _tensors(64)
    for _ in range(2):
        dist.all_reduce(x)
    profiler: Any = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(x)
    assert "commsir:all_reduce" in {event.key for event in profile.key_averages()}


def what_is_wrong_is_refused(size: int) -> None:
    x, whole = _tensors(64, 64 * size)
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: dist.all_gather_into_tensor(whole[:-1], x), "output tensor size must be equal"),
        (lambda: dist.reduce_scatter_tensor(x, whole.double()), "Float"),
        (lambda: dist.all_reduce(x, dist.ReduceOp.BAND), "bitwise ReduceOp"),
        (lambda: dist.broadcast(x, group_src=size), ""),
    ]
    for call, says in wrong:
        try:
            call()
        except (RuntimeError, ValueError) as error:
            assert says in str(error), error
        else:
            raise AssertionError(says)


def a_failure_is_told(size: int) -> None:
    """A kernel that gave up: the next call says so, and the group is of no use."""
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    for _ in range(2):
        dist.all_reduce(x, group=group)
    os.environ["COMMSIR_FAKE_KERNEL"] = "timeout"
    try:
        dist.all_reduce(x, group=group)
    finally:
        os.environ["COMMSIR_FAKE_KERNEL"] = ""
    for _ in range(2):
        said = error_of(lambda: dist.all_reduce(x, group=group))
        assert "gave up waiting" in said, said
    assert [one["state"] for one in _recorded(group, 3)] == ["done", "done", "failed"]


def who_waits_on_the_host_is_told(size: int) -> None:
    """A kernel that gave up has ended as well: a barrier, or a wait with a time, is no success then."""
    (x,) = _tensors(64)
    waits: dict[str, Callable[[Any], Any]] = {
        "a barrier": lambda group: dist.barrier(group=group, device_ids=[x.get_device()]),
        "a wait": lambda group: dist.all_reduce(x, group=group, async_op=True).wait(timedelta(seconds=5)),
    }
    for name, wait in waits.items():
        group = dist.new_group(backend="commsir")
        wait(group)
        os.environ["COMMSIR_FAKE_KERNEL"] = "timeout"
        try:
            said = error_of(partial(wait, group))
            assert "gave up waiting" in said, f"{name}: {said}"
        finally:
            os.environ["COMMSIR_FAKE_KERNEL"] = ""


def an_aborted_group_is_no_more(size: int) -> None:
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    for _ in range(2):
        dist.all_reduce(x, group=group)
    group.abort()
    said = error_of(lambda: dist.all_reduce(x, group=group))
    assert "can no longer be used: it was aborted" in said, said


def a_group_that_has_shrunk_serves_gpus(size: int) -> None:
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    dist.all_reduce(x, group=group)
    if dist.get_rank() == 0:
        left = dist.shrink_group(list(range(1, size)), group=group, shrink_flags=1)
        assert {device.type for device in left._device_types} >= {"cpu", "cuda"}, left._device_types
        dist.all_reduce(x, group=left)
        dist.all_reduce(x.cpu(), group=left)


def a_destroyed_group_is_no_more(size: int) -> None:
    """All ranks end it then, and not when garbage is collected: what the GPU had for it is free."""
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    dist.all_reduce(x, group=group)
    work = dist.all_reduce(x, group=group, async_op=True)
    before = commsir.torch.stats(group)
    streams = _counted().get("StreamDestroy", 0)
    group.shutdown()
    assert _counted().get("StreamDestroy", 0) > streams
    assert commsir.torch.stats(group) == before
    assert work.wait() and work.is_completed()
    said = error_of(lambda: dist.all_reduce(x, group=group))
    assert "can no longer be used: it was destroyed" in said, said


def another_gpu_is_refused(size: int) -> None:
    """A group works on one GPU of each rank: tensors on another are no part of it."""
    (x,) = _tensors(64)
    other = torch.empty(64, device=f"cuda:{(x.get_device() + 1) % size}")
    dist.all_reduce(x)
    calls: list[Callable[[], Any]] = [
        lambda: dist.all_reduce(other),
        lambda: dist.all_reduce(other, async_op=True),
        lambda: dist.all_gather([torch.empty_like(other) for _ in range(size)], other),
    ]
    for call in calls:
        said = error_of(call)
        assert f"got tensors on {other.device}" in said and f"works on {x.device}" in said, said
    dist.all_reduce(x)


def windows_of_other_sizes_are_none(size: int) -> None:
    """On any rank, and the group goes on."""
    first = commsir.torch.window(16)
    for _ in range(2):
        try:
            commsir.torch.window(4 + dist.get_rank())
        except commsir.DisagreementError as error:
            for part in ("rank 0: allocate 16 bytes", "rank 1: allocate 20 bytes", "can still be used"):
                assert part in str(error), error
        else:
            raise AssertionError("there is such a window")
    assert commsir.torch.window(16).tensor.shape == first.tensor.shape


def an_op_writes_where_its_input_is(size: int) -> None:
    """Of the right type, and on no other GPU, nor in memory of the host."""
    import commsir.torch.ops  # noqa: F401

    x, y = _tensors(64, 64)
    op, name = torch.ops.commsir.all_reduce, dist.group.WORLD.group_name
    other = torch.empty(64, device=f"cuda:{(x.get_device() + 1) % size}")
    for out, says in [(y.cpu(), "is on cpu"), (other, f"is on {other.device}"), (y.half(), "is Half")]:
        said = error_of(partial(op.out, x, "sum", name, out=out))
        assert says in said, said


def _in_default_place(call: Callable[[], Any], place: str = "cuda") -> None:
    """Where that is the device of what says nothing of its own."""
    with torch.device(place):
        call()


def a_barrier_is_of_its_gpu(size: int) -> None:
    """A launch, whatever the default device is; without a GPU's number it is the CPU's, after what the stream has."""

    def asked(call: Callable[[], Any]) -> Calls:
        before = _counted()
        call()
        return {name: count - before.get(name, 0) for name, count in _counted().items() if count != before.get(name, 0)}

    (x,) = _tensors(64)
    dist.all_reduce(x)
    here = cuda.current_device()
    dist.barrier(device_ids=[here])  # The first one may need memory, whose parts a kernel looks at.
    for barrier in (dist.barrier, partial(_in_default_place, dist.barrier)):
        assert "LaunchKernelEx" not in asked(barrier), barrier
    for barrier in (
        lambda: dist.barrier(device_ids=[here]),
        lambda: _in_default_place(lambda: dist.barrier(device_ids=[here])),
    ):
        assert asked(barrier)["LaunchKernelEx"] == 1
    assert asked(dist.barrier)["EventRecord"] == 1


def lists_on_the_cpu_stay_there(size: int) -> None:
    """Ranks compare sizes in memory of the CPU, whatever torch's default device is."""
    rank = dist.get_rank()
    parts, got = ([torch.zeros(n + 1) for n in sizes] for sizes in (range(size), [rank] * size))
    group, given = dist.group.WORLD, torch.full((rank + 1,), float(rank))

    # Of the group itself: in functions of torch.distributed that are given tensors there is no default device.
    def exchange() -> None:
        group.allgather([parts], [given]).wait()
        group.alltoall(got, parts).wait()

    # The GPU's memory is the host's here, and would do.
    _in_default_place(exchange, "meta")
    assert [part.tolist() for part in parts] == [[float(r)] * (r + 1) for r in range(size)]
    assert all(part.tolist() == given.tolist() for part in got)


def a_group_of_one_copies(size: int) -> None:
    """In the stream, without a kernel of ours."""
    alone = [dist.new_group([rank]) for rank in range(size)][dist.get_rank()]
    given = torch.arange(12, dtype=torch.float32).view(3, 4).cuda()
    asked: dict[str, Callable[[], torch.Tensor]] = {
        "all_gather": lambda: _received(lambda got: dist.all_gather([got], given, group=alone), given),
        "all_to_all": lambda: _received(lambda got: dist.all_to_all([got], [given], group=alone), given),
        "all_to_all_single": lambda: _received(lambda got: dist.all_to_all_single(got, given, group=alone), given),
    }
    for name, call in asked.items():
        before = _counted().get("LaunchKernelEx", 0)
        assert call().cpu().tolist() == given.cpu().tolist(), name
        assert _counted().get("LaunchKernelEx", 0) == before, name


def _received(call: Callable[[torch.Tensor], Any], like: torch.Tensor) -> torch.Tensor:
    got = torch.empty_like(like)
    call(got)
    return got


def a_barrier_after_a_busy_gpu_is_told(size: int) -> None:
    """The rank whose GPU does not come to an end says so; its group is over, and no later call is taken for it."""
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    dist.all_reduce(x, group=group)
    dist.barrier(group=group)
    group.set_timeout(timedelta(seconds=2))
    mine = dist.get_rank() == 0
    if mine:
        os.environ["COMMSIR_FAKE_BUSY"] = "1"
    try:
        said = error_of(lambda: dist.barrier(group=group))
    finally:
        os.environ.pop("COMMSIR_FAKE_BUSY", None)
    if mine:
        assert "Timed out waiting 2000ms for barrier: its GPU still runs" in said, said
        assert "can no longer be used" in error_of(lambda: dist.barrier(group=group))
    else:
        assert "rank 0 has given up" in said or "has waited" in said, said


def a_barrier_leaves_captures_alone(size: int) -> None:
    """It looks for the end of its GPU's stream on a thread of its own, while another one captures."""
    group = dist.new_group(backend="commsir")
    (x,) = _tensors(64)
    dist.all_reduce(x, group=group)
    os.environ["COMMSIR_FAKE_BUSY"] = "1"
    try:
        work = dist.barrier(group=group, async_op=True)
        with cuda.graph(cuda.CUDAGraph()):
            dist.all_reduce(x)
            time.sleep(0.05)
    finally:
        del os.environ["COMMSIR_FAKE_BUSY"]
    work.wait()


def _sends_alone(stop: Callable[[Any], None], timeout: float, limit: float) -> str:
    """What rank 0 is told, within `limit` seconds, that sends to a rank which does not receive; `stop` comes after
    0.3 s."""
    group = dist.new_group(backend="commsir", timeout=timedelta(seconds=timeout))
    (x,) = _tensors(64)
    said = ""
    if dist.get_rank() == 0:
        timer = threading.Timer(0.3, stop, (group,))
        timer.start()
        begun = time.monotonic()
        try:
            dist.send(x, 1, group=group)
        except (Exception, KeyboardInterrupt) as error:
            said = f"{type(error).__name__}: {error}"
        timer.join()
        assert time.monotonic() - begun < limit, said
    dist.barrier()
    return said


def who_sends_to_nobody_is_told(size: int) -> None:
    def never(group: Any) -> None:
        pass

    def interrupt(group: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        late = _sends_alone(never, 2, 20)
        aborted = _sends_alone(lambda group: commsir.torch.abort(group, "enough"), 60, 20)
        interrupted = _sends_alone(interrupt, 60, 20)
    finally:
        signal.signal(signal.SIGINT, handler)
    if dist.get_rank() == 0:
        assert "2000ms for the first send or receive between ranks 0 and 1" in late and "rank 1" in late, late
        assert "between ranks 0 and 1" in aborted and "enough" in aborted, aborted
        assert interrupted.startswith("KeyboardInterrupt"), interrupted


def a_send_keeps_no_other_call_waiting(size: int) -> None:
    """While it waits for its peer: what that does before it comes may need this rank."""
    group = dist.new_group(backend="commsir", timeout=timedelta(seconds=6))
    x, y = _tensors(64, 64)
    dist.all_reduce(x, group=group)
    said: list[str] = []

    def send() -> None:
        cuda.set_device(x.device)
        said.append(error_of(lambda: dist.send(y, 1, group=group)))

    thread = threading.Thread(target=send)
    if dist.get_rank() == 0:
        thread.start()
        time.sleep(0.2)
    begun = time.monotonic()
    dist.all_reduce(x, group=group)
    dist.all_reduce(x.double(), group=group)
    took = time.monotonic() - begun
    if dist.get_rank() == 0:
        commsir.torch.abort(group, "the test is over")
        thread.join()
        assert "the test is over" in said[0], said
    assert took < 5, took
    dist.barrier()


CHECKS = [
    a_barrier_is_of_its_gpu,
    lists_on_the_cpu_stay_there,
    a_group_of_one_copies,
    a_barrier_after_a_busy_gpu_is_told,
    a_barrier_leaves_captures_alone,
    who_sends_to_nobody_is_told,
    a_send_keeps_no_other_call_waiting,
    a_failure_is_told,
    who_waits_on_the_host_is_told,
    a_destroyed_group_is_no_more,
    another_gpu_is_refused,
    windows_of_other_sizes_are_none,
    an_op_writes_where_its_input_is,
    a_synchronous_call_is_a_launch,
    an_op_is_a_launch,
    a_prepared_call_goes_past_the_dispatcher,
    a_prepared_call_makes_what_it_sends,
    a_prepared_call_fills_what_it_is_given,
    a_short_storage_is_refused,
    a_warm_up_leaves_nothing_to_compile,
    autograd_is_python_for_derivatives_alone,
    nobody_gets_work_unasked,
    a_call_of_its_own_stream_is_waited_for,
    who_names_a_time_waits_for_the_gpu,
    a_stream_is_followed,
    a_call_is_captured,
    who_waits_in_a_capture_asks_for_no_event,
    ctrl_c_ends_a_wait_for_the_gpu,
    a_hook_hears_of_a_call_when_its_stream_has_come_to_its_end,
    a_call_is_recorded,
    calls_are_counted,
    a_profiler_is_shown_the_call,
    what_is_wrong_is_refused,
    an_aborted_group_is_no_more,
    a_group_that_has_shrunk_serves_gpus,
    *cost_checks.CHECKS,
]


def groups_of_a_bound_one(size: int) -> None:
    """With device_id torch makes groups from the default one where that is NCCL's; of ours all kinds are made anew."""
    assert dist.distributed_c10d._get_split_source(dist.group.WORLD) is None
    alone = [dist.new_group([rank]) for rank in range(size)][dist.get_rank()]
    again = dist.new_group(backend="commsir")
    elsewhere = dist.new_group([0, 1], backend="gloo")
    x = torch.ones(64, device="cuda")
    for group in (alone, again, None):
        dist.all_reduce(x, group=group)
    total = torch.tensor([1.0])
    dist.all_reduce(total, group=elsewhere)
    assert total.item() == 2


def a_bound_group_is_split(size: int) -> None:
    """By torch's own function, and for the dimensions of meshes."""
    part = dist.split_group(split_ranks=[[rank] for rank in range(size)])
    assert part.size() == 1 and dist.get_backend(part) == "commsir"
    dist.all_reduce(torch.ones(64, device="cuda"), group=part)
    mesh = torch.distributed.device_mesh.init_device_mesh("cuda", (size, 1), mesh_dim_names=("dp", "tp"))
    assert [mesh[name].size() for name in ("dp", "tp")] == [size, 1]
    for name in ("dp", "tp"):
        dist.all_reduce(torch.ones(64, device="cuda"), group=mesh[name].get_group())


#: Of groups that are bound to a GPU.
BOUND = [groups_of_a_bound_one, a_bound_group_is_split]


def _attempt(checks: Sequence[Callable[[int], None]], size: int) -> dict[str, str]:
    """What each came to: "" or what went wrong."""
    outcomes = {}
    for check in checks:
        try:
            check(size)
            outcomes[check.__name__] = ""
        except Exception:
            outcomes[check.__name__] = traceback.format_exc()
    return outcomes


def main(folder: str, rank: int, size: int) -> None:
    """Prints the outcomes as JSON."""
    cuda.set_device(rank)
    commsir.torch.register()
    dist.init_process_group("commsir", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    outcomes = _attempt(CHECKS, size)
    dist.destroy_process_group()
    bound = {"rank": rank, "world_size": size, "device_id": torch.device("cuda", rank)}
    dist.init_process_group("commsir", init_method=f"file://{folder}/bound", **bound)
    outcomes |= _attempt(BOUND, size)
    dist.destroy_process_group()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
