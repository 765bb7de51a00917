"""The verdicts of the checker on kernels with one fault each, and on their repaired twins (test/corpus)."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import commsir
import pytest

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
TWINS = sorted({path.name.split(".")[0] for path in CORPUS.glob("*.bad.*")})

PROVEN, OPEN, REFUTED = "proven", "not decided", "refuted"

#: Of the faulty kernel and its twin: all others are refuted and proven.
DECIDED: dict[str, tuple[str, str]] = {
    # Data decide whether and with whom ranks synchronize: right if they are the same on all ranks, or a permutation.
    "m33_trip-count-is-a-scalar": (REFUTED, OPEN),
    "p56_count-as-signal-value": (REFUTED, OPEN),
    "p57_signal-to-rank-from-data": (REFUTED, OPEN),
    "p58_skip-when-nothing-changed": (OPEN, OPEN),
    # Data decide where ranks write.
    "p33_moe-two-senders-one-slot": (OPEN, PROVEN),
    "p34_moe-capacity-overflow": (OPEN, OPEN),
    # A kernel without any fence for proxies.
    "p26_multimem-store-no-alias-fence": (OPEN, PROVEN),
    "p28_tma-no-async-fence": (OPEN, PROVEN),
    # Too large for all ranks.
    "m26_cells-mod-16-at-512-ranks": (OPEN, OPEN),
}

#: Faults that an assumption of the proof excludes.
ASSUMED = {
    "m39_all-to-all-v-counts-disagree": "counts_agree",
    "m40_arguments-share-memory": "arguments_apart",
    "p48_no-end-barrier-input-window": "host_waits",
    "p53_infinite-loop-on-data": "loops_end",
}

#: Faults of values, which the checker makes no claim about: both are proven to neither hang nor race.
VALUES = {
    "m29_consume-adds-own-again",
    "p17_subteam-rank-as-world-rank",
    "p21_one-peer-left-out",
    "p29_multimem-reduce-by-every-block",
    "p35_count-signalled-by-data",
    "p37_averaged-twice",
    "p40_sum-order-differs-by-rank",
    "p50_reads-slot-nobody-wrote",
}

#: What is still wrong, and ought to be what. This table has to shrink.
WRONG: dict[str, tuple[str, str]] = {}


def check(path: Path) -> commsir.CheckReport:
    """What the checker says of the kernel in a file."""
    if path.suffix == ".mlir":
        text = path.read_text()
        found = re.search(r"^// META (\{.*\})$", text, re.MULTILINE)
        meta: dict[str, Any] = json.loads(found[1]) if found else {}
        return commsir.check(text, ranks=meta.get("ranks", 4), **meta.get("kw", {}))
    spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", path.name), path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    report = module.K.check(ranks=getattr(module, "RANKS", 4), **getattr(module, "KW", {}))
    assert isinstance(report, commsir.CheckReport)
    return report


def judge(path: Path) -> str:
    """The verdict on it."""
    try:
        report = check(path)
    except commsir.CheckError:
        return REFUTED
    # An open verdict says why, in every form of a report.
    assert (report.verdict == OPEN) == bool(report.proof.reasons)
    assert report.verdict in str(report)
    return report.verdict


@pytest.mark.parametrize("name", TWINS)
def test_verdicts(name: str) -> None:
    bad, good = sorted(CORPUS.glob(f"{name}.*"))
    if name in VALUES:
        expected = (PROVEN, PROVEN)
    elif name in ASSUMED:
        expected = (PROVEN, PROVEN)
        assert ASSUMED[name] in check(bad).proof.assumptions
    else:
        expected = DECIDED.get(name) or WRONG.get(name) or (REFUTED, PROVEN)
    assert (judge(bad), judge(good)) == expected


def test_tables_name_what_there_is() -> None:
    named = [*DECIDED, *ASSUMED, *VALUES, *WRONG]
    assert len(TWINS) >= 59 and set(named) <= set(TWINS)
    assert len(named) == len(set(named)), "one table names a pair"
