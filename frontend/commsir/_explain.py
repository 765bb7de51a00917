"""Reports the choices that were made for a kernel, as a printable table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from commsir import _native, errors

__all__ = ["Explanation", "explain"]

# How the library says that a pass has chosen something: of which op, and why.
_REMARK = re.compile(
    r'\[(?P<kind>\w+)\] (?P<op>\S+) \| Category:\S+ \| (?:Function=\S+ \| )?Remark="(?P<why>.*)"', re.DOTALL
)
_BITS = re.compile(r"\d+")


class Explanation(dict[str, Any]):
    """The report of `explain`, a dict with kernel, ranks, blocks, arguments, choices, channel_bytes, remarks and
    warnings.

    It prints as a table. If the checker refutes the kernel, `refusal` has the reason; otherwise it is None.
    """

    refusal: errors.CheckError | None = None
    #: Says what the library says in the words of the kernel's language.
    words: Callable[[str], str] = staticmethod(lambda text: text)

    def __str__(self) -> str:
        blocks = (
            f"{self['blocks']} block{'s' * (self['blocks'] != 1)} each" if self["blocks"] else "any number of blocks"
        )
        parts = [f"{self['kernel']}: {self['ranks']} rank{'s' * (self['ranks'] != 1)}, {blocks}", self._verdict()]
        parts += [_table(("argument", "kind", "type", "shape", "bytes"), [_argument(one) for one in self["arguments"]])]
        if self["choices"]:
            keys = ("op", "algorithm", "protocol", "tiles", "tile")
            rows = [tuple(str(one[key]) for key in keys) for one in self["choices"]]
            parts += [_table(("collective", "algorithm", "protocol", "tiles", "elements"), rows)]
            parts += [f"channel memory: {self['channel_bytes']:,} bytes a rank"]
        if self.refusal is None:
            parts += [f"computes: {line}" for line in self["proof"].get("computed", ())]
        reasons = [self._reason(errors.Diagnostic.read(one).message) for one in self["remarks"]]
        parts += [f"why: {reason}" for reason in dict.fromkeys(reasons)]
        parts += [f"warning: {self.words(errors.Diagnostic.read(one).message)}" for one in self["warnings"]]
        return errors.printable("\n".join(parts))

    __repr__ = __str__

    def _verdict(self) -> str:
        if self.refusal is not None:
            return "\n".join("  " + line for line in str(self.refusal).splitlines())
        return "\n".join("  " + self.words(line) for line in str(_native.Proof.read(self["proof"])).splitlines())

    def _reason(self, said: str) -> str:
        found = _REMARK.fullmatch(said)
        return f"{found['op']}: {self.words(found['why'])}" if found else self.words(said)


def _argument(one: dict[str, Any]) -> tuple[str, ...]:
    shape: list[int] = one["shape"]
    bits = _BITS.search(one["type"])
    size = math.prod(shape) * int(bits[0]) // 8 if bits and shape and min(shape) >= 0 else 0
    sizes = " x ".join("?" if d < 0 else str(d) for d in shape)
    return one["name"], one["kind"], one["type"], sizes, f"{size:,}" if size else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join("  " + line.rstrip() for line in lines)


def explain(source: str, *, ranks: int = 0, **options: Any) -> Explanation:
    """Explains the choices for a kernel: its arguments, the algorithms, and the passes' remarks.

    `source` is MLIR text, `ranks` the number of ranks (0: the kernel's own). `options` are those of `compile`: blocks,
    algorithm, protocol, chip, threads, cluster. The result prints as a table. If the checker refutes the kernel, the
    result includes the reason. Raises CompileError if the text is wrong.
    """
    request = {"produce": "explain", "ranks": ranks, **options}
    try:
        return Explanation(_native._report(source, request))
    except errors.CheckError as refusal:
        made = Explanation(_native._report(source, {**request, "check": False}))
        made.refusal = refusal
        return made
