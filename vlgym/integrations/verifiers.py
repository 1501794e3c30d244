"""verifiers v1 and, through it, prime-rl: a taskset of episodes, and their environment.

verifiers finds both by the name of a module, so write one, `my_games.py`:

    from vlgym.integrations.verifiers import Episodes, Play

    __all__ = ["Episodes", "Play"]

    vf-eval my_games --env.taskset.env vlgym/NumberLine-v1 -m MODEL --client.base-url http://127.0.0.1:8000/v1

A turn is a user message of picture and text, the first with instructions. All pictures stay in the
context, where `vlgym eval` shows as many as the card says. A trace's `info["turns"]` has a row for
each turn (see `turn_rows`). Environments step in the event loop's thread. Seen with verifiers 0.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.types import UserMessage

from ..endpoint.messages import encode_turn
from ..errors import check_number
from ..parsers import check_named
from ..registry.making import make
from .agent import tasks
from .turn_rows import TurnRow, make_row, measure_rows


class EpisodesConfig(vf.TasksetConfig):
    """Episodes `first` to `first + episodes - 1` of a split; `arguments` are the environment's."""

    env: str = "vlgym/NumberLine-v1"
    split: str = "train"
    episodes: int = 64
    first: int = 0
    arguments: dict[str, Any] = {}  # noqa: RUF012, pydantic copies it


class EpisodeData(vf.TaskData):
    """One episode."""

    env: str
    seed: int
    arguments: dict[str, Any]


class EpisodeTask(vf.Task[EpisodeData, vf.State, vf.TaskConfig]):
    """The task of one episode."""


class Episodes(vf.Taskset[EpisodeTask, EpisodesConfig]):
    """The episodes of one environment."""

    def load(self) -> Iterator[EpisodeTask]:
        """Yield a task for each episode; a wrong argument is an error before the first."""
        config, arguments = self.config, check_named(self.config.arguments, "The taskset")
        check_number("episodes", config.episodes, 1)
        for task in tasks(config.env, config.split, config.episodes, first=config.first, **arguments):
            name = f"{task.env_id} {task.seed}"
            data = EpisodeData(name=name, env=task.env_id, seed=task.seed, arguments=arguments)
            yield EpisodeTask(data, config.task)


class PlayConfig(vf.EnvConfig):
    """The player is a plain chat, which runs no code."""

    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})


class Play(vf.Env[PlayConfig]):
    """Plays an episode; the reward is its return."""

    async def run(self, task: EpisodeTask, agents: vf.Agents) -> None:
        """Answer each reply with the next observation, until the episode or the context ends."""
        env = make(task.data.env, **check_named(task.data.arguments, "A task"))
        over = False
        replies: list[str] = []
        rows: list[TurnRow] = []

        # verifiers keeps the chat; every turn adds one user message.
        try:
            observation, _ = env.reset(seed=task.data.seed)
            text = observation["text"]
            async with agents.player.interaction(task) as talk:
                while not over:
                    message = encode_turn(observation["image"], text)
                    segment = await talk.turn([UserMessage.model_validate(message)])
                    if segment.terminated:
                        break
                    replies.append(segment.last_reply)
                    observation, reward, terminated, truncated, info = env.step(segment.last_reply)
                    rows.append(make_row(reward, info))
                    over = terminated or truncated
                    text = info["vlgym"]["turn_text"]
        finally:
            env.close()

        # The trace carries the return, for training, and the turns, for people.
        talk.trace.record_reward("return", env.episode_return)
        talk.trace.record_metrics(measure_rows(rows))
        talk.trace.info |= {"replies": replies, "turns": rows}
