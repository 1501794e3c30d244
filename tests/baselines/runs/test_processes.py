"""Runs of several processes, and failures of a long run: signals, a full disk, memory that runs out."""

import importlib
import json
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from bandit import CUT, LONG, SETTINGS, on_stage
from safetensors.torch import load_file, save_file
from sources import ROOT
from stage import SMALL, assert_same_end, rewind, roll_out

from baselines import archer, vldac
from baselines.learning import command
from baselines.learning.warm_start import WarmConfig
from baselines.runs import distributed
from baselines.runs.distributed import ALONE, World, memory_advice
from baselines.runs.folder import checkpoints
from vlgym.errors import UserError
from vlgym.files import lock_folder


def fork(count: int, work: Callable[[], Any], logs: Path) -> list[tuple[int | None, str]]:
    """Work in several processes; return the exit status (a signal's is negative) and output of each."""
    logs.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def begin(rank: int) -> None:
        sys.stdout = sys.stderr = (logs / str(rank)).open("w")
        if count > 1:
            os.environ.update(
                RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count),
                MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
            )  # fmt: skip
        work()

    children = [multiprocessing.get_context("fork").Process(target=begin, args=(rank,)) for rank in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(600)  # seconds; a machine may be busy
        child.kill()
    return [(child.exitcode, (logs / str(rank)).read_text()) for rank, child in enumerate(children)]


def in_two(work, logs) -> None:
    done = fork(2, work, logs)
    assert [status for status, _ in done] == [0, 0], "\n".join(text for _, text in done)


def make_updates(out) -> None:
    """An update of two processes, and of each alone on its own rollout."""
    torch.set_num_threads(1)
    world = distributed.join("cpu")
    learner = on_stage(
        vldac, world, env=LONG, num_envs=4, rollout_steps=3, minibatch=12, epochs=1, lr=0.1,
        final_lr=1.0, kl_coef=0.0,
    )  # fmt: skip
    named, weights = learner.optimizers.named, learner.weights.parameters
    named["policy"] = torch.optim.SGD(weights, lr=0.1)
    batch, _ = roll_out(learner)
    batch.advantages = torch.linspace(-1, 1, len(batch.samples)) * (1 + world.rank)
    before = [weight.detach().clone() for weight in weights]

    def change(world: World, minibatch: int) -> torch.Tensor:
        learner.run.world = learner.optimizers.world = world
        learner.config = replace(learner.config, minibatch=minibatch)
        learner.update(batch, 10)
        difference = torch.cat([(now.detach() - old).flatten() for now, old in zip(weights, before, strict=True)])
        for now, old in zip(weights, before, strict=True):
            now.data.copy_(old)
        return difference

    alone, together = change(ALONE, 6), change(world, 12)
    prompts = torch.tensor([[int.from_bytes(sample.prompt.key[:7]) for sample in batch.samples]])
    replies = torch.tensor([[float(sample.logp.sum()) for sample in batch.samples]])
    own = {"alone": alone[None], "together": together[None], "prompts": prompts, "replies": replies}
    pairs = {name: distributed.gather(x, world) for name, x in own.items()}
    if world.first:
        save_file(pairs, out)
    distributed.leave()


def test_the_update_of_two_processes_is_the_mean_of_their_own(tmp_path):
    in_two(lambda: make_updates(tmp_path / "found"), tmp_path / "log")
    pairs = load_file(tmp_path / "found")
    assert torch.equal(*pairs["together"])  # the weights stay the same in both
    torch.testing.assert_close(pairs["together"][0], pairs["alone"].mean(0), atol=1e-6, rtol=1e-4)
    assert (pairs["alone"][0] - pairs["alone"][1]).abs().max() > 1e-3
    assert not torch.equal(*pairs["prompts"])  # other episodes
    assert not torch.equal(*pairs["replies"])


def run_in_all(out, resume: bool) -> None:
    """A run of two updates, or what is left of it."""
    torch.set_num_threads(1)
    warm = WarmConfig(steps=1, samples=16, batch=2, val_episodes=1)
    options = {
        **SETTINGS, "env": CUT, "num_envs": 2, "rollout_steps": 3, "minibatch": 4, "epochs": 1,
        "eval_episodes": 1, "eval_controls": False, "value_warmup": 0, "updates": 2,
        "final_lr": 1.0, "save_every": 1, "warm": warm,
    }  # fmt: skip
    vldac.train(vldac.Config(**options, out=out, resume=resume))
    distributed.leave()


def test_a_run_of_two_processes_is_resumed_exactly(tmp_path, small_runs):
    in_two(lambda: run_in_all(tmp_path / "whole", False), tmp_path / "log")
    rewind(tmp_path / "whole", tmp_path / "resumed")
    in_two(lambda: run_in_all(tmp_path / "resumed", True), tmp_path / "log")
    (newest,) = (tmp_path / "whole" / "checkpoints").glob("update-000002")
    other = tmp_path / "resumed" / "checkpoints" / newest.name
    assert len(json.loads((newest / "state.json").read_text())["processes"]) == 2
    name = "tensors.safetensors"
    assert (newest / name).read_bytes() == (other / name).read_bytes()


def test_archer_keeps_to_one_process(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    with pytest.raises(UserError, match="one process, but 2 were started"):
        archer.Config().resolve()


MOMENTS = {
    "after the last checkpoint was moved away": ("os.replace", "checkpoints/.update-000003.old"),
    "while the model is exported": ("baselines.models.lora.write_notes", ".model.part"),
}
"""Moments of a kill: the function whose call finds something half done, and that."""


def end_at(place: str, when: int | Path, number: signal.Signals) -> None:
    """Let this process get a signal at a call: the `when`-th, or the first that finds a path."""
    module_name, name = place.rsplit(".", 1)
    module = importlib.import_module(module_name)
    function, calls = getattr(module, name), [0]

    def patched(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if when.exists() if isinstance(when, Path) else calls[0] == when:
            os.kill(os.getpid(), number)
        return function(*args, **kwargs)  # SIGTERM only asks

    setattr(module, name, patched)


def go_on(out: Path, **options: Any) -> Any:
    return vldac.train(vldac.Config(out=out, resume=True, **options))


def go_on_in_another_process(out: Path, before: Callable[[], None], **options: Any) -> tuple[int, str]:
    """The exit status and output of the command with --resume, which does something before."""

    def work() -> None:
        before()
        command.main(vldac.Config, lambda _: go_on(out, **options), None)

    log = out.with_name("log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["vldac"])
        return fork(1, work, log)[0]


@pytest.fixture
def rewound(finished, tmp_path):
    return rewind(finished, tmp_path / "run")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_at_its_worst_moment_goes_on_to_the_same_end(moment, finished, rewound):
    place, half = MOMENTS[moment]
    before = partial(end_at, place, rewound / half, signal.SIGKILL)
    status, text = go_on_in_another_process(rewound, before)
    assert status == -signal.SIGKILL, text
    assert (rewound / half).exists(), sorted(path.name for path in rewound.rglob("*"))
    go_on(rewound)
    assert_same_end(finished, rewound)


def test_two_processes_cannot_work_in_one_runs_folder(rewound):
    with lock_folder(rewound), pytest.raises(UserError, match="Another process is at work"):
        go_on(rewound)


def test_sigterm_saves_and_ends_with_143(rewound):
    before = lambda: end_at("baselines.runs.logs.summary", 1, signal.SIGTERM)  # noqa: E731
    status, text = go_on_in_another_process(rewound, before, updates=5)
    assert status == 143
    command = f"Go on: python -m baselines.vldac --resume --out {rewound}"
    assert f"stopped after update 3. {command}" in text
    assert checkpoints(rewound / "checkpoints")[-1].name == "update-000003"


def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(finished, rewound):
    (saved,) = checkpoints(rewound / "checkpoints")
    # a limit on the size of files, as a full disk: the system refuses to write
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    status, text = go_on_in_another_process(rewound, limit)
    assert status == 2
    (line,) = [line for line in text.splitlines() if line.startswith("error:")]
    assert line.startswith("error: File too large")
    command = f"go on: python -m baselines.vldac --resume --out {rewound}"
    assert line.endswith(f"The newest checkpoint is intact; {command}")
    assert "Traceback" not in text
    assert list((rewound / "checkpoints").iterdir()) == [saved]
    go_on(rewound)
    assert_same_end(finished, rewound)


OPTIONS = """
    --env vlgym/NumberLine-v0 --env-kwargs max_turns=3 --updates 3 --num-envs 2 --rollout-steps 2
    --minibatch 2 --epochs 1 --value-warmup 1 --final-lr 1.0 --image-tokens 4 --max-new-tokens 9
    --eval-episodes 1 --no-eval-controls --save-every 1 --record-every 1 --threads 1
    --warm.steps 1 --warm.samples 16 --warm.batch 8 --warm.val-episodes 1
"""  # of FINISHED


@pytest.mark.exhaustive  # the worst moments are above
def test_a_command_that_is_killed_goes_on_in_another_process(finished, tmp_path):
    """The process is fresh and the moment is any."""
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "baselines.vldac", *OPTIONS.split(), "--out", str(out)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    while not (out / "checkpoints" / "update-000001").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "model").exists()
    go_on(out)
    assert_same_end(finished, out)


def test_a_broken_off_episode_bootstraps_with_the_value_of_its_last_state():
    learner = on_stage(vldac, env=LONG, num_envs=1, rollout_steps=1, gamma=0.5, gae_lambda=1.0)
    torch.nn.init.constant_(learner.steady.module.outer.bias, 7.0)
    runner = learner.collector.runner
    runner.remake = learner.run.envs.make
    runner.slots[0].env.step = lambda reply: 1 / 0
    batch, _ = roll_out(learner)
    assert batch.returns.tolist() == pytest.approx([3.5])


def test_running_out_of_memory_names_the_micro_batch_to_try(tmp_path, monkeypatch):
    def fail(self, batch, update):
        raise RuntimeError("[enforce fail] . DefaultCPUAllocator: can't allocate memory: ...")

    monkeypatch.setattr(vldac.VLDAC, "update", fail)
    out = tmp_path / "run"
    config = replace(vldac.Config(**SMALL), eval_episodes=0, micro_batch=64, warm=WarmConfig(steps=0))
    words = r"Out of memory .*--resume --out .* --micro-batch 32, or with --recompute"
    with pytest.raises(UserError, match=words):
        vldac.train(replace(config, out=out))
    with pytest.raises(RuntimeError, match="size mismatch"), memory_advice("try less"):
        raise RuntimeError("size mismatch")
