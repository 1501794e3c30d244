"""verl: an agent loop that plays an episode, its pictures in `multi_modal_data`, and rows of a data set.

verl finds the loop by a file of settings, `actor_rollout_ref.rollout.agent.agent_loop_config_path`:

    - name: vlgym
      _target_: vlgym.integrations.verl.Game

A row's columns name the episode. All pictures stay in the context. An episode ends, too, at
`rollout.response_length` or `rollout.multi_turn.max_assistant_turns`; the reward is its pay until then.
The output's `extra_fields` have the rewards of the turns (`turn_scores`) and `turns`, a row for each (see
`turn_rows`). Seen with verl 0.9.1.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from ..registry.making import make
from ..types import Image
from .agent import Task, tasks
from .turn_rows import TurnRow, make_row, measure_rows, show_turn


class Game(AgentLoopBase):  # type: ignore[misc]  # verl is installed in an environment of its own
    """Plays the episode of a row; verl makes one loop for each."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Ask verl's server for replies until the episode or its room ends."""
        task, rollout, request = Task.from_row(row["extra_info"]), self.rollout_config, uuid4().hex
        env, limit = make(task.env_id, **task.arguments), rollout.response_length
        mask: list[int] = []
        rows: list[TurnRow] = []
        try:
            observation, info = env.reset(seed=task.seed)
            messages = [_show(observation["image"], observation["text"])]
            pictures = [messages[0]["content"][0]["image"]]
            self._assert_mm_supported(True)  # rather than drop them
            ids = await self.ct_build_initial_tokens(messages, images=pictures)
            logprobs: list[float] | None = []

            # Each turn: a reply of the server, a step, and the tokens of what comes next.
            while True:
                output = await self.server_manager.generate(
                    request_id=request, prompt_ids=ids, sampling_params=sampling_params,
                    image_data=[*pictures],
                )  # fmt: skip
                logprobs = logprobs if output.log_probs else None
                merged, mask, logprobs = await self.ct_merge_assistant_token(
                    ids, output.token_ids, mask, logprobs, assistant_logprobs=output.log_probs
                )
                ids = merged.token_ids
                reply = self.tokenizer.decode(output.token_ids, skip_special_tokens=True)
                observation, reward, terminated, truncated, info = env.step(reply)
                rows.append(make_row(reward, info))
                full = len(mask) >= limit or len(rows) == rollout.multi_turn.max_assistant_turns
                if terminated or truncated or full:
                    break
                past = [*messages, {"role": "assistant", "content": reply}]
                messages = [*past, _show(observation["image"], info["vlgym"]["turn_text"])]
                merged, longer, aligned = await self.ct_merge_context_msg(past, messages, ids, mask, logprobs)
                if len(longer) >= limit:  # no picture may be cut
                    break
                ids, mask, logprobs = merged.token_ids, longer, aligned
                pictures.append(messages[-1]["content"][0]["image"])
        finally:
            env.close()

        # Prompt and response are cut where verl wants them; masks keep the same length.
        begin = len(ids) - len(mask)
        return AgentLoopOutput(
            prompt_ids=ids[:begin], response_ids=ids[begin:][:limit], response_mask=mask[:limit],
            response_logprobs=logprobs[:limit] if logprobs else None,
            multi_modal_data={"images": pictures}, reward_score=env.episode_return,
            num_turns=2 * len(rows), metrics=AgentLoopMetrics(), extra_fields={
                "turn_scores": [row["reward"] for row in rows], "turns": rows,
                "reward_extra_info": measure_rows(rows),
            },
        )  # fmt: skip


def make_rows(
    env_id: str, episodes: int, *, split: str = "train", first: int = 0, **arguments: Any
) -> list[dict[str, Any]]:
    """Return rows of verl's data set, one for each episode, as of `tasks`."""
    common = {"agent_name": "vlgym", "data_source": env_id, "prompt": [{"role": "user", "content": ""}]}
    chosen = tasks(env_id, split, episodes, first=first, **arguments)
    return [common | {"extra_info": task.to_row()} for task in chosen]


def _show(image: Image, text: str) -> dict[str, Any]:
    return {"role": "user", "content": show_turn(image, text)}
