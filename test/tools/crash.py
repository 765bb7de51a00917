"""Feeds the tools damaged kernels and passes in senseless orders; any result but a plain error is a finding.

Usage: crash.py --runs N [--seed S] [--bin FOLDER] [--keep FOLDER] [--jobs J] [--only TOOL] [FILE…]

Every kernel of the tests, the examples and the documentation is a starting point. A run mutates one, or lowers one
halfway and mutates the result, and gives it to comms-opt (any passes in any order, pipelines with any options), to
comms-translate or to comms-run. The same seed and number give the same runs.

A finding is a signal (a hang ends by the limit of processor time), memory over the limit, a sanitizer's report, an
exit status without an error, an error without a location, or a pass whose IR does not verify. It is printed
with its command line; --keep keeps the input. The exit status is 1 if there were findings.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Seconds of a processor, so that a busy machine decides nothing; and of the clock, for what waits forever.
CPU_LIMIT = 20
CLOCK_LIMIT = 300
MEMORY = 4 << 30


def words(text: str) -> list[str]:
    return text.split()


OUR_PASSES = words("""
comms-assert-bounds comms-call-nccl comms-call-nccl=only-gin comms-check-sync comms-check-sync=ranks=3
comms-check-sync=ranks=2,blocks=2,launches=3 comms-distribute-tiles comms-distribute-tiles=threads=64
comms-distribute-tiles=threads=128,cluster=2,count-arrivals comms-distribute-tiles=lanes=4 comms-eliminate-barriers
comms-expand-collectives comms-expand-collectives=ranks=2 comms-expand-collectives=ranks=4,algorithm=ring,protocol=ll
comms-expand-collectives=ranks=3,algorithm=two_shot,threads=128 comms-expand-collectives=ranks=2,tile-size=7
comms-instrument comms-lower-channels comms-legalize-numerics comms-legalize-numerics=chip=sm_90 comms-unroll-ranks
comms-unroll-ranks=limit=64 convert-comms-to-cpu convert-comms-to-nvvm convert-comms-to-nvvm=threads=128,chip=sm_80
""")
# These run on modules; all others of ours on kernels.
ON_MODULES = ("convert-comms-to-cpu", "convert-comms-to-nvvm", "comms-call-nccl")
UPSTREAM_PASSES = words("canonicalize cse int-range-optimizations loop-invariant-code-motion sccp symbol-dce inline")
PIPELINES = {
    "comms-to-cpu": words("ranks blocks algorithm protocol tile-size check check-events instrument assert-bounds weak"),
    "comms-to-nvvm": words(
        "ranks blocks threads cluster count-arrivals chip impl algorithm protocol tile-size check check-events"
        " assert-bounds"
    ),
}
# The order in which the pipelines run them, so that mutations meet IR of every stage.
STAGES = words("""comms-expand-collectives=ranks=2 comms-lower-channels comms-unroll-ranks comms-eliminate-barriers
comms-legalize-numerics comms-assert-bounds comms-distribute-tiles=threads=128 convert-comms-to-nvvm""")
NUMBERS = ["0", "-1", "1", "2", "3", "31", "65", "1024", "65536", "2147483648", "4294967295", "9223372036854775807"]
TYPES = words("""f32 f64 f16 bf16 f8E4M3FN f8E5M2 f4E2M1FN i1 i4 i8 i32 i64 i128 si8 ui16 index none complex<f32> tf32
memref<*xf32> memref<f32> memref<?xf32> memref<4x0xf32> memref<4xindex> memref<8xf32,strided<[2],offset:1>>
memref<8xf32,affine_map<(d0)->(d0*2)>> memref<8xf32,1> memref<8xvector<4xf32>> tensor<f32> tensor<?xf32> tensor<*xf32>
tensor<4x4xf32> tensor<0xf32> vector<4xf32> vector<[4]xf32> vector<f32> vector<2x3xi8> tuple<> !comms.team
!comms.window<f32> !comms.window<8xf32> !comms.window<?xf32> !comms.window<0x8xbf16> !comms.window<4x4x4xi8>
!comms.signal<1> !comms.signal<4> !comms.counter<2> !comms.multimem<8xf32> !comms.channel<8xf32> !llvm.ptr
!llvm.struct<(i32)>""")
VALUES = {
    "algorithm": ["one_shot", "two_shot", "ring", "permutation", "magic", "''"],
    "protocol": ["pull", "push", "ll", "ll128", "lamport", "magic", "''"],
    "chip": ["sm_80", "sm_90", "sm_100", "sm_1", "potato", "''"],
    "impl": ["nccl", "''", "potato"],
}
FLAGS = {"check", "instrument", "weak", "assert-bounds", "count-arrivals"}

TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[%@#!^][\w.$]+|[A-Za-z_][\w.$]*|\d+\.\d+(?:e[-+]?\d+)?|\d+|->|::|==|\s+|.', re.DOTALL
)
TYPE = re.compile(
    r"(?:!comms\.\w+|memref|tensor|vector)<[^<>]*(?:<[^<>]*>[^<>]*)*>|\b(?:f32|f64|f16|bf16|i1|i8|i32|i64|index)\b"
)
REPORTS = re.compile(
    r"Sanitizer|runtime error:|Assertion .*failed|LLVM ERROR|UNREACHABLE|Stack dump|PLEASE submit|terminate called"
    r"|bad_alloc|generated no diagnostic"
)
# Errors of the tools about a command line have no place in a file.
PLACE = re.compile(
    r"\.mlir\S*:\d+:\d+: error|<stdin>:\d+:\d+: error|loc\(callsite|^comms-run: error: "
    # An option of a pipeline is no place in a file.
    r"|^(?:<unknown>:0|comms-translate): error: (?:--gpu: )?(?:[a-z-]+=\S*|unsupported chip \S*): give ",
    re.MULTILINE,
)


@dataclass
class Finding:
    what: str
    command: list[str]
    text: bytes
    said: str


def starting_points() -> list[str]:
    """Kernels: the parts of .mlir files, and the blocks of the documentation."""
    texts: list[str] = []
    wrong: list[str] = []
    for path in sorted((SOURCE / "test").rglob("*.mlir")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for part in re.split(r"^// -----.*$", text, flags=re.MULTILINE):
            code = re.sub(r"^\s*//.*\n?", "", part, flags=re.MULTILINE).strip() + "\n"
            (wrong if "expected-error" in part else texts).append(code)
    for path in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
        texts += re.findall(r"^```mlir[^\n]*\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    # Tests of errors are in the minority: mutations hide behind their errors.
    return [text for text in texts + wrong[::4] if 10 < len(text) < 20000]


class Mutator:
    """Damages text; every choice comes from `chance`."""

    def __init__(self, chance: random.Random, texts: list[str]) -> None:
        self.chance = chance
        self.texts = texts

    def lines(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        if not lines:
            return text
        at, other = self.chance.randrange(len(lines)), self.chance.randrange(len(lines))
        match self.chance.randrange(4):
            case 0:
                del lines[at]
            case 1:
                # With results of its own, so that it is more than a redefinition.
                lines.insert(other, re.sub(r"^(\s*)%\w+ = ", rf"\1%new{self.chance.randrange(99)} = ", lines[at]))
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case _:
                lines.insert(at, self.chance.choice(self.chance.choice(self.texts).splitlines(keepends=True)))
        return "".join(lines)

    def tokens(self, text: str) -> str:
        tokens = TOKEN.findall(text)
        words = [i for i, token in enumerate(tokens) if not token.isspace()]
        if not words:
            return text
        at, other = self.chance.choice(words), self.chance.choice(words)
        match self.chance.randrange(3):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[at] + " ")
            case _:
                tokens[at], tokens[other] = tokens[other], tokens[at]
        return "".join(tokens)

    def swap(self, text: str, pattern: str, choices: list[str]) -> str:
        """Replaces one match of `pattern`."""
        found = list(re.finditer(pattern, text))
        if not found:
            return text
        match = self.chance.choice(found)
        return text[: match.start()] + self.chance.choice(choices) + text[match.end() :]

    def numbers(self, text: str) -> str:
        return self.swap(text, r"(?<![\w.%@#])-?\d+(?![\w.])", NUMBERS)

    def dimensions(self, text: str) -> str:
        return self.swap(text, r"(?<=[<x])(?:\d+|\?)x", ["", "0x", "?x", "1x", "3x5x", "2147483648x", "7x", "16x"])

    def types(self, text: str) -> str:
        """One type becomes another, at one place or, so that uses agree, at all."""
        found = TYPE.findall(text)
        if not found:
            return text
        old, new = self.chance.choice(found), self.chance.choice([*TYPES, *found])
        if self.chance.random() < 0.3:
            return self.swap(text, re.escape(old), [new])
        return text.replace(old, new)

    def shapes(self, text: str) -> str:
        """Another shape of one type, wherever it is written."""
        found = [kind for kind in TYPE.findall(text) if "x" in kind]
        if not found:
            return text
        old = self.chance.choice(found)
        return text.replace(old, self.dimensions(old))

    def constants(self, text: str) -> str:
        return self.swap(text, r"(?<=arith\.constant )-?\d+", NUMBERS)

    def elements(self, text: str) -> str:
        """Another element type everywhere: kernels of types that they were not written for."""
        found = sorted(set(re.findall(r"(?<=x|<)(?:f32|f64|f16|bf16|i8|i32|i64)(?=[>,])", text)))
        if not found:
            return text
        old, new = self.chance.choice(found), self.chance.choice(TYPES[:19])
        return re.sub(rf"(?<![a-z]){old}\b", new, text)

    def every_number(self, text: str) -> str:
        """Another extent everywhere: kernels of sizes that they were not written for."""
        found = sorted(set(re.findall(r"(?<=[<x])\d+(?=x)", text)))
        if not found:
            return text
        old = self.chance.choice(found)
        new = self.chance.choice(["1", "2", "3", "7", "12", "17", "100", "4096"])
        return re.sub(rf"(?<![\w.]){old}(?=x|\b)", new, text)

    def braces(self, text: str) -> str:
        """Removes attributes or a region."""
        found = [at for at, letter in enumerate(text) if letter == "{"]
        if not found:
            return text
        start, depth = self.chance.choice(found), 0
        for end in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                return text[:start] + self.chance.choice(["", "{}"]) + text[end + 1 :]
        return text[:start]

    def symbols(self, text: str) -> str:
        """One name becomes another of the same kind."""
        names = sorted(set(re.findall(r"[%@#^][\w$]+", text)))
        if not names:
            return text
        old = self.chance.choice(names)
        alike = [name for name in names if name[0] == old[0]]
        return self.swap(text, re.escape(old) + r"\b", [*alike, old[0] + "elsewhere"])

    def truncate(self, text: str) -> str:
        return text[: self.chance.randrange(len(text) + 1)]

    def __call__(self, text: str) -> str:
        kinds = [self.lines, self.tokens, self.numbers, self.dimensions, self.types, self.elements, self.every_number]
        kinds += [self.braces, self.symbols, self.symbols, self.numbers, self.types, self.lines, self.shapes]
        kinds += [self.elements, self.every_number, self.constants, self.constants, self.shapes]
        for _ in range(self.chance.choice([0, 1, 1, 1, 1, 2, 2, 3])):
            text = self.chance.choice(kinds)(text)
        if self.chance.random() < 0.02:
            text = self.truncate(text)
        return text


class Fuzzer:
    def __init__(self, texts: list[str], folder: pathlib.Path, programs: pathlib.Path | None, only: str) -> None:
        self.texts = texts
        self.folder = folder
        self.programs = programs
        self.only = only

    def program(self, name: str) -> str:
        return str(self.programs / name) if self.programs else name

    @staticmethod
    def options(chance: random.Random, pipeline: str, ranks: str) -> str:
        """Some of a pipeline's options, some of them beyond reason."""
        names = chance.sample(PIPELINES[pipeline], chance.choice([0, 0, 1, 2, 4]))
        values = {"ranks": ranks}
        for name in names:
            some = VALUES.get(name) or (["true", "false"] if name in FLAGS else ["1", "2", "32", "64", "128", *NUMBERS])
            # Tens of thousands of blocks or ranks take what they take.
            values[name] = chance.choice([value for value in some if name not in ("ranks", "blocks") or len(value) < 5])
        return " ".join(f"{name}={value}" for name, value in values.items())

    def command(self, chance: random.Random, file: str, text: str) -> list[str]:
        fixed = re.search(r"\branks = (\d+)", text)
        ranks = chance.choice(["1", "2", "3", "4", "8"])
        ranks = fixed[1] if fixed and len(fixed[1]) < 3 and chance.random() < 0.9 else ranks
        tool = self.only or chance.choice(["opt"] * 5 + ["translate", "run", "run"])
        if tool == "run":
            flags = [f"--ranks={ranks}", "--time-limit=2", "--memory-limit=512M", "--quiet"]
            flags += chance.sample(
                ["--no-check", "--fast", "--instrument", "--blocks=2", "--launches=2", "--dump-ir", "--json"]
                + ["--fuzz-schedules=2", "--explain", "--verbose", "--protocol=ll", "--protocol=push", "--seed=3"]
                + ["--algorithm=ring", "--algorithm=two_shot", "--trace=/dev/null", "--dump-object=/dev/null"],
                chance.randrange(4),
            )
            return [self.program("comms-run"), file, *flags]
        if tool == "translate":
            to = chance.choice(["--comms-to-llvmir", "--comms-to-nvptx", "--comms-to-ptx"])
            more = [] if to == "--comms-to-llvmir" else ["--gpu=" + self.options(chance, "comms-to-nvvm", ranks)]
            return [self.program("comms-translate"), to, *more, file]
        match chance.randrange(4):
            case 0:
                pipeline = chance.choice(list(PIPELINES))
                passes = [f"{pipeline}{{{self.options(chance, pipeline, ranks)}}}"]
            case 1:
                passes = STAGES[: chance.randrange(len(STAGES) + 1)] + [chance.choice(OUR_PASSES)]
                passes = [self.spell(name.replace("ranks=2", f"ranks={ranks}")) for name in passes]
            case _:
                some = OUR_PASSES + UPSTREAM_PASSES
                passes = [self.spell(chance.choice(some)) for _ in range(chance.choice([1, 1, 2, 3, 5]))]
        return [self.program("comms-opt"), file, f"--pass-pipeline=builtin.module({','.join(passes)})"]

    @staticmethod
    def spell(name: str) -> str:
        """comms-x=a=1,b=2 in the pipeline's syntax."""
        base, _, options = name.partition("=")
        spelt = f"{base}{{{options.replace(',', ' ')}}}" if options else base
        return f"comms.kernel({spelt})" if base.startswith("comms-") and base not in ON_MODULES else spelt

    @staticmethod
    def limit() -> None:
        # A sanitizer's shadow is larger than any limit of addresses, and it is slow.
        sanitized = bool(os.environ.get("ASAN_OPTIONS"))
        if not sanitized:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT * (5 if sanitized else 1),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def execute(self, command: list[str]) -> tuple[int, str, bytes]:
        try:
            done = subprocess.run(command, capture_output=True, timeout=CLOCK_LIMIT, preexec_fn=self.limit)
        except subprocess.TimeoutExpired:
            return 124, f"no end after {CLOCK_LIMIT} s", b""
        return done.returncode, done.stderr.decode("utf-8", "replace"), done.stdout

    def judge(self, command: list[str], text: bytes) -> Finding | None:
        status, said, out = self.execute(command)
        what = ""
        if status < 0 or status >= 124 or REPORTS.search(said):
            what = f"exit status {status}"
        elif status == 0 and re.search(r"\berror: ", said):
            what = "an error, and exit status 0"
        elif status and not said.strip():
            what = "no error is printed"
        elif status and not PLACE.search(said) and text:
            what = "an error without a place"
        elif status and command[0].endswith("comms-opt") and not re.search(r"' op C\d+: ", said):
            # (What names a constraint of the Spec says enough, as when a pass is told the number of ranks.)
            # An error that goes when nothing is verified is a verifier's. Of what was read, or of what a pass made?
            lenient, _, _ = self.execute([*command, "--verify-each=0", "-o", "/dev/null"])
            if lenient == 0 and self.execute([command[0], command[1], "-o", "/dev/null"])[0] == 0:
                what = "a pass leaves IR that does not verify"
        return Finding(what, command, text, said) if what else None

    def run(self, number: int, seed: int) -> Finding | None:
        chance = random.Random(f"{seed}/{number}")
        mutate = Mutator(chance, self.texts)
        path = self.folder / f"{number}.mlir"
        text = chance.choice(self.texts)
        if chance.random() < 0.3:
            path.write_text(text, encoding="utf-8")
            stage = ",".join(self.spell(name) for name in STAGES[: chance.randrange(1, len(STAGES) + 1)])
            status, _, lowered = self.execute(
                [self.program("comms-opt"), str(path), f"--pass-pipeline=builtin.module({stage})"]
            )
            text = lowered.decode() if status == 0 else text
        damaged = mutate(text).encode("utf-8", "replace")
        kind = chance.random()
        if kind < 0.005:
            damaged = chance.randbytes(chance.randrange(2000))
        elif kind < 0.01:
            damaged = b""
        elif kind < 0.03:
            path.write_text(text, encoding="utf-8")
            _, _, code = self.execute([self.program("comms-opt"), str(path), "--emit-bytecode"])
            damaged = code[: chance.randrange(len(code) + 1)] or b"ML"
        path.write_bytes(damaged)
        finding = self.judge(self.command(chance, str(path), text), damaged)
        path.unlink()
        return finding


def show(number: int, finding: Finding, keep: pathlib.Path | None) -> None:
    command = list(finding.command)
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        name = str(keep / f"{number}.mlir")
        pathlib.Path(name).write_bytes(finding.text)
        command = [name if word.endswith(f"/{number}.mlir") else word for word in command]
    print(f"finding {number}: {finding.what}\n  {' '.join(repr(w) if ' ' in w or '{' in w else w for w in command)}")
    print("\n".join("  | " + line[:200] for line in finding.said.splitlines()[:25]))
    if not keep:
        print(finding.text.decode("utf-8", "replace"))
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=["", "opt", "translate", "run"], default="")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    texts = [file.read_text(encoding="utf-8") for file in options.files] or starting_points()
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(texts, pathlib.Path(folder), options.bin, options.only)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            runs = range(options.runs)
            for number, finding in zip(runs, pool.map(lambda n: fuzzer.run(n, options.seed), runs), strict=True):
                if finding:
                    found += 1
                    show(number, finding, options.keep)
    print(f"{options.runs} runs from {len(texts)} kernels, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
