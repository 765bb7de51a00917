"""Follows a page as a reader would: writes its files, types its commands, runs its Python.

This happens in an empty folder that shows the project's files, so that commands for the project's folder and for a
folder of the reader both work. `export` and `cd` last until the end of the page. All blocks of Python share one
interpreter and its definitions.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import multiprocessing
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from pages import commands
from pages.exceptions import NOT_RUN, STAND_INS, NotRun
from pages.page import Block, Command, Page, differs

ROOT = commands.ROOT
FORK = multiprocessing.get_context("fork")
STRICT = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


@dataclass(frozen=True)
class Tools:
    """Where the programs are, and the environment that has them on its path."""

    binaries: pathlib.Path
    build: pathlib.Path
    compiler: str
    environment: dict[str, str]
    #: Only what the list of exceptions calls slow is run.
    slow: bool = False


class Reader:
    """One page. `ran` counts what was run; `faults` says what is not as the page says."""

    def __init__(self, page: Page, tools: Tools, folder: pathlib.Path) -> None:
        self.page, self.tools, self.folder = page, tools, folder
        self.where = folder
        (folder / ".home").mkdir()
        self.environment = tools.environment | {"HOME": str(folder / ".home")}
        self.faults: list[str] = []
        self.used: set[NotRun] = set()
        self.ran = 0
        self.titles: dict[str, int] = {}
        self._session: tuple[Any, Connection] | None = None
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "build"):
                (folder / entry.name).symlink_to(entry)
        (folder / "build").symlink_to(tools.build)

    def read(self) -> None:
        for block in self.page.blocks:
            try:
                if self.tools.slow:
                    self._slow_commands(block)
                else:
                    self._block(block)
            except Exception:
                self._wrong(block.line, traceback.format_exc())
        for title, line in self.titles.items():
            self._wrong(line, f"{title} is written, and nothing below uses it")
        self._end_session()

    def _wrong(self, line: int, said: str) -> None:
        said = said.rstrip()
        if len(said) > 4000:
            said = f"{said[:2000]}\n  …\n{said[-2000:]}"
        self.faults.append(f"{self.page.name}:{line}: {said}")

    def _block(self, block: Block) -> None:
        self.titles = {title: line for title, line in self.titles.items() if not _uses(block.text, title)}
        if block.title:
            (self.where / block.title).write_text(block.text, encoding="utf-8")
            self.titles[block.title] = block.line
        if block.language not in ("console", "sh") and self._excused(block.text, block.line):
            return
        runs: dict[str, Callable[[Block], None]] = {
            "console": self._commands,
            "sh": self._commands,
            "python": self._python,
            "mlir": self._mlir,
            "c": functools.partial(self._compiled, ["-std=c11", "-pedantic"]),
            "cpp": functools.partial(self._compiled, ["-std=c++20"]),
        }
        run = runs.get(block.language)
        if run and not (block.title and block.language == "python"):
            self.ran += 1
            run(block)
        elif not block.title:
            self._wrong(block.line, f"nobody runs this block ({block.language or 'no language'}); see {NOTE}")

    def _excuse(self, text: str) -> NotRun | None:
        return next((one for one in NOT_RUN if one.page == self.page.name and text.startswith(one.starts)), None)

    def _excused(self, text: str, line: int) -> bool:
        """Whether it is on the list of what is not run; then what it names has to be there."""
        excuse = self._excuse(text)
        if not excuse:
            return False
        self.used.add(excuse)
        if excuse.by:
            by = ROOT / excuse.by
            wanted = excuse.words or (self.page.name,)
            has = by.read_text(encoding="utf-8") if by.is_file() else ""
            self.faults += [
                f"{self.page.name}:{line}: {excuse.by} says nothing of '{word}'" for word in wanted if word not in has
            ]
            self.faults += [
                f"{self.page.name}:{line}: the block lacks '{word}'"
                for word in excuse.words
                if excuse.reason == "quoted" and word not in text
            ]
        return True

    def _slow_commands(self, block: Block) -> None:
        for command in block.commands:
            excuse = self._excuse(command.text)
            if excuse and excuse.reason == "slow":
                self.used.add(excuse)
                self.ran += 1
                self._command(command, block.line)

    def _commands(self, block: Block) -> None:
        for command in block.commands:
            if self._excused(command.text, block.line):
                for fault in commands.faults(command.text, self.tools.binaries):
                    self._wrong(block.line, fault)
            else:
                self._command(command, block.line)

    def _command(self, command: Command, line: int) -> None:
        text = command.text
        for stand_in in STAND_INS:
            if stand_in.page == self.page.name:
                text = re.sub(stand_in.shown, stand_in.run, text)
        if re.match(GUARDED, text):
            self._wrong(line, f"$ {text}: a test does not build or install; see {NOTE}")
            return
        status, printed = self._shell(text)
        said = ""
        if status != command.status:
            said += f"\n  exit status {status}, not {command.status}"
        if command.expected is not None and (missing := differs(command.expected, printed)):
            said += f"\n  does not print: {missing}"
        if said:
            self._wrong(line, f"$ {command.text}{said}\n  printed:\n{printed}")

    def _shell(self, text: str) -> tuple[int, str]:
        """Runs a command of the shell; the next one finds its environment and folder."""
        state = self.folder / ".state"
        script = f"{text}\nstatus=$?; {{ pwd; env -0; }} > {shlex.quote(str(state))}; exit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.where,
            env=self.environment | {"PET_MASTER_PORT": str(_free_port())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if state.exists():
            where, _, rest = state.read_bytes().partition(b"\n")
            self.where = pathlib.Path(os.fsdecode(where))
            pairs = [os.fsdecode(entry).partition("=") for entry in rest.split(b"\0") if entry]
            self.environment = {name: value for name, _, value in pairs}
            state.unlink()
        return done.returncode, done.stdout

    def _python(self, block: Block) -> None:
        if not self._session:
            ours, theirs = FORK.Pipe()
            process = FORK.Process(target=_serve, args=(theirs, ours, self.environment, self.where))
            process.start()
            theirs.close()
            self._session = process, ours
        process, pipe = self._session
        file = self.folder / f".{self.page.path.stem}-{block.line}.py"
        file.write_text(block.text, encoding="utf-8")
        pipe.send(str(file))
        try:
            error, printed = pipe.recv()
        except EOFError:
            process.join()
            self._session = None
            self._wrong(block.line, f"Python ended with {process.exitcode}")
            return
        if error:
            self._wrong(block.line, f"{error}  printed:\n{printed}")
        elif missing := differs(block.shown or "", printed):
            self._wrong(block.line, f"does not print: {missing}\n  printed:\n{printed}")

    def _end_session(self) -> None:
        if self._session:
            process, pipe = self._session
            pipe.send(None)
            process.join(30)
            if process.is_alive():
                process.kill()

    def _mlir(self, block: Block) -> None:
        if self.page.name == "Spec.md":
            return  # spec-coverage.py runs its examples.
        refused = "refused" in block.words
        command = [str(self.tools.binaries / "comms-opt"), "-", "-o", os.devnull]
        if refused:
            command.append("--comms-check-sync")
        done = subprocess.run(command, input=block.text, capture_output=True, text=True, env=self.environment)
        if not refused:
            if done.returncode:
                self._wrong(block.line, f"the mlir block is refused: {done.stderr}")
            return
        shown = 0
        for number, line in enumerate(block.text.splitlines(), 1):
            if "// error: " in line:
                shown += 1
                text = line.partition("// error: ")[2]
                pattern = rf"<stdin>:{number}:\d+: error: .*" + ".*".join(map(re.escape, text.split("…")))
                if not re.search(pattern, done.stderr):
                    self._wrong(block.line + number, f"no error '{text}'; what is said:\n{done.stderr}")
        if not shown or not done.returncode:
            self._wrong(block.line, "it is marked as refused, and " + ("not" if shown else "shows no error"))

    def _compiled(self, flags: list[str], block: Block) -> None:
        language = "c" if block.language == "c" else "c++"
        command = [self.tools.compiler, "-x", language, *flags, *STRICT, f"-I{ROOT}", "-"]
        done = subprocess.run(command, input=block.text, capture_output=True, text=True)
        if done.returncode:
            self._wrong(block.line, f"does not compile:\n{done.stderr}")


#: What is never typed by a test: it builds or installs.
GUARDED = r"^(sudo |apt|make|pip|cmake|ninja|git )"
NOTE = "test/scripts/pages/exceptions.py"


def _free_port() -> int:
    """Where ranks of torchrun meet: several pages are read at a time, and its own default is one port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _uses(text: str, title: str) -> bool:
    """Whether a block names a file, or imports it."""
    return title in text or bool(re.search(rf"^ *(from|import) {pathlib.PurePath(title).stem}\b", text, re.M))


def _settle(environment: dict[str, str], where: pathlib.Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(where)


def _serve(pipe: Connection, theirs: Connection, environment: dict[str, str], where: pathlib.Path) -> None:
    """Runs blocks of Python, one after the other, in one set of names."""
    theirs.close()
    _settle(environment, where)
    sys.argv = ["page.py"]
    sys.path.insert(0, "")
    names: dict[str, Any] = {"__name__": "page"}
    while file := pipe.recv():
        error = ""
        with _printed() as read:
            try:
                text = pathlib.Path(file).read_text(encoding="utf-8")
                linecache.checkcache(file)
                exec(compile(text, file, "exec"), names)
            except BaseException:
                error = traceback.format_exc()
        pipe.send((error, read()))


@contextlib.contextmanager
def _printed() -> Iterator[Any]:
    """What this process, its library in C++ and its children print meanwhile."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(1)
        sys.stdout.flush()
        os.dup2(file.fileno(), 1)

        def read() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            kept: list[str] = []
            yield lambda: kept[0]
        finally:
            sys.stdout.flush()
            os.dup2(before, 1)
            os.close(before)
            kept.append(read())
