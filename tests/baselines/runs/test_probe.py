"""Rows of a pass by the memory there is: halved until they fit, with the same gradient."""

import json
import re
import signal
import sys
import time
from dataclasses import replace

import gpu
import pytest
import torch
from publish import publish
from stage import SMALL

from baselines import vldac
from baselines.engine.engine import Engine
from baselines.learning.batch import Passes, probe
from baselines.learning.warm_start import WarmConfig
from baselines.runs import distributed
from vlgym.errors import UserError

ROW = 2**30  # bytes that a faked card has to hold of a row


@pytest.fixture
def eight_gib(monkeypatch):
    """A card of 8 GiB; the rows of the passes that were asked of it."""
    score, rows = Engine.score_states, []

    def limited(self, prompts, *args, **options):
        rows.append(len(prompts))
        if torch.is_grad_enabled() and len(prompts) * ROW > 8 * 2**30:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB\nand more")
        return score(self, prompts, *args, **options)

    monkeypatch.setattr(Engine, "score_states", limited)
    return rows


def test_rows_are_halved_until_a_pass_of_the_longest_fits(engine, prompts, eight_gib):
    vision = {*engine.family.vision_parameters()}
    weights = [p for p in engine.family.model.parameters() if p not in vision]
    longest = max(prompts, key=len)
    fit = probe(engine, longest, weights, Passes(64), 50)
    assert (eight_gib, fit.passes, fit.rows) == ([50, 25, 12, 6], Passes(6), 6)
    assert fit.tokens == len(longest) + 10
    assert all(p.grad is None for p in weights)
    tokens = Passes(64, 20 * fit.tokens + 5)
    fit = probe(engine, longest, weights, tokens, 64)
    assert (eight_gib[4:], fit.passes) == ([20, 10, 5], replace(tokens, tokens=5 * fit.tokens))
    assert probe(engine, longest, weights, tokens, 4).passes == tokens


