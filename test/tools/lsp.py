"""Talks to comms-lsp-server: opens a document, prints the diagnostics that it publishes.

Usage: lsp.py FILE                    the diagnostics
       lsp.py FILE --at TEXT ASK...   answers about the first TEXT of the file: hover, definition, references, or
                                      completion, of a file that ends after TEXT
       lsp.py FILE --type             the diagnostics after each line, as if it were typed
       lsp.py FILE --then OTHER       the diagnostics, and those after the text was changed to that of OTHER
       lsp.py FILE --check            types the file while the checker may run: the diagnostics with its verdict, and
                                      whether typing had to wait
"""

import json
import pathlib
import subprocess
import sys
import time
from typing import Any


class Server:
    """The server in a process, and one open document."""

    def __init__(self, path: pathlib.Path, text: str, *flags: str) -> None:
        self.process = subprocess.Popen(
            ["comms-lsp-server", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0
        self.diagnostics: list[Any] = []
        self.document = {"uri": path.as_uri()}
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.tell("initialized", {})
        self.tell(
            "textDocument/didOpen", {"textDocument": self.document | {"languageId": "mlir", "version": 1, "text": text}}
        )

    def tell(self, method: str, parameters: dict[str, Any], number: int | None = None) -> None:
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": parameters}
        if number is not None:
            body["id"] = number
        data = json.dumps(body).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout
        length = 0
        while line := self.process.stdout.readline().strip():
            length = int(line.removeprefix(b"Content-Length:"))
        if not length:
            sys.exit(f"the server is gone, with {self.process.wait()}")
        return json.loads(self.process.stdout.read(length))

    def ask(self, method: str, parameters: dict[str, Any]) -> Any:
        """The answer; diagnostics that come before it are kept."""
        self.number += 1
        self.tell(method, parameters, self.number)
        while True:
            answer = self.read()
            if answer.get("method") == "textDocument/publishDiagnostics":
                self.diagnostics = answer["params"]["diagnostics"]
            elif answer.get("id") == self.number:
                return answer.get("result")

    def about(self, method: str, line: int, character: int) -> Any:
        position = {"line": line, "character": character}
        context = {"includeDeclaration": True, "triggerKind": 1}
        return self.ask(
            "textDocument/" + method, {"textDocument": self.document, "position": position, "context": context}
        )

    def change(self, version: int, text: str) -> None:
        self.tell(
            "textDocument/didChange",
            {"textDocument": self.document | {"version": version}, "contentChanges": [{"text": text}]},
        )
        # Answers come in order: the diagnostics of this text are there before this one.
        self.about("hover", 0, 0)

    def wait_for_verdict(self) -> None:
        """Reads until the checker's diagnostics are there."""
        while not any(d.get("source") == "comms-check-sync" for d in self.diagnostics):
            answer = self.read()
            if answer.get("method") == "textDocument/publishDiagnostics":
                self.diagnostics = answer["params"]["diagnostics"]

    def end(self) -> None:
        self.ask("shutdown", {})
        self.tell("exit", {})
        if self.process.wait(timeout=60):
            sys.exit(f"the server ends with {self.process.returncode}")


def show(place: dict[str, Any]) -> str:
    start, end = place["range"]["start"], place["range"]["end"]
    return f"{start['line'] + 1}:{start['character'] + 1} to {end['line'] + 1}:{end['character'] + 1}"


def answer(server: Server, text: str, word: str, asked: list[str]) -> None:
    before = text[: text.index(word)]
    line, character = before.count("\n"), len(before) - (before.rfind("\n") + 1)
    for method in asked:
        if method == "completion":
            server.change(2, before + word)
        found = server.about(method, line, character + (len(word) if method == "completion" else 1))
        match method:
            case "hover":
                print("hover:", found["contents"]["value"])
            case "completion":
                print("completion:", *sorted(item["label"] for item in found["items"]))
            case _:
                print(f"{method}:", *(show(place) for place in found), sep="\n  ")


def show_diagnostics(server: Server, prefix: str = "") -> None:
    for diagnostic in server.diagnostics:
        print(prefix + str(diagnostic["range"]["start"]["line"] + 1), diagnostic["message"])
    print(f"{prefix}{len(server.diagnostics)} diagnostics")


def check(server: Server, text: str) -> None:
    """Types while the checker may run: answers come at once, and the verdict is that of the last text."""
    lines = text.splitlines(keepends=True)
    slowest = 0.0
    for count in range(len(lines) + 1):
        start = time.monotonic()
        server.change(count + 2, "".join(lines[:count]))
        slowest = max(slowest, time.monotonic() - start)
        server.diagnostics = []
    server.wait_for_verdict()
    show_diagnostics(server)
    print("typing", "never waits" if slowest < 5 else f"waits {slowest:.1f} s")


def main() -> None:
    path = pathlib.Path(sys.argv[1]).resolve()
    text = path.read_text(encoding="utf-8")
    typed = sys.argv[2:] == ["--type"]
    checked = sys.argv[2:] == ["--check"]
    server = Server(path, "" if typed else text, *(() if checked else ("--no-check",)))
    if checked:
        check(server, text)
    elif typed:
        lines = text.splitlines(keepends=True)
        for count in range(1, len(lines) + 1):
            server.change(count + 1, "".join(lines[:count]))
            print(f"{count} lines: {len(server.diagnostics)} diagnostics", *(d["message"] for d in server.diagnostics))
    elif sys.argv[2:3] == ["--then"]:
        server.about("hover", 0, 0)
        show_diagnostics(server)
        server.change(2, pathlib.Path(sys.argv[3]).read_text(encoding="utf-8"))
        show_diagnostics(server, "then ")
        for method in "hover", "definition", "references", "completion":
            server.about(method, 1, 100)
    elif len(sys.argv) > 2:
        answer(server, text, sys.argv[3], sys.argv[4:])
    else:
        server.about("hover", 0, 0)
        show_diagnostics(server)
    server.end()


if __name__ == "__main__":
    main()
