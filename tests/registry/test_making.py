"""From an id to an environment: through Gymnasium, through vlgym, and the messages of failures."""

from typing import Any

import gymnasium
import pytest
from toys import Walk, installed, make_spec

from vlgym.errors import MissingSystemPartError, PluginError, UserError
from vlgym.registry import get_registry
from vlgym.registry.making import build, load_class, make, register_all, unwrap

WALK = make_spec()


def test_gymnasium_makes_an_installed_id_with_and_without_the_module_prefix() -> None:
    with installed(WALK):
        for env_id in ("vlgym/Walk-v0", "vlgym:vlgym/Walk-v0"):
            env = gymnasium.make(env_id, render_mode="rgb_array", invalid_penalty=0.5)
            assert isinstance(env.unwrapped, Walk)
            assert unwrap(env).invalid_penalty == 0.5
            observation, _ = env.reset(seed=0)
            assert env.observation_space.contains(observation)
            env.close()


def test_vlgym_makes_the_bare_environment_whose_specs_arguments_are_defaults() -> None:
    with installed(WALK):
        env = make("vlgym/Walk-v0", max_turns=3)
    assert type(env) is Walk
    assert (env.max_turns, env.vlgym_spec) == (3, WALK)
    env = build(make_spec(kwargs={"max_turns": 4, "invalid_action": "random"}), max_turns=5)
    assert (env.max_turns, env.invalid_action) == (5, "random")


def test_an_unknown_argument_lists_all_arguments() -> None:
    with installed(WALK), pytest.raises(UserError) as caught:
        gymnasium.make("vlgym/Walk-v0", invalid_penalti=1)
    message = str(caught.value)
    assert message.startswith("vlgym/Walk-v0 has no argument 'invalid_penalti'; it takes ")
    names = ("parser", "invalid_action", "invalid_penalty", "max_turns", "image_size", "render_mode")
    assert [name for name in (*names, "Nearest: invalid_penalty") if name not in message] == []


@pytest.mark.parametrize(
    ("entry_point", "message"),
    [
        ("no_such_module_here:Walk", r"cannot import no_such_module_here:Walk: ModuleNotFoundError"),
        ("toys:NoSuchClass", "AttributeError"),
        ("toys:make_spec", "is not a subclass of vlgym.env.VLEnv"),
    ],
)
def test_a_wrong_entry_point_is_a_plugin_error(entry_point: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        load_class(make_spec(entry_point=entry_point))


def test_a_user_error_passes_through(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from vlgym.errors import MissingSystemPartError as Missing\nraise Missing('apt-get install libgl1')\n"
    (tmp_path / "needs_gl.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingSystemPartError, match=r"^apt-get install libgl1$"):
        load_class(make_spec(entry_point="needs_gl:Env"))


def test_registering_twice_changes_nothing() -> None:
    before = dict(gymnasium.registry)
    register_all(get_registry())
    assert gymnasium.registry == before


def test_a_turn_limit_that_no_text_tells_is_refused_in_one_line() -> None:
    refusal = r"^max_episode_steps=4 is not told by the texts; give max_turns=4 instead\.$"
    with pytest.raises(UserError, match=refusal):
        gymnasium.make("vlgym/NumberLine-v1", max_episode_steps=4)
    options = {"num_envs": 2, "vectorization_mode": "sync"}
    with pytest.raises(UserError, match=refusal):
        gymnasium.make_vec("vlgym/NumberLine-v1", **options, max_episode_steps=4)
    coin = make_spec("vlgym/Coin-v0", "toys:Coin")
    with installed(coin):
        vector = gymnasium.make_vec(coin.id, **options, max_turns=4)
        observation, _ = vector.reset(seed=1)
    assert observation["image"].shape == (2, 22, 22, 3)
    assert "turn 1 of 4" in observation["text"][1]
    vector.close()
