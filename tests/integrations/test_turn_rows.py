"""TRL, and the page's recipe for VAGEN: episodes equal Gymnasium's for the same seeds and replies."""

import asyncio
import importlib
import pkgutil
import re

import gymnasium
import numpy as np
import pytest
from sources import ROOT

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
        content = game.reset(**row)
        text = content[1]["text"]
        assert text.replace(ActionParser().describe(), TagParser().describe()) == observation["text"]
        over, rows, actions = False, [], []
        while not over:
            picture, words = content
            assert np.array_equal(np.asarray(picture["image"]), observation["image"])
            turn_text = info["vlgym"]["turn_text"].replace(" End with <action>ACTION</action>.", "")
            assert words["text"] == (turn_text if game.replies else text)
            actions.append(str(rng.choice([*env.unwrapped.legal_actions(), "nothing"])))
            observation, reward, terminated, truncated, info = env.step(f"<action>{actions[-1]}</action>")
            content, over = game.act(actions[-1]), terminated or truncated
            form = "tool" if info["vlgym"]["form"] else None
            rows.append({"reward": reward, "invalid": info["invalid_action"], "form": form})
            rows[-1]["success"] = info["success"]
            assert (game.get_reward(), game.over) == (sum(row["reward"] for row in rows), over)
        assert content == [{"type": "text", "text": "The episode is over."}]
        with pytest.raises(UserError, match="The episode is over"):
            game.act("nothing")
        assert (game.seed, game.replies, game.turns) == (row["seed"], actions, rows)
        assert game.success == info["success"]
        means = {}
        assert log_episodes(environments=[game, None], log_metric=means.__setitem__, seed=[1, 1]) == [None, None]
        invalid = sum(row["invalid"] for row in rows)
        assert means == {"success": info["success"], "invalid_turns": invalid}


def test_a_plan_is_the_whole_reply():
    game = make_factory("vlgym/Sokoban-v0", planner="global")()
    assert game.reset(seed=1)[2] == {"type": "text", "text": f"\n{HOW}"}
    game.act("<plan>up; up</plan>")
    assert game.over


def test_without_trl_the_error_says_what_installs_it(monkeypatch):
    monkeypatch.setattr(trl, "TRL_MODULES", ("torch", "no_such_module"))
    with pytest.raises(NotInstalledError, match=r"TRL needs no_such_module, .*install .*\[trl\]"):
        make_factory(ENV)


def test_rows_are_the_episodes_of_a_split():
    rows = make_rows(ENV, 3, split="val", first=2)
    assert [row["seed"] for row in rows] == [episode_seed(ENV, "val", index) for index in (2, 3, 4)]


def test_wrong_arguments_are_told_before_anything_is_trained():
    with pytest.raises(UserError, match="No environment"):
        make_factory("vlgym/Nothing-v0")
    with pytest.raises(UserError, match="no argument 'sides'"):
        make_factory(ENV, sides=3)


def test_the_former_name_warns_and_has_all_modules():
    with pytest.warns(DeprecationWarning, match=r"vlgym\.integrations"):
        old = importlib.import_module("vlgym.doors")
    assert importlib.import_module("vlgym.doors.trl").HOW == HOW
    assert {each.name for each in pkgutil.iter_modules(old.__path__)} > {"agent", "canary", "verifiers"}


@pytest.fixture
def vagen_class():
    """The class of the recipe, which has VAGEN's interface at c27067d9."""
    (recipe,) = re.findall(r"```text\n(from PIL.*?)```", (ROOT / "docs/trainers.md").read_text(), re.DOTALL)
    names = {}
    exec(recipe, names)  # noqa: S102 - our own page
    return names["Game"]


def check_marks(seen):
    """Check what VAGEN's `convert_obs_to_content` does."""
    pictures = seen.get("multi_modal_input", {}).get("<image>", [])
    assert seen["obs_str"].count("<image>") == len(pictures)
    assert "<video>" not in seen["obs_str"]
    return [np.asarray(picture) for picture in pictures]


@pytest.mark.parametrize("env_id", ["vlgym/NumberLine-v1", "vlgym/CanaryMemory-v0"])
def test_an_episode_of_vagens_is_gymnasiums(env_id, vagen_class):
    async def compare(number):
        game = vagen_class({"env_id": env_id, "split": "val", "arguments": {"max_turns": 5}})
        rng = np.random.default_rng(number)
        env = gymnasium.make(env_id, max_turns=5, disable_env_checker=True)
        observation, info = env.reset(seed=episode_seed(env_id, "val", number))
        seen, _ = await game.reset(seed=number)
        assert await game.system_prompt() == {"obs_str": info["vlgym"]["instructions"]}
        over = False
        while True:
            (picture,) = check_marks(seen)
            assert np.array_equal(picture, observation["image"])
            assert seen["obs_str"] == "<image>" + info["vlgym"]["turn_text"]
            if over:
                break
            reply = f"<action>{rng.choice([*env.unwrapped.legal_actions(), 'nothing'])}</action>"
            reply = "no action" if rng.random() < 0.2 else reply
            observation, reward, terminated, truncated, info = env.step(reply)
            seen, *rest, details = await game.step(reply)
            over = terminated or truncated
            assert rest == [reward, over]
            assert (details["success"], details["truncated"]) == (info["success"], truncated)
            assert details["format_correct"] == (info["vlgym"]["parse"] == "ok")
        await game.close()
        env.close()

    for number in range(2):
        asyncio.run(compare(number))


def test_a_mark_of_vagens_in_a_text_stands_for_no_picture(vagen_class):
    game = vagen_class({"env_id": "vlgym/NumberLine-v1"})
    asyncio.run(game.reset(seed=0))
    game.env.state_text = lambda: "<image> and <video>"
    seen, *_ = asyncio.run(game.step("nothing"))
    assert len(check_marks(seen)) == 1
    assert "(image) and (video)" in seen["obs_str"]
    asyncio.run(game.close())
