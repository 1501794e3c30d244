"""Whole runs of every learner improve at a bandit, and the warm start: see test_direction.py."""

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import by_hand
import numpy as np
import pytest
import torch
from bandit import ONE, PLAIN, SEEN, SETTINGS, Bandit, right_arm, small_engine, small_family

import vlgym
from baselines import archer, grpo, loop, rl4vlm, sft, vldac
from baselines.engine.engine import Engine
from baselines.learning import evaluation, warm_start
from baselines.learning.collect import Environments
from baselines.learning.warm_start import WarmConfig
from baselines.models.lora import LoraOptions
from baselines.runs.logs import read_rows
from vlgym.env.seeding import episode_seed
from vlgym.types import Reply

PLAY: dict[str, Any] = {
    **SETTINGS, "env": PLAIN, "num_envs": 24, "rollout_steps": 2, "minibatch": 24, "updates": 7,
    "max_new_tokens": 1, "lr": 1e-2, "max_grad_norm": 1.0, "eval_episodes": 40,
    "eval_controls": False,
}  # fmt: skip
LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "vldac": (vldac, {"value_warmup": 1}),
    "vldac with adapters": (vldac, {"value_warmup": 0, "lora": LoraOptions(rank=8), "lr": 2e-2}),
    "rl4vlm": (rl4vlm, {}),
    "loop": (loop, {"num_envs": 48, "updates": 9}),
    "archer": (archer, {"critic_warmup": 1, "critic_steps": 20, "critic_batch": 64}),
}


pytestmark = pytest.mark.usefixtures("small_runs")


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_improves_at_a_bandit_as_held_out_episodes_show(name, tmp_path):
    module, changes = LEARNERS[name]
    Bandit.begun.clear()
    run = module.train(module.Config(**{**PLAY, **changes, "out": tmp_path / "run"}))
    first, last = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert first["success"] < 0.6
    assert last["success"] > 0.9
    held_out = {episode_seed(PLAIN, "test", i) for i in range(40)}
    assert {seed for split, seed in Bandit.begun if split == "test"} == held_out
    assert sum(split == "test" for split, _ in Bandit.begun) == 2 * 40
    trained = {seed for split, seed in Bandit.begun if split == "train"}
    assert len(trained) >= 24
    assert trained <= {episode_seed(PLAIN, "train", i) for i in range(1000)}
    rows = read_rows(tmp_path / "run" / "log.jsonl")
    assert [row["update"] for row in rows] == list(range(1, run.config.updates + 1))
    assert rows[-1]["episode/success"] > 0.8
    assert any(row["loss/kl"] > 0 for row in rows) == (run.config.kl_coef > 0)
    # The merged weights of adapters agree to rounding; weights that are behind by an update would
    # not.
    assert max(row["rollout/logp_diff_max"] for row in rows) < 1e-3


def test_a_budget_in_environment_steps_ends_the_run(tmp_path):
    options = {**PLAY, "num_envs": 4, "updates": 50, "env_steps": 12, "eval_episodes": 0}
    state = vldac.train(vldac.Config(**options, out=tmp_path / "run")).state
    assert (state.update, state.env_steps) == (2, 16)


def test_what_reads_the_picture_falls_to_chance_with_others(tmp_path, capsys):
    options = {**PLAY, "env": SEEN, "updates": 12, "eval_controls": True}
    vldac.train(vldac.Config(**options, out=tmp_path / "run"))
    first, last = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert last["success"] > 0.9
    for pictures in ("grey", "shuffled"):
        assert first[pictures]["episodes"] == last[pictures]["episodes"] == first["episodes"] // 2
        assert 0.2 < last[pictures]["success"] < 0.8
    assert "sight/gap" not in first
    assert last["sight/gap"]["n"] == evaluation.GAP_EPISODES
    figure = f"success {last['grey']['success']:.3f} "
    lines = capsys.readouterr().out.splitlines()
    sight = [line for line in lines if "sight" in line]
    assert [line.startswith("sight: pictures arrive, and make right answers ") for line in sight]
    _, line = [line for line in lines if "with grey pictures" in line]
    assert figure in line
    assert line.endswith("; blind floor not measured")


def test_what_is_trained_in_grey_learns_nothing_that_needs_the_picture(tmp_path):
    options = {**PLAY, "env": SEEN, "updates": 12, "pictures": "grey"}
    vldac.train(vldac.Config(**options, out=tmp_path / "run"))
    _, last = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert 0.2 < last["success"] < 0.8
    assert not {"grey", "shuffled"} & set(last)


def collect(**changes: Any) -> tuple[list[tuple[str, str]], float]:
    """(right arm, label) of collected turns, and the share of labels that noise replaced."""
    family = small_family()
    config = WarmConfig(samples=400, **changes)
    data, replaced = warm_start.collect(Environments([ONE], {}, 1), config, 0, family)
    assert all(int(ids[-1]) == family.turn_end for _, ids in data)
    texts = [family.decode(prompt.ids.tolist()) for prompt, _ in data]
    numbers = [text.split("+ or -.")[1].split()[0] for text in texts]
    labels = [family.decode(ids.tolist()) for _, ids in data]
    arms = [right_arm(int(number)) for number in numbers]
    return list(zip(arms, labels, strict=True)), replaced


