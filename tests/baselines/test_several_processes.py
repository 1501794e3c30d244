"""Runs of several processes: one that dies, resuming, weights that are split."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from processes import begin, end, together
from safetensors.torch import load_file
from stage import SMALL, on_stage

from baselines import grpo, loop, rl4vlm, vldac
from baselines.learning import command
from baselines.learning.warm_start import WarmConfig
from baselines.models.lora import LoraOptions
from baselines.runs.checkpoint import checkpoints
from baselines.runs.logs import read_rows
from baselines.vldac import VLDAC
from vlgym.errors import UserError

LEAST: dict[str, Any] = {"num_envs": 3, "rollout_steps": 2, "minibatch": 4, "epochs": 1, "warm": WarmConfig(steps=0)}
CONFIG = replace(
    vldac.Config(**SMALL), **LEAST, updates=3, value_warmup=1, eval_episodes=2, lr=3e-4, final_lr=1.0, kl_coef=0.1
)  # fmt: skip


def run(count: int, logs: Path, config: Any, train: Callable[[Any], Any] = vldac.train) -> list[str]:
    return together(count, lambda: train(config), logs)


def numbers(out: Path) -> list[dict[str, Any]]:
    rows = read_rows(out / "log.jsonl")
    return [{k: v for k, v in row.items() if not k.startswith(("seconds", "speed"))} for row in rows]


def files_of(out: Path) -> dict[str, bytes]:
    """What a run ends with, byte by byte; of tensors that processes wrote together the headers have no order."""
    newest = checkpoints(out / "checkpoints")[-1]
    found: dict[str, bytes] = {}
    for path in newest.rglob("*.safetensors"):
        tensors = load_file(path)
        found |= {f"{path.name}: {name}": tensors[name].view(-1).numpy().tobytes() for name in tensors}
    for path in (newest / "state.json", out / "model" / "model.safetensors", out / "evaluation.json"):
        found[path.name] = path.read_bytes() if path.exists() else b""
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Three updates by two processes, which have two environments and one."""
    out = tmp_path_factory.mktemp("whole") / "run"
    run(2, out.parent / "log", replace(CONFIG, out=out))
    return out


def die_in_the_second_update(rank: int) -> None:
    """Let one process be killed after its second rollout."""
    learn, calls = VLDAC.learn, [0]

    def learn_or_die(self, batch, update):
        calls[0] += 1
        if calls[0] == 2 and os.environ["RANK"] == str(rank):
            os.kill(os.getpid(), signal.SIGKILL)
        return learn(self, batch, update)

    VLDAC.learn = learn_or_die


@pytest.mark.parametrize("rank", [0, 1])
def test_when_a_process_is_killed_the_others_end_with_a_line_and_the_run_goes_on_exactly(
    rank, whole, tmp_path, monkeypatch
):
    monkeypatch.setattr("sys.argv", ["vldac"])
    out = tmp_path / "run"

    def work() -> None:
        die_in_the_second_update(rank)
        command.main(vldac.Config, lambda _: vldac.train(replace(CONFIG, out=out)), None)

    done = end(begin(2, work, tmp_path / "killed"), tmp_path / "killed")
    assert done[rank][0] == -signal.SIGKILL
    status, told = done[1 - rank]
    assert status == 1, told
    (line,) = [line for line in told.splitlines() if line.startswith("error:")]
    assert line.startswith("error: Another process of this run has ended or does not answer (")
    go_on = f"go on: torchrun --nproc-per-node 2 -m baselines.vldac --resume --out {out}"
    assert line.endswith(f"The newest checkpoint is intact; {go_on}")
    assert "Traceback" not in told
    assert checkpoints(out / "checkpoints")[-1].name == "update-000001"
    if rank == 0:  # what it left is all there is to a resumed run, whoever died
        run(2, tmp_path / "resumed", vldac.Config(out=out, resume=True))
        assert files_of(out) == files_of(whole)
        assert numbers(out) == numbers(whole)


def test_a_process_that_never_comes_ends_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["vldac"])

    def work() -> None:
        if os.environ["RANK"] == "1":
            return
        config = replace(CONFIG, out=tmp_path / "run", process_timeout=0.02)
        command.main(vldac.Config, lambda _: vldac.train(config), None)

    start = time.monotonic()
    (status, told), _ = end(begin(2, work, tmp_path / "log"), tmp_path / "log")
    assert status == 1, told
    assert "error: The processes of this run do not find each other" in told
    assert time.monotonic() - start < 60


def test_a_run_goes_on_in_another_number_of_processes_with_new_episodes(whole, tmp_path, capfd):
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    before = json.loads((checkpoints(out / "checkpoints")[-1] / "state.json").read_text())
    begun = [slot["episode"] for each in before["collectors"] for r in each["runners"] for slot in r["slots"]]
    assert "generators" not in before  # they are equal in all processes
    resumed = vldac.train(vldac.Config(out=out, resume=True, updates=4))
    assert "2 processes before, 1 now" in capfd.readouterr().out
    assert resumed.state.update == 4
    slots = resumed.kept.collector.runners[0].slots
    assert min(slot.episode for slot in slots) > max(begun)
    assert [slot.episode % 3 for slot in slots] == [0, 1, 2]
    again = vldac.train(vldac.Config(out=out, resume=True, updates=5))
    assert not again.state.rearranged


def test_groups_of_episodes_go_on_where_they_stood_in_another_number_of_processes():
    learner = on_stage(loop, num_envs=4, group=2)
    learner.collect()
    state = learner.collector.get_state()
    other = on_stage(loop, num_envs=4, group=2).collector
    other.rearrange([state, state])
    assert other.get_state()["next"] == state["next"] == 4


