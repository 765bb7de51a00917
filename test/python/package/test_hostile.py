"""Hostile texts, on each path by which a text enters: an error that names the fault, never a crash or a hang.

TEXTS has one row per text, WAYS one per path; each text takes each path.
"""

import base64
import functools
import json
import pathlib
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from typing import Any

import commsir
import numpy as np
import pytest
from conftest import ROOT

#: Seconds and bytes that a way may take.
SECONDS = 60
MEMORY = 6 << 30


def kernel(body: str, arguments: str = "%x: memref<8xf32>", attributes: str = "", name: str = "@k") -> str:
    return (
        f"comms.kernel {name}({arguments}) attributes {{ranks = 1, blocks = 1{attributes}}} {{\n"
        f"  %c0 = arith.constant 0 : index\n  %v = memref.load %x[%c0] : memref<8xf32>\n{body}\n  comms.return\n}}\n"
    )


def chain(op: str, kind: str, first: str, length: int = 30000) -> str:
    """Each operation uses what the one before it computes; the last is where the kernel reads."""
    ops = (f"  %i{n} = {op} %i{n - 1}, %i{n - 1} : {kind}\n" for n in range(1, length))
    return f"{first}{''.join(ops)}  %w = memref.load %x[%i{length - 1}] : memref<8xf32>\n"


FROM_DATA = "  %n = arith.fptosi %v : f32 to i64\n  %i0 = arith.index_cast %n : i64 to index\n"
DEEP = "nested more than 256 deep"
SIGNS = "more than 256 operators"
ALIASES = "name each other more than 256 deep"
CONTROL = "a control character stands here"
DIGITS = "a number has more than 1024 characters"
#: What is run: the error's words, or "" where the kernel is right.
TEXTS: dict[str, tuple[str, str]] = {
    "minus": ("#m = affine_map<(d0) -> (" + "-" * 10000 + "d0)>\n", SIGNS),
    "set": ("#m = affine_set<(d0) : (" + "- " * 10000 + "d0 >= 0)>\n", SIGNS),
    "types": ("!a = " + "tuple<" * 100000, DEEP),
    "regions": ("comms.kernel @k() {" + "scf.execute_region {" * 20000, DEEP),
    "attributes": ("comms.kernel @k() attributes {" + "a = {" * 100000, DEEP),
    "constants": (kernel("  %c = arith.constant dense<" + "[" * 20000), DEEP),
    "opaque": ("#o = #nosuch<" + "<" * 20000, DEEP),
    "locations": (kernel("").rstrip() + " loc(" + "callsite(" * 20000, DEEP),
    "resources": ("{-# a: " + "{b: " * 20000, DEEP),
    "behind a mark": ("// // -----" + "(" * 100000 + "\n" + kernel(""), DEEP),
    "mark in a string": ('#a = "// -----#b = ' + "[" * 100000 + '"\n', DEEP),
    "type aliases": ("!a0 = tuple<i1>\n" + "".join(f"!a{n} = tuple<!a{n - 1}>\n" for n in range(1, 9999)), ALIASES),
    "wide aliases": ("#a0 = [1]\n" + "".join(f"#a{n} = [#a{n - 1}, #a{n - 1}]\n" for n in range(1, 60)), ALIASES),
    "numbered aliases": (
        '#0 = loc("x":1:1)\n' + "".join(f"#{n} = loc(callsite(#{n - 1}at#0))\n" for n in range(1, 9999)),
        ALIASES,
    ),
    "integer": (kernel("  %c = arith.constant " + "9" * 200000 + " : i64"), DIGITS),
    "hexadecimal": (kernel("  %c = arith.constant 0x" + "F" * 500000 + " : i64"), DIGITS),
    "fraction": (kernel("  %c = arith.constant 1." + "9" * 500000 + " : f64"), DIGITS),
    "dimension": (kernel("", "%x: memref<" + "9" * 200000 + "xf32>"), DIGITS),
    "comments": ("//\n" * 1000000 + kernel(""), ""),
    "strings": (kernel("", attributes=", note = [" + ", ".join(['""'] * 500000) + "]"), ""),
    "chain": (kernel(chain("arith.muli", "index", FROM_DATA)), ""),
    "constant chain": (kernel(chain("arith.muli", "index", "  %i0 = arith.constant 0 : index\n")), ""),
    "zero in a name": (kernel("", name='@"a\\00b"'), "a kernel's name must not contain a zero byte"),
    "control in a comment": (kernel("  // \x1b[2J\n  comms.nosuch"), CONTROL),
    "control in a string": (kernel("", attributes=', note = "\x1b[2J"'), CONTROL),
    "control in an escape": (kernel("", attributes=', note = "a\\1B[2J"'), CONTROL),
    "control in two bytes": (kernel("", attributes=', note = "a\\C2\\9B2J"'), CONTROL),
    "control in a name": (kernel("", name='@"a\\07b"'), CONTROL),
    "control in a place": (kernel("").rstrip() + ' loc("\\1B[2J":1:1)\n', CONTROL),
    "control in an op": ('"\\1B[2J.x"() : () -> ()\n', CONTROL),
    "control between ops": (kernel("  \x7f"), CONTROL),
    "no control": (kernel("\t// C:\\12\\1B\r\n", attributes=', note = "\\C3\\A9\\09\\0A\\\\1B"'), ""),
    "huge array": (kernel("", "%x: memref<8xf32>, %y: memref<4611686018427387904x4xf32>"), "2\\^63|overflow|bytes"),
    "huge scratch": (kernel("  %a = memref.alloca() : memref<9999999999xf32>\n  memref.store %v, %a[%c0] : "
                            "memref<9999999999xf32>\n  %w = memref.load %a[%c0] : memref<9999999999xf32>\n"
                            "  memref.store %w, %x[%c0] : memref<8xf32>"), "more than 1 GiB"),
    "unreachable": (kernel("").replace("comms.return", "ub.unreachable"), "ub.unreachable' op is not allowed"),
    "poison": (kernel("  %p = ub.poison : index"), "ub.poison' op is not allowed"),
    "alignment": (kernel("").replace("%x[%c0]", "%x[%c0] {alignment = 4294967296 : i64}"), ""),
    "index division": (kernel("  %q = index.divs %c0, %c0\n  %w = memref.load %x[%q] : memref<8xf32>\n"
                              "  memref.store %w, %x[%c0] : memref<8xf32>"), "covers \\[-1, |elements \\[-1, "),
    "resource": (kernel("  %r = arith.constant dense_resource<b> : tensor<8xf32>"), "not an inline constant"),
    "constructors": (
        "llvm.mlir.global_ctors ctors = [], priorities = [], data = []\n" + kernel(""),
        "next to a kernel",
    ),
    "linker": ('llvm.linker_options ["-init", "x"]\n' + kernel(""), "next to a kernel"),
    "intrinsic": (kernel('  llvm.call_intrinsic "llvm.trap"() : () -> ()'), "LLVM dialect cannot be checked"),
}  # fmt: skip


