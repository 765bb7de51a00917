"""Speaks to comms-lsp-server: opens a document, prints the diagnostics it publishes.

Usage: lsp.py FILE
"""

import json
import pathlib
import subprocess
import sys
from typing import Any


def message(method: str, parameters: dict[str, Any], number: int | None = None) -> bytes:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": parameters}
    if number is not None:
        body["id"] = number
    data = json.dumps(body).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data)


def main() -> None:
    path = pathlib.Path(sys.argv[1]).resolve()
    document = {
        "uri": path.as_uri(),
        "languageId": "mlir",
        "version": 1,
        "text": path.read_text(encoding="utf-8"),
    }
    talk = message("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 1)
    talk += message("textDocument/didOpen", {"textDocument": document})
    talk += message("shutdown", {}, 2) + message("exit", {})
    done = subprocess.run(["comms-lsp-server"], input=talk, capture_output=True, timeout=60)
    for part in done.stdout.split(b"Content-Length:"):
        if b"publishDiagnostics" not in part:
            continue
        answer = json.loads(part.split(b"\r\n\r\n", 1)[1])
        for diagnostic in answer["params"]["diagnostics"]:
            print(diagnostic["range"]["start"]["line"] + 1, diagnostic["message"])
        print(len(answer["params"]["diagnostics"]), "diagnostics")


if __name__ == "__main__":
    main()
