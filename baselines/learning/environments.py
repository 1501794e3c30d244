"""The environments of a run, as one process plays them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vlgym.env.prompts import PromptBuilder
from vlgym.env.reset_options import LEVEL
from vlgym.env_groups import LOCAL, EnvGroup, open_group
from vlgym.errors import UserError
from vlgym.parsers import Parser
from vlgym.play.controls import SHOWN
from vlgym.play.curriculum import Course
from vlgym.play.env_failures import EnvFailures, Failure, close_env
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner
from vlgym.registry import get_registry
from vlgym.registry.making import unwrap
from vlgym.types import Message, Reply, Turn

from ..models.family import Prompt
from ..models.folders import read_limits
from ..runs.distributed import ALONE, World, share_of

IMAGE_TOKENS = {"NumberLine": 16, "miniworld": 16, "sight": 16, "cards": 36, "sokoban": 49}
"""Most tokens per image of the tiny model, by family or by an environment's name; 64 elsewhere."""


class Environments:
    """The environments of a run, with their arguments and prompt layout.

    Args:
        ids: environment ids, mixed evenly.
        kwargs: constructor arguments of every environment.
        total: environments of all processes.
        builder: prompt layout; None for each environment's own.
        group: size of the groups into which a process's environments are split evenly.
        where: `--envs`; timeout: seconds that a worker has for an answer.
        world: the processes of the run.
        curriculum: `--curriculum`, None for none; seed: of its choices.
        pictures: `--pictures`, of the prompts in training.

    Attributes:
        count: environments of this process; total: of all; first: number of this process's first one.
        failures: of environments in this process that the run has not written down yet; whatever plays adds to it.
        group: where the environments live.
        course: the curriculum at work, which learns from this process's episodes; None without one.

    Raises:
        UserError: an option is wrong, or the environments cannot be split evenly.
    """

    def __init__(
        self,
        ids: Sequence[str],
        kwargs: Mapping[str, Any],
        total: int,
        *,
        builder: PromptBuilder | None = None,
        group: int = 1,
        where: str = "local",
        timeout: float = 120.0,
        world: World = ALONE,
        curriculum: str | None = None,
        seed: int = 0,
        pictures: str = SHOWN,
    ) -> None:
        self.ids, self.kwargs, self.builder, self.world = list(ids), dict(kwargs), builder, world
        self.pictures = pictures
        self.failures: list[Failure] = []
        if curriculum is not None and LEVEL in kwargs:
            raise UserError("--curriculum chooses the level, and so does --env-kwargs level=...; leave one out.")
        self.course = None if curriculum is None else Course(curriculum, self.ids, seed=seed)
        self._aside: dict[tuple[int, str], Any] = {}  # environments of a slot that plays another id now
        self.total, self.count = total, share_of(total, world.size)
        self.first = world.rank * self.count
        share_of(self.count, group, "--num-envs of a process:", "groups of --group")
        self.group: EnvGroup = open_group(
            where, envs=self.count, limit=timeout, tell=lambda line: print(line, flush=True)
        )

    def make(self, index: int, env_id: str | None = None) -> Any:
        """Environment `index` of this process; without an id, ids take turns."""
        return self.group.make(env_id or self.ids[(self.first + index) % len(self.ids)], **self.kwargs)

    def exchange(self, index: int, env: Any, env_id: str) -> Any:
        """Put environment `index` aside, and return the one of another id that stands in its place."""
        spec = unwrap(env).vlgym_spec
        assert spec is not None
        self._aside[index, spec.id] = env
        return self._aside.pop((index, env_id), None) or self.make(index, env_id)

    def held_out(self, env_id: str) -> dict[str, Any]:
        """Arguments of the environment in held-out episodes."""
        return self.kwargs if self.course is None else self.course.held_out(env_id, self.kwargs)

    def parsers(self) -> tuple[Parser, ...]:
        """The parsers of the replies, each once; where one of them has what it asked for, a reply is over."""
        return parsers_of(self.ids, self.kwargs, self.group)

    def make_runner(self) -> Runner:
        """Endless training episodes."""
        return Runner(
            [self.make(i) for i in range(self.count)], split="train", builder=self.builder, remake=self.make,
            failures=EnvFailures(self.failures.append), first_episode=self.first, stride=self.total,
            course=self.course, exchange=self.exchange, pictures=self.pictures,
        )  # fmt: skip

    def longest_prompt(self, encode: Callable[[Sequence[Message]], Prompt], words: int, turns: int = 16) -> Prompt:
        """The longest prompt in the first turns of an episode of each environment: random play, after `words` words."""
        found: list[Prompt] = []
        for index, env_id in enumerate(self.ids):
            runner = Runner([self.make(index, env_id)], split="val", builder=self.builder, episodes=1)
            for _ in range(turns):
                found += [encode(turn.messages) for turn in runner.turns()]
                if not runner.done:
                    runner.step(_Talker("a " * words))
            runner.close()
        return max(found, key=len)

    def close(self) -> None:
        """Close what a curriculum put aside, and end the workers, where there are any."""
        while self._aside:
            close_env(self._aside.popitem()[1])
        self.group.close()


class _Talker(RandomPolicy):
    """Random play after many words."""

    def __init__(self, words: str) -> None:
        self.words = words

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [replace(reply, text=self.words + reply.text) for reply in super().reply(turns)]


def parsers_of(env_ids: Sequence[str], env_kwargs: Mapping[str, Any], group: EnvGroup = LOCAL) -> tuple[Parser, ...]:
    """The parsers of environments, each once."""
    found: dict[tuple[str, int, type], Parser] = {}
    for env_id in env_ids:
        env = group.make(env_id, **env_kwargs)
        found.setdefault((env.parser.name, env.parser.version, type(env.parser)), env.parser)
        env.close()
    return tuple(found.values())


def count_image_tokens(model: str, env_ids: Sequence[str]) -> int | None:
    """Most tokens per image, where no option says: those of a saved model's training, for `tiny` what the environments
    need, for others as many as their processor allows (`None`)."""
    if model != "tiny":
        return read_limits(model).image_tokens
    specs = [get_registry().get(env_id) for env_id in env_ids]
    return max(IMAGE_TOKENS.get(spec.title, IMAGE_TOKENS.get(spec.family, 64)) for spec in specs)
