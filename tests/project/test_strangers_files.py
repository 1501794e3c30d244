"""A stranger's file, row or answer is data: it names no code, and what it names is not imported."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from commands import invoke
from env_groups.test_answers import Liar, lie
from toys import installed, make_spec

from baselines import vldac
from baselines.learning.state import list_repeated, saved_config
from baselines.runs.folder import write_record
from vlgym.env_groups import LOCAL
from vlgym.env_groups.workers import WorkerGroup
from vlgym.errors import UserError
from vlgym.evaluation.policy_names import make_policy
from vlgym.files import seal, unseal
from vlgym.integrations import trl
from vlgym.integrations.agent import Task, play, tasks
from vlgym.play.rollout import Runner, run_episodes
from vlgym.registry.making import make
from vlgym.sight.blind_learner import LEARNERS as LEARNT
from vlgym.sight.blind_policies import choose_player

ENV = "vlgym/NumberLine-v1"
TRAP = "strangers_code:made"
READS = "vlgym.parsers.headings:HeadingParser"
LEARNERS = ("vldac", "rl4vlm", "loop", "grpo", "archer", "self_play")


@pytest.fixture(autouse=True)
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Code whose import leaves a file, here or in a child process; no test may leave it."""
    mark = tmp_path / "imported"
    for place in (tmp_path, tmp_path / "stranger"):
        place.mkdir(exist_ok=True)
        (place / "strangers_code.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    yield tmp_path / "stranger"
    assert sys.modules.pop("strangers_code", None) is None
    assert not mark.exists()


def resume(folder: Path, learner: str = "vldac", recorded: Any = None, **options: Any) -> Any:
    """The command line that resumes a run of this record."""
    module = importlib.import_module(f"baselines.{learner}")
    config = {"algorithm": module.Config.algorithm, "env": ENV, **(recorded or {})}
    write_record(folder / "run.json", {"format": 4, "config": config, "environments": {}})
    return module.Config(out=folder, resume=True, **options)


LEARNER = [LEARNERS[0], *(pytest.param(each, marks=pytest.mark.exhaustive) for each in LEARNERS[1:])]


@pytest.mark.parametrize("learner", LEARNER)
@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        ({"parser": TRAP}, f"(--parser {TRAP})"),
        ({"env_kwargs": ["a=4", f"parser={TRAP}"]}, f"(--env-kwargs a=4 --env-kwargs parser={TRAP})"),
        ({"env_kwargs": [f'parser="{TRAP}"']}, "An import string is code: give it in code or on"),
        ({"env_kwargs": {f"parser={TRAP}": 1}}, "start a new run"),
        ({"parser": [TRAP]}, "start a new run"),
        ({"envs": "ray://127.0.0.1:1"}, "(--envs ray://127.0.0.1:1)"),
        ({"export": "../models"}, "names a folder to write: give it on the command line (--export ../models)"),
        ({"parser": f"stranger.{TRAP}"}, "only tag, json, plan, choice, auto are taken from there"),
    ],
)
def test_a_resumed_run_takes_no_code(trap: Path, learner: str, recorded: Any, words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)) as caught:
        importlib.import_module(f"baselines.{learner}").train(resume(trap, learner, recorded))
    assert "\n" not in str(caught.value)


def test_a_resumed_run_takes_the_code_that_its_command_line_repeats(trap: Path) -> None:
    def read(recorded: dict[str, Any], **options: Any) -> dict[str, Any]:
        return saved_config(resume(trap, recorded=recorded, **options)).environment_arguments()

    kwargs = ("max_turns=4", f"parser={READS}")
    assert read({"parser": READS}, parser=READS) == {"parser": READS}
    repeated = read({"env_kwargs": list(kwargs)}, env_kwargs=kwargs)
    assert repeated == {"max_turns": 4, "parser": READS}
    with pytest.raises(UserError, match=f"has --parser {TRAP}, but {READS} was asked for"):
        read({"parser": TRAP}, parser=READS)
    plain = {"parser": "json", "env_kwargs": ["max_turns=4", 'parser="plan"'], "envs": "processes:1"}
    assert read(plain) == {"max_turns": 4, "parser": "plan"}
    options = {"parser": READS, "env_kwargs": kwargs, "export": trap / "models"}
    words = list_repeated(vldac.Config(out=trap, envs="tcp://a:1", **options))
    first, *rest = (f"--env-kwargs {each}" for each in kwargs)
    expected = ["", first[2:], rest[0][2:], f"parser {READS}", f"export {trap / 'models'}"]
    assert sorted(words.split(" --")) == sorted(expected)


