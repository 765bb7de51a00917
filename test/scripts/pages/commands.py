"""Examines commands that cannot run here: their programs, flags, targets, modules and files must exist."""

from __future__ import annotations

import functools
import pathlib
import re
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Folders in which a path of a command may be looked up.
PLACES = (ROOT, ROOT / "frontend")


def faults(command: str, binaries: pathlib.Path) -> list[str]:
    """What is wrong with a line of the shell, as far as can be seen without running it."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError as error:
        return [f"`{command}`: {error}"]
    wrong: list[str] = []
    part: list[str] = []
    for word in [*words, ";"]:
        if word in ("&&", "||", "|", ";", "&", "do", "then"):
            wrong += _program(part, binaries)
            part = []
        else:
            part.append(word)
    return [f"`{command}`: {fault}" for fault in wrong]


def _program(words: list[str], binaries: pathlib.Path) -> list[str]:
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    if not words:
        return []
    program, arguments = pathlib.PurePath(words[0]).name, words[1:]
    if program == "torchrun":
        return _program(["python", *_after_torchrun(arguments)], binaries)
    if program in ("python", "python3"):
        return _python(arguments, binaries)
    if program == "make":
        targets = [word for word in arguments if not re.match(r"-|\w+=", word)]
        return [f"the Makefile has no target {target}" for target in targets if target not in _targets()]
    if program.startswith("comms-") and (binaries / program).exists():
        return _unknown(arguments, _help(binaries / program), program)
    if "/" in words[0] and not words[0].startswith(("/", "build/", "~")):
        return _script(pathlib.PurePosixPath(words[0]), arguments)
    return []


def _after_torchrun(arguments: list[str]) -> list[str]:
    """The program that torchrun starts, as arguments of Python."""
    while arguments and arguments[0].startswith("-"):
        if arguments[0] in ("-m", "--module"):
            return arguments
        if arguments[0] == "--no-python":
            return ["--", *arguments[1:]]
        takes = "=" not in arguments[0] and arguments[0] not in ("--standalone",)
        arguments = arguments[2 if takes else 1 :]
    return arguments


def _python(arguments: list[str], binaries: pathlib.Path) -> list[str]:
    if not arguments or arguments[0] == "-c":
        return []
    if arguments[0] == "--":
        return _program(arguments[1:], binaries)
    if arguments[0] == "-m" and len(arguments) > 1:
        if not arguments[1].startswith("commsir"):
            return []
        path = arguments[1].replace(".", "/")
        if (ROOT / "frontend" / path).is_dir():
            path += "/__main__"
        return _script(pathlib.PurePosixPath(f"frontend/{path}.py"), arguments[2:])
    return _script(pathlib.PurePosixPath(arguments[0]), arguments[1:]) if "/" in arguments[0] else []


def _script(path: pathlib.PurePosixPath, arguments: list[str]) -> list[str]:
    """A script of the project; flags have to stand in its text, or in that of what it imports."""
    found = next((place / path for place in PLACES if (place / path).exists()), None)
    if not found:
        return [f"there is no {path}"]
    text = found.read_text(encoding="utf-8")
    for module in re.findall(r"^\s*from ((?:commsir|\.)[\w.]*) import (\w+)", text, re.M):
        text += _imported(found, *module)
    return _unknown(arguments, text, str(path))


def _imported(file: pathlib.Path, module: str, name: str) -> str:
    base = file.parent if module.startswith(".") else ROOT / "frontend"
    path = base / module.strip(".").replace(".", "/")
    candidates = (path.with_suffix(".py") if module.strip(".") else path, path / f"{name}.py")
    return "".join(one.read_text(encoding="utf-8") for one in candidates if one.is_file())


def _unknown(arguments: list[str], text: str, program: str) -> list[str]:
    flags = [word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)]
    return [f"{program} has no {flag}" for flag in flags if not re.search(rf"(?<![\w-]){flag}(?![\w-])", text)]


@functools.cache
def _help(program: pathlib.Path) -> str:
    options = ["--help"] if program.name in ("comms-run", "comms-bench") else ["--help-hidden"]
    return subprocess.run([program, *options], capture_output=True, text=True, timeout=60).stdout


@functools.cache
def _targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][\w-]*):", text, re.M))


def in_prose(text: str, binaries: pathlib.Path) -> list[str]:
    """Commands that the text of a page names in passing, between backticks."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    wrong: list[str] = []
    for code in re.findall(r"`([^`]+)`", prose):
        command = " ".join(code.split()).replace("…", "").replace("...", "")
        if re.match(r"(make|python3?|torchrun|comms-(run|opt|bench|translate)) ", command):
            wrong += faults(command, binaries)
    return wrong
