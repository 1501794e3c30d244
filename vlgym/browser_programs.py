"""Chromium and its driver as programs: where they are, and whether they are what they should be.

They are asked for their versions only; `vlgym.chromium` starts them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from .errors import MissingSystemPartError

PROGRAMS = {
    "VLGYM_CHROMIUM": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "VLGYM_CHROMEDRIVER": ("chromedriver",),
}
"""Variable that names a program -> names looked for on the search path where it is not set."""

_ANSWERS_S = 10.0
_ASKED, _MOST_STATUS = 3, 128
"""How often a program is asked that a signal ends, from outside; and the last status that tells of no signal."""

_VERSIONS = {"VLGYM_CHROMIUM": r"\b(\d+)\.\d", "VLGYM_CHROMEDRIVER": r"ChromeDriver (\d+)\.\d"}


@dataclass(frozen=True)
class Program:
    """A program that answered.

    Attributes:
        path: where it is.
        version: the first number of its version; Chromium's and its driver's should be the same.
    """

    path: str
    version: int


def find_program(variable: str, apt: str) -> Program:
    """Return the program that `$VLGYM_CHROMIUM` or `$VLGYM_CHROMEDRIVER` names, else the first on the search path.

    It is asked for its version (again, where a signal from outside ends it), which takes less than 0.1 s: a driver
    would wait a minute, and say nothing, for a Chromium that cannot run or is another program.

    Args:
        variable: one of `PROGRAMS`.
        apt: the line that installs both, for the message.

    Raises:
        MissingSystemPartError: there is none, or it gives no version; the message says what it did instead.
    """
    named = os.environ.get(variable)
    wanted = (named,) if named else PROGRAMS[variable]
    path = next((path for name in wanted if (path := shutil.which(name))), None)
    if path is None:
        raise MissingSystemPartError(
            f"Chromium and its driver are needed, but there is none of {', '.join(wanted)}. "
            f"Install them with `{apt}`, or set {variable} to the program's path."
        )
    said, failure = _ask_version(path)
    version = re.search(_VERSIONS[variable], said)
    if failure or version is None:
        kind = "Chromium" if variable == "VLGYM_CHROMIUM" else "driver of Chromium"
        words = f"said {said!r}" if said else "said nothing"
        raise MissingSystemPartError(
            f"{path}{f' (from {variable})' if named else ''} is no {kind} that runs here: `{path} --version` "
            f"{failure or words}. Install it again with `{apt}`, or set {variable} to the program's path."
        )
    return Program(path, int(version[1]))


def _ask_version(path: str) -> tuple[str, str]:
    """Return what a program says to `--version`, and how that failed; an empty string where it did not."""
    try:
        for _ in range(_ASKED):
            done = subprocess.run(
                [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWERS_S, check=False
            )
            if 0 <= done.returncode <= _MOST_STATUS:
                break
    except subprocess.TimeoutExpired:
        return "", f"gave no answer in {_ANSWERS_S:.0f} s"
    except OSError as error:
        return "", f"did not start ({error.strerror})"
    said = " ".join((done.stdout or done.stderr).decode(errors="replace").split())[:150]
    words = f" and said {said!r}" if said else " and said nothing"
    return said, f"ended with status {done.returncode}{words}" if done.returncode else ""
