"""The trial pass before a run: what it takes, what it leaves behind, and what is made of it."""

from __future__ import annotations

import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from stage import ENV, on_stage

from baselines import vldac
from baselines.engine.batching import common_prefix
from baselines.engine.engine import Engine
from baselines.learning import fit, worst_case
from baselines.learning.fit import fit_passes
from baselines.learning.weights import engines
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions
from baselines.runs.distributed import ALONE, World
from vlgym import env_groups
from vlgym.errors import UserError
from vlgym.making import make

REPLY = 12  # tokens, of `stage.SMALL`


class Pass:
    """What a forward pass of the trial was given, and whether a backward pass followed."""

    def __init__(self, flat, prompts, ids, mask, train_vision):
        self.flat, self.prompts, self.ids, self.mask, self.train_vision = flat, prompts, ids, mask, train_vision
        self.backward = False

    def went_back(self, gradient):
        self.backward = True


@pytest.fixture
def passes(monkeypatch):
    """The passes of the trial, with nothing computed in them."""
    found: list[Pass] = []

    def stand_in(flat):
        def score(self, prompts, ids, mask, *, train_vision=False):
            found.append(Pass(flat, prompts, ids, mask, train_vision))
            logp = torch.ones(ids.shape, requires_grad=True)
            logp.register_hook(found[-1].went_back)
            return logp, logp

        return score

    monkeypatch.setattr(Engine, "score_states", stand_in(False))
    monkeypatch.setattr(Engine, "score_flat_states", stand_in(True))
    return found


@pytest.fixture
def stage():
    return on_stage(vldac, fit="on").run


def test_the_trial_goes_back_through_replies_of_full_length_to_prompts_that_share_nothing(stage, passes):
    fit_passes(replace(stage.config, micro_batch=4), stage.weights, stage.envs, ALONE)
    (tried,) = passes
    assert tried.ids.shape == (4, REPLY)
    assert tried.mask.all()
    assert tried.backward
    assert len({prompt.key for prompt in tried.prompts}) == 4
    assert common_prefix(tried.prompts) == 0
    digests = [image.digest for prompt in tried.prompts for image in prompt.images]
    assert len(set(digests)) == len(digests) >= 4


@pytest.mark.parametrize(("scoring", "train_vision"), [("shared", False), ("flat", False), ("shared", True)])
def test_the_trial_takes_the_path_of_the_update(stage, passes, scoring, train_vision):
    config = replace(stage.config, scoring=scoring, train_vision=train_vision)
    fit_passes(config, stage.weights, stage.envs, ALONE)
    assert [(each.flat, each.train_vision) for each in passes] == [(scoring == "flat", train_vision)]


def test_no_gradient_and_no_cache_is_left_of_the_trial(stage):
    fit_passes(replace(stage.config, micro_batch=1), stage.weights, stage.envs, ALONE)
    assert all(parameter.grad is None for parameter in stage.weights.parameters)
    assert all(len(engine._features) == len(engine._entries) == 0 for engine in engines(stage.weights))


@pytest.mark.parametrize(("dtype", "each"), [("float32", 8), ("bfloat16", 12)])
def test_what_comes_later_is_held_and_not_what_is_there_already(monkeypatch, dtype, each):
    """Two moments of a trained weight in float32, and its float32 copy; beside them a few features of pictures."""
    stage, seen = on_stage(vldac, fit="on", dtype=dtype).run, []
    monkeypatch.setattr(fit, "_fits", lambda *args: seen.append(args[-1]) or True)
    fit_passes(stage.config, stage.weights, stage.envs, ALONE)
    trained = sum(parameter.numel() for parameter in stage.weights.parameters)
    assert each * trained < seen[0] < (each + 0.5) * trained


def test_memory_is_held_on_the_device_while_the_trial_runs(monkeypatch):
    class Held:
        pass

    held, asked = [], []

    def empty(size, *, dtype, device):
        asked.append((size, dtype, device))
        block = Held()
        held.append(weakref.ref(block))
        return block

    def look(*args):
        held[:] = [block() is not None for block in held]

    device = torch.device("cuda", 0)
    weights = SimpleNamespace(family=SimpleNamespace(device=device), scorer=None, parameters=[])
    monkeypatch.setattr(fit, "engines", lambda weights: [])
    monkeypatch.setattr(fit, "another", lambda prompt, row: prompt)
    monkeypatch.setattr(fit, "_pass", look)
    monkeypatch.setattr(torch, "empty", empty)
    assert fit._fits(weights, None, 5, 1, vldac.Config(), 1234)
    assert asked == [(1234, torch.uint8, device)]
    assert held == [True]


@pytest.mark.parametrize("rank", [0, 1])
def test_all_processes_take_what_the_one_with_the_least_room_can_and_the_first_one_says_so(
    stage, monkeypatch, capsys, rank
):
    monkeypatch.setattr(fit, "_fits", lambda *args: True)
    monkeypatch.setattr(fit.distributed, "gather", lambda rows, world: torch.tensor([int(rows), 2, 5]))
    fitted = fit_passes(replace(stage.config, micro_batch=4), stage.weights, stage.envs, World(rank, 3))
    assert fitted.micro_batch == 2
    assert ("--micro-batch 2 instead of 4" in capsys.readouterr().out) == (rank == 0)


@pytest.mark.parametrize(
    ("changes", "tried"),
    [
        ({"fit": "off"}, False),
        ({"fit": "off", "device": "cuda"}, False),
        ({"fit": "auto"}, False),
        ({"fit": "auto", "device": "cuda"}, True),
        ({"fit": "on"}, True),
        ({"fit": "on", "shard": "full"}, False),
    ],
)
def test_a_pass_is_tried_on_a_gpu_or_where_it_is_asked_for(stage, monkeypatch, changes, tried):
    seen = []
    monkeypatch.setattr(fit, "_fits", lambda *args: seen.append(args) or True)
    config = replace(stage.config, **changes)
    assert fit_passes(config, stage.weights, stage.envs, ALONE) is config
    assert bool(seen) == tried


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, "Try --recompute. Take smaller"),
        ({"recompute": True}, r"Try adapters \(--lora.rank 16\). Take smaller"),
        ({"recompute": True, "lora": LoraOptions(rank=2)}, r"\). Take smaller"),
    ],
)
def test_where_not_one_reply_fits_the_advice_is_what_has_not_been_done_yet(stage, monkeypatch, changes, advice):
    monkeypatch.setattr(fit, "_fits", lambda *args: False)
    monkeypatch.setattr(fit, "standing_items", lambda *args: [])
    with pytest.raises(UserError, match=advice):
        fit_passes(replace(stage.config, **changes), stage.weights, stage.envs, ALONE)


def test_environments_of_the_search_have_the_runs_arguments_and_are_closed(monkeypatch):
    made, closed = [], []

    def noted(env_id, **options):
        env = make(env_id, **options)
        made.append((env_id, options))
        monkeypatch.setattr(env, "close", lambda: closed.append(env_id))
        return env

    monkeypatch.setattr(env_groups, "make", noted)
    ids = [ENV, "vlgym/EZPoints-v0"]
    worst_case.longest_prompt(ids, load_family("tiny", image_tokens=4), new_tokens=5, env_kwargs={"max_turns": 3})
    assert made == [(env_id, {"max_turns": 3}) for env_id in ids]
    assert closed == ids
