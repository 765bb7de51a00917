"""Compiles, checks and simulates kernels that are given as text. The library does the work (`_binding`)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from commsir import errors
from commsir._binding import ask, binding, call, library, library_path, number

if TYPE_CHECKING:
    from commsir._arrays import Array, View

__all__ = [
    "CheckReport",
    "Number",
    "ask",
    "binding",
    "call",
    "check",
    "compile",
    "doctor",
    "library",
    "library_path",
    "load_tables",
    "simulate",
    "version",
]

Number = int | float | bool


def version() -> str:
    """Returns the versions of the library and of the LLVM it was built with."""
    return str(call("version"))


def doctor() -> dict[str, Any]:
    """Describes this machine as the library sees it."""
    return cast("dict[str, Any]", json.loads(str(call("doctor"))))


def load_tables(path: str | os.PathLike[str] | None = None) -> None:
    """Loads measured tables (written by `comms-bench --tune`) from the file `path`, or from all `*.json` files in a
    folder.

    Later choices of algorithm, protocol and launch use these tables first. They replace tables from COMMSIR_TABLES or
    an earlier call. None restores the built-in tables. After an error, nothing has changed.

    On GPUs, all ranks of a group must load the same tables between the same calls. The group compiles its collectives
    again at their next call, which must not be captured in a CUDA graph. Graphs that were captured before keep what
    they captured.
    """
    ask("load_tables", "" if path is None else os.fspath(path))


# ----------------------------------------------------------------------------------------------------------------------
# Compilation
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proof:
    """The checker's result for a kernel that it did not refute, with the assumptions."""

    #: "proven", "not decided" or "not checked".
    verdict: str
    #: The ranks of the world that was followed, and how many of them.
    ranks: int
    followed_ranks: int
    #: Blocks of each rank, and launches.
    blocks: int
    launches: int
    #: Names of what a proof takes for granted (docs/Spec.md, Named assumptions).
    assumptions: tuple[str, ...]
    #: Why the kernel is not proven.
    reasons: tuple[str, ...]
    #: Outputs that hold what the kernel says that it computes.
    computes: tuple[str, ...] = ()
    #: What arrays hold after the first launch, where that was asked for (`explain`): "y[0, 64) of rank 0: x(0) + x(1)".
    computed: tuple[str, ...] = ()
    #: The launches of several kernels that were followed: "a, read x, b, again and again".
    order: str = ""
    #: SHA-256 of the checked kernel as bytecode, in hex.
    digest: str = ""

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Proof:
        """Reads the `proof` of a JSON report."""
        return cls(
            said["verdict"],
            said["ranks"],
            said["followed_ranks"],
            said["blocks"],
            said["launches"],
            tuple(said["assumptions"]),
            tuple(said["reasons"]),
            tuple(said.get("computes", ())),
            tuple(said.get("computed", ())),
            said.get("order", ""),
            said.get("digest", ""),
        )

    @property
    def scope(self) -> str:
        """Describes the simulated world: "4 ranks x 1 block, launches 1 to 3"."""
        ranks = f"{self.ranks} rank{'s' * (self.ranks != 1)}"
        if self.followed_ranks != self.ranks:
            ranks = f"{self.followed_ranks} of {ranks}"
        order = f" of {self.order}" if self.order else ""
        return f"{ranks} x {self.blocks} block{'s' * (self.blocks != 1)}, launches 1 to {self.launches}{order}"

    def __str__(self) -> str:
        return errors.printable(self._text())

    def _text(self) -> str:
        if self.verdict == "proven":
            assumed = f", assuming {', '.join(self.assumptions)}" if self.assumptions else ""
            held = f", and computes {', '.join(self.computes)} as it says" if self.computes else ""
            return f"proven: neither hangs nor races{held} (followed: {self.scope}{assumed})"
        if self.verdict == "not decided":
            followed = f" (followed: {self.scope})" if self.launches else ""
            return "\n  ".join([f"not decided{followed}", *self.reasons])
        return "not checked"


