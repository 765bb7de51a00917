"""Tuning by several processes: one measures, all get its table or its error."""

import json
import multiprocessing
import os
import pathlib
import pickle
import signal
import sys
import time
import traceback
from typing import Any

import commsir
import pytest
from commsir import Array, Window, _agree, all_reduce, f32
from test_group import together

RANKS = 3


@commsir.kernel
def total(x: f32[Window, 4, 64], y: f32[Array, 4, 64]) -> None:
    all_reduce(x, outs=y)


@commsir.kernel
def other(x: f32[Window, 4, 64]) -> None:
    all_reduce(x)


def _tune(group: Any, **options: Any) -> commsir.Table:
    return commsir.tune(
        total,
        algorithms=["one_shot", "two_shot"],
        protocols=["pull"],
        blocks=[1],
        group=group,
        **{"repetitions": 2, "progress": True, **options},
    )


def _gather(group: commsir.Group, folder: str, what: str, value: str) -> list[str]:
    """The texts of all ranks."""
    import numpy as np

    (pathlib.Path(folder) / f"{what}-{group.rank}").write_text(value)
    group.all_reduce(np.zeros(1, np.float32))
    return [(pathlib.Path(folder) / f"{what}-{rank}").read_text() for rank in range(group.ranks)]


def _agrees(rank: int, folder: str) -> None:
    log = pathlib.Path(folder) / f"log-{rank}"
    with commsir.Group(rank, RANKS, folder=folder, timeout=60) as group, log.open("w") as sys.stderr:
        path = pathlib.Path(folder) / "table.json"
        # Twice: the second is loaded, and meets anew.
        tables = [_tune(group, path=path if rank == 0 else "/nowhere/else"), _tune(group, path=path)]
        sys.stderr = sys.__stderr__
        assert tables[0] == tables[1] == commsir.Table.load(path)
        assert tables[0].ranks == RANKS and tables[0].target == "cpu"
        assert len(set(_gather(group, folder, "table", repr(tables[0])))) == 1
        kernel = group.kernel(total, **tables[0].best)
        assert kernel.choices[0]["algorithm"] == tables[0].best["algorithm"]
    assert ("100 %" in log.read_text()) == (rank == 0)


def test_all_ranks_have_the_table(tmp_path: pathlib.Path) -> None:
    together(_agrees, tmp_path, RANKS)


def _fails(rank: int, folder: str) -> None:
    with commsir.Group(rank, RANKS, folder=folder, timeout=60) as group:
        # What only rank 0 meets.
        with pytest.raises(commsir.UsageError, match="at least one repetition"):
            _tune(group, repetitions=0 if rank == 0 else 2)
        with pytest.raises(commsir.UsageError, match="nowhere"):
            _tune(group, path="/nowhere/else.json")
        with pytest.raises(commsir.LimitError, match="limit of 1 steps") as told:
            _tune(group, max_steps=1)
        assert len(set(_gather(group, folder, "error", f"{type(told.value)} {told.value}"))) == 1
        # The group goes on.
        assert _tune(group).ranks == RANKS


def test_all_ranks_have_the_error(tmp_path: pathlib.Path) -> None:
    together(_fails, tmp_path, RANKS)


def _disagrees(rank: int, folder: str) -> None:
    with commsir.Group(rank, RANKS, folder=folder, timeout=60) as group:
        if rank != 1:
            commsir.tune(total, blocks=[1], algorithms=["one_shot"], protocols=["pull"], group=group)
            return
        with pytest.raises(commsir.DisagreementError, match="rank 0 tunes total, but this rank other"):
            commsir.tune(other, group=group)


def test_ranks_that_disagree(tmp_path: pathlib.Path) -> None:
    together(_disagrees, tmp_path, RANKS)


