"""The environments of a run, as one process plays them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlgym.env.prompts import PromptBuilder
from vlgym.env_groups import LOCAL, EnvGroup, open_group
from vlgym.parsers import Parser
from vlgym.play.env_failures import EnvFailures, Failure
from vlgym.play.rollout import Runner

from ..runs.distributed import ALONE, World, share_of


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

    Attributes:
        count: environments of this process; total: of all; first: number of this process's first one.
        failures: of environments in this process that the run has not written down yet; whatever plays adds to it.
        group: where the environments live.

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
    ) -> None:
        self.ids, self.kwargs, self.builder, self.world = list(ids), dict(kwargs), builder, world
        self.failures: list[Failure] = []
        self.total, self.count = total, share_of(total, world.size)
        self.first = world.rank * self.count
        share_of(self.count, group, "--num-envs of a process:", "groups of --group")
        self.group: EnvGroup = open_group(
            where, envs=self.count, limit=timeout, tell=lambda line: print(line, flush=True)
        )

    def make(self, index: int) -> Any:
        """Environment `index` of this process; ids take turns."""
        return self.group.make(self.ids[(self.first + index) % len(self.ids)], **self.kwargs)

    def parsers(self) -> tuple[Parser, ...]:
        """The parsers of the replies, each once; where one of them has what it asked for, a reply is over."""
        return parsers_of(self.ids, self.kwargs, self.group)

    def make_runner(self) -> Runner:
        """Endless training episodes."""
        return Runner(
            [self.make(i) for i in range(self.count)], split="train", builder=self.builder, remake=self.make,
            failures=EnvFailures(self.failures.append), first_episode=self.first, stride=self.total,
        )  # fmt: skip

    def close(self) -> None:
        """End the workers, where there are any."""
        self.group.close()


def parsers_of(env_ids: Sequence[str], env_kwargs: Mapping[str, Any], group: EnvGroup = LOCAL) -> tuple[Parser, ...]:
    """The parsers of environments, each once."""
    found: dict[tuple[str, int, type], Parser] = {}
    for env_id in env_ids:
        env = group.make(env_id, **env_kwargs)
        found.setdefault((env.parser.name, env.parser.version, type(env.parser)), env.parser)
        env.close()
    return tuple(found.values())


def prompt_builder(turns: int | None, images: int | None) -> PromptBuilder | None:
    """The prompt layout that was asked for: `images` alone brings the turns that they belong to; None for the
    environments' own."""
    if turns is None and images is None:
        return None
    return PromptBuilder(turns if turns is not None else max(0, (images or 0) - 1), images if images is not None else 1)
