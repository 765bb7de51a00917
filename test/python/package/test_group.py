"""Groups of processes on the CPU: each test starts its ranks as separate processes."""

import copy
import gc
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import commsir
import numpy as np
import pytest
from conftest import SUM, fake_gpus

RANKS = 4
Body = Callable[[int, str], None]


def _child(body: Body, rank: int, folder: str, results: Any) -> None:
    try:
        body(rank, folder)
        results.put((rank, ""))
    except BaseException:
        results.put((rank, traceback.format_exc()))


def together(body: Body, folder: pathlib.Path, ranks: int = RANKS) -> None:
    """Runs body(rank, folder) in `ranks` processes; fails with what they raised."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    children = [context.Process(target=_child, args=(body, rank, str(folder), results)) for rank in range(ranks)]
    for child in children:
        child.start()
    try:
        told = [results.get(timeout=100) for _ in children]
    finally:
        for child in children:
            child.join(timeout=20)
            if child.is_alive():
                child.kill()
    wrong = [f"rank {rank}: {error}" for rank, error in sorted(told) if error]
    assert not wrong, "\n".join(wrong)


def _collectives(rank: int, folder: str) -> None:
    with commsir.Group(rank, RANKS, folder=folder, timeout=60) as group:
        x, y = group.allocate((64,), "f32"), group.allocate(64, np.float32)
        x[:] = rank + 1
        assert group.is_symmetric(x) and not group.is_symmetric(np.zeros(4))
        group.all_reduce(x, y)
        assert (y == 10).all()
        plain = np.full(33, rank, np.int32)  # Not in a window: staged.
        group.all_reduce(plain, op="max")
        assert (plain == RANKS - 1).all()
        gathered = group.all_gather(np.full(5, rank, np.float64), np.zeros(5 * RANKS))
        np.testing.assert_array_equal(gathered[::5], np.arange(RANKS))
        part = group.reduce_scatter(np.arange(4 * RANKS, dtype=np.float32), np.zeros(4, np.float32))
        np.testing.assert_array_equal(part, RANKS * np.arange(4 * rank, 4 * rank + 4))
        swapped = group.all_to_all(np.arange(RANKS) + 10 * rank, np.zeros(RANKS, np.int64))
        np.testing.assert_array_equal(swapped, 10 * np.arange(RANKS) + rank)
        sent = group.broadcast(np.full(7, rank, np.float32), root=2)
        assert (sent == 2).all()
        for kind in ("bf16", "f8E4M3FN", "f8E5M2"):
            narrow = group.allocate(16, kind)
            narrow[:] = rank
            group.all_reduce(narrow)
            assert (narrow.astype(np.float32) == 6).all()
        stats = group.stats()
        assert stats["launches"] >= 6 and stats["in_place"] > 0 and stats["staged"] > 0
        group.release(x)


def test_collectives(tmp_path: pathlib.Path) -> None:
    together(_collectives, tmp_path)


def _types(rank: int, folder: str) -> None:
    """Types have the names of all libraries; integers without a sign, and booleans, are what they are."""
    torch = pytest.importorskip("torch")
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        for dtype in ("f32", "float32", np.float32, np.dtype("float32"), torch.float32, commsir.f32):
            assert group.allocate(np.int64(3), dtype).dtype == np.float32, dtype
        assert group.allocate(3, "bfloat16").dtype == group.allocate(3, "bf16").dtype == "bfloat16"
        assert group.allocate(3, commsir.f8).dtype == "float8_e4m3fn" and group.allocate(3, "i8").dtype == np.int8
        high = group.allocate((2, 2), np.uint8)
        high[:] = 100 + rank
        assert high.dtype == np.uint8 and (group.all_reduce(high) == 201).all()
        window = group.window(4, np.uint16)
        window.put_signal(np.full(4, 60000, np.uint16), 1 - rank)
        window.wait()
        assert window.array.dtype == window.get(1 - rank).dtype == window.peer(1 - rank).dtype == np.uint16
        assert (window.get(1 - rank) == 60000).all() and (window.peer(1 - rank) == 60000).all()
        for array in (np.array([rank == 1, False, True]), torch.tensor([rank == 1, False, True])):
            for op, want in (("max", [1, 0, 1]), ("or", [1, 0, 1]), ("min", [0, 0, 1]), ("and", [0, 0, 1])):
                assert [int(one) for one in group.all_reduce(array, array * 1 > 0, op=op)] == want, op
            assert group.all_gather(array).tolist()[::3] == [False, True]
        for call, text in (
            (lambda: group.all_reduce(np.ones(2, np.uint8), op="max"), "max requires signed integers, but the array"),
            (lambda: group.all_reduce(np.ones(2, bool)), r'no sum of booleans: say op="max" \(any'),
            (lambda: group.all_reduce(np.ones(2), op="SUM"), "it is one of sum, prod, min, max"),
            (lambda: group.all_reduce(np.ones(2), op=sum), "must be a text"),  # type: ignore[arg-type]
            (lambda: group.collective("allreduce", np.ones(2), None), "it is one of all_reduce, reduce_scatter"),
            (lambda: group.allocate(3, "f8"), "no element type 'f8': it is one of f64"),
            (lambda: group.allocate(3.5), "the shape is 3.5, but must be"),  # type: ignore[arg-type]
            (lambda: group.kernel("sum.mlir"), r"for a file pass pathlib.Path\('sum.mlir'\)"),
            (lambda: window.get(0, at=slice(2)), "must be an index or a tuple"),  # type: ignore[arg-type]
        ):
            with pytest.raises(commsir.UsageError, match=text):
                call()


def test_types(tmp_path: pathlib.Path) -> None:
    together(_types, tmp_path, 2)


def _truths(rank: int, folder: str) -> None:
    """Booleans that are views of other bytes: all but 0 are true."""
    torch = pytest.importorskip("torch")
    given = np.array([[2, 128, 0, 1, 0, 255], [1, 0, 0, 128, 2, 3]][rank], np.uint8)
    want = {"max": [1, 1, 0, 1, 1, 1], "min": [1, 0, 0, 1, 0, 1], "xor": [0, 1, 0, 0, 1, 0]}
    want |= {"or": want["max"], "and": want["min"]}
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        for array in (given.view(bool), torch.from_numpy(given).view(torch.bool)):
            for op, wanted in want.items():
                copy = array.copy() if isinstance(array, np.ndarray) else array.clone()
                assert [int(one) for one in group.all_reduce(copy, op=op)] == wanted, op
                part = group.reduce_scatter(array, op=op)
                assert [int(one) for one in part] == wanted[3 * rank : 3 * rank + 3], op


def test_truths_of_any_bytes(tmp_path: pathlib.Path) -> None:
    together(_truths, tmp_path, 2)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps], ids=lambda how: str(how.__name__))
def test_groups_are_not_copied(tmp_path: pathlib.Path, how: Callable[[object], object]) -> None:
    """The end of a copy would be that of the group."""
    with commsir.Group(0, 1, folder=str(tmp_path)) as group:
        window, kernel = group.window((4,)), group.kernel(SUM.replace("?", "4"))
        for one in (group, window, kernel):
            with pytest.raises(commsir.UsageError, match="is of this process, and can be neither copied nor pickled"):
                how(one)
        gc.collect()
        assert (group.all_reduce(np.ones(3, np.float32)) == 1).all() and (window.get(0) == 0).all()
    assert "closed" in repr(group)


def test_arrays_that_are_no_plain_numbers(tmp_path: pathlib.Path) -> None:
    with commsir.Group(0, 1, folder=str(tmp_path)) as group:
        masked: Any = np.ma.array([1.0, 2.0], mask=[False, True], dtype=np.float32)
        for array, words in (
            (masked, r"the input has masked elements.*\.filled\(value\)"),
            (np.ones(3, ">f4"), r"the input has another order of bytes.*newbyteorder"),
        ):
            with pytest.raises(commsir.UsageError, match=words):
                group.all_reduce(array)


def _shared(rank: int, folder: str) -> None:
    """Inputs and outputs that share memory, but not element by element."""
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        for count in (1 << 6, 1 << 18):
            data = [(np.arange(2 * count) % 97 + r).astype(np.float32) for r in range(2)]
            total, window = data[0] + data[1], group.allocate(4 * count)
            mine = slice(rank * count, (rank + 1) * count)
            cases: list[tuple[str, int, int, np.ndarray[Any, Any]]] = [
                ("all_reduce", count, count, total[:count]),
                ("all_gather", count, 2 * count, np.concatenate([one[:count] for one in data])),
                ("reduce_scatter", 2 * count, count, total[mine]),
                ("all_to_all", 2 * count, 2 * count, np.concatenate([one[mine] for one in data])),
            ]
            for memory in (window, np.zeros(4 * count, np.float32)):
                for op, given, gets, want in cases:
                    for shift in (count // 2, -count // 2, 1):
                        source, target = memory[count : count + given], memory[count + shift : count + shift + gets]
                        source[:] = data[rank][:given]
                        getattr(group, op)(source, target)
                        np.testing.assert_array_equal(target, want, err_msg=f"{op} {count} {shift}")


def test_arrays_that_share_memory(tmp_path: pathlib.Path) -> None:
    together(_shared, tmp_path, 2)


def _kernels(rank: int, folder: str) -> None:
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        kernel = group.kernel(SUM.replace("?", "32"))
        x, y = group.allocate(32), np.zeros(32, np.float32)
        x[:] = np.arange(32) * (rank + 1)
        kernel(x, y)
        np.testing.assert_array_equal(y, 3 * np.arange(32))
        kernel(y=y, x=x)
        assert [one["name"] for one in kernel.arguments] == ["x", "y"] and kernel.choices
        assert kernel.certificate.verdict == "proven" and len(kernel.certificate.digest) == 64
        for values, named, text in (
            ((x,), {}, "takes x, y; there is no y"),
            ((x, y, y), {}, "takes x, y, but 3 arguments were given"),
            ((x, y), {"z": 1}, "takes x, y; 'z' is not one of them"),
            ((x, y), {"y": y}, "'y' was given twice"),
            ((x, np.zeros(31, np.float32)), {}, r"\(32,\), but the array is f32 \(31,\)"),
            ((x, np.zeros(32)), {}, "but the array is f64"),
        ):
            with pytest.raises(commsir.UsageError, match=text):
                kernel(*values, **named)
        with pytest.raises(commsir.CommsError):
            group.kernel("comms.kernel @bad(")
        with pytest.raises(commsir.UsageError, match="'blocs' is unknown"):
            group.kernel(SUM.replace("?", "32"), blocs=2)
        with pytest.raises(commsir.UsageError, match="'concurrent' is unknown or of the wrong type"):
            group.kernel(SUM.replace("?", "32"), concurrent="yes")  # type: ignore[arg-type]


def test_kernels(tmp_path: pathlib.Path) -> None:
    together(_kernels, tmp_path, 2)


def _errors(rank: int, folder: str) -> None:
    group = commsir.Group(rank, 2, folder=folder, timeout=60)
    x = group.allocate(8)
    with pytest.raises(commsir.UsageError, match="f32, but the output f64"):
        group.all_reduce(x, np.zeros(8))
    frozen = np.zeros(8, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(commsir.UsageError, match="read-only"):
        group.all_reduce(x, frozen)
    with pytest.raises(commsir.UsageError, match="not contiguous"):
        group.all_reduce(np.zeros(16, np.float32)[::2])
    with pytest.raises(commsir.CommsError):
        group.all_reduce(x, op="nonsense")
    with pytest.raises(commsir.CommsError):
        group.broadcast(x, root=9)
    x[:] = 1
    group.all_reduce(x)
    assert (x == 2).all(), "the group works on after errors"
    group.close()
    group.close()
    for call in (group.stats, lambda: group.all_reduce(x), lambda: group.allocate(4)):
        with pytest.raises(commsir.AbortedError, match="closed"):
            call()
    assert (x == 2).all(), "an array keeps its memory"


def test_errors(tmp_path: pathlib.Path) -> None:
    together(_errors, tmp_path, 2)


class Folder:
    """A store of one's own: a file a key."""

    def __init__(self, path: str) -> None:
        self.path = path

    def set(self, key: str, value: bytes) -> None:
        place = os.path.join(self.path, key.replace("/", "_"))
        with open(place + f".{os.getpid()}", "wb") as file:
            file.write(value)
        os.rename(place + f".{os.getpid()}", place)

    def get(self, key: str) -> bytes:
        import time

        place = os.path.join(self.path, key.replace("/", "_"))
        while not os.path.exists(place):
            time.sleep(0.002)
        with open(place, "rb") as file:
            return file.read()


