"""The command line of the learners and of the other commands of this package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import tyro

from vlgym.errors import UserError

from ..runs import distributed
from .config import RunConfig
from .presets import chosen

C = TypeVar("C")


def parse(config: type[C], description: str | None, arguments: Sequence[str] | None = None) -> C:
    """Read a command line.

    Args:
        config: dataclass of the options; a learner's takes its defaults from the preset that is named.
        description: shown by --help.
        arguments: instead of the process's own.

    Raises:
        UserError: an unknown preset, or one of another learner.
    """
    if issubclass(config, RunConfig):
        return tyro.cli(config, description=description, default=chosen(config, arguments), args=arguments)
    return tyro.cli(config, description=description, args=arguments)


def main(config: type[C], run: Callable[[C], object], description: str | None) -> None:
    """Run a command: its options, then `run`; errors of the user are one line without a traceback."""
    try:
        run(parse(config, description))
    except UserError as error:
        sys.exit(f"error: {error}")
    finally:
        distributed.leave()
