"""Files that are written for the user: whole or not at all, and with words where they cannot be."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from commsir import errors

__all__ = ["check_writable", "write", "written"]


def check_writable(path: str | os.PathLike[str]) -> None:
    """Before what takes long, whose result would be lost. Raises UsageError."""
    file = Path(path).absolute()
    if not file.parent.is_dir():
        raise _cannot_write(path, f"No such file or directory; create the folder '{Path(path).parent}' first")
    if file.is_dir():
        raise _cannot_write(path, "Is a directory")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise _cannot_write(path, "Permission denied")


def write(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Puts `content` (text as UTF-8) into the file, which another process sees as it was or as it is now."""
    with written(path) as made:
        made.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextlib.contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to, with the suffix of `path`, which it takes the place of if nothing is raised. Raises
    UsageError."""
    check_writable(path)
    # What a link stands for is replaced, not the link.
    file = Path(os.path.realpath(path))
    if file.exists() and not file.is_file() or not os.access(file.parent, os.W_OK):
        # A device, or a file in a folder that takes no others.
        with _in_words(path):
            yield file
        return
    made = file.with_name(f".{secrets.token_hex(8)}{file.suffix}")
    with _in_words(path):
        try:
            yield made
            if file.exists():
                made.chmod(file.stat().st_mode & 0o777)
            made.replace(file)
        finally:
            made.unlink(missing_ok=True)


@contextlib.contextmanager
def _in_words(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as error:  # A locale may have no letters for the name.
        raise _cannot_write(path, getattr(error, "strerror", None) or str(error)) from error


def _cannot_write(path: str | os.PathLike[str], why: str) -> errors.UsageError:
    return errors.UsageError(f"cannot write '{os.fspath(path)}': {why}")
