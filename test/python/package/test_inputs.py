"""File names that lead to something other than an ordinary file: an error, never a hang, never all of memory.

READERS has one row for each program or function that opens a file named by the user, PLACES one for each kind of file.
Each reader gets each place.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from conftest import fake_gpus
from test_hostile import kernel, program, start


def fifo(path: pathlib.Path) -> None:
    os.mkfifo(path)


def hole(path: pathlib.Path) -> None:
    """A file of a terabyte that takes no room."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


def listener(path: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(path.parent):
        one.bind(path.name)


def loop(path: pathlib.Path) -> None:
    path.symlink_to(path)


def link(path: pathlib.Path) -> None:
    os.mkfifo(path.with_suffix(".fifo"))
    path.symlink_to(path.with_suffix(".fifo"))


#: How each comes to be; the second word says whether a shell's <(...) is of this kind, which some readers read.
PLACES: dict[str, tuple[Callable[[pathlib.Path], None], bool]] = {
    "fifo": (fifo, True),
    "link to a fifo": (link, True),
    "folder": (pathlib.Path.mkdir, False),
    "device": (lambda path: path.symlink_to("/dev/zero"), False),
    "terminal": (lambda path: path.symlink_to("/dev/tty"), False),
    "socket": (listener, False),
    "loop": (loop, False),
    "hole": (hole, False),
}
RUN = ["comms-run", "KERNEL", "--ranks", "1", "--quiet"]
#: Command, and whether it reads pipes, too.
READERS: dict[str, tuple[list[str], bool]] = {
    "kernel": (["comms-run", "PLACE", "--ranks", "1"], True),
    "batch": (["comms-run", "--batch", "PLACE"], True),
    "input": ([*RUN, "--input", "x=PLACE"], False),
    "expect": ([*RUN, "--expect", "x=PLACE"], False),
    "opt": (["comms-opt", "PLACE"], True),
    "translate": (["comms-translate", "--comms-to-ptx", "PLACE"], True),
    "library": (["comms-translate", "--comms-to-ptx", "--device-library=PLACE", "KERNEL"], False),
    "compare": (["comms-bench", "--compare", "PLACE", "PLACE"], False),
    "replay": (["python", "commsir.replay(PLACE)"], False),
    "table": (["python", "commsir.Table.load(PLACE)"], False),
    "tables": (["python", "commsir.load_tables(PLACE)"], False),
    "group's kernel": (["python", "commsir.Group(0, 1, folder=FOLDER).kernel(pathlib.Path(PLACE))"], False),
    "group's folder": (["python", "commsir.Group(0, 1, folder=PLACE)"], False),
}
#: What is right: a folder in which ranks meet.
RIGHT = {("group's folder", "folder")}

PYTHON = """
import json, pathlib, sys
import commsir
FOLDER, names, call = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
said = []
for PLACE in names:
    try:
        eval(call)
        said.append("")
    except commsir.CommsError as error:
        said.append(f"error: {type(error).__name__}: {error}")
print(json.dumps(said))
"""


@pytest.fixture
def places(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    for name, (make, _) in PLACES.items():
        make(tmp_path / name)
    (tmp_path / "kernel.mlir").write_text(kernel(""))
    yield tmp_path


def by_python(call: str, folder: pathlib.Path, names: list[str]) -> list[str]:
    """What one process says of each place; "" if there is no error."""
    paths = json.dumps([str(folder / name) for name in names])
    status, said = start([sys.executable, "-c", PYTHON, str(folder / "store"), paths, call])
    assert status == 0, f"it ended with {status}: {said[-500:]}"
    return [str(text) for text in json.loads(said.splitlines()[0])]


def by_program(words: list[str], folder: pathlib.Path, name: str) -> str:
    command = [program(words[0]), *words[1:]]
    for word, value in {"PLACE": folder / name, "KERNEL": folder / "kernel.mlir"}.items():
        command = [one.replace(word, str(value)) for one in command]
    status, said = start(command)
    assert 0 < status < 9, f"{name}: it ended with {status}: {said[-500:]}"
    return str(said)


@pytest.mark.parametrize("reader", READERS)
def test_irregular_files_are_refused(reader: str, places: pathlib.Path) -> None:
    words, pipes = READERS[reader]
    names = [name for name, (_, is_pipe) in PLACES.items() if not (is_pipe and pipes)]
    if reader in ("opt", "translate"):
        names.remove("device")  # They read 1 GiB of it before they give up: 10 s.
    if words[0] == "python":
        told = by_python(words[1], places, names)
    else:
        told = [by_program(words, places, name) for name in names]
    for name, said in zip(names, told, strict=True):
        if (reader, name) in RIGHT:
            assert not said, f"{name}: {said[-500:]}"
            continue
        assert "error: " in said or "cannot open input file" in said, f"{name}: {said[-500:]}"
        assert name in said, f"{name} is not named: {said[-500:]}"


#: One rank of two, on a GPU that a library pretends.
RANK = """
import sys, commsir
rank, folder = int(sys.argv[1]), sys.argv[2]
try:
    with commsir.Group(rank, 2, folder=folder, device=rank, timeout=30) as group:
        group.window((1 << 20,), "f32")
except commsir.CommsError as error:
    sys.exit(f"error: {error}")
"""


@pytest.mark.parametrize("place", ["", *(name for name in PLACES if name not in ("terminal", "socket", "loop"))])
def test_a_file_in_place_of_memory_of_a_gpu_is_refused(place: str, places: pathlib.Path) -> None:
    """Rank 1 sends rank 0 a file of another kind. Both end, and name rank 1."""
    environment = fake_gpus(2) | {"COMMSIR_NCCL_LIBRARY": "none"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(places / "store")],
            env=environment | ({"COMMSIR_FAKE_EXPORT": str(places / place)} if rank and place else {}),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=60)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for rank, text in enumerate(said):
        assert (processes[rank].returncode, text) == (0, "") if not place else "rank 1" in text, f"rank {rank}: {text}"
