"""The report of torch.compile: the program's lines, and large models."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import reporting_checks
from commsir.torch.reporting import Fusion, Report
from harness import World


@pytest.mark.parametrize("name", list(reporting_checks.SOURCES))
def test_names_the_line(pair: World, name: str) -> None:
    want = reporting_checks.SOURCES[name][1]
    for said in pair.run(reporting_checks.sources, "gloo", name=name):
        assert [module for _, module in said] == [module for _, module in want], said
        for (source, _), (end, _) in zip(said, want, strict=True):
            assert source.endswith(end) and bool(source) == bool(end), said
            assert not source or source.startswith("reporting_checks.py:"), said


def test_numbers_graphs_since_it_was_cleared(pair: World) -> None:
    """Ranks that compile the same report the same, whatever they have compiled before."""
    assert pair.run(reporting_checks.numbers, "gloo") == [["0, forward"]] * 2


def _layer(number: int) -> list[Fusion]:
    """Two sums of a layer, and a gather that is left."""
    beside = "aten.add.Tensor needs aten.mul.Tensor at model.py:8, which is not in pieces"
    one = Fusion(
        "all_reduce", "0", (4, 64), ("aten.add.Tensor",), (), dtype="bfloat16", graph="0, forward", predicted=5.0
    )
    return [
        replace(one, source="model.py:7: return self.o_proj(h)", module=f"layers.{number}.o_proj"),
        replace(one, source="model.py:9: return self.down_proj(h)", module=f"layers.{number}.down_proj"),
        replace(one, collective="all_gather", fused=(), because=(beside,), predicted=None, module=f"layers.{number}"),
    ]


def test_layers_that_are_alike_have_one_line() -> None:
    layers = [one for number in range(80) for one in _layer(number)]
    odd = replace(layers[0], shape=(8, 64))
    lines = str(Report([*layers, odd])).splitlines()
    assert lines == [
        "graph 0, forward: 241 collectives, 161 fused",
        "  collective       of             fused with  gain (µs)  measured  from",
        "  80 x all_reduce  4x64 bfloat16  add         5.0        -         model.py:7: return self.o_proj(h)",
        "  80 x all_reduce  4x64 bfloat16  add         5.0        -         model.py:9: return self.down_proj(h)",
        "  80 x all_gather  4x64 bfloat16  -           -          -         layers.0",
        "      aten.add.Tensor needs aten.mul.Tensor at model.py:8, which is not in pieces",
        "  all_reduce       8x64 bfloat16  add         5.0        -         model.py:7: return self.o_proj(h)",
    ]
    assert len(Report(layers).as_dicts()) == 240


@pytest.mark.parametrize("name", list(reporting_checks.REASONS))
def test_names_no_nodes_of_the_graph(pair: World, name: str) -> None:
    """A reader knows operations and lines of the program, not the graph's `getitem_13`."""
    for because, nodes in pair.run(reporting_checks.reasons, "gloo", name=name):
        assert because, "there is no reason"
        for why in because:
            assert not nodes & set(re.findall(r"[\w.]+", why)), why
            assert "commsir." not in why and (
                " is needed by " not in why or " at reporting_checks.py" in why.split(" is needed by ")[1]
            ), why
