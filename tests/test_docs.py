"""What the documentation shows is true: generated pages are fresh, quoted Python runs, quoted commands
exist. Links: test_links."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vlgym.installing import how_to_install

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")])
FENCE = re.compile(r"```(\w*)\n(.*?)\n```", re.DOTALL)


def load(path: Path, name: str):
    """Import a file that is no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return load(ROOT / "docs" / "generate.py", "vlgym_docs_generate").generate()


def test_generated_pages_are_fresh(generated: dict[str, str]) -> None:
    pages = {name: text for name, text in generated.items() if not name.startswith(("baselines/", "studies/"))}
    assert {
        "environments.md",
        "cli.md",
        "hooks.md",
        "errors.md",
        "write-a-plugin.md",
        "webui.md",
        "../README.md",
    } <= pages.keys()
    stale = [name for name, text in pages.items() if (ROOT / "docs" / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"


def test_the_learners_pages_are_fresh_and_every_learner_has_one(generated: dict[str, str]) -> None:
    pages = {name: text for name, text in generated.items() if name.startswith("baselines/")}
    stale = [name for name, text in pages.items() if (ROOT / "docs" / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"
    commands = {
        path.stem for path in (ROOT / "baselines").glob("*.py") if "__main__" in path.read_text(encoding="utf-8")
    }
    assert {"vldac", "rl4vlm", "loop", "grpo", "archer", "sft"} <= commands
    assert {f"baselines/{name}.md" for name in commands} <= pages.keys()
    assert "| `--kl-coef` | `0.05` |" in pages["baselines/README.md"]
    assert "| `--thought-weight` | `0.5` | Lambda" in pages["baselines/rl4vlm.md"]


def test_a_card_without_one_of_its_options_is_noticed() -> None:
    cards = load(ROOT / "docs" / "cards.py", "vlgym_docs_cards")

    class Card:
        """A card.

        Goal: none.

        Args:
            size: how large,
                in cells.
        """

        def __init__(self, *, size: int = 3, colour: str | None = None) -> None: ...

    with pytest.raises(ValueError, match="colour"):
        cards.write_options(Card)
    assert Card.__doc__ is not None
    Card.__doc__ += "    colour: its paint.\n        "
    assert cards.write_options(Card).splitlines()[2:] == [
        "| `size` | `3` | how large, in cells. |", "| `colour` | none | its paint. |",
    ]  # fmt: skip
    assert cards.write_card(Card, ["Goal"]) == "- **Goal**: none."


@pytest.mark.parametrize("readme", sorted(ROOT.glob("plugins/*/README.md")), ids=lambda path: path.parent.name)
def test_a_plugins_readme_is_short_and_leads_to_the_family_s_page(readme: Path) -> None:
    text, family = readme.read_text(encoding="utf-8"), readme.parent.name
    assert len(text.splitlines()) <= 30
    page = ROOT / "docs" / f"{family}.md"
    assert f"(../../docs/{page.name if page.exists() else 'environments.md'})" in text
    assert "```python" in text
    assert how_to_install(f"vlgym-{family}", here=ROOT) in text


def test_the_studies_pages_are_made_from_their_raw_runs(generated: dict[str, str]) -> None:
    pages = {name: text for name, text in generated.items() if name.startswith("studies/")}
    assert len(pages) >= 7
    assert all((ROOT / "docs" / name).read_text(encoding="utf-8") == text for name, text in pages.items())


def test_every_quoted_repository_path_exists() -> None:
    broken = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"`((?:vlgym|baselines|tests|docs|plugins)/[\w./-]*(?:/|\.[a-z]+))`", text):
            if "NAME" not in path and not (ROOT / path).exists():
                broken.append(f"{page.relative_to(ROOT)}: {path}")
    assert broken == []


def test_every_quoted_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    quoted = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        quoted |= set(re.findall(r"`make ([a-z-]+)\b", text)) | set(
            re.findall(r"^make ([a-z-]+)\b", text, re.MULTILINE)
        )
    assert {"demo", "test"} <= quoted
    assert quoted <= targets


def readme_python() -> list[str]:
    """The Python blocks of README.md."""
    return [body for language, body in FENCE.findall((ROOT / "README.md").read_text()) if language == "python"]


@pytest.mark.parametrize("index", range(2))
def test_the_python_blocks_of_the_readme_run(index: int) -> None:
    done = subprocess.run([sys.executable, "-c", readme_python()[index]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_readme_has_no_python_block_that_is_not_run() -> None:
    assert len(readme_python()) == 2


def test_the_adapter_example_of_the_docs_walks_the_cliff() -> None:
    example = load(ROOT / "tests" / "fixtures" / "adapter_example.py", "vlgym_adapter_example")
    env = example.CliffWalk(max_turns=50)
    observation, info = env.reset(seed=1)
    assert observation["image"].shape == (224, 224, 3)
    for action in ["up", *["right"] * 11, "down"]:
        assert not info["success"]
        observation, _, terminated, _, info = env.step(f"<action>{action}</action>")
    assert terminated
    assert info["success"]
    assert env.episode_return == -13
    env.close()


def test_the_log_has_its_newest_entry_first() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "docs" / "log.md").read_text(encoding="utf-8"), re.MULTILINE)
    days = [re.fullmatch(r"(\d{4}-\d\d-)(\d\d)(?: and (\d\d))?: .+", heading) for heading in headings]
    assert len(days) > 10
    newest = [day[1] + (day[3] or day[2]) for day in days if day is not None]
    assert newest == sorted(newest, reverse=True)
    assert len(newest) == len(headings)
