"""Environments for other trainers: episodes equal Gymnasium's for the same seeds and replies."""

from __future__ import annotations

import importlib
import pkgutil

import gymnasium
import numpy as np
import pytest

from vlgym.env.seeding import episode_seed
from vlgym.errors import NotInstalledError, UserError
from vlgym.integrations import trl
from vlgym.integrations.trl import HOW, ActionParser, log_episodes, make_factory, make_rows
from vlgym.parsers import TagParser

ENV = "vlgym/NumberLine-v1"


@pytest.fixture(autouse=True)
def _as_if_trl_was_installed(monkeypatch):
    monkeypatch.setattr(trl, "TRL_MODULES", ())


@pytest.mark.parametrize("env_id", [ENV, pytest.param("vlgym/SeeText-v0", marks=pytest.mark.exhaustive)])
def test_an_episode_of_trls_is_gymnasiums(env_id):
    game, rng = make_factory(env_id)(), np.random.default_rng(0)
    for row in make_rows(env_id, 2):
        env = gymnasium.make(env_id, disable_env_checker=True)
        observation, info = env.reset(seed=row["seed"])
        shown = game.reset(**row)
        text = shown[1]["text"]
        assert text.replace(ActionParser().describe(), TagParser().describe()) == observation["text"]
        total, over, rows = 0.0, False, []
        assert (game.seed, game.replies) == (row["seed"], [])
        while not over:
            picture, told = shown
            assert np.array_equal(np.asarray(picture["image"]), observation["image"])
            turn_text = info["vlgym"]["turn_text"].replace(" End with <action>ACTION</action>.", "")
            assert told["text"] == (turn_text if game.replies else text)
            action = str(rng.choice([*env.unwrapped.legal_actions(), "nothing"]))
            observation, reward, terminated, truncated, info = env.step(f"<action>{action}</action>")
            shown = game.act(action)
            total, over = total + float(reward), terminated or truncated
            assert game.replies[-1] == action
            form = "tool" if info["vlgym"]["form"] else None  # which reads the argument of a call as the action
            rows.append({"reward": reward, "invalid": info["invalid_action"], "form": form, "success": info["success"]})
            assert (game.get_reward(), game.over, game.success) == (total, over, info["success"])
        assert shown == [{"type": "text", "text": "The episode is over."}]
        with pytest.raises(UserError, match="The episode is over"):
            game.act(action)
        assert game.get_reward() == total
        assert game.turns == rows
        means = {}
        told = log_episodes(environments=[game, None], log_metric=means.__setitem__, seed=[1, 1])
        assert told == [None, None]
        assert means == {"success": info["success"], "invalid_turns": sum(row["invalid"] for row in rows)}


def test_a_plan_is_the_whole_reply():
    game = make_factory("vlgym/Sokoban-v0", planner="global")()
    assert game.reset(seed=1)[2] == {"type": "text", "text": f"\n{HOW}"}
    game.act("<plan>up; up</plan>")
    assert game.over


def test_without_trl_the_error_says_what_installs_it(monkeypatch):
    monkeypatch.setattr(trl, "TRL_MODULES", ("torch", "no_such_module"))
    with pytest.raises(NotInstalledError, match=r"TRL needs no_such_module, .*pip install .*\[trl\]"):
        make_factory(ENV)


def test_rows_are_the_episodes_of_a_split():
    rows = make_rows(ENV, 3, split="val", first=2)
    assert [row["seed"] for row in rows] == [episode_seed(ENV, "val", index) for index in (2, 3, 4)]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: make_factory("vlgym/Nothing-v0"), "No environment"),
        (lambda: make_factory(ENV, sides=3), "no argument 'sides'"),
        (lambda: make_rows(ENV, 3, split="exam"), "split"),
        (lambda: make_rows(ENV, 0), "episodes"),
    ],
)
def test_wrong_arguments_are_told_before_anything_is_trained(act, message):
    with pytest.raises(UserError, match=message):
        act()


def test_the_former_name_warns_and_has_all_modules():
    with pytest.warns(DeprecationWarning, match=r"vlgym\.integrations"):
        old = importlib.import_module("vlgym.doors")
    assert importlib.import_module("vlgym.doors.trl").HOW == HOW
    assert {each.name for each in pkgutil.iter_modules(old.__path__)} > {"agent", "canary", "verifiers"}
