"""A stranger's file, row or answer is data: it names no code, and what it names is not imported."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from env_groups.test_answers import Liar, lie
from toys import installed, make_spec

from baselines import vldac
from baselines.learning.state import list_repeated, saved_config
from baselines.runs.folder import write_record
from vlgym.cli.app import main
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


def asked(folder: Path, learner: str = "vldac", said: Any = None, **options: Any) -> Any:
    """The command line that resumes a run whose record says `said`."""
    module = importlib.import_module(f"baselines.{learner}")
    config = {"algorithm": module.Config.algorithm, "env": ENV, **(said or {})}
    write_record(folder / "run.json", {"format": 4, "config": config, "environments": {}})
    return module.Config(out=folder, resume=True, **options)


LEARNER = [LEARNERS[0], *(pytest.param(each, marks=pytest.mark.exhaustive) for each in LEARNERS[1:])]


@pytest.mark.parametrize("learner", LEARNER)
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"parser": TRAP}, f"(--parser {TRAP})"),
        ({"env_kwargs": ["max_turns=4", f"parser={TRAP}"]}, f"(--env-kwargs max_turns=4 --env-kwargs parser={TRAP})"),
        ({"env_kwargs": [f'parser="{TRAP}"']}, "An import string is code: give it in code or on the command line"),
        ({"env_kwargs": {f"parser={TRAP}": 1}}, "start a new run"),
        ({"parser": [TRAP]}, "start a new run"),
        ({"envs": "ray://127.0.0.1:1"}, "(--envs ray://127.0.0.1:1)"),
        ({"export": "../models"}, "names a folder to write: give it on the command line (--export ../models)"),
        ({"parser": f"stranger.{TRAP}"}, "only tag, json, plan, choice, auto are taken from there"),
    ],
)
def test_a_resumed_run_takes_no_code(trap: Path, learner: str, said: Any, words: str) -> None:
    with pytest.raises(UserError) as told:
        importlib.import_module(f"baselines.{learner}").train(asked(trap, learner, said))
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_a_resumed_run_takes_the_code_that_its_command_line_repeats(trap: Path) -> None:
    kwargs = ("max_turns=4", f"parser={READS}")
    again = saved_config(asked(trap, said={"parser": READS}, parser=READS))
    assert again.environment_arguments() == {"parser": READS}
    again = saved_config(asked(trap, said={"env_kwargs": list(kwargs)}, env_kwargs=kwargs))
    assert again.environment_arguments() == {"max_turns": 4, "parser": READS}
    with pytest.raises(UserError, match=f"has --parser {TRAP}, but {READS} was asked for"):
        saved_config(asked(trap, said={"parser": TRAP}, parser=READS))
    repeated = vldac.Config(out=trap, parser=READS, env_kwargs=kwargs, envs="tcp://a:1", export=trap / "models")
    words = f" --env-kwargs max_turns=4 --env-kwargs parser={READS} --parser {READS} --export {trap / 'models'}"
    assert sorted(list_repeated(repeated).split(" --")) == sorted(words.split(" --"))
    plain = {"parser": "json", "env_kwargs": ["max_turns=4", 'parser="plan"'], "envs": "processes:1"}
    assert saved_config(asked(trap, said=plain)).environment_arguments() == {"max_turns": 4, "parser": "plan"}


def test_a_record_is_not_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    command = ["eval", "--policy", "random", "--env", ENV, "--episodes", "1", "--out", str(out)]
    assert main(command) == 0
    record = unseal(json.loads((out / "run.json").read_bytes()), required=True)
    for part in record["parts"].values():
        part["parser"] = part["arguments"]["parser"] = TRAP
    (out / "run.json").write_text(json.dumps(seal(record)))
    capsys.readouterr()
    assert main([*command, "--resume"]) == 2
    assert "holds another run" in capsys.readouterr().err
    assert main(["report", str(out)]) == 0
    assert main(["export", str(out), "--to", "minari", "--out", str(tmp_path / "minari")]) == 2
    assert "only tag, json, plan, choice, auto are taken from there" in capsys.readouterr().err


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
                stub.__getattr__ = lambda asked: type(asked, (Stub,), {})
                stub.__path__ = []
                if (above := sys.modules.get(place.rpartition(".")[0])) is not None:
                    monkeypatch.setattr(above, place.rpartition(".")[2], stub, raising=False)
                monkeypatch.setitem(sys.modules, place, stub)
        monkeypatch.delitem(sys.modules, f"vlgym.integrations.{name}", raising=False)
        found = importlib.import_module(f"vlgym.integrations.{name}")
        monkeypatch.delitem(sys.modules, f"vlgym.integrations.{name}")
        return found

    return load


def refuse() -> Any:
    return pytest.raises(UserError, match=r"says parser='strangers_code:made'; only tag, json, plan, choice, auto")


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
    assert Task.from_row({"env_id": ENV, "arguments": {"parser": None, "max_turns": 3}}).arguments["max_turns"] == 3


def test_a_row_of_skyrls_and_of_verls_names_no_import_string(load: Any) -> None:
    with refuse():
        load("skyrl", "skyrl_gym.envs.base_text_env").Game({}, {**ROW, "max_turns": 2})
    game = load("verl", "verl.experimental.agent_loop.agent_loop").Game(rollout_config=SimpleNamespace())
    with refuse():
        asyncio.run(game.run({}, raw_prompt=[], extra_info=ROW))


def test_neither_a_task_nor_a_taskset_of_verifiers_names_an_import_string(load: Any) -> None:
    verifiers = load("verifiers", "verifiers.v1.types")
    config = SimpleNamespace(env=ENV, split="train", episodes=1, first=0, arguments=ROW["arguments"])
    with refuse():
        next(verifiers.Episodes(config=config).load())
    data = SimpleNamespace(env=ENV, seed=1, arguments=ROW["arguments"])
    with refuse():
        asyncio.run(verifiers.Play().run(SimpleNamespace(data=data), None))


def test_reset_takes_no_arguments_of_a_row_or_a_client(load: Any) -> None:
    game = trl.TrlGame(make(ENV))
    game.reset(seed=1, parser=TRAP, arguments={"parser": TRAP})
    server = "openenv.core.env_server"
    modules = (f"{server}.http_server", f"{server}.interfaces", f"{server}.types", "uvicorn", "fastapi.exceptions")
    openenv = load("openenv", *modules)
    session = openenv.Session(ENV, SimpleNamespace(take=lambda: LOCAL, give_back=lambda *_: None))
    assert "<action>" in session.reset(seed=1).text
    with pytest.raises(UserError, match="takes seed and episode_id, not parser"):
        session.reset(seed=1, parser=TRAP)
    with pytest.raises(UserError, match="reset option='parser' is not one of"):
        make(ENV).reset(seed=1, options={"parser": TRAP})
    session.close()


def test_a_config_file_may_name_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.toml"
    file.write_text(f'policy = "random"\nenv = "{ENV}"\nepisodes = 1\nparser = "{READS}"\ndry_run = true\n')
    command = ["eval", "--config", str(file), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert make(ENV, parser=READS).parser.describe() in capsys.readouterr().out
    for text in ("x = " + "[" * 100_000, "x = " + "{a=" * 100_000, "x" + ".x" * 5_000 + " = 1"):
        file.write_text(text)
        assert main(command) == 2
        error = capsys.readouterr().err.strip()
        assert f"--config {file}" in error.replace("\n", "")
        assert len(error.splitlines()) < 4


def test_the_blind_player_of_registry_yaml_is_one_of_those_that_are_here() -> None:
    for said in (TRAP, f"import {TRAP}", "strangers_code"):
        assert choose_player(None, {"blind": {"success_policy": said}}).name == "searcher"


@pytest.mark.parametrize("said", [{"blind": [TRAP]}, {"entry_point": TRAP}])
def test_a_workers_card_names_no_code(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_spec("vlgym/Coin-v0", "toys:Coin")
    card = {**spec.to_dict(), **said}
    best = {"blind": {"success_policy": next(iter(LEARNT))}}  # learns in an environment that it makes
    monkeypatch.setattr("vlgym.sight.blind_policies.read_registry", lambda: {spec.id: best})
    with installed(spec):
        group = WorkerGroup(lambda index: Liar("make", lie("value", "spec", value=card)), 1)
        runner = Runner([group.make(spec.id)], split="test", episodes=1)
        (episode,) = run_episodes(runner, make_policy("blind", {}))
    assert episode[-1].success in (True, False)


def test_a_servers_answer_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"content": f"<action>{TRAP}</action>", "parser": TRAP, "tool_calls": [{"function": {"name": TRAP}}]}
    body = {"choices": [{"message": {"role": "assistant", **said}, "finish_reason": "stop"}], "parser": TRAP}

    async def create(**_: Any) -> Any:
        return SimpleNamespace(model_dump=lambda **_: body)

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    episode = asyncio.run(play({"env_id": ENV, "arguments": {"max_turns": 2}}, model="m", client=client))
    assert all(turn.reply.startswith(said["content"]) for turn in episode.turns)
    assert all(turn.invalid for turn in episode.turns)
