"""The list of mistakes that tests/mutations.py makes fits the learners as they are now."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def mutations():
    sys.path.insert(0, str(ROOT / "tests"))
    import mutations

    yield mutations
    sys.path.remove(str(ROOT / "tests"))


def test_every_mistakes_place_is_in_its_file_exactly_once(mutations):
    """Where this fails, a learner's source has changed: write the new text into tests/mutations.toml."""
    wrong = [
        (change.file, change.name, count)
        for change in mutations.MUTATIONS
        if (count := (ROOT / "baselines" / change.file).read_text(encoding="utf-8").count(change.old)) != 1
    ]
    assert wrong == []


def test_a_mistake_changes_something_and_has_a_name_of_its_own(mutations):
    names = [change.name for change in mutations.MUTATIONS]
    assert len(names) >= 200
    assert len(set(names)) == len(names)
    assert len(mutations.LISTED) == 10
    assert set(mutations.LISTED) <= set(names)
    assert [change.name for change in mutations.MUTATIONS if change.old == change.new] == []


def test_a_mistake_is_made_in_a_copy_and_not_in_the_working_tree(mutations):
    change = mutations.MUTATIONS[0]
    with mutations.changed_copy([change]) as copy:
        assert change.new in (copy / "baselines" / change.file).read_text(encoding="utf-8")
    assert change.old in (ROOT / "baselines" / change.file).read_text(encoding="utf-8")
    assert not copy.exists()


def test_the_ten_of_the_lists_head_can_be_made_together(mutations):
    listed = [change for change in mutations.MUTATIONS if change.name in mutations.LISTED]
    with mutations.changed_copy(listed) as copy:
        text = (copy / "baselines" / "vldac.py").read_text(encoding="utf-8")
    assert all(change.new in text for change in listed)


def test_a_mistake_that_fits_nowhere_ends_the_script_with_a_clear_line(mutations, tmp_path):
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "vldac.py").write_text("a\na\n")
    with pytest.raises(SystemExit, match=r"holds its old text 2 times, not once; change it in tests/mutations.toml"):
        mutations.apply(tmp_path, [mutations.Mutation("x", "vldac.py", "a", "b")])
