"""Measures which algorithm, protocol and number of blocks is fastest for a kernel."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import operator
import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from commsir import _agree, _files, _native, errors
from commsir._kernel import Kernel

__all__ = ["Entry", "Table", "tune"]

_agree.passes(__name__)


@dataclass(frozen=True)
class Entry:
    """One configuration and its time: the median over the repetitions, in µs per launch."""

    algorithm: str
    protocol: str
    blocks: int
    microseconds: float
    fastest: float
    slowest: float
    #: Why it could not be run; then the times are infinite.
    refused: str = ""


_TIMES = ("microseconds", "fastest", "slowest")


def _read(key: str, value: Any) -> Any:
    return math.inf if key in _TIMES and value is None else value


@dataclass
class Table:
    """The measurements for a kernel, fastest first."""

    kernel: str
    ranks: int
    target: str
    entries: list[Entry]
    #: Of what was measured: the kernel with its sizes, and the ways.
    digest: str = ""

    @property
    def best(self) -> dict[str, Any]:
        """Returns the options of the fastest configuration, for `simulate` and `check`."""
        if not self.entries or self.entries[0].refused:
            raise errors.UsageError(
                f"no config of {self.kernel} can run: {self.entries[0].refused if self.entries else 'none tried'}"
            )
        first = self.entries[0]
        chosen = {"algorithm": first.algorithm, "protocol": first.protocol, "blocks": first.blocks}
        return {k: v for k, v in chosen.items() if v}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the table as JSON to the file `path`, whole or not at all, and returns the path."""
        fields = asdict(self)
        for entry in fields["entries"]:
            # JSON knows no infinity.
            entry.update({key: None for key in _TIMES if math.isinf(entry[key])})
        return _files.write(path, json.dumps(fields, indent=1))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Table:
        """Reads a table that `save` wrote to the file `path`. Raises UsageError if it is something else."""
        try:
            fields = json.loads(_files.read_text(path))
            kernel, ranks, target = (fields[name] for name in ("kernel", "ranks", "target"))
            entries = [Entry(**{k: _read(k, v) for k, v in e.items()}) for e in fields["entries"]]
            return Table(kernel, ranks, target, entries, fields.get("digest", ""))
        except KeyError as error:
            raise errors.UsageError(f"'{path}' is not a table of commsir.tune: it has no {error}") from error
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise errors.UsageError(f"'{path}' is not a table of commsir.tune: {error}") from error

    def __repr__(self) -> str:
        lines = [f"{self.kernel}, {self.ranks} rank{'s' * (self.ranks != 1)} on {self.target}"]
        lines.append(f"  {'algorithm':<12}{'protocol':<10}{'blocks':>6}{'µs':>12}{'from':>12}{'to':>12}")
        for e in self.entries:
            way = f"  {e.algorithm or '-':<12}{e.protocol or '-':<10}{e.blocks:>6}"
            lines.append(
                f"{way}  {e.refused}"
                if e.refused
                else f"{way}{e.microseconds:>12.1f}{e.fastest:>12.1f}{e.slowest:>12.1f}"
            )
        return errors.printable("\n".join(lines))

    def _repr_html_(self) -> str:
        return f"<pre>{self!r}</pre>"


