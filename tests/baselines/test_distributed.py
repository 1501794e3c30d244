"""Several processes make the rollout, the update and the evaluation that one makes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
import torch
from processes import together
from safetensors.torch import load_file, save_file
from stage import ENV, on_stage

from baselines import archer, loop, vldac
from baselines.engine.policy import ModelPolicy
from baselines.learning.batch import lay_out, minibatches
from baselines.learning.merging import merge_metrics
from baselines.learning.shared_evaluation import evaluate_shared
from baselines.models.load import load_family
from baselines.runs import distributed, joining
from baselines.runs.distributed import ALONE, Shares, World, split, split_environments
from vlgym.errors import UserError
from vlgym.evaluation import evaluate
from vlgym.making import unwrap
from vlgym.prompts import PromptBuilder
from vlgym.types import Reply

RATE = {"lr": 0.1, "final_lr": 1.0}
MIXED = f"{ENV},vlgym/EZPoints-v0"  # episodes of different lengths


def one_update(module: Any, world: World, **options: Any) -> dict[str, torch.Tensor]:
    """Two rollouts and an update on the second by plain gradient descent, with made-up advantages.

    Adam would turn rounding differences of gradients near zero into whole steps, so it could not show that gradients
    agree.
    """
    learner = on_stage(module, world=world, **options)
    learner.optimizers.named["policy"] = torch.optim.SGD(learner.weights.parameters, lr=0.1)
    learner.collect()
    batch, _ = learner.collect()
    shares = learner.run.envs.shares
    for at, unit in enumerate(batch.units):  # step and environment say which advantage
        step, env = divmod(at, shares.own)
        batch.advantages[unit] = batch.returns[unit] = 0.1 * (7 * step + 3 * (shares.first + env)) % 2 - 1
    learner.learn(batch, 10)
    name = learner.config.algorithm
    found = {f"{name}.{key}": x.clone() for key, x in learner.weights.family.language_model.state_dict().items()}
    if hasattr(learner, "value"):
        found[f"{name}.value"] = learner.value.outer.weight.detach().clone()
    padded = torch.nn.functional.pad(batch.ids, (0, 6 - batch.ids.shape[1]), value=-1)
    keys = torch.tensor([int.from_bytes(s.prompt.key[:7]) for s in batch.samples])  # rows in any order, by their prompt
    rows = distributed.gather(torch.cat([keys.unsqueeze(1), padded], 1), world).tolist()
    return found | {
        f"{name}.rows": torch.tensor(sorted(rows)),
        f"{name}.state": learner.run.policy.generator.get_state(),
    }


def all_updates(out) -> None:
    torch.set_num_threads(1)
    world = joining.join("cpu")
    found = one_update(vldac, world, num_envs=4, minibatch=5, **RATE)
    found |= one_update(loop, world, env=MIXED, num_envs=8, group=2, minibatch=3, **RATE)
    if world.first:
        save_file(found, out)
    reports = [asdict(evaluate_mixed(world, episodes)) for episodes in (2, 9)]
    told = distributed.gather_texts(json.dumps(reports), world)
    assert told == told[:1] * world.size
    if world.first:
        print(told[0])
    distributed.wait(world)
    joining.leave()


class Dice(ModelPolicy):
    """Takes the oracle's action or says nothing, as one random number for each prompt says."""

    def __init__(self, world: World) -> None:
        self.world, self.shares, self.name = world, None, "dice"
        self.generator = torch.Generator().manual_seed(3)

    def reply(self, turns):
        at, total = self._share(len(turns))
        draws = torch.rand(total, generator=self.generator)[at : at + len(turns)].tolist()
        return [Reply(unwrap(t.env).solve() if x < 0.6 else "") for t, x in zip(turns, draws, strict=True)]


def evaluate_mixed(world: World, episodes: int):
    options: dict[str, Any] = {"episodes": episodes, "num_envs": 4}
    if world.size == 1:
        return evaluate(ENV, Dice(world), split="test", **options)
    return evaluate_shared(ENV, Dice(world), world, split_name="test", env_kwargs={}, **options)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """What one, two and three processes made of the same work: tensors, and what the first one printed."""
    folder = tmp_path_factory.mktemp("processes")
    found = {}
    for count in (1, 2, 3):
        texts = together(count, lambda count=count: all_updates(folder / f"{count}"), folder / f"log-{count}")
        found[count] = load_file(folder / f"{count}"), texts[0]
    return found


