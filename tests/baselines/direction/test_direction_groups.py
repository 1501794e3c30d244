"""LOOP and GRPO learn in the right direction: see test_direction.py."""

import re
from types import SimpleNamespace
from typing import Any

import by_hand
import pytest
import torch
from bandit import CUT, ENDS, Steps, make_update, on_stage, perturb, right_arm, small_engine

from baselines import archer, grpo, loop, vldac
from baselines.learning.collect import RewardOptions

EPISODES: dict[str, Any] = {"env": f"{ENDS},{CUT}", "max_new_tokens": 3}


def watched_groups(module: Any, **changes: Any) -> SimpleNamespace:
    """An update whose weights move after the rollout, then stand still: what a hand needs of it."""
    reward = RewardOptions(unreadable_penalty=0.7)
    learner = on_stage(module, **EPISODES, lr=1e-9, reward=reward, **changes)
    episodes = {id(env): [] for env in learner.collector.envs}
    record = SimpleNamespace(learner=learner, rows=[], episodes=episodes)
    perturb(learner, seed=3)  # the policy has left the reference
    reply, step, learn = learner.collector.policy.reply, learner.policy_step, learner.update

    def noted_reply(turns):
        replies = reply(turns)
        for turn, answer in zip(turns, replies, strict=True):
            record.episodes[id(turn.env)].append((turn.seed, turn.messages, answer.extra))
        return replies

    def noted_step(batch, rows, *rest):
        record.rows.append(rows.tolist())
        return step(batch, rows, *rest)

    learner.collector.policy.reply, learner.policy_step = noted_reply, noted_step
    learner.update = lambda *arguments: (perturb(learner, seed=4), learn(*arguments))[1]
    record.steps = Steps(learner)
    record.batch, record.metrics = make_update(learner, 3)
    record.episodes = list(record.episodes.values())
    return record


def returns_of(record: SimpleNamespace) -> list[list[float]]:
    """Discounted return of every episode by hand, in groups; -0.7 where no arm was named."""
    c, returns = record.learner.config, []
    for episode in record.episodes:
        total = 0.0
        for turn, (_, messages, sample) in enumerate(episode):
            text = next(part["text"] for part in messages[-1]["content"] if part["type"] == "text")
            arm = by_hand.arm_of(record.learner, sample)
            right = right_arm(int(re.search(r"\d+", text)[0]))
            reward = -0.7 if arm is None else float(arm == right)
            total += c.gamma**turn * reward
        returns.append(total)
    return [returns[i : i + c.group] for i in range(0, len(returns), c.group)]


def episode_parts(record: SimpleNamespace, advantages: list[float]) -> list[torch.Tensor]:
    """Each episode's share of the loss by hand: the mean over all of its tokens."""
    c, samples = record.learner.config, record.batch.samples
    new = by_hand.log_probs(record.learner.weights.engine, samples)
    ref = by_hand.log_probs(small_engine(), samples)
    parts = []
    for unit, advantage in zip(record.batch.units, advantages, strict=True):
        tokens = [
            by_hand.token_losses(new[i], samples[i].logp, advantage, c.clip)
            + c.kl_coef * by_hand.token_kls(new[i], ref[i].detach(), c.kl_estimator)
            for i in unit
        ]
        parts.append(torch.cat(tokens).mean())
    return parts


def check_rollout(record: SimpleNamespace) -> None:
    """Check that a unit is an episode, and that the episodes of a group alone begin alike."""
    group, batch = record.learner.config.group, record.batch
    for unit, episode in zip(batch.units, record.episodes, strict=True):
        assert [id(batch.samples[i]) for i in unit] == [id(sample) for _, _, sample in episode]
    seeds = [episode[0][0] for episode in record.episodes]
    assert all(len(set(seeds[i : i + group])) == 1 for i in range(0, len(seeds), group))
    assert len(set(seeds)) == len(seeds) // group
    assert len({len(unit) for unit in batch.units}) > 1


def test_loops_gradients_are_those_of_leave_one_out_by_hand():
    options = {"num_envs": 16, "group": 2, "minibatch": 4, "micro_batch": 3, "gamma": 0.5}
    record = watched_groups(loop, kl_coef=0.2, **options)
    check_rollout(record)
    advantages = [a - b for pair in returns_of(record) for a, b in (pair, pair[::-1])]
    used = [abs(advantage) >= 0.01 for advantage in advantages]
    assert len(set(used)) == 2
    assert len({round(abs(advantage), 3) for advantage in advantages}) > 2
    parts, owner = episode_parts(record, advantages), {i: e for e, unit in enumerate(record.batch.units) for i in unit}
    passes = [[], []]
    steps = zip(record.rows, record.steps.gradients("policy"), strict=True)
    for number, (rows, gradients) in enumerate(steps):
        passes[number >= len(record.rows) // 2] += rows
        episodes = sorted({owner[i] for i in rows})
        assert sorted(rows) == sorted(i for e in episodes for i in record.batch.units[e])
        loss = sum(parts[e] for e in episodes) / 4
        by_hand.close(gradients, loss, record.learner.weights.parameters)
    expected = sorted(i for e, unit in enumerate(record.batch.units) for i in unit if used[e])
    assert [sorted(rows) for rows in passes] == [expected, expected]
    assert passes[0] != passes[1]


def test_grpos_gradients_are_those_by_hand_and_the_kl_counts_everywhere():
    record = watched_groups(grpo, num_envs=18, group=3, minibatch=4, micro_batch=3, gamma=0.0)
    check_rollout(record)
    assert record.learner.config.kl_coef > 0
    advantages = []
    for group in returns_of(record):
        alike = max(group) - min(group) < 1e-6
        advantages += [0.0] * 3 if alike else by_hand.normalised(group)
    assert 0.0 in advantages
    parts, owner = episode_parts(record, advantages), {i: e for e, unit in enumerate(record.batch.units) for i in unit}
    seen = []
    for rows, gradients in zip(record.rows, record.steps.gradients("policy"), strict=True):
        seen.append(sorted({owner[i] for i in rows}))
        loss = sum(parts[e] for e in seen[-1]) / len(seen[-1])
        by_hand.close(gradients, loss, record.learner.weights.parameters)
    assert [len(episodes) for episodes in seen] == [4, 4, 4, 4, 2] * 2
    for half in (seen[:5], seen[5:]):
        assert sorted(e for episodes in half for e in episodes) == list(range(18))


OWN = {
    vldac: {"value_warmup": 0}, loop: {**EPISODES, "num_envs": 2, "group": 2},
    archer: {"critic_steps": 1, "critic_warmup": 0},
}  # fmt: skip


@pytest.mark.parametrize("module", OWN)
def test_a_budget_in_environment_steps_sets_the_learning_rate(module):
    options = {"lr": 1e-4, "final_lr": 0.0, "env_steps": 100, "rollout_steps": 1, "epochs": 1}
    learner = on_stage(module, **options, **OWN[module])
    for made, share in ((0, 1.0), (50, 0.5), (75, 0.5 - 0.5**1.5)):
        learner.run.state.env_steps = made
        assert make_update(learner, 9)[1]["policy/lr"] == pytest.approx(1e-4 * share)
