"""Output of commands at every width: in a terminal, in a pipe, with NO_COLOR."""

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

from vlgym.terminal import counting, open_console, open_progress

ROOT = Path(__file__).resolve().parent.parent
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
PLAIN = {name: os.environ[name] for name in os.environ.keys() - {"COLUMNS", "NO_COLOR", "LC_ALL"}}
OPEN = "from vlgym.terminal import open_console, prepare_output; prepare_output()"


def run_in_terminal(command: list[str], width: int) -> bytes:
    """Run a Python command in a terminal of `width` columns; return the bytes that it wrote."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen(
        [sys.executable, *command], stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT,
        env={**PLAIN, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 65536):
            written += chunk
    except OSError:  # Linux's way to say that the other side is closed
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0, written
    return written


def run_in_pipe(command: list[str], **env: str) -> bytes:
    """Run a Python command and return what it wrote into pipes."""
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, cwd=ROOT, env={**PLAIN, **env}, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def lines_of(written: bytes) -> list[str]:
    return ESCAPES.sub(b"", written).decode().replace("\r", "").splitlines()


def test_no_word_is_broken_at_80_columns_and_no_escape_code_is_written_into_a_pipe(tmp_path: Path) -> None:
    commands = [
        ["list"], ["show", "vlgym/NumberLine-v0", "--full", "--prompt"],
        ["eval", "--env", "vlgym/NumberLine-v0", "--policy", "random", "--dry-run", "--out", "x"],
        ["play", "vlgym/NumberLine-v0", "--policy", "oracle", "--picture", "none", "--out", str(tmp_path)],
    ]  # fmt: skip
    code = f"from vlgym.cli.app import main\nfor words in {commands}:\n    main(words)\n    print('next', flush=True)"
    terminal, pipe = run_in_terminal(["-c", code], 80), run_in_pipe(["-c", code], COLUMNS="400")
    assert b"\x1b" not in pipe
    texts = ["\n".join(lines_of(written.replace(b"game-002", b"game-001"))) for written in (terminal, pipe)]
    for command, screen, whole in zip(commands, *(text.split("\nnext")[:-1] for text in texts), strict=True):
        assert {*screen.split()} - {"..."} <= {*whole.split()}, command
        assert max(map(len, screen.splitlines())) <= 80 or command[0] == "play"  # the name of a file may be longer


def test_no_escape_code_is_written_with_no_color() -> None:
    code = "open_console().print('x', style='bold red')"
    plain = f"import os; os.environ['NO_COLOR'] = '1'; prepare_output(); {code}"
    lines = run_in_terminal(["-c", f"{OPEN}; {code}; {plain}"], 80).splitlines()
    assert [b"\x1b" in line for line in lines] == [True, False]


def test_an_encoding_without_a_letter_gets_its_number() -> None:
    written = run_in_pipe(["-c", f"{OPEN}; print('±1 → \\u00e9 \\udc80')"], PYTHONIOENCODING="latin-1")
    assert written.decode("latin-1") == "±1 \\u2192 \u00e9 \\udc80\n"


@pytest.mark.parametrize("width", [40, 80])
def test_a_bar_is_one_line_with_name_count_and_note(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    progress = open_progress(console)
    progress.add_task("held-out OneRoomS6Fast-v0", total=20_000, completed=10_000, note="success 0.53  return +0.20")
    with console.capture() as capture:
        console.print(*progress.get_renderables())
    (line,) = [line for line in capture.get().splitlines() if line.strip()]
    assert len(line.rstrip()) <= width
    assert line.startswith("held")
    assert "10000/20000" in line
    assert width < 80 or "success" in line


def test_a_bar_that_cannot_move_is_one_line_at_its_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    calls = []
    with open_progress(open_console()) as progress, counting(progress, "held-out Walk-v0", 3) as advance:
        for number in range(3):
            advance(number)
            calls.append(number)
    assert capsys.readouterr().out == "held-out Walk-v0: 3 ...\n"
    assert len(calls) == 3
