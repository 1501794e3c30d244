"""Ends of commands: exit statuses, and one line for a problem that the user can fix."""

import errno
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import baselines
from vlgym.errors import FailedError, UserError
from vlgym.terminal import MOST_ERROR, open_console, run_command

ROOT = Path(__file__).parents[2]


def ends_with(error: BaseException | None, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return status and line of a command that raises."""

    def command() -> None:
        if error is not None:
            raise error

    return run_command("prog", command), capsys.readouterr().err


@pytest.mark.parametrize(("error", "status", "line"), [
    (None, 0, ""), (UserError("Do this."), 2, "prog: Do this.\n"),
    (FailedError("It failed."), 1, "prog: It failed.\n"),
    (KeyboardInterrupt(), 130, "\nprog: interrupted.\n"), (SystemExit(2), 2, ""),
    (SystemExit(None), 0, ""), (SystemExit("why"), 1, "why\n"), (BrokenPipeError(), 141, ""),
    (OSError(errno.ENOSPC, "", "x.json"), 2, "prog: No space left on device (x.json).\n"),
    (RuntimeError("I/O error: No space left on device (os error 28)"), 2, "prog: No space left on device.\n"),
])  # fmt: skip
def test_every_end_has_its_status_and_its_line(error, status, line, capsys):
    assert ends_with(error, capsys) == (status, line)


STEERING = "\x1b]52;c;aGk=\x07\r\x08\x9b31m\u202e\u2066\u200f"


def test_no_error_steers_the_terminal_or_fills_it(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = ends_with(UserError(f"the key {STEERING}name\n{'x' * 9999}"), capsys)
    assert (status, len(text)) == (2, MOST_ERROR + 1)
    assert text.startswith(r"prog: the key \x1b]52;c;aGk=\x07\r\x08\x9b31m\u202e\u2066\u200fname" + "\nxxx")
    status, text = ends_with(FileNotFoundError(errno.EACCES, "", STEERING), capsys)
    assert r"\x1b]52" in text
    assert not set(STEERING[:1] + STEERING[-3:]) & set(text)
    open_console(stderr=True).print(f"left out: {STEERING}", STEERING)
    assert not set(STEERING[:1] + STEERING[-3:]) & set(capsys.readouterr().err)


@pytest.mark.parametrize(("address", "output"), [
    ("http://me:pass@word/1@host/v1?key=abc", "http://host/v1"), ("https://token@host:1/v1", "https://host:1/v1"),
    ("a@http://me:pw@h1/v1,b@http://you:pw@h2/v1", "a@http://h2/v1"),
    ("git+https://host/a@v1.2 x?y", "git+https://host/a@v1.2 x?y"), ("a@http://h:1/v1,b@http://h:2/v1",) * 2,
])  # fmt: skip
def test_no_error_shows_the_login_or_the_query_of_an_address(address, output, capsys):
    assert ends_with(UserError(f"{address!r} is wrong?"), capsys) == (2, f"prog: {output!r} is wrong?\n")


def test_what_a_bug_says_steers_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which the command replaces
    with pytest.raises(RuntimeError) as caught:
        ends_with(RuntimeError("\x1b]0;x"), capsys)
    sys.excepthook(caught.type, caught.value, caught.tb)
    stderr = capsys.readouterr().err
    assert "Traceback" in stderr
    assert r"\x1b]0;x" in stderr
    assert "\x1b" not in stderr


def test_sigterm_tidies_up_as_ctrl_c_does(capsys: pytest.CaptureFixture[str]) -> None:
    tidied = []

    def command() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            tidied.append(True)

    before = signal.getsignal(signal.SIGTERM)
    assert run_command("prog", command) == 143
    assert capsys.readouterr().err == "\nprog: stopped by SIGTERM.\n"
    assert tidied == [True]
    assert signal.getsignal(signal.SIGTERM) == before


def test_output_that_finds_no_room_is_a_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "vlgym", "list"]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("vlgym: No space left on device.")
    assert "Traceback" not in done.stderr


def test_what_the_learners_need_is_what_their_extra_installs() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["train"]
    assert set(baselines.NEEDED) == {line.split(">")[0] for line in extra}
