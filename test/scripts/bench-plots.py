# ===- bench-plots.py - The plots and tables of docs/Results.md -------------===#
#
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""Draws docs/results/*.svg and fills the tables of docs/Results.md from docs/results/*.json.

Usage: bench-plots.py [--check]

--check writes nothing and fails where a plot or a table is not what the JSON files give. docs/results/README.md
describes the files. The plots use one palette that is legible on light and on dark pages and safe for color-blind
readers; every series also has a marker of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import re
import sys
from dataclasses import dataclass, field
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "Results.md"
REQUIRED = ("title", "date", "gpu", "gpus", "host", "versions", "command", "method", "baseline", "series")
INK = "#767e88"  # About 4.3:1 on white and on #0d1117.
STYLES = {  # Color, marker. The hues are those of Okabe and Ito.
    "CommsIR": ("#0a80c4", "circle"),
    "NCCL": ("#d55e00", "square"),
    "symmetric memory": ("#009e73", "triangle"),
    "CommsIR dist": ("#b8860b", "diamond"),
    "SGLang": ("#b8860b", "diamond"),
    "FlashInfer": ("#cc79a7", "cross"),
    "vLLM": ("#767e88", "triangle"),
    "MSCCL++": ("#56708a", "square"),
    "torch fused op": ("#009e73", "triangle"),
    "matmul alone": ("#767e88", "cross"),
    "all_reduce": ("#0a80c4", "circle"),
    "all_gather": ("#d55e00", "square"),
    "reduce_scatter": ("#009e73", "triangle"),
    "all_to_all": ("#b8860b", "diamond"),
    "broadcast": ("#cc79a7", "cross"),
    "2×H100": ("#d55e00", "square"),
    "2×H200": ("#009e73", "triangle"),
    "4×H200": ("#b8860b", "diamond"),
    "8×H200": ("#0a80c4", "circle"),
}
STYLES["CommsIR op"] = STYLES["CommsIR"]
PEERS = ("CommsIR", "SGLang", "FlashInfer", "vLLM", "MSCCL++", "symmetric memory", "NCCL")


@dataclass
class Run:
    """One file: measurements of one kind of host with one command, and their conditions."""

    name: str
    data: dict[str, Any]

    @property
    def machine(self) -> str:
        return f"{self.data['gpus']}×{self.data['gpu']}" if self.data["gpus"] else str(self.data["gpu"])

    def points(self, operation: str, contender: str = "CommsIR", **conditions: str) -> dict[int, dict[str, Any]]:
        """The points of all series that match, by size or row count. Conditions default to graph and windows."""
        wanted = {"mode": "graph", **conditions}
        found: dict[int, dict[str, Any]] = {}
        for series in self.data["series"]:
            if series["operation"] != operation or series["contender"] != contender:
                continue
            if all(series[key] == value for key, value in wanted.items()):
                for point in series["points"]:
                    found.setdefault(point["x"], point)
        return dict(sorted(found.items()))


@dataclass
class Line:
    name: str
    points: list[tuple[float, float]]


@dataclass
class Panel:
    title: str
    lines: list[Line]
    y_label: str
    x_label: str
    log_y: bool = True
    marks: list[float] = field(default_factory=list)  # Horizontal reference lines.


def load() -> dict[str, Run]:
    """All files of docs/results, checked for the keys that every file has."""
    runs = {}
    for path in sorted(RESULTS.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        missing = [key for key in REQUIRED if key not in data]
        if missing or not path.name.startswith(data["date"]):
            raise SystemExit(f"{path}: missing keys {missing}, or the name does not begin with the date")
        runs[path.stem] = Run(path.stem, data)
    return runs


def size(count: float) -> str:
    """1536 as 1.5 KiB."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:g} {unit}"
    return f"{count:g} B"


def number(value: float) -> str:
    """Three digits that count, as the pages write times."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# --- Drawing ----------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 390, 270, 56, 14, 34, 46


def marker(shape: str, x: float, y: float, color: str) -> str:
    """A marker of about 7 pixels."""
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{color}"/>'
    corners = {
        "square": [(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)],
        "triangle": [(0, -4.4), (4.2, 3.2), (-4.2, 3.2)],
        "diamond": [(0, -4.8), (4.8, 0), (0, 4.8), (-4.8, 0)],
        "cross": [(-4, -1.4), (-1.4, -1.4), (-1.4, -4), (1.4, -4), (1.4, -1.4), (4, -1.4)]
        + [(4, 1.4), (1.4, 1.4), (1.4, 4), (-1.4, 4), (-1.4, 1.4), (-4, 1.4)],
    }[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{color}"/>'


def ticks_of_x(values: list[float], rows: bool) -> list[float]:
    """Powers of 16 for bytes, the measured counts for rows."""
    if rows:
        return sorted(set(values))
    low, high = min(values), max(values)
    return [float(16**i * 4) for i in range(15) if low <= 16**i * 4 <= high]


def ticks_of_y(low: float, high: float, log: bool) -> list[float]:
    if not log:
        step = 0.5 if high <= 2.5 else 1
        return [step * i for i in range(int(high / step) + 1)]
    return [m * 10.0**e for e in range(-1, 6) for m in (1, 2, 5) if low <= m * 10.0**e <= high]


def text(x: float, y: float, what: str, anchor: str = "middle", extra: str = "") -> str:
    what = what.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{what}</text>'


def draw_panel(panel: Panel, x0: float, y0: float) -> list[str]:
    """Axes with units, grid, lines and markers of one panel."""
    all_x = [x for line in panel.lines for x, _ in line.points]
    all_y = [y for line in panel.lines for _, y in line.points] + panel.marks
    rows = "rows" in panel.x_label.lower()
    low_x, high_x = math.log2(min(all_x)), math.log2(max(all_x))
    low_y, high_y = (min(all_y) / 1.3, max(all_y) * 1.3) if panel.log_y else (0.0, max(all_y) * 1.08)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log2(x) - low_x) / (high_x - low_x)
        up = math.log(y / low_y) / math.log(high_y / low_y) if panel.log_y else (y - low_y) / (high_y - low_y)
        inner_x, inner_y = WIDTH - LEFT - RIGHT - 16, HEIGHT - TOP - BOTTOM
        return x0 + LEFT + 8 + across * inner_x, y0 + HEIGHT - BOTTOM - up * inner_y

    left, right, bottom = x0 + LEFT, x0 + WIDTH - RIGHT, y0 + HEIGHT - BOTTOM
    out = [text((left + right) / 2, y0 + 20, panel.title, extra=' font-weight="600"')]
    for y in ticks_of_y(low_y, high_y, panel.log_y):
        _, at = place(2**low_x, y)
        out.append(f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
        out.append(text(left - 6, at + 4, f"{y:g}", "end"))
    for x in ticks_of_x(all_x, rows):
        at, _ = place(x, high_y)
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 4}" class="axis"/>')
        out.append(text(at, bottom + 17, f"{x:g}" if rows else size(x)))
    out.append(f'<line x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}" class="axis"/>')
    out.append(text((left + right) / 2, bottom + 36, panel.x_label))
    middle = (y0 + TOP + bottom) / 2
    out.append(text(x0 + 14, middle, panel.y_label, extra=f' transform="rotate(-90 {x0 + 14:.1f} {middle:.1f})"'))
    for mark in panel.marks:
        _, at = place(2**low_x, mark)
        out.append(f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" class="mark"/>')
    for line in panel.lines:
        color, shape = STYLES[line.name]
        at_points = [place(x, y) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at_points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [marker(shape, x, y, color) for x, y in at_points]
    return out


def draw_legend(names: dict[str, str], width: float) -> tuple[list[str], int]:
    """The entries of a legend, in as many lines as the width needs, and the height that they take."""
    out: list[str] = []
    at, y = 20.0, 16
    for key, label in names.items():
        color, shape = STYLES[key]
        needed = 52 + 6.6 * len(label)
        if at > 20 and at + needed > width + 20:
            at, y = 20.0, y + 20
        out.append(f'<line x1="{at:.1f}" x2="{at + 26:.1f}" y1="{y}" y2="{y}" stroke="{color}" stroke-width="2"/>')
        out.append(marker(shape, at + 13, y, color))
        out.append(text(at + 32, y + 4, label, "start"))
        at += needed
    return out, y + 18


def draw(title: str, panels: list[Panel], names: dict[str, str], columns: int = 2) -> str:
    """A figure: a legend, then the panels in columns."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    entries, legend = draw_legend(names, columns * WIDTH)
    width, height = columns * WIDTH, rows * HEIGHT + legend
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12" role="img">',
        f"<title>{title}</title>",
        f"<style>text{{fill:{INK}}}.grid{{stroke:{INK};stroke-opacity:.25}}.axis{{stroke:{INK}}}"
        f".mark{{stroke:{INK};stroke-dasharray:5 4}}</style>",
    ]
    out += entries
    for index, panel in enumerate(panels):
        out += draw_panel(panel, index % columns * WIDTH, legend + index // columns * HEIGHT)
    return "\n".join([*out, "</svg>"]) + "\n"


# --- What is shown ----------------------------------------------------------------------------------------------------

BYTES = "bytes of one rank's input"


def times(points: dict[int, dict[str, Any]], least: float = 1) -> list[tuple[float, float]]:
    return [(x, point["us"]) for x, point in points.items() if "us" in point and x >= least]


def ratios(points: dict[int, dict[str, Any]], least: float = 1) -> list[tuple[float, float]]:
    return [(x, point["ratio"]) for x, point in points.items() if "ratio" in point and x >= least]


def figures(runs: dict[str, Run]) -> dict[str, str]:
    """Every plot, by its file name."""
    kernels = [runs[name] for name in ("2026-11-25-2xh100", "2026-11-22-2xh200", "2026-11-22-8xh200")]
    serving = runs["2026-11-26-4xh100-serving"]
    panels = [
        Panel(
            f"{run.machine}, {run.data['date']}",
            [
                Line("CommsIR", times(run.points("all_reduce", memory="windows"), 1024)),
                Line("NCCL", times(run.points("all_reduce", "NCCL"), 1024)),
            ],
            "µs a call",
            BYTES,
        )
        for run in kernels
    ]
    panels.insert(
        1,
        Panel(
            f"4×H100 through PyTorch, {serving.data['date']}",
            [
                Line("CommsIR", times(serving.points("all_reduce"))),
                Line("NCCL", times(serving.points("all_reduce", "NCCL"))),
            ],
            "µs a call",
            BYTES,
        ),
    )
    machines = [*kernels[:2], runs["2026-11-22-4xh200"], kernels[2]]
    collectives = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
    speedups = [
        Panel(
            f"{run.machine}, {run.data['date']}",
            [Line(name, ratios(run.points(name, memory="windows"), 1024)) for name in collectives],
            "NCCL's time / CommsIR's",
            BYTES,
            log_y=False,
            marks=[1.0],
        )
        for run in machines
    ]
    fused = Panel(
        "CUDA graphs, 2026-11-22 and 25",
        [Line(run.machine, ratios(run.points("all_reduce_rmsnorm", memory="windows"))) for run in machines],
        "NCCL's time / CommsIR's",
        "rows of 8192 bf16",
        log_y=False,
        marks=[1.0],
    )
    captured = [
        Panel(
            f"{run.machine} through PyTorch, {run.data['date']}",
            [
                Line("CommsIR", times(run.points("all_reduce_rmsnorm"))),
                Line("NCCL", times(run.points("all_reduce_rmsnorm", "NCCL"))),
            ],
            "µs a call",
            "rows of 8192 bf16",
        )
        for run in (runs["2026-11-26-2xh100-serving"], serving)
    ]
    eager = runs["2026-11-26-2xh100-pytorch"]
    calls = {
        "CommsIR op": "torch.ops.commsir",
        "CommsIR dist": "dist.all_reduce, commsir",
        "symmetric memory": "torch symmetric memory",
        "NCCL": "dist.all_reduce, NCCL",
    }
    host = Panel(
        f"{eager.machine}, eager, {eager.data['date']}",
        [Line(name, times(eager.points("all_reduce", name, mode="eager"))) for name in calls],
        "µs a call",
        BYTES,
    )
    peers = runs["2026-11-26-4xh100-peers"]
    beside = Panel(
        f"{peers.machine}, graph, {peers.data['date']}",
        [Line(name, times(peers.points("all_reduce", name))) for name in PEERS],
        "µs a call",
        BYTES,
    )
    matmul = runs["2026-11-26-4xh100-matmul"]
    others = {
        "CommsIR": "CommsIR",
        "NCCL": "matmul and NCCL",
        "torch fused op": "torch's fused op",
        "matmul alone": "matmul alone",
    }
    products = [
        Panel(
            f"{name}, {matmul.data['date']}",
            [Line(who, points) for who in others if (points := times(matmul.points(name, who)))],
            "µs a call",
            "rows of 8192 bf16",
        )
        for name in ("all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce")
    ]
    plain = {name: name for name in ("CommsIR", "NCCL")}
    return {
        "all-reduce.svg": draw("All-reduce against NCCL", panels, plain),
        "speedup.svg": draw("Collectives against NCCL", speedups, {name: name for name in collectives}),
        "fused.svg": draw(
            "All-reduce, residual and RMSNorm in one kernel", [fused], {run.machine: run.machine for run in machines}
        ),
        "fused-pytorch.svg": draw(
            "All-reduce, residual and RMSNorm through PyTorch",
            captured,
            {"CommsIR": "CommsIR", "NCCL": "NCCL, then torch's addition and norm"},
        ),
        "pytorch.svg": draw("all_reduce from PyTorch, eager", [host], calls),
        "peers.svg": draw("All-reduce next to kernels of serving engines", [beside], {name: name for name in PEERS}),
        "matmul.svg": draw(f"Matmul and collective on {matmul.machine}", products, others, 3),
    }


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def times_as_long(ratio: float) -> str:
    """Two digits that count, or two decimals below 2; halves are rounded up."""
    return f"{ratio:.2f}×" if ratio < 2 else f"{math.floor(ratio * 10 + 0.5 + 1e-9) / 10:.1f}×"


def cell(point: dict[str, Any] | None) -> str:
    """A time, and the ratio where one was measured."""
    if not point:
        return ""
    return f"{number(point['us'])} ({times_as_long(point['ratio'])})" if "ratio" in point else number(point["us"])


def day(run: Run) -> str:
    return str(run.data["date"])[5:]


def span(ratios: list[float]) -> str:
    """From the least to the greatest."""
    return f"{times_as_long(min(ratios)).removesuffix('×')} to {times_as_long(max(ratios))}"


def over(run: Run, operation: str, contender: str) -> list[float]:
    """At each size that both were measured at, how many times as long the contender takes as CommsIR."""
    other = run.points(operation, contender)
    return [other[x]["us"] / point["us"] for x, point in run.points(operation).items() if x in other]


def answers(runs: dict[str, Run]) -> str:
    """What a reader asks first: how fast, against whom."""
    hosts = [runs[f"2026-11-{name}"] for name in ("25-2xh100", "22-2xh200", "22-4xh200", "22-8xh200")]

    def kernels(operations: tuple[str, ...], least: float, most: float) -> str:
        found = [host.points(operation, memory="windows") for host in hosts for operation in operations]
        return span([point["ratio"] for points in found for x, point in points.items() if least <= x <= most])

    def products(name: str) -> list[float]:
        operations = ("all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce")
        points = [runs[name].points(operation).values() for operation in operations]
        return [point["ratio"] for measured in points for point in measured if "ratio" in point]

    peers, eager = runs["2026-11-26-4xh100-peers"], runs["2026-11-27-1xh100-products"].points("matmul", mode="eager")
    layer = runs["2026-11-27-4xh100-decoder"].points("decoder_layer").values()
    others = ("all_gather", "reduce_scatter", "all_to_all", "broadcast")
    where = "2 to 8 H100 or H200, 11-22 and 11-25"
    matmuls = products("2026-11-26-2xh100-matmul") + products("2026-11-26-4xh100-matmul")
    small = "all_reduce, 1 KiB to 4 MiB"
    rows = [
        ["NCCL", "all_reduce, 1 KiB to 1 MiB", kernels(("all_reduce",), 1 << 10, 1 << 20), where],
        ["NCCL", "all_reduce, 256 MiB", kernels(("all_reduce",), 256 << 20, 256 << 20), where],
        ["NCCL", "other collectives, 1 KiB to 16 MiB", kernels(others, 1 << 10, 16 << 20), where],
        ["NCCL and a kernel", "all_reduce, residual, RMSNorm", kernels(("all_reduce_rmsnorm",), 1, 512), where],
        *([name, small, span(over(peers, "all_reduce", name)), "4×H100, 11-26"] for name in PEERS[1:5]),
        ["FlashInfer", "the fused kernel", span(over(peers, "all_reduce_rmsnorm", "FlashInfer")), "4×H100, 11-26"],
        ["torch, NCCL", "matmul with a collective", span(matmuls), "2 and 4 H100, 11-26"],
        ["Inductor, NCCL", "70B decoder layer", span([point["ratio"] for point in layer]), "4×H100, 11-27"],
        ["cuBLAS", "product, 4096³ and 8192³", span([point["ratio"] for point in eager.values()]), "1×H100, 11-27"],
    ]
    return table(["against", "doing", "ratio", "on, measured"], rows)


def tables(runs: dict[str, Run]) -> dict[str, str]:
    """Every table, by the name that Results.md gives it."""
    counts = [1 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]
    collected = []
    for name, memory in (
        ("2026-11-25-2xh100", "windows"),
        ("2026-11-22-2xh200", "windows"),
        ("2026-11-22-4xh200", "windows"),
        ("2026-11-22-8xh200", "windows"),
        ("2026-11-26-2xh100-serving", "plain"),
        ("2026-11-26-4xh100-serving", "plain"),
    ):
        points = runs[name].points("all_reduce", memory=memory)
        through = " through PyTorch" if "serving" in name else ""
        collected.append([runs[name].machine + through, day(runs[name]), *(cell(points.get(n)) for n in counts)])
    rows = []
    for name in ("2026-11-25-2xh100", "2026-11-22-2xh200", "2026-11-22-4xh200", "2026-11-22-8xh200"):
        run = runs[name]
        plain, fp8 = run.points("all_reduce_rmsnorm"), run.points("all_reduce_rmsnorm_fp8")
        rows.append(
            [
                run.machine,
                day(run),
                *(cell(plain.get(n)) for n in (1, 8, 64, 512)),
                *(number(fp8[n]["us"]) for n in (1, 512)),
            ]
        )
    eager = runs["2026-11-26-2xh100-pytorch"]
    sizes = [1 << 10, 64 << 10, 1 << 20, 4 << 20]
    calls = [
        [label, *(cell(eager.points("all_reduce", who, mode=mode).get(n)) for n in sizes)]
        for label, who, mode in (
            ("`torch.ops.commsir`, eager", "CommsIR op", "eager"),
            ("`dist.all_reduce` on commsir, eager", "CommsIR dist", "eager"),
            ("torch symmetric memory, eager", "symmetric memory", "eager"),
            ("`dist.all_reduce` on NCCL, eager", "NCCL", "eager"),
            ("`torch.ops.commsir`, in a graph", "CommsIR op", "graph"),
        )
    ]
    peers = runs["2026-11-26-4xh100-peers"]
    kinds = [1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
    beside = [[name, *(cell(peers.points("all_reduce", name, memory="plain").get(n)) for n in kinds)] for name in PEERS]
    counted = (1, 8, 64, 512)
    fused = [
        [name, *(cell(peers.points("all_reduce_rmsnorm", name).get(n)) for n in counted)]
        for name in ("CommsIR", "best peer", "FlashInfer")
    ]
    layer = runs["2026-11-27-4xh100-decoder"]
    decoder = [
        [label, *(cell(layer.points("decoder_layer", who).get(n)) for n in (1, 8, 32, 128, 512))]
        for label, who in (("CommsIR", "CommsIR"), ("Inductor with NCCL", "NCCL"))
    ]
    contract = [
        [who, *(cell(runs["2026-11-27-1xh100-products"].points("matmul", who, mode="eager")[n]) for n in (4096, 8192))]
        for who in ("CommsIR", "cuBLAS")
    ]
    products = []
    for name in ("2026-11-26-2xh100-matmul", "2026-11-26-4xh100-matmul"):
        for op in ("all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce"):
            points = runs[name].points(op, memory="plain")
            products.append([f"`{op}`", runs[name].machine, *(cell(points.get(n)) for n in (1024, 4096, 8192, 16384))])
    gloo = runs["2026-11-22-cpu-gloo"]
    lasts = [1 << 10, 256 << 10, 4 << 20, 64 << 20]
    cpu = [
        [name, *(times_as_long(gloo.points(name, mode="eager")[n]["ratio"]) for n in lasts)]
        for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
    ]
    sources = [
        [f"[{run.name}.json](results/{run.name}.json)", run.data["host"], f"`{run.data['command'][0]}`"]
        for run in runs.values()
    ]
    return {
        "all-reduce": table(["", "measured", *map(size, counts)], collected),
        "fused": table(["rows of 8192", "measured", "1", "8", "64", "512", "1, fp8", "512, fp8"], rows),
        "pytorch": table(["2×H100", *map(size, sizes)], calls),
        "peers": table(["4×H100", *map(size, kinds)], beside),
        "matmul": table(["rows of all ranks", "measured on", "1,024", "4,096", "8,192", "16,384"], products),
        "answers": answers(runs),
        "peers-fused": table(["rows of 8192", *map(str, counted)], fused),
        "decoder": table(["rows of 8192", "1", "8", "32", "128", "512"], decoder),
        "products": table(["1×H100", "4096³", "8192³"], contract),
        "gloo": table(["", *map(size, lasts)], cpu),
        "sources": table(["figures, dated", "measured on", "by"], sources),
    }


def fill(page: str, made: dict[str, str]) -> str:
    """The page with each table between its markers."""
    for name, body in made.items():
        pattern = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.S)
        if not pattern.search(page):
            raise SystemExit(f"{PAGE}: no place for the table '{name}'")
        page = pattern.sub(lambda match, body=body: match[1] + body + "\n" + match[2], page)  # type: ignore[misc]
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where something is out of date")
    options = parser.parse_args()
    runs = load()
    made = {RESULTS / name: svg for name, svg in figures(runs).items()}
    made[PAGE] = fill(PAGE.read_text(encoding="utf-8"), tables(runs))
    stale = [path for path, content in made.items() if not path.exists() or path.read_text(encoding="utf-8") != content]
    if not options.check:
        for path in stale:
            path.write_text(made[path], encoding="utf-8")
        return 0
    if stale:
        print(", ".join(str(path.relative_to(ROOT)) for path in stale) + ": run make bench-plots and commit")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
