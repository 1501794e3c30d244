"""Policies by name: what each name makes, and what is said to a wrong one."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from toys import make_walk

from vlgym.errors import PluginError, UserError
from vlgym.evaluation import policy_names
from vlgym.evaluation.policy_names import list_policies, make_policy
from vlgym.play.policies import IdlePolicy, OraclePolicy, RandomPolicy, ReplayPolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import TrajectoryWriter, describe_run
from vlgym.registry import get_registry
from vlgym.registry.plugins import PluginRecord
from vlgym.types import Reply


class Made:
    """A plugin's policy."""

    name = "made"

    def __init__(self, argument: str, *, seed: int = 0, max_tokens: Any = None, colour: str = "red") -> None:
        self.arguments = (argument, seed, max_tokens, colour)

    def reply(self, turns: Any) -> list[Reply]:
        return [Reply("") for _ in turns]


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*records: PluginRecord) -> None:
        live = dataclasses.replace(get_registry(), plugins=records)
        monkeypatch.setattr(policy_names, "get_registry", lambda: live)

    return install


def test_policies_without_an_argument() -> None:
    made = {name: type(make_policy(name, {})) for name in ("idle", "random", "oracle")}
    assert made == {"idle": IdlePolicy, "random": RandomPolicy, "oracle": OraclePolicy}
    for name in ("random:", "random:x"):
        with pytest.raises(UserError, match="random takes nothing after a colon"):
            make_policy(name, {})
    with pytest.raises(UserError, match="--policy random has no option base_url; it takes no options"):
        make_policy("random", {"base_url": "http://127.0.0.1"})


@pytest.mark.parametrize("name", ["scripted", "scripted:", "replay", "openai"])
def test_policies_that_need_an_argument_say_so(name: str) -> None:
    with pytest.raises(UserError, match=r"needs (FILE|FOLDER|MODEL) after the colon"):
        make_policy(name, {})


def test_a_plugins_policy_gets_its_options_and_a_wrong_name_the_nearest(plugins: Any) -> None:
    plugins(PluginRecord("a", "a-dist", "1", policies={"made": Made}))
    assert vars(make_policy("made:a:b", {"seed": 3, "colour": "blue"}))["arguments"] == ("a:b", 3, None, "blue")
    assert vars(make_policy("made", {}))["arguments"] == ("", 0, None, "red")
    with pytest.raises(UserError, match=r"made:x has no option max_token; .* Nearest: max_tokens"):
        make_policy("made:x", {"max_token": 3})
    with pytest.raises(UserError, match=r"--policy='mad' is not one of .*made.* Nearest: made"):
        make_policy("mad:x", {})


def test_two_claims_on_one_name_are_an_error_that_names_both(plugins: Any) -> None:
    plugins(
        PluginRecord("a", "a-dist", "1", policies={"made": Made}),
        PluginRecord("b", "b-dist", "1", policies={"made": Made}),
    )
    with pytest.raises(PluginError, match="'made' is claimed by a-dist and by b-dist"):
        list_policies()
    plugins(PluginRecord("a", "a-dist", "1", policies={"random": Made}))
    with pytest.raises(PluginError, match="'random' is claimed by vlgym itself and by a-dist"):
        list_policies()


def test_a_script_is_read_from_lines_or_from_json(tmp_path: Path) -> None:
    (tmp_path / "replies.txt").write_text("one\ntwo\n")
    (tmp_path / "replies.json").write_text(json.dumps(["one\nline", "two"]))
    for name, texts in (("replies.txt", ["one", "two"]), ("replies.json", ["one\nline", "two"])):
        assert vars(make_policy(f"scripted:{tmp_path / name}", {}))["texts"] == texts


@pytest.mark.parametrize(("name", "content", "message"), [
    ("none.txt", None, "cannot be read: .*No such file"),
    ("empty.txt", b"", "must hold replies"),
    ("binary.txt", b"\xff\xfe\x00", "cannot be read: .*utf-8"),
    ("broken.json", b"[", "cannot be read: Expecting value"),
    ("numbers.json", b"[1]", "must hold replies"),
])  # fmt: skip
def test_a_script_that_is_none_is_one_clear_line(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        make_policy(f"scripted:{tmp_path / name}", {})


def test_a_replay_gives_every_repeat_its_own_reply_with_what_it_took(tmp_path: Path) -> None:
    def play(policy: Any) -> list[Any]:
        runner = Runner([make_walk()], episodes=6, repeats=3, part="vlgym/Walk-v0 grey")
        return list(run_episodes(runner, policy))

    class Numbered(RandomPolicy):
        def reply(self, turns: Any) -> list[Reply]:
            return [Reply(f"{t.seed} {t.repeat} {t.turn}", cut=t.turn == 1, refused=t.turn == 2) for t in turns]

    writer = TrajectoryWriter(tmp_path / "run", describe_run([make_walk()]))
    played = play(Numbered())
    for episode in played:
        writer.write(episode)
    again = make_policy(f"replay:{tmp_path / 'run'}", {})
    assert isinstance(again, ReplayPolicy)
    for before, after in zip(played, play(again), strict=True):
        assert [(r.reply, r.cut, r.refused) for r in before] == [(r.reply, r.cut, r.refused) for r in after]