def _own_store(rank: int, folder: str) -> None:
    group = commsir.Group(rank, 3, store=Folder(folder), timeout=60)
    x = np.full(4, rank, np.float32)
    assert (group.all_reduce(x) == 3).all()
    if rank == 1:
        group.close()
        return
    smaller = group.shrink([0, 2], Folder(folder))
    assert (smaller.rank, smaller.ranks) == (rank // 2, 2)
    assert (smaller.all_reduce(np.ones(4, np.float32)) == 2).all()


def _disagreeing(rank: int, folder: str) -> None:
    odd = rank == 2
    with commsir.Group(rank, RANKS, folder=folder, timeout=60) as group:
        calls: list[tuple[str, str, Callable[[], Any]]] = [
            ("f32", "i32", lambda: group.all_gather(np.zeros(5, np.int32 if odd else np.float32))),
            ("i8", "ui8", lambda: group.all_gather(np.zeros(5, np.uint8 if odd else np.int8))),
            ("ui8", "i1", lambda: group.all_gather(np.zeros(5, np.bool_ if odd else np.uint8))),
            ("of 5 f64", "of 6 f64", lambda: group.all_reduce(np.zeros(6 if odd else 5))),
        ]
        for most, other, call in calls:
            with pytest.raises(commsir.DisagreementError, match="rank 2") as told:
                call()
            assert f" {most}" in str(told.value) and f" {other}" in str(told.value), told.value
            ones = np.ones(7, np.float32)
            group.all_reduce(ones)
            assert (ones == RANKS).all()


def test_ranks_that_disagree_go_on(tmp_path: pathlib.Path) -> None:
    together(_disagreeing, tmp_path)


def test_a_store_of_ones_own_and_fewer_ranks(tmp_path: pathlib.Path) -> None:
    together(_own_store, tmp_path, 3)


class Broken:
    def set(self, key: str, value: bytes) -> None:
        raise KeyError("the store is broken")

    def get(self, key: str) -> bytes:
        raise KeyError("the store is broken")


def test_a_store_that_raises() -> None:
    with pytest.raises(commsir.CommsError) as caught:
        commsir.Group(0, 2, store=Broken(), timeout=5)
    assert isinstance(caught.value.__cause__, KeyError)


def test_bad_groups(tmp_path: pathlib.Path) -> None:
    with pytest.raises(commsir.UsageError, match="give one of them"):
        commsir.Group(0, 2)
    for rank, ranks in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(commsir.CommsError):
            commsir.Group(rank, ranks, folder=tmp_path, timeout=1)
    for options, text in (
        ({"device": "tpu"}, "no device 'tpu'"),
        ({"device": "cuda"}, 'a GPU by its number: 0 or "cuda:0"'),
        ({"timeout": 0}, "more than 0 seconds"),
        ({"timeout": timedelta(seconds=1)}, "more than 0 seconds, as a number"),
        ({"rank": "0"}, "the rank is '0', which is not an integer"),
        ({"folder": None, "store": {}}, "set.key, value. and get.key., which a dict does not have"),
        (
            {"device": 0, "communicator": 5},
            "5 is not a usable NCCL communicator: .* the address of an ncclComm_t",
        ),
        ({"device": 0, "communicator": True}, "True is not a usable NCCL communicator"),
        ({"device": 0, "communicator": 0x7F0000000001}, "is not a usable NCCL communicator"),
        ({"device": 0, "communicator": -1}, "-1 is not a usable NCCL communicator"),
        ({"device": "cpu", "communicator": 0x7F0000000000}, "give the group its GPU as well"),
    ):
        with pytest.raises(commsir.UsageError, match=text):
            commsir.Group(**({"rank": 0, "ranks": 1, "folder": tmp_path} | options))  # type: ignore[arg-type]
    with pytest.raises(commsir.DeadlockError):
        commsir.Group(0, 2, folder=tmp_path, timeout=0.5)


#: Puts a number of the caller's where he says.
PUT = """
comms.kernel @put(%x: memref<8xf32>, %mask: memref<8xi8>, %at: index, %n: f32) {
  %one = comms.splat %n : f32 -> tensor<1xf32>
  comms.tile_store %one, %x[%at] : tensor<1xf32>, memref<8xf32>
  comms.return
}
"""


@commsir.kernel
def waits_in_vain(s: commsir.i64[commsir.Signal, 1]) -> None:
    commsir.wait_signal(s[0], ge=1)


def test_errors_name_the_line_in_python(tmp_path: pathlib.Path) -> None:
    line = waits_in_vain.__commsir_function__.__code__.co_firstlineno + 2
    with commsir.Group(0, 1, folder=tmp_path, timeout=0.5) as group:
        with pytest.raises(commsir.CompileError, match=rf"\n *test_group.py:{line}:5: error: .*deadlock: "):
            group.kernel(waits_in_vain)
        kernel = group.kernel(waits_in_vain, check=False)
        with pytest.raises(commsir.DeadlockError) as caught:
            kernel()
        assert [wait.location for wait in caught.value.waiting] == [f"test_group.py:{line}:5"]


def test_windows_are_tensors_of_torch_too(tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    with commsir.Group(0, 1, folder=tmp_path) as group:
        x = group.allocate((4, 8), torch.bfloat16, to=torch.from_dlpack)
        assert x.dtype is torch.bfloat16 and x.shape == (4, 8) and not x.any()
        assert group.is_symmetric(x)
        x.fill_(2)
        assert bool((group.all_reduce(x) == 2).all())
        bytes_ = group.window(4, "uint8", to=torch.from_dlpack)
        bytes_.array.fill_(200)
        assert bytes_.peer(0).dtype is torch.uint8 and int(bytes_.peer(0)[3]) == 200
        assert group.allocate(3, "bool_").dtype == np.bool_
    assert bool((x == 2).all()), "an array keeps its memory"


def test_kernels_of_all_kinds(tmp_path: pathlib.Path) -> None:
    """A group compiles kernels in Python, MLIR text and files, and says what it cannot compile."""
    from commsir.examples.one_shot import one_shot

    text = SUM.replace("?", "8")
    (tmp_path / "sum.mlir").write_text(text)
    with commsir.Group(0, 1, folder=tmp_path / "store") as group:
        for source in (text, tmp_path / "sum.mlir"):
            x, y = group.allocate(8), np.zeros(8, np.float32)
            x[:] = 3
            group.kernel(source)(x, y)
            assert (y == 3).all()
        inbox, x, y = group.allocate((2, 8)), np.full(8, 5, np.float32), np.zeros(8, np.float32)
        group.kernel(one_shot, slots=2, n=8)(x=x, inbox=inbox, y=y)
        assert (y == 5).all()
        group.kernel(one_shot.specialize(slots=2), n=8)
        with pytest.raises(commsir.UsageError, match="open; say group.kernel\\(…, n=…\\)"):
            group.kernel(one_shot, slots=2)
        with pytest.raises(commsir.UsageError, match="fixed to 2 ranks, and the group has 1"):
            group.kernel(one_shot.specialize(ranks=2, slots=4, n=8))
        with pytest.raises(commsir.UsageError, match="not a int"):
            group.kernel(3)  # type: ignore[arg-type]
        x, mask = np.zeros(8, np.float32), np.zeros(8, np.bool_)
        group.kernel(PUT)(x, mask, at=3, n=2.5)
        assert x.tolist() == [0, 0, 0, 2.5, 0, 0, 0, 0]
        group.kernel(PUT)(x, mask, at=np.float64(4.0), n=np.int8(7))
        assert x[4] == 7
        for wrong, words in (
            ({"at": 3.5}, "3.5, but must be a whole number"),
            ({"at": "a"}, "'a', but"),
            ({"n": [1]}, "must be a number"),
        ):
            with pytest.raises(commsir.UsageError, match=words):
                group.kernel(PUT)(x, mask, **{"at": 3, "n": 1.0} | wrong)
        with pytest.raises(commsir.UsageError, match="does not fit i64"):
            group.kernel(PUT)(x, mask, at=1 << 70, n=1.0)
        with pytest.raises(commsir.UsageError, match="1e\\+39, which does not fit f32"):
            group.kernel(PUT)(x, mask, at=3, n=1e39)


CONCURRENT = """
import commsir, sys
text = open(sys.argv[1]).read()
with commsir.Group(0, 1, folder=sys.argv[2], device=0) as group:
    group.kernel(text, blocks=100, threads=64, concurrent=True)
    group.kernel(text.replace("@sum", "@next"), blocks=100, threads=64)
    try:
        group.kernel(text.replace("@sum", "@second"), blocks=100, threads=64, concurrent=True)
    except commsir.UsageError as error:
        print(error)
"""


def test_concurrent_kernels_have_to_fit_together(tmp_path: pathlib.Path) -> None:
    """On GPUs: here one that a library in place of the driver pretends."""
    (tmp_path / "sum.mlir").write_text(SUM.replace("?", "1024"))
    ran = subprocess.run(
        [sys.executable, "-c", CONCURRENT, str(tmp_path / "sum.mlir"), str(tmp_path / "store")],
        env=fake_gpus(1),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "'second'" in ran.stdout and "does not fit on GPU 0" in ran.stdout, ran.stdout + ran.stderr


def test_a_folder_that_others_have_used(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        together(_collectives, tmp_path)


def _interrupted(folder: str, ready: Any, told: Any) -> None:
    """Rank 0 of a group whose rank 1 does not come, or has stopped."""
    try:
        ready.set()
        with commsir.Group(0, 2, folder=folder, timeout=100) as group:
            x = group.allocate(16, "f32")
            group.all_reduce(x)
            told.put("first")
            group.all_reduce(x)
        told.put("no exception")
    except KeyboardInterrupt:
        told.put("interrupted")
    except BaseException:
        told.put(traceback.format_exc())


def _absent(folder: str, told: Any) -> None:
    """Rank 1, which makes one call and then no more; it is ended from outside."""
    with commsir.Group(1, 2, folder=folder, timeout=100) as group:
        group.all_reduce(group.allocate(16, "f32"))
        told.put("peer")
        time.sleep(100)


@pytest.mark.parametrize("peers", [0, 1], ids=["before the first call", "in a call"])
def test_interrupt(tmp_path: pathlib.Path, peers: int) -> None:
    """Ctrl-C ends a wait for a peer: when the group is made, and in a launch."""
    context = multiprocessing.get_context("spawn")
    told, ready = context.Queue(), context.Event()
    waiting = context.Process(target=_interrupted, args=(str(tmp_path), ready, told))
    children = [waiting, *(context.Process(target=_absent, args=(str(tmp_path), told)) for _ in range(peers))]
    for child in children:
        child.start()
    try:
        assert ready.wait(60)
        for _ in range(2 * peers):
            assert told.get(timeout=60) in ("first", "peer")
        # It may be on its way to the wait still: the handler runs then, too.
        time.sleep(0.5)
        assert waiting.pid is not None
        os.kill(waiting.pid, signal.SIGINT)
        assert told.get(timeout=20) == "interrupted"
    finally:
        for child in children:
            child.kill()
            child.join()