@pytest.mark.parametrize("count", [2, 3])
def test_processes_sample_and_learn_what_one_does(several, count):
    (one, _), (more, _) = several[1], several[count]
    assert one.keys() == more.keys()
    before = load_family("tiny", image_tokens=4).language_model.state_dict()
    for learner in ("VL-DAC", "LOOP"):
        assert torch.equal(one[f"{learner}.rows"], more[f"{learner}.rows"])
        assert torch.equal(one[f"{learner}.state"], more[f"{learner}.state"])  # of the sampler's generator
        for name in one:
            if name.startswith(learner):
                torch.testing.assert_close(one[name], more[name], atol=2e-5, rtol=1e-4)
        moved = [float((one[f"{learner}.{key}"] - value).abs().max()) for key, value in before.items()]
        assert max(moved) > 1e-3  # far beyond the tolerance: they did learn


@pytest.mark.parametrize("count", [2, 3])
def test_processes_share_an_evaluation_and_report_what_one_does(several, count):
    assert several[count][1] == several[1][1]
    few, many = json.loads(several[count][1])
    assert (few["episodes"], many["episodes"]) == (2, 9)
    assert many["invalid_rate"] > 0
    assert many["mean_turns"] % 1 > 0  # episodes of different lengths


class Reader(Dice):
    """Notes how many messages each prompt has."""

    def __init__(self) -> None:
        super().__init__(ALONE)
        self.seen: list[int] = []

    def reply(self, turns):
        self.seen += [len(turn.messages) for turn in turns]
        return super().reply(turns)

    def in_step(self):
        return self


def test_a_shared_evaluation_has_the_split_the_arguments_and_the_layout_of_the_run():
    options: dict[str, Any] = {"episodes": 5, "num_envs": 2, "env_kwargs": {"max_turns": 3}}
    options["builder"] = PromptBuilder(2, 1)
    alone, shared, ends = Reader(), Reader(), []
    expected = evaluate(ENV, alone, split="val", **options)
    found = evaluate_shared(ENV, shared, ALONE, split_name="val", on_end=lambda: ends.append(1), **options)
    assert found == expected
    assert found.normalized is None  # of other arguments than those that the bounds are known of
    assert shared.seen == alone.seen
    assert max(shared.seen) > 1
    assert len(ends) == 5


def test_minibatches_of_all_processes_are_those_of_one():
    def order(shares: Shares) -> list[tuple[list[int], int]]:
        units = [[i] for i in range(3 * shares.own)]
        found = minibatches(units, 5, shares, torch.Generator().manual_seed(0))
        return [(rows.tolist(), size) for rows, size in found]

    parts = order(Shares((4,)))
    assert sorted(row for rows, _ in parts for row in rows) == list(range(12))
    shares = [split(4, World(rank, 3)) for rank in range(3)]
    assert [each.counts for each in shares] == [(2, 1, 1)] * 3
    for (rows, size), *own in zip(parts, *map(order, shares), strict=True):
        merged = [
            row // each.own * 4 + each.first + row % each.own
            for (part, _), each in zip(own, shares, strict=True)
            for row in part
        ]
        assert sorted(merged) == sorted(rows)
        assert {size, *(length for _, length in own)} == {len(rows)}


def test_a_replay_that_holds_less_than_a_rollout_is_cut_whole():
    found = minibatches([[i] for i in range(10)], 4, Shares((4,)), torch.Generator().manual_seed(0))
    assert sorted(row for rows, _ in found for row in rows.tolist()) == list(range(10))


