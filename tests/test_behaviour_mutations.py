"""The list of mutations is whole and still fits the source, and the fingerprint notices those that are cheap to run."""

from __future__ import annotations

import behaviour_mutations
import pytest
from behaviour_mutations import MUTATIONS, ROOT, Mutation, judge, measure

CHEAP = (
    "the dealer stands at 16",
    "another number is drawn",
    "the picture is upside down",
    "a 22nd token fits",
    "rewards are doubled on the test split",
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: f"{each.env_id}: {each.what}")
def test_a_mutation_still_fits_its_source(mutation: Mutation) -> None:
    assert (ROOT / mutation.path).read_text(encoding="utf-8").count(mutation.old) == 1


def test_there_are_at_least_sixty_mutations_of_every_family_and_few_that_nobody_notices() -> None:
    assert len(MUTATIONS) >= 60
    assert sum(bool(mutation.unseen) for mutation in MUTATIONS) <= len(MUTATIONS) - 57
    families = {mutation.path.split("/")[1] for mutation in MUTATIONS if mutation.path.startswith("plugins/")}
    assert families == {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
    assert len({(mutation.env_id, mutation.what) for mutation in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize("what", CHEAP)
def test_a_broken_rule_changes_the_fingerprint_or_the_pictures(what: str) -> None:
    mutation = next(mutation for mutation in MUTATIONS if mutation.what == what)
    assert judge(mutation, measure(mutation.env_id, [])) in ("fingerprint", "pictures")


def test_a_change_of_nothing_is_not_noticed() -> None:
    same = Mutation("nothing", "NumberLine", "plugins/cards/src/vlgym_cards/number_line.py", 'ACTIONS = ("-", "+")',
                    'ACTIONS = ("-", "+")  # as before')  # fmt: skip
    assert judge(same, measure("NumberLine", [])) == ""


def test_the_page_says_what_was_not_noticed_and_why() -> None:
    rows = {f"{each.env_id}: {each.what}": "fingerprint" for each in MUTATIONS[1:]}
    page = behaviour_mutations.write_page(rows)
    assert "| not run |" in page
    assert f"{len(MUTATIONS) - 1} of {len(MUTATIONS)} were run, {len(MUTATIONS) - 1} were noticed" in page
