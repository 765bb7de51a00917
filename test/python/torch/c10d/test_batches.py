"""Batches of sends and receives on GPUs, in the process group in Python: by what they ask of other backends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar
from unittest import mock

import pytest
import torch
import torch.distributed
from commsir.torch import backend
from commsir.torch.call import Call
from commsir.torch.process_group import ProcessGroup
from commsir.torch.rendezvous import Met
from commsir.torch.side import Side
from commsir.torch.work import Work

dist: Any = torch.distributed


class Noted:
    """Work of the stand-in."""

    def __init__(self, log: list[str], what: str) -> None:
        self._log, self._what = log, what

    def wait(self, timeout: Any = None) -> bool:
        self._log.append(f"wait {self._what}")
        return True


class StandIn:
    """What a group delegates to: notes what is asked of it, by the name of its place in the store."""

    def __init__(self, log: list[str], name: str, rank: int, size: int) -> None:
        self.log, self.name, self.rank, self.size = log, name, rank, size

    #: Names of those that do not connect at the first try.
    failing: ClassVar[set[str]] = set()

    def set_timeout(self, timeout: timedelta) -> None:
        pass

    def eager_connect_single_device(self, device: torch.device) -> None:
        assert device.type == "cuda"
        if self.name in self.failing:
            self.failing.remove(self.name)
            raise RuntimeError(f"{self.name} has no communicator")

    def abort(self) -> None:
        self.log.append(f"abort {self.name}")

    def _start_coalescing(self) -> None:
        self.log.append(f"begin {self.name}, {self.rank} of {self.size}")

    def _end_coalescing(self) -> Noted:
        self.log.append(f"end {self.name}")
        return Noted(self.log, self.name)

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int) -> None:
        self.log.append(f"send {tensors[0].numel()} to {peer} of {self.name}")

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int) -> None:
        self.log.append(f"recv {tensors[0].numel()} from {peer} of {self.name}")
        if not tensors[0].numel():
            raise RuntimeError("nothing to receive into")
        tensors[0].fill_(7)


@pytest.fixture
def log() -> list[str]:
    return []


def group_of(monkeypatch: pytest.MonkeyPatch, log: list[str], rank: int, size: int = 4) -> ProcessGroup:
    """A rank whose tensors are on a GPU, as far as it knows."""

    def make(store: Any, device: str, own: int, ranks: int, global_ranks: list[int], name: str) -> StandIn:
        assert device == "cuda" and len(global_ranks) == ranks
        return StandIn(log, name, own, ranks)

    monkeypatch.setattr(backend, "delegate", lambda timeout: make)

    def meet(settings: backend.Settings, prefix: str, *rest: Any, members: Sequence[int] = (), **named: Any) -> Met:
        assert rank in members and prefix == f"commsir/cuda/pair/{members[0]}-{members[-1]}/meeting"
        return Met("an epoch")

    monkeypatch.setattr(backend.Settings, "meet", meet)
    monkeypatch.setattr(Side, "gpu", lambda side: 0)
    monkeypatch.setattr(Call, "device", lambda call: "cuda")
    settings = backend.Settings(dist.HashStore(), rank, size, timedelta(seconds=10), "g", list(range(size)))
    return ProcessGroup(settings)


def batch(group: ProcessGroup, *ops: tuple[str, int, torch.Tensor]) -> Work:
    group._start_coalescing(torch.device("cpu"))
    for what, peer, tensor in ops:
        (group.send if what == "send" else group.recv)([tensor], peer)
    return group._end_coalescing(torch.device("cpu"))


def test_pairs_come_in_an_order_that_ranks_keep(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    group = group_of(monkeypatch, log, 2)
    one, two, three = torch.empty(1), torch.empty(2), torch.empty(3)
    batch(group, ("send", 3, one), ("recv", 0, two), ("recv", 3, three), ("send", 2, one)).wait()
    assert log == [
        "begin g/pair/0-2, 1 of 2",
        "recv 2 from 0 of g/pair/0-2",
        "end g/pair/0-2",
        "begin g/pair/2-2, 0 of 1",
        "send 1 to 0 of g/pair/2-2",
        "end g/pair/2-2",
        "begin g/pair/2-3, 0 of 2",
        "send 1 to 1 of g/pair/2-3",
        "recv 3 from 1 of g/pair/2-3",
        "end g/pair/2-3",
        "wait g/pair/0-2",
        "wait g/pair/2-2",
        "wait g/pair/2-3",
    ]
    assert torch.equal(two, torch.full((2,), 7.0))


def test_a_batch_of_one_goes_by_its_pair(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    group = group_of(monkeypatch, log, 1)
    for _ in range(2):
        batch(group, ("send", 0, torch.empty(5))).wait()
    assert log == 2 * [
        "begin g/pair/0-1, 1 of 2",
        "send 5 to 0 of g/pair/0-1",
        "end g/pair/0-1",
        "wait g/pair/0-1",
    ]


def test_what_comes_is_copied_once_it_is_there(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    group = group_of(monkeypatch, log, 0)
    whole = torch.zeros(3, 2)
    work = batch(group, ("recv", 1, whole.t()))
    assert float(whole.sum()) == 0
    work.wait()
    assert torch.equal(whole, torch.full((3, 2), 7.0))


def test_a_lone_send_goes_by_its_pair(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    """The others have none, and may be in no call."""
    group = group_of(monkeypatch, log, 0)
    group.send([torch.empty(4)], 3).wait()
    assert log == ["send 4 to 1 of g/pair/0-3"]


def test_a_pair_that_does_not_connect_is_made_anew(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    group = group_of(monkeypatch, log, 0)
    monkeypatch.setattr(StandIn, "failing", {"g/pair/0-3"})
    with pytest.raises(RuntimeError, match="g/pair/0-3 has no communicator"):
        group.send([torch.empty(4)], 3).wait()
    group.send([torch.empty(4)], 3).wait()
    assert log == ["abort g/pair/0-3", "send 4 to 1 of g/pair/0-3"]


class Event:
    """One of a GPU."""

    def __init__(self, over: bool) -> None:
        self.over = over

    def query(self) -> bool:
        return self.over


def test_work_is_completed_when_the_gpu_is_done_with_it() -> None:
    work = Work([], timedelta(seconds=10), "all_reduce", lambda reason: None)
    work.end = event = Event(over=False)
    assert not work.is_completed()
    work.complete()
    assert not work.is_completed()
    event.over = True
    assert work.is_completed() and work.is_success()


def test_nothing_is_completed_in_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in C++; to ask an event would break the capture."""
    capturing = mock.Mock(return_value=False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", capturing)
    x = mock.Mock(spec=torch.Tensor, is_cuda=True)
    work = Work([x], timedelta(seconds=10), "all_reduce", lambda reason: None)
    work.complete()
    assert work.is_completed()
    capturing.return_value = True
    with pytest.raises(RuntimeError, match="all_reduce: nothing is completed while a graph is captured"):
        work.is_completed()


def test_a_batch_ends_also_where_a_part_fails(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    group = group_of(monkeypatch, log, 0)
    work = batch(group, ("recv", 1, torch.empty(0)), ("send", 1, torch.empty(2)))
    with pytest.raises(RuntimeError, match="nothing to receive into"):
        work.wait()
    assert log[-2:] == ["end g/pair/0-1", "wait g/pair/0-1"]
