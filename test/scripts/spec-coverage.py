"""docs/Spec.md, the verifiers and the tests say the same.

Usage: spec-coverage.py --source ROOT --build BUILD --comms-opt PATH [--comms-run PATH]
       spec-coverage.py --self-test --comms-opt PATH --comms-run PATH

Fails, naming each place, when
- an operation of the dialect has no section `### comms.<op>` in docs/Spec.md, or a section has no operation;
- a section lacks one of Semantics, Operands, Results, Constraints, Example;
- its constraints are not numbered C1, C2, … without gaps (`- C1 to C12: those [of …](#section).` takes them from
  another section, which has to list exactly those);
- a constraint has no negative test in test/dialect/invalid/<op>.mlir that emits its number;
- a negative test emits a number that the Spec lacks;
- a file with negative tests has no RUN line with -verify-diagnostics;
- no file of test/exec or test/examples runs the operation (`// EXEC: comms.<op> …`), or one says so and does not
  contain it, or has no RUN line;
- a ```mlir block of README.md or docs/*.md does not pass comms-opt (```mlir fragment is left
  out, outside of the Spec, and so are the pages that `make docs` makes);
- with --comms-run: an example of docs/Spec.md does not run (4 ranks, or what its kernel says; 3 launches), or one
  that is marked ```mlir refused is not refused by the checker. ```mlir parsed marks one that is not to be run.

Errors of types carry the type's name ("window C1: …"); their sections are `### !comms.<type>` and their tests
test/dialect/invalid/types.mlir. --self-test breaks a small tree in each of these ways and sees that it is noticed.
"""

import argparse
import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

PARTS = ("Semantics", "Operands", "Results", "Constraints", "Example")
# Ends regions without being written.
IMPLICIT = {"comms.yield"}
SECTION = re.compile(r"^### `?(?P<name>!?comms\.\w+)`?\s*$", re.M)
CONSTRAINT = re.compile(r"^[-*] \**(C\d+)\**:", re.M)
# "- C1 to C12: those [of all collectives](#constraints-of-collectives)."
SHARED = re.compile(r"^- C1 to (?P<last>C\d+): .*\(#(?P<anchor>[\w-]+)\)", re.M)
EXPECTED = re.compile(r"expected-error\s*(?:@(?P<at>[-+]\d+|above|below))?\s*\{\{(?P<text>.*?)\}\}")
NUMBERED = re.compile(r"^(?:(?P<type>\w+) )?(?P<number>C\d+):")
BLOCK = re.compile(r"^```mlir *(?P<mark>[^\n]*)\n(?P<text>.*?)^```", re.M | re.S)
# Exit status of comms-run when the checker refuses a kernel.
REFUSED = 4


@dataclasses.dataclass
class Section:
    """One section of the Spec: an op ("comms.put") or a type ("!comms.window")."""

    line: int
    text: str
    numbers: list[str]


