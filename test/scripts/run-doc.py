"""Runs the examples of a page of documentation, as a reader would.

Usage: run-doc.py PAGE.md --bin BUILD/bin

In the page,
  ```mlir title=NAME     (or any language) is written to the file NAME of an empty folder, and
  ```console             has commands, `$ comms-run …`, each followed by the lines it must print.
A printed line may hold `…` for anything; lines not shown may come between. `# exit status N` after a
command says that it ends with N (0 else).
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def matches(pattern: str, line: str) -> bool:
    """Whether a printed line is what the page shows; runs of blanks count as one."""
    parts = [re.escape(" ".join(part.split())) for part in pattern.split("…")]
    expression = r"\s*.*\s*".join(parts)
    return re.fullmatch(expression, " ".join(line.split())) is not None


def check_output(expected: list[str], printed: list[str]) -> str:
    """Empty, or the first expected line that does not come, in order."""
    lines = iter(printed)
    for pattern in expected:
        if pattern.strip() in ("", "…"):
            continue
        if not any(matches(pattern, line) for line in lines):
            return pattern
    return ""


def commands(block: str) -> list[tuple[str, list[str], int]]:
    """Commands of a console block, with what each must print and its exit status."""
    found: list[tuple[str, list[str], int]] = []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
            found.append((command, [], 0))
        elif status := re.fullmatch(r"# exit status (\d+)", line):
            found[-1] = (found[-1][0], found[-1][1], int(status[1]))
        elif found:
            found[-1][1].append(line)
    return found


def run_page(page: pathlib.Path, environment: dict[str, str]) -> tuple[int, list[str]]:
    """Number of commands run, and what went wrong."""
    wrong: list[str] = []
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for language, title, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if title:
                (pathlib.Path(folder) / title).write_text(text, encoding="utf-8")
            if language != "console":
                continue
            for command, expected, status in commands(text):
                count += 1
                done = subprocess.run(
                    command,
                    shell=True,
                    cwd=folder,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=120,
                )
                missing = check_output(expected, done.stdout.splitlines())
                if done.returncode != status or missing:
                    why = f"\n  does not print: {missing}" if missing else ""
                    if done.returncode != status:
                        why += f"\n  exit status {done.returncode}, the page says {status}"
                    wrong.append(f"{page}: $ {command}{why}\n  printed:\n{done.stdout}")
    return count, wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options = parser.parse_args()
    environment = dict(os.environ)
    path = [
        str(options.bin.resolve()),
        str(pathlib.Path(sys.executable).parent),
        environment["PATH"],
    ]
    environment["PATH"] = os.pathsep.join(path)
    total, failures = 0, 0
    for page in options.pages:
        count, wrong = run_page(page, environment)
        total += count
        failures += len(wrong) + (count == 0)
        print("\n".join(wrong) if count else f"{page}: no command found")
    print(f"{total} commands, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
