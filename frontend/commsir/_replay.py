"""Repeats a simulation that was saved to a file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsir import errors
from commsir._binding import binding
from commsir._native import simulate_views
from commsir._run import Run, shown, whole

if TYPE_CHECKING:
    from commsir._arrays import View

__all__ = ["replay"]


def _limited(request: dict[str, Any], limits: Mapping[str, float]) -> dict[str, Any]:
    """Returns the request with each limit lowered to the given one. 0 means no limit."""
    made = dict(request)
    for name, limit in limits.items():
        asked = 0 if request.get(name) is None else request[name]
        if isinstance(asked, bool) or not isinstance(asked, int | float):
            raise errors.UsageError(f"option '{name}': expected a number, not {shown(repr(asked))}")
        if limit and not 0 < asked <= limit:
            made[name] = limit
    return made


def replay(path: str | os.PathLike[str], *, time_limit: float = 60, max_steps: int = 10_000_000_000) -> dict[str, Any]:
    """Runs the file `path`, written by `CommsError.save`, again, with the same inputs, seed and schedule. Raises the
    same error.

    `time_limit` is in seconds (of all schedules together, if the run compares several), `max_steps` in scheduler steps;
    0 means no limit. The file can only lower them. The file may come from an untrusted source: UsageError is raised if
    it is damaged, names other files, or needs more than half of this machine's memory.
    """
    run = Run.load(path)
    try:
        views = {name: _views_of(run, name) for name in run.arrays}
    except (ValueError, KeyError, TypeError, MemoryError, RuntimeError) as error:
        raise errors.UsageError(f"'{path}' is damaged: {shown(error)}") from error
    limits = {"time_limit": time_limit, "total_time": time_limit, "max_steps": max_steps, "check_events": _CHECK_EVENTS}
    if run.request.get("target") != "cpu":  # The limits of waits end what runs on GPUs.
        limits = {"time_limit": time_limit, "check_events": _CHECK_EVENTS}
    try:
        return simulate_views(run.source, _limited(run.request, limits), views)
    except errors.CommsError as error:
        from commsir.language import diagnostics

        is_python = run.request.get("file") == diagnostics.GENERATED
        raise diagnostics.with_source(error, is_python=is_python, reads=False) from None


#: Of the checker.
_CHECK_EVENTS = 100_000_000


def _views_of(run: Run, name: str) -> list[View]:
    """Builds the arrays of one argument from the bytes in the file."""
    import numpy as np

    from commsir._arrays import View, raw_numpy_type

    kind, shape = (run.request.get("types") or {}).get(name, "i8"), (run.request.get("shapes") or {}).get(name, [0])
    if not isinstance(kind, str) or not isinstance(shape, list) or len(shape) > 16:
        raise ValueError(f"'{name}' is {kind!r} of {shape!r}")
    sizes = tuple(whole(size, f"a size of '{name}'") for size in shape)
    dtype = raw_numpy_type(kind)
    made = []
    for part in run.arrays[name]:
        if math.prod(sizes) * dtype.itemsize != len(part):
            raise ValueError(f"'{name}' has {len(part)} bytes, and is {kind} of {sizes}")
        array = np.frombuffer(bytearray(part), dtype).reshape(sizes) if part else np.zeros(sizes, dtype)
        made.append(View(binding().from_dlpack(array), kind, sizes))
    return made
