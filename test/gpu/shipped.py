"""The kernels of test/examples and test/exec as cases, with the inputs, flags and expectations of their RUN lines.

RUN lines are parsed as lit parses them. Commands that make arrays and texts (arrays.py, make.py, bits.py, sed) run
before the cases of their file. Each run of comms-run is a case, and a sweep is one case per combination. Runs that must
fail (`not comms-run`) test the CPU world's messages, and are no cases.
"""

import argparse
import importlib.util
import itertools
import pathlib
import re
import shlex
import subprocess
import sys

from cases import ROOT, Cases

#: Options of comms-run in RUN lines: those of the reference, those of both targets, and those that belong to the CPU
#: world or say how to report.
TOLERANCE = {"--rtol": 1, "--atol": 1, "--bitwise": 0}
COMMON = {"--kernel": 1, "--launches": 1, "--first-launch": 1, "--blocks": 1, "--algorithm": 1, "--protocol": 1}
DROPPED = {"--fuzz-schedules": 1, "--output": 1, "--seed": 1, "--quiet": 0, "--instrument": 0}
#: Combinations of a sweep that the quick level takes.
FEW = 2


class Script:
    """What makes the files of runs, in a folder of its own."""

    def __init__(self, folder: pathlib.Path, commands: list[str]) -> None:
        self.folder, self.commands = folder, commands

    def run(self) -> str:
        """What went wrong, or ""."""
        self.folder.mkdir(parents=True)
        for command in self.commands:
            done = subprocess.run(command, shell=True, capture_output=True, text=True)
            if done.returncode:
                return f"{command}\n    ended with status {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
        return ""


def lacks_types() -> bool:
    """Whether this Python has no ml_dtypes, in which some expectations of narrow floats are computed."""
    return importlib.util.find_spec("ml_dtypes") is None


