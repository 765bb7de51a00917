"""Random changes to sessions of an editor with comms-lsp-server: each must end cleanly, and answers must be JSON-RPC.

A session is a list of frames for the server's standard input: requests and notifications about texts of tests, with
wrong methods, types, ids, positions, ranges, lengths, headers and order, broken and deeply nested JSON, damaged text
and bytecode. Faults are: a signal, a status other than 0 and 1, more than LIMIT seconds, more than MEMORY bytes,
output that is no frame of JSON-RPC, and an answer without an id.

Usage: editor.py --server PROGRAM [--sessions N] [--seed S] [--seconds T] [--jobs J] [--keep FOLDER] [--corpus FOLDER]
Files of the corpus, each with the bytes of a session, are sent first. A failure keeps the session in FOLDER.
"""

import argparse
import base64
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

LIMIT = 30
MEMORY = 2 << 30
ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("test/tools/Inputs", "test/exec", "test/dialect", "test/lowering/check-sync/mutants")

METHODS = [f"textDocument/{name}" for name in (
    "definition", "references", "hover", "documentSymbol", "inlayHint", "completion", "codeAction", "formatting",
)]  # fmt: skip
OTHERS = ["initialize", "initialized", "shutdown", "exit", "$/cancelRequest", "nosuch", "", "x" * 5000, "mlir/\0", "é"]
BYTECODE = ["mlir/convertFromBytecode", "mlir/convertToBytecode"]
NUMBERS: list[Any] = [0, 1, 2, 7, -1, 80, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63)]
NUMBERS += [1 << 64, 1e308, -0.5, 10**400]
VALUES: list[Any] = [*NUMBERS, "", "x", "0", "é" * 99, "\0", "\ud800", None, True, False, [], {}, [[]], [{}], {"a": []}]
URIS = ["file:///a.mlir", "file:///b.mlir", "file:///a.mlir#1", "mlir.bytecode-mlir:///a.mlir", "untitled:a", "", "a"]
URIS += ["file:///%00", "file:///%zz", "http://x/y", "file:////etc/passwd", "file:///" + "d/" * 3000, "file://", ":"]
PIECES = [
    "(",
    "{",
    "[",
    "<",
    ")",
    "}",
    '"',
    "//",
    "// -----\n",
    "%",
    "@",
    "#a",
    "!a",
    "-",
    "9" * 40,
    "\0",
    "\t",
    "é",
    "\n",
]
PIECES += [
    "\r\n",
    "\U0001f600",
    "loc(",
    "dense<",
    "affine_map<",
    "tensor<*x",
    "^bb0",
    "->",
    "(" * 300,
    "#a = #a\n",
    ":",
]
#: What replaces a header.
HEADERS = [b"Content-Length: -1", b"Content-Length: 0", b"Content-Length: 99999999999999999999", b"Content-Length:"]
HEADERS += [b"Content-Length: 1073741823", b"Content-Length: x", b"Content-Length: 7 7", b"content-length:2", b""]
HEADERS += [b"X" * 70000, b"X: Y", b"\0", b"Content-Length: 4294967297", b"Content-Length: 12\r\nContent-Length: 3"]
BROKEN = [
    b"",
    b"{",
    b"[",
    b"null",
    b"0",
    b"[" * 200000,
    b'{"a":' * 100000,
    b'{"id":1}',
    b"\xff\xfe",
    b'"' + b"x" * 99999,
]
BROKEN += [b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":' + b"[" * 900 + b"]" * 900 + b"}", b"[{}]", b"{}{}"]


def texts() -> list[str]:
    """Texts of tests, the short ones: sorted, so that a seed means the same everywhere."""
    found = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.mlir"))
    return [text for text in (path.read_text() for path in found) if len(text) < 5000]