@dataclass(frozen=True)
class CheckReport:
    """The checker's report on a kernel that it did not refute, and the choices for the kernel."""

    kernel: str
    ranks: int
    #: 0: chosen at run time.
    blocks: int
    arguments: tuple[dict[str, Any], ...]
    choices: tuple[dict[str, Any], ...]
    #: Bytes of channel memory of each rank.
    channel_bytes: int
    remarks: tuple[errors.Diagnostic, ...]
    warnings: tuple[errors.Diagnostic, ...]
    #: What the checker says of it.
    proof: Proof

    @property
    def launches(self) -> int:
        """How many launches the checker followed; 0: none."""
        return self.proof.launches

    @property
    def verdict(self) -> str:
        """One of "proven", "not decided" (see `proof.reasons`) and "not checked". A refuted kernel raises
        CheckError."""
        return self.proof.verdict

    @property
    def proven(self) -> bool:
        """True if the kernel neither hangs nor races, on all data and schedules, under `proof.assumptions`."""
        return self.proof.verdict == "proven"

    def __str__(self) -> str:
        lines = [f"{self.kernel}: {self.ranks} rank{'s' * (self.ranks != 1)}: {self.proof}"]
        for choice in self.choices:
            lines.append(f"  {choice['op']}: {choice['algorithm']} over {choice['protocol']}")
        return errors.printable("\n".join([*lines, *map(str, self.warnings)]))


def _request(source: str, options: Mapping[str, Any]) -> str:
    if not isinstance(source, str):
        hint = ": pass its text, path.read_text()" if isinstance(source, os.PathLike) else ""
        raise errors.UsageError(f"the source is a {type(source).__name__}, not a text{hint}")
    if source.endswith((".mlir", ".py")) and len(source.splitlines()) == 1:
        raise errors.UsageError(f"the source is '{source}', a path: pass the text of the kernel, Path(…).read_text()")
    fields = []
    for name, value in {"source": source, **options}.items():
        try:
            fields.append(f"{json.dumps(name)}: {json.dumps(value, allow_nan=False, default=number)}")
        except (TypeError, ValueError) as error:
            raise errors.UsageError(f"the option '{name}' cannot be {value!r}: {error}") from error
    return f"{{{', '.join(fields)}}}"


def _report(source: str, options: Mapping[str, Any]) -> dict[str, Any]:
    _check_shapes(source, options.get("shapes"))
    return cast("dict[str, Any]", json.loads(ask("compile", _request(source, options))))


def _check_shapes(source: str, shapes: Any) -> None:
    """Rejects shapes of arguments that the text does not name. The library would ignore them."""
    if not isinstance(source, str) or not isinstance(shapes, Mapping):
        return  # The library says what is wanted.
    for name in shapes:
        if not re.search(rf'[%"]{re.escape(str(name))}(?![\w$.-])', source):
            raise errors.UsageError(f"shapes has '{name}', but the kernel has no argument '{name}'")


def compile(source: str, *, produce: str, ranks: int = 0, **options: Any) -> str:  # noqa: A001
    """Compiles the kernel of `source`, MLIR text, for `ranks` ranks (0: the kernel's own), and returns the text.

    `produce` is "ir", "lowered" (LLVM dialect), "llvm" (LLVM IR) or "ptx". docs/CApi.md lists the `options`. Raises
    CompileError if the source is wrong, CheckError if the checker refutes it.
    """
    report = _report(source, {"produce": produce, "ranks": ranks, **options})
    if "text" not in report:
        raise errors.UsageError(f'produce="{produce}" gives a report and no text: call check or explain of a kernel')
    return str(report["text"])


def check(source: str, *, ranks: int = 0, launches: int = 0, **options: Any) -> CheckReport:
    """Checks a kernel in MLIR, as `commsir.check` does."""
    report = _report(source, {"produce": "check", "ranks": ranks, "check_launches": launches, **options})
    return CheckReport(
        report["kernel"],
        report["ranks"],
        report["blocks"],
        tuple(report["arguments"]),
        tuple(report["choices"]),
        report["channel_bytes"],
        tuple(map(errors.Diagnostic.read, report["remarks"])),
        tuple(map(errors.Diagnostic.read, report["warnings"])),
        Proof.read(report["proof"]),
    )


# ----------------------------------------------------------------------------------------------------------------------
# Simulation
# ----------------------------------------------------------------------------------------------------------------------


