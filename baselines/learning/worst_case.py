"""The longest prompt that a run will meet, found by playing: histories full, every reply as long as it may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vlgym.env_failures import EnvFailures, Failure, warn
from vlgym.env_groups import LOCAL, EnvGroup
from vlgym.prompts import PromptBuilder
from vlgym.rollout import Runner
from vlgym.types import Reply

from ..models.family import Family, Prompt

FURTHER_TURNS = 2  # beyond a full history; texts of later turns can be longer
MOST_TURNS = 12  # a longer history is not played to its end


def longest_prompt(
    env_ids: Sequence[str],
    family: Family,
    *,
    new_tokens: int,
    env_kwargs: Mapping[str, Any] | None = None,
    builder: PromptBuilder | None = None,
    on_failure: Callable[[Failure], object] = warn,
    group: EnvGroup = LOCAL,
) -> Prompt:
    """Play some turns of each environment with legal actions after texts of full length; return the longest prompt.

    The environments are made for this and closed again. Observations with longer texts may come later in an episode.

    Args:
        env_ids: the run's environments.
        family: lays the prompts out; its weights are not read.
        new_tokens: longest reply.
        env_kwargs: constructor arguments of the environments.
        builder: prompt layout; None for each environment's own.
        on_failure: called with each failure of an environment, which is replaced.
        group: where the environments live.
    """
    longest: Prompt | None = None
    for env_id in env_ids:

        def make_env(index: int, env_id: str = env_id) -> Any:
            return group.make(env_id, **(env_kwargs or {}))

        runner = Runner(
            [make_env(0)], split="train", builder=builder, remake=make_env, again=True,
            failures=EnvFailures(on_failure),
        )  # fmt: skip
        try:
            for _ in range(1 + min(MOST_TURNS, runner.slots[0].builder.history_turns + FURTHER_TURNS)):
                turns = runner.turns()
                prompt = family.encode(turns[0].messages)
                if longest is None or len(prompt) > len(longest):
                    longest = prompt
                action = turns[0].env.action_space.sample()
                room = new_tokens - len(family.encode_reply(action))
                runner.advance(turns, [Reply(" a" * max(0, room) + action)])
        finally:
            runner.close()
    if longest is None:
        raise ValueError("There is no environment.")
    return longest
