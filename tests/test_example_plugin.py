"""A third-party plugin as a user meets it: built, pip-installed into a fresh environment, and used."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from fresh import make_fresh, run_fresh

EXAMPLE = Path(__file__).parent / "fixtures" / "vlgym_example"
pytestmark = pytest.mark.xdist_group("example plugin")  # one worker, so that the environment is made once


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment that holds the built plugin; heavy dependencies are shared from this one by a path
    file."""
    return make_fresh(tmp_path_factory.mktemp("fresh"), [EXAMPLE])


def run(python: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the fresh environment's Python with only the example plugin switched on."""
    return run_fresh(python, *arguments, plugins="vlgym-example", cwd=cwd)


def test_an_installed_plugin_appears_in_list_as_external(python: Path) -> None:
    done = run(python, "-m", "vlgym", "list", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)}
    assert rows["example/Arrow-v0"]["distribution"] == "vlgym-example"
    assert rows["example/Arrow-v0"]["external"] is True


def test_an_installed_plugin_earns_the_whole_certificate(python: Path) -> None:
    done = run(python, "-m", "vlgym", "check", "example/Arrow-v0", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    certificate = report[0] if isinstance(report, list) else report
    assert certificate["passed"] is True
    assert len(certificate["checks"]) >= 16


def test_its_own_parser_is_used_through_plain_gymnasium(python: Path) -> None:
    code = (
        "import gymnasium, json\n"
        "env = gymnasium.make('vlgym:example/Arrow-v0')\n"
        "observation, info = env.reset(seed=3)\n"
        "rewards = []\n"
        "for _ in range(4):\n"
        "    observation, reward, terminated, truncated, info = env.step(env.unwrapped.solve())\n"
        "    rewards.append(reward)\n"
        "print(json.dumps([rewards, terminated, info['success'], env.unwrapped.parser.name]))\n"
    )
    done = run(python, "-c", code)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[1.0, 1.0, 1.0, 1.0], True, True, "answer"]


def test_the_learner_trains_on_it_for_one_update_unchanged(python: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run(
        python, "-m", "baselines.vldac", "--env", "example/Arrow-v0", "--updates", "1", "--warm.steps", "2",
        "--value-warmup", "0", "--num-envs", "4", "--rollout-steps", "4", "--eval-episodes", "4",
        "--out", str(out), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == [1]
    assert rows[0]["env_steps"] == 16
