"""The backend against expected results; four ranks, or CHECK_RANKS of them."""

from __future__ import annotations

from collections.abc import Callable

import backends_checks as backends
import collectives_checks as collectives
import expected
import failures_checks as failures
import order_checks as order
import pytest
import torch
import torch.distributed as dist
from harness import World

R = dist.ReduceOp
ARITHMETIC = [R.SUM, R.AVG, R.PRODUCT, R.MIN, R.MAX]
BITWISE = [R.BAND, R.BOR, R.BXOR]


def test_all_reduce_of_floats(world: World) -> None:
    world.run(collectives.all_reduce, dtypes=expected.FLOATS, ops=ARITHMETIC)


def test_all_reduce_of_integers(world: World) -> None:
    world.run(collectives.all_reduce, dtypes=expected.INTEGERS, ops=[R.SUM, R.AVG, R.MIN, R.MAX, *BITWISE])


def test_all_reduce_of_booleans_and_complex(world: World) -> None:
    world.run(collectives.all_reduce, dtypes=[torch.bool], ops=[R.SUM, R.PRODUCT, R.MIN, R.MAX, *BITWISE])
    world.run(collectives.all_reduce, dtypes=[torch.complex64, torch.complex128], ops=[R.SUM, R.AVG])


def test_moves_of_all_types(world: World) -> None:
    world.run(
        collectives.moves, dtypes=[torch.float32, torch.bfloat16, torch.uint8, torch.bool, torch.int64, torch.complex64]
    )


@pytest.mark.parametrize(
    "check",
    [
        collectives.premultiplied,
        collectives.many_sizes,
        collectives.not_contiguous,
        collectives.uneven,
        collectives.reductions,
        collectives.unsigned_averages,
        collectives.coalesced,
        order.in_order,
        order.callbacks,
        pytest.param(order.sends, marks=pytest.mark.cpu_alone("NCCL knows no tags, and has to be told who sends")),
        pytest.param(order.sends_between_hosts, marks=pytest.mark.cpu_alone("of GPUs, NCCL has them")),
        order.objects,
        order.barrier_of_gpus,
        order.groups,
        order.functional,
        order.one_rank,
        failures.still_usable,
    ],
    ids=lambda check: str(check.__name__),
)
def test_calls(world: World, check: Callable[..., None]) -> None:
    world.run(check)


def test_calls_by_their_newer_names(world: World) -> None:
    if not all(world.run(collectives.singles)):
        pytest.skip("this torch has no such names")


@pytest.mark.cpu_alone("the names are of backends for CPU tensors")
@pytest.mark.parametrize("backend", ["cpu:commsir", "cuda:commsir,cpu:commsir", "cpu:commsir,cuda:gloo"])
def test_names(world: World, backend: str) -> None:
    world.run(order.in_order, backend=backend)


def test_bad_arguments_say_what_to_do(world: World) -> None:
    for types, size, bitwise, count in world.run(failures.bad_arguments):
        assert "type" in types
        assert "world_size" in size and "5 and 4" in size
        assert "bitwise" in bitwise.lower() and "integer" in bitwise
        assert "a tensor for each rank" in count


def seconds(world: World) -> int:
    """A group's timeout, which a mismatch on GPUs takes and a busy machine may need on the CPU."""
    return 20 if world.tensors == "cpu" else 4


@pytest.mark.cpu_alone("NCCL sends to oneself")
def test_a_send_to_oneself_is_refused(world: World) -> None:
    for rank, said in enumerate(world.run(failures.send_to_oneself)):
        assert f"rank {rank} is this one" in said and "copy the tensor" in said, said


def test_sizes_that_differ_are_named_on_every_rank(world: World) -> None:
    for rank, text in enumerate(world.run(failures.mismatched, timeout=seconds(world))):
        assert "9 x " in text and "8 x " in text and "rank 1" in text, f"rank {rank}: {text}"


def test_calls_that_differ_are_named_on_every_rank(world: World) -> None:
    for rank, text in enumerate(world.run(failures.mismatched_calls, timeout=seconds(world))):
        assert "broadcast" in text and "all_reduce" in text, f"rank {rank}: {text}"


@pytest.mark.cpu_alone("GPUs find it by their timeout, after which the group is over")
def test_types_that_differ_are_named_on_every_rank(world: World) -> None:
    odd = f"rank {expected.odd_one(world.size)}"
    for rank, said in enumerate(world.run(failures.mismatched_types)):
        for name, text in said:
            others = "f32", "f64", "i8", "i64"
            assert f" {name}" in text, f"rank {rank}: {text}"
            assert any(f" {other}" in text for other in others if other != name), f"rank {rank}: {text}"
            assert odd in text and "can still be used" in text, f"rank {rank}: {text}"


