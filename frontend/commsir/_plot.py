"""Draws a run: what each block did at each scheduler step, and which block it woke."""

from __future__ import annotations

import bisect
import io
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commsir import errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["timeline"]

Track = tuple[int, int]  # rank, block

#: A color for each kind of wait, of Okabe's and Ito's, which the colorblind tell apart; always the same.
COLORS = {
    "runs": "#999999",
    "wait_signal": "#D55E00",
    "wait_signal_from": "#D55E00",
    "barrier": "#0072B2",
    "barrier_wait": "#0072B2",
    "recv": "#009E73",
    "channel_barrier": "#56B4E9",
    "packet_load": "#E69F00",
    "poison_load": "#CC79A7",
    "wait_counter": "#F0E442",
    "bulk_wait": "#F0E442",
}
#: That of all other waits.
OTHER = "#444444"
# Steps beyond which arrows would hide the picture.
_MOST_ARROWS = 400


@dataclass(frozen=True)
class Span:
    """The activity of a block between two steps of the scheduler."""

    track: Track
    kind: str
    begin: int
    end: int
    #: The line of the source at which it waited.
    line: str = ""


@dataclass(frozen=True)
class Arrow:
    """A step at which a block signaled, or arrived at a barrier, and so woke another block."""

    source: Track
    step: int
    target: Track


def spans(events: Sequence[dict[str, Any]]) -> list[Span]:
    """Returns the runs, one step each, in order of their beginning, and the waits between them."""
    runs = _runs(events)
    waits = sorted((e for e in events if e["ph"] == "X" and e.get("cat") == "wait"), key=lambda e: float(e["ts"]))
    at: dict[Track, list[int]] = {}
    for step, event in enumerate(runs):
        at.setdefault(_track(event), []).append(step)
    made = [Span(_track(e), "runs", step, step + 1) for step, e in enumerate(runs)]
    begins = [float(e["ts"]) for e in runs]
    for event in waits:
        track, mine = _track(event), at.get(_track(event), [])
        # It waits from the end of the last run before it to the next one, or to the end of all.
        before = bisect.bisect_right([begins[step] for step in mine], float(event["ts"]))
        begin = mine[before - 1] + 1 if before else 0
        end = mine[before] if before < len(mine) else len(runs)
        line = str(event.get("args", {}).get("source", "")).rsplit(":", 2)
        made.append(Span(track, _kind(event), begin, max(end, begin), line[1] if len(line) == 3 else ""))
    return made


def arrows(events: Sequence[dict[str, Any]]) -> list[Arrow]:
    """Returns an arrow from each block that woke another one, at that step."""
    runs = _runs(events)
    begins = [float(e["ts"]) for e in runs]
    made = []
    for event in events:
        if event.get("cat") != "wake":
            continue
        step = bisect.bisect_right(begins, float(event["ts"])) - 1
        if step >= 0 and event["ts"] <= runs[step]["ts"] + runs[step]["dur"] and _track(runs[step]) != _track(event):
            made.append(Arrow(_track(runs[step]), step, _track(event)))
    return made


def _runs(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((e for e in events if e["ph"] == "X" and e.get("cat") != "wait"), key=lambda e: float(e["ts"]))


def _track(event: dict[str, Any]) -> Track:
    return int(event["pid"]), int(event["tid"])


def _kind(event: dict[str, Any]) -> str:
    return str(event["name"]).partition(".")[2] or str(event["name"])


def timeline(events: Sequence[dict[str, Any]], title: str) -> Figure:
    """Draws one row per block, with the steps in which it ran and those in which it waited, for what, and at which
    line.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise errors.UsageError(
            "a plot needs matplotlib: pip install matplotlib; report.trace() needs nothing"
        ) from error

    class Timeline(Figure):
        """A figure that notebooks display with every matplotlib backend."""

        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png")
            return out.getvalue()

    drawn = spans(events)
    rows = {track: row for row, track in enumerate(sorted({span.track for span in drawn}))}
    height = 1.8 + 0.26 * max(len(rows), 3)
    figure = Timeline(figsize=(11, height), dpi=120, layout="constrained")
    axes = figure.subplots()
    _draw_spans(axes, drawn, rows)
    _draw_arrows(axes, arrows(events), rows)
    _label(axes, rows, title)
    return figure


def _draw_spans(axes: Axes, drawn: Sequence[Span], rows: dict[Track, int]) -> None:
    lines: dict[str, set[str]] = {}
    for span in drawn:
        lines.setdefault(span.kind, set()).add(span.line)
    order = sorted(lines, key=lambda kind: (kind != "runs", kind))
    for kind in order:
        color, mine = COLORS.get(kind, OTHER), [span for span in drawn if span.kind == kind]
        label = kind if kind == "runs" else f"waits in {kind}{_lines(lines[kind])}"
        for track, row in rows.items():
            bars = [(span.begin, span.end - span.begin) for span in mine if span.track == track]
            half = 0.36 if kind == "runs" else 0.16
            axes.broken_barh(bars, (row - half, 2 * half), facecolors=color, label=label, linewidth=0)
            label = "_nolegend_"
    steps = max((span.end for span in drawn), default=1)
    for span in drawn:
        # Wide enough for the number of the line.
        if span.line and span.end - span.begin > 0.045 * steps:
            middle = (span.begin + span.end) / 2
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
            axes.text(middle, rows[span.track], span.line, ha="center", va="center", fontsize=6, bbox=box)


def _lines(numbers: set[str]) -> str:
    known = sorted((n for n in numbers if n), key=lambda n: (len(n), n))
    if not known:
        return ""
    shown = ", ".join(known[:6]) + (", …" if len(known) > 6 else "")
    return f" (line{'s' * (len(known) > 1)} {shown})"


def _draw_arrows(axes: Axes, drawn: Sequence[Arrow], rows: dict[Track, int]) -> None:
    if not drawn or len(drawn) > _MOST_ARROWS:
        return
    style = {"arrowstyle": "-|>", "color": "black", "linewidth": 0.5, "alpha": 0.55, "mutation_scale": 6}
    for arrow in drawn:
        start, end = (arrow.step + 0.5, rows[arrow.source]), (arrow.step + 1, rows[arrow.target])
        axes.annotate("", xy=end, xytext=start, arrowprops={**style, "shrinkA": 0, "shrinkB": 0})
    axes.plot([], [], color="black", linewidth=0.8, marker=">", markersize=4, label="wakes (by a signal, a barrier, …)")


def _label(axes: Axes, rows: dict[Track, int], title: str) -> None:
    several = len({block for _, block in rows}) > 1
    axes.set_yticks(list(rows.values()), list(_names(rows, several)), fontsize=7)
    for track, row in rows.items():
        if track[1] == 0 and row:  # Between ranks.
            axes.axhline(row - 0.5, color="#DDDDDD", linewidth=0.8, zorder=0)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("steps of the scheduler: blocks take turns, so the picture shows their order, not their time")
    axes.locator_params(axis="x", integer=True)
    axes.set_title(_wrapped(title), loc="left", fontsize=10)
    axes.figure.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=7)


def _wrapped(title: str) -> str:
    """The title in lines that fit the figure's width; a kernel's name may have any length."""
    return "\n".join(textwrap.wrap(title, 100))


def _names(rows: dict[Track, int], several: bool) -> Iterator[str]:
    for rank, block in rows:
        yield f"rank {rank}" + (f" block {block}" if several else "")
