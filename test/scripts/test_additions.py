"""What an addition touches: only the files that its page lists.

The pages docs/AddACollective.md, AddAnAlgorithm.md, AddAProtocol.md and AddATarget.md each list, under "Files", what an
addition changes. Another source with the name of a collective, an algorithm, a protocol or a target would be one more
place to change. docs/AddACheckerRule.md names the parts of the checker that report errors.
"""

from __future__ import annotations

import functools
import pathlib
import re
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("dialect", "lowering", "runtime", "frontend", "tools")
SOURCES = (".cpp", ".h", ".td", ".def", ".inc", ".py", ".mlir", ".test", ".txt", ".cmake")
#: Sources that name an algorithm or a protocol for a reason of their own: what they ask for, not a table of all.
NAMED = {
    "lowering/Passes.td": "an example of options",
    "lowering/collectives/CollectiveInfo.h": "an error that says what to use",
    "runtime/choose/Choose.cpp": "of kernels whose sizes are known at launch",
    "runtime/choose/Table.cpp": "what leaves multiprocessors to others",
    "runtime/group/Shape.cpp": "what groups on the CPU use; what writes to peers",
    "frontend/commsir/language/communication.py": "the protocol of channels that name none",
}


@functools.cache
def own_sources() -> dict[str, str]:
    return sources(ROOT)


def sources(root: pathlib.Path) -> dict[str, str]:
    """Texts without comments, by path."""
    texts = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            name = file.relative_to(root).as_posix()
            if file.suffix in (".cpp", ".h", ".td", ".def", ".py") and "/examples/" not in name:
                text = file.read_text(encoding="utf-8")
                if file.suffix != ".py":
                    text = re.sub(r"//.*", "", text)
                texts[name] = text
    return texts


def registered(root: pathlib.Path, folder: str, kind: str) -> dict[str, str]:
    """Names of algorithms or protocols, by their files."""
    names = {}
    for file in sorted((root / folder).glob("*.cpp")):
        match = re.search(rf'{kind} (?:algorithm|protocol) = \{{\s*"(\w+)"', file.read_text(encoding="utf-8"))
        assert match, f"{file} registers no {kind}"
        names[file.relative_to(root).as_posix()] = match[1]
    return names


def collectives(root: pathlib.Path) -> list[str]:
    text = (root / "dialect/Collectives.def").read_text(encoding="utf-8")
    return re.findall(r"^COMMSIR_COLLECTIVE\((\w+)", text, re.M)


