"""The policy `blind`: which player it takes, and that it plays by name."""

from __future__ import annotations

from typing import Any

import pytest

from vlgym.evaluation import evaluate
from vlgym.evaluation.policy_names import make_policy
from vlgym.play.policies import RandomPolicy
from vlgym.registry import get_registry
from vlgym.registry.registry_file import read_registry
from vlgym.sight.blind import Searcher
from vlgym.sight.blind_policies import choose_player


@pytest.mark.parametrize(
    ("env_id", "best", "name"),
    [
        ("vlgym/NumberLine-v1", "fixed moves", "fixed moves"),
        ("vlgym/NumberLine-v1", "searcher", "searcher"),
        ("vlgym/NumberLine-v1", "always +", "always +"),
        ("vlgym/NumberLine-v1", "random", "random"),
        ("vlgym/NumberLine-v1", None, "fixed moves"),
        ("vlgym/Blackjack-v0", None, "searcher"),
        ("vlgym/Blackjack-v0", "a player that is gone", "searcher"),
    ],
)
def test_the_player_is_the_recorded_one_else_the_cards_own_else_the_searcher(
    env_id: str, best: str | None, name: str
) -> None:
    entry: dict[str, Any] = {"blind": {"success_policy": best}} if best else {}
    assert choose_player(get_registry().get(env_id), entry).name == name
    assert choose_player(None, None).name == Searcher.name
    assert isinstance(choose_player(None, {"blind": {"success_policy": "random"}}), RandomPolicy)


def test_by_its_name_it_plays_what_the_registry_names() -> None:
    entry = read_registry()["vlgym/Blackjack-v0"]
    best = choose_player(get_registry().get("vlgym/Blackjack-v0"), entry)
    assert best.name == entry["blind"]["success_policy"] == "always stand"
    seen, direct = (
        evaluate("vlgym/Blackjack-v0", policy, episodes=12, num_envs=1).mean_return
        for policy in (make_policy("blind", {}), best)
    )
    assert seen == direct