class Writer:
    """Writes one session."""

    def __init__(self, seed: int, base: list[str], bytecode: bytes) -> None:
        self.random = random.Random(seed)
        self.base = base
        self.bytecode = bytecode
        self.number = 0
        #: Whether headers are changed: what follows one is lost.
        self.loses_headers = self.random.random() < 0.15
        self.uris = self.random.choices(URIS, k=2) if self.random.random() < 0.3 else URIS[:2]
        self.open: dict[str, str] = {}

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def text(self) -> str:
        rnd = self.random
        text = rnd.choice(self.base)
        if self.chance(0.2):
            text = text[: rnd.randrange(len(text) + 1)]
        for _ in range(rnd.choice([0, 0, 1, 1, 2, 5])):
            begin = rnd.randrange(len(text) + 1)
            end = begin + rnd.choice([0, 0, 1, 3, 30])
            piece = rnd.choice(PIECES) if self.chance(0.6) else text[(at := rnd.randrange(len(text) + 1)) : at + 40]
            text = text[:begin] + piece + text[end:]
        return text + rnd.choice(["", "", "", "// -----\n" + rnd.choice(self.base), "\0" + text])

    def position(self, uri: str) -> Any:
        rnd = self.random
        if self.chance(0.15):
            return {"line": rnd.choice(NUMBERS), "character": rnd.choice(NUMBERS)}
        lines = self.open.get(uri, "").split("\n")
        line = rnd.randrange(len(lines))
        return {"line": line, "character": rnd.randrange(len(lines[line]) + 2)}

    def range(self, uri: str) -> Any:
        return {"start": self.position(uri), "end": self.position(uri)}

    def damaged_bytecode(self) -> bytes:
        rnd = self.random
        made = bytearray(self.bytecode[: rnd.randrange(len(self.bytecode) + 1)] if self.chance(0.3) else self.bytecode)
        for _ in range(rnd.choice([0, 1, 4])):
            if made:
                made[rnd.randrange(len(made))] = rnd.randrange(256)
        return bytes(made)

    def request(self) -> tuple[str, Any]:
        """A method and its parameters, of the right types."""
        rnd = self.random
        uri = rnd.choice(self.uris)
        kind = rnd.random()
        if kind < 0.22 or not self.open:
            text = self.text()
            if uri not in self.open or self.chance(0.1):
                self.open[uri] = text
                document = {"uri": uri, "languageId": "mlir", "version": rnd.choice([1, 1, *NUMBERS]), "text": text}
                return "textDocument/didOpen", {"textDocument": document}
            changes: list[dict[str, Any]] = [{"text": text}]
            for _ in range(rnd.choice([0, 0, 1, 3])):
                piece = {"range": self.range(uri), "rangeLength": rnd.choice(NUMBERS), "text": rnd.choice(PIECES)}
                changes.insert(rnd.randrange(len(changes) + 1), piece)
            self.open[uri] = text
            return "textDocument/didChange", {
                "textDocument": {"uri": uri, "version": rnd.choice([2, 3, *NUMBERS])}, "contentChanges": changes,
            }  # fmt: skip
        if kind < 0.25:
            self.open.pop(uri, None)
            return "textDocument/didClose", {"textDocument": {"uri": uri}}
        if kind < 0.33:
            method = rnd.choice(BYTECODE)
            data = base64.b64encode(self.damaged_bytecode()).decode()
            return method, {"uri": uri, "bytecode": data, "output": data}
        if kind < 0.36:
            return rnd.choice(OTHERS), {"processId": None, "rootUri": None, "capabilities": {}, "id": self.number}
        found = {"message": rnd.choice(PIECES), "range": self.range(uri), "severity": rnd.choice(NUMBERS[:4])}
        return rnd.choice(METHODS), {
            "textDocument": {"uri": uri}, "position": self.position(uri), "range": self.range(uri),
            "context": {"includeDeclaration": self.chance(0.5), "triggerKind": rnd.choice([1, 2, 3]),
                        "triggerCharacter": rnd.choice(PIECES), "diagnostics": [found], "only": ["quickfix"]},
        }  # fmt: skip

    def change(self, value: Any) -> Any:
        """The value with one change somewhere in it."""
        rnd = self.random
        if not isinstance(value, dict | list) or not value or self.chance(0.1):
            return rnd.choice(VALUES)
        if isinstance(value, dict):
            made = dict(value)
            key = rnd.choice(list(made))
            if self.chance(0.15):
                del made[key]
            else:
                made[key] = self.change(made[key])
            return made
        at = rnd.randrange(len(value))
        return [*value[:at], self.change(value[at]), *value[at + 1 :]]

    def body(self) -> bytes:
        rnd = self.random
        if self.chance(0.03):
            return rnd.choice(BROKEN)
        method, params = self.request()
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("textDocument/did") and method not in ("initialized", "exit"):
            self.number += 1
            message["id"] = self.number
        for _ in range(rnd.choice([0, 0, 0, 0, 1, 2])):
            message = self.change(message)
        body = json.dumps(message, ensure_ascii=self.chance(0.5)).encode(errors="surrogatepass")
        if self.chance(0.02):
            at = rnd.randrange(len(body))
            body = body[:at] + rnd.randbytes(rnd.randrange(3)) + body[at + rnd.randrange(3) :]
        return body

    def frame(self, body: bytes) -> bytes:
        rnd = self.random
        head = b"Content-Length: %d" % len(body)
        if not self.loses_headers or self.chance(0.8):
            return head + b"\r\n\r\n" + body
        kind = rnd.randrange(4)
        if kind == 0:
            return b"Content-Length: %d\r\n\r\n" % rnd.choice([len(body) + 5, max(len(body) - 5, 0)]) + body
        if kind == 1:
            return head + rnd.choice([b"\n\n", b"\r\n", b"\n\r\n\r\n", b""]) + body
        head = rnd.choice(HEADERS) if kind == 2 else head + b"\r\n" + rnd.choice(HEADERS)
        return head + b"\r\n\r\n" + body

    def session(self) -> bytes:
        def plain(method: str, number: int | None = None) -> bytes:
            params: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
            message = {"jsonrpc": "2.0", "method": method, "params": params} | (
                {} if number is None else {"id": number}
            )
            body = json.dumps(message).encode()
            return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

        frames = [] if self.chance(0.05) else [plain("initialize", 0)]
        frames += [self.frame(self.body()) for _ in range(self.random.randint(1, 40))]
        end = self.random.random()
        if end < 0.7:
            frames += [plain("shutdown", 1 << 20)] * (2 if end < 0.1 else 1)
        if end < 0.8:
            frames += [plain("exit")]
        sent = b"".join(frames)
        return sent[: self.random.randrange(len(sent) + 1)] if self.chance(0.05) else sent


