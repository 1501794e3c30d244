"""What docs/alfworld.md shows is true: its commands run, its episode, tables and pictures are those of the plugin."""

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from PIL import Image
from vlgym_alfworld.generator import fitting_scenes
from vlgym_alfworld.plugin import vlgym_envs
from vlgym_alfworld.tasks import CLEAN, COOL, HEAT, LOOK, PICK, PICK_TWO

import vlgym  # noqa: F401
from vlgym.registry_file import read_registry

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "alfworld.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)\n```", PAGE, re.DOTALL)
PYTHON = [body for language, body in BLOCKS if language == "python"]
LINES = [line for language, body in BLOCKS if not language for line in body.splitlines()]
PICTURES = ("alfworld_episode", "alfworld_kitchen")


def run(command: list[str], folder: Path) -> str:
    """Run a command in an empty home without display or benchmark data; return what it printed."""
    unset = ("ALFWORLD_DATA", "DISPLAY")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        command, env={**environment, "HOME": str(folder)}, cwd=folder, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without its head."""
    table = re.search(r"\n\|.*?\n\n", PAGE[PAGE.index(heading) :], re.DOTALL)
    assert table is not None
    lines = table.group(0).strip().splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_the_python_block_of_the_page_runs(tmp_path: Path):
    assert len(PYTHON) == 1
    said = run([sys.executable, "-c", PYTHON[0]], tmp_path)
    assert re.search(r"\['move cup 1 to cabinet 1'\] 52\.0 1\.0\n$", said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"games": "benchmark"}, r"there are no ALFWorld games in .*Run 'alfworld-download' and set ALFWORLD_DATA"),
        ({"backend": "thor"}, r"thor-201909061227-Linux64.*X display.*alfworld-download"),
    ],
)
def test_what_is_missing_is_named_with_the_way_to_get_it(arguments: dict[str, str], said: str, tmp_path: Path):
    code = (
        "import gymnasium, vlgym\nfrom vlgym.errors import UserError\ntry:\n"
        f"    gymnasium.make('vlgym/ALFWorld-v0', **{arguments}).reset(seed=0)\nexcept UserError as e:\n    print(e)"
    )
    assert re.search(said, run([sys.executable, "-c", code], tmp_path))


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("vlgym ")])
def test_the_commands_of_the_page_run(line: str, tmp_path: Path):
    words = shlex.split(line)
    said = run([str(Path(sys.executable).parent / words[0]), *words[1:]], tmp_path)
    assert "Your task is to" in said or "success" in said.lower()


def test_every_other_command_installs_this_plugin_or_fetches_the_games():
    needed = vlgym_envs()[0].system_requirements
    others = [line for line in LINES if not line.startswith("vlgym ")]
    assert others == [f"apt-get install -y {' '.join(needed)}", "pip install -e plugins/alfworld"]
    assert importlib.metadata.version("vlgym-alfworld")
    assert "`alfworld-download`" in PAGE
    scripts = [path for path in importlib.metadata.files("alfworld") or () if path.name == "alfworld-download"]
    assert '"--force"' in scripts[0].read_text()


def test_the_episode_in_the_table_is_the_one_that_is_played():
    env = gymnasium.make("vlgym/ALFWorldHeat-v0").unwrapped
    env.reset(seed=2)
    for turn, (number, command, paid) in enumerate(rows("The same episode in full"), start=1):
        assert (int(number), env.oracle()) == (turn, command)
        _, reward, terminated, _, _ = env.step(env.parser.format([command]))
        assert reward == float(paid)
    assert terminated


def test_the_table_has_every_id_its_task_and_the_rooms_that_can_host_it():
    short = {"PICK": PICK, "LOOK": LOOK, "CLEAN": CLEAN, "HEAT": HEAT, "COOL": COOL, "PICK2": PICK_TWO}
    shown = rows("## Environments")
    assert [row[0] for row in shown] == [spec.id for spec in vlgym_envs() if spec.replaced_by]
    assert shown[0][1] == "all six, drawn uniformly"
    for env_id, task, _, best, *rooms in shown[1:]:
        assert short[env_id.removeprefix("vlgym/ALFWorld").removesuffix("-v0").upper()] == task
        assert rooms == [str(len(fitting_scenes(task, train))) for train in (True, False)]
        assert int(best) == {CLEAN: 53, HEAT: 53, COOL: 53, LOOK: 52, PICK_TWO: 52, PICK: 51}[task]


def test_floors_and_ceilings_are_measured_on_as_many_episodes_as_the_page_says():
    registry = read_registry()
    for version, episodes in (("-v0", 400), ("-v1", 100)):
        ids = [spec.id for spec in vlgym_envs() if spec.id.endswith(version)]
        assert {registry[env_id][key]["episodes"] for env_id in ids for key in ("floor", "ceiling")} == {episodes}
    assert "of 400 generated test episodes each (`-v1`: 100)" in PAGE


def test_the_pictures_are_fresh_and_small(tmp_path: Path):
    run([sys.executable, str(DOCS / "episode_pictures.py"), "--out", str(tmp_path), *PICTURES], tmp_path)
    for name in PICTURES:
        kept = DOCS / "images" / f"{name}.png"
        assert f"(images/{kept.name})" in PAGE
        assert kept.stat().st_size < 150_000
        old, new = (np.asarray(Image.open(path).convert("RGB"), int) for path in (kept, tmp_path / kept.name))
        assert old.shape == new.shape
        assert np.abs(old - new).mean() < 2, "run: python docs/episode_pictures.py"