def start(command: list[str], given: bytes = b"") -> tuple[int, str]:
    """The exit status of a process with limits, and what it writes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    done = subprocess.run(command, input=given, capture_output=True, timeout=SECONDS, preexec_fn=limit, check=False)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def program(name: str) -> str:
    path = ROOT / "build" / "bin" / name
    if not path.exists():
        pytest.skip(f"{name} is not built")
    return str(path)


def frame(method: str, params: dict[str, Any], number: int | None = None) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {}))
    return framed(body.encode())


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def by_editor(path: pathlib.Path) -> tuple[int, str]:
    return edit(path.as_uri(), path.read_text())


def edit(uri: str, text: str, sent: bytes = b"") -> tuple[int, str]:
    """A session of an editor that opens the text, then sends other messages."""
    document = {"uri": uri, "languageId": "mlir", "version": 1, "text": text}
    first = frame("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 1)
    first += frame("textDocument/didOpen", {"textDocument": document})
    return start([program("comms-lsp-server")], first + sent + frame("shutdown", {}, 2) + frame("exit", {}))


#: In a process of its own: each way in turn, with the error of each on a line.
PYTHON = """
import pathlib, sys
import numpy as np
import commsir
path, saved, folder = map(pathlib.Path, sys.argv[1:])
text = path.read_text()
x = np.zeros(8, np.float32)
ways = {
    "simulate": lambda: commsir.simulate(text, ranks=1, arrays={"x": [x]}, time_limit=20),
    "compile_ir": lambda: commsir.compile_ir(text, ranks=1, produce="ir"),
    "group": lambda: commsir.Group(0, 1, folder=str(folder), name="hostile").kernel(text)(x),
    "replay": lambda: commsir.replay(saved, time_limit=20),
}
for name, way in ways.items():
    try:
        way()
        print(name, "ran")
    except commsir.CommsError as error:
        print(name, str(error).replace("\\n", " ")[:1000])
