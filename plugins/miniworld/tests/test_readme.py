"""What the README says is so."""

import os
import re
import subprocess
import sys
from pathlib import Path

from vlgym import get_registry

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_of_the_readme_runs_and_wins():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(224, 224, 3) You are a robot")
    assert done.stdout.strip().endswith("True")


def test_every_id_has_an_oracle_and_names_its_system_packages():
    for spec in get_registry().specs.values():
        if spec.family == "miniworld":
            assert spec.oracle == "planner"
            assert "libegl1" in spec.system_requirements
            assert all(package in README for package in spec.system_requirements)
