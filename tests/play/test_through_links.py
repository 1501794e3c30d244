"""No file of a folder from elsewhere is written through a link, and the command names it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from toy_games import NIM
from toys import make_spec, read_files

from vlgym.cli.app import main
from vlgym.errors import UserError
from vlgym.files import append_whole, discard, make_folder, open_end, write_whole, written_file, written_whole

WALK = make_spec()
KEY = "what the reader of the folder keeps\n"
INSTALLED = (WALK, NIM)
pytestmark = pytest.mark.usefixtures("toys_installed")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "authorized_keys"
    path.write_text(KEY)
    return path


WRITERS: dict[str, Callable[[Path], object]] = {
    "write_whole": lambda path: write_whole(path, "new"),
    "append_whole": lambda path: append_whole(path, "new"),
    "open_end": open_end,
    "written_file": lambda path: written_file(path).__enter__(),
    "make_folder": make_folder,
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_way_of_writing_follows_a_link(name: str, tmp_path: Path, victim: Path) -> None:
    for target in (victim, tmp_path / "nothing"):
        path = tmp_path / "link"
        path.symlink_to(target)
        with pytest.raises(UserError, match="link is a link; nothing was written through it"):
            WRITERS[name](path)
        path.unlink()
    assert victim.read_text() == KEY
    assert not (tmp_path / "nothing").exists()


def test_a_guessed_name_is_an_error(tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _: "00")
    (tmp_path / ".a.00.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a", "new")
    assert victim.read_text() == KEY


def test_no_lines_are_added_to_a_file_of_two_names_or_a_pipe(tmp_path: Path, victim: Path) -> None:
    os.link(victim, tmp_path / "hard")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="has another name"):
        append_whole(tmp_path / "hard", "new")
    with pytest.raises(OSError, match="No such device"):
        append_whole(tmp_path / "pipe", "new")
    write_whole(tmp_path / "hard", "new")
    assert victim.read_text() == KEY


def test_a_folder_is_written_beside_links_of_its_temporary_names(tmp_path: Path) -> None:
    target = tmp_path / "held"
    target.mkdir()
    (target / "a").write_text(KEY)
    for name in (".run.part", ".run.old"):
        (tmp_path / name).symlink_to(target)
    for text in ("old", "new"):
        with written_whole(tmp_path / "run") as part:
            (part / "a").write_text(text)
    assert (target / "a").read_text() == KEY
    assert (tmp_path / "run" / "a").read_text() == "new"
    assert not (tmp_path / "run").is_symlink()


EVAL = ("eval", "--policy", "random", "--env", WALK.id, "--episodes", "2")
TOURNAMENT = ("tournament", "--env", NIM.id, "random", "oracle", "--games", "2")


@pytest.mark.parametrize("command", [EVAL, TOURNAMENT], ids=["eval", "tournament"])  # eval reports, too
def test_no_file_of_a_strangers_folder_leads_out_of_it(command, tmp_path, victim, capsys):
    """Each file and folder of a run, and each name of a file while it is written, is a link."""
    out, whole, outside = tmp_path / "run", tmp_path / "whole", tmp_path / "outside"
    again = [*command, "--out", str(out), "--resume"]
    assert main(again[:-1]) == main(again) == 0
    shutil.copytree(out, whole)
    names = [path.relative_to(out) for path in sorted(out.rglob("*")) if path.suffix != ".png"]
    capsys.readouterr()
    for each in [*names, *(each.with_name(f"{each.name}.part") for each in names)]:
        target = whole / each if (whole / each).exists() else victim
        before = read_files(target)
        discard(out / each)
        (out / each).symlink_to(outside)
        target.rename(outside)
        status, err = main(again), capsys.readouterr().err
        outside.rename(target)
        assert status == 0 or (status == 2 and err.splitlines()[-1].startswith("vlgym: ")), err
        assert read_files(target) == before, each
        discard(out)
        shutil.copytree(whole, out)
