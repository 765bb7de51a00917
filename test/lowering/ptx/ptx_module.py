"""The text of PTX as functions of Python."""

import dataclasses
import re
from collections.abc import Callable, Generator
from typing import Any

import registers
import thread
from memory import Fault
from registers import WIDTHS
from translator import Translator

Thread = Generator[tuple[Any, ...], Any, Any]


@dataclasses.dataclass
class Module:
    functions: dict[str, Callable[..., Thread]]
    shared: dict[str, int]
    variables: dict[str, int]
    local: dict[str, dict[str, int]]
    sources: dict[str, str]


def parse(text: str) -> Module:
    text = re.sub(r"//[^\n]*", "", text)
    shared = {}
    for kind, name, size in re.findall(r"\.shared\s+\.align\s+\d+\s+\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?", text):
        shared[name] = int(size or 1) * WIDTHS[kind] // 8
    variables = {n: int(s) for n, s in re.findall(r"\.global \.align \d+ \.b8 ([\w$]+)\[(\d+)\];", text)}
    module = Module({}, shared, variables, {}, {})
    head = r"\.(entry|func)\s*(?:\(([^)]*)\)\s*)?(\w+)\s*\(([^)]*)\)([^{};]*)\{"
    for match in re.finditer(head, text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        body = text[match.end() : at - 1]
        arguments = re.findall(r"(\w+)(?:\[\d*\])?\s*(?:,|$)", match[4].strip())
        translator = Translator(match[3], arguments, match[1] == "entry", shared | variables)
        translator.local = {n: int(s) for n, s in re.findall(r"\.local\s+\.align\s+\d+\s+\.b8\s+(\w+)\[(\d+)\]", body)}
        source = translator.translate(statements(body))
        scope: dict[str, Any] = {**vars(registers), **vars(thread), "Fault": Fault}
        exec(compile(source, match[3], "exec"), scope)
        module.functions[match[3]] = scope["run"]
        module.local[match[3]] = translator.local
        module.sources[match[3]] = source
    return module


def statements(body: str) -> list[str]:
    """Instructions and labels; braces that only group go."""
    # Each loop of inline assembly has labels of its own.
    for number, asm in enumerate(re.findall(r"\{[^{}]*\bagain:[^{}]*\}", body)):
        body = body.replace(asm, re.sub(r"\b(again|done)\b", rf"$\1_{number}", asm), 1)
    body = re.sub(r"(\$\w+):", r"\1:;", body)
    body = re.sub(r"(?m)^\s*[{}]\s*$", "", body)
    body = re.sub(r"(^|;|\n)(\s*)\{(\s*\.)", r"\1\2\3", body)
    body = re.sub(r";(\s*)\}", r";\1", body)
    lines = []
    for line in body.split(";"):
        line = " ".join(line.split())
        if line and not line.startswith((".reg", ".param", ".local", ".shared", ".pragma", ".loc")):
            lines.append(line)
    return lines
