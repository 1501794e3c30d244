"""registry.yaml: written sorted, read back equal, refused when malformed or too deep, and fresh."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from sources import ROOT
from toys import make_entry, make_spec

from vlgym.cli.registry_cmd import collect_suites, first_party_specs
from vlgym.errors import RegistryFileError
from vlgym.registry import get_registry
from vlgym.registry.limited_yaml import read_yaml
from vlgym.registry.registry_file import (
    BANNER,
    PACKAGED,
    compare_registries,
    find_behaviour_changes,
    find_edit,
    read_registry,
    read_suites,
    write_registry,
)
from vlgym.reports.records import read_run
from vlgym.testing import count_episodes

A, B = make_spec("vlgym/A-v0", kwargs={"n": [1, 2]}, skills=("x",)), make_spec("vlgym/B-v0", oracle="none")
BLIND = {
    "return": 0.5, "se": 0.1, "success": 0.4, "episodes": 20, "policy": "searcher",
    "success_policy": "always x",
}  # fmt: skip
ENTRIES = {"vlgym/B-v0": make_entry(B, ceiling=None), "vlgym/A-v0": make_entry(A, blind=BLIND)}


def test_a_written_file_is_sorted_and_read_back_without_unmeasured_figures(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    for entries in (ENTRIES, dict(reversed(ENTRIES.items())), None):
        write_registry(read_registry(path) if entries is None else entries, path)
        assert read_registry(path, pictures=True) == ENTRIES
    assert sorted(file.name for file in tmp_path.iterdir()) == ["registry.lock", "registry.yaml"]
    text = path.read_text()
    assert text.startswith(BANNER)
    assert text.index("vlgym/A-v0") < text.index("vlgym/B-v0")
    assert "blind" not in read_registry(path)["vlgym/B-v0"]


def test_writing_through_a_link_changes_the_file_and_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "vlgym").mkdir()
    file, link = tmp_path / "vlgym" / "registry.yaml", tmp_path / "registry.yaml"
    link.symlink_to("vlgym/registry.yaml")
    write_registry(ENTRIES, link)
    assert link.is_symlink()
    assert read_registry(file, pictures=True) == ENTRIES


def test_the_package_holds_the_file_as_written_and_the_root_a_relative_link_to_it() -> None:
    assert not PACKAGED.is_symlink()
    link = PACKAGED.parent.parent / "registry.yaml"
    # A clone on Windows has a text file that says the same.
    assert (str(link.readlink()) if link.is_symlink() else link.read_text()) == "vlgym/registry.yaml"
    assert find_edit() is None


def write_changed(path: Path, **changes: object) -> None:
    """Write one entry with keys changed, or left out where the change is `...`."""
    spec = A.to_dict()
    del spec["id"]
    entry = {**make_entry(A), "pictures": ..., "spec": spec, **changes}
    entry = {key: value for key, value in entry.items() if value is not ...}
    path.write_text(json.dumps({"format": 1, "environments": {"vlgym/A-v0": entry}}))


@pytest.mark.parametrize(("text", "message"), [
    ('{"a": 1,\n]', r"registry.yaml cannot be read: .* line 2"), ("", "cannot be read"),
    (None, "cannot be read"), ("\xff\xfe", "cannot be read"), ("[" * 100_000, "cannot be read"),
    ("[1]", "must hold `format: 1`"), ('{"format": 2, "environments": {}}', "must hold `format: 1`"),
    ('{"format": 1, "environments": []}', "must hold `format: 1`"),
    ('{"format": 1, "environments": {"vlgym/A-v0": 3}}', "entry 'vlgym/A-v0'"),
    ({"fingerprint": ...}, "exactly the keys"), ({"spec": 3}, "entry 'vlgym/A-v0'"),
    ({"spec": {"max_turns": 3}}, "missing 5 required positional arguments: 'entry_point'"),
    ({"floor": 3}, "entry 'vlgym/A-v0'"),
    ({"ceiling": {"return": 1}}, "ceiling must be null or hold return, se, success, episodes"),
    ({"blind": {"return": 1, "se": 0, "success": 1, "episodes": 1}}, "blind must be null or hold"),
], ids=range(15))  # fmt: skip
def test_a_malformed_file_is_one_line(text: str | dict[str, object] | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    if isinstance(text, dict):
        write_changed(path, **text)
    elif text is not None:
        path.write_text(text, encoding="latin-1")
    with pytest.raises(RegistryFileError, match=message) as caught:
        read_registry(path)
    assert "vlgym registry" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_changed_file_is_told_and_writing_it_again_heals_it(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    write_registry(ENTRIES, path)
    assert find_edit(path) is None
    text = path.read_text()
    for old, new in (('"return": 0.5', '"return": 0.4'), ('"crc32"', '"crc"')):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        assert re.fullmatch(f"{path} was changed: .* Write it again: vlgym registry.", find_edit(path) or "")
        read_registry(path)
    write_registry(read_registry(path), path)
    assert find_edit(path) is None


def test_another_blind_floor_is_a_difference_and_other_blind_players_are_none() -> None:
    live = make_entry(replace(A, blind=("toys:Walk",)), blind={**BLIND, "return": 0.6})
    [line] = compare_registries({"vlgym/A-v0": ENTRIES["vlgym/A-v0"]}, {"vlgym/A-v0": live})
    assert line.startswith("vlgym/A-v0: blind is ")
    [line] = compare_registries({"vlgym/A-v0": make_entry(A)}, {"vlgym/A-v0": live})
    assert line.endswith("recorded None.")


def test_each_kind_of_difference_is_one_line_and_equal_or_unmeasured_figures_are_none() -> None:
    unmeasured = {key: value for key, value in make_entry(A).items() if key not in ("floor", "ceiling")}
    assert compare_registries({A.id: ENTRIES[A.id]}, {A.id: unmeasured}) == []
    changed, new = replace(A, max_turns=9), make_spec("vlgym/C-v0")
    live = {A.id: make_entry(changed, prompt_hash="bbbb"), new.id: make_entry(new)}
    assert compare_registries(ENTRIES, dict(ENTRIES)) == []
    assert compare_registries(ENTRIES, live) == [
        "vlgym/A-v0: prompt_hash is 'bbbb', recorded 'aaaa'.",
        "vlgym/A-v0: spec field(s) max_turns changed.",
        "vlgym/B-v0: recorded, but no installed first-party plugin provides it.",
        "vlgym/C-v0: provided by vlgym-toys, but not recorded.",
    ]


def test_a_changed_fingerprint_asks_for_a_version() -> None:
    live = {A.id: make_entry(A, fingerprint="2222"), "vlgym/C-v0": make_entry(B, fingerprint="3")}
    (line,) = find_behaviour_changes(ENTRIES, live)
    words = "vlgym/A-v0: the behaviour fingerprint changed from 1111 to 2222; scores may have moved: bump"
    assert line.startswith(words)
    assert line in compare_registries(ENTRIES, live)


def test_ordinary_data_are_read() -> None:
    assert read_yaml("a: [1, 2]\nc: {d: no}") == {"a": [1, 2], "c": {"d": False}}
    assert read_yaml("") is None


@pytest.mark.parametrize(("text", "message"), [
    ("x" * 4_000_001, "characters"), ("[" * 60 + "]" * 60, "nests deeper than the 40"),
    ("\n".join(f"{'  ' * depth}a:" for depth in range(60)), "nests deeper"),
    ("[" * 200_000, "nests deeper"), ("a: &a [x, x]\nb: *a", "has an alias"),
], ids=["long", "deep brackets", "deep blocks", "very deep", "alias"])  # fmt: skip
def test_too_much_is_refused(text: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError, match=message):
        read_yaml(text)


RECORDED = read_registry(PACKAGED)
INSTALLED = first_party_specs(get_registry())


def test_ids_and_distributions_are_those_of_the_plugins() -> None:
    owner = get_registry().owner
    assert set(RECORDED) == set(INSTALLED), "run: vlgym registry"
    owners = {env_id: entry["distribution"] for env_id, entry in RECORDED.items()}
    assert owners == {env_id: owner[env_id] for env_id in RECORDED}


def test_floors_and_ceiling_rest_on_as_many_episodes_as_the_rule_says() -> None:
    for env_id, entry in RECORDED.items():
        episodes = count_episodes(entry["spec"])
        assert episodes >= 100
        for name in ("floor", "blind", "ceiling"):
            known = entry.get(name)
            assert known is None or known["episodes"] == episodes, f"run: vlgym registry --id {env_id}"


def test_the_suites_are_those_that_the_plugins_contribute() -> None:
    assert read_suites(PACKAGED) == collect_suites(get_registry()), "run: vlgym registry"


def test_every_row_of_the_leaderboard_is_of_todays_environments() -> None:
    for folder in sorted((ROOT / "docs" / "results").iterdir()):
        run = read_run(folder)
        assert run.split == "test"
        for part in run.parts.values():
            due, made = RECORDED[part.env_id], part.entry
            parser = f"{made['parser']}-v{made['parser_version']}"
            hashes = (made["spec_hash"], made["prompt_hash"], parser)
            again = f"{folder.name}: play it again: docs/results.md has the command"
            assert hashes == (due["spec"].digest(), due["prompt_hash"], due["parser_hash"]), again
            assert not part.changed
