"""Every error the package raises on purpose.

`UserError` and its children are problems that a user can mend: their message says what was asked and found, the nearest
valid choices, and the command that mends it. The command line prints them without a traceback. Anything else that
escapes is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class VlgymError(Exception):
    """Base of all errors raised on purpose."""


class UserError(VlgymError):
    """A problem that the user can mend; printed without a traceback by the command line."""


class SpecError(UserError):
    """An `EnvSpec` is malformed. Next step: mend the named field in the plugin's `plugin.py`."""


class UnknownEnvError(UserError):
    """No such environment id is known. Next step: `vlgym list`, or the suggested spelling."""


class NotInstalledError(UserError):
    """The id is known, but the distribution that holds it is not installed. Next step: the `pip install` it names."""


class PluginError(UserError):
    """A plugin failed to load, misspelled a hook, or claims an id that another one holds. Next step: `vlgym doctor`."""


class RegistryFileError(UserError):
    """registry.yaml is malformed or stale. Next step: `vlgym registry write`."""


class MissingSystemPartError(UserError):
    """A library, driver or program of the operating system is missing. Next step: the apt line it names."""


class TrajectoryError(UserError):
    """A trajectory folder is malformed or cannot be written. Next step: as the message says."""


def check_choice(name: str, value: T, choices: Iterable[Any], error: type[UserError] = UserError) -> T:
    """Return `value` if it is one of `choices`.

    Args:
        name: what is chosen, as the user wrote it: `split`, `--policy`.
        value: what was asked for.
        choices: what is valid; `None` among them is accepted, and not listed.
        error: class of the error.

    Raises:
        UserError: it is none of them; the message lists them and names the nearest.
    """
    valid = list(choices)
    if value not in valid:
        words = [str(choice) for choice in valid if choice is not None]
        raise error(f"{name}={value!r} is not one of {', '.join(words) or 'none'}.{nearest(str(value), words)}")
    return value


def nearest(word: str, choices: Iterable[str], count: int = 3) -> str:
    """Return `" Nearest: a, b."`, or an empty string when no choice is close to `word`."""
    found = difflib.get_close_matches(word, list(choices), n=count, cutoff=0.5)
    return f" Nearest: {', '.join(found)}." if found else ""