def read(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def operations(build: pathlib.Path) -> set[str]:
    """Names of all ops, from the header that mlir-tblgen made: "comms.put"."""
    header = read(build / "dialect" / "CommsOps.h.inc")
    return set(re.findall(r'getOperationName\(\)\s*\{[^}]*"(comms\.\w+)"', header))


def below(spec: str, start: int) -> str:
    """The text of a section from `start` on; it ends at the next heading."""
    end = re.compile(r"^#{1,3} ", re.M).search(spec, start)
    return spec[start : end.start() if end else len(spec)]


def shared(spec: str, text: str) -> list[str]:
    """The numbers of constraints that a section takes from another one, which has to list exactly those."""
    taken = SHARED.search(text)
    if not taken:
        return []
    heading = re.search(rf"^### {taken['anchor'].replace('-', '[ -]')}$", spec, re.M | re.I)
    numbers = CONSTRAINT.findall(below(spec, heading.end())) if heading else []
    return numbers if numbers[-1:] == [taken["last"]] else [f"C1 to {taken['last']} of #{taken['anchor']}"]


def sections(spec: str) -> dict[str, Section]:
    """The sections of ops and types."""
    found = {}
    for match in SECTION.finditer(spec):
        text = below(spec, match.end())
        numbers = shared(spec, text) + CONSTRAINT.findall(text)
        found[match["name"]] = Section(line_of(spec, match.start()), text, numbers)
    return found


def target_line(lines: list[str], index: int, at: str | None) -> str:
    """The line that an expected-error in line `index` speaks of."""
    if at == "below":
        offset = 1
    elif at == "above":
        offset = -1
    else:
        offset = int(at or 0)
    wanted = index + offset
    return lines[wanted] if 0 <= wanted < len(lines) else ""


def emitted(path: pathlib.Path) -> list[tuple[int, str, str]]:
    """(line, op or type, number) for each numbered error that a test expects."""
    lines = read(path).split("\n")
    found = []
    for index, line in enumerate(lines):
        for match in EXPECTED.finditer(line):
            numbered = NUMBERED.match(match["text"])
            if not numbered:
                continue
            if numbered["type"]:
                name = "!comms." + numbered["type"]
            else:
                op = re.search(r"(?<![!#])\bcomms\.\w+", target_line(lines, index, match["at"]))
                name = op[0] if op else "no operation"
            found.append((index + 1, name, numbered["number"]))
    return found


def check_sections(ops: set[str], spec: dict[str, Section]) -> list[str]:
    wrong = [f"docs/Spec.md: no section '### {op}'" for op in sorted(ops - spec.keys())]
    for name, section in spec.items():
        place = f"docs/Spec.md:{section.line}: {name}"
        is_op = not name.startswith("!")
        if is_op and name not in ops:
            wrong.append(f"{place}: the dialect has no such operation")
        if is_op:
            wrong += [f"{place}: no part '{part}'" for part in PARTS if f"**{part}.**" not in section.text]
        wanted = [f"C{i}" for i in range(1, len(section.numbers) + 1)]
        if section.numbers != wanted:
            wrong.append(f"{place}: constraints are numbered {', '.join(section.numbers)}, not {', '.join(wanted)}")
    return wrong


def check_negative_tests(source: pathlib.Path, spec: dict[str, Section]) -> list[str]:
    wrong = []
    tested = set()
    for path in sorted((source / "test" / "dialect").rglob("*.mlir")):
        place = path.relative_to(source)
        cases = emitted(path)
        if cases and not re.search(r"^// RUN:.*-verify-diagnostics", read(path), re.M):
            wrong.append(f"{place}: no RUN line with -verify-diagnostics, so nothing is checked")
            continue
        for line, name, number in cases:
            known = spec.get(name)
            if known is None or number not in known.numbers:
                wrong.append(f"{place}:{line}: emits {name} {number}, which docs/Spec.md lacks")
            stem = "types" if name.startswith("!") else name.removeprefix("comms.")
            if path.parent.name == "invalid" and path.stem == stem:
                tested.add((name, number))
    for name, section in spec.items():
        stem = "types" if name.startswith("!") else name.removeprefix("comms.")
        wrong += [
            f"docs/Spec.md:{section.line}: {name} {number} has no negative test in test/dialect/invalid/{stem}.mlir"
            for number in section.numbers
            if (name, number) not in tested
        ]
    return wrong


def check_executed_tests(source: pathlib.Path, ops: set[str]) -> list[str]:
    wrong = []
    executed = set()
    folders = [source / "test" / "exec", source / "test" / "examples"]
    for path in sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in (".mlir", ".test")):
        text = read(path)
        claims = re.findall(r"^// EXEC:(.*)$", text, re.M)
        if not claims:
            continue
        place = path.relative_to(source)
        if not re.search(r"^// RUN:", text, re.M):
            wrong.append(f"{place}: has an EXEC line and no RUN line: it is not executed")
            continue
        body = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("//"))
        for op in (name for claim in claims for name in claim.replace(",", " ").split()):
            if op not in ops:
                wrong.append(f"{place}: EXEC names {op}, which is not an operation of the dialect")
            elif op not in IMPLICIT and not re.search(rf"\b{re.escape(op)}\b", body):
                wrong.append(f"{place}: EXEC names {op}, which the file does not contain")
            else:
                executed.add(op)
    wrong += [f"{op}: no test of test/exec or test/examples has it in an EXEC line" for op in sorted(ops - executed)]
    return wrong


def parses(comms_opt: str, text: str, *options: str) -> str:
    """Empty when comms-opt accepts the text, else what it says."""
    result = subprocess.run([comms_opt, *options, "-"], input=text.encode(), capture_output=True, check=False)
    return "" if result.returncode == 0 else result.stderr.decode(errors="replace").strip() or "comms-opt failed"