class Test:
    """One file: its RUN lines, in order."""

    def __init__(self, path: pathlib.Path, cases: Cases, number: int) -> None:
        self.path, self.cases, self.number = path, cases, number
        self.text = self.fit(path.read_text())
        kernel = re.search(r"comms\.kernel\s+@\w+\s*\(((?:[^()]|\([^()]*\))*)\)\s*(attributes\s*\{[^}]*\})?", self.text)
        if not kernel:
            raise ValueError(f"{path}: no kernel is found in it")
        arguments = re.findall(r"%(\w+)\s*:\s*([^,%]+(?:<[^>]*>)?)", kernel[1])
        self.arrays = [name for name, kind in arguments if "window" in kind or "memref" in kind]
        self.attributes = kernel[2] or ""
        self.scripts = 0
        self.makers: list[str] = []
        self.script: Script | None = None
        #: Whether a run takes what `script` makes.
        self.used = False

    def fit(self, text: str) -> str:
        """With the ranks that there are, where a kernel is for any number: all it has is all-reduces."""
        inside = {"kernel", "window", "team", "return", "yield", "row_reduce", "broadcast_row", "iota", "splat"}
        most = max(self.cases.ranks)
        found = re.search(r"--ranks[= ](\d+)", text)
        if found and int(found[1]) > most and set(re.findall(r"comms\.(\w+)", text)) - inside == {"all_reduce"}:
            return re.sub(r"--ranks[= ]\d+", f"--ranks {most}", text)
        return text

    def read(self) -> None:
        found = re.findall(r"^// RUN:\s?(.*)$", self.text, re.M)
        for line in re.sub(r"\\\n", " ", "\n".join(found)).splitlines():
            for command in line.split(" && "):
                self.command(command.strip())

    def command(self, command: str) -> None:
        first = command.split()[0]
        if first in ("rm", "not") or " -c " in command:
            return
        if first == "comms-run":
            self.run(self.words(command)[1:])
        elif "/sweep.py " in command:
            self.sweep(self.words(command)[2:])
        elif first in ("sed", "%python"):
            self.prepare(command)
        else:
            raise ValueError(f"{self.path}: run.py cannot read the RUN line '{command}'")

    def words(self, command: str) -> list[str]:
        return shlex.split(self.fill(command.split(" | ")[0]))

    def fill(self, command: str) -> str:
        """With lit's substitutions."""
        folder = self.script.folder if self.script else self.cases.folder
        values = {"%python": sys.executable, "%s": self.path, "%S": self.path.parent, "%t": folder, "%%": "%"}
        return re.sub(r"%python\b|%%|%[sSt]\b", lambda match: str(values[match[0]]), command)

    def prepare(self, command: str) -> None:
        makes_arrays = command.startswith("%python")
        if makes_arrays and self.is_lacking():
            return
        self.makers.append(command)
        # Arrays that are made behind a run may have the names of those that it takes: in another folder, then.
        if self.script and not (makes_arrays and self.used):
            self.script.commands.append(self.fill(command))
            return
        self.script, self.used = Script(self.cases.folder / f"t{self.number}-{self.scripts}", []), False
        self.script.commands = [self.fill(maker) for maker in self.makers]
        self.scripts += 1

    def is_lacking(self) -> bool:
        """Whether its arrays cannot be made here."""
        return lacks_types() and bool(re.search(r"RUN:.*(bf16|\bf8\b|bits\.py)", self.text))

    def sweep(self, words: list[str]) -> None:
        parser = argparse.ArgumentParser()
        for name in ("--algorithms", "--protocols", "--blocks"):
            parser.add_argument(name, default="1" if name == "--blocks" and "--blocks" not in words else "")
        options, rest = parser.parse_known_args(words)
        lists = (options.algorithms.split(","), options.protocols.split(","), options.blocks.split(","))
        every = list(itertools.product(*lists))
        if not self.cases.full:
            # Others of each file; one of them with the last number of blocks.
            every = [every[(self.number * 7 + i * (len(every) // 2 + 1)) % len(every)] for i in range(FEW)][
                : len(every)
            ]
        for algorithm, protocol, blocks in every:
            chosen = (("--algorithm", algorithm), ("--protocol", protocol), ("--blocks", blocks))
            self.run([*rest, *(word for pair in chosen if pair[1] for word in pair)])

    def run(self, words: list[str]) -> None:
        """One run of comms-run."""
        words = [part for word in words for part in (word.split("=", 1) if re.match(r"--[a-z-]+=", word) else [word])]
        given: dict[str, list[str]] = {}
        source, index = self.path, 0
        while index < len(words):
            word = words[index]
            takes = {**TOLERANCE, **COMMON, **DROPPED, "--ranks": 1, "--input": 1, "--expect": 1}.get(word)
            if takes is None and word.startswith("-"):
                raise ValueError(f"{self.path}: run.py does not know the option {word} of comms-run")
            if takes is None:
                source = pathlib.Path(word)
            else:
                given.setdefault(word, []).append(words[index + 1] if takes else "")
            index += 1 + (takes or 0)
        self.add(source, given)

    def add(self, source: pathlib.Path, given: dict[str, list[str]]) -> None:
        attribute = re.search(r"\branks\s*=\s*(\d+)", self.attributes)
        ranks = int(given["--ranks"][0] if "--ranks" in given else attribute[1] if attribute else 0)
        if "--blocks" not in given and "blocks" not in self.attributes:
            given["--blocks"] = ["1"]
        way = [given[name][0] for name in ("--kernel", "--algorithm", "--protocol") if name in given]
        words = [f"{self.path.parent.name}/{self.path.name}", *([source.stem] if source != self.path else []), *way]
        name = " ".join([*words, *(f"b{blocks}" for blocks in given.get("--blocks", [])), f"r{ranks}"])
        if ranks > max(self.cases.ranks):
            self.cases.left_out.append(name)
            return
        expects = given.get("--expect", [])
        inputs = given.get("--input", [])
        own_order = "ring" in way and "comms.all_reduce" in self.text and "--bitwise" not in given
        if self.is_lacking():
            inputs = [self.at_random(binding, number) for number, binding in enumerate(inputs)]
            expects = []
            if own_order:
                raise ValueError(f"{self.path}: without ml_dtypes nothing says what its rings have to give")
        self.used = True
        tolerance = [word for flag in TOLERANCE for value in given.get(flag, []) for word in (flag, value) if word]
        self.cases.add(
            name=name,
            group=self.path.parent.name,
            source=source,
            ranks=ranks,
            inputs=inputs,
            outputs=list(dict.fromkeys([*self.arrays, *(binding.split("=")[0] for binding in expects)])),
            common=[word for flag in COMMON for value in given.get(flag, []) for word in (flag, value)],
            expects=expects,
            tolerance=tolerance if expects else [],
            own_order=own_order,
            # Multicast is off unless asked for.
            gpu_status=2 if "comms.multimem " in self.text else 0,
            error_says="multicast" if "comms.multimem " in self.text else "",
            at_random=self.is_lacking(),
            script=self.script,
        )

    @staticmethod
    def at_random(binding: str, number: int) -> str:
        name, value = binding.split("=", 1)
        return f"{name}=random:{number + 1}" if "/" in value else binding


def add_shipped(cases: Cases) -> None:
    """The kernels of test/examples and test/exec."""
    paths = [*(ROOT / "test/examples").glob("*.mlir"), *(ROOT / "test/exec").glob("*.mlir")]
    for number, path in enumerate(sorted(paths)):
        Test(path, cases, number).read()
