"""ArCHer: its targets and losses by hand, its buffer, where its gradients go, and exact resumption."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from samples import messages, picture

from baselines import archer
from baselines.archer import ArCHer, Config
from baselines.engine.policy import pad_rows
from baselines.learning import losses
from baselines.learning.critics import Critics, Standardise, follow
from baselines.learning.optimizers import Metrics
from baselines.learning.replay import Replay, State, Transition, columns
from baselines.learning.run import Run
from baselines.learning.warm_start import WarmConfig
from baselines.runs.checkpoint import checkpoints
from baselines.runs.logs import RunLog, read_rows
from vlgym.errors import UserError

ENV = "vlgym/NumberLine-v0"
SMALL = Config(
    env=ENV,
    updates=3,
    num_envs=2,
    rollout_steps=3,
    minibatch=4,
    buffer=14,  # the third rollout pushes out the first four steps
    critic_steps=3,
    critic_batch=5,
    critic_warmup=1,
    eval_episodes=0,
    save_every=1,
    image_tokens=4,
    max_new_tokens=8,
    warm=WarmConfig(steps=0),
    threads=1,
)


@pytest.fixture
def make_learner(tmp_path):
    """A learner on an untrained tiny model, its run not begun."""

    def make(**changes) -> ArCHer:
        config = replace(SMALL, out=tmp_path / str(len(list(tmp_path.iterdir()))), **changes).resolve()
        return ArCHer(Run(config, keep_reference=True))

    return make


# ---- losses ----------------------------------------------------------------------------------------------------------


def test_q_targets_bootstrap_running_and_truncated_steps_and_not_terminated_ones():
    rewards = torch.tensor([1.0, -1.0, 2.0])  # running, truncated (V of the final observation), terminated
    next_values = torch.tensor([[4.0, 8.0, math.nan], [2.0, 6.0, math.inf]])
    targets = losses.td_targets(rewards, next_values, torch.tensor([False, False, True]), gamma=0.5)
    assert targets.tolist() == [[3.0, 3.0, 2.0], [2.0, 2.0, 2.0]]


def test_the_critic_loss_is_the_mean_square_error_summed_over_the_two_critics():
    predicted = torch.tensor([[1.0, 3.0], [0.0, 0.0]], requires_grad=True)
    targets = torch.tensor([[0.0, 1.0], [2.0, 0.0]], requires_grad=True)
    loss = losses.twin_loss(predicted, targets)
    loss.backward()
    assert loss.item() == (1 + 4) / 2 + (4 + 0) / 2
    assert predicted.grad.tolist() == [[1.0, 2.0], [-2.0, 0.0]]
    assert targets.grad is None


def test_the_advantage_takes_the_lower_of_each_pair_of_critics():
    q, v = torch.tensor([[1.0, 5.0], [2.0, -1.0]]), torch.tensor([[0.5, 0.0], [0.25, 3.0]])
    assert losses.twin_advantages(q, v).tolist() == [0.75, -1.0]


def test_the_actor_loss_is_minus_the_mean_of_advantage_times_the_replys_log_probability():
    new = torch.tensor([[-1.0, -2.0], [-3.0, -9.0]], requires_grad=True)
    mask = torch.tensor([[True, True], [True, False]])
    out = losses.reinforce_loss(new, new.detach() - 0.1, mask, torch.tensor([2.0, -4.0]))
    out.loss.backward()
    assert out.loss.item() == pytest.approx((2 * 3 - 4 * 3) / 2)
    assert new.grad.tolist() == [[-1.0, -1.0], [2.0, 0.0]]
    assert out.ratio_max.item() == pytest.approx(math.exp(0.1))
    weighted = losses.reinforce_loss(
        new, new.detach(), mask, torch.tensor([2.0, -4.0]), weights=torch.tensor([1.0, 0.5])
    )
    assert weighted.loss.item() == pytest.approx(2 * 3 - 4 * 3 / 2)


# ---- critics ---------------------------------------------------------------------------------------------------------


def test_target_critics_move_by_a_share_towards_the_critics():
    target, module = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    for layer, value in ((target, 1.0), (module, 2.0)):
        torch.nn.init.constant_(layer.weight, value)
        torch.nn.init.constant_(layer.bias, -value)
    follow(target, module, 0.25)
    follow(target, module, 0.25)
    assert target.weight.item() == pytest.approx(1 + 0.25 + 0.1875)
    assert target.bias.item() == pytest.approx(-1.4375)
    assert (module.weight.item(), module.bias.item()) == (2.0, -2.0)


def test_critics_begin_at_zero_and_the_two_of_a_pair_differ_inside():
    critics = Critics(4, 8)
    states, actions = torch.randn(3, 4), torch.randn(3, 8)
    assert critics.q(states, actions).tolist() == [[0.0] * 3] * 2
    assert critics.v(states).tolist() == [[0.0] * 3] * 2
    assert not torch.equal(critics.qs[0][0].weight, critics.qs[1][0].weight)
    assert not torch.equal(critics.vs[0][0].weight, critics.vs[1][0].weight)


def test_features_are_standardised_by_what_was_seen_and_stay_bounded():
    layer = Standardise(3)
    layer.fit(torch.tensor([[0.0, 10.0, 5.0], [2.0, 10.2, 5.0]]))
    assert layer.mean.tolist() == pytest.approx([1.0, 10.1, 5.0])
    spread = 0.1 * (1.0 + 0.1 + 0.0) / 3
    assert layer.deviation.tolist() == pytest.approx([1 + spread, 0.1 + spread, spread], abs=1e-5)
    assert layer(torch.tensor([[1e6, -1e6, 1e9]])).abs().max() < 2


def test_critics_learn_which_reply_is_better_and_the_advantage_has_its_sign(make_learner):
    learner = make_learner(critic_steps=60, gamma=0.5)
    width = learner.weights.family.language_model.config.hidden_size
    x = torch.randn(3, 2 * width, generator=torch.Generator().manual_seed(0))
    state = State(learner.weights.family.encode(messages(picture(1), "?")), torch.randn(width))
    good, bad = x[0], x[1]
    learner.replay.add([Transition(state, good, 1.0, None)] * 4 + [Transition(state, bad, 0.0, None)] * 4)
    learner.critic_steps(state.feature.expand(8, -1), torch.stack([good, bad] * 4), Metrics())
    with torch.no_grad():
        q = learner.critics.q(state.feature.expand(2, -1), x[:2])
        v = learner.critics.v(state.feature.expand(2, -1))
    assert q.mean(0).tolist() == pytest.approx([1.0, 0.0], abs=0.1)
    assert v.mean(0).tolist() == pytest.approx([0.5, 0.5], abs=0.15)
    advantages = losses.twin_advantages(q, v)
    assert advantages[0] > 0.3
    assert advantages[1] < -0.3


# ---- buffer ----------------------------------------------------------------------------------------------------------


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


def test_the_buffer_keeps_the_newest_steps_in_order(family):
    replay = Replay(3)
    replay.add(transitions(family, [1, 2]))
    replay.add(transitions(family, [3, 4]))
    assert [(row.state.feature[0].item(), row.action.item()) for row in replay.rows] == [(2, 1), (3, 0), (4, 1)]
    assert [state.feature[0].item() for state in replay.states.values()] == [2, 3, 4]  # state 1 went with its step


def test_drawing_gives_different_steps_and_all_of_them_if_there_are_too_few(family):
    replay = Replay(10)
    replay.add(transitions(family, [1, 2, 3, 4]))
    generator = torch.Generator().manual_seed(0)
    assert sorted(row.action.item() for row in replay.draw(9, generator)) == [0, 1, 2, 3]
    drawn = [tuple(sorted(row.action.item() for row in replay.draw(2, generator))) for _ in range(200)]
    assert len(set(drawn)) == 6  # every pair
    assert all(len(set(pair)) == 2 for pair in drawn)


def test_columns_of_transitions_say_where_an_episode_terminated(family):
    seen = columns(transitions(family, [5, 6]))
    assert seen.states.tolist() == [[5, 5], [6, 6]]
    assert seen.following.tolist() == [[6, 6], [0, 0]]
    assert seen.terminated.tolist() == [False, True]
    assert seen.actions.tolist() == [[0], [1]]
    assert seen.rewards.tolist() == pytest.approx([0, 1 / 3])


@pytest.mark.parametrize("pictures", [[1, 2, 1, -1], [-1, -1]])
def test_a_buffer_survives_saving_with_each_distinct_prompt_stored_once(family, tmp_path, pictures):
    before, after = Replay(9), Replay(9)
    before.add(transitions(family, pictures))
    save_file(before.tensors(), tmp_path / "buffer.safetensors")
    saved = load_file(tmp_path / "buffer.safetensors")
    distinct, shown = len(set(pictures)), sorted({n for n in pictures if n >= 0})
    assert len(saved["prompts.next"]) == distinct
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


# ---- the learner -----------------------------------------------------------------------------------------------------


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
            x, images = engine.place_images(engine.embedding(whole[None]), [prompt], [0], False)
            hidden = engine.family.flat_hidden(x, positions[:, None], images)[0]
        own = hidden[len(prompt) :]
        torch.testing.assert_close(states[i], hidden[len(prompt) - 1], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(actions[i], torch.cat([own.mean(0), own[-1]]), atol=1e-4, rtol=1e-4)


def test_truncated_steps_lead_to_the_final_observation_terminated_ones_nowhere_and_others_to_the_next_prompt(
    make_learner,
):
    # An untrained model's reply is unreadable: it ends the episode here, and only the turn limit does there.
    for changes, ended in (({"invalid_action": "terminate"}, "terminated"), ({"env_kwargs": ("max_turns=2",)}, "cut")):
        learner = make_learner(rollout_steps=2, **changes)
        batch, outcomes, _ = learner.collect()
        learner.remember(batch, outcomes)
        rows = list(learner.replay.rows)
        first, second = rows[:2], rows[2:]  # two environments
        if ended == "terminated":
            assert all(row.following is None for row in rows)
        else:
            assert all(row.following is after.state for row, after in zip(first, second, strict=True))
            assert all(row.following is not None for row in second)
            starts = [turn.messages for runner in learner.collector.runners for turn in runner.turns()]
            encode = learner.weights.family.encode
            assert all(
                row.following.prompt.key == row.state.prompt.key != encode(start).key
                for row, start in zip(second, starts, strict=True)
            )  # the picture of the episode that was cut, not of the next one
        learner.collector.close()


def test_distinct_prompts_of_rollouts_are_stored_once(make_learner):
    learner = make_learner(buffer=100)
    for _ in range(2):
        learner.remember(*learner.collect()[:2])
    assert len(learner.replay.rows) == 12
    named = [state for row in learner.replay.rows for state in (row.state, row.following) if state is not None]
    assert len({id(state) for state in named}) == len({state.prompt.key for state in named}) < 12
    assert {id(state) for state in named} == {id(state) for state in learner.replay.states.values()}


def one_update(learner: ArCHer, number: int) -> dict[str, float]:
    """Play, remember and learn once; return what was noted."""
    batch, outcomes, _ = learner.collect()
    learner.remember(batch, outcomes)
    return learner.learn(len(batch.samples), number)


def test_the_critics_give_the_model_no_gradient_and_leave_the_reference_as_it_is(make_learner):
    learner = make_learner()
    frozen = [p.clone() for p in learner.reference.family.model.parameters()]
    model = learner.weights.family.model
    before = [p.clone() for p in model.parameters()]
    metrics = one_update(learner, 1)  # the warm-up
    assert metrics["policy/lr"] == 0
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    one_update(learner, 2)
    assert any(not torch.equal(a, b) for a, b in zip(before, learner.weights.parameters, strict=False))
    assert all(torch.equal(a, b) for a, b in zip(frozen, learner.reference.family.model.parameters(), strict=True))


def test_the_policy_learns_through_its_log_probabilities_alone(make_learner, monkeypatch):
    learner = make_learner(normalise_advantages=False, critic_warmup=0)
    monkeypatch.setattr(losses, "twin_advantages", lambda q, v: torch.zeros(q.shape[1]))
    before = [p.clone() for p in learner.weights.parameters]
    metrics = one_update(learner, 1)
    assert metrics["policy/lr"] > 0
    assert metrics["policy/grad_norm"] == 0  # no advantage, no gradient
    assert all(torch.equal(a, b) for a, b in zip(before, learner.weights.parameters, strict=True))


def test_on_policy_forgets_all_but_the_newest_rollout(make_learner):
    learner = make_learner(on_policy=True)
    for _ in range(2):
        batch, outcomes, _ = learner.collect()
        learner.remember(batch, outcomes)
        assert [row.reward for row in learner.replay.rows] == [reward for reward, _ in outcomes]
    prompts = {p.key for _, p in outcomes if p is not None}
    assert prompts <= learner.replay.states.keys()


def test_several_processes_are_refused_before_any_work(monkeypatch):
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="without torchrun"):
        archer.Config().resolve()


@pytest.mark.parametrize(
    ("change", "words"), [({"buffer": 0}, "--buffer"), ({"tau": 1.5}, "--tau"), ({"critic_lr": 0.0}, "--critic-lr")]
)
def test_bad_options_are_refused(change, words):
    with pytest.raises(UserError, match=words):
        replace(SMALL, **change).resolve()


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_three_updates_equal_two_then_ctrl_c_then_resume_bit_for_bit(tmp_path, monkeypatch):
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    archer.train(replace(SMALL, out=straight, kl_coef=0.1))
    write = RunLog.write

    def write_and_interrupt(self, row):
        write(self, row)
        if row["update"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(RunLog, "write", write_and_interrupt)
        archer.train(replace(SMALL, out=stopped, kl_coef=0.1))
    assert checkpoints(stopped / "checkpoints")[-1].name == "update-000002"
    archer.train(Config(out=stopped, resume=True))
    first, second = (checkpoints(folder / "checkpoints")[-1] for folder in (straight, stopped))
    assert first.name == second.name == "update-000003"
    a, b = load_file(first / "tensors.safetensors"), load_file(second / "tensors.safetensors")
    assert a.keys() == b.keys()
    wanted = {"optimizer.critic.0.exp_avg", "learner.critics.qs.0.0.weight", "learner.targets.vs.1.0.weight"}
    assert wanted | {"learner.buffer.rows.action", "learner.buffer.images.pixels"} <= a.keys()
    assert len(a["learner.buffer.rows.reward"]) == 14
    assert all(torch.equal(a[name], b[name]) for name in a)
    rows = [
        [{k: v for k, v in row.items() if not k.startswith(("seconds", "speed"))} for row in read_rows(f / "log.jsonl")]
        for f in (straight, stopped)
    ]
    assert rows[0] == rows[1]
    assert [row["policy/lr"] > 0 for row in rows[0]] == [False, True, True]
    assert [row["buffer/steps"] for row in rows[0]] == [6, 12, 14]
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in rows[0])
    assert json.loads((straight / "run.json").read_text())["config"]["algorithm"] == "ArCHer"
    assert (straight / "curve.png").is_file()
