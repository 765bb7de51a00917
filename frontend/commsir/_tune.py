"""Which algorithm, protocol and number of blocks is fastest for a kernel: measured, not guessed."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from commsir import _agree, _native, errors
from commsir._kernel import Kernel

__all__ = ["Entry", "Table", "tune"]


@dataclass(frozen=True)
class Entry:
    """One way, and how long it took: the median over the repetitions, in µs a launch."""

    algorithm: str
    protocol: str
    blocks: int
    microseconds: float
    fastest: float
    slowest: float
    #: Why it could not be run; then the times are infinite.
    refused: str = ""


@dataclass
class Table:
    """What was measured for a kernel, the fastest way first."""

    kernel: str
    ranks: int
    target: str
    entries: list[Entry]

    @property
    def best(self) -> dict[str, Any]:
        """Options of the fastest way, for `simulate` and `check`."""
        if not self.entries or self.entries[0].refused:
            raise errors.UsageError(
                f"no way to run {self.kernel} was found: {self.entries[0].refused if self.entries else 'none tried'}"
            )
        first = self.entries[0]
        chosen = {"algorithm": first.algorithm, "protocol": first.protocol, "blocks": first.blocks}
        return {k: v for k, v in chosen.items() if v}

    def save(self, path: str | os.PathLike[str]) -> Path:
        path = Path(path)
        path.write_text(json.dumps(asdict(self), indent=1))
        return path

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Table:
        try:
            fields = json.loads(Path(path).read_text())
            return Table(fields["kernel"], fields["ranks"], fields["target"], [Entry(**e) for e in fields["entries"]])
        except KeyError as error:
            raise errors.UsageError(f"'{path}' is no table of commsir.tune: it has no {error}") from error
        except (OSError, ValueError, TypeError) as error:
            raise errors.UsageError(f"'{path}' is no table of commsir.tune: {error}") from error

    def __repr__(self) -> str:
        lines = [f"{self.kernel}, {self.ranks} ranks on {self.target}"]
        lines.append(f"  {'algorithm':<12}{'protocol':<10}{'blocks':>6}{'µs':>12}{'from':>12}{'to':>12}")
        for e in self.entries:
            way = f"  {e.algorithm or '-':<12}{e.protocol or '-':<10}{e.blocks:>6}"
            lines.append(
                f"{way}  {e.refused}"
                if e.refused
                else f"{way}{e.microseconds:>12.1f}{e.fastest:>12.1f}{e.slowest:>12.1f}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{self!r}</pre>"


def tune(
    kernel: Kernel,
    ranks: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    algorithms: Sequence[str] | None = None,
    protocols: Sequence[str] | None = None,
    blocks: Iterable[int] = (1, 2, 4),
    repetitions: int = 5,
    launches: int = 8,
    target: str = "",
    progress: bool | None = None,
    group: Any = None,
    path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Table:
    """Measures a kernel in every way, in turn at each repetition, so that all ways see the same machine.

    All ranks run in one process and start together; a time is that of a launch over all ranks. Ways that the compiler
    refuses stand at the end of the table with the reason. Without `algorithms` and `protocols` all are tried.
    `progress` shows a line on the terminal (if it is one).

    Where there are processes, as ranks of a `commsir.Group` or of torch.distributed, all of them call this: rank 0
    measures, on all GPUs of the host with `target="cuda"`, the others sleep, and all have the same table, or raise the
    same error. `group` says which ranks; left out it is torch's default group, if there is one; False is this process
    alone. A table in the file `path` is loaded if it is of this kernel, number of ranks and target; else what is
    measured is saved there. Rank 0 does both.
    """
    beside = _agree.ranks_of(group)
    if beside is not None:
        ranks = ranks or beside.ranks
        target = target or beside.target
    target = target or "cpu"

    def work() -> Table:
        if not isinstance(kernel, Kernel):
            raise errors.UsageError(f"tune takes a kernel of @commsir.kernel, not a {type(kernel).__name__}")
        if repetitions < 1 or launches < 1:
            raise errors.UsageError("tune needs at least one repetition and one launch")
        known = _load(path, kernel, ranks, target)
        if known is not None:
            return known
        table = _search(
            kernel, ranks, inputs, algorithms, protocols, blocks, repetitions, launches, target, progress, options
        )
        if path is not None:
            table.save(path)
        return table

    table = _agree.once(beside, "tune", work)
    if table.kernel != kernel.__name__:
        raise errors.DisagreementError(f"rank 0 tunes {table.kernel}, but this rank {kernel.__name__}")
    return table


def _load(path: str | os.PathLike[str] | None, kernel: Kernel, ranks: int | None, target: str) -> Table | None:
    if path is None or not Path(path).exists():
        return None
    table = Table.load(path)
    wanted = (kernel.__name__, table.ranks if ranks is None else ranks, target)
    return table if (table.kernel, table.ranks, table.target) == wanted else None


def _search(
    kernel: Kernel,
    ranks: int | None,
    inputs: Mapping[str, Any] | None,
    algorithms: Sequence[str] | None,
    protocols: Sequence[str] | None,
    blocks: Iterable[int],
    repetitions: int,
    launches: int,
    target: str,
    progress: bool | None,
    options: Mapping[str, Any],
) -> Table:
    # Once as it comes: that what is given fits, and whether there is a collective to choose for.
    first = kernel.simulate(ranks, inputs, target=target, **options)
    collective = bool(first.stats.get("choices"))
    known = _native.doctor() if collective and not (algorithms and protocols) else {}
    choices = (algorithms or known["algorithms"], protocols or known["protocols"]) if collective else (("",), ("",))
    ways = list(itertools.product(*choices, blocks))
    times: dict[tuple[str, str, int], list[float]] = {way: [] for way in ways}
    refused: dict[tuple[str, str, int], str] = {}
    show = sys.stderr.isatty() if progress is None else progress
    for repetition in range(repetitions):
        for i, way in enumerate(ways):
            if way in refused:
                continue
            if show:
                done = repetition * len(ways) + i
                percent, shown = 100 * done // (repetitions * len(ways)), "/".join(map(str, way))
                print(f"\rtune {kernel.__name__}: {percent:3d} % {shown:<30}", end="", file=sys.stderr)
            _measure(kernel, ranks, inputs, way, launches, target, options, times[way], refused)
    if show:
        print(f"\rtune {kernel.__name__}: 100 %{'':<40}", file=sys.stderr)
    entries = [_entry(way, times[way], refused.get(way, "")) for way in ways]
    entries.sort(key=lambda e: (bool(e.refused), e.microseconds))
    if not entries or entries[0].refused:
        why = "\n".join(f"  {'/'.join(map(str, way))}: {said}" for way, said in refused.items())
        raise errors.UsageError(
            f"{kernel.__name__} ran in none of the {len(ways)} ways that were to be measured"
            + (f":\n{why}" if why else ": name an algorithm, a protocol and a number of blocks")
        )
    return Table(kernel.__name__, first.ranks, target, entries)


def _measure(
    kernel: Kernel,
    ranks: int | None,
    inputs: Mapping[str, Any] | None,
    way: tuple[str, str, int],
    launches: int,
    target: str,
    options: Mapping[str, Any],
    times: list[float],
    refused: dict[tuple[str, str, int], str],
) -> None:
    algorithm, protocol, blocks = way
    chosen = {k: v for k, v in (("algorithm", algorithm), ("protocol", protocol)) if v}
    try:
        report = kernel.simulate(
            ranks, inputs, blocks=blocks, launches=launches, target=target, check=not times, **{**options, **chosen}
        )
    except errors.CompileError as error:
        said = error.diagnostics[0].message if error.diagnostics else error.message
        refused[way] = said.splitlines()[0]
        return
    times.append(report.stats["microseconds"] / launches)


def _entry(way: tuple[str, str, int], times: Sequence[float], refused: str) -> Entry:
    if refused or not times:
        return Entry(*way, float("inf"), float("inf"), float("inf"), refused or "not measured")
    return Entry(*way, statistics.median(times), min(times), max(times))
