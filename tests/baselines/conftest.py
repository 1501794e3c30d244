"""Shared parts of the learner tests: one thread, tiny models, prompts with pictures, the device.

Makes `samples` and the benchmarks importable (importlib mode).
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # an unknown model name must not wait for a network

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "benchmarks"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from bandit import Bandit, bandits, small_family  # noqa: E402
from samples import DEVICE, INSTRUCTIONS, messages, picture  # noqa: E402
from stage import FINISHED  # noqa: E402
from tiny_families import build  # noqa: E402

from baselines import vldac  # noqa: E402
from baselines.engine.engine import Engine  # noqa: E402
from baselines.models.load import load_family  # noqa: E402
from baselines.runs.logs import draw_success  # noqa: E402


@pytest.fixture(autouse=True, scope="session")
def _cheap():
    """One thread, few episodes for a curve's bounds, and no drawing but in `finished`."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("baselines.learning.evaluation.FLOOR_EPISODES", 2)
        patch.setattr("baselines.learning.evaluation.GAP_EPISODES", 2)
        patch.setattr("baselines.learning.evaluation.draw_success", lambda *_, **__: None)
        yield


def pytest_collection_modifyitems(items):
    """On another device than the CPU, only the tests that follow it."""
    if DEVICE != "cpu":
        for item in items:
            if item.get_closest_marker("on_device") is None:
                item.add_marker(pytest.mark.skip(reason="places its tensors itself, or compares bits"))


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """Folder of a saved model of a family, by model type, as published."""
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name)
            for part in build(name):
                part.save_pretrained(folders[name])
        return folders[name]

    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Folder of a run of `stage.FINISHED`, with its curve. Tests that change it copy it."""
    out = tmp_path_factory.mktemp("finished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("baselines.learning.evaluation.draw_success", draw_success)
        vldac.train(replace(FINISHED, out=out))
    return out


@pytest.fixture(autouse=True, scope="module")
def _bandits():
    with bandits():
        yield


@pytest.fixture
def small_runs(monkeypatch):
    """Let runs load the small model."""
    Bandit.begun.clear()
    monkeypatch.setattr("baselines.learning.run.load_family", lambda *_, **__: small_family())


@pytest.fixture
def family():
    """A fresh tiny family: tests may change its weights."""
    return load_family("tiny", device=DEVICE)


@pytest.fixture
def engine(family):
    return Engine(family, max_new_tokens=10)


@pytest.fixture
def prompts(family):
    """Six prompts: a common beginning, different lengths, different pictures, one twice."""
    ends = ["+, -", "turn left, turn right, move forward", "+, -", "hit, stand", "a rare wording: xyzzy", "+, -"]
    seeds = [1, 2, 3, 4, 5, 1]
    return [family.encode(messages(picture(s), INSTRUCTIONS + end)) for s, end in zip(seeds, ends, strict=True)]