def read_frames(output: bytes) -> tuple[list[Any], str]:
    """What the server wrote, as values, and what is wrong with it."""
    found: list[Any] = []
    while output:
        head, mark, rest = output.partition(b"\r\n\r\n")
        if not mark or not head.startswith(b"Content-Length: "):
            return found, f"output is no frame: {output[:80]!r}"
        length = int(head.removeprefix(b"Content-Length: "))
        try:
            found.append(json.loads(rest[:length]))
        except ValueError as error:
            return found, f"output is not JSON: {error}: {rest[:length][:80]!r}"
        output = rest[length:]
    return found, ""


class Judge:
    def __init__(self, server: str) -> None:
        self.server = server

    def run(self, sent: bytes, waits: bool) -> tuple[int, bytes, str, int]:
        """The status, the output, the end of what the server says of itself, and its most bytes of memory."""

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY, 2 * MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [self.server], stdin=subprocess.PIPE, stdout=output, stderr=said, preexec_fn=limit
            )
            killer = threading.Timer(LIMIT, process.kill)
            killer.start()
            assert process.stdin
            try:
                process.stdin.write(sent)
                process.stdin.flush()
                if waits:  # Until the checker has begun.
                    time.sleep(0.5)
                process.stdin.close()
            except BrokenPipeError:
                pass  # The server ended before.
            _, status, usage = os.wait4(process.pid, 0)
            killer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            said.seek(0)
            errors = said.read().decode(errors="replace")
            return process.returncode, output.read(), errors[-300:], usage.ru_maxrss * 1024

    def judge(self, sent: bytes, waits: bool) -> tuple[collections.Counter[str], str]:
        """What came of it, and what is wrong with that."""
        begun = time.monotonic()
        status, output, said, memory = self.run(sent, waits)
        took = time.monotonic() - begun
        answers, wrong = read_frames(output)
        counts = collections.Counter({"sessions": 1, f"status {status}": 1})
        for answer in answers:
            if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
                wrong = wrong or f"an answer is no JSON-RPC: {str(answer)[:80]}"
            elif "method" in answer:
                counts["notifications"] += 1
            else:
                counts["errors" if "error" in answer else "results"] += 1
                if "id" not in answer:
                    wrong = wrong or f"an answer has no id: {str(answer)[:80]}"
        if took > LIMIT:
            wrong = f"it took {took:.1f} s"
        elif status not in (0, 1):
            wrong = f"status {status}: {said}"
        elif memory > MEMORY:
            wrong = f"it took {memory} bytes of memory"
        return counts, wrong


def make_bytecode(server: str, text: str) -> bytes:
    """Bytecode of a text, by the comms-opt in the server's folder."""
    program = pathlib.Path(server).with_name("comms-opt")
    done = subprocess.run([program, "--emit-bytecode", "-"], input=text.encode(), capture_output=True, check=True)
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="comms-lsp-server")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "commsir-editor")
    parser.add_argument("--corpus", type=pathlib.Path, default=pathlib.Path(__file__).parent / "corpus/editor")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    base = texts()
    bytecode = make_bytecode(options.server, (ROOT / "test/tools/Inputs/sum.mlir").read_text())
    judge = Judge(options.server)
    counts: collections.Counter[str] = collections.Counter()
    lock = threading.Lock()

    def note(sent: bytes, what: str, waits: bool) -> None:
        found, wrong = judge.judge(sent, waits)
        with lock:
            counts.update(found)
            if not wrong:
                return
            counts["wrong"] += 1
            options.keep.mkdir(parents=True, exist_ok=True)
            kept = options.keep / f"{what}.lsp"
            kept.write_bytes(sent)
            print(f"WRONG {what}: {wrong}\n  {kept}", flush=True)

    def one(number: int) -> None:
        if time.monotonic() < deadline:
            note(Writer(number, base, bytecode).session(), str(number), number % 10 == 0)

    for seed in sorted(options.corpus.glob("*.lsp")):
        note(seed.read_bytes(), seed.stem, True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, range(options.seed, options.seed + options.sessions)))
    print(", ".join(f"{name}: {number}" for name, number in sorted(counts.items())))
    print(f"{counts['sessions']} sessions from seed {options.seed}")
    # Fewer answers would be a test of nothing.
    enough = counts["results"] >= 10 and counts["errors"] >= 10 and counts["notifications"] >= 10
    sys.exit(0 if enough and not counts["wrong"] else 1)


if __name__ == "__main__":
    main()
