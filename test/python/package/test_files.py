"""Files that the package writes appear whole or not at all."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import commsir
import pytest
from commsir import _files

TABLE = commsir.Table("k", 2, "cpu", [])


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """What fails midway leaves the file as it was, and nothing next to it."""
    file = tmp_path / "table.json"
    assert TABLE.save(file) == file
    before = file.read_bytes()
    with pytest.raises(ZeroDivisionError), _files.written(file) as made:
        made.write_text("half")
        raise ZeroDivisionError
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["table.json"]


def test_modes_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "table.json", tmp_path / "link.json"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    TABLE.save(link)
    assert link.is_symlink() and commsir.Table.load(file) == TABLE
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    TABLE.save(tmp_path / "table.json")
    assert (tmp_path / "table.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a system without /dev/full")
def test_a_full_disk() -> None:
    """Devices are written to, not replaced."""
    with pytest.raises(commsir.UsageError, match="cannot write '/dev/full': No space left on device"):
        TABLE.save("/dev/full")
    with (
        pytest.raises(commsir.UsageError, match="cannot write '/dev/full': No space left on device"),
        _files.written("/dev/full") as made,
        zipfile.ZipFile(made, "w") as file,
    ):
        file.writestr("a", b"b")
    assert Path("/dev/full").is_char_device()


def test_folders_that_are_run_from_are_ones_own(tmp_path: Path) -> None:
    """Nobody else can have written what is loaded from them."""
    with _files.OwnFolder(tmp_path / "cache", "torch", "one") as folder:
        folder.write("finished", "yes")
        assert folder.read("finished") == "yes" and folder.read("other") is None
        for made in (folder.path, folder.path.parent, tmp_path / "cache"):
            assert made.stat().st_mode & 0o777 == 0o700
        (folder.path / "link").symlink_to(folder.path / "finished")
        with pytest.raises(OSError, match="symbolic link|Too many"):
            folder.read("link")
        os.mkfifo(folder.path / "pipe")
        with pytest.raises(PermissionError, match="not a plain file"):
            folder.read("pipe")
        os.link(folder.path / "finished", folder.path / "second")
        with pytest.raises(PermissionError, match="other names"):
            folder.read("finished")
        (folder.path / "second").unlink()
        assert folder.held.samefile(folder.path) and folder.held != folder.path
        (folder.path / "finished").chmod(0o666)
        with pytest.raises(PermissionError, match="users other than its owner"):
            folder.read("finished")
        folder.keep_for_owner("finished")
        assert folder.read("finished") == "yes"
        assert os.listdir(folder.path).count("finished") == 1 and len(os.listdir(folder.path)) == 3
    (tmp_path / "cache" / "torch").chmod(0o777)
    with pytest.raises(PermissionError, match="torch' is writable by users other than its owner"):
        _files.OwnFolder(tmp_path / "cache", "torch", "one")
    (tmp_path / "cache" / "torch").chmod(0o755)
    (tmp_path / "other").symlink_to(tmp_path / "cache")
    with pytest.raises(PermissionError, match="is a link"):
        _files.OwnFolder(tmp_path / "other")
    _files.OwnFolder(tmp_path / "cache", "torch", "one").close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(0o700)
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to user 12345"):
        _files.OwnFolder(tmp_path / "theirs")
