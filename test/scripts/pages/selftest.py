"""Checks that each kind of fault in a page is found, and that a correct page passes."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from pages.page import Page, read
from pages.reader import Tools

KERNEL = "comms.kernel @nothing() {\n  comms.return\n}\n"

GOOD = f"""# Good

[here](#good) and [there](#what-it-is--says), `docs/Spec.md`, `make help`, `comms-run --ranks 4 --quiet`.
`Machine::report`, `Machine.h`, `noteUnproven` in `lowering/check/Machine.h`,
`COMMSIR_CACHE_DIR`, `commsir_free`, `commsir.torch.stats`, `comms.put`, `comms-check-sync`, `--fuzz-schedules`.

## What it is & says

```mlir title=nothing.mlir
{KERNEL}```
```console
$ export NUMBER=7 && cd docs/..
$ echo seven $NUMBER; echo eight; false
seven …
…
# exit status 1
$ comms-run nothing.mlir --ranks 2 --quiet
```
```sh
for i in 1 2; do
  echo $i
done
```
```text
1
2
```
```python
import os

number = os.environ["NUMBER"]
```

Text in between.

```python
print("a", number, flush=True)
os.system("echo b   7")
```
```text
a 7
b …
```
```mlir refused
comms.kernel @hang(%s: !comms.signal<1>) attributes {{ranks = 2 : i64}} {{
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  %t = comms.wait_signal %s[%c0] ge %one : !comms.signal<1>  // error: deadlock: …; observed 0
  comms.return
}}
```
```c
int one(void);
```
"""

#: What has to be said, and the change to the page that brings it about.
BREAKS = [
    ("has no heading #god", "(#good)", "(#god)"),
    ("there is no Speck.md", "(#good)", "(Speck.md)"),
    ("there is no plot.svg", "Text in between.\n", "![a plot](plot.svg)\n"),
    ("there is no docs/Speck.md", "`docs/Spec.md`", "`docs/Speck.md`"),
    ("the Makefile has no target demos", "`make help`", "`make demos`"),
    ("comms-run has no --rank", "--ranks 4", "--rank 4"),
    ("COMMSIR_CACHES is not a variable", "COMMSIR_CACHE_DIR", "COMMSIR_CACHES"),
    ("commsir_liberate is not a function", "commsir_free", "commsir_liberate"),
    ("commsir.torch.statues is not in Python", "torch.stats", "torch.statues"),
    ("has the name reportify", "Machine::report", "Machine::reportify"),
    ("has the name Machines.h", "`Machine.h`", "`Machines.h`"),
    ("lowering/check/Machine.h has no canCombine", "noteUnproven", "canCombine"),
    ("comms.putt is not an op", "comms.put`", "comms.putt`"),
    ("comms-check-synchrony is not a pass", "comms-check-sync`", "comms-check-synchrony`"),
    ("no program has --", "--fuzz-schedules", "--fuzz-schedules".replace("s", "z")),
    ("the mlir block is refused", "comms.return\n}\n```\n```console", "comms.retur\n}\n```\n```console"),
    ("nothing.mlir is written, and nothing below uses it", "$ comms-run nothing.mlir --ranks 2 --quiet\n", ""),
    ("does not print: seven 8", "seven …", "seven 8"),
    ("more is printed than is shown", "…\n# exit", "# exit"),
    ("exit status 1, not 0", "# exit status 1\n", ""),
    ("output before the first command", "$ export", "export"),
    ("does not print: 3", "1\n2\n```", "1\n3\n```"),
    ("no whole command", "done\n```\n```text", "```\n```text"),
    ("KeyError", 'environ["NUMBER"]', 'environ["NUMERO"]'),
    ("does not print: b 8", "b …", "b 8"),
    ("more is printed than is shown", "```text\na 7\nb …\n```\n", ""),
    ("no error 'deadlock: …; observed 1'", "; observed 0", "; observed 1"),
    ("shows no error", "// error: deadlock", "// says: deadlock"),
    ("does not compile", "int one(void);", "int one(void) { return x; }"),
    ("nobody runs this block (rust)", "```c\n", "```rust\n"),
    ("nobody runs this block (text)", "Text in between.\n", "Words.\n\n```text\nwords\n```\n"),
    ("a block of no language", "```c\n", "```\n"),
    ("indented code", "Text in between.\n", "    make world\n"),
    ("split it into a guide and a reference", "Text in between.\n", "Text in between.\n" * 300),
    ("an indented fence", "Text in between.\n", "- x\n\n  ```sh\n  false\n  ```\n"),
    ("does not build or install", "echo $i", "echo $i\ndone\nmake clean\nfor i in 3; do\n  echo 1; echo 2"),
    ("Python ended with 3", "os.system(", "os._exit(3); os.system("),
]


def run(
    tools: Tools,
    follow_all: Callable[[list[Page], Tools], tuple[int, list[str], set[Any]]],
    static_faults: Callable[[Page, pathlib.Path], list[str]],
) -> int:
    """The exit status."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        pages = []
        for number, (_, old, new) in enumerate([("", "", ""), *BREAKS]):
            if GOOD.count(old) < 1:
                wrong.append(f"{old!r} is not in the page")
            path = pathlib.Path(folder) / f"Page{number}.md"
            path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
            pages.append(read(path))
        _, faults, _ = follow_all(pages, tools)
        for page in pages:
            faults += static_faults(page, tools.binaries)
    for number, (said, _, _) in enumerate([("", "", ""), *BREAKS]):
        mine = [fault for fault in faults if fault.startswith((f"Page{number}.md:", f"Page{number}.md "))]
        if not (any(said in fault for fault in mine) if said else not mine):
            wrong.append(f"Page{number}: expected {said!r}, got {mine}")
    print(*wrong, f"self-test: {len(BREAKS) + 1} pages, {len(wrong)} judged wrongly", sep="\n")
    return 1 if wrong else 0