def test_a_record_is_not_imported(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["eval", "--policy", "random", "--env", ENV, "--episodes", "1", "--out", out]
    invoke(*command)
    record = unseal(json.loads((out / "run.json").read_bytes()), required=True)
    for part in record["parts"].values():
        part["parser"] = part["arguments"]["parser"] = TRAP
    (out / "run.json").write_text(json.dumps(seal(record)))
    assert "holds another run" in invoke(*command, "--resume", status=2).err
    invoke("report", out)
    error = invoke("export", out, "--to", "minari", "--out", tmp_path / "minari", status=2).err
    assert "only tag, json, plan, choice, auto are taken from there" in error


ROW = {"env_id": ENV, "arguments": {"parser": TRAP}}


class Stub:
    """Stands for each class of a trainer that is not installed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        vars(self).update(kwargs)

    def __class_getitem__(cls, item: Any) -> type[Stub]:
        return cls


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports an integration over stubs of the modules that it needs."""

    def load(name: str, *modules: str) -> Any:
        for module in modules:
            parts = module.split(".")
            for place in (".".join(parts[: at + 1]) for at in range(len(parts))):
                stub: Any = ModuleType(place)
                stub.__getattr__ = lambda attribute: type(attribute, (Stub,), {})
                stub.__path__ = []
                if (above := sys.modules.get(place.rpartition(".")[0])) is not None:
                    monkeypatch.setattr(above, place.rpartition(".")[2], stub, raising=False)
                monkeypatch.setitem(sys.modules, place, stub)
        monkeypatch.delitem(sys.modules, f"vlgym.integrations.{name}", raising=False)
        integration = importlib.import_module(f"vlgym.integrations.{name}")
        monkeypatch.delitem(sys.modules, f"vlgym.integrations.{name}")
        return integration

    return load


def refuse() -> Any:
    return pytest.raises(UserError, match=f"says parser='{TRAP}'; only tag, json, plan, choice, auto")


def test_a_row_names_no_import_string() -> None:
    with pytest.raises(UserError, match="A row says arguments='parser=x', which is no mapping"):
        Task.from_row({"env_id": ENV, "arguments": "parser=x"})
    with refuse():
        asyncio.run(play(ROW, model="m", base_url="http://127.0.0.1:9/v1"))
    with refuse():
        Task(**ROW).to_row()
    (task,) = tasks(ENV, parser=READS)  # from code
    with pytest.raises(UserError, match="A row says"):
        task.to_row()
    row = {"env_id": ENV, "arguments": {"parser": None, "max_turns": 3}}
    assert Task.from_row(row).arguments["max_turns"] == 3


def test_rows_and_tasks_of_trainers_name_no_import_string(load: Any) -> None:
    with refuse():
        load("skyrl", "skyrl_gym.envs.base_text_env").Game({}, {**ROW, "max_turns": 2})
    verl = load("verl", "verl.experimental.agent_loop.agent_loop")
    with refuse():
        game = verl.Game(rollout_config=SimpleNamespace())
        asyncio.run(game.run({}, raw_prompt=[], extra_info=ROW))
    verifiers = load("verifiers", "verifiers.v1.types")
    config = {"env": ENV, "split": "train", "episodes": 1, "first": 0, "arguments": ROW["arguments"]}
    with refuse():
        next(verifiers.Episodes(config=SimpleNamespace(**config)).load())
    data = SimpleNamespace(env=ENV, seed=1, arguments=ROW["arguments"])
    with refuse():
        asyncio.run(verifiers.Play().run(SimpleNamespace(data=data), None))


def test_reset_takes_no_arguments_of_a_row_or_a_client(load: Any) -> None:
    trl.TrlGame(make(ENV)).reset(seed=1, parser=TRAP, arguments={"parser": TRAP})
    server = "openenv.core.env_server"
    modules = [f"{server}.{name}" for name in ("http_server", "interfaces", "types")]
    openenv = load("openenv", *modules, "uvicorn", "fastapi.exceptions")
    session = openenv.Session(ENV, SimpleNamespace(take=lambda: LOCAL, give_back=lambda *_: None))
    assert "<action>" in session.reset(seed=1).text
    with pytest.raises(UserError, match="takes seed and episode_id, not parser"):
        session.reset(seed=1, parser=TRAP)
    with pytest.raises(UserError, match="reset option='parser' is not one of"):
        make(ENV).reset(seed=1, options={"parser": TRAP})
    session.close()


def test_a_config_file_may_name_code(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    lines = ['policy = "random"', f'env = "{ENV}"', "episodes = 1", f'parser = "{READS}"', "dry_run = true"]
    file.write_text("\n".join(lines))
    command = ["eval", "--config", file, "--out", tmp_path / "out"]
    assert make(ENV, parser=READS).parser.describe() in invoke(*command).out
    for text in ("x = " + "[" * 100_000, "x = " + "{a=" * 100_000, "x" + ".x" * 5_000 + " = 1"):
        file.write_text(text)
        error = invoke(*command, status=2).err.strip()
        assert f"--config {file}" in error.replace("\n", "")
        assert len(error.splitlines()) < 4


def test_the_blind_player_of_registry_yaml_is_one_of_those_that_are_here() -> None:
    for name in (TRAP, f"import {TRAP}", "strangers_code"):
        assert choose_player(None, {"blind": {"success_policy": name}}).name == "searcher"


@pytest.mark.parametrize("change", [{"blind": [TRAP]}, {"entry_point": TRAP}])
def test_a_workers_card_names_no_code(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_spec("vlgym/Coin-v0", "toys:Coin")
    card = {**spec.to_dict(), **change}
    best = {"blind": {"success_policy": next(iter(LEARNT))}}  # learns in an environment that it makes
    monkeypatch.setattr("vlgym.sight.blind_policies.read_registry", lambda: {spec.id: best})
    with installed(spec):
        group = WorkerGroup(lambda index: Liar("make", lie("value", "spec", value=card)), 1)
        runner = Runner([group.make(spec.id)], split="test", episodes=1)
        (episode,) = run_episodes(runner, make_policy("blind", {}))
    assert episode[-1].success in (True, False)


def test_a_servers_answer_is_a_text() -> None:
    reply = f"<action>{TRAP}</action>"
    message = {"content": reply, "parser": TRAP, "tool_calls": [{"function": {"name": TRAP}}]}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "parser": TRAP}

    async def create(**_: Any) -> Any:
        return SimpleNamespace(model_dump=lambda **_: body)

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    row = {"env_id": ENV, "arguments": {"max_turns": 2}}
    episode = asyncio.run(play(row, model="m", client=client))
    assert all(turn.reply.startswith(reply) and turn.invalid for turn in episode.turns)
