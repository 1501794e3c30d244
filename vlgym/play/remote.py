"""An environment that lives in another process, as its caller sees it.

Policies, prompts and records find here all that they need. The environment's code runs elsewhere
(`vlgym.env_groups`); only the parser works here, because it reads nothing but replies.
"""

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import gymnasium

from ..env.spaces import ReplySpace
from ..env.spec import EnvSpec
from ..errors import UserError
from ..parsers import PARSERS, get_parser
from ..parsers.thoughts import shorten
from ..registry import get_registry
from ..types import Parser

Step = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]
STEP = ("observation", "reward", "terminated", "truncated", "info")  # in Gymnasium's order


class RemoteEnv(gymnasium.Env[dict[str, Any], str]):
    """One environment in another process.

    At most one reset or step is on its way: `send_reset` and `send_step` begin it, `reset` and
    `step` with the same arguments wait for it; so a batch of environments works at the same time.
    The environment is made when it is first needed; its constructor's errors are raised then.
    """

    def __init__(self, caller: Any, env_id: str, arguments: Mapping[str, Any]) -> None:
        self.env_id, self._arguments, self._caller = env_id, dict(arguments), caller
        self._sent: tuple[Any, Any] | None = None
        self._legal: tuple[str, ...] = ()
        self._matches: dict[str, str | None] = {}
        self._closed, self.system_text = False, ""
        self._number = caller.open()
        self._made = caller.post(self._number, "make", id=env_id, arguments=self._arguments)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The worker's answer once the environment is made: its card and its parser."""
        return self._caller.wait(self._made)

    @cached_property
    def vlgym_spec(self) -> EnvSpec | None:
        return None if self.facts["spec"] is None else EnvSpec.from_dict(self.facts["spec"])

    @property
    def modality(self) -> str:
        return str(self._arguments.get("modality", "image"))

    @property
    def parser(self) -> Parser:
        return self.action_space.parser

    @property
    def action_space(self) -> ReplySpace:  # type: ignore[override]
        """Samples the same replies as the environment's own."""
        self._space.legal = self._legal
        return self._space

    @cached_property
    def _space(self) -> ReplySpace:
        return ReplySpace(_rebuild(self.env_id, self._arguments, self.facts["parser"]))

    def legal_actions(self) -> list[str]:
        """Return the legal actions of the last observation."""
        return list(self._legal)

    def match_action(self, wanted: str) -> str | None:
        """As `Game.match_action`; the worker is asked once of an action that is not listed."""
        if wanted in self._legal:
            return wanted
        if wanted not in self._matches:
            self._matches[wanted] = self._ask("match", action=wanted)
        return self._matches[wanted]

    def point_action(self, x: float, y: float) -> str | None:
        """As `Game.point_action`."""
        return self._ask("point", x=x, y=y)

    def send_reset(self, seed: int, options: dict[str, Any] | None = None) -> None:
        self._send(("reset", seed, options), seed=seed, options=options)

    def send_step(self, action: str) -> None:
        """Begin a step; saying so again changes nothing."""
        self._send(("step", action), text=shorten(action))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """As `VLEnv.reset`, with a seed: a new worker replays the episode from it."""
        if seed is None:
            raise UserError(f"{self.env_id} is played in another process: reset() needs a seed there.")
        answer = self._take(("reset", seed, options), seed=seed, options=options)
        return answer["observation"], answer["info"]

    def step(self, action: str) -> Step:
        """As `VLEnv.step`; `span` counts in `shorten(action)`."""
        answer = self._take(("step", action), text=shorten(action))
        observation, reward, terminated, truncated, info = (answer[name] for name in STEP)
        return observation, reward, terminated, truncated, info

    def solve(self) -> str | None:
        """As `VLEnv.solve`."""
        return self._ask("solve")

    def think(self, action: str) -> str:
        """As `Game.think`."""
        return self._ask("think", action=action)

    def describe(self, turns: int | None = None, images: int | None = None) -> dict[str, Any]:
        """As `vlgym.play.trajectory.describe_env`, with that prompt layout or its own."""
        return self._ask("describe", turns=turns, images=images)

    def close(self) -> None:
        """Close the environment; its error is raised here."""
        if not self._closed:
            self._closed = True
            self._caller.drop(self._number)

    def _send(self, key: Any, **fields: Any) -> Any:
        _ = self.facts  # what its constructor raised comes first
        if self._sent is None:
            self._sent = (key, self._caller.post(self._number, key[0], **fields))
        if self._sent[0] != key:
            raise RuntimeError(f"{self.env_id}: {self._sent[0][0]} is still under way; wait for it first.")
        return self._sent[1]

    def _take(self, key: Any, **fields: Any) -> dict[str, Any]:
        ticket, self._sent = self._send(key, **fields), None
        answer = self._caller.wait(ticket)
        self._legal, self.system_text, self._matches = tuple(answer["legal"]), answer["system"], {}
        return answer

    def _ask(self, do: str, **fields: Any) -> Any:
        _ = self.facts
        return self._caller.wait(self._caller.post(self._number, do, **fields))


def _rebuild(env_id: str, arguments: Mapping[str, Any], facts: Mapping[str, Any]) -> Parser:
    """Return the known parser that equals the worker's; no name that it sends is imported."""
    for known in _list_parsers(env_id, arguments):
        try:
            parser = get_parser(known() if isinstance(known, type) else known)
        except (UserError, TypeError):
            continue
        if (parser.name, parser.version, parser.describe()) == (facts["name"], facts["version"], facts["format"]):
            return parser
    raise UserError(
        f"{env_id}: its parser {facts['name']} is not known here, so it cannot be played in another process; give "
        "--parser tag or json, or play with --envs local."
    )


def _list_parsers(env_id: str, arguments: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the argument's parser, the core's, the card's and the plugin's."""
    yield from (arguments.get("parser"), *PARSERS)
    spec = get_registry().get(env_id)
    yield from spec.reply_styles
    place = spec.entry_point.partition(":")[0]
    with suppress(ImportError):
        importlib.import_module(place)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == place.partition(".")[0]:
            yield from (each for each in vars(module).values() if isinstance(each, type) and hasattr(each, "parse"))
