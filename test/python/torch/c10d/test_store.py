"""Stores that do not answer (the error quotes them), and stores that lie."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from pathlib import Path

import pytest
import store_checks
from commsir.torch import capi
from harness import World


def test_errors_give_the_reason_of_a_failed_store(world: World, tmp_path: Path) -> None:
    silent, lost = world.run(store_checks.silent, backend="", folder=str(tmp_path))[0]
    assert "the store does not answer (the store: " in silent, silent
    assert "no connection of its own to the store: " in lost, lost
    for said in (silent, lost):
        assert "Not a directory" in said and "frame #" not in said, said


#: Keys of which rank 1's store lies, the lie, whether it is told to rank 1 or to the others, and what rank 0 says.
LIES = {
    "number": ("/here/1", "../x", False, "the store holds '../x' in place of the text of rank 1"),
    "answer": ("/ack/", "?", False, "the store holds '?' in place of the text of rank 1"),
    "many bytes": ("/ack/", "a " + "b" * (1 << 20), False, "[...] of 1048578 bytes' in place of the text of rank 1"),
    "agreement": ("/agree/1", "maybe", False, "the store holds 'maybe' in place of the text of rank 1"),
    "no agreement": ("/agree/0", "no such library", True, "rank 1"),
    "mailbox": ("/sends/here/1", "no mailbox", False, "the store holds 'no mailbox' in place of the text of rank 1"),
    "host": ("/sends/here/1", "ab 1 1 elsewhere", False, "rank 1"),
    "rings": ("/sends/to/", "no rings", False, "the store holds 'no rings' in place of the text of rank 1"),
}


@pytest.mark.cpu_alone("GPUs meet in the same way")
@pytest.mark.parametrize("lie", LIES)
def test_a_rank_whose_store_lies_is_named(world: World, lie: str) -> None:
    part, value, reads, told = LIES[lie]
    seconds = 3
    answers = world.run(store_checks.lied_to, backend="", part=part, value=value, reads=reads, seconds=seconds)
    for rank, (said, took) in enumerate(answers):
        assert took < 4 * seconds, f"rank {rank} took {took} s: {said}"
        assert rank == 1 or "rank 1" in said, f"rank {rank}: {said}"
    # Of messages, rank 1 takes that of rank 0 first.
    assert told in answers[0][0], answers[0]


class Raising:
    """A store in Python that raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def check(self, keys: list[str]) -> bool:
        return False

    def set(self, key: str, value: str) -> None:
        raise self.error


def make(store: Raising) -> capi.Group:
    return capi.Group(store, 1, 2, name="g", timeout=timedelta(seconds=20))


def test_errors_quote_exceptions_of_a_store_in_python() -> None:
    with pytest.raises(capi.CommsIRError, match=r"\(the store: it is closed\)") as told:
        make(Raising(RuntimeError("it is closed")))
    assert isinstance(told.value.__cause__, RuntimeError)


def test_ctrl_c_in_a_store_in_python_is_raised() -> None:
    """It is not taken for a store that does not answer."""
    with pytest.raises(KeyboardInterrupt):
        make(Raising(KeyboardInterrupt()))


class Interrupted:
    """A store in a dictionary, in which Ctrl-C comes with the first look."""

    def __init__(self, values: dict[str, bytes], comes: bool) -> None:
        self.values, self.comes = values, comes

    def check(self, keys: list[str]) -> bool:
        if self.comes:
            self.comes = False
            raise KeyboardInterrupt
        return all(key in self.values for key in keys)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.values[key]


def test_ctrl_c_is_raised_where_the_group_could_have_been_made() -> None:
    """The library asks a store again that has not answered once."""
    values: dict[str, bytes] = {}

    def make_one(rank: int) -> None:
        store = Interrupted(values, comes=rank == 1)
        capi.Group(store, rank, 2, name="late", timeout=timedelta(seconds=3)).destroy()

    def other() -> None:
        with contextlib.suppress(capi.CommsIRError):
            make_one(0)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            make_one(1)
    finally:
        thread.join()
