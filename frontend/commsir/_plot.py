"""A run as a picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsir import errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["timeline"]


def _rows(events: Sequence[dict[str, Any]]) -> dict[tuple[int, int], int]:
    """Places of (rank, block), rank after rank from the top."""
    found = sorted({(e["pid"], e["tid"]) for e in events if e["ph"] == "X"})
    return {key: i for i, key in enumerate(found)}


def timeline(events: Sequence[dict[str, Any]], title: str) -> Figure:
    """When each block ran, and when and for what it waited."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise errors.UsageError(
            "a plot needs matplotlib: pip install matplotlib; report.trace() needs nothing"
        ) from error

    class Timeline(Figure):
        """Notebooks show it, whatever their backend."""

        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png")
            return out.getvalue()

    rows = _rows(events)
    slices = [e for e in events if e["ph"] == "X"]
    names = sorted({e["name"] for e in slices if e.get("cat") == "wait"})
    figure = Timeline(figsize=(9, 1.2 + 0.28 * max(len(rows), 2)), layout="constrained")
    axes = figure.subplots()
    for i, name in enumerate([None, *names]):
        mine = [e for e in slices if (e["name"] == name) or (name is None and e.get("cat") != "wait")]
        for key, row in rows.items():
            spans = [(e["ts"], e["dur"]) for e in mine if (e["pid"], e["tid"]) == key]
            label = ("runs" if name is None else f"waits: {name.removeprefix('comms.')}") if row == 0 else None
            axes.broken_barh(
                spans, (row - 0.4, 0.8), facecolors="tab:green" if name is None else f"C{i + 2}", label=label
            )
    several = len({block for _, block in rows}) > 1
    axes.set_yticks(list(rows.values()), [f"rank {r}" + (f" block {b}" if several else "") for r, b in rows])
    axes.invert_yaxis()
    axes.set_xlabel("µs")
    axes.set_title(title)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")
    return figure
