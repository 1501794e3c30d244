"""VL-DAC and RL4VLM learn in the right direction: what reaches their optimizers is what the
equations say, by hand.

`mutations.py` (tests/faults) changes the learners in many ways, and the files test_direction*.py
alone must notice each. LOOP and GRPO are in test_direction_groups.py, ArCHer is in
test_direction_archer.py, whole runs are in test_direction_runs.py.
"""

from types import SimpleNamespace
from typing import Any

import by_hand
import pytest
import torch
from bandit import CUT, ENDS, GIFT, LADDER, Steps, make_update, on_stage, perturb, small_engine
from stage import roll_out

from baselines import archer, grpo, loop, rl4vlm, vldac
from baselines.learning.batch import Metrics, micro_batches
from baselines.learning.collect import RewardOptions
from vlgym.env import VLEnv
from vlgym.play.env_failures import ENV_ERROR


def learner_that_values(module: Any, **changes: Any) -> Any:
    """A learner whose policy has left the reference, and whose value head tells states apart."""
    reward = RewardOptions(unreadable_penalty=0.7)
    learner = on_stage(module, reward=reward, **changes)
    perturb(learner, seed=3)
    generator = torch.Generator().manual_seed(0)
    torch.nn.init.normal_(learner.value.outer.weight, std=0.3, generator=generator)
    learner.steady.update_parameters(learner.value)
    return learner


def watched_update(module: Any, number: int = 5, **changes: Any) -> SimpleNamespace:
    """An update whose weights move after the rollout, then stand still: what a hand needs of it."""
    learner = learner_that_values(module, lr=1e-9, value_lr=1e-9, **changes)
    record = SimpleNamespace(
        learner=learner, rows={"policy": [], "value": []}, moved=[], seen=by_hand.watch_rollout(learner)
    )
    policy_step, value_step = learner.policy_step, learner.value_step

    def noted_policy_step(batch, rows, *rest):
        record.rows["policy"].append(rows.tolist())
        record.moved.append(policy_step(batch, rows, *rest))
        return record.moved[-1]

    def noted_value_step(batch, rows, *rest):
        record.rows["value"].append(rows.tolist())
        return value_step(batch, rows, *rest)

    learner.policy_step, learner.value_step = noted_policy_step, noted_value_step
    learn = learner.update

    def learn_later(batch, update):
        perturb(learner, seed=4)
        return learn(batch, update)

    learner.update = learn_later
    record.steps = Steps(learner)
    record.batch, record.metrics = make_update(learner, number)
    record.advantages, record.returns = by_hand.advantages_and_returns(learner, record.seen, penalty=0.7)
    return record


