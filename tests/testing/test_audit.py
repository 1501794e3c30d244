"""Written files and requested addresses of Python code are heard, with their paths."""

import contextlib
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from vlgym.testing.world_checks import listen_to_audit


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder that is not one of temporary files."""
    (tmp_path / "work").mkdir()
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _fill(folder: Path) -> Path:
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "000003.log").write_text("")
    return folder


def test_removed_folders_are_heard_with_the_paths_that_they_had(tmp_path: Path) -> None:
    """`shutil.rmtree` gives names that start from an open folder."""
    folders = [_fill(tmp_path / "scratch" / "profile"), _fill(tmp_path / "project")]
    with listen_to_audit() as heard:
        (folders[1] / "inner" / "000003.log").read_text()
        assert heard.written == set()  # reading is not heard
        for folder in folders:
            shutil.rmtree(folder)
    written = [str(folder / name) for folder in folders for name in ("", "inner", "inner/000003.log")]
    assert heard.written == {*written}
    assert heard.outside() == written[3:]


def test_names_that_start_from_an_open_folder_are_heard_with_its_path(tmp_path: Path) -> None:
    folder = _fill(tmp_path / "project")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with listen_to_audit() as heard:
            os.mkdir("made", dir_fd=descriptor)
            os.symlink("inner", "linked", dir_fd=descriptor)
            os.link("inner/000003.log", "second", src_dir_fd=descriptor, dst_dir_fd=descriptor)
            os.rename("second", "moved", src_dir_fd=descriptor, dst_dir_fd=descriptor)
    finally:
        os.close(descriptor)
    assert heard.outside() == [str(folder / name) for name in ("linked", "made", "moved", "second")]


def test_files_that_are_written_in_the_working_directory_are_heard(tmp_path: Path) -> None:
    with listen_to_audit() as heard:
        Path("made.txt").write_text("")
        Path("made.txt").rename("moved.txt")
        os.truncate("moved.txt", 0)
        Path("moved.txt").unlink()
    work = tmp_path / "work"
    assert heard.outside() == [str(work / "made.txt"), str(work / "moved.txt")]


def test_hosts_outside_this_machine_are_heard_and_this_machine_is_not() -> None:
    with socket.socket() as server, listen_to_audit() as heard:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname()):
            pass
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect(("203.0.113.1", 9))
    assert heard.addresses == {"203.0.113.1"}
