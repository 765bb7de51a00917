"""Kernels like those of researchers: checked, correct in all schedules, and translated for GPUs."""

# Kernels are written as without a type checker, which cannot take `Signal[4]` and the like.
# mypy: disable-error-code="type-arg, valid-type, no-untyped-def, no-untyped-call, comparison-overlap, call-overload"
from __future__ import annotations

import commsir
import numpy as np
import pytest
from commsir import *  # noqa: F403 (as kernels are written)

n, W, rows, cap = dims("n W rows cap")  # noqa: F405
Arrays = list[np.ndarray]
rng = np.random.default_rng(0)


def numbers(ranks: int, *shape: int) -> Arrays:
    return [rng.integers(-8, 9, size=shape).astype(np.float32) for _ in range(ranks)]


# ruff: noqa: F405


@commsir.kernel
def tree(
    x: f32[Array, n], inbox: f32[Window, 2, n], done: f32[Window, n], up: Signal[2], down: Signal[1], y: f32[Array, n]
) -> None:
    """An all-reduce over a binary tree: up to rank 0, and down again."""
    me, w = rank(), size()
    left, right = 2 * me + 1, 2 * me + 2
    total = x[:]
    for child, which in ((left, 0), (right, 1)):
        if child < w:
            arrived = wait_signal(up[which], ge=epoch())
            total += inbox.load(which * n, n, after=arrived)
    done[:] = total
    if me > 0:
        which = (me - 1) % 2
        put_signal(done, inbox[which], (me - 1) // 2, up[which])
        wait_signal(down[0], ge=epoch())
    for child in (left, right):
        if child < w:
            put_signal(done, done, child, down[0])
    y[:] = done[:]
    barrier()


@commsir.kernel
def doubling(x: f32[Array, n], total: f32[Window, n], inbox: f32[Window, 4, n], s: Signal[4], y: f32[Array, n]) -> None:
    """Recursive doubling: the partner of each step is this rank's number with one bit turned."""
    total[:] = x[:]
    distance, step = 1, 0
    while distance < size():
        partner = rank() ^ distance
        put_signal(total, inbox[step], partner, s[step])
        arrived = wait_signal_from(s[step], partner, ge=epoch())
        total[:] += inbox.load(step * n, n, after=arrived)
        distance <<= 1
        step += 1
    y[:] = total[:]
    barrier()


@commsir.kernel
def two_teams(x: f32[Array, n], a: f32[Window, n], b: f32[Window, n], y: f32[Array, n]) -> None:
    """A sum within each half, then across the halves."""
    world = team()
    inner, outer = world.inner(world.size // 2), world.outer(world.size // 2)

    def gathered(window, team):
        total = zeros(n)
        for p in range(team.size):
            total += window.peer(p, team)[:]
        return total

    a[:] = x[:]
    barrier(inner)
    b[:] = gathered(a, inner)
    barrier(outer)
    y[:] = gathered(b, outer)
    barrier()


@commsir.kernel
def bruck(x: f32[Array, n], buf: f32[Window, W, n], s: Signal[4], y: f32[Array, W, n]) -> None:
    """An all-gather in log2(W) steps, of which each doubles what a rank has."""
    me, w = rank(), size()
    buf[0] = x[:]
    have, step = 1, 0
    while have < w:
        count = min(have, w - have)
        put_signal(buf[0:count], buf[have : have + count], (me - have) % w, s[step])
        wait_signal(s[step], ge=epoch())
        have, step = have * 2, step + 1
    for i in range(w):
        y[(me + i) % w] = buf[i]
    barrier()


@commsir.kernel
def dispatch(
    x: f32[Array, rows, n], expert: i32[Array, rows], box: f32[Window, W, cap, n], counts: i64[Window, W, 1],
    s: Signal[1], y: f32[Array, W, cap, n], got: i64[Array, W],
) -> None:  # fmt: skip
    """Rows go to the rank that the data names, and no more than `cap` to each."""
    me = rank()
    for target in range(size()):
        sent = 0
        for t in range(rows):
            if expert[t] == target:  # noqa: SIM102 (conditions in conditions are tested)
                if sent < cap:
                    if target == me:
                        box[me, sent] = x[t]
                    else:
                        put(x[t], box[me, sent], target)
                    sent += 1
        if target == me:
            counts[me, 0] = sent
        else:
            counts.peer(target)[me, 0] = sent
            signal(s[0], target)
    wait_signal(s[0], ge=epoch() * (size() - 1))
    for source in range(size()):
        got[source] = counts[source, 0]
        for i in range(cap):
            if i >= counts[source, 0]:
                break
            y[source, i] = box[source, i]
    barrier()


@commsir.kernel
def find(x: i32[Array, rows, n], wanted: i32, place: i64[Array, 3]) -> None:
    """Where a number stands first: loops that end early, and what the next of them does."""
    place[0], place[1] = -1, -1
    steps = 0
    for i in range(rows):
        for j in range(n):
            steps += 1
            if x[i, j] < 0:
                continue
            if x[i, j] == wanted:
                place[0] = i
                place[1] = j
                break
        else:
            continue
        break
    place[2] = steps


def totals(x: Arrays) -> dict[str, Arrays]:
    return {"y": [np.sum(x, axis=0)] * len(x)}


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
@pytest.mark.parametrize("kernel", [tree, bruck])
def test_any_number_of_ranks(kernel: commsir.Kernel, ranks: int) -> None:
    x = numbers(ranks, 16)
    wanted = totals(x)["y"] if kernel is tree else [np.stack(x)] * ranks
    made = kernel.specialize(**{"n": 16, "W": ranks} if kernel is bruck else {"n": 16})
    made.check(ranks=ranks)
    report = made.simulate(ranks, {"x": x}, launches=3, fuzz=5)
    np.testing.assert_array_equal(report["y"], wanted)


@pytest.mark.parametrize("kernel", [doubling, two_teams])
def test_sum_of_eight(kernel: commsir.Kernel) -> None:
    x = numbers(8, 16)
    kernel.specialize(n=16).check(ranks=8)
    np.testing.assert_array_equal(kernel.simulate(8, {"x": x}, launches=2, fuzz=5)["y"], totals(x)["y"])


def test_dispatch_by_data() -> None:
    x = numbers(3, 6, 4)
    expert = [rng.integers(0, 3, size=6).astype(np.int32) for _ in range(3)]
    made = dispatch.specialize(W=3, cap=6)
    report = made.simulate(3, {"x": x, "expert": expert}, fuzz=5)
    for target in range(3):
        for source in range(3):
            rows_ = x[source][expert[source] == target]
            assert report["got"][target][source] == len(rows_)
            np.testing.assert_array_equal(report["y"][target][source][: len(rows_)], rows_)


@pytest.mark.parametrize("wanted", [-5, 3, 11])
def test_loops_that_end_early(wanted: int) -> None:
    x = np.array([[-1, 2, -3, 3], [3, -5, 11, 0]], np.int32)
    hits = [(i, j) for i in range(2) for j in range(4) if x[i, j] == wanted and wanted >= 0]
    place = [*hits[0], 4 * hits[0][0] + hits[0][1] + 1] if hits else [-1, -1, 8]
    assert find.simulate(1, {"x": x, "wanted": wanted})["place"][0].tolist() == place


@pytest.mark.parametrize("kernel", [tree, doubling, two_teams, bruck, dispatch, find], ids=lambda k: str(k.__name__))
def test_code_for_gpus(kernel: commsir.Kernel) -> None:
    """A block is many threads there, of which one stores an element; and no number of blocks has to be named."""
    made = kernel.specialize(ranks=8, **dict.fromkeys(kernel.symbols, 8))
    assert f".visible .entry {kernel.__name__}" in made.ptx


@commsir.kernel
def counts_blocks(y: i64[Array, 64]) -> None:
    y[block_id()] = num_blocks()


@commsir.kernel
def in_roles(y: i64[Array, 1]) -> None:
    with role("first", 0, 1):
        y[0] = 1


@commsir.kernel
def shares_out(x: f32[Window, n]) -> None:
    all_reduce(x)


@pytest.mark.parametrize("kernel", [counts_blocks, in_roles, shares_out], ids=lambda k: str(k.__name__))
def test_kernels_that_tell_blocks_apart_leave_their_number_open(kernel: commsir.Kernel) -> None:
    made = kernel.specialize(n=8) if "n" in kernel.symbols else kernel
    assert made.check(ranks=2).blocks == 0
    assert made.explain(ranks=2, target="cuda")["blocks"] == 16
    assert made.check(ranks=2, blocks=3).blocks == 3


def test_kernels_of_one_block() -> None:
    made = tree.specialize(n=8)
    assert made.check(ranks=2).blocks == 0
    assert made.explain(ranks=2, target="cuda")["blocks"] == 1
    with pytest.raises(commsir.CheckError, match="block 1"):
        made.check(ranks=2, blocks=2)


@commsir.kernel
def scatters(at: i64[Array, 2], y: f32[Array, 4, 8]) -> None:
    y[at[0], at[1]] = 1.0


@pytest.mark.parametrize("at", [(3, 8), (0, -1), (4, 0)])
def test_stores_out_of_bounds(at: tuple[int, int]) -> None:
    """Each subscript counts, though elements of the next row lie behind a row."""
    assert scatters.simulate(1, {"at": [3, 7]})["y"][0][3, 7] == 1
    with pytest.raises(commsir.BoundsError, match="y"):
        scatters.simulate(1, {"at": list(at)})


@commsir.kernel
def gathers_some(x: f32[Array, n], count: i64[Array, 1], w: f32[Window, 4, n], sizes: i64[Window, 4]) -> None:
    me = rank()
    for p in range(size()):
        put(x[0:n], w[me], p, count=count[0])
        put(count, sizes[me : me + 1], p)
    barrier()


def test_counts_from_data_stay_within_the_part() -> None:
    """The checker knows by it that rows of several ranks do not meet, and a longer one does not reach the next."""
    x = [np.full(8, r + 1, np.float32) for r in range(4)]
    report = gathers_some.simulate(4, {"x": x, "count": [[0], [8], [3], [5]]}, fuzz=5, launches=2)
    assert [np.count_nonzero(row) for row in report["w"][2]] == [0, 8, 3, 5]
    with pytest.raises(commsir.BoundsError, match="the count of a part of memory") as caught:
        gathers_some.simulate(4, {"x": x, "count": [[0], [8], [9], [5]]})
    assert caught.value.line


@commsir.kernel
def backwards(order: i64[Array, 8], y: i64[Array, n]) -> None:
    at = 0
    for p in reversed(for_peers()):
        order[at] = p
        at += 1
    for i in reversed(range(1, n)):
        y[i] = at
        at += 1
    for i, j in zip(range(2), reversed(range(2))):  # noqa: B905
        y[i] += 10 * j


def test_loops_backwards() -> None:
    report = backwards.simulate(3, {"y": np.zeros(4, int)})
    assert report["order"][0][:2].tolist() == [2, 1]
    assert report["y"][0].tolist() == [10, 4, 3, 2]


@commsir.kernel
def sees_the_kernel(
    x: f32[Window, rows, n], s: f32, k: i32, b: f32[Array, n], y: f32[Array, rows, n], z: f32[Array, rows, n]
) -> None:
    me = rank()
    row = b[:] * 2.0
    pair = (s, k)

    def both(total):
        def scaled(t):
            return t * pair[0]

        return scaled(total) + cast(pair[1], f32) + row + cast(me, f32), total / size() + s

    all_reduce(x, outs=(y, z), consume=both)


@pytest.mark.parametrize("algorithm", ["one_shot", "two_shot"])
@pytest.mark.parametrize("count", [1, 6, 8])
def test_consume_sees_numbers_and_tiles_of_the_kernel(count: int, algorithm: str) -> None:
    """Also where there are as many rows as a tile has elements."""
    x = [np.full((count, 8), r + 1, np.float32) for r in range(3)]
    inputs = {"x": x, "s": 2.5, "k": 3, "b": np.arange(8, dtype=np.float32)}
    report = sees_the_kernel.simulate(3, inputs, blocks=2, algorithm=algorithm, launches=2, fuzz=3)
    for rank in range(3):
        np.testing.assert_array_equal(report["y"][rank], np.tile(6 * 2.5 + 3 + 2 * np.arange(8) + rank, (count, 1)))
        np.testing.assert_allclose(report["z"][rank], np.full((count, 8), 4.5), rtol=1e-6)


@commsir.kernel
def produces_scaled(x: f32[Window, rows, n], s: f32, y: f32[Array, rows, n]) -> None:
    all_reduce(x, outs=y, produce=lambda row: row * s)


@commsir.kernel
def consumes_by_flag(x: f32[Window, rows, n], s: f32, y: f32[Array, rows, n]) -> None:
    up = s > 1
    all_reduce(x, outs=y, consume=lambda total: where(up, total, -total))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (produces_scaled, "produce uses a scalar f32 of the kernel around it.*in consume"),
        (consumes_by_flag, "'up' is a bool of the kernel around.*i32"),
    ],
)
def test_what_regions_do_not_see(kernel: commsir.Kernel, words: str) -> None:
    with pytest.raises(commsir.CompileError, match=f"(?s){words}"):
        kernel.simulate(2, {"x": np.ones((2, 8), np.float32), "s": 2.0})
