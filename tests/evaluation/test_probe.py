"""The test of a model's sight before a run: what is played, and when not again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import invoke
from toys import installed, make_spec

from vlgym.evaluation import policy_names, probe
from vlgym.evaluation.probe import look_first, plan_probe
from vlgym.play.controls import PICTURES, list_pictures
from vlgym.play.policies import OraclePolicy, RandomPolicy
from vlgym.types import Reply

WALK = make_spec()


class Sighted:
    """Answers right as long as it is given the environment's own pictures, and counts what it is asked."""

    name, sees = "sighted", True

    def __init__(self, name: str = "sighted", blind: bool = False) -> None:
        self.name, self.blind, self.requests = name, blind, 0
        self.oracle, self.random = OraclePolicy(), RandomPolicy()

    def reply(self, turns: Any) -> list[Reply]:
        self.requests += len(turns)
        return [(self.oracle if self.given(turn) else self.random).reply([turn])[0] for turn in turns]

    def given(self, turn: Any) -> bool:
        if turn.env.legal_actions() == ["next"]:
            return True
        images = list_pictures(turn.messages)
        return not self.blind and bool(images) and np.array_equal(images[-1], turn.env.image())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VLGYM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "can-it-see"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One probe instead of all."""
    parts = plan_probe()
    monkeypatch.setattr(probe, "plan_probe", lambda: [part for part in parts if part.env_id == parts[0].env_id])


@pytest.mark.usefixtures("short")
def test_a_model_is_looked_at_once_and_a_stopped_look_goes_on(cache: Path) -> None:
    class Stopping(Sighted):
        stop = 20

        def reply(self, turns: Any) -> list[Reply]:
            if self.requests >= self.stop:
                raise KeyboardInterrupt
            return super().reply(turns)

    policy = Stopping()
    with pytest.raises(KeyboardInterrupt):
        look_first(policy, num_envs=1)
    policy.stop = 10**6
    report, folder = look_first(policy, num_envs=1)
    assert (report.sees, report.warnings, folder.parent) == (True, (), cache)
    rows = (folder / "metadata.jsonl").read_text().count("\n")
    assert rows <= policy.requests <= rows + 1  # an episode that broke off is asked again
    count = policy.requests
    assert (look_first(policy), policy.requests) == ((report, folder), count)


def test_another_model_or_endpoint_is_looked_at_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    class Served(Sighted):
        url = "http://127.0.0.1:1"

        def describe_session(self) -> dict[str, Any]:
            return {"base_url": self.url}

    one = plan_probe(episodes=1)[:1]
    monkeypatch.setattr(probe, "plan_probe", lambda: one)
    monkeypatch.setattr(probe, "judge_folder", str)
    policy, folders = Served(), set()
    for policy.url, policy.name in (("http://a", "m"), ("http://b", "m"), ("http://b", "other")):
        folders.add(look_first(policy)[1])
    assert len(folders) == 3


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("blind", [False, True])
def test_the_command_warns_of_a_model_that_does_not_see(blind, tmp_path, monkeypatch):
    own = {**policy_names._list_own(), "sighted": (lambda: Sighted(blind=blind), "")}
    monkeypatch.setattr(policy_names, "_list_own", lambda: own)
    monkeypatch.setattr(policy_names, "PLAIN_POLICIES", (*policy_names.PLAIN_POLICIES, "sighted"))
    with installed(WALK):
        command = ["eval", "--policy", "sighted", "--env", WALK.id, "--episodes", "2", "--out"]
        stderr = invoke(*command, tmp_path / "run").err
        assert ("warning: The model does no better with pictures than without" in stderr) is blind
        session = json.loads((tmp_path / "run" / "run.json").read_text())["sessions"][0]
        assert session["can_it_see"]["sees"] is not blind
        assert bool(session["can_it_see"]["warnings"]) is blind
        report = json.loads((tmp_path / "run" / "report.json").read_text())
        assert report["can_it_see"]["warnings"] == session["can_it_see"]["warnings"]
        page = (tmp_path / "run" / "report.html").read_text()
        assert ("does no better with pictures than without" in page) is blind
        assert "can-it-see" not in invoke(*command, tmp_path / "unlooked", "--no-probe").err
        command[2] = "random"
        assert "can-it-see" not in invoke(*command, tmp_path / "random").err


def test_the_suite_by_itself_is_played_with_its_controls(tmp_path: Path) -> None:
    parts = plan_probe()
    ids = sorted({part.env_id for part in parts})
    assert len(ids) >= 8
    kinds = {(part.env_id, part.pictures) for part in parts}
    assert kinds == {(env_id, kind) for env_id in ids for kind in PICTURES}
    command = ["eval", "--policy", "random", "--suite", "can-it-see", "--env", ids[0], "--out", tmp_path / "run"]
    assert "warning: The model does no better with pictures than without" in invoke(*command).err
    header = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {part.key for part in parts if part.env_id == ids[0]} == set(header["parts"])