def check_blocks(source: pathlib.Path, comms_opt: str) -> list[str]:
    """All ```mlir blocks of the documents; one process a file while all is well."""
    wrong = []
    for path in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
        text = read(path)
        # Examples of pages made from .td files are tests of their own, each pass's doctest.mlir.
        if "by `make docs`; do not edit." in text:
            continue
        # Every example of the Spec is whole.
        excused = "" if path.name == "Spec.md" else "fragment"
        blocks = [
            (line_of(text, match.start()), match["text"])
            for match in BLOCK.finditer(text)
            if not excused or match["mark"].strip() != excused
        ]
        joined = "\n// -----\n".join(block for _, block in blocks)
        if not blocks or not parses(comms_opt, joined, "-split-input-file"):
            continue
        for line, block in blocks:
            said = parses(comms_opt, block)
            if said:
                wrong.append(f"{path.relative_to(source)}:{line}: the mlir block is refused: {said.splitlines()[0]}")
    return wrong


def run_example(comms_run: str, line: int, mark: str, text: str) -> list[str]:
    """What is wrong with running the example in line `line` of the Spec."""
    ranks = re.search(r"\branks = (\d+)", text)
    scalars = re.findall(r"%(\w+): (?:index|i\d+|f\d+)\b", text.split("{", 1)[0])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "example.mlir"
        path.write_text(text, encoding="utf-8")
        command = [
            comms_run,
            str(path),
            "--ranks",
            ranks[1] if ranks else "4",
            "--launches",
            "3",
            "--quiet",
        ]
        command += [f"--input={scalar}=0" for scalar in scalars]
        result = subprocess.run(command, capture_output=True, check=False, timeout=120)
    wanted = REFUSED if mark == "refused" else 0
    if result.returncode == wanted:
        return []
    said = (result.stderr + result.stdout).decode(errors="replace").strip().split("\n")[0]
    return [f"docs/Spec.md:{line}: the example ends with exit status {result.returncode}, not {wanted}: {said}"]


def check_examples(source: pathlib.Path, comms_run: str) -> list[str]:
    """Every example of the Spec does what its mark says."""
    text = read(source / "docs" / "Spec.md")
    examples = [
        (line_of(text, match.start()), match["mark"].strip(), match["text"])
        for match in BLOCK.finditer(text)
        if match["mark"].strip() != "parsed" and "comms.kernel" in match["text"]
    ]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        return [
            line for lines in pool.map(lambda example: run_example(comms_run, *example), examples) for line in lines
        ]


def check(source: pathlib.Path, build: pathlib.Path, comms_opt: str, comms_run: str | None) -> list[str]:
    """Everything that is wrong, one line each."""
    ops = operations(build)
    if not ops:
        return [f"{build}/dialect/CommsOps.h.inc: no operations found; build the target CommsIRDialectIncGen"]
    spec = sections(read(source / "docs" / "Spec.md"))
    return (
        check_sections(ops, spec)
        + check_negative_tests(source, spec)
        + check_executed_tests(source, ops)
        + check_blocks(source, comms_opt)
        + (check_examples(source, comms_run) if comms_run else [])
    )


