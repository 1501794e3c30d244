"""Plans: parts of ids and suites, numbers of episodes, and changed environments."""

import dataclasses
from collections.abc import Iterator

import pytest
from toys import installed, make_entry, make_spec

from vlgym.errors import MissingSystemPartError, UserError
from vlgym.evaluation import plan
from vlgym.evaluation.plan import Part, add_controls, list_jobs, list_suites, plan_ids, plan_suite
from vlgym.registry import Registry, get_registry
from vlgym.registry.plugins import PluginRecord
from vlgym.registry.suites import SuitePart

WALK = make_spec(splits=("train", "test"))
COIN = make_spec("vlgym/Coin-v0", "toys:Coin", planners=("online", "global"), max_turns=30)
SHARE = SuitePart("two-lengths", COIN.id, ({}, {"max_turns": 2}), repeats=2, planners=("online", "global"))


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    with installed(WALK, COIN, known={"vlgym/Gone-v0": make_entry(make_spec("vlgym/Gone-v0"))}):
        record = PluginRecord("toys", "vlgym-toys", "1.0", specs=(WALK, COIN), suites=(SHARE,))
        live = dataclasses.replace(get_registry(), plugins=(record,))
        monkeypatch.setattr(plan, "get_registry", lambda: live)
        yield live


def test_numbers_run_through_repeats_then_seeds_then_items() -> None:
    part = Part(COIN.id, episodes=3, repeats=2, items=({}, {"max_turns": 2}))
    assert part.total == 12
    assert [part.item_of(n) for n in range(12)] == [0] * 6 + [1] * 6
    (fresh,) = [dataclasses.replace(part, planner="global", fresh_seeds=True)]
    assert (part.per_seed, fresh.per_seed) == (2, 1)
    assert [each.key for each in add_controls([fresh], ("grey", "shuffled"))] == [
        f"{COIN.id} global", f"{COIN.id} global grey", f"{COIN.id} global shuffled",
    ]  # fmt: skip


def test_the_longest_episodes_come_first_and_finished_ones_not_at_all() -> None:
    parts = [Part(WALK.id, episodes=2), Part(COIN.id, episodes=2)]
    jobs = [(job.part.env_id, job.number) for job in list_jobs(parts, {(COIN.id, 0), (WALK.id, 1)})]
    assert jobs == [(COIN.id, 1), (WALK.id, 0)]


@pytest.mark.parametrize(("part", "changed"), [
    (Part(COIN.id), False), (Part(COIN.id, pictures="grey"), False),
    (Part(COIN.id, arguments={"parser": "json", "invalid_penalty": 0}), False),
    (Part(COIN.id, arguments={"invalid_penalty": 1}), True), (Part(COIN.id, arguments={"max_turns": 3}), True),
    (Part(COIN.id, items=({"max_turns": 3},)), True), (Part(COIN.id, planner="global"), True),
])  # fmt: skip
def test_floor_and_ceiling_hold_for_the_measured_environment(part: Part, changed: bool) -> None:
    assert part.changed is changed


def test_ids_with_a_wrong_split_or_planner_are_refused() -> None:
    assert [part.env_id for part in plan_ids([WALK.id, COIN.id, WALK.id])] == [WALK.id, COIN.id]
    with pytest.raises(UserError, match="Walk-v0 has no split 'val'; it has train, test"):
        plan_ids([COIN.id, WALK.id], split="val")
    with pytest.raises(UserError, match="Walk-v0 cannot be played by a global planner; it has online"):
        plan_ids([COIN.id, WALK.id], planner="global")
    with pytest.raises(UserError, match="--split='tset' is not one of train, val, test"):
        plan_ids([COIN.id], split="tset")


def test_a_contributed_suite_keeps_its_items_repeats_and_planners() -> None:
    parts, missing = plan_suite("two-lengths")
    assert [(p.key, p.episodes, p.repeats, p.items) for p in parts] == [
        (COIN.id, 1, 2, ({}, {"max_turns": 2})), (f"{COIN.id} global", 1, 2, ({}, {"max_turns": 2})),
    ]  # fmt: skip
    assert all(part.fresh_seeds and part.per_seed == 1 for part in parts)  # as a benchmark's runs
    assert missing == []
    only, _ = plan_suite("two-lengths", planner="global", repeats=5)
    assert [(p.key, p.repeats) for p in only] == [(f"{COIN.id} global", 5)]
    with pytest.raises(UserError, match=r"--suite='two-lenghts'.*Nearest: two-lengths"):
        plan_suite("two-lenghts")
    assert {"all", "quick", "paper", "two-lengths"} <= set(list_suites())


def test_a_core_suite_leaves_out_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plan.OWN_SUITES, "quick", (WALK.id, "vlgym/Gone-v0"))
    parts, missing = plan_suite("quick")
    assert [(part.env_id, part.episodes) for part in parts] == [(WALK.id, 10)]
    assert missing == ["vlgym/Gone-v0"]
    with pytest.raises(UserError, match=r"Nothing of suite quick .* with planner global"):
        plan_suite("quick", planner="global")


def test_the_suites_of_the_core_name_environments_that_exist() -> None:
    known = set(get_registry().known)
    for name in ("quick", "paper"):
        assert set(plan.OWN_SUITES[name]) <= known
    cards = {env_id: entry["spec"] for env_id, entry in get_registry().known.items()}
    quick = [cards[env_id] for env_id in plan.QUICK_IDS]
    families = {card.family for card in cards.values()} - {"toys", "outside"}
    assert {card.family for card in quick} == families
    assert not any(card.replaced_by for card in quick)


def test_what_cannot_be_made_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Part.make

    def refuse(part: Part, item: int = 0) -> object:
        if part.env_id == COIN.id or item == 1:
            raise MissingSystemPartError("no engine")
        return make(part, item)

    parts, _ = plan_suite("two-lengths", planner="online")
    assert plan.leave_out(parts) == (parts, {})
    monkeypatch.setattr(Part, "make", refuse)
    with pytest.raises(MissingSystemPartError, match="no engine"):
        plan.leave_out(parts)
    walk = dataclasses.replace(plan.plan_ids([WALK.id])[0], items=({}, {"max_turns": 3}, {"max_turns": 4}))
    left = dataclasses.replace(walk, items=({}, {"max_turns": 4}))
    assert plan.leave_out([*parts, walk]) == ([left], dict.fromkeys((COIN.id, WALK.id), "no engine"))
