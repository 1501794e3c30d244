"""The environment: episodes, splits, rewards, sub-scores, baselines, and one browser under many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from vlgym_webshop.env import WebShop
from vlgym_webshop.services import get_services

from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError
from vlgym.parsers import get_parser, read_reply
from vlgym.registry.making import make, unwrap

ID = "vlgym/WebShop-v0"


def build(**kwargs: Any) -> WebShop:
    env = unwrap(make(ID, **kwargs))
    assert isinstance(env, WebShop)
    return env


@pytest.fixture
def env() -> Iterator[WebShop]:
    """One environment."""
    made = build()
    yield made
    made.close()


def do(env: WebShop, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    return env.step(f"<action>{action}</action>")


def test_constructing_starts_neither_browser_nor_server(env: WebShop) -> None:
    assert get_services().server is None
    assert get_services().windows.processes() == []
    env.reset(seed=1)
    assert get_services().server is not None
    assert get_services().windows.processes() != []


def test_what_the_results_page_does_not_accept_changes_nothing_and_is_counted(env: WebShop) -> None:
    env.reset(seed=1)
    before = do(env, "search[mug]")[0]
    for action in ("search[more]", "click[search]", "click[buy now]", "click[b0nowhere1]", "click[< prev]", "buy"):
        observation, reward, terminated, _, info = do(env, action)
        assert (reward, terminated, info["invalid_action"], info["page"]) == (0.0, False, True, "results"), action
        np.testing.assert_array_equal(observation["image"], before["image"])


def test_a_purchase_pays_the_published_reward_and_reports_its_parts(env: WebShop) -> None:
    env.reset(seed=episode_seed(ID, "test", 0), options={"goal": 2})
    goal = env.goal
    do(env, env.oracle() or "")
    do(env, f"click[{goal.asin.lower()}]")
    _, reward, terminated, truncated, info = do(env, "click[buy now]")
    terms = len(goal.attributes) + len(goal.options) + 1
    assert goal.options
    assert reward == pytest.approx((len(goal.attributes) + 1) / terms)
    assert (terminated, truncated, info["success"], info["purchased"]) == (True, False, False, True)
    assert (info["attribute_score"], info["option_score"], info["type_score"], info["price_score"]) == (
        1.0,
        0.0,
        1.0,
        1.0,
    )
    assert info["score"] == pytest.approx(100 * reward)


def test_the_seed_s_split_chooses_the_goal_and_the_argument_overrides_it() -> None:
    env, forced = build(), build(split="test")
    for split, (first, last) in {"test": (0, 500), "val": (500, 1500), "train": (1500, 12_087)}.items():
        for index in range(3):
            assert first <= env.reset(seed=episode_seed(ID, split, index))[1]["goal"] < last
    assert env.reset(seed=3)[1]["goal"] >= 1500  # a seed of nobody's split means train
    assert forced.reset(seed=episode_seed(ID, "train", 0))[1]["goal"] < 500
    env.reset(seed=episode_seed(ID, "val", 0))
    assert 500 <= env.reset()[1]["goal"] < 1500  # without a seed the split goes on
    env.close()
    forced.close()


def test_the_oracle_recovers_from_any_page() -> None:
    env = build()
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
    env.close()


@pytest.mark.parametrize(
    "form",
    ["<action>**{}**.</action>", "<answer>{}</answer>", r"\boxed{{{}}}", '{{"action": "{}"}}', "Action: {}", "So\n{}"],
)
def test_auto_reads_searches_and_clicks_that_the_page_accepts_and_no_others(form: str) -> None:
    env, auto = build(), get_parser("auto")
    env.start(np.random.default_rng(0), {"split": "val"})
    for action in ("search[a red mug, 3 pieces]", env.oracle() or ""):
        read = read_reply(auto, form.format(action), env.legal_actions(), env.match_action)
        assert read.actions == (action,)
    for refused in ("click[no such product]", "search[]", "buy now"):
        read = read_reply(auto, form.format(refused), env.legal_actions(), env.match_action)
        assert read.failure in ("no_action", "illegal_action")
    env.act(env.match_action(env.oracle() or "") or "")
    click = env.legal_actions()[-1]
    assert click.startswith("click[")
    assert read_reply(auto, form.format(click), env.legal_actions(), env.match_action).actions == (click,)
    assert read_reply(auto, form.format("search[mug]"), env.legal_actions(), env.match_action).failure
    env.close()


def test_three_environments_share_one_browser_and_none_sees_another_s_page() -> None:
    envs = [build() for _ in range(3)]
    texts = []
    for index, env in enumerate(envs):
        env.reset(seed=100 + index)
        texts.append(env.task())
    for env in envs:
        do(env, env.legal_actions()[0])
    alone = build()
    for index in (0, 2):
        alone.reset(seed=100 + index)
        do(alone, alone.legal_actions()[0])
        np.testing.assert_array_equal(alone.image(), envs[index].image())
    assert len(set(texts)) == 3
    for env in [*envs, alone]:
        env.close()
    assert get_services().windows.processes() == []


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"split": "dev"}, "split='dev' is not one of train, val, test"),
        ({"products": 5}, "products=5 must be >= 100"),
        ({"nouns": "spacey", "products": 100}, "Nearest: spacy"),
    ],
)
def test_bad_arguments_are_refused_with_a_clear_word(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(**kwargs).reset(seed=1)


def test_bad_reset_options_are_refused(env: WebShop) -> None:
    for options in ({"goal": -1}, {"goal": 12_087}, {"goal": "3"}, {"split": "dev"}):
        with pytest.raises(UserError):
            env.reset(seed=1, options=options)
