"""What docs/webshop.md shows is true: its commands run, its episode, tables and pictures are those of the plugin."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from vlgym_webshop.baseline import RulePolicy
from vlgym_webshop.catalogue.records import Goal
from vlgym_webshop.reward import score_purchase
from vlgym_webshop.shop import Shop

from vlgym.chromium import Chromium
from vlgym.evaluation import evaluate
from vlgym.making import make, unwrap

ID = "vlgym/WebShop-v0"
DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "webshop.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)\n```", PAGE, re.DOTALL)
PYTHON = [body for language, body in BLOCKS if language == "python"]
LINES = [line for language, body in BLOCKS if not language for line in body.splitlines()]
SERVE = "python -m vlgym_webshop --port 3000"


def run(command: list[str], folder: Path) -> str:
    """Run a command; return what it printed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without its head."""
    table = re.search(r"\n\|.*?\n\n", PAGE[PAGE.index(heading) :], re.DOTALL)
    assert table is not None
    lines = table.group(0).strip().splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_the_python_block_of_the_page_runs(tmp_path: Path) -> None:
    assert len(PYTHON) == 1
    said = r"^Instruction: Is there a dishwasher safe frying pan in teal.*\nresults False .*\nresults True .*\n$"
    assert re.search(said, run([sys.executable, "-c", PYTHON[0]], tmp_path))


def test_the_example_of_the_readme_runs_and_buys(tmp_path: Path) -> None:
    readme = (DOCS.parent / "plugins" / "webshop" / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)\n```", readme, re.DOTALL)
    assert run([sys.executable, "-c", code], tmp_path).endswith(" 1.0 True\n")


def test_the_rule_plays_three_turns_an_episode_as_the_page_says() -> None:
    assert 'evaluate("vlgym/WebShop-v0", vlgym_webshop.baseline.RulePolicy())' in PAGE
    report = evaluate("vlgym/WebShop-v0", RulePolicy(), episodes=2, num_envs=2)
    assert f"{report.mean_turns:.1f}" == {row[0]: row[3] for row in rows("On the 500 test goals")}["rule"]


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("vlgym ")])
def test_the_commands_of_the_page_run(line: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"  # the name that the page uses
    folder.mkdir()
    table = {"asin": "B01", "name": "Coffee Table", "query": "coffee tables", "product_category": "Home › Tables"}
    wish = {"instruction": "a table", "instruction_attributes": ["solid wood"], "instruction_options": []}
    (folder / "items_shuffle.json").write_text(json.dumps([table]))
    (folder / "items_ins_v2.json").write_text(json.dumps({"B01": {"attributes": ["solid wood"]}}))
    (folder / "items_human_ins.json").write_text(json.dumps({"B01": [wish]}))
    words = shlex.split(line)
    extra = ["--split", "test"] if "data=folder" in words else []  # one goal: there are none to train on
    said = run([str(Path(sys.executable).parent / words[0]), *words[1:], *extra], tmp_path)
    assert "You are shopping" in said or "success" in said.lower()


def test_the_shop_is_served_by_the_command_of_the_page() -> None:
    assert SERVE in LINES
    command = [sys.executable, *shlex.split(SERVE.replace("3000", "0"))[1:]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "http://127.0.0.1:" in process.stdout.readline()
    finally:
        process.terminate()
        process.wait(timeout=30)


def test_every_other_command_installs_this_plugin() -> None:
    others = [line for line in LINES if not line.startswith("vlgym ") and line != SERVE]
    assert others == [Chromium.apt, "pip install -e plugins/webshop"]
    assert importlib.metadata.version("vlgym-webshop")


def test_the_episode_in_the_table_is_the_one_that_is_played() -> None:
    env = unwrap(make(ID))
    env.reset(seed=0, options={"goal": 8})
    for turn, (number, page, action, paid) in enumerate(rows("It is the oracle's episode"), start=1):
        action = action.strip("`")
        assert (int(number), page) == (turn, env.page.kind)  # type: ignore[attr-defined]
        assert action in (env.oracle(), "click[features]")
        _, reward, terminated, _, info = env.step(f"<action>{action}</action>")
        assert (reward, info["invalid_action"]) == (float(paid), False)
    assert terminated
    env.close()


def test_the_rewards_of_the_table_are_those_of_the_formula(shop: Shop) -> None:
    found = (shop.catalogue.goal(number) for number in range(500))
    goal: Goal = next(goal for goal in found if len(goal.attributes) == len(goal.options) == 2)
    product = shop.catalogue.product(goal.asin)
    assert product is not None
    chosen = {name: value for value in goal.options for name, values in product.options.items() if value in values}
    rewards = [
        score_purchase(product, chosen, goal).reward,
        score_purchase(product, {}, goal).reward,
        score_purchase(replace(product, price=goal.price_upper + 1), chosen, goal).reward,
        score_purchase(replace(product, title="Zzyzx"), chosen, goal).reward,
    ]
    shown = [float(row[1].rpartition("=")[2]) for row in rows("The parts are in")]
    assert rewards == pytest.approx(shown)


def test_the_picture_is_fresh_and_small(tmp_path: Path) -> None:
    run([sys.executable, str(DOCS / "episode_pictures.py"), "--out", str(tmp_path), "webshop_episode"], tmp_path)
    kept = DOCS / "images" / "webshop_episode.png"
    assert f"(images/{kept.name})" in PAGE
    assert kept.stat().st_size < 150_000
    old, new = (np.asarray(Image.open(path).convert("RGB"), int) for path in (kept, tmp_path / kept.name))
    assert old.shape == new.shape
    assert np.abs(old - new).mean() < 2, "run: python docs/episode_pictures.py"
