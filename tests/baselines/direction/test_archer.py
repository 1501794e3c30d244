"""ArCHer: the features of its critics, and exact resumption with its buffer."""

from __future__ import annotations

import pytest
import torch
from bandit import CUT, ENDS, SETTINGS
from safetensors.torch import load_file
from stage import assert_same_end, rewind, rows_of

from baselines import archer
from baselines.engine.engine import pad_rows
from baselines.runs.folder import checkpoints
from baselines.vldac import Standardise

BRIEF = {
    **SETTINGS, "env": f"{ENDS},{CUT}", "updates": 3, "num_envs": 2, "rollout_steps": 3,
    "minibatch": 4, "critic_steps": 3, "critic_batch": 5, "critic_warmup": 1, "save_every": 1,
    "kl_coef": 0.1, "final_lr": 1.0,
    "buffer": 14,  # the third rollout pushes out the first four steps
}  # fmt: skip


def test_features_are_standardised_by_what_was_seen_and_stay_bounded():
    layer = Standardise(3)
    layer.fit(torch.tensor([[0.0, 10.0, 5.0], [2.0, 10.2, 5.0]]))
    assert layer.mean.tolist() == pytest.approx([1.0, 10.1, 5.0])
    spread = 0.1 * (1.0 + 0.1 + 0.0) / 3
    assert layer.deviation.tolist() == pytest.approx([1 + spread, 0.1 + spread, spread], abs=1e-5)
    assert layer(torch.tensor([[1e6, -1e6, 1e9]])).abs().max() < 2


def test_what_the_critics_read_are_states_of_the_whole_pass(engine, prompts):
    texts = ("a", "go on <action>+</action>", "b c", "d", "e", "f g")
    replies = [engine.family.encode_reply(text) for text in texts]
    ids, mask = pad_rows([torch.tensor(reply) for reply in replies], engine.family.pad_id)
    states, actions = engine.reply_states(prompts, ids, mask)
    assert not states.requires_grad
    assert not actions.requires_grad
    for i, prompt in enumerate(prompts):
        whole = torch.cat([prompt.ids, torch.tensor(replies[i])])
        steps = prompt.next_position + torch.arange(len(replies[i]))
        positions = torch.cat([prompt.positions, steps.expand(3, -1)], dim=1)
        with torch.no_grad():
            x, _ = engine.place_images(engine.embedding(whole[None]), [prompt], [0], False)
            model = engine.family.language_model
            output = model(inputs_embeds=x, position_ids=positions[:, None], use_cache=False)
            hidden = output.last_hidden_state[0]
        own = hidden[len(prompt) :]
        torch.testing.assert_close(states[i], hidden[len(prompt) - 1], atol=1e-4, rtol=1e-4)
        expected = torch.cat([own.mean(0), own[-1]])
        torch.testing.assert_close(actions[i], expected, atol=1e-4, rtol=1e-4)


def test_three_updates_equal_two_and_a_resumed_one_bit_for_bit(small_runs, tmp_path):
    straight = tmp_path / "straight"
    archer.train(archer.Config(**BRIEF, out=straight))
    stopped = rewind(straight, tmp_path / "stopped")
    archer.train(archer.Config(out=stopped, resume=True))
    assert_same_end(straight, stopped)
    tensors = load_file(checkpoints(straight / "checkpoints")[-1] / "tensors.safetensors")
    wanted = {"optimizer.critic.0.exp_avg", "learner.critics.qs.0.0.weight", "learner.targets.vs.1.0.weight"}
    assert wanted | {"learner.buffer.rows.action", "learner.buffer.images.pixels"} <= tensors.keys()
    rows = rows_of(straight)
    assert [row["policy/lr"] > 0 for row in rows] == [False, True, True]
    assert [row["buffer/steps"] for row in rows] == [6, 12, 14]
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in rows)
