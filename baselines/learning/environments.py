"""The environments of a run, as one process plays them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlgym.env_failures import EnvFailures, Failure
from vlgym.env_groups import LOCAL, EnvGroup, open_group
from vlgym.parsers import Parser
from vlgym.prompts import PromptBuilder
from vlgym.rollout import Runner

from ..runs.distributed import ALONE, Shares, World
from ..runs.folder import environment_ids, share_of
from .config import DEFAULT_ENV, RunConfig
from .rewards import RewardShaper


class Environments:
    """The environments of a run, with their arguments and prompt layout.

    Args:
        config: the run's configuration.
        world: the processes of the run.

    Attributes:
        ids: environment ids, mixed evenly.
        kwargs: constructor arguments of every environment.
        builder: prompt layout; None for each environment's own.
        shares: how many environments every process has.
        count: environments of this process.
        failures: of environments in this process that the run has not written down yet; whatever plays adds to it.
        group: where the environments live.

    Raises:
        UserError: an id or an option is wrong, or the environments cannot be split evenly over the processes.
    """

    def __init__(self, config: RunConfig, world: World = ALONE) -> None:
        self.config, self.world = config, world
        self.failures: list[Failure] = []
        self.ids = environment_ids(config.env or DEFAULT_ENV)
        self.kwargs = config.environment_arguments()
        self.builder = prompt_builder(config.history_turns, config.history_images)
        self.count = share_of(config.num_envs, world.size)
        share_of(self.count, getattr(config, "group", 1), "--num-envs of a process:", "groups of --group")
        self.shares = Shares(self.count, world)
        self.group: EnvGroup = open_group(
            config.envs, envs=self.count, limit=config.env_timeout, tell=lambda line: print(line, flush=True)
        )

    def make(self, index: int) -> Any:
        """Environment `index` of this process; ids take turns."""
        return self.group.make(self.ids[(self.shares.first + index) % len(self.ids)], **self.kwargs)

    def parsers(self) -> tuple[Parser, ...]:
        """The parsers of the replies, each once; where one of them has what it asked for, a reply is over."""
        return parsers_of(self.ids, self.kwargs, self.group)

    def make_runner(self) -> Runner:
        """Endless training episodes."""
        return Runner(
            [self.make(i) for i in range(self.count)], split="train", builder=self.builder, remake=self.make,
            failures=EnvFailures(self.failures.append), first_episode=self.shares.first, stride=self.config.num_envs,
        )  # fmt: skip

    def make_shaper(self, gamma: float) -> RewardShaper:
        """The reward shaping of this process's environments."""
        return RewardShaper(self.config.reward, self.count, gamma)

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
