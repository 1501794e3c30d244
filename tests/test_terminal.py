"""Output of commands: in a real terminal, in a pipe, with NO_COLOR, in the C locale."""

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.console import Console

from baselines import sft
from baselines.learning.command import main as run_learner
from vlgym.cli.app import main
from vlgym.terminal import counting, open_console, open_progress

ROOT = Path(__file__).resolve().parent.parent
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def clean_environment(**env: str) -> dict[str, str]:
    left_out = ("COLUMNS", "NO_COLOR", "LC_ALL")
    return {name: value for name, value in os.environ.items() if name not in left_out} | env


def run_in_terminal(command: list[str], width: int, **env: str) -> bytes:
    """Run a Python command in a terminal of `width` columns; return all bytes of it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen(
        [sys.executable, *command], stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT,
        env=clean_environment(TERM="xterm-256color", LC_ALL="C.UTF-8", **env),
    )  # fmt: skip
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # Linux's way to say that the other side is closed
        while chunk := os.read(ours, 65536):
            written += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 0, written
    return written


def run_in_pipe(command: list[str], **env: str) -> bytes:
    """Run a Python command and return what it wrote into pipes."""
    command, env = [sys.executable, *command], clean_environment(**env)
    done = subprocess.run(command, capture_output=True, cwd=ROOT, env=env, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def lines_of(written: bytes) -> list[str]:
    return ESCAPES.sub(b"", written).decode().replace("\r", "").splitlines()


def test_list_that_is_no_terminal_is_a_table_that_can_be_searched(capsys):
    assert main(["list", "sokoban"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("vlgym/Sokoban-v0"))
    assert row.split()[1:4] == ["hard", "0.07", "Push"]
    assert row.endswith("ones.")


def test_no_word_is_broken_at_80_columns_and_no_escape_code_is_written_into_a_pipe(tmp_path):
    commands = [
        ["list"], ["show", "vlgym/Sokoban-v0", "--full", "--prompt"],
        ["eval", "--env", "vlgym/Sokoban-v0", "--policy", "random", "--dry-run", "--out", "x"],
        ["play", "vlgym/Sokoban-v0", "--policy", "oracle", "--picture", "none", "--seed", "3", "--out", str(tmp_path)],
    ]  # fmt: skip
    code = f"from vlgym.cli.app import main\nfor words in {commands}:\n    main(words)\n    print('next', flush=True)"
    terminal, pipe = run_in_terminal(["-c", code], 80), run_in_pipe(["-c", code], COLUMNS="400")
    assert b"\x1b" not in pipe
    texts = ["\n".join(lines_of(written.replace(b"game-002", b"game-001"))) for written in (terminal, pipe)]
    for command, shown, whole in zip(commands, *(text.split("\nnext")[:-1] for text in texts), strict=True):
        assert {*shown.split()} - {"..."} <= {*whole.split()}, command
        assert max(map(len, shown.splitlines())) <= 80 or command[0] == "play"  # a file's name


def test_no_escape_code_is_written_with_no_color() -> None:
    assert b"\x1b" not in run_in_terminal(["-m", "vlgym", "show", "vlgym/Sokoban-v0"], 80, NO_COLOR="1")


def test_an_encoding_without_a_letter_gets_its_number() -> None:
    code = "from vlgym.terminal import prepare_output; prepare_output(); print('±1 → \\u00e9 \\u4e00 \\udc80')"
    written = run_in_pipe(["-c", code], PYTHONIOENCODING="latin-1")
    assert written.decode("latin-1") == "±1 \\u2192 \u00e9 \\u4e00 \\udc80\n"
    assert run_in_pipe(["-c", code], LC_ALL="C.UTF-8") == "±1 → \u00e9 \u4e00 \\udc80\n".encode()


def test_help_of_a_learner_fits_and_names_the_command_as_it_is_typed(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["sft.py", "--help"])
    with pytest.raises(SystemExit):
        run_learner(sft.Config, sft.run, sft.__doc__)
    lines = lines_of(capsys.readouterr().out.encode())
    assert lines[0] == "usage: python -m baselines.sft [-h] [OPTIONS]"
    assert [line for line in lines[1:] if len(line) > 80 and not line.startswith("    python -m")] == []


@pytest.mark.parametrize("width", [40, 80])
def test_a_bar_is_one_line_with_name_count_and_note(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    progress = open_progress(console)
    note = "success 0.53  return +0.20"
    progress.add_task("held-out OneRoomS6Fast-v0", total=20_000, completed=10_000, note=note)
    with console.capture() as capture:
        console.print(*progress.get_renderables())
    (line,) = [line for line in capture.get().splitlines() if line.strip()]
    assert len(line.rstrip()) <= width
    assert line.startswith("held")
    assert "10000/20000" in line
    assert width < 80 or "success" in line


def test_a_bar_that_cannot_move_is_one_line_at_its_beginning(capsys):
    calls = []
    with open_progress(open_console()) as progress, counting(progress, "held-out Walk-v0", 3) as advance:
        for number in range(3):
            advance(number)
            calls.append(number)
    assert capsys.readouterr().out == "held-out Walk-v0: 3 ...\n"
    assert len(calls) == 3