def _views(arrays: Mapping[str, Sequence[Array]], ranks: int) -> dict[str, list[View]]:
    """Converts all arrays for the library, and checks that the arrays of one argument have one type and shape."""
    from commsir._arrays import view

    if not isinstance(arrays, Mapping):
        raise errors.UsageError(
            f'arrays is a {type(arrays).__name__}; it is a dict by argument: {{"x": [one array a rank], …}}'
        )
    made: dict[str, list[View]] = {}
    for name, parts in arrays.items():
        if not hasattr(parts, "__len__") or isinstance(parts, str | bytes):
            raise errors.UsageError(f"argument '{name}' is a {type(parts).__name__}, not a list of one array a rank")
        if ranks and len(parts) != ranks:
            raise errors.UsageError(
                f"argument '{name}' has {len(parts)} arrays for {ranks} ranks; pass one array per rank"
            )
        views = [view(part, f"argument '{name}' of rank {rank}") for rank, part in enumerate(parts)]
        for rank, one in enumerate(views):
            if (one.type, one.shape) != (views[0].type, views[0].shape):
                raise errors.UsageError(
                    f"argument '{name}' is {views[0].type} {views[0].shape} on rank 0, "
                    f"but {one.type} {one.shape} on rank {rank}"
                )
        made[name] = views
    return made


def _plain(value: Any) -> Any:
    """Converts a number of Python, NumPy or torch, including infinities, to a JSON value."""
    if isinstance(value, Sequence) and not isinstance(value, str) or getattr(value, "ndim", 0) == 1:
        return [_plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    return value


def _check_unmodified(name: str, views: Sequence[View]) -> None:
    """Raises UsageError if the kernel has written to a read-only array."""
    for rank, one in enumerate(views):
        if not one.is_unmodified():
            raise errors.UsageError(
                f"the kernel writes argument '{name}', but its array of rank {rank} is read-only: pass a copy of it"
            )


def simulate(
    source: str,
    *,
    ranks: int = 0,
    arrays: Mapping[str, Sequence[Array]] | None = None,
    scalars: Mapping[str, Number | Sequence[Number]] | None = None,
    seed: int | None = None,
    fuzz: int = 0,
    trace: str | os.PathLike[str] | None = None,
    target: str = "cpu",
    **options: Any,
) -> dict[str, Any]:
    """Runs the kernel of `source`, MLIR text, on `ranks` ranks of this process. Returns the report of `comms-run
    --json`.

    `target` is "cpu", or "cuda" for one GPU per rank. `scalars` has one value for all ranks, or one per rank. `arrays`
    has one array per rank for each argument. They are read before the run and written after it. `seed` selects a
    schedule. `fuzz` runs that many schedules and compares their results. `trace` is the path of a Perfetto trace to
    write. docs/CApi.md lists the `options`: blocks, launches, algorithm, protocol, check, max_steps, time_limit, … On
    the CPU, a run without a limit ends after 60 seconds.
    """
    views = _views({} if arrays is None else arrays, ranks)
    request = {
        "ranks": ranks,
        "scalars": {name: _plain(value) for name, value in (scalars or {}).items()},
        "shapes": {name: list(parts[0].shape) for name, parts in views.items() if parts},
        "types": {name: parts[0].type for name, parts in views.items() if parts},
        "seed": seed,
        "fuzz": fuzz,
        "trace": None if trace is None else os.fspath(trace),
        "target": target,
        **options,
    }
    report = simulate_views(source, request, views)
    for name, parts in views.items():
        _check_unmodified(name, parts)
    return report


#: Seconds after which a run on the CPU ends that was given no limit: a loop whose end data decide may have none.
TIME_LIMIT = 60


def simulate_views(source: str, request: Mapping[str, Any], views: Mapping[str, Sequence[View]]) -> dict[str, Any]:
    """Runs `simulate` on arguments that are already converted."""
    from commsir._run import Run

    # A limit of steps alone is none: a loop without waits takes no steps.
    is_limited = request.get("target") != "cpu" or request.get("time_limit") is not None
    request = request if is_limited else {**request, "time_limit": TIME_LIMIT}
    names = [name for name, parts in views.items() for _ in parts]
    places = [rank for parts in views.values() for rank in range(len(parts))]
    tensors = [one.tensor for parts in views.values() for one in parts]
    try:
        text = ask("simulate", _request(source, request), names, places, tensors)
    except errors.CommsError as error:
        error.run = Run.take(source, request, views)
        # What ended by the number of steps is not ended by more time.
        is_over = isinstance(error, errors.LimitError) and f"the limit of {TIME_LIMIT:g} s" in error.message
        if is_over and not is_limited:
            error.message += "\n  give it longer by time_limit=600, or as long as it takes by time_limit=0"
        raise
    return cast("dict[str, Any]", json.loads(text))
