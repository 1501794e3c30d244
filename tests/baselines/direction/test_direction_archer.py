"""ArCHer learns in the right direction: see test_direction.py."""

import copy
import re
from typing import Any

import by_hand
import pytest
import torch
from bandit import CUT, ENDS, LONG, Steps, make_update, on_stage, perturb, right_arm, small_engine

from baselines import archer
from baselines.learning.batch import Metrics
from baselines.learning.collect import RewardOptions
from baselines.vldac import Standardise


def critic(**changes: Any) -> Any:
    """An ArCHer learner away from the reference, whose critics tell states apart."""
    reward = RewardOptions(unreadable_penalty=0.7)
    learner = on_stage(archer, reward=reward, rollout_steps=5, **changes)
    perturb(learner, seed=3)
    generator = torch.Generator().manual_seed(0)
    for networks in (learner.critics, learner.targets):
        for network in (*networks.qs, *networks.vs):
            torch.nn.init.normal_(network[-1].weight, std=0.3, generator=generator)
    return learner


def test_the_buffer_holds_every_step_with_the_references_features_its_reward_and_what_followed():
    learner, engine = critic(env=f"{ENDS},{CUT},{LONG}"), small_engine()
    played: list[Any] = []
    play = learner.collector.play
    learner.collector.play = lambda steps: played.extend(play(steps)) or played
    learner.remember(*learner.play()[:2])
    waiting = [turn.messages for turn in learner.collector.runner.turns()]
    assert len(learner.replay.rows) == 15
    kinds = set()
    for number, row in enumerate(learner.replay.rows):
        t, n = divmod(number, 3)
        record = played[t][n]
        arm = by_hand.arm_of(learner, record.extra)
        cue = int(re.search(r"\d+", record.text)[0])
        assert row.reward == pytest.approx(-0.7 if arm is None else float(arm == right_arm(cue)))
        ids = record.extra.ids[None]
        mask = torch.ones_like(ids, dtype=torch.bool)
        state, action = engine.reply_states([record.extra.prompt], ids, mask)
        torch.testing.assert_close(row.state.feature, state[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(row.action, action[0], atol=1e-4, rtol=1e-4)
        kinds.add((record.terminated, record.truncated))
        if record.terminated:
            assert row.following is None
            continue
        after = played[t + 1][n].messages if t < 4 else waiting[n]
        after = record.final_messages if record.truncated else after
        prompt = engine.family.encode(after)
        assert row.following.prompt.key == prompt.key
        feature = engine.last_hidden([prompt])[0]
        torch.testing.assert_close(row.following.feature, feature, atol=1e-4, rtol=1e-4)
    assert kinds == {(True, False), (False, True), (False, False)}
    means = torch.stack([row.state.feature for row in learner.replay.rows]).mean(0)
    for networks in (learner.critics, learner.targets):
        torch.testing.assert_close(networks.state.mean, means)
    learner.collector.play = play
    learner.remember(*learner.play()[:2])
    assert len(learner.replay.rows) == 30
    torch.testing.assert_close(learner.critics.state.mean, means)  # as it was


def q_of(critics: Any, i: int, state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    return critics.qs[i](torch.cat([critics.state(state), critics.action(action)]))[0]


def v_of(critics: Any, i: int, state: torch.Tensor) -> torch.Tensor:
    return critics.vs[i](critics.state(state))[0]


def test_the_critics_and_their_targets_move_as_by_hand():
    learner = critic(env=ENDS, critic_steps=3, critic_batch=12, tau=0.3, gamma=0.8, critic_lr=1e-2)
    learner.remember(*learner.play()[:2])
    drawn = learner.replay.draw(10, torch.Generator().manual_seed(3))
    fresh = learner.answer([row.state for row in drawn])
    states, actions = fresh.hidden, learner.features(fresh)[1]
    order = torch.Generator()
    order.set_state(learner.run.order.get_state())
    critics, targets = copy.deepcopy(learner.critics), copy.deepcopy(learner.targets)
    learner.critic_steps(states, actions, Metrics())
    optimizer = torch.optim.AdamW(critics.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(3):
        loss = torch.zeros(())
        seen = [learner.replay.rows[i] for i in torch.randperm(15, generator=order)[:12].tolist()]
        assert {row.following is None for row in seen} == {True, False}
        for i in (0, 1):
            for row in seen:
                after = 0.0
                if row.following is not None:
                    after = v_of(targets, i, row.following.feature).detach()
                goal = row.reward + 0.8 * after
                q = q_of(critics, i, row.state.feature, row.action)
                loss = loss + (q - goal) ** 2 / len(seen)
            for state, action in zip(states, actions, strict=True):
                goal = q_of(targets, i, state, action).detach()
                loss = loss + (v_of(critics, i, state) - goal) ** 2 / len(states)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(targets.parameters(), critics.parameters(), strict=True):
                slow.copy_(0.7 * slow + 0.3 * fast)
    for networks, expected in ((learner.critics, critics), (learner.targets, targets)):
        for a, b in zip(networks.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(a, b, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("normalise", [True, False])
def test_the_actors_gradients_are_those_of_reinforce_with_the_lower_critics_by_hand(normalise):
    learner = critic(
        critic_steps=1, critic_warmup=2, lr=1e-9, minibatch=6, micro_batch=4, kl_coef=0.2, epochs=2,
        normalise_advantages=normalise,
    )  # fmt: skip
    answers, answer, rows, step, steps = [], learner.answer, [], learner.policy_step, Steps(learner)
    learner.answer = lambda states: answers.append(answer(states)) or answers[-1]
    learner.policy_step = lambda batch, part, *rest: (rows.append(part.tolist()), step(batch, part, *rest))[1]
    make_update(learner, 3)
    (fresh,), reference = answers, small_engine()
    assert len(fresh.samples) == 15
    states = [row.state for row in learner.replay.rows]
    answer_keys, buffer_keys = ([each.prompt.key for each in of] for of in (fresh.samples, states))
    assert sorted(answer_keys) == sorted(buffer_keys)
    assert answer_keys != buffer_keys  # drawn, in another order
    advantages = []
    with torch.no_grad():
        for sample in fresh.samples:
            ids = sample.ids[None]
            mask = torch.ones_like(ids, dtype=torch.bool)
            state, action = reference.reply_states([sample.prompt], ids, mask)
            q = [float(q_of(learner.critics, i, state[0], action[0])) for i in (0, 1)]
            v = [float(v_of(learner.critics, i, state[0])) for i in (0, 1)]
            advantages.append(min(q) - min(v))
    if normalise:
        advantages = by_hand.normalised(advantages)
    new = by_hand.log_probs(learner.weights.engine, fresh.samples)
    ref = by_hand.log_probs(reference, fresh.samples)
    parts = []
    for i, advantage in enumerate(advantages):
        kl = by_hand.token_kls(new[i], ref[i].detach(), learner.config.kl_estimator).mean()
        parts.append(0.2 * kl - advantage * new[i].sum())
    assert [len(part) for part in rows] == [6, 6, 3] * 2
    for half in (rows[:3], rows[3:]):
        assert sorted(row for part in half for row in part) == list(range(15))
    for part, grads in zip(rows, steps.gradients("policy"), strict=True):
        by_hand.close(grads, sum(parts[i] for i in part) / len(part), learner.weights.parameters)


@pytest.mark.parametrize(("changes", "size"), [({"buffer": 25}, 25), ({}, 30)])
def test_the_buffer_keeps_as_many_of_the_newest_steps_as_it_was_told(changes, size):
    learner = critic(**changes)
    for _ in range(2):
        batch, outcomes, _ = learner.play()
        learner.remember(batch, outcomes)
    assert len(learner.replay.rows) == size
    newest = [row.state.prompt.key for row in list(learner.replay.rows)[-15:]]
    assert newest == [sample.prompt.key for sample in batch.samples]


def test_features_are_standardised_by_what_was_seen_and_stay_bounded():
    layer = Standardise(3)
    layer.fit(torch.tensor([[0.0, 10.0, 5.0], [2.0, 10.2, 5.0]]))
    assert layer.mean.tolist() == pytest.approx([1.0, 10.1, 5.0])
    spread = 0.1 * (1.0 + 0.1 + 0.0) / 3
    assert layer.deviation.tolist() == pytest.approx([1 + spread, 0.1 + spread, spread], abs=1e-5)
    assert layer(torch.tensor([[1e6, -1e6, 1e9]])).abs().max() < 2
