"""ArCHer: its targets and losses by hand, its buffer, where its gradients go, and exact resumption."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from samples import messages, picture
from stage import assert_same_end, rewind, rows_of

from baselines import archer
from baselines.archer import Config, Replay, State, Transition
from baselines.engine.engine import pad_rows
from baselines.learning.warm_start import WarmConfig
from baselines.runs.folder import checkpoints
from baselines.vldac import Standardise

ENV = "vlgym/NumberLine-v0"
SMALL = Config(
    env=ENV, updates=3, num_envs=2, rollout_steps=3, minibatch=4, critic_steps=3, critic_batch=5, critic_warmup=1,
    buffer=14,  # the third rollout pushes out the first four steps
    eval_episodes=0, save_every=1, image_tokens=4, max_new_tokens=8, warm=WarmConfig(steps=0), threads=1,
)  # fmt: skip


# ---- losses --------------------------------------------------------------------------------------


# ---- critics -------------------------------------------------------------------------------------


def test_features_are_standardised_by_what_was_seen_and_stay_bounded():
    layer = Standardise(3)
    layer.fit(torch.tensor([[0.0, 10.0, 5.0], [2.0, 10.2, 5.0]]))
    assert layer.mean.tolist() == pytest.approx([1.0, 10.1, 5.0])
    spread = 0.1 * (1.0 + 0.1 + 0.0) / 3
    assert layer.deviation.tolist() == pytest.approx([1 + spread, 0.1 + spread, spread], abs=1e-5)
    assert layer(torch.tensor([[1e6, -1e6, 1e9]])).abs().max() < 2


# ---- buffer --------------------------------------------------------------------------------------


def transitions(family, pictures: list[int]) -> list[Transition]:
    """A path through pictures; negative numbers are text-only prompts; the last step terminates."""
    states = {}
    for n in pictures:
        message = (
            messages(picture(n, (56, 56)), "go")
            if n >= 0
            else [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
        )
        states[n] = State(family.encode(message), torch.full((2,), float(n)))
    path = [states[n] for n in pictures]
    return [
        Transition(state, torch.tensor([float(i)]), i / 3, after)
        for i, (state, after) in enumerate(zip(path, [*path[1:], None], strict=True))
    ]


def test_a_buffer_survives_saving_with_each_distinct_prompt_stored_once(family, tmp_path):
    pictures = [1, 2, 1, -1]
    before, after = Replay(9, family), Replay(9, family)
    before.add(transitions(family, pictures))
    save_file(before.tensors(), tmp_path / "buffer.safetensors")
    saved = load_file(tmp_path / "buffer.safetensors")
    distinct, shown = len(set(pictures)), sorted({n for n in pictures if n >= 0})
    assert len(saved["prompts.sizes"]) == distinct
    assert len(saved["images.pixels"]) == sum(family.prepare_image(picture(n, (56, 56))).pixels.size for n in shown)
    after.restore(saved)
    for old, new in zip(before.rows, after.rows, strict=True):
        assert (old.reward, old.following is None) == (new.reward, new.following is None)
        assert torch.equal(old.action, new.action)
        for a, b in ((old.state, new.state), (old.following, new.following)):
            if a is not None:
                assert torch.equal(a.feature, b.feature)
                same_prompt(a.prompt, b.prompt)
    again = after.tensors()
    assert again.keys() == saved.keys()
    assert all(torch.equal(again[name], saved[name]) for name in saved)


def same_prompt(a, b) -> None:
    assert (a.key, a.next_position) == (b.key, b.next_position)
    assert torch.equal(a.ids, b.ids)
    assert torch.equal(a.positions, b.positions)
    assert torch.equal(a.image_slots, b.image_slots)
    for x, y in zip(a.images, b.images, strict=True):
        assert (x.digest, x.grid, x.tokens) == (y.digest, y.grid, y.tokens)
        assert np.array_equal(x.pixels, y.pixels)


# ---- the learner ---------------------------------------------------------------------------------


def test_what_the_critics_read_are_states_of_the_whole_pass(engine, prompts):
    replies = [engine.family.encode_reply(text) for text in ("a", "go on <action>+</action>", "b c", "d", "e", "f g")]
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
            hidden = model(inputs_embeds=x, position_ids=positions[:, None], use_cache=False).last_hidden_state[0]
        own = hidden[len(prompt) :]
        torch.testing.assert_close(states[i], hidden[len(prompt) - 1], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(actions[i], torch.cat([own.mean(0), own[-1]]), atol=1e-4, rtol=1e-4)


# ---- runs ----------------------------------------------------------------------------------------


def test_three_updates_equal_two_and_a_resumed_one_bit_for_bit(tmp_path):
    straight = tmp_path / "straight"
    archer.train(replace(SMALL, out=straight, kl_coef=0.1, final_lr=1.0))
    stopped = rewind(straight, tmp_path / "stopped")
    archer.train(Config(out=stopped, resume=True))
    assert_same_end(straight, stopped)
    tensors = load_file(checkpoints(straight / "checkpoints")[-1] / "tensors.safetensors")
    wanted = {"optimizer.critic.0.exp_avg", "learner.critics.qs.0.0.weight", "learner.targets.vs.1.0.weight"}
    assert wanted | {"learner.buffer.rows.action", "learner.buffer.images.pixels"} <= tensors.keys()
    rows = rows_of(straight)
    assert [row["policy/lr"] > 0 for row in rows] == [False, True, True]
    assert [row["buffer/steps"] for row in rows] == [6, 12, 14]
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in rows)
