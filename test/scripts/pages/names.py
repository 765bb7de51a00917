"""Names of the project that pages speak of: flags, variables of the environment, functions, ops, passes."""

from __future__ import annotations

import functools
import pathlib
import re
import subprocess

from pages.exceptions import INVENTED

ROOT = pathlib.Path(__file__).resolve().parents[3]
CODE = re.compile(r"^```.*?^```$|`[^`]+`", re.M | re.S)

#: What names look like, and the folders and endings of the files that have to know them.
KINDS = {
    "a variable": (
        r"\bCOMMSIR_[A-Z][A-Z_]+\b",
        ("runtime", "frontend", "cmake", "lowering"),
        (".h", ".cpp", ".py", ".txt"),
    ),
    "a function": (r"\bcommsir_[a-z][a-z_]+\b", ("runtime", "lowering"), (".h", ".cpp", ".cu")),
    "in Python": (r"\bcommsir\.[A-Za-z_.]*[A-Za-z_]\b", ("frontend/commsir", "runtime/torch"), (".py", ".cpp")),
    "an op, a type or an attribute": (r"(?<![\w.-])!?comms\.[a-z_]+\b", ("dialect", "lowering"), (".td", ".h", ".cpp")),
    "a pass": (
        r"\b(?:convert-)?comms-(?!run|opt|bench|translate|lsp)[a-z]+(?:-[a-z]+)*\b",
        ("lowering", "runtime"),
        (".td", ".cpp"),
    ),
}


def faults(page: str, text: str, binaries: pathlib.Path) -> list[str]:
    """Names in the code of a page that nothing in the project has."""
    code = "\n".join(CODE.findall(text))
    wrong: list[str] = []
    for kind, (pattern, folders, endings) in KINDS.items():
        known = _words(folders, endings)
        for name in sorted(set(re.findall(pattern, code))):
            if not _parts(kind, name) <= known and name not in INVENTED.get(page, set()):
                wrong.append(f"{page}: {name} is not {kind}")
    flags = set(re.findall(r"(?<=`)--[a-z][\w-]*", text))
    return wrong + [f"{page}: no program has {flag}" for flag in sorted(flags) if flag not in _flags(binaries)]


def _parts(kind: str, name: str) -> set[str]:
    """The words that have to stand in the sources."""
    if kind == "in Python":
        return set(name.split(".")[1:])
    if kind.startswith("an op"):
        return {name.partition(".")[2]}
    return set(name.split("-")) - {"convert"} if kind == "a pass" and not name.startswith("comms-to") else {name}


@functools.cache
def _text(folders: tuple[str, ...], endings: tuple[str, ...]) -> str:
    files = (path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in endings)
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


@functools.cache
def _words(folders: tuple[str, ...], endings: tuple[str, ...]) -> set[str]:
    names = {path.stem for folder in folders for path in (ROOT / folder).rglob("*.py")}
    names |= {path.name for folder in folders for path in (ROOT / folder).rglob("*") if path.is_dir()}
    text = _text(folders, endings)
    return names | set(re.findall(r"[A-Za-z_]\w*", text)) | set(re.findall(r"\bcomms(?:-[a-z]+)+", text))


@functools.cache
def _flags(binaries: pathlib.Path) -> set[str]:
    """Of the programs, of scripts and of the package's modules."""
    text = _text(("test", "frontend", "cmake"), (".py", ".sh", ".cu"))
    for name in ("comms-run", "comms-bench", "comms-opt", "comms-translate"):
        text += subprocess.run([binaries / name, "--help"], capture_output=True, text=True, timeout=60).stdout
    return set(re.findall(r"--[a-z][\w-]*", text))
