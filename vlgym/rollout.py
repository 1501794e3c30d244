"""The one place where all the stages meet: environment -> prompt -> policy -> parser (in the environment) ->
environment -> record.

Read `Runner.step` first; evaluation, imitation and the learner all run through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from .errors import UserError
from .making import unwrap
from .policies import Policy
from .prompts import PastTurn, PromptBuilder
from .seeding import episode_seed
from .types import StepRecord, Turn


@dataclass
class _Slot:
    """One environment and where its episode stands."""

    env: gymnasium.Env[Any, Any]
    env_id: str
    builder: PromptBuilder
    episode: int = -1
    seed: int = 0
    turn: int = 0
    observation: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    history: list[PastTurn] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    active: bool = False


class Runner:
    """Steps several environments with one policy, batch by batch, and records every turn.

    Episodes get running numbers from `first_episode`; number `n` has the seed `episode_seed(env_id, split, n)`. An
    environment that ends is reset at once with the next number, until `episodes` have been begun.

    Args:
        envs: environments, made by `gymnasium.make` or `vlgym.make`; of one id or several.
        split: `train`, `val` or `test`.
        first_episode: number of the first episode.
        episodes: how many to begin in all; `None` for no end.
        builder: prompt layout; by default each environment's own history defaults.

    Raises:
        UserError: no environments, or one that is not a `VLEnv`.
    """

    def __init__(
        self,
        envs: Sequence[gymnasium.Env[Any, Any]],
        *,
        split: str = "train",
        first_episode: int = 0,
        episodes: int | None = None,
        builder: PromptBuilder | None = None,
    ) -> None:
        if not envs:
            raise UserError("A Runner needs at least one environment.")
        self.split = split
        self._next = first_episode
        self._end = None if episodes is None else first_episode + episodes
        self.slots = [_Slot(env, _name(env), builder or _default_builder(env)) for env in envs]
        for slot in self.slots:
            self._reset(slot)

    @property
    def done(self) -> bool:
        """Whether every episode has ended."""
        return not any(slot.active for slot in self.slots)

    def turns(self) -> list[Turn]:
        """Return the current prompt of every active environment, in slot order."""
        return [self._turn(slot) for slot in self.slots if slot.active]

    def step(self, policy: Policy) -> list[StepRecord]:
        """Let the policy answer every active environment once; return one record each, in slot order."""
        active = [slot for slot in self.slots if slot.active]
        turns = [self._turn(slot) for slot in active]
        replies = policy.reply(turns)
        if len(replies) != len(turns):
            raise UserError(f"Policy {policy.name!r} gave {len(replies)} replies to {len(turns)} prompts.")
        records = []
        for slot, turn, reply in zip(active, turns, replies, strict=True):
            before = slot.observation
            ended_by = self._advance(slot, reply.text)
            details = slot.info["vlgym"]
            terminated, truncated, reward = ended_by
            record = StepRecord(
                env_id=slot.env_id,
                episode=slot.episode,
                seed=slot.seed,
                turn=turn.turn,
                messages=turn.messages,
                image=before["image"],
                text=before["text"],
                reply=reply.text,
                actions=tuple(details["actions"]),
                parse=details["parse"],
                reward=reward,
                terminated=terminated,
                truncated=truncated,
                invalid=slot.info["invalid_action"],
                success=slot.info["success"],
                score=slot.info.get("score"),
                extra=reply.extra,
                final_messages=self._turn(slot).messages if truncated else None,
            )
            records.append(record)
            if terminated or truncated:
                self._reset(slot)
        return records

    def get_state(self) -> dict[str, Any]:
        """Return JSON-able data from which `set_state` restores every episode exactly, in any process."""
        return {
            "next": self._next,
            "slots": [
                {
                    "episode": slot.episode,
                    "active": slot.active,
                    "replies": list(slot.replies),
                    "samples": slot.env.action_space.np_random.bit_generator.state,
                }
                for slot in self.slots
            ],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`'s episodes by replaying their replies, which is exact because an episode is a function
        of its seed.

        Raises:
            UserError: the state has another number of environments.
        """
        if len(state["slots"]) != len(self.slots):
            raise UserError(f"The saved rollout has {len(state['slots'])} environments, this one {len(self.slots)}.")
        for slot, saved in zip(self.slots, state["slots"], strict=True):
            slot.active = saved["active"]
            if slot.active:
                self._begin(slot, saved["episode"])
                for text in saved["replies"]:
                    self._advance(slot, text)
                slot.env.action_space.np_random.bit_generator.state = saved["samples"]
        self._next = state["next"]

    def close(self) -> None:
        """Close every environment."""
        for slot in self.slots:
            slot.env.close()

    def _reset(self, slot: _Slot) -> None:
        slot.active = self._end is None or self._next < self._end
        if slot.active:
            self._begin(slot, self._next)
            self._next += 1

    def _begin(self, slot: _Slot, episode: int) -> None:
        slot.episode, slot.turn, slot.history, slot.replies = episode, 0, [], []
        slot.seed = episode_seed(slot.env_id, self.split, episode)
        slot.env.action_space.seed(slot.seed % 2**32)
        slot.observation, slot.info = slot.env.reset(seed=slot.seed)

    def _advance(self, slot: _Slot, text: str) -> tuple[bool, bool, float]:
        past = PastTurn(slot.observation["image"], slot.info["vlgym"]["turn_text"], text)
        slot.observation, reward, terminated, truncated, slot.info = slot.env.step(text)
        slot.replies.append(text)
        if slot.builder.history_turns:
            slot.history = [*slot.history, past][-slot.builder.history_turns :]
        slot.turn += 1
        return bool(terminated), bool(truncated), float(reward)

    def _turn(self, slot: _Slot) -> Turn:
        details = slot.info["vlgym"]
        messages = slot.builder.build(
            details["instructions"], details["turn_text"], slot.observation["image"], slot.history
        )
        return Turn(messages, slot.env, slot.env_id, slot.seed, slot.turn)


def run_episodes(runner: Runner, policy: Policy) -> Iterator[list[StepRecord]]:
    """Step until every episode has ended; yield each episode's records as it ends."""
    open_episodes: dict[tuple[str, int], list[StepRecord]] = {}
    while not runner.done:
        for record in runner.step(policy):
            key = (record.env_id, record.episode)
            open_episodes.setdefault(key, []).append(record)
            if record.terminated or record.truncated:
                yield open_episodes.pop(key)


def _name(env: gymnasium.Env[Any, Any]) -> str:
    inner = unwrap(env)
    return inner.vlgym_spec.id if inner.vlgym_spec is not None else type(inner).__name__


def _default_builder(env: gymnasium.Env[Any, Any]) -> PromptBuilder:
    spec = unwrap(env).vlgym_spec
    return PromptBuilder(spec.history_turns, spec.history_images) if spec is not None else PromptBuilder()