def check_passes(rows: list[list[int]], epochs: int, size: int, count: int) -> None:
    """Check that every pass had each row once, in minibatches of `size` and in a new order."""
    per_pass = -(-count // size)
    assert len(rows) == epochs * per_pass
    passes = [rows[i * per_pass : (i + 1) * per_pass] for i in range(epochs)]
    assert passes[0] != passes[1]
    for each in passes:
        assert [len(part) for part in each[:-1]] == [size] * (per_pass - 1)
        assert sorted(row for part in each for row in part) == list(range(count))
        assert [row for part in each for row in part] != list(range(count))


@pytest.fixture(scope="module")
def update():
    return watched_update(vldac, kl_coef=0.3, micro_batch=3)


def test_advantages_and_returns_are_those_of_gae_by_hand_in_each_environment(update):
    rows = update.seen.rows
    ends = [[(r.terminated, r.truncated) for r in column] for column in zip(*rows, strict=True)]
    assert (True, False) in ends[0]
    assert (False, True) in ends[1]
    assert set(ends[2]) == {(False, False)}
    arms = {by_hand.arm_of(update.learner, sample) for sample in update.batch.samples}
    assert arms == {"+", "-", None}
    assert update.batch.returns.tolist() == pytest.approx(update.returns, abs=1e-4)
    normalised = by_hand.normalised(update.advantages)
    assert update.batch.advantages.tolist() == pytest.approx(normalised, abs=1e-4)


def test_the_logged_return_is_that_of_each_episode_from_its_own_beginning(update):
    ended, running = [], [0.0, 0.0, 0.0]
    for row in update.seen.rows:
        for n, record in enumerate(row):
            running[n] += record.reward
            if record.terminated or record.truncated:
                ended.append(running[n])
                running[n] = 0.0
    assert len(ended) == update.metrics["episode/count"] > 3
    assert update.metrics["episode/return"] == pytest.approx(sum(ended) / len(ended))


def test_each_pass_takes_every_step_once(update):
    for name, epochs in (("policy", 2), ("value", 8)):
        check_passes(update.rows[name], epochs, size=8, count=21)
        assert len(update.steps.gradients(name)) == 3 * epochs


def test_an_update_makes_no_further_step_once_the_policy_is_beyond_the_target_kl(update):
    for target in (0.0, sum(sorted(update.moved)[2:4]) / 2):
        steps = 1 + next(at for at, moved in enumerate(update.moved) if moved > target)
        record = watched_update(vldac, kl_coef=0.3, micro_batch=3, target_kl=target)
        assert (len(record.moved), len(record.rows["value"])) == (steps, 24)


def test_how_far_the_policy_moved_weighs_forward_passes_by_their_steps(update):
    rows, kls = update.rows["policy"][0], []
    for part in (rows[:3], rows[3:6], rows[6:]):
        samples = [update.batch.samples[row] for row in part]
        new = by_hand.log_probs(update.learner.weights.engine, samples)
        change = torch.cat([(a - s.logp).detach() for a, s in zip(new, samples, strict=True)])
        kls.append(float((change.exp() - 1 - change).mean()))
    kl = (3 * kls[0] + 3 * kls[1] + 2 * kls[2]) / 8
    assert abs(sum(kls) / 3 - kl) > 1.5e-3 * kl  # more than the tolerance below
    assert update.moved[0] == pytest.approx(kl, rel=1e-3)


def policy_parts(update: SimpleNamespace, estimator: str) -> list[torch.Tensor]:
    """Each step's share of the loss by hand: mean over its tokens of objective and KL."""
    learner, samples = update.learner, update.batch.samples
    new = by_hand.log_probs(learner.weights.engine, samples)
    ref = by_hand.log_probs(small_engine(), samples)  # the model as it was at first
    parts = []
    for i, advantage in enumerate(by_hand.normalised(update.advantages)):
        loss = by_hand.token_losses(new[i], samples[i].logp, advantage, learner.config.clip).mean()
        kl = by_hand.token_kls(new[i], ref[i].detach(), estimator).mean()
        parts.append(loss + learner.config.kl_coef * kl)
    ratios = torch.cat([(a - s.logp).exp() for a, s in zip(new, samples, strict=True)])
    assert (ratios > 1.25).any()
    assert (ratios < 0.75).any()
    assert ((ratios - 1).abs() < 0.15).any()
    return parts


def test_policy_gradients_are_those_of_the_clipped_loss_and_the_kl_by_hand(update):
    parts = policy_parts(update, "k2")
    for rows, grads in zip(update.rows["policy"], update.steps.gradients("policy"), strict=True):
        by_hand.close(grads, sum(parts[i] for i in rows) / len(rows), update.learner.weights.parameters)


def test_value_gradients_are_those_of_the_squared_error_by_hand(update):
    head = update.learner.value
    for rows, grads in zip(update.rows["value"], update.steps.gradients("value"), strict=True):
        errors = [head(update.batch.samples[i].hidden[None])[0] - update.returns[i] for i in rows]
        by_hand.close(grads, sum(e * e for e in errors) / (2 * len(rows)), list(head.parameters()))


def test_rollouts_are_valued_by_the_averaged_head():
    learner = learner_that_values(vldac)
    torch.nn.init.zeros_(learner.value.outer.weight)
    batch, _ = roll_out(learner)
    assert batch.values.abs().min() > 0


@pytest.mark.parametrize("stop_gradient", [True, False])
def test_the_averaged_head_goes_3_per_cent_of_the_way_at_each_step(stop_gradient):
    learner = learner_that_values(vldac, value_lr=1e-2, stop_gradient=stop_gradient)
    head, step = learner.value, learner.optimizers.step
    mean = [p.detach().clone() for p in head.parameters()]

    def noted_step(name, *rest):
        step(name, *rest)
        if name == "value":
            for at, weights in enumerate(head.parameters()):
                mean[at] = 0.97 * mean[at] + 0.03 * weights.detach()

    learner.optimizers.step = noted_step
    make_update(learner, 5)
    moved = [(a - b).abs().max() for a, b in zip(mean, head.parameters(), strict=True)]
    assert max(moved) > 1e-3
    for expected, parameter in zip(mean, learner.steady.module.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected)


def test_the_scale_of_rewards_is_not_that_of_the_penalty():
    learner = on_stage(vldac, reward=RewardOptions(unreadable_penalty=0.7, scale=3.0))
    rows = learner.collector.play(7)
    expected = [[3 * r.reward - 0.7 * r.invalid for r in row] for row in rows]
    assert {0.0, 3.0, -0.7} == {paid for row in expected for paid in row}
    assert learner.collector.rewards(rows) == expected


def test_a_curriculum_counts_no_episode_that_an_environment_ended_by_an_error(monkeypatch):
    learner = on_stage(vldac, env=LADDER, num_envs=3, curriculum="uniform")
    step, calls, noted, played = VLEnv.step, [], [], learner.collector.play

    def broken(self, action):
        calls.append(action)
        if len(calls) % 5 == 0:
            raise RuntimeError("the engine fell over")
        return step(self, action)

    monkeypatch.setattr(VLEnv, "step", broken)
    note = lambda place, success: noted.append((place.level, success))  # noqa: E731
    monkeypatch.setattr(learner.collector.course, "note", note)
    rows: list[Any] = []
    monkeypatch.setattr(learner.collector, "play", lambda steps: rows.extend(played(steps)) or rows)
    roll_out(learner)
    ended = [r for row in rows for r in row if r.terminated or r.truncated]
    assert {r.parse == ENV_ERROR for r in ended} == {True, False}
    assert noted == [(r.level, r.success) for r in ended if r.parse != ENV_ERROR]


def test_the_value_head_tells_states_apart_while_the_model_moves_under_it():
    learner = on_stage(
        vldac, env=GIFT, num_envs=24, rollout_steps=4, minibatch=24, value_warmup=99,
        env_kwargs=("invalid_action=published",), reward=RewardOptions(unreadable_penalty=0.0),
    )  # fmt: skip
    scale = learner.weights.family.language_model.norm.weight
    generator = torch.Generator().manual_seed(0)
    for number in range(1, 5):
        with torch.no_grad():
            scale.add_(0.3 * torch.randn(scale.shape, generator=generator))
        _, metrics = make_update(learner, number)
    # A constant has 0, the head on unscaled states 0.2, on states scaled once 0.5.
    assert metrics["value/explained_variance"] > 0.8


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_other_kl_estimators_are_those_by_hand(estimator):
    update = watched_update(vldac, kl_coef=2.0, kl_estimator=estimator, epochs=1, minibatch=100)
    ((grads,), parts) = update.steps.gradients("policy"), policy_parts(update, estimator)
    by_hand.close(grads, sum(parts) / len(parts), update.learner.weights.parameters)


@pytest.mark.parametrize("module", [vldac, rl4vlm, loop, archer])  # GRPO makes the steps of LOOP
def test_a_step_makes_the_better_replies_likelier_and_the_worse_ones_less_likely(module):
    groups = {"env": f"{ENDS},{CUT}", "num_envs": 4, "group": 2} if module is loop else {}
    learner = on_stage(module, lr=1e-4, kl_coef=0.0, rollout_steps=4, **groups)
    batch = learner.play()[0] if module is archer else roll_out(learner)[0]
    count, saved = len(batch.samples), [p.clone() for p in learner.weights.parameters]
    for row in range(0, count, count // 3):
        for advantage in (1.0, -1.0):
            batch.advantages = torch.zeros(count)
            batch.advantages[row] = advantage
            if module is rl4vlm:
                batch.returns = learner.value(batch.hidden).detach()  # the value head rests
            before = by_hand.log_prob(learner, batch.samples[row])
            share = torch.ones(count) if module is loop else 1
            learner.policy_step(batch, torch.tensor([row]), share, Metrics())
            change = by_hand.log_prob(learner, batch.samples[row]) - before
            assert change * advantage > 0, (row, advantage)
            learner.optimizers.named["policy"].state.clear()  # no momentum from the step before
            with torch.no_grad():
                for p, old in zip(learner.weights.parameters, saved, strict=True):
                    p.copy_(old)


RESTS: dict[Any, tuple[int, int, str, dict[str, Any]]] = {
    vldac: (2, 16, "value", {"value_warmup": 2, "minibatch": 4, "rollout_steps": 2}),
    archer: (1, 4, "critic", {"critic_warmup": 1, "critic_steps": 4, "minibatch": 4, "rollout_steps": 2}),
    grpo: (0, 0, "", {"env": f"{ENDS},{CUT}", "num_envs": 4, "group": 2, "minibatch": 3}),
}
"""Updates of rest, steps of the other optimizer in each update, its name, and options."""


@pytest.mark.parametrize("module", RESTS)
def test_the_policy_rests_in_the_warm_up_and_then_has_the_cosine_at_every_step(module):
    rests, others, name, options = RESTS[module]
    learner = on_stage(module, lr=1e-4, final_lr=0.1, updates=rests + 3, **options)
    steps, logged = Steps(learner), []
    for number in range(1, rests + 4):
        logged.append(make_update(learner, number)[1]["policy/lr"])
        if number <= rests:  # moments of the policy's optimizer begin with its first real step
            assert not any(key.startswith("optimizer.policy") for key in learner.optimizers.tensors())
    cosine = [1e-4, 0.55e-4, 0.1e-4]
    assert logged == pytest.approx([0.0] * rests + cosine)
    assert steps.rates("policy") == pytest.approx([rate for rate in cosine for _ in range(4)])
    rate = getattr(learner.config, f"{name}_lr", None)
    assert steps.rates(name) == [rate] * others * (rests + 3)


def test_gradients_are_shortened_to_the_limit_of_their_norm():
    whole, short = (
        watched_update(vldac, epochs=1, minibatch=21, max_grad_norm=limit).steps.gradients("policy")[0]
        for limit in (1e9, 0.01)
    )
    a, b = (torch.cat([g.flatten() for g in gradients]) for gradients in (whole, short))
    assert float(a.norm()) > 0.1
    torch.testing.assert_close(b, a * 0.01 / a.norm(), atol=1e-6, rtol=1e-3)


def test_without_advantages_and_kl_the_weights_stay():
    learner = on_stage(vldac, kl_coef=0.0, lr=1e-2)
    batch, _ = roll_out(learner)
    batch.advantages = torch.zeros(len(batch.samples))
    before = [p.clone() for p in learner.weights.parameters]
    learner.policy_step(batch, torch.arange(len(batch.samples)), len(batch.samples), Metrics())
    assert all(torch.equal(a, b) for a, b in zip(before, learner.weights.parameters, strict=True))


def test_the_value_head_moves_the_model_only_where_it_is_asked_to():
    learner = learner_that_values(vldac)
    sample = roll_out(learner)[0].samples[0]
    mask = torch.ones(1, len(sample.ids)) > 0
    states = learner.weights.engine.score_states([sample.prompt], sample.ids[None], mask)[1]
    assert learner.value(states).requires_grad
    for options in ({}, {"stop_gradient": True}, {"stop_gradient": False}):
        gradients = torch.autograd.grad(
            learner.value(states, **options).sum(), learner.weights.parameters, retain_graph=True, allow_unused=True
        )
        assert any(g is not None for g in gradients) == (options == {"stop_gradient": False})


def test_rl4vlms_gradients_weigh_the_thoughts_and_reach_the_model_from_the_value_head():
    weight = 0.25
    update = watched_update(
        rl4vlm, thought_weight=weight, kl_coef=0.3, clip=0.5, epochs=2, minibatch=8, micro_tokens=100
    )
    learner, samples = update.learner, update.batch.samples
    first = torch.tensor(update.rows["policy"][0])
    assert len(micro_batches(update.batch, first, learner.passes)) > 1
    check_passes(update.rows["policy"], epochs=2, size=8, count=21)
    check_passes(update.rows["value"], epochs=6, size=8, count=21)  # and 2 with the policy
    advantages = by_hand.normalised(update.advantages)
    parts, new = [], by_hand.log_probs(learner.weights.engine, samples)
    ref = by_hand.log_probs(small_engine(), samples)
    thoughtful, unreadable = 0, 0
    for i, sample in enumerate(samples):
        # The arm is the last token, and what comes before are thoughts; the last four of an
        # unreadable reply count.
        weights = torch.tensor([weight] * (len(sample.ids) - 1) + [1.0])
        thoughtful += len(weights) > 1
        if by_hand.arm_of(learner, sample) is None:
            unreadable, weights = unreadable + 1, torch.ones(len(sample.ids))
        ratio = ((new[i] - sample.logp) * weights).sum().exp()
        row = torch.ones(1, len(sample.ids), dtype=torch.bool)
        states = learner.weights.engine.score_states([sample.prompt], sample.ids[None], row)[1]
        error = learner.value(states, stop_gradient=False)[0] - update.returns[i]
        objective = by_hand.clipped(ratio, advantages[i], learner.config.clip)
        kl = by_hand.token_kls(new[i], ref[i].detach(), learner.config.kl_estimator).sum()
        parts.append(-objective + learner.config.value_coef * error * error / 2 + 0.3 * kl)
    assert thoughtful > unreadable > 0
    trained = {"policy": learner.weights.parameters, "value": list(learner.value.parameters())}
    for name, parameters in trained.items():
        for rows, grads in zip(update.rows["policy"], update.steps.gradients(name)[-6:], strict=True):
            by_hand.close(grads, sum(parts[i] for i in rows) / len(rows), parameters)


def test_the_value_loss_does_not_drown_the_policys_gradient():
    learner = on_stage(
        rl4vlm, env=GIFT, num_envs=24, rollout_steps=4, minibatch=24, value_warmup=0,
        stop_gradient=False, lr=1e-5,
    )  # fmt: skip
    with torch.no_grad():
        for name, weights in learner.weights.family.language_model.named_parameters():
            if "o_proj" in name or "down_proj" in name:
                weights.mul_(0.03)  # states of different observations then differ little
    for number in range(1, 4):
        make_update(learner, number)
    batch, norms = roll_out(learner)[0], []
    steps = Steps(learner)
    for name in ("returns", "advantages"):  # the policy's gradient alone, then the value's
        saved = getattr(batch, name)
        zero = learner.value(batch.hidden).detach() if name == "returns" else torch.zeros(24)
        setattr(batch, name, zero)
        learner.policy_step(batch, torch.arange(24), 24, Metrics())
        setattr(batch, name, saved)
        norms.append(float(torch.cat([g.flatten() for g in steps.gradients("policy")[-1]]).norm()))
    assert 1e-4 < norms[1] / norms[0] < 0.5


def test_rl4vlm_has_no_reference_no_warm_up_and_trains_both_from_the_first_update():
    learner = on_stage(rl4vlm, env=CUT, num_envs=2, epochs=1, minibatch=14)
    assert learner.weights.reference is None
    steps = Steps(learner)
    make_update(learner, 1)
    assert steps.rates("policy") == [learner.config.lr]
    assert steps.rates("value") == [learner.config.value_lr] * 8
