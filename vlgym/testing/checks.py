"""The properties that every environment must have, by name, in the order in which they are tested.

`vlgym check ID` prints them as a certificate and `EnvConformance` runs them under pytest; both use this table and
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from . import interface_checks, parser_time, play_checks
from .subject import CheckFailure, CheckResult, Subject

__all__ = ["CHECKS", "CheckFailure", "CheckResult", "Subject"]

CHECKS: dict[str, Callable[[Subject], str]] = {
    "card": interface_checks.check_card,
    "gymnasium": interface_checks.check_gymnasium,
    "determinism": play_checks.check_determinism,
    "processes": play_checks.check_processes,
    "state": play_checks.check_state,
    "oracle": play_checks.check_oracle,
    "floor": play_checks.check_floor,
    "rewards": play_checks.check_rewards,
    "garbage": play_checks.check_garbage,
    "turn_limit": play_checks.check_turn_limit,
    "parsers": interface_checks.check_parsers,
    "parser_time": parser_time.check_parser_time,
    "prompt": interface_checks.check_prompt,
    "reset_options": interface_checks.check_reset_options,
    "fresh": interface_checks.check_fresh,
    "side_effects": interface_checks.check_side_effects,
    "vector": interface_checks.check_vector,
    "splits": interface_checks.check_splits,
    "recorded": interface_checks.check_recorded,
}