def test_types_of_a_broadcast_that_differ_are_named_on_every_rank(world: World) -> None:
    for rank, text in enumerate(world.run(failures.mismatched_broadcast, timeout=seconds(world))):
        assert f"rank {expected.odd_one(world.size)}" in text, f"rank {rank}: {text}"
        assert world.tensors != "cpu" or ("4 f32" in text and "4 i32" in text), f"rank {rank}: {text}"


@pytest.mark.cpu_alone("a mismatch on GPUs ends the group, or is found before anything is queued")
def test_calls_behind_a_mismatch_are_carried_out(world: World) -> None:
    for rank, text in enumerate(world.run(failures.queued_behind_a_mismatch)):
        assert "9 x " in text and "8 x " in text and "rank 1" in text, f"rank {rank}: {text}"


@pytest.mark.cpu_alone("waits of GPUs are told by the call after")
def test_a_late_rank_ends_the_group(world: World) -> None:
    late = expected.odd_one(world.size)
    for rank, said in enumerate(world.run(failures.late_peer, backend="")):
        if rank == late:
            continue
        first, *later = said
        assert "Timed out waiting" in first and f"rank {late} has ended step" in first, first
        assert "is alive" in first and "timeout=" in first and "differs" not in first, first
        for text in later:
            assert "can no longer be used: call number 2, all_reduce(sum) of 2 x " in text, text
            assert f"rank {late} has ended step" in text and "init_process_group" in text, text


def test_a_peer_that_does_not_come_is_a_timeout(world: World) -> None:
    assert "Timed out waiting 1000ms" in world.run(failures.absent_peer, backend="")[0]


def test_use_after_destroy(world: World) -> None:
    for text in world.run(failures.destroyed, backend=""):
        assert "it was destroyed" in text and "init_process_group" in text


@pytest.mark.cpu_alone("a fork has no CUDA, as torch says before us")
def test_use_after_fork(world: World) -> None:
    for text in world.run(failures.forked):
        assert "forked" in text and "spawn" in text


@pytest.mark.cpu_alone("a fork has no CUDA, as torch says before us")
def test_a_forked_process_makes_groups(world: World) -> None:
    total = float(world.size * (world.size - 1) // 2)
    assert set(world.run(failures.forked_anew, backend="")) == {str([total, total])}


@pytest.mark.cpu_alone("calls on GPUs are not queued")
def test_calls_that_begin_as_a_group_ends_are_over(world: World) -> None:
    assert sum(world.run(failures.ended_beside_calls, backend="")) > 0


def test_abort_ends_waits(world: World) -> None:
    results = world.run(failures.aborted, backend="")
    # A wait for a GPU is one of its stream, which says nothing.
    assert results[0].count("the test says so") >= (2 if world.tensors == "cpu" else 1), results
    for text in results[1:]:
        assert text if world.tensors == "cuda" else "rank 0 has given up" in text and "the test says so" in text


def test_monitored_barrier_names_who_is_missing(world: World) -> None:
    missing = expected.odd_one(world.size)
    for rank, text in enumerate(world.run(failures.monitored)):
        assert rank == missing or f"Rank {missing} failed to pass monitoredBarrier" in text, f"rank {rank}: {text}"


def test_calls_are_recorded(world: World) -> None:
    for recent, number, stats in world.run(failures.recorded):
        assert [what for _, what, _ in recent] == ["all_reduce(sum) of 3 x Float", "broadcast root 1 of 4 x Float"] or [
            what for _, what, _ in recent
        ] == ["all_reduce(sum) of 3 x float32", "broadcast root 1 of 4 x float32"]
        assert [state for _, _, state in recent] == ["done", "done"]
        assert number == 2
        assert max(group["launches"] for group in stats["groups"].values()) >= 2


def test_an_all_reduce_of_ones_own(world: World) -> None:
    world.run(backends.fp8, backend="")


def test_coalesced_calls_of_ones_own(world: World) -> None:
    world.run(backends.overridden, backend="")


@pytest.mark.cpu_alone("it is a backend for CPU tensors")
def test_the_reference_backend(world: World) -> None:
    world.run(backends.reference, backend="")


def test_windows_of_a_group_over_another(world: World) -> None:
    world.run(backends.windows, backend="gloo" if world.tensors == "cpu" else "nccl")


@pytest.mark.cpu_alone("the stand-in is of CPU tensors")
def test_torchcomms_backend_behind_a_stand_in(world: World) -> None:
    world.run(backends.torchcomms, backend="")
