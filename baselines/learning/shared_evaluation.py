"""Held-out episodes that the processes of a run share: the same episodes, on the same random numbers, as one process
would play, and the same report in all of them.

One process plays N episodes side by side and hands the next number to whichever environment becomes free. Here the N
environments are shared out, every process answers its own, and after each turn all of them learn which episodes have
ended, so that numbers are handed out as before. Random numbers are drawn for all N and each process takes its own. What
may differ from one process is the rounding of another batch, and a reply that hangs on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vlgym.env_failures import ENV_ERROR, EnvFailures, Failure, warn
from vlgym.env_groups import LOCAL, EnvGroup
from vlgym.evaluation.held_out import Report, changes_bounds, summarize
from vlgym.prompts import PromptBuilder
from vlgym.rollout import Runner
from vlgym.types import StepRecord

from ..engine.policy import ModelPolicy
from ..runs import distributed
from ..runs.distributed import Shares, World, split

TOLD = (
    "env_id", "episode", "seed", "turn", "reply", "parse", "reward", "terminated", "truncated", "invalid", "success",
    "score", "cut",
)  # fmt: skip
"""What the processes tell each other of a turn: all that a report is made of, no pictures."""


class SharedRunner(Runner):
    """The environments of this process among those that one `Runner` would have.

    Args:
        envs: this process's.
        shares: how many every process has.
        **options: as in `Runner`; the first episode is number 0, and one that an environment breaks off is played
            again.
    """

    def __init__(self, envs: Sequence[Any], shares: Shares, **options: Any) -> None:
        self.shares = shares
        self.ended: list[int] = []  # numbers of the environments, over all processes, since the last `hand_out`
        super().__init__(envs, again=True, **options)

    def hand_out(self, numbers: dict[int, int]) -> None:
        """Begin new episodes.

        Args:
            numbers: of the next episode, by environment over all processes.
        """
        for slot in self.slots:
            if (number := numbers.get(self.shares.first + slot.index)) is not None:
                slot.active = True
                self._start(slot, number)
        self.ended = []

    def _reset(self, slot: Any) -> None:
        if slot.episode < 0:  # the first one
            slot.active = True
            self._start(slot, self.shares.first + slot.index)
        else:
            slot.active = False
            self.ended.append(self.shares.first + slot.index)


def evaluate_shared(
    env_id: str,
    policy: ModelPolicy,
    world: World,
    *,
    episodes: int,
    split_name: str,
    num_envs: int,
    env_kwargs: dict[str, Any],
    builder: PromptBuilder | None = None,
    on_end: Callable[[], object] = lambda: None,
    on_failure: Callable[[Failure], object] = warn,
    group: EnvGroup = LOCAL,
) -> Report:
    """What `vlgym.evaluation.evaluate` reports, by all processes together; every one of them calls this.

    Args:
        env_id: environment id.
        policy: of this process, with the same weights and the same generator state in all.
        world: the processes.
        episodes: episodes 0, 1, ... of the split are played.
        split_name: `train`, `val` or `test`.
        num_envs: how many are played side by side, over all processes.
        env_kwargs: arguments for the environment.
        builder: prompt layout; the environment's own by default.
        on_end: called for each episode that has ended, in whichever process.
        on_failure: called with each failure of an environment of this process (see `vlgym.evaluation.evaluate`).
        group: where this process's environments live.
    """
    shares = split(min(num_envs, episodes), world)

    def make_env(index: int) -> Any:
        return group.make(env_id, **env_kwargs)

    runner = SharedRunner(
        [make_env(i) for i in range(shares.own)], shares, episodes=episodes, split=split_name, builder=builder,
        remake=make_env, failures=EnvFailures(on_failure),
    ) if shares.own else None  # fmt: skip
    policy, records, following, going = policy.in_step(), [], shares.total, shares.total
    try:
        while going:
            if runner is None:
                policy.reply([])  # the others ask how many prompts there are
            else:
                records += [_told(record) for record in runner.step(policy)]
            ended = sorted(_everywhere(runner.ended if runner else [], world))
            numbers = {env: following + i for i, env in enumerate(ended) if following + i < episodes}
            following, going = following + len(numbers), going + len(numbers) - len(ended)
            if runner is not None:
                runner.hand_out(numbers)
            for _ in ended:
                on_end()
    finally:
        if runner is not None:
            runner.close()
    finished: dict[int, list[StepRecord]] = {}
    for fields in _everywhere(records, world):
        if fields["parse"] == ENV_ERROR:  # it was played again
            finished.pop(fields["episode"], None)
        else:
            finished.setdefault(fields["episode"], []).append(_record(fields))
    changed = changes_bounds(env_id, env_kwargs)
    return summarize(env_id, policy.name, split_name, [finished[i] for i in sorted(finished)], changed=changed)


def _everywhere(rows: list[Any], world: World) -> list[Any]:
    """The rows of all processes."""
    return [row for text in distributed.gather_texts(json.dumps(rows), world) for row in json.loads(text)]


def _told(record: StepRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in TOLD}


def _record(fields: dict[str, Any]) -> StepRecord:
    return StepRecord(messages=[], image=np.zeros((0, 0, 3), np.uint8), text="", actions=(), **fields)
