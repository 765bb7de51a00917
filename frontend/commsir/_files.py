"""Writes user files atomically and with readable errors, and opens folders that only this user can write to."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from commsir import errors

__all__ = ["OwnFolder", "check_writable", "make_folders", "opened", "read_text", "write", "written"]

#: The most bytes of a text that is read.
_TEXT_BYTES = 1 << 30


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a regular file for reading. Raises UsageError for anything else, such as a FIFO, for whose writer a process
    would wait, or a device without an end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # A name may hold a zero byte.
        why = getattr(error, "strerror", None) or str(error)
        raise errors.UsageError(f"cannot read '{os.fspath(path)}': {why}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise errors.UsageError(f"'{os.fspath(path)}' is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_text(path: str | os.PathLike[str]) -> str:
    """Reads a regular file as UTF-8. Raises UsageError."""
    with opened(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > _TEXT_BYTES:
            raise errors.UsageError(f"'{os.fspath(path)}' has {size} bytes, more than the limit of {_TEXT_BYTES}")
        try:
            return file.read(_TEXT_BYTES).decode()
        except UnicodeDecodeError as error:
            raise errors.UsageError(f"'{os.fspath(path)}' is not text: {error}") from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Checks that a file can be written, before a long computation whose result would be lost. Raises UsageError."""
    file = Path(path).absolute()
    if not file.parent.is_dir():
        raise _write_error(path, f"No such file or directory; create the folder '{Path(path).parent}' first")
    if file.is_dir():
        raise _write_error(path, "Is a directory")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise _write_error(path, "Permission denied")


def write(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Writes `content` (text as UTF-8) to the file atomically: other processes see the old or the new contents."""
    with written(path) as made:
        made.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextlib.contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path with the suffix of `path`, and moves it to `path` if no error is raised. Raises
    UsageError.
    """
    check_writable(path)
    # What a link stands for is replaced, not the link.
    file = Path(os.path.realpath(path))
    if file.exists() and not file.is_file() or not os.access(file.parent, os.W_OK):
        # A device, or a file in a folder that takes no others.
        with _reason(path):
            yield file
        return
    made = file.with_name(f".{secrets.token_hex(8)}{file.suffix}")
    with _reason(path):
        try:
            yield made
            if file.exists():
                made.chmod(file.stat().st_mode & 0o777)
            made.replace(file)
        finally:
            made.unlink(missing_ok=True)


@contextlib.contextmanager
def _reason(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as error:  # A locale may have no letters for the name.
        raise _write_error(path, getattr(error, "strerror", None) or str(error)) from error


def _write_error(path: str | os.PathLike[str], why: str) -> errors.UsageError:
    return errors.UsageError(f"cannot write '{os.fspath(path)}': {why}")


def make_folders(path: Path) -> None:
    """Creates a folder and its missing parents, accessible by this user only. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        try:
            path.mkdir(0o700)
        except FileNotFoundError:
            if path.parent == path:
                raise
            make_folders(path.parent)
            path.mkdir(0o700)


class OwnFolder:
    """A folder that this user or root owns and nobody else can write to, because its contents are executed.

    runtime/support/OwnFolder.h has the same rules. The folder is opened once; its files are opened relative to it,
    without following links. Files that have other names too (hard links) are refused.
    """

    def __init__(self, path: Path, *below: str) -> None:
        """Opens the folder and, inside it, the nested folders `below`. Creates missing ones. Raises OSError."""
        self.path = path
        make_folders(path)
        self._descriptor = self._open_folder(os.fspath(path), None)
        try:
            for name in below:
                self.path = self.path / name
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=self._descriptor)
                above, self._descriptor = self._descriptor, self._open_folder(name, self._descriptor)
                os.close(above)
        except OSError:
            self.close()
            raise

    def __enter__(self) -> OwnFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def _open_folder(self, name: str, above: int | None) -> int:
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            raise PermissionError(f"the folder '{self.path}' is a link: name the folder that it leads to")
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        return self._checked(opened, f"the folder '{self.path}'")

    @property
    def held(self) -> Path:
        """A path to the folder that was opened, for this process and its children. Whoever may rename folders above can
        put another one in the place of `path`."""
        held = Path(f"/proc/{os.getpid()}/fd/{self._descriptor}")
        return held if held.is_dir() else self.path

    def _checked(self, opened: int, what: str) -> int:
        status = os.fstat(opened)
        why = ""
        if status.st_uid not in (0, os.geteuid()):
            why = f"belongs to user {status.st_uid}, and neither to this user ({os.geteuid()}) nor to root"
        elif status.st_mode & 0o022:
            mode = stat.S_IMODE(status.st_mode)
            why = f"is writable by users other than its owner (its permissions are {mode:03o}; chmod go-w removes them)"
        elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            why = "has other names too (hard links); remove it, or copy it"
        if not why:
            return opened
        os.close(opened)
        raise PermissionError(f"{what} {why}")

    def open(self, name: str, flags: int) -> int:
        """Returns a descriptor of a regular file in the folder.

        Raises PermissionError if other users may have written the file, and OSError on other failures.
        """
        used = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        opened = os.open(name, used, 0o600, dir_fd=self._descriptor)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise PermissionError(f"'{self.path / name}' is not a plain file")
        return self._checked(opened, f"'{self.path / name}'")

    def read(self, name: str) -> str | None:
        """Returns the contents of a file, or None if there is none. Raises OSError."""
        try:
            with os.fdopen(self.open(name, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        """Replaces a file atomically with `text`. Raises OSError."""
        made = f"{name}.{secrets.token_hex(8)}"
        try:
            with os.fdopen(self.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8") as file:
                file.write(text)
            os.rename(made, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        finally:
            self.remove(made)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def keep_for_owner(self, name: str) -> None:
        """Removes other users' permissions from a file, because a compiler's output has the permissions of the
        umask."""
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._descriptor)
        try:
            os.fchmod(opened, stat.S_IMODE(os.fstat(opened).st_mode) & 0o700)
        finally:
            os.close(opened)
