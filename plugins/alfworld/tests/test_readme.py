"""The README's example runs as printed."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_example_of_the_readme_runs_and_succeeds():
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    done = subprocess.run(
        [sys.executable, "-c", code.group(1)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"pick_heat_then_place_in_recep-\w+-None-\w+-\d+ 52\.0 1\.0 True\n", done.stdout)


def test_the_readme_names_all_ids():
    from vlgym_alfworld.plugin import vlgym_envs

    assert all(f"`{spec.id}`" in README.read_text(encoding="utf-8") for spec in vlgym_envs())
    assert len(vlgym_envs()) == 14