def test_another_error_is_not_halved_away(engine, prompts, monkeypatch):
    monkeypatch.setattr(engine, "score_states", lambda *args, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        probe(engine, prompts[0], [], Passes(4), 4)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's limits")
def test_what_does_not_fit_into_the_free_memory_of_the_host_fails_in_the_block_alone(monkeypatch):
    sizes = distributed.read_sizes
    monkeypatch.setattr(distributed, "read_sizes", lambda path: {**sizes(path), "MemAvailable": 2**29})
    with distributed.host_limit(torch.device("cpu")):
        torch.empty(2**28, dtype=torch.uint8)
    with (
        distributed.host_limit(torch.device("cpu"), processes=4),
        pytest.raises(UserError, match="Out of memory"),
        distributed.memory_advice(""),
    ):
        torch.empty(2**28, dtype=torch.uint8)
    torch.empty(2**30, dtype=torch.uint8)


def one_line(folder, out):
    model = folder / "published"
    more = {
        "num_envs": 8, "updates": 1, "minibatch": 24, "value_warmup": 0, "lr": 1e-3, "image_tokens": None,
        "max_new_tokens": None, "warm": WarmConfig(steps=1, samples=8, batch=8, val_episodes=1),
    }  # fmt: skip
    return vldac.Config(**{**SMALL, **more, "model": str(model), "out": out})


def gradient(config, noted):
    step = vldac.Optimizers.step

    def watched(self, name, *rest):
        if name == "policy" and not noted:
            groups = self.named[name].param_groups
            noted.extend(p.grad.clone() for group in groups for p in group["params"])
        step(self, name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vldac.Optimizers, "step", watched)
        return vldac.train(config)


def test_a_published_model_trains_from_one_line_with_the_rows_that_fit_and_the_same_gradient(
    model_folder, tmp_path, capsys, request
):
    whole, parts = [], []
    publish(model_folder("qwen2_vl"), tmp_path / "published", "qwen2_vl")
    gradient(one_line(tmp_path, tmp_path / "whole"), whole)
    request.getfixturevalue("eight_gib")
    capsys.readouterr()
    run = gradient(replace(one_line(tmp_path, tmp_path / "parts"), eval_minutes=1e-5), parts)
    assert (run.config.micro_batch, run.finished()) == (6, True)
    output = capsys.readouterr().out
    probed, lines = output[output.index("memory") :].split(" a pass")[0], output.splitlines()
    lines = lines[[line.startswith("memory") for line in lines].index(True) :]
    assert probed.startswith("memory probe: 6 rows of ")
    assert lines[2].startswith("a CPU takes ")
    text = r"training all weights of .*: float32, cpu \(.*\), learning rate 0.001: [\d,]+ weights"
    assert re.fullmatch(text, lines[4])
    speed = r"update 1: \S+ steps/s, 0 hours to the end without evaluations"
    assert [1 for line in lines if re.fullmatch(speed, line)]
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
    assert lines[1].endswith(": 1 of 2, which fit into --eval-minutes 1e-05")
    for out, played in ((run.out, [1, 2]), (tmp_path / "whole", [2, 2])):
        reports = json.loads((out / "evaluation.json").read_text())
        assert [report["episodes"] for report in reports] == played
    capsys.readouterr()
    assert vldac.train(vldac.Config(out=run.out, resume=True, updates=2)).config.micro_batch == 6
    assert capsys.readouterr().out.split(" a pass")[0] == probed  # replies of the same limit
    request.getfixturevalue("monkeypatch").setitem(globals(), "ROW", 2**40)
    words = r"^Out of memory \(CUDA out of memory[^\n]*\): one row does not fit"
    with pytest.raises(UserError, match=words):
        vldac.train(replace(one_line(tmp_path, tmp_path / "none"), warm=WarmConfig()))


@pytest.fixture
def measure(monkeypatch, tmp_path):
    """The script with little to measure; its status and rows, less what tells where."""
    monkeypatch.setitem(gpu.SCALES, "tiny", gpu.Scale((2,), 4, 2, 2**20))
    for name, value in {"RANK": 2, "SIDE": 84, "PROMPT": 100}.items():
        monkeypatch.setattr(gpu, name, value)
    monkeypatch.setattr(gpu.run_module, "load_family", gpu.run_module.load_family)

    def run(*options):
        words = ["gpu.py", "--device", "cpu", "--rows", str(tmp_path / "rows"), *options]
        monkeypatch.setattr(sys, "argv", words)
        status = gpu.main()
        rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
        where = ("device", "size")
        return status, [{k: x for k, x in row.items() if k not in where} for row in rows]

    yield run
    signal.setitimer(signal.ITIMER_REAL, 0)


def test_the_gpu_script_goes_through_its_parts_and_writes_each_row(measure):
    status, rows = measure()
    parts = [*["graphs"] * 6, *["probes"] * 2, "update"]
    assert (status, [row["part"] for row in rows]) == (0, parts)
    assert [row["same_tokens"] for row in rows if "same_tokens" in row] == [1.0, 1.0]
    assert [row["static"] for row in rows if "static" in row] == [True, False] * 2
    assert all(row["rows"] > 0 for row in rows if row["part"] == "probes")
    assert all(row["env_steps_per_s"] > 0 for row in rows if row["part"] == "update")


def test_the_gpu_script_stops_in_time_and_an_error_costs_its_own_part(measure, monkeypatch):
    def broken(bench):
        yield {"first": 1}
        raise RuntimeError("no kernel\nand a trace")

    def endless(bench):
        yield {"first": 2}
        while True:
            time.sleep(0.01)

    parts = (broken, endless, broken)
    numbered = {str(number): (part, ["7b"]) for number, part in enumerate(parts)}
    monkeypatch.setattr(gpu, "PARTS", numbered)
    rows = [
        {"part": "broken", "first": 1}, {"part": "broken", "error": "RuntimeError: no kernel"},
        {"part": "endless", "first": 2}, {"part": "endless", "stopped": "the minutes are spent"},
    ]  # fmt: skip
    assert measure("--minutes", "0.05") == (1, rows)
