"""Names of the project that pages mention: flags, variables, functions, ops, passes, files, any identifier."""

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

#: Code of one identifier, `Machine::report`, `extent()`; of one file name; and an identifier said to be in a file.
IDENTIFIER = re.compile(r"`(?:\w+(?:\.|::))*([A-Za-z_]\w+)(?:\(\))?`")
FILE = re.compile(r"`([\w.-]+\.(?:cpp|cu|h|mlir|py|sh|td|test))`")
PLACED = re.compile(r"`(\w+)`,? in `([\w./-]+\.\w+)`")
#: The folders of all names. This file's own list of exceptions is none of them.
EVERYWHERE = ("dialect", "lowering", "runtime", "frontend", "tools", "cmake", "test", "docs/results")
COMMENTS = {
    **dict.fromkeys((".cpp", ".cu", ".def", ".h", ".inc", ".mlir", ".td"), r"//.*"),
    **dict.fromkeys((".cmake", ".py", ".sh", ".txt", ".test"), r"^\s*#.*"),
    ".json": r"(?!)",
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
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    wrong += [f"{page}: nothing in the sources has the name {name}" for name in _unknown_names(page, prose)]
    wrong += [f"{page}: {path} has no {name}" for name, path in PLACED.findall(prose) if not _has(ROOT / path, name)]
    flags = set(re.findall(r"(?<=`)--[a-z][\w-]*", text))
    return wrong + [f"{page}: no program has {flag}" for flag in sorted(flags) if flag not in _flags(binaries)]


def _unknown_names(page: str, prose: str) -> list[str]:
    names, files = _every_name()
    found = {name for name in IDENTIFIER.findall(prose) if name not in names}
    found |= {name for name in FILE.findall(prose) if name not in files}
    return sorted(found - files - INVENTED.get(page, set()))


@functools.cache
def _every_name() -> tuple[set[str], set[str]]:
    """The identifiers of all sources without their comments, and the names of all files."""
    names: set[str] = set()
    files = {path.name for path in ROOT.iterdir()}
    for path in (path for folder in EVERYWHERE for path in (ROOT / folder).rglob("*")):
        files |= {path.name, path.stem}
        if path.suffix in COMMENTS and path.is_file() and path.parent != pathlib.Path(__file__).parent:
            names |= _identifiers(path)
    return names, files


def _identifiers(path: pathlib.Path) -> set[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(COMMENTS.get(path.suffix, r"(?!)"), "", text, flags=re.M)))


def _has(path: pathlib.Path, name: str) -> bool:
    """Whether a file has the identifier; links.py says which files are not there."""
    return not path.is_file() or name in _identifiers(path)


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
