"""The packaging metadata agree with the folders: extras, versions, entry points, and the versions that tests pin."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PLUGINS = {
    path.parent.name: tomllib.loads(path.read_text())["project"] for path in ROOT.glob("plugins/*/pyproject.toml")
}


def test_every_plugin_has_an_extra_of_its_family_name_and_all_names_them_all() -> None:
    extras = CORE["optional-dependencies"]
    expected = {family: [f"vlgym-{family}>=0.1,<0.2"] for family in PLUGINS}
    assert {family: extras.get(family) for family in expected} == expected
    assert sorted(extras["all"]) == sorted(item for items in expected.values() for item in items)
    assert set(extras) == {*expected, "all", "train"}


@pytest.mark.parametrize("family", sorted(PLUGINS))
def test_a_plugin_is_named_after_its_folder_and_found_through_its_entry_point(family: str) -> None:
    project = PLUGINS[family]
    assert project["name"] == f"vlgym-{family}"
    assert project["version"] == CORE["version"]
    assert project["entry-points"]["vlgym"] == {family: f"vlgym_{family}.plugin"}
    assert "vlgym>=0.1,<0.2" in project["dependencies"]
    assert project["requires-python"] == CORE["requires-python"]
    assert (ROOT / "plugins" / family / "README.md").exists()


def test_the_version_in_the_code_is_the_distributions() -> None:
    assert f'__version__ = "{CORE["version"]}"' in (ROOT / "vlgym" / "__init__.py").read_text()


def test_every_direct_dependency_is_pinned_for_the_tests() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    wanted = [*CORE["dependencies"], *CORE["optional-dependencies"]["train"]]
    wanted += [item for project in PLUGINS.values() for item in project["dependencies"]]
    wanted += [item for items in groups.values() for item in items]
    names = {re.split(r"[<>=!\[ ;]", item)[0].lower().replace("_", "-") for item in wanted}
    text = (ROOT / "constraints.txt").read_text()
    pinned = {match.lower().replace("_", "-") for match in re.findall(r"^([\w-]+)==", text, re.MULTILINE)}
    assert sorted(name for name in names - pinned if not name.startswith("vlgym")) == []
