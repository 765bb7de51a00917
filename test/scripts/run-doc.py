"""Follows pages of documentation as a reader would, and reports each difference from what they show.

Usage: run-doc.py --build BUILD PAGE.md… [--with-torch | --without-torch] [--links | --slow]
       run-doc.py --build BUILD --self-test

pages/page.py defines blocks and shown output; pages/exceptions.py lists what is not run, and why. Faults are also: a
block that nothing runs, a broken link, and a command between backticks with an unknown flag. --with-torch selects the
pages that import torch, --without-torch the others.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import faulthandler
import importlib.util
import multiprocessing
import os
import pathlib
import signal
import sys
import tempfile
import time
from typing import Any

from pages import commands, links, names, selftest
from pages.exceptions import NOT_RUN
from pages.page import LONGEST, Page, read
from pages.reader import Reader, Tools

ROOT = commands.ROOT
FORK = multiprocessing.get_context("fork")
#: Seconds for a page, and for one of which only slow commands are run; a loaded machine needs a tenth of it.
PATIENCE, SLOW_PATIENCE = 240, 1200


def environment_of(build: pathlib.Path, cache: pathlib.Path) -> dict[str, str]:
    """That of a reader who has typed the README's `export PATH`, and nothing else that decides what Python finds: the
    package is the one that `make setup` has installed."""
    path = [str(build / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COMMSIR_CACHE_DIR": str(cache),
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(build / "matplotlib"),  # Its list of fonts takes seconds to make.
        "OMP_NUM_THREADS": "1",  # Else torchrun says that it sets it.
    }
    for name in ("PYTHONPATH", "COMMSIR_LIBRARY"):
        environment.pop(name, None)
    if build != ROOT / "build":
        environment["COMMSIR_LIBRARY"] = str(build / "lib")
    return environment


def follow(page: Page, tools: Tools, pipe: Any) -> None:
    """In a process of its own: reads the page, and tells what came of it. SIGUSR1 shows where it is."""
    os.setpgid(0, 0)
    faulthandler.register(signal.SIGUSR1, file=os.dup(2))
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(page, tools, pathlib.Path(folder).resolve())
        reader.read()
    pipe.send((reader.ran, reader.faults, reader.used))


def show_where(group: int) -> None:
    """Has every process of a group that was forked here say where its Python is, one after the other."""
    for status in sorted(pathlib.Path("/proc").glob("[0-9]*/stat")):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            forked = "run-doc" in (status.parent / "cmdline").read_text()
            if int(fields[2]) == group and forked:
                print(f"-- process {status.parent.name}", file=sys.stderr, flush=True)
                os.kill(int(status.parent.name), signal.SIGUSR1)
                time.sleep(0.5)


def follow_all(pages: list[Page], tools: Tools, jobs: int = 2) -> tuple[int, list[str], set[Any]]:
    """Number of blocks that ran, what is wrong, and the entries of the list of exceptions that were met."""
    ran = 0
    faults: list[str] = []
    used: set[Any] = set()
    waiting = list(pages)
    running: dict[str, Any] = {}
    patience = SLOW_PATIENCE if tools.slow else PATIENCE
    while waiting or running:
        while waiting and len(running) < jobs:
            page = waiting.pop(0)
            ours, theirs = FORK.Pipe(duplex=False)
            process = FORK.Process(target=follow, args=(page, tools, theirs))
            process.start()
            theirs.close()
            running[page.name] = (process, ours, time.monotonic())
        for name, (process, pipe, begun) in list(running.items()):
            late = time.monotonic() - begun > patience
            if not late and not pipe.poll(0.02):
                continue
            del running[name]
            try:
                if late:
                    show_where(process.pid)
                    os.killpg(process.pid, signal.SIGKILL)
                    raise EOFError
                count, wrong, entries = pipe.recv()
                ran, faults, used = ran + count, faults + wrong, used | entries
            except EOFError:
                faults.append(f"{name}: " + ("has not ended" if late else "its reader died"))
            process.join()
            print(f"{name}: {time.monotonic() - begun:.1f} s")
    return ran, faults, used


def static_faults(page: Page, binaries: pathlib.Path) -> list[str]:
    """What can be seen without running anything."""
    wrong: list[str] = [] if page.generated or page.dated else list(page.faults)
    wrong += links.faults(page.path, page.text)
    if not page.dated:
        wrong += [f"{page.name}: {fault}" for fault in commands.in_prose(page.text, binaries)]
    lines = page.text.count("\n")
    if lines > LONGEST and not (page.generated or page.dated or page.reference):
        wrong.append(f"{page.name}: {lines} lines, at most {LONGEST}: split it into a guide and a reference")
    if not (page.generated or page.dated):
        wrong += names.faults(page.name, page.text, binaries)
    return wrong


def forget_python_path() -> None:
    """Takes back what PYTHONPATH has put on the path: readers have none."""
    for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        if folder in sys.path[1:]:
            sys.path.remove(folder)


def installation_fault() -> str:
    """What keeps a reader's Python from the package of this checkout; empty: nothing."""
    found = importlib.util.find_spec("commsir")
    where = pathlib.Path(found.origin).parent if found and found.origin else None
    if where == ROOT / "frontend" / "commsir":
        return ""
    return f"{sys.executable} finds commsir in {where}, not in {ROOT / 'frontend'}: run make setup"


def prepare(build: pathlib.Path, cache: pathlib.Path, with_torch: bool) -> Tools:
    """The environment; modules are imported here once, and readers are forked from this process."""
    environment = environment_of(build, cache)
    os.environ.clear()
    os.environ.update(environment)
    import numpy  # noqa: F401

    if with_torch:
        import torch.distributed.run  # noqa: F401
    return Tools(build / "bin", build, os.environ.get("CC", "cc"), environment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--links", action="store_true", help="run nothing: links, files and commands in prose")
    parser.add_argument("--slow", action="store_true", help="only the commands that pages/exceptions.py calls slow")
    parser.add_argument("--with-torch", action="store_true")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--self-test", action="store_true", help="see that each kind of fault is noticed")
    options = parser.parse_args()
    build = options.build.resolve()
    pages = [read(path.resolve()) for path in options.pages]
    if options.links:
        faults = [fault for page in pages for fault in static_faults(page, build / "bin")]
        print(*faults, f"{len(pages)} pages, {len(faults)} faults", sep="\n")
        return 1 if faults or not pages else 0

    pages = [page for page in pages if not page.generated]
    if options.slow:
        slow = {entry.page for entry in NOT_RUN if entry.reason == "slow"}
        pages = [page for page in pages if page.name in slow]
    if options.with_torch or options.without_torch:
        pages = [page for page in pages if page.needs_torch == options.with_torch]
    forget_python_path()
    if fault := installation_fault():
        sys.exit(f"run-doc.py: error: {fault}")
    with tempfile.TemporaryDirectory() as cache:
        tools = prepare(build, pathlib.Path(cache), any(page.needs_torch for page in pages))
        if options.self_test:
            status: int = selftest.run(tools, follow_all, static_faults)
            return status
        tools = dataclasses.replace(tools, slow=options.slow)
        ran, faults, used = follow_all(pages, tools, jobs=1 if options.slow else 2)
    names = {page.name for page in pages}
    faults += [
        f"pages/exceptions.py: nothing in {entry.page} begins with '{entry.starts}'"
        for entry in NOT_RUN
        if entry.page in names and entry not in used and options.slow in (False, entry.reason == "slow")
    ]
    print(*faults, f"{ran} blocks of {len(pages)} pages run, {len(faults)} faults", sep="\n")
    return 1 if faults or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
