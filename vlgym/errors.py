"""Errors that the package raises on purpose.

A `UserError` is a problem that a user can fix: its message says what was asked and found, the
nearest valid choices, and the command that fixes it. It is printed without a traceback. Any other
exception is a bug and keeps its traceback.

Exit statuses of every command of `vlgym` and `baselines`:

- 0: done.
- 1: the work was done and failed (a check, a study's run, a stale file, a broken plugin), or a bug.
- 2: wrong usage, or a problem that the user can fix.
- 130: stopped by Ctrl-C.
- 141: the reader of the output went away, as `head` does.
- 143: stopped by SIGTERM: `kill`, or the time limit of a job.
"""

import difflib
import math
import os
import tempfile
import unicodedata
from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, TypeVar

LARGEST_COUNT = 2**31 - 1  # of anything that a user may count
GREATEST = 1e100  # magnitude of a measured number: sums of squares stay finite

T = TypeVar("T")


class VlgymError(Exception):
    """Base of them all."""


class UserError(VlgymError):
    """A problem that the user can fix."""

    exit_status: ClassVar[int] = 2


class FailedError(UserError):
    """Work that was begun has failed: a run, or a study's run."""

    exit_status = 1


class EndpointError(FailedError):
    """A model's server answered a request with errors alone; the episode ends."""


class SpecError(UserError):
    """An `EnvSpec` is malformed: fix the named field in the plugin's `plugin.py`."""


class UnknownEnvError(UserError):
    """No such environment id: `vlgym list`, or the suggested spelling."""


class NotInstalledError(UserError):
    """The id's distribution is not installed: the `pip install` that is named."""


class PluginError(UserError):
    """A plugin failed to load, misspelled a hook, or claims another's id: `vlgym doctor`."""


class RegistryFileError(UserError):
    """registry.yaml is malformed or stale: `vlgym registry`."""


class MissingSystemPartError(UserError):
    """A library, driver or program of the system is missing: the apt line that is named."""


class TrajectoryError(UserError):
    """A trajectory folder is malformed or cannot be written."""


def check_choice(name: str, value: T, choices: Iterable[Any], error: type[UserError] = UserError) -> T:
    """Return `value` if it is one of `choices`; `None` among them is accepted, and not listed.

    >>> check_choice("split", "test", ("train", "val", "test"))
    'test'
    >>> check_choice("split", "tset", ("train", "val", "test"))
    Traceback (most recent call last):
        ...
    vlgym.errors.UserError: split='tset' is not one of train, val, test. Nearest: test.
    """
    valid = list(choices)
    if value not in valid:
        words = [str(choice) for choice in valid if choice is not None]
        near = nearest(str(value), words)
        raise error(f"{name}={value!r} is not one of {', '.join(words) or 'none'}.{near}")
    return value


def check_reward(value: Any, where: str) -> None:
    """Raise `ValueError`: an environment's reward that is not finite and moderate is a bug."""
    if not isinstance(value, Real) or not -GREATEST <= float(value) <= GREATEST:
        raise ValueError(f"{where}: the reward is {value!r:.80}, which is no finite number up to {GREATEST:g}.")


def check_finite(source: str, tensors: dict[str, Any]) -> dict[str, Any]:
    """Return tensors of torch; a `UserError` names the first that holds NaN or infinity."""
    for name, tensor in tensors.items():
        filled = tensor.is_floating_point() and tensor.numel()
        if filled and not all(map(math.isfinite, tensor.detach().aminmax())):
            raise UserError(f"{source}: {name} holds NaN or infinity. Take an older one, or another.")
    return tensors


def check_number(
    name: str, value: Any, least: float | None = None, most: float = LARGEST_COUNT, *,
    above: float | None = None, hint: str = "",
) -> None:  # fmt: skip
    """Raise `UserError` where a number is out of its range; NaN and infinity are in none.

    `above` is an exclusive lower bound, instead of `least`; `hint` a sentence after the range.
    """
    setting = f"{name}{' ' if name.startswith('-') else '='}{value!r}"
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise UserError(f"{setting} must be a number.{hint and f' {hint}'}")
    low = value > above if above is not None else least is None or value >= least
    if low and value <= most:
        return
    bound = f"> {above}" if above is not None else f">= {least}"
    limit = f" and <= {most}" if low or most != LARGEST_COUNT else ""
    raise UserError(f"{setting} must be {bound}{limit}.{hint and f' {hint}'}")


def flag_of(name: str) -> str:
    """Return the option of a field, as it is written on a command line."""
    return f"--{name.replace('_', '-')}"


def check_options(options: Any, *names: str, group: str = "", **bounds: Any) -> None:
    """Check numbers among an object's options, whose flags begin with `--GROUP`; None passes."""
    for name in names:
        if (value := getattr(options, name)) is not None:
            check_number(flag_of(group + name), value, **bounds)


def check_writable(name: str, path: Path) -> None:
    """Check, before any work, that a file or folder can be made, with its parents, or written."""
    place = path.absolute()
    while not place.exists() and not place.is_symlink():
        place = place.parent
    if place != path.absolute() and not place.is_dir():
        raise UserError(f"{name} {path}: {place} is not a folder; choose another place.")
    try:
        if place.is_dir():
            tempfile.TemporaryFile(dir=place).close()  # root may not write to /proc
        elif not os.access(place, os.W_OK):
            raise PermissionError
    except OSError:
        raise UserError(f"{name} {path}: nothing can be written to {place}; choose another place.") from None


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return `" Nearest: a, b."`, or an empty string where no choice is close to `word`."""
    matches = difflib.get_close_matches(word, list(choices), n=3, cutoff=0.5)
    return f" Nearest: {', '.join(matches)}." if matches else ""


def plain_line(text: str, longest: int = 500) -> str:
    """Return a text from elsewhere as one line that is safe to print (see `show_safe`)."""
    return show_safe(" ".join(text.split()))[:longest]


def show_safe(text: str) -> str:
    """Return a text with numbers for characters that steer a terminal or the direction."""
    return "".join(c if c in "\n\t" or is_printable(c) else repr(c)[1:-1] for c in text)


def is_printable(character: str) -> bool:
    """True unless a character is a control, format, surrogate, unassigned or a line separator."""
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
