"""The checker on kernels in Python, and simulations of kernels that it leaves undecided."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import commsir
import numpy as np
import pytest

Load = Callable[[str], ModuleType]

# ----------------------------------------------------------------------------------------------------------------------
# Windows that the host uses
# ----------------------------------------------------------------------------------------------------------------------

HANDED = """
@kernel
def hands(x: f32[Array, 8], y: f32[{kind}, 8]) -> None:
{before}    y.peer((rank() + 1) % size())[:] = x[:]
{after}
@kernel
def takes(x: f32[{kind}, 8], y: f32[Array, 8]) -> None:
{before}    y[:] = x.peer((rank() + 1) % size())[:]
{after}
"""
BARRIER = "    barrier()\n"


@pytest.mark.parametrize("name", ["hands", "takes"])
def test_windows_of_the_host(load: Load, name: str) -> None:
    """A peer's next launch may begin before this rank's host has read what came, or written what is to be read."""
    words = {
        "": "which that rank does not wait for before it ends the launch: its host may use it too early",
        BARRIER: "that rank may not have begun launch 2: its host may still use it",
    }
    for after, said in words.items():
        kernel = getattr(load(HANDED.format(kind="HostWindow", before="", after=after)), name)
        with pytest.raises(commsir.CheckError, match=said) as caught:
            kernel.check(ranks=3)
        assert "barrier" in str(caught.value) and ".peer((rank() + 1) % size())" in str(caught.value)
    ordered = load(HANDED.format(kind="HostWindow", before=BARRIER, after=BARRIER))
    assert getattr(ordered, name).check(ranks=3).proven
    assert getattr(load(HANDED.format(kind="Window", before="", after="")), name).check(ranks=3).proven


SIGNALED = """
@kernel(blocks=1)
def k(x: f32[Array, 8], y: f32[HostWindow, 8], ready: i64[Signal, 1], come: i64[Signal, 1]) -> None:
    following, before = (rank() + 1) % size(), (rank() - 1) % size()
    signal(ready[0], before)
    wait_signal(ready[0], ge=epoch())
    put_signal(x, y, following, come[0])
    wait_signal(come[0], ge=epoch())
"""


def test_signals_guard_windows_of_the_host(load: Load) -> None:
    assert load(SIGNALED).k.check(ranks=3).proven
    for line in ("    wait_signal(ready[0], ge=epoch())\n", "    wait_signal(come[0], ge=epoch())\n"):
        with pytest.raises(commsir.CheckError, match="its host may"):
            load(SIGNALED.replace(line, "")).k.check(ranks=3)


def test_how_windows_of_the_host_are_written(load: Load) -> None:
    module = load(
        "from typing import Annotated\n@kernel\ndef k(a: f32[HostWindow, 8], b: HostWindow['8', 'f32'],\n"
        "      c: Annotated[HostWindow, '8', f32], d: f32[Window, 8]) -> None:\n    a[:] = b[:] + c[:] + d[:]\n"
    )
    assert module.k.ir.count("!comms.window<8xf32> {comms.host}") == 3
    assert repr(module.k.parameters["a"]) == "f32 host window [8]"
    with pytest.raises(TypeError, match=r"f32\[HostWindow\] has no shape"):
        commsir.f32[commsir.HostWindow]
    ones = np.ones(8, np.float32)
    assert module.k.simulate(2, {"b": ones, "c": ones, "d": ones})["a"][1].tolist() == [3.0] * 8


# ----------------------------------------------------------------------------------------------------------------------
# Places that data decide
# ----------------------------------------------------------------------------------------------------------------------

#: Rows of all ranks come, and of each an element is taken that data choose.
CHOSEN = """
M = 6

