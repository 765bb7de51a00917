"""Groups that survive trouble; four ranks, or CHECK_RANKS of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import lasting_checks as checks
import pytest
from expected import odd_one
from harness import World


def test_a_store_that_others_have_used(world: World) -> None:
    said, lone = world.run(checks.used_store, backend=""), odd_one(world.size)
    others = ", ".join(str(rank) for rank in range(1, world.size))
    missing = f"rank{'s' * (world.size > 2)} {others} of {world.size} {'have' if world.size > 2 else 'has'} not arrived"
    for (late, over), who in ((said[0], missing), (said[lone], "rank 0 has not arrived within 1 s")):
        assert "Timed out waiting 1000ms" in late, late
        assert who in late, late
        assert "can no longer be used" in over and "init_process_group" in over, over


@pytest.mark.cpu_alone("the rank without a backend has Gloo")
def test_a_rank_without_a_backend_is_named(world: World) -> None:
    odd = odd_one(world.size)
    results = world.run(checks.one_without_backend, backend="")
    assert "there is no compiler. All calls go to Gloo or NCCL" in results[odd]
    for rank, said in enumerate(results):
        assert rank == odd or f"rank {odd} takes Gloo and NCCL for all calls: the test leaves it out" in said, said


def test_without_a_backend_all_calls_go_to_others(world: World) -> None:
    world.run(checks.all_without_backend, backend="")


@pytest.mark.cpu_alone("a call on a GPU returns once it is launched: what ends by its time is told by the next one")
def test_a_timeout_that_is_set_later(world: World) -> None:
    zero, waits, waited = world.run(checks.other_timeout, backend="")[0]
    assert "more than 0" in zero
    assert "1.0 s" in waits or "1000ms" in waits, waits
    assert "1.0 s" in waited or "1000ms" in waited, waited


def test_survivors_shrink_and_all_begin_anew(world: World) -> None:
    odd = odd_one(world.size)
    for rank, (said, description) in enumerate(world.run(checks.shrunk, backend="")):
        if rank != odd:
            assert f"rank {odd} has given up" in said and "has had enough" in said, f"rank {rank}: {said}"
            assert description == "default:shrunken"


@pytest.mark.cpu_alone("a call on a GPU does not wait; test_gpu.py has the waits on the host for one")
def test_ctrl_c_ends_waits(world: World) -> None:
    seconds, later = world.run(checks.interrupted, backend="")[0]
    # A second is what is wanted; the machine may be busy.
    assert len(seconds) == 7 and max(seconds.values()) < 10, seconds
    for said in later:
        assert "can no longer be used" in said and "interrupted" in said, said


PROGRAM = """
import commsir.torch, torch, torch.distributed as dist, sys
commsir.torch.register()
dist.init_process_group("commsir", store=dist.FileStore(sys.argv[1], 2), rank=0, world_size=2)
print("waiting", flush=True)
dist.all_reduce(torch.ones(2))
"""


@pytest.mark.cpu_alone("the program has CPU tensors")
def test_ctrl_c_ends_a_program(tmp_path: Path) -> None:
    environment = {**os.environ, "COMMSIR_TORCH_BACKEND": "cpp"}
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "store")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout
    assert program.stdout.readline() == "waiting\n"
    time.sleep(0.5)
    program.send_signal(signal.SIGINT)
    _, told = program.communicate(timeout=60)
    assert program.returncode == -signal.SIGINT, told
    assert "KeyboardInterrupt" in told


def analyze(folder: Path) -> str:
    command = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder), "--prefix", "rank_"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_torchs_analyzer_reads_the_calls(world: World, tmp_path: Path) -> None:
    results = world.run(checks.recorded_mismatch, backend="", folder=str(tmp_path))
    for rank, (said, path) in enumerate(results):
        assert "rank 1" in said and path == str(tmp_path / "ill" / f"rank_{rank}")
    well = analyze(tmp_path / "well")
    assert "MISMATCH" not in well and "missing" not in well, well
    ill = analyze(tmp_path / "ill")
    assert "SIZE_OR_SYNTAX_MISMATCH" in ill and "Culprit rank 1" in ill, ill


def test_queries_of_torch(world: World) -> None:
    for rank, (said, errors) in enumerate(world.run(checks.asked_by_torch, backend="")):
        assert "time estimator is not supported" in said["estimate"]
        assert "commsir.torch.window" in said["allocator"]
        # torch 2.15 splits groups without a GPU, too.
        if said["split"]:
            assert "No device associated" in said["split"] or "does not support splitting" in said["split"], said
        assert ("sizes" in said["parameters"]) == (rank == 1), said["parameters"]
        assert all("SUCCESS" in error for error in errors)


@pytest.mark.cpu_alone("a call on a GPU does not wait")
def test_ranks_that_left_are_not_awaited(world: World) -> None:
    world.run(checks.one_has_left, backend="")


def test_a_pair_does_not_wait_for_the_rest(world: World) -> None:
    world.run(checks.a_pair_alone, backend="")


def test_torchs_wrapper_for_debugging(world: World) -> None:
    for said in world.run(checks.wrapped, backend=""):
        assert "mismatch" in said or "differs between ranks" in said, said


def test_hooks_on_completion(world: World) -> None:
    for heard in world.run(checks.hooked, backend=""):
        assert [number for _, number in heard] == [1, 2]
        assert "ALLREDUCE" in heard[0][0] and "BROADCAST" in heard[1][0]


def test_parts_and_unions(world: World) -> None:
    world.run(checks.split_and_merged, backend="")