def tune(
    kernel: Kernel,
    ranks: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    algorithms: str | Sequence[str] | None = None,
    protocols: str | Sequence[str] | None = None,
    blocks: int | Iterable[int] = (1, 2, 4),
    repetitions: int = 5,
    launches: int = 8,
    target: str = "",
    progress: bool | None = None,
    group: Any = None,
    path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Table:
    """Measures a kernel in every configuration. Configurations alternate in each repetition, so that all see the same
    machine.

    All ranks run in one process and start together; a time is that of one launch over all ranks. Configurations that
    fail to compile or run appear at the end of the table, with the reason. `algorithms` and `protocols` restrict the
    search, and `blocks` has the numbers of blocks to try. `inputs` is as for `Kernel.simulate`. Each of `repetitions`
    times `launches` launches. `options` are those of `Kernel.simulate`. `progress` shows a line on the terminal, if
    there is one.

    In a program of several processes (ranks of a `commsir.Group` or of torch.distributed), all of them call this. Rank
    0 measures, with `target="cuda"` on all GPUs of the host, while the others sleep. All return the same table or raise
    the same error. `group` selects the ranks: by default torch's default group, if there is one. False selects this
    process alone.

    If the file `path` has a table for this kernel with these sizes, ranks, target and configurations, rank 0 loads it.
    Otherwise rank 0 saves the new measurements there.
    """
    beside = _agree.ranks_of(group)
    if beside is not None:
        ranks = ranks or beside.ranks
        target = target or beside.target
    target = target or "cpu"

    def work() -> Table:
        if not isinstance(kernel, Kernel):
            raise errors.UsageError(f"tune takes a kernel of @commsir.kernel, not a {type(kernel).__name__}")
        if min(_number(repetitions, "repetitions"), _number(launches, "launches")) < 1:
            raise errors.UsageError("tune needs at least one repetition and one launch")
        run = _Run(kernel, ranks, inputs, launches, target, options)
        ways = run.ways(_names(algorithms, "algorithms"), _names(protocols, "protocols"), _blocks(blocks))
        digest = run.digest(ways)
        if path is None:
            return run.search(ways, digest, repetitions, progress)
        known = Table.load(path) if Path(path).exists() else None
        if known is not None and known.digest == digest:
            return known
        _files.check_writable(path)
        table = run.search(ways, digest, repetitions, progress)
        table.save(path)
        return table

    table = _agree.once(beside, "tune", work)
    if table.kernel != kernel.__name__:
        raise errors.DisagreementError(f"rank 0 tunes {table.kernel}, but this rank {kernel.__name__}")
    return table


def _number(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise errors.UsageError(f"{what} is {value!r}, which is not an integer") from None


def _names(given: str | Sequence[str] | None, what: str) -> list[str]:
    """Returns one, several or no names as a list."""
    names = [given] if isinstance(given, str) else given
    if names is not None and (not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names)):
        raise errors.UsageError(f'{what} is {given!r}: give names, as {what}=["…", "…"]')
    return list(names or ())


def _blocks(given: int | Iterable[int]) -> list[int]:
    several = given if isinstance(given, Iterable) else [given]
    return [_number(one, "a number of blocks") for one in several]


_Way = tuple[str, str, int]


class _Run:
    """The measurements of one process."""

    def __init__(
        self,
        kernel: Kernel,
        ranks: int | None,
        inputs: Mapping[str, Any] | None,
        launches: int,
        target: str,
        options: Mapping[str, Any],
    ) -> None:
        for name in ("algorithm", "protocol"):
            if name in options:
                raise errors.UsageError(f"tune chooses the {name}: write {name}s=[{options[name]!r}]")
        self._kernel, self._inputs, self._launches, self._target = kernel, inputs, launches, target
        self._options = dict(options)
        # Once as it comes: that what is given fits, and whether there is a collective to choose for.
        self._first = kernel.simulate(ranks, inputs, target=target, **options)
        self._checks = bool(self._options.pop("check", True))
        self._ranks = self._first.ranks
        self._refused: dict[_Way, str] = {}

    def ways(self, algorithms: list[str], protocols: list[str], blocks: list[int]) -> list[_Way]:
        if not self._first.stats.get("choices"):
            return list(itertools.product([""], [""], blocks))
        known = _native.doctor() if not (algorithms and protocols) else {}
        return list(itertools.product(algorithms or known["algorithms"], protocols or known["protocols"], blocks))

    def digest(self, ways: list[_Way]) -> str:
        options = sorted((name, repr(value)) for name, value in self._options.items())
        text = json.dumps([self._first.kernel.text(), self._ranks, self._target, self._launches, ways, options])
        return hashlib.sha256(text.encode()).hexdigest()

    def search(self, ways: list[_Way], digest: str, repetitions: int, progress: bool | None) -> Table:
        times: dict[_Way, list[float]] = {way: [] for way in ways}
        show, name = sys.stderr.isatty() if progress is None else progress, self._kernel.__name__
        for repetition in range(repetitions):
            for i, way in enumerate(ways):
                if way in self._refused:
                    continue
                if show:
                    percent = 100 * (repetition * len(ways) + i) // (repetitions * len(ways))
                    print(f"\rtune {name}: {percent:3d} % {'/'.join(map(str, way)):<30}", end="", file=sys.stderr)
                self._measure(way, times[way])
        if show:
            print(f"\rtune {name}: 100 %{'':<40}", file=sys.stderr)
        entries = [_entry(way, times[way], self._refused.get(way, "")) for way in ways]
        entries.sort(key=lambda e: (bool(e.refused), e.microseconds))
        if not entries or entries[0].refused:
            why = "\n".join(f"  {'/'.join(map(str, way))}: {said}" for way, said in self._refused.items())
            raise errors.UsageError(
                f"{name} ran with none of the {len(ways)} configs to measure"
                + (f":\n{why}" if why else ": name an algorithm, a protocol and a number of blocks")
            )
        return Table(name, self._ranks, self._target, entries, digest)

    def _measure(self, way: _Way, times: list[float]) -> None:
        algorithm, protocol, blocks = way
        chosen = {k: v for k, v in (("algorithm", algorithm), ("protocol", protocol)) if v}
        try:
            report = self._kernel.simulate(
                self._ranks,
                self._inputs,
                blocks=blocks,
                launches=self._launches,
                target=self._target,
                check=self._checks and not times,
                **{**self._options, **chosen},
            )
        except errors.AbortedError:
            raise
        except errors.CommsError as error:
            # One way that cannot be, or fails, leaves the others.
            said = error.diagnostics[0].message if error.diagnostics else error.message
            self._refused[way] = said.splitlines()[0]
            return
        times.append(report.stats["microseconds"] / self._launches)


def _entry(way: tuple[str, str, int], times: Sequence[float], refused: str) -> Entry:
    if refused or not times:
        return Entry(*way, float("inf"), float("inf"), float("inf"), refused or "not measured")
    return Entry(*way, statistics.median(times), min(times), max(times))