def test_reward_deviations_of_processes_are_put_together():
    from baselines.learning.rewards import RewardOptions, RewardShaper

    values, parts = [1.0, 5.0, -2.0, 0.5, 3.0], [RewardShaper(RewardOptions(normalise=True), 1, 0.0) for _ in range(3)]
    for at, value in enumerate(values):
        for shaper in (parts[0], parts[1 + at % 2]):
            shaper._normalise(0, value, True)
    merged = RewardShaper(RewardOptions(normalise=True), 2, 0.0)
    merged.merge_states([part.get_state() for part in parts[1:]])
    assert (merged.count, merged.mean) == (5, pytest.approx(parts[0].mean))
    assert merged.squares == pytest.approx(parts[0].squares)


# ---- weights that are split ------------------------------------------------------------------------------------------


def find_distance(a: Path, b: Path) -> float:
    """How far two models are apart: root of the mean squared difference of all weights. (Adam moves a weight whose
    gradient is rounding alone by a whole step or none, on some processors, so a largest difference says little.)"""
    first, second = (load_file(out / "model" / "model.safetensors") for out in (a, b))
    assert first.keys() == second.keys()
    differences = torch.cat([(first[name].double() - second[name].double()).view(-1) for name in first])
    return float(differences.square().mean().sqrt())


def test_split_weights_learn_what_whole_ones_do_and_a_run_resumes_exactly(whole, tmp_path):
    split, killed, other = tmp_path / "split", tmp_path / "killed", tmp_path / "other"
    run(2, tmp_path / "log", replace(CONFIG, shard="full", recompute=True, eval_episodes=0, out=split))
    assert find_distance(whole, split) < 1e-6
    last = numbers(whole)[-1], numbers(split)[-1]
    for name in ("loss/kl", "policy/grad_norm", "rollout/token_logp"):
        assert last[0][name] == pytest.approx(last[1][name], rel=1e-3)
    assert last[0]["loss/kl"] > 0

    for out in (killed, other):
        shutil.copytree(split, out)
        shutil.rmtree(out / "model")
    shutil.rmtree(killed / "checkpoints" / "update-000003")
    run(2, tmp_path / "log", vldac.Config(out=killed, resume=True))
    assert files_of(killed) == files_of(split)
    assert numbers(killed) == numbers(split)

    told = run(3, tmp_path / "log", vldac.Config(out=other, resume=True))  # all updates made: only the model is written
    assert "2 processes before, 3 now" in told[0]
    assert find_distance(split, other) == 0
    shutil.rmtree(other / "checkpoints" / "update-000003")
    told = run(1, tmp_path / "log", vldac.Config(out=other, resume=True))
    assert "2 processes before, 1 now" in told[0]
    assert 1e-5 < find_distance(split, other) < 1e-3  # after an update on other episodes


def test_no_part_of_a_checkpoint_is_a_pickle(tmp_path):
    out = tmp_path / "run"
    run(1, tmp_path / "log", replace(CONFIG, shard="full", updates=1, eval_episodes=0, out=out))
    names = {path.suffix for path in (out / "checkpoints").rglob("*") if path.is_file()}
    assert names == {".json", ".safetensors"}


def test_every_learner_trains_split_weights_also_where_a_process_has_no_row(tmp_path):
    small = replace(CONFIG, updates=1, eval_episodes=0, minibatch=1, value_warmup=0, shard="full")
    groups = {**SMALL, **LEAST, "num_envs": 4, "group": 2, "minibatch": 1, "updates": 1, "eval_episodes": 0}
    groups["env_kwargs"] = ("max_turns=2",)

    def work() -> None:
        rl4vlm.train(replace(rl4vlm.Config(**SMALL), **LEAST, **ONE, out=tmp_path / "rl4vlm"))
        vldac.train(replace(small, dtype="bfloat16", stop_gradient=False, micro_tokens=200, out=tmp_path / "bfloat16"))
        for config in (loop.Config(**groups), grpo.Config(**groups)):
            config = replace(config, shard="full", kl_coef=0.1, out=tmp_path / config.algorithm)
            loop.train(config, lambda returns: torch.tensor([1.0, -1.0]).expand_as(returns))

    together(2, work, tmp_path / "log")
    for name in ("rl4vlm", "bfloat16", "LOOP", "GRPO"):
        (row,) = numbers(tmp_path / name)
        assert row["skipped"] == 0
        assert row["policy/grad_norm"] > 0
    (path, _) = sorted((checkpoints(tmp_path / "bfloat16" / "checkpoints")[-1] / "shards").iterdir())
    kinds = {(k.split(".")[0], x.dtype) for k, x in load_file(path).items()}
    assert kinds == {("model", torch.float32), ("optimizer", torch.float32), ("reference", torch.bfloat16)}


ONE: dict[str, Any] = {"updates": 1, "eval_episodes": 0, "value_warmup": 0, "shard": "full"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lora": LoraOptions(rank=2)}, "--lora.rank: adapters are small"),
        ({"train_vision": True}, "--train-vision: the vision tower is not split"),
        ({"scoring": "shared"}, "--scoring shared: split weights are scored"),
    ],
)
def test_options_that_do_not_go_with_split_weights_are_refused(changes, said):
    with pytest.raises(UserError, match=f"--shard full does not go with {said}"):
        replace(vldac.Config(shard="full"), **changes).resolve()
