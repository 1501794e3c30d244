"""The plugin in `baselines` changes nothing unasked, and says what to install without torch."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from toys import install_plugin

ROOT = Path(__file__).parents[2]
WITHOUT_TORCH = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in ("torch", "peft") else PathFinder.find_spec(name, path, target)

sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
"""
"""Begins a program in which torch and peft cannot be found."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH by which the plugin is installed, whatever else is."""
    install_plugin(tmp_path, "baselines", "from baselines.plugin import *", "vlgym", "0.1.0")
    return tmp_path


def run_python(site: Path, *words: str, torch: bool = True) -> subprocess.CompletedProcess[str]:
    if not torch:
        (site / "sitecustomize.py").write_text(WITHOUT_TORCH)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "VLGYM_"))}
    env["PYTHONPATH"] = os.pathsep.join([str(site), str(ROOT), env.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", *words], env=env, cwd=site, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


WITHOUT = """
import json, os, sys
before = dict(os.environ)
import vlgym
record = next(record for record in vlgym.get_registry().plugins if record.name == "baselines")
heavy = [name for name in ("torch", "transformers", "tyro") if name in sys.modules]
print(json.dumps([record.error, sorted(record.policies), heavy, dict(os.environ) == before]))
if len(sys.argv) > 1:
    try:
        record.policies["hf"]("runs/demo/model")
    except vlgym.UserError as error:
        print(error)
    import baselines.models
"""


@pytest.mark.parametrize("torch", [True, False])
def test_importing_vlgym_loads_the_plugin_in_silence_and_no_torch(site: Path, torch: bool) -> None:
    done = run_python(site, "-c", WITHOUT, *([] if torch else ["use"]), torch=torch)
    first, *others = done.stdout.splitlines()
    assert json.loads(first) == [None, ["hf"], [], True]
    if torch:
        assert (others, done.stderr) == ([], "")
        return
    (policy,) = others
    missing = "torch, peft, which are not installed: pip install"
    assert policy.startswith(f"The policy hf:runs/demo/model needs {missing}")
    assert "[train]" in policy
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: The learners need {missing}")


def test_a_learner_sets_its_threads_up_before_torch_or_says_what_is_missing(site: Path) -> None:
    (site / "torch").mkdir()
    source = "import os, sys\nsys.exit('policy ' + os.environ['OMP_WAIT_POLICY'])\n"
    (site / "torch" / "__init__.py").write_text(source)
    assert run_python(site, "-c", "import baselines.engine.engine").stderr == "policy PASSIVE\n"
    done = run_python(site, "-m", "baselines.vldac", "--help", torch=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: The learners need torch, peft, which are not installed")


def test_a_dry_run_of_a_model_counts_the_test_of_its_sight_and_loads_nothing(site: Path) -> None:
    command = ["eval", "--policy", "hf:nowhere", "--env", "vlgym/NumberLine-v1", "--episodes", "3"]
    done = run_python(site, "-m", "vlgym", *command, "--dry-run", "--out", "run", torch=False)
    assert done.returncode == 0, done.stderr
    counts = re.findall(r"at most ([\d,]+) requests", done.stdout)
    requests = [int(count.replace(",", "")) for count in counts]
    assert "can-it-see, once for each model" in done.stdout
    assert requests[0] == 60
    assert requests[2] == requests[0] + requests[1] > 60
