"""Tests of processes.py that need no GPU: its list of cases, and its judgment of them."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import processes  # noqa: E402


def names(folder: pathlib.Path, ranks: list[int], full: bool) -> list[str]:
    made = processes.Cases(folder, folder, ranks, full)
    made.scenarios()
    return [case.name for case in made.all]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_fifty_kills_reach_every_rank(tmp_path: pathlib.Path, ranks: int) -> None:
    full = names(tmp_path, [ranks], True)
    for kind in ("kill", "kill-replay"):
        kills = [name for name in full if name.startswith(f"{kind} ")]
        assert 50 <= len(kills) < 50 + ranks
        assert {name.split()[1].rstrip(",") for name in kills} == {str(rank) for rank in range(ranks)}


def test_every_number_of_ranks_has_every_scenario(tmp_path: pathlib.Path) -> None:
    for full in (False, True):
        made = names(tmp_path, [2, 4, 8], full)
        kinds = ("mismatch", "mismatch-replay", "abort", "abort-replay", "pauses", "variety", "kill-replay")
        for kind in kinds:
            for ranks in (2, 4, 8):
                assert any(name.startswith(f"{kind} ") and f" {ranks} ranks" in name for name in made), (kind, ranks)


def test_a_sanitizer_watches_every_check(tmp_path: pathlib.Path) -> None:
    made = processes.Cases(tmp_path, tmp_path, [2], False)
    made.sanitizer("compute-sanitizer")
    for check in ("memcheck", "racecheck", "initcheck", "synccheck"):
        assert any(f"{check}: variety" in case.name for case in made.all)
    watched = [case for case in made.all if case.name != "reference"]
    assert all(case.command[0] == "compute-sanitizer" and case.limit <= 240 for case in watched)


@pytest.mark.parametrize(
    ("script", "state"),
    [
        ("echo 'ERROR SUMMARY: 0 errors'", "ok"),
        ("echo 'ERROR SUMMARY: 0 errors'; echo 'ERROR SUMMARY: 3 errors'", "failed"),
        ("echo 'ERROR SUMMARY: 0 errors'; exit 9", "failed"),
        ("echo nothing", "failed"),
        ("sleep 60", "failed"),
    ],
)
def test_cases_are_judged(script: str, state: str) -> None:
    case = processes.Case("one", ["sh", "-c", script], 2, says=["SUMMARY: 0 "], never=r"SUMMARY: [1-9]")
    processes.carry_out(case, dict(os.environ))
    assert case.state == state, case.text


def test_a_missing_sanitizer_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With no tool anywhere nothing was tested, which must not look as if all were well."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", ["processes.py", "--sanitizer"])
    assert processes.main() == 2
    said = capsys.readouterr()
    assert "pip install nvidia-cuda-sanitizer-api" in said.err
    assert said.out == ""
