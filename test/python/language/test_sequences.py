"""Launches of several kernels that share memory, checked together: faulty orders and their repaired twins."""

from __future__ import annotations

from typing import Any

import commsir
import pytest
from commsir import (
    Array,
    Signal,
    Window,
    all_reduce,
    barrier,
    block_id,
    epoch,
    f32,
    flush,
    i64,
    local,
    put,
    put_signal,
    rank,
    signal,
    size,
    wait_signal,
    zeros,
)


@commsir.kernel
def send(x: f32[Array, 64], box: f32[Window, 64], ready: i64[Signal, 1]) -> None:
    put_signal(x, box, (rank() + 1) % size(), ready[0])


@commsir.kernel
def send_only(x: f32[Array, 64], box: f32[Window, 64]) -> None:
    put(x, box, (rank() + 1) % size())
    flush()


@commsir.kernel
def take(box: f32[Window, 64], y: f32[Array, 64]) -> None:
    y[:] = box[:]
    barrier()


@commsir.kernel
def wait_and_take(box: f32[Window, 64], y: f32[Array, 64], ready: i64[Signal, 1]) -> None:
    token = wait_signal(ready[0], ge=epoch())
    y[:] = box.load(0, 64, after=token)
    barrier()


@commsir.kernel
def gather_rows(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    total = zeros(64)
    for p in range(size()):
        total += x.peer(p)[:]
    y[:] = total


@commsir.kernel
def gather_rows_and_leave(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    total = zeros(64)
    for p in range(size()):
        total += x.peer(p)[:]
    y[:] = total
    barrier()


@commsir.kernel
def knock(door: i64[Signal, 1]) -> None:
    signal(door[0], (rank() + 1) % size())
    wait_signal(door[0], ge=epoch())


@commsir.kernel
def knock_twice(door: i64[Signal, 1]) -> None:
    signal(door[0], (rank() + 1) % size())
    signal(door[0], (rank() + 1) % size())
    wait_signal(door[0], ge=2 * epoch() - 1)


@commsir.kernel
def pass_on(x: f32[Array, 64], box: f32[Window, 64], door: i64[Signal, 1], y: f32[Array, 64]) -> None:
    put_signal(x, box, (rank() + 1) % size(), door[0])
    token = wait_signal(door[0], ge=epoch())
    y[:] = box.load(0, 64, after=token)
    barrier()


@commsir.kernel
def by_turns(x: f32[Array, 64], boxes: f32[Window, 128], ready: i64[Signal, 1], y: f32[Array, 64]) -> None:
    """Two buffers in turn: the launch before the last is over where this one has been heard of."""
    half = epoch() % 2 * 64
    following = (rank() + 1) % size()
    boxes.peer(following).store(x[:], half)
    for p in range(size()):
        signal(ready[0], p)
    token = wait_signal(ready[0], ge=epoch() * size())
    y[:] = boxes.load(half, 64, after=token)


@commsir.kernel
def other_turns(x: f32[Array, 64], boxes: f32[Window, 128], ready: i64[Signal, 1], y: f32[Array, 64]) -> None:
    half = epoch() % 2 * 64
    following = (rank() + 1) % size()
    boxes.peer(following).store(x[:], half)
    for p in range(size()):
        signal(ready[0], p)
    token = wait_signal(ready[0], ge=epoch() * size())
    y[:] = boxes.load(half, 64, after=token)


@commsir.kernel
def reduce_all(x: f32[Array, 64], out: f32[Window, 64]) -> None:
    all_reduce(x, outs=local(out), op="sum")


@commsir.kernel
def look(out: f32[Window, 64], y: f32[Array, 64]) -> None:
    y[:] = out.peer((rank() + 1) % size())[:]


@commsir.kernel
def look_between_barriers(out: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    y[:] = out.peer((rank() + 1) % size())[:]
    barrier()


@commsir.kernel(blocks=2)
def two_blocks(parts: f32[Window, 64], y: f32[Array, 64]) -> None:
    at = block_id() * 32
    barrier()
    y.store(parts.peer((rank() + 1) % size()).load(at, 32), at)
    barrier()


@commsir.kernel(blocks=1)
def one_block(parts: f32[Window, 64]) -> None:
    parts.store(zeros(64), 0)


@commsir.kernel(blocks=2)
def leave_early(parts: f32[Window, 64], y: f32[Array, 64]) -> None:
    at = block_id() * 32
    barrier()
    y.store(parts.peer((rank() + 1) % size()).load(at, 32), at)


@commsir.kernel
def put_late(x: f32[Array, 64], y: f32[Window, 64]) -> None:
    barrier()
    put(x, y, (rank() + 1) % size())
    flush()


@commsir.kernel
def put_and_meet(x: f32[Array, 64], y: f32[Window, 64]) -> None:
    barrier()
    put(x, y, (rank() + 1) % size())
    barrier()


Order = list[Any]
OWN_BOXES = (other_turns, {"boxes": "more", "ready": "more_ready"})

#: Faulty, repaired, and words of the error.
PAIRS: dict[str, tuple[Order, Order, str]] = {
    "read before the put has arrived": (
        [send_only, take],
        [send, wait_and_take],
        "reads [0, 64) of 'box' at rank 0 on rank 0 block 0 in launch 2, with no order between it and the write",
    ),
    "wait in the launch before the signal": ([wait_and_take, send], [send, wait_and_take], "deadlock: rank 0, block 0"),
    "host writes what a peer still reads": (
        [gather_rows, commsir.host_write("x")],
        [gather_rows_and_leave, commsir.host_write("x")],
        "the host writes [0, 64) of 'x'",
    ),
    "host reads what a peer still puts": (
        [put_late, commsir.host_read("y")],
        [put_and_meet, commsir.host_read("y")],
        "the host reads [0, 64) of 'y'",
    ),
    "host reads the box before the wait": (
        [send, commsir.host_read("box"), wait_and_take],
        [send, wait_and_take, commsir.host_read("y")],
        "the host reads [0, 64) of 'box'",
    ),
    "one signal, two numbers of launches": (
        [knock, pass_on],
        [(knock, {"door": "other"}), pass_on],
        "reads [0, 64) of 'box'",
    ),
    "left over signal meets the wait of another": (
        [knock_twice, pass_on],
        [(knock_twice, {"door": "other"}), pass_on],
        "reads [0, 64) of 'box'",
    ),
    "buffers by two numbers of launches": (
        [by_turns, other_turns, other_turns],
        [by_turns, OWN_BOXES, OWN_BOXES],
        "",
    ),
    "result of a collective read by a peer": (
        [reduce_all, look],
        [reduce_all, look_between_barriers],
        "reads [0, 64) of 'out'",
    ),
    "fewer blocks of one kernel": ([one_block, leave_early], [one_block, two_blocks], "'parts'"),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_pair(name: str, ranks: int) -> None:
    bad, good, words = PAIRS[name]
    with pytest.raises(commsir.CheckError) as error:
        commsir.check(bad, ranks=ranks)
    assert words in str(error.value)
    assert "the launches of a rank are 1: " in str(error.value)
    found = commsir.check(good, ranks=ranks)
    assert found.proven, found
    assert found.proof.order.endswith(", again and again")


def test_any_order() -> None:
    """Which is refused for one order of launches may be right in another."""
    turns = [by_turns, OWN_BOXES]
    found = commsir.check(turns, ranks=2, any_order=True)
    assert found.proven, found
    assert found.proof.order.startswith("every order of ")
    with pytest.raises(commsir.CheckError, match="reads .0, 64. of .box."):
        commsir.check([send, wait_and_take], ranks=2, any_order=True)


def test_too_many_orders() -> None:
    """Orders that were not followed are no proof."""
    turns = [by_turns, OWN_BOXES, *map(commsir.host_read, ["x", "y"]), commsir.host_write("x")]
    found = commsir.check(turns, ranks=2, any_order=True)
    assert found.verdict == "not decided"
    assert "show all reuse" in found.proof.reasons[-1]


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ([], "a list of kernels"),
        ([commsir.host_read("x")], "no kernel"),
        ([send, 3], "has 3"),
        ([send, commsir.host_read("q")], "'q', which is not a window or array"),
        ([(send, {"boxx": "y"})], "did you mean 'box'"),
        ([send, gather_rows], "memory of one name is shared"),
        ([one_block, two_blocks, (one_block, {"parts": "a, b"})], "not ARGUMENT=MEMORY"),
    ],
)
def test_misuse(turns: Order, words: str) -> None:
    with pytest.raises(commsir.CommsError, match=words.replace("[", r"\[")):
        commsir.check(turns, ranks=2)


def test_proof_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMSIR_REQUIRE_PROOF", "1")
    assert commsir.check([send, wait_and_take], ranks=2).proven
    turns = [by_turns, OWN_BOXES, *map(commsir.host_read, ["x", "y"]), commsir.host_write("x")]
    with pytest.raises(commsir.CheckError, match="not proven"):
        commsir.check(turns, ranks=2, any_order=True)