@kernel(blocks=1)
def k(x: f32[Array, 2, M], c: i32[Array, 2], box: f32[Window, 2, 2 * M], s: i64[Signal, 2], y: f32[Array, 2]) -> None:
    half = epoch() % 2
    for p in range(size()):
        put_signal(x[p], box[half, rank() * M : rank() * M + M], p, s[rank()])
    for q in range(size()):
        {wait}
        {choose}
{behind}
"""
FLAT = "y[q] = box[half, {place}]"


def chosen(
    load: Load, choose: str, wait: str = "wait_signal_from(s[q], q, ge=epoch())", behind: str = ""
) -> commsir.Kernel:
    kernel: commsir.Kernel = load(CHOSEN.format(choose=choose.replace("\n", "\n        "), wait=wait, behind=behind)).k
    return kernel


BOUNDED = {
    "asserted": "i = c[q]\nassert 0 <= i < M\n" + FLAT.format(place="q * M + i"),
    "clamped": FLAT.format(place="q * M + maximum(0, minimum(c[q], M - 1))"),
    "clipped": FLAT.format(place="q * M + clip(c[q], 0, M - 1)"),
    "masked": FLAT.format(place="q * M + (c[q] & 3)"),
    "looped": "total = f32(0)\nfor i in range(minimum(c[q], M)):\n    total += box[half, q * M + i]\ny[q] = total",
}


@pytest.mark.parametrize("name", BOUNDED)
def test_places_that_data_decide_within_a_row(load: Load, name: str) -> None:
    kernel = chosen(load, BOUNDED[name])
    assert kernel.check(ranks=2).proven
    x = np.arange(24, dtype=np.float32).reshape(2, 2, 6)
    report = kernel.simulate(2, {"x": x, "c": np.array([3, 1], np.int32)}, launches=3, fuzz=10)
    wanted = [[x[0, r, :3].sum(), x[1, r, 0]] if name == "looped" else [x[0, r, 3], x[1, r, 1]] for r in range(2)]
    assert [y.tolist() for y in report["y"]] == wanted
    # Only what has come may be read, however well the place in it is known.
    with pytest.raises(commsir.CheckError, match="no order between it and the"):
        chosen(load, BOUNDED[name], wait="pass", behind="    barrier()").check(ranks=2)
    late = BOUNDED[name].replace("q * M", "(1 - q) * M")
    with pytest.raises(commsir.CheckError, match="no order between it and the"):
        chosen(load, late).check(ranks=2)


def test_a_subscript_of_a_row_stays_in_it(load: Load) -> None:
    text = CHOSEN.replace("box: f32[Window, 2, 2 * M]", "box: f32[Window, 2, 2, M]")
    text = text.replace("rank() * M : rank() * M + M", "rank()")
    wait = "wait_signal_from(s[q], q, ge=epoch())"
    assert load(text.format(wait=wait, choose="y[q] = box[half, q, c[q]]", behind="")).k.check(ranks=2).proven
    with pytest.raises(commsir.CheckError, match="no order between it and the"):
        load(text.format(wait=wait, choose="y[q] = box[half, 1 - q, c[q]]", behind="")).k.check(ranks=2)


@pytest.mark.parametrize(
    "choose",
    [
        FLAT.format(place="q * M + c[q]"),
        FLAT.format(place="q * M + maximum(c[q], 0)"),
        FLAT.format(place="q * M + maximum(0, minimum(c[q], M))"),
        "i = c[q]\nif i > 7:\n    assert 0 <= i < M\n    y[0] = 1\n" + FLAT.format(place="q * M + i"),
    ],
    ids=["anywhere", "above", "one-too-many", "asserted-elsewhere"],
)
def test_places_that_may_leave_the_row(load: Load, choose: str) -> None:
    with pytest.raises(commsir.CheckError, match=r"data decide the place.*assert 0 <= i < n"):
        chosen(load, choose).check(ranks=2)


# ----------------------------------------------------------------------------------------------------------------------
# Memory that nobody has written
# ----------------------------------------------------------------------------------------------------------------------

JUNK = """
@kernel
def k({parameters}) -> None:
{body}
"""


def test_scratch_begins_as_junk(load: Load) -> None:
    """What is read there before it is written is not a number that anyone would expect; the seed decides which."""
    types = ["f64", "f32", "f16", "bf16", "f8", "f8e5m2", "i64", "i32", "i16", "i8"]
    parameters = ", ".join(f"y_{t}: {t}[Array, 64]" for t in types)
    body = "".join(f"    m_{t} = scratch({t}, 64)\n    y_{t}[:] = m_{t}[:]\n" for t in types)
    kernel = load(JUNK.format(parameters=parameters, body=body)).k
    for launches in (1, 2):
        report = kernel.simulate(2, launches=launches)
        for name in report:
            for array in report[name]:
                assert np.isnan(array).all() if name.startswith("y_f") or name == "y_bf16" else (array % 2 == 1).all()
        assert np.abs(report["y_i32"][0].astype(np.int64)).min() > 32000
    one, same, other = (kernel.simulate(2, seed=seed)["y_i64"][0].tolist() for seed in (3, 3, 4))
    assert one == same != other
    with pytest.raises(commsir.MismatchError, match="results depend on the schedule"):
        kernel.simulate(2, fuzz=3)


def test_what_is_promised_to_be_zero(load: Load) -> None:
    """Windows, arrays and cells that are not given."""
    body = "    b[:] = w[:] + a[:]\n    v[0] = read_signal(s[0]) + read_counter(c[0])\n"
    parameters = "w: f32[Window, 8], a: f32[Array, 8], b: f32[Array, 8], s: Signal[1], c: Counter[1], v: i64[Array, 1]"
    report = load(JUNK.format(parameters=parameters, body=body)).k.simulate(2, fuzz=3)
    assert all((np.asarray(report[name]) == 0).all() for name in ("w", "a", "b", "v"))