def _interrupted(rank: int, folder: str, began: Any, told: Any) -> None:
    try:
        with commsir.Group(rank, RANKS, folder=folder, timeout=60) as group:
            before = time.process_time()
            began.put(rank)
            _tune(group, repetitions=1 << 20, progress=False)
    except BaseException:
        told.put((rank, time.process_time() - before, traceback.format_exc()))


def test_interrupt(tmp_path: pathlib.Path) -> None:
    """Ctrl-C where it is measured ends it for all; those that wait have slept."""
    context = multiprocessing.get_context("spawn")
    began, told = context.Queue(), context.Queue()
    children = [context.Process(target=_interrupted, args=(r, str(tmp_path), began, told)) for r in range(RANKS)]
    for child in children:
        child.start()
    try:
        for _ in children:
            began.get(timeout=60)
        time.sleep(3)
        assert children[0].pid is not None
        os.kill(children[0].pid, signal.SIGINT)
        texts = {rank: (busy, text) for rank, busy, text in (told.get(timeout=60) for _ in children)}
    finally:
        for child in children:
            child.kill()
            child.join()
    assert "KeyboardInterrupt" in texts[0][1]
    for rank in (1, 2):
        busy, text = texts[rank]
        assert "rank 0 raised KeyboardInterrupt" in text
        assert busy < 1.5, f"rank {rank} was busy for {busy} s"


def _by_torch(rank: int, folder: str) -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=2)
    tables = [_tune(None, progress=False) for _ in range(2)]
    gathered: list[Any] = [None] * 2
    dist.all_gather_object(gathered, repr(tables))
    assert len(set(gathered)) == 1 and tables[0].ranks == 2
    assert _tune(False, ranks=3, progress=False).ranks == 3
    dist.destroy_process_group()


def test_ranks_of_torch(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    together(_by_torch, tmp_path, 2)


def test_processes_that_do_not_know_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(commsir.UsageError, match="init_process_group first"):
        _tune(None)
    with pytest.raises(commsir.UsageError, match="group is a int"):
        _tune(3)
    table = _tune(False, ranks=2, path=tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["kernel"] == "total"
    # Another number of ranks is another table.
    assert table.ranks == 2 and _tune(False, ranks=4, path=tmp_path / "t.json").ranks == 4


def test_ways_of_which_none_runs(tmp_path: pathlib.Path) -> None:
    with pytest.raises(commsir.UsageError, match="total ran with none of the 2 configs(.|\n)*tree/pull/1: .*tree"):
        commsir.tune(total, RANKS, algorithms=["tree", "bush"], protocols=["pull"], blocks=[1], group=False)
    with pytest.raises(commsir.UsageError, match="none of the 0 configs to measure: name an algorithm"):
        commsir.tune(total, RANKS, blocks=[], group=False)
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(commsir.UsageError, match="is not a table of commsir.tune: it has no 'kernel'"):
        commsir.Table.load(tmp_path / "t.json")


class _Runs:
    def __reduce__(self) -> tuple[object, ...]:
        return pathlib.Path.touch, (pathlib.Path("/tmp/commsir-was-run"),)


@pytest.mark.parametrize(
    "data", [pickle.dumps((True, _Runs())), pickle.dumps((False, 1)), pickle.dumps((True, len)), b"nonsense", b""]
)
def test_data_of_ranks_is_no_code(data: bytes) -> None:
    with pytest.raises(commsir.DisagreementError, match="rank 0 has sent an invalid result"):
        _agree._unpickled(data)


def test_results_and_errors_travel() -> None:
    class Odd(Exception):
        """No other process finds it by its name."""

    table = commsir.Table("k", 2, "cpu", [])
    assert _agree._unpickled(pickle.dumps((True, table))) == (True, table)
    for error, heard in (
        (commsir.UsageError("why"), commsir.UsageError),
        (KeyError("why"), KeyError),
        (Odd("why"), RuntimeError),
    ):
        fine, told = _agree._unpickled(_agree._pickled(error))
        assert not fine and type(told) is heard and "why" in str(told)