@pytest.mark.parametrize(("noise", "wrong"), [(0.0, 0.0), (0.4, 0.2), (1.0, 0.5)])
def test_labels_are_the_oracles_except_for_the_share_that_noise_replaced(noise, wrong):
    labels, replaced = collect(noise=noise)
    # Random actions are of both kinds, whatever the oracle says.
    assert len(set(labels)) == (4 if wrong else 2)
    assert replaced == pytest.approx(np.mean([arm != label for arm, label in labels]))
    assert replaced == pytest.approx(wrong, abs=0.08)
    assert (replaced == 0) == (wrong == 0)


def test_the_warm_starts_episodes_are_apart_from_those_of_training_and_of_held_out_evaluations():
    config = WarmConfig(steps=2, samples=64, batch=8, check_every=1, val_episodes=10, reading=1.0)
    warm_start.warm_start(small_engine(), Environments([ONE], {}, 1), config, seed=0)
    assert {split for split, _ in Bandit.begun} == {"train", "val"}
    first = {episode_seed(ONE, "train", i) for i in range(5000)}
    assert not first & {seed for _, seed in Bandit.begun}


class Noted(torch.optim.AdamW):
    def __init__(self, parameters, **options):
        super().__init__(parameters, **options)
        self.seen = Noted.seen = []

    def step(self, closure=None):
        (group,) = self.param_groups
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in group["params"]]
        self.seen.append((group["lr"], [g.clone() for g in gradients]))
        super().step(closure)


def test_the_warm_starts_gradients_are_those_of_the_labels_log_probability_by_hand():
    config = WarmConfig(steps=4, samples=64, batch=6, lr=1e-9, check_every=100, val_episodes=1)
    engine = small_engine()
    data, _ = warm_start.collect(Environments([ONE], {}, 1), config, 7, engine.family)
    with patch.object(torch.optim, "AdamW", Noted):
        report = warm_start.warm_start(engine, Environments([ONE], {}, 1), config, seed=7)
    rates = [1e-9 * (step / 50) for step in (1, 2, 3, 4)]
    assert [rate for rate, _ in Noted.seen] == pytest.approx(rates)
    order, parameters = torch.Generator().manual_seed(7), list(engine.family.model.parameters())
    losses = []
    for _, grads in Noted.seen:
        rows = torch.randint(len(data), (6,), generator=order).tolist()
        scores = [
            engine.score([prompt], ids[None], torch.ones(1, len(ids), dtype=torch.bool), train_vision=True).sum()
            for prompt, ids in (data[row] for row in rows)
        ]
        loss = -sum(scores) / sum(len(data[row][1]) for row in rows)
        losses.append(float(loss.detach()))
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        by_hand.close(grads, loss / norm.clamp(min=1.0), parameters)  # shortened to a norm of 1
    assert report.loss == pytest.approx(np.mean(losses), rel=1e-4)


@pytest.mark.parametrize(("reading", "every"), [(1.0, 60), (0.9, 2)])
def test_imitation_finds_the_oracles_arms_and_stops_when_it_reads(reading, every, tmp_path):
    options = {"steps": 60, "samples": 128, "batch": 32, "noise": 0.0, "lr": 1e-2}
    config = WarmConfig(**options, check_every=every, reading=reading)
    engine, seen, validate = Engine(small_family(), max_new_tokens=4), [], warm_start.validate

    def noted(*args):
        seen.append((result := validate(*args))[2])
        return result

    with (
        patch("baselines.sft.load_family", lambda *args, **options: engine.family),
        patch("baselines.learning.warm_start.validate", noted),
    ):
        report = sft.run(sft.Config(env=ONE, out=tmp_path / "warm", warm=config))
    steps = [step for step, _ in report.success]
    assert report.steps == steps[-1] == every * len(seen)
    assert report.reading == seen[-1]
    assert all(each < reading for each in seen[:-1])
    if reading == 1.0:
        assert report.success[-1][1] > 0.9
        assert report.loss < 0.3
    else:
        assert seen[-1] >= reading
        assert report.steps < 60


def test_a_reply_reads_the_picture_if_the_oracle_writes_it_with_the_same_action():
    env = vlgym.make("vlgym/NumberLine-v1")
    env.reset(seed=0)
    oracle = env.unwrapped
    right, wrong = oracle.solve(), oracle.parser.format(["+"], "target 99 current 98")
    other = next(each for each in oracle.legal_actions() if each not in right.split("<action>")[1])
    other = oracle.parser.format([other], oracle.think(other))
    third = oracle.parser.format(["up"], oracle.think("up"))
    replies = [right, other, wrong, right.split("<action>")[0], third]
    read = []
    for text in replies:
        policy = SimpleNamespace(name="said", reply=lambda turns, text=text: [Reply(text)])
        reader = warm_start.Reader(policy)
        reader.reply([SimpleNamespace(env=env)])
        read.append((reader.read, reader.compared))
    env.close()
    assert read == [(1, 1), (1, 1), (0, 1), (0, 1), (0, 1)]


def test_the_loss_of_an_unread_picture_is_the_entropy_of_the_replies_to_each_text():
    prompt = [SimpleNamespace(ids=torch.tensor([number])) for number in (0, 1)]
    a, b = torch.tensor([5, 6]), torch.tensor([7, 6])
    data = [(prompt[0], a), (prompt[0], b), (prompt[1], a), (prompt[1], a)]
    assert warm_start.measure_unread(data) == pytest.approx(2 * np.log(2) / 8)


def test_the_commands_of_rl4vlm_and_grpo_train_their_own_learners(monkeypatch):
    for module in (vldac, loop):
        monkeypatch.setattr(module, "train", lambda config, learner=None: learner)
    assert rl4vlm.train(rl4vlm.Config()) is rl4vlm.RL4VLM
    assert grpo.train(grpo.Config()) is grpo.GRPO
