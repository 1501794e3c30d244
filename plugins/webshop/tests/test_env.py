"""The environment: episodes, splits, rewards, sub-scores, baselines, and one browser under many."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from vlgym_webshop.blind import Shopper
from vlgym_webshop.services import get_services

from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError
from vlgym.parsers import get_parser, read_reply
from vlgym.registry.making import make, unwrap

ID = "vlgym/WebShop-v0"


def build(**kwargs: Any) -> Any:
    return unwrap(make(ID, **kwargs))


@pytest.fixture
def env() -> Iterator[Any]:
    made = build()
    yield made
    made.close()


def do(env: Any, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    return env.step(f"<action>{action}</action>")


def test_environments_share_one_browser_and_none_sees_another_s_page() -> None:
    envs, services = [build() for _ in range(3)], get_services()
    assert services.server is None
    assert services.windows.processes() == []
    for index, env in enumerate(envs):
        env.reset(seed=100 + index)
    assert len({env.task() for env in envs}) == 3
    assert services.windows.started == 1
    for env in envs:
        do(env, env.legal_actions()[0])
    alone = build()
    for index in (0, 2):
        alone.reset(seed=100 + index)
        do(alone, alone.legal_actions()[0])
        np.testing.assert_array_equal(alone.image(), envs[index].image())
    for env in [*envs, alone]:
        env.close()
    assert services.windows.processes() == []


@pytest.mark.usefixtures("blank")
def test_a_purchase_pays_the_published_reward_and_reports_its_parts(env: Any) -> None:
    env.reset(seed=episode_seed(ID, "test", 0), options={"goal": 2})
    goal = env.goal
    do(env, env.oracle() or "")
    do(env, f"click[{goal.asin.lower()}]")
    _, reward, terminated, truncated, info = do(env, "click[buy now]")
    terms = len(goal.attributes) + len(goal.options) + 1
    assert goal.options
    assert reward == pytest.approx((len(goal.attributes) + 1) / terms)
    assert (terminated, truncated, info["success"], info["purchased"]) == (True, False, False, True)
    parts = [info[f"{part}_score"] for part in ("attribute", "option", "type", "price")]
    assert parts == [1.0, 0.0, 1.0, 1.0]
    assert info["score"] == pytest.approx(100 * reward)


@pytest.mark.usefixtures("blank")
def test_the_seed_s_split_chooses_the_goal_and_the_argument_overrides_it(env: Any) -> None:
    for split, (first, last) in {"test": (0, 500), "val": (500, 1500), "train": (1500, 12_087)}.items():
        for index in range(3):
            assert first <= env.reset(seed=episode_seed(ID, split, index))[1]["goal"] < last
    assert env.reset(seed=3)[1]["goal"] >= 1500  # a seed of nobody's split means train
    assert build(split="test").reset(seed=episode_seed(ID, "train", 0))[1]["goal"] < 500
    env.reset(seed=episode_seed(ID, "val", 0))
    assert 500 <= env.reset()[1]["goal"] < 1500  # without a seed the split goes on


def test_the_oracle_recovers_from_any_page(env: Any) -> None:
    rng = np.random.default_rng(0)
    for index in range(10):
        env.start(rng, {"split": "val"})
        for _ in range(int(rng.integers(1, 15))):
            legal = [action for action in env.legal_actions() if action != "click[buy now]"]
            env.act(legal[int(rng.integers(len(legal)))])
        for _ in range(20):
            outcome = env.act(env.match_action(env.oracle() or "") or "")
            if outcome.terminated:
                break
        assert outcome.reward == 1.0, index


@pytest.mark.parametrize("form", ["<action>**{}**.</action>", r"\boxed{{{}}}"])
def test_auto_reads_what_the_page_accepts_and_nothing_else(env: Any, form: str) -> None:
    env.start(np.random.default_rng(0), {"split": "val"})

    def read(action: str) -> Any:
        return read_reply(get_parser("auto"), form.format(action), env.legal_actions(), env.match_action)

    for action in ("search[a red mug, 3 pieces]", env.oracle() or ""):
        assert read(action).actions == (action,)
    for refused in ("click[no such product]", "search[]", "buy now"):
        assert read(refused).failure in ("no_action", "illegal_action")
    env.act(env.match_action(env.oracle() or "") or "")
    click = env.legal_actions()[-1]
    assert read(click).actions == (click,)
    assert read("search[mug]").failure


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"split": "dev"}, "split='dev' is not one of train, val, test"),
        ({"products": 5}, "products=5 must be >= 100"),
        ({"catalogue_seed": -1}, "must be >="),
        ({"nouns": "spacey", "products": 100}, "Nearest: spacy"),
    ],
)
def test_bad_arguments_are_refused_with_a_clear_word(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(**kwargs).reset(seed=1)


@pytest.mark.parametrize("options", [{"goal": -1}, {"goal": 12_087}, {"goal": "3"}, {"split": "dev"}])
def test_bad_reset_options_are_refused(env: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        env.reset(seed=1, options=options)


def test_the_blind_shopper_buys_the_product_of_the_page_with_the_most_fitting_options() -> None:
    wish = "Instruction: i want a dark blue, extra large shirt, and price lower than 40.00 dollars\n"

    def clicks(*names: str) -> tuple[str, ...]:
        return tuple(f"click[{name}]" for name in names)

    fixed = clicks("back to search", "< prev", "description", "features", "reviews", "buy now")
    results = clicks("back to search", "next >", "b0aaaaaaaa", "b0bbbbbbbb")
    plain = (*fixed, *clicks("red", "small"))
    right = (*fixed, *clicks("blue", "dark blue", "extra large", "arge"))
    steps = [
        (("search[dark blue shirt]",), "search[dark blue shirt]"), (results, "click[b0aaaaaaaa]"),
        (plain, "click[< prev]"), (results, "click[b0bbbbbbbb]"), (right, "click[< prev]"),
        (results, "click[b0bbbbbbbb]"), (right, "click[blue]"), (right, "click[dark blue]"),
        (right, "click[extra large]"), (right, "click[buy now]"),
    ]  # fmt: skip
    player = Shopper(random.Random(0))
    assert [player.choose(wish, legal) for legal, _ in steps] == [action for _, action in steps]