# A tree in which all is well, and the ways to break it: (what must be said, file, old text, new text).
SMALL = {
    "build/dialect/CommsOps.h.inc": 'getOperationName() {\n  return ::llvm::StringLiteral("comms.fence");\n}\n',
    "docs/Spec.md": "# Spec\n### !comms.window\n- C1: it has a shape.\n\n### comms.fence\n\n**Semantics.** Orders.\n\n"
    "**Operands.** None.\n\n**Results.** None.\n\n**Constraints.**\n- C1: not relaxed.\n- C2: no copy engine.\n\n"
    "**Example.**\n```mlir\nmodule {\n}\n```\n"
    "```mlir\ncomms.kernel @k() {\n  comms.return\n}\n```\n\n## Next\n- C9: not of the section.\n\n"
    "### Of fences\n- C1: not relaxed.\n",
    "test/dialect/invalid/fence.mlir": "// RUN: comms-opt %s -verify-diagnostics\n"
    "// expected-error @+1 {{C1: a relaxed}}\ncomms.fence relaxed sys\n"
    "comms.fence acq_rel sys proxy copy_engine // expected-error {{C2: no fence}}\n",
    "test/dialect/invalid/types.mlir": "// RUN: comms-opt %s -verify-diagnostics\n"
    "// expected-error @+1 {{window C1: a window}}\ncomms.kernel @k(%x: !comms.window<f32>) {}\n",
    "test/exec/fence.mlir": "// EXEC: comms.fence\n// RUN: comms-run %s\ncomms.fence acq_rel sys\n",
}
TAKEN = "- C1 to C2: those [of fences](#of-fences).\n- C3: no copy"
BREAKS = [
    (
        "no section '### comms.flush'",
        "build/dialect/CommsOps.h.inc",
        "getOp",
        'getOperationName() {\n  return ::llvm::StringLiteral("comms.flush");\n}\ngetOp',
    ),
    ("the dialect has no such operation", "docs/Spec.md", "## Next", "### comms.fense\n## Next"),
    ("no part 'Results'", "docs/Spec.md", "**Results.**", "Results:"),
    ("constraints are numbered C1, C3, not C1, C2", "docs/Spec.md", "- C2:", "- C3:"),
    ("", "docs/Spec.md", "- C1: not relaxed.\n", "- C1 to C1: those [of fences](#of-fences).\n"),
    ("constraints are numbered C1 to C2 of #of-fences", "docs/Spec.md", "- C1: not relaxed.\n- C2: no copy", TAKEN),
    (
        "comms.fence C3 has no negative test",
        "docs/Spec.md",
        "engine.\n",
        "engine.\n- C3: not untested.\n",
    ),
    (
        "!comms.window C2 has no negative test",
        "docs/Spec.md",
        "shape.\n",
        "shape.\n- C2: not untested.\n",
    ),
    ("comms.fence C2 has no negative test", "test/dialect/invalid/fence.mlir", "C2: ", "there is "),
    (
        "emits comms.fence C7, which docs/Spec.md lacks",
        "test/dialect/invalid/fence.mlir",
        "{{C1",
        "{{C7",
    ),
    (
        "emits comms.flush C1, which docs/Spec.md lacks",
        "test/dialect/invalid/fence.mlir",
        "comms.fence relaxed",
        "comms.flush",
    ),
    (
        "emits !comms.window C5, which docs/Spec.md lacks",
        "test/dialect/invalid/types.mlir",
        "window C1",
        "window C5",
    ),
    ("so nothing is checked", "test/dialect/invalid/fence.mlir", " -verify-diagnostics", ""),
    ("comms.fence: no test of test/exec", "test/exec/fence.mlir", "// EXEC: comms.fence\n", ""),
    (
        "which is not an operation of the dialect",
        "test/exec/fence.mlir",
        "EXEC: ",
        "EXEC: comms.fense ",
    ),
    ("which the file does not contain", "test/exec/fence.mlir", "\ncomms.fence", "\ncomms.fences"),
    ("it is not executed", "test/exec/fence.mlir", "// RUN", "// ran"),
    ("exit status 0, not 4", "docs/Spec.md", "```mlir\ncomms", "```mlir refused\ncomms"),
    ("docs/Spec.md:18: the mlir block is refused", "docs/Spec.md", "```mlir\nmodule {", "```mlir fragment\nmodule {{"),
    ("docs/Spec.md:18: the mlir block is refused", "docs/Spec.md", "module {", "module {{"),
]


def self_test(comms_opt: str, comms_run: str | None) -> int:
    failures = 0
    for said, broken, old, new in [("", "", "", ""), *BREAKS]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in SMALL.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.replace(old, new, 1) if name == broken else text, encoding="utf-8")
            wrong = check(root, root / "build", comms_opt, comms_run)
        noticed = any(said in line for line in wrong) if said else not wrong
        if not noticed:
            failures += 1
            print(f"self-test: expected {said!r}, got {wrong}", file=sys.stderr)
    print(f"self-test: {len(BREAKS) + 1 - failures} of {len(BREAKS) + 1} trees judged rightly")
    return failures != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    parser.add_argument("--build", type=pathlib.Path, help="build folder (default: SOURCE/build)")
    parser.add_argument("--comms-opt", default="comms-opt")
    parser.add_argument("--comms-run", help="also run the examples of the Spec")
    parser.add_argument("--self-test", action="store_true", help="see that each kind of fault is noticed")
    options = parser.parse_args()
    if options.self_test:
        return self_test(options.comms_opt, options.comms_run or "comms-run")
    wrong = check(
        options.source,
        options.build or options.source / "build",
        options.comms_opt,
        options.comms_run,
    )
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print(
            f"{len(wrong)} faults; see the head of test/scripts/spec-coverage.py for the rules",
            file=sys.stderr,
        )
        return 1
    print("docs/Spec.md, verifiers and tests agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