def listed(page: str) -> set[str]:
    """The paths under "Files" of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([^`]+)` \|", text.partition("\n## Files\n")[2].partition("\n## ")[0], re.M))


def listed_kinds() -> list[str]:
    text = (ROOT / "dialect/CommsAttrs.td").read_text(encoding="utf-8")
    return re.findall(r'I32EnumAttrCase<"\w+", \d+, "(\w+)">', text.partition('"ReductionKind"')[2].partition("]>;")[0])


def tables_of_kinds(texts: dict[str, str], kinds: list[str]) -> set[str]:
    """Files that name most reduction kinds, as C++ or as texts."""

    def names(text: str) -> int:
        return sum(bool(re.search(rf'ReductionKind::{kind.capitalize()}\b|"{kind}"', text)) for kind in kinds)

    return {path for path, text in texts.items() if names(text) > len(kinds) / 2}


def test_the_page_lists_the_tables_of_reduction_kinds() -> None:
    kinds = listed_kinds()
    assert {"sum", "xor"} <= set(kinds)
    found = tables_of_kinds(own_sources(), kinds)
    assert "lowering/tiles/RowReduction.cpp" in found
    page = (ROOT / "docs/AddAnOp.md").read_text(encoding="utf-8")
    section = page.partition("\n## A reduction kind\n")[2].partition("\n## ")[0]
    names = re.findall(r"`([\w/]+\.\w+)`", "\n".join(re.findall(r"^\|.*", section, re.M)))
    missing = {path for path in found if not any(path == name or path.endswith(f"/{name}") for name in names)}
    assert not missing, f"docs/AddAnOp.md, A reduction kind: these files list the kinds as well: {sorted(missing)}"


def naming(texts: dict[str, str], name: str) -> set[str]:
    return {path for path, text in texts.items() if f'"{name}"' in text}


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("lowering/collectives/algorithm", "Algorithm"), ("lowering/channels/protocol", "Protocol")],
)
def test_one_file_has_its_name(folder: str, kind: str) -> None:
    texts = own_sources()
    seen = set()
    for file, name in registered(ROOT, folder, kind).items():
        others = {path for path in naming(texts, name) if not path.startswith(folder)}
        assert others <= NAMED.keys(), f"{name} of {file} is named in {sorted(others - NAMED.keys())}"
        assert file in naming(texts, name)
        seen |= others
    assert seen, "no reason of NAMED is in use"


def test_no_reason_is_stale() -> None:
    texts = own_sources()
    names = [
        *registered(ROOT, "lowering/collectives/algorithm", "Algorithm").values(),
        *registered(ROOT, "lowering/channels/protocol", "Protocol").values(),
    ]
    used = {path for path, text in texts.items() if words(text) & set(names)}
    assert NAMED.keys() <= used


@functools.cache
def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def tables(texts: dict[str, str], names: list[str], share: float = 1.0) -> set[str]:
    """Files that have that share of the names."""
    return {path for path, text in texts.items() if len(words(text) & set(names)) >= share * len(names)}


def test_the_page_lists_the_tables_of_collectives() -> None:
    found = tables(own_sources(), collectives(ROOT))
    wanted = {path for path in listed("AddACollective.md") if path.startswith(FOLDERS)}
    assert found == wanted


def test_the_page_names_the_callers_of_most_collectives() -> None:
    """Files that name most collectives, one by one, are no tables of their facts, but the page names them."""
    found = tables(own_sources(), collectives(ROOT), 0.8)
    assert "runtime/torch/c10d/BackendCollectives.cpp" in found
    page = (ROOT / "docs/AddACollective.md").read_text(encoding="utf-8")
    missing = {path for path in found if f"`{path}`" not in page}
    assert not missing, f"docs/AddACollective.md: these files name most collectives: {sorted(missing)}"


@pytest.mark.parametrize("page", ["AddAnAlgorithm.md", "AddAProtocol.md"])
def test_the_page_lists_one_source(page: str) -> None:
    own = {path for path in listed(page) if path.startswith(FOLDERS)}
    assert len(own) == 1, f"{page}: one file of the sources, and tests: {own}"


def naming_target(root: pathlib.Path, name: str) -> set[str]:
    """Sources, tests and the README if they name a target, in comments too."""
    files = [root / "README.md"]
    for folder in (*FOLDERS, "test"):
        files += [
            file for file in (root / folder).rglob("*") if file.suffix in SOURCES or file.name == "CMakeLists.txt"
        ]
    return {
        file.relative_to(root).as_posix()
        for file in files
        if not file.is_relative_to(ROOT / "test/scripts")
        and name in file.read_text(encoding="utf-8", errors="replace").lower()
    }


def test_the_page_lists_the_files_of_a_target() -> None:
    assert naming_target(ROOT, "rocdl") == listed("AddATarget.md")


def reporting(root: pathlib.Path) -> set[str]:
    """The parts of the checker that report errors."""
    return {
        file.relative_to(root).with_suffix("").as_posix()
        for file in (root / "lowering/check").glob("*.cpp")
        if re.search(r"\breport\(|\bemit(?:Op)?Error\(", file.read_text(encoding="utf-8"))
    }


def unnamed_parts(parts: set[str]) -> set[str]:
    """Of those, the ones that the page does not name; `Machine` stands for `MachineSignals` as well."""
    page = (ROOT / "docs/AddACheckerRule.md").read_text(encoding="utf-8")
    named = tuple(re.findall(r"`(lowering/check/\w+)`", page))
    return {part for part in parts if not part.startswith(named)}


def test_the_page_names_the_parts_of_the_checker() -> None:
    parts = reporting(ROOT)
    assert "lowering/check/MachineSignals" in parts
    missing = unnamed_parts(parts)
    assert not missing, f"docs/AddACheckerRule.md: these parts report errors, too: {sorted(missing)}"


def test_no_list_names_the_faulty_kernels() -> None:
    """A new file of mutants is a test by being there."""
    mutants = [file.stem for file in (ROOT / "test/lowering/check-sync/mutants").glob("*.mlir") if "-" in file.stem]
    lists = [file for folder in (*FOLDERS, "test") for file in (ROOT / folder).rglob("CMakeLists.txt")]
    assert len(mutants) > 20
    assert not [file for file in lists for name in mutants if name in file.read_text(encoding="utf-8")]


def test_an_addition_is_noticed(tmp_path: pathlib.Path) -> None:
    """In a copy: one of each, and names in places where none may be."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.json"))
    before = sources(tmp_path)
    ring = (tmp_path / "lowering/collectives/algorithm/Ring.cpp").read_text()
    (tmp_path / "lowering/collectives/algorithm/Star.cpp").write_text(ring.replace('"ring"', '"star"'))
    push = (tmp_path / "lowering/channels/protocol/Push.cpp").read_text()
    (tmp_path / "lowering/channels/protocol/Mailbox.cpp").write_text(push.replace('"push"', '"mailbox"'))
    table = tmp_path / "dialect/Collectives.def"
    table.write_text(table.read_text() + "COMMSIR_COLLECTIVE(swap, Same, AllToAll, false, false)\n")
    assert "swap" in collectives(tmp_path)
    assert tables(sources(tmp_path), collectives(tmp_path)) == {"dialect/Collectives.def"}
    assert "star" in registered(tmp_path, "lowering/collectives/algorithm", "Algorithm").values()
    assert "mailbox" in registered(tmp_path, "lowering/channels/protocol", "Protocol").values()
    touched = {path for path, text in sources(tmp_path).items() if before.get(path) != text}
    assert touched == {
        "dialect/Collectives.def",
        "lowering/channels/protocol/Mailbox.cpp",
        "lowering/collectives/algorithm/Star.cpp",
    }
    shape = tmp_path / "runtime/group/Shape.cpp"
    listed_again = ", ".join(f'"{kind}"' for kind in listed_kinds())
    shape.write_text(shape.read_text() + f"static const char *kinds[] = {{{listed_again}}};\n")
    assert "runtime/group/Shape.cpp" in tables_of_kinds(sources(tmp_path), listed_kinds())
    model = tmp_path / "runtime/choose/Model.cpp"
    model.write_text(model.read_text() + 'static bool isStar(llvm::StringRef name) { return name == "star"; }\n')
    assert "runtime/choose/Model.cpp" in naming(sources(tmp_path), "star")
    shutil.copy(ROOT / "README.md", tmp_path)
    assert naming_target(tmp_path, "rocdl") < listed("AddATarget.md")
    model.write_text(model.read_text() + 'static bool isSlow(llvm::StringRef target) { return target == "rocdl"; }\n')
    assert naming_target(tmp_path, "rocdl") - listed("AddATarget.md") == {"runtime/choose/Model.cpp"}
    (tmp_path / "lowering/check/Weather.cpp").write_text('void rain(Operation *op) { op->emitOpError("is wet"); }\n')
    assert unnamed_parts(reporting(tmp_path)) == {"lowering/check/Weather"}