def test_metrics_of_processes_are_weighed_by_what_they_are_means_of(monkeypatch):
    learner = on_stage(vldac, num_envs=2)
    batch, _ = learner.collect()
    few = lay_out(batch.samples[:2], [None] * 2, 0)
    told: list[str] = []
    monkeypatch.setattr(distributed, "gather_texts", lambda text, world: told.append(text) or told)
    nan = float("nan")
    first = {"episode/success": 1.0, "episode/count": 1.0, "rollout/reward": 4.0, "x_max": 2.0, "policy/lr": 0.1}
    merge_metrics(first | {"loss/kl": nan}, few, World(0, 2))
    second = {"episode/success": 0.0, "episode/count": 3.0, "rollout/reward": 0.0, "x_max": 1.0, "policy/lr": 0.1}
    row, steps, tokens = merge_metrics(second | {"loss/kl": 0.5}, batch, World(1, 2))
    assert steps == 8
    assert tokens == int(batch.mask.sum() + few.mask.sum())
    assert row == {
        "episode/success": 0.25, "episode/count": 4.0, "rollout/reward": 1.0, "x_max": 2.0, "policy/lr": 0.1,
        "loss/kl": 0.5,
    }  # fmt: skip


def test_one_process_needs_no_group_and_changes_nothing():
    x = torch.tensor([1.0, 2.0])
    assert joining.join("cpu") == ALONE
    assert distributed.gather(x, ALONE) is x
    assert distributed.gather_texts("here", ALONE) == ["here"]
    assert distributed.sum_values([1.0, 2.0], ALONE) == [1.0, 2.0]
    assert distributed.any_of(True, ALONE)
    assert not distributed.any_of(False, ALONE)


def test_groups_and_halves_are_not_split_over_processes():
    with pytest.raises(UserError, match="evenly"):
        on_stage(loop, num_envs=4, group=3)
    assert split_environments(12, World(0, 2), 4).counts == (8, 4)
    with pytest.raises(UserError, match=r"--num-envs 4 \(4 belong together\) is too few for 2 processes.*at least 8"):
        on_stage(loop, world=World(0, 2), num_envs=4, group=4)


def test_archer_keeps_to_one_process(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    with pytest.raises(UserError, match="one process, but 2 were started"):
        archer.Config().resolve()


# ---- devices ---------------------------------------------------------------------------------------------------------


def pretend_processes(monkeypatch, devices: int, **variables: int) -> list[Any]:
    """CUDA devices, and what torchrun sets; returns what is chosen among them."""
    for name, value in {"MASTER_ADDR": 0, "MASTER_PORT": 0, **variables}.items():
        monkeypatch.setenv(name, str(value))
    chosen: list[Any] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda *args, **_: chosen.append(args))
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: variables["RANK"])
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: variables["WORLD_SIZE"])
    return chosen


def test_every_process_of_a_machine_takes_the_device_of_its_local_rank(monkeypatch):
    chosen = pretend_processes(monkeypatch, 2, RANK=3, LOCAL_RANK=1, WORLD_SIZE=4, LOCAL_WORLD_SIZE=2)
    vldac.Config(device="cuda").resolve()
    assert joining.join("cuda") == World(3, 4)
    assert chosen == ["cuda:1", ("cpu:gloo,cuda:nccl",)]
    assert joining.own_device("cuda") == "cuda:1"
    assert joining.own_device("cpu") == "cpu"
    assert joining.launcher(World(3, 4)) == "torchrun --nnodes 2 --nproc-per-node 2"


def test_more_processes_than_devices_are_refused_before_any_work(monkeypatch):
    pretend_processes(monkeypatch, 2, RANK=0, LOCAL_RANK=0, WORLD_SIZE=3, LOCAL_WORLD_SIZE=3)
    with pytest.raises(UserError, match=r"3 processes .* has 2 CUDA devices.*torchrun --nproc-per-node 2"):
        vldac.Config(device="cuda").resolve()
    with pytest.raises(UserError, match="--device cuda:0 is one device for 3 processes; write --device cuda"):
        vldac.Config(device="cuda:0").resolve()


def test_half_of_what_torchrun_sets_is_an_error_of_the_user(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="start several processes with torchrun, or unset WORLD_SIZE"):
        vldac.Config().resolve()
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(UserError, match="WORLD_SIZE='two' is no number"):
        vldac.Config().resolve()