"""

FAILS = kernel("  %n = arith.fptosi %v : f32 to i64\n  %i = arith.index_cast %n : i64 to index\n"
               "  %w = memref.load %x[%i] : memref<8xf32>\n  memref.store %w, %x[%c0] : memref<8xf32>")  # fmt: skip


def by_python(path: pathlib.Path) -> tuple[int, str]:
    """By simulate, compile_ir, Group.kernel and the replay of a saved run: all go through the C API."""
    return start([sys.executable, "-c", PYTHON, str(path), str(save_run(path)), str(path.parent)])


def by_replay(path: pathlib.Path) -> tuple[int, str]:
    return start([sys.executable, "-c", REPLAY, str(save_run(path))])


REPLAY = """
import sys
import commsir
try:
    commsir.replay(sys.argv[1], time_limit=20)
except commsir.UsageError as error:
    sys.exit(f"error: {error}")
"""


def save_run(path: pathlib.Path) -> pathlib.Path:
    """A saved run of the kernel in a file."""
    old, new = path.parent / "old.zip", path.parent / "new.zip"
    with pytest.raises(commsir.BoundsError) as caught:
        commsir.simulate(FAILS, ranks=1, arrays={"x": [np.full(8, 1e9, np.float32)]})
    caught.value.save(old)
    with zipfile.ZipFile(old) as read, zipfile.ZipFile(new, "w") as made:
        for name in read.namelist():
            made.writestr(name, path.read_bytes() if name == "kernel.mlir" else read.read(name))
    return new


def by_program(*words: str) -> Any:
    return lambda path: start([program(words[0]), *words[1:], str(path)])


WAYS = {
    "comms-run": by_program("comms-run", "--quiet", "--time-limit=20"),
    "comms-opt": by_program("comms-opt", "--comms-check-ops", "-o", "/dev/null"),
    "comms-opt, split": by_program("comms-opt", "--split-input-file", "-o", "/dev/null"),
    "comms-opt, piped": lambda path: start([program("comms-opt"), "-o", "/dev/null"], path.read_bytes()),
    "comms-translate": by_program("comms-translate", "--comms-to-llvmir", "-o", "/dev/null"),
    "editor": by_editor,
    "python": by_python,
}
#: Ways that run the kernel, or compile it: each text that is wrong is an error there.
COMPILES = {"comms-run", "python"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", TEXTS)
def test_is_an_error_or_runs(what: str, way: str, tmp_path: pathlib.Path) -> None:
    text, message = TEXTS[what]
    path = tmp_path / "hostile.mlir"
    path.write_text(text)
    status, said = WAYS[way](path)
    assert 0 <= status < 9, f"it ended with {status}: {said[-500:]}"
    scanned = message in (DEEP, SIGNS, ALIASES, DIGITS)
    if message and (scanned or way in COMPILES):
        assert re.search(message, said), said[:500]


def bytecode() -> bytes:
    command = [program("comms-opt"), "--emit-bytecode", "-"]
    return subprocess.run(command, input=kernel("").encode(), capture_output=True, check=True).stdout


def flip(data: bytes, bit: int) -> bytes:
    made = bytearray(data)
    made[bit // 8] ^= 1 << bit % 8
    return bytes(made)


#: What is made of right bytecode.
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "whole": lambda data: data,
    **{f"first {part} bytes": functools.partial(lambda part, data: data[:part], part) for part in (4, 5, 6, 20, 60)},
    "first half": lambda data: data[: len(data) // 2],
    "all but a byte": lambda data: data[:-1],
    "twice": lambda data: data * 2,
    **{f"bit {bit}": functools.partial(lambda bit, data: flip(data, bit), bit) for bit in (32, 40, 80, 120, 200, 400)},
    "each 50th bit": lambda data: functools.reduce(flip, range(40, len(data) * 8, 50), data),
    "ones": lambda data: data[:8] + b"\xff" * 200,
    "zeros": lambda data: data[:8] + b"\0" * 200,
}
#: Those that run kernels, which refuse all bytecode; the editor as a request. (comms-opt and comms-translate trust
#: it: docs/Security.md.)
REFUSES = {way: WAYS[way] for way in ("comms-run",)} | {
    "replay": by_replay,
    "comms-run, piped": lambda path: start([program("comms-run"), "--quiet", "-"], path.read_bytes()),
    "editor": lambda path: edit(URI, kernel(""), frame("mlir/convertFromBytecode", {
        "uri": URI, "bytecode": base64.b64encode(path.read_bytes()).decode()}, 7)),
}  # fmt: skip


@pytest.mark.parametrize("way", REFUSES)
@pytest.mark.parametrize("what", DAMAGES)
def test_bytecode_is_refused(what: str, way: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "hostile.mlir"
    path.write_bytes(DAMAGES[what](bytecode()))
    status, said = REFUSES[way](path)
    assert status in ((0,) if way == "editor" else (1, 3)), f"it ended with {status}: {said[-500:]}"
    assert "does not read it" in said if way == "editor" else "error: " in said, said[-500:]
    if way.startswith("comms-run") and path.read_bytes().startswith(b"ML\xefR"):
        assert "is MLIR bytecode: give the text" in said, said[-500:]


@pytest.mark.parametrize("way", ["comms-opt", "comms-translate"])
@pytest.mark.parametrize("what", DAMAGES)
def test_bytecode_is_read(what: str, way: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "hostile.mlir"
    path.write_bytes(DAMAGES[what](bytecode()))
    status, said = WAYS[way](path)
    assert status == 0 if what == "whole" else status in (0, 1), f"it ended with {status}: {said[-500:]}"
    assert status == 0 or "error: " in said, said[-500:]


def test_a_fifo_is_read_once(tmp_path: pathlib.Path) -> None:
    """A file that is not a regular one: what is checked is what is read."""
    for text, expected in ((TEXTS["types"][0], 1), (kernel(""), 0)):
        path = tmp_path / "text.mlir"
        path.write_text(text)
        command = f"{program('comms-opt')} -o /dev/null <(cat {path})"
        status, said = start(["bash", "-c", command])
        assert status == expected, said[:300]


URI = "file:///a.mlir"
AT_BEGIN = {key: {"line": 0, "character": 0} for key in ("start", "end")}


def change(*changes: dict[str, Any]) -> bytes:
    return frame("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [*changes]})


#: What an editor sends in addition to texts, and what the server says of it.
MESSAGES = {
    "bytecode": (frame("mlir/convertFromBytecode", {"uri": URI, "bytecode": "TUzvUgEA/wD/"}, 7), "does not read it"),
    "range that brings hostile text": (
        change({"range": AT_BEGIN, "text": TEXTS["types"][0]}), ""),
    "ranges that add up to hostile text": (
        b"".join(change({"range": AT_BEGIN, "text": "tuple<" * 100}) for _ in range(1000)), ""),
    "text behind a range": (change({"range": AT_BEGIN, "text": ""}, {"text": TEXTS["types"][0]}), ""),
    "deep JSON": (framed(b"[" * 1000000), ""),
    "deep parameters": (framed(b'{"jsonrpc":"2.0","id":7,"method":"shutdown","params":' + b"[" * 300000), ""),
    "many values": (framed(b'{"jsonrpc":"2.0","id":7,"method":"nosuch","params":[' + b"0," * 20000000 + b"0]}"), ""),
    "no version": (framed(b'{"id":7,"method":"shutdown"}'), 'is not "2.0"'),
    "endless id": (framed(b'{"jsonrpc":"2.0","id":1e999,"method":"nosuch"}'), ""),
    "list as id": (framed(b'{"jsonrpc":"2.0","id":[7],"method":"nosuch"}'), ""),
    "number": (framed(b"7"), ""),
    "batch": (framed(b'[{"jsonrpc":"2.0","id":7,"method":"shutdown"}]'), ""),
    "string that ends with a line of Windows": (
        change({"text": 'comms.kernel @k() attributes {note = "a\r\nb"} {\r\n}'}), "in string literal"),
    "error behind a carriage return": (change({"text": "comms.kernel @k() {\r  nosuch.op\n}"}), "nosuch"),
    "long message": (framed(b" " * (65 << 20)), "skips a message of 68157440 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("what", MESSAGES)
def test_a_message_is_no_end_of_the_editor(what: str) -> None:
    """The server answers what follows the message: the status is that of a session that was shut down."""
    sent, said_of_it = MESSAGES[what]
    status, said = edit(URI, kernel(""), sent)
    assert status == 0, f"it ended with {status}: {said[-500:]}"
    assert '"id":2,' in said and '"id":inf' not in said, said[-500:]
    assert said_of_it in said.replace("\\", ""), said[-500:]


def test_headers_without_an_end() -> None:
    status, _ = start([program("comms-lsp-server")], b"X: Y\r\n" * 30000000)
    assert status == 1
    status, _ = start([program("comms-lsp-server")], b"X" * 200000000)
    assert status == 1


@pytest.mark.parametrize("name", ["comms-run", "comms-opt", "comms-translate"])
def test_a_file_name_reaches_no_terminal(name: str, tmp_path: pathlib.Path) -> None:
    options = ["--comms-to-ptx"] if name == "comms-translate" else []
    for path in (tmp_path / "none\x1b[2J.mlir", tmp_path / "deep\x1b[2J.mlir"):
        if "deep" in path.name:
            path.write_text(TEXTS["types"][0])
        status, said = start([program(name), *options, str(path)])
        assert status and "?[2J.mlir" in said and "\x1b" not in said, said
