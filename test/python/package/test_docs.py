"""What the pages of documentation show is run."""

import os
import pathlib
import re
import subprocess
import sys

from conftest import ROOT


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_python_page(tmp_path: pathlib.Path) -> None:
    """All blocks in order, as one program."""
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks("Python.md", "python")))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "frontend")}
    done = subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 0, block 0: comms.wait_signal at kernel.mlir:5:10" in done.stdout


def test_c_page(tmp_path: pathlib.Path) -> None:
    (example,) = blocks("CApi.md", "c")
    (tmp_path / "example.c").write_text(example)
    library = os.environ["COMMSIR_LIBRARY"]
    compiler = os.environ.get("CC", "/usr/bin/clang-22")
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command = [compiler, *strict, "example.c", f"-I{ROOT}", f"-L{library}", "-lcommsir", f"-Wl,-rpath,{library}"]
    made = subprocess.run([*command, "-o", "example"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([tmp_path / "example"], capture_output=True, text=True)
    (shown,) = blocks("CApi.md", "console")
    assert done.stdout.strip() == shown.strip().splitlines()[-1]


def test_every_key_of_a_request_is_documented() -> None:
    keys = re.findall(r'^ +\{"(\w+)",', (ROOT / "runtime" / "capi" / "Request.cpp").read_text(), re.MULTILINE)
    page = (ROOT / "docs" / "CApi.md").read_text()
    assert len(keys) > 25 and not [key for key in keys if f"`{key}`" not in page]
