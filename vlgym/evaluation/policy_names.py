"""Policies by name, as `vlgym eval` takes them: `random`, `openai:MODEL`, or a plugin's own."""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..endpoint.client import plain_address
from ..env.arguments import fits
from ..errors import UserError, check_choice, nearest, plain_line
from ..play.policies import IdlePolicy, OraclePolicy, Policy, RandomPolicy, ReplayPolicy, ScriptedPolicy
from ..play.trajectory import read_trajectories
from ..registry import get_registry
from ..sight.blind_policies import BestBlind

Factory = Callable[..., Policy]


def make_policy(name: str, options: Mapping[str, Any]) -> Policy:
    """Make a policy from `NAME` or `NAME:ARGUMENT`, as `find_policy` says.

    >>> make_policy("oracle", {}).name
    'oracle'
    """
    return find_policy(name, options)()


def find_policy(name: str, options: Mapping[str, Any]) -> functools.partial[Policy]:
    """Return what makes the policy of a name such as `openai:MODEL`, without making it.

    Args:
        options: by option name (`max_tokens`); `extra.top_k` is `top_k` of the mapping `extra`.

    Raises:
        UserError: no such policy, it needs (or takes no) argument, or it has no such option.
    """
    kind, colon, argument = name.partition(":")
    factories = list_policies()
    check_choice("--policy", kind, factories)
    factory, plain = factories[kind], kind in PLAIN_POLICIES
    if plain and colon:
        raise UserError(f"--policy {name!r}: {kind} takes nothing after a colon; write --policy {kind}.")
    if not plain and not argument and (wanted := _list_own().get(kind, ("", ""))[1]):
        raise UserError(f"--policy {name!r} needs {wanted} after the colon: --policy {kind}:{wanted}.")

    # Options are the factory's parameters behind the argument.
    options = _join_parts(options)
    takes = list(inspect.signature(factory).parameters.values())[0 if plain else 1 :]
    names = [each.name for each in takes]
    anything = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes)
    for option in options:
        if option not in names and not anything:
            hint = f"it takes {', '.join(names)} (--policy-arg NAME=VALUE)" if names else "it takes no options"
            raise UserError(f"--policy {plain_address(name)} has no option {option}; {hint}.{nearest(option, names)}")
    return functools.partial(factory, *[] if plain else [argument], **options)


def _join_parts(options: Mapping[str, Any]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for name, value in options.items():
        first, point, part = name.partition(".")
        first = first.replace("-", "_")
        if not point:
            joined[first] = value
        elif isinstance(group := joined.setdefault(first, {}), dict):
            group[part] = value
        else:
            raise UserError(f"--policy-arg {name}: {first} has a value already.")
    return joined


def list_policies() -> dict[str, Factory]:
    """Return every policy's factory by its name: those of the core, then those of the plugins."""
    return get_registry().collect("policies", {name: own[0] for name, own in _list_own().items()})


def _make_scripted(file: str) -> Policy:
    """Read replies from a file: a JSON list of texts, or one reply a line."""
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
        texts = json.loads(text) if path.suffix == ".json" else text.splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"--policy scripted:{file} cannot be read: {plain_line(str(error))}.") from None
    if not texts or not fits(texts, list[str]):
        raise UserError(f"--policy scripted:{file} must hold replies: one a line, or a list of texts as JSON.")
    return ScriptedPolicy(texts)


def _make_replay(folder: str) -> Policy:
    return ReplayPolicy(record for episode in read_trajectories(folder, images=False) for record in episode)


def _make_human(*, pictures: str = "play/eval") -> Policy:
    from ..play.human import HumanPolicy

    return HumanPolicy(Path(pictures))


PLAIN_POLICIES = ("idle", "random", "blind", "oracle", "human")  # those without an argument


def _list_own() -> dict[str, tuple[Factory, str]]:
    """Return the core's policies: factory, and the argument's name."""
    from ..endpoint.policy import OpenAIPolicy  # imports asyncio, which few commands need

    return {
        "idle": (IdlePolicy, ""), "random": (RandomPolicy, ""), "blind": (BestBlind, ""),
        "oracle": (functools.partial(OraclePolicy, True), ""), "human": (_make_human, ""),
        "scripted": (_make_scripted, "FILE"), "replay": (_make_replay, "FOLDER"), "openai": (OpenAIPolicy, "MODEL"),
    }  # fmt: skip
