"""`vlgym eval`: from a name to a folder of records and a report; every wrong option is one line and no work."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from fault_server import Fault, FaultServer
from toy_games import NIM
from toys import install_plugin, installed, make_spec

import vlgym
from vlgym.cli.app import main
from vlgym.env import base
from vlgym.env_groups import open_group, processes
from vlgym.evaluation import episodes, reading_check
from vlgym.parsers import Parsed, Parser, read_reply
from vlgym.play.policies import RandomPolicy
from vlgym.play.trajectory import read_trajectories
from vlgym.types import Reply, Usage

WALK = make_spec()
COIN = make_spec(
    "vlgym/Coin-v0",
    "toys:Coin",
    planners=("online", "global"),
    max_turns=30,
    image_size=(16, 16),
    reward_range=(-1.0, 2.0),
)


@pytest.fixture(autouse=True)
def toys_installed() -> Iterator[None]:
    with installed(WALK, COIN):
        yield


def test_records_and_header_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "--policy", "random", "--env", f"{WALK.id},{COIN.id}", "--episodes", "3", "--repeats", "2"]
    command += ["--pictures", "grey", "--history-turns", "2", "--history-images", "3", "--parser", "json"]
    command += ["--env-kwargs", "max_turns=5", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    held = json.loads((tmp_path / "run" / "run.json").read_text())
    assert sorted(held["parts"]) == [COIN.id, f"{COIN.id} grey", WALK.id, f"{WALK.id} grey"]
    walk = held["parts"][WALK.id]
    assert (walk["episodes"], walk["repeats"], walk["split"], walk["parser"]) == (3, 2, "test", "json")
    assert walk["history"] == {"turns": 2, "images": 3}
    assert walk["arguments"]["max_turns"] == 5
    assert walk["changed"] is True
    assert held["policy"] == {"name": "random"}
    episodes = list(read_trajectories(tmp_path / "run"))
    assert len(episodes) == 4 * 6
    assert max(len(episode) for episode in episodes) <= 5
    said = capsys.readouterr().err
    for key in held["parts"]:
        assert f"{key}: 6 episodes done" in said


def test_forms_of_auto_are_read_and_recorded_and_verified(tmp_path: Path) -> None:
    said = ["<think>" + "So <action>left</action>? " * 900 + "</think>**Action:** Right.", r"\boxed{\text{left}}", "?"]
    (tmp_path / "said.json").write_text(json.dumps(said))
    out = str(tmp_path / "run")
    command = ["eval", "--policy", f"scripted:{tmp_path / 'said.json'}", "--env", WALK.id, "--episodes", "1"]
    assert main([*command, "--parser", "auto", "--out", out]) == 0
    turns = next(iter(read_trajectories(out)))[:3]
    assert [(turn.actions, turn.form, turn.parse, turn.cut) for turn in turns] == [
        (("right",), "line", "ok", False), (("left",), "boxed", "ok", False), ((), None, "no_action", False),
    ]  # fmt: skip
    assert turns[0].span is not None
    assert (len(turns[0].reply), turns[0].reply[slice(*turns[0].span)]) == (16_384, "Right.")
    assert main(["verify", out]) == 0


@pytest.mark.parametrize("words", [("--modality", "text"), ("--env-kwargs", "modality=text", "--history-images", "2")])
def test_play_by_words_shows_no_picture_and_leaves_the_controls_out(words, tmp_path: Path, capsys) -> None:
    out = tmp_path / "run"
    command = ["eval", "--policy", "oracle", "--env", WALK.id, "--episodes", "1", *words]
    assert main([*command, "--pictures", "grey,shuffled", "--out", str(out)]) == 0
    assert "left out: grey, shuffled: the prompts show no pictures\n" in capsys.readouterr().err
    assert list(json.loads((out / "run.json").read_text())["parts"]) == [WALK.id]
    part = json.loads((out / "run.json").read_text())["parts"][WALK.id]
    assert (part["arguments"]["modality"], part["history"]["images"], part["changed"]) == ("text", 0, True)
    (episode,) = read_trajectories(out)
    assert {each["type"] for turn in episode for message in turn.messages for each in message["content"]} == {"text"}
    assert "(image omitted)" not in str(episode[-1].messages)
    assert "In words: cell 0 white" in episode[0].messages[-1]["content"][0]["text"]


def test_a_slow_model_says_how_fast_its_tokens_come(tmp_path: Path, monkeypatch, capsys) -> None:
    class Slow(RandomPolicy):
        def reply(self, turns):
            return [replace(reply, usage=Usage(5, 7)) for reply in super().reply(turns)]

    monkeypatch.setattr("vlgym.terminal.SLOW_S", 0.0)  # every reply is slow
    monkeypatch.setattr("vlgym.cli.eval_cmd.find_policy", lambda name, options: Slow)
    command = ["eval", "--policy", "random", "--env", WALK.id, "--episodes", "2", "--num-envs", "2"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    replies, tokens = map(int, re.findall(r"^(\d+) replies, (\d+) tokens in \d+ s, ", capsys.readouterr().err, re.M)[0])
    assert tokens == 7 * replies > 0


def test_a_bare_install_evaluates_compares_and_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scipy", "openai", "torch", "starlette"):
        monkeypatch.setitem(sys.modules, name, None)
    folders = [str(tmp_path / name) for name in ("random", "oracle")]
    for folder in folders:
        command = ["eval", "--policy", Path(folder).name, "--env", WALK.id, "--episodes", "3", "--out", folder]
        assert main(command) == 0
        assert (Path(folder) / "report.html").is_file()
    assert main(["compare", *folders]) == 0
    with installed(NIM):
        out = str(tmp_path / "games")
        assert main(["tournament", "oracle", "random", "--env", NIM.id, "--games", "1", "--out", out]) == 0


def test_a_planner_and_a_split_reach_the_environment(tmp_path: Path) -> None:
    command = ["eval", "--policy", "oracle", "--env", COIN.id, "--episodes", "2", "--out", str(tmp_path / "run")]
    assert main([*command, "--planner", "global", "--split", "val"]) == 0
    held = json.loads((tmp_path / "run" / "run.json").read_text())
    part = held["parts"][f"{COIN.id} global"]
    assert (part["planner"], part["split"], part["parser"]) == ("global", "val", "plan")
    assert [len(episode) for episode in read_trajectories(tmp_path / "run")] == [1, 1]


def test_a_person_plays_on_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("heads\n<action>heads</action>\nnonsense\nheads\n"))
    assert main(["eval", "--policy", "human", "--env", COIN.id, "--episodes", "1", "--out", "run"]) == 0
    (episode,) = read_trajectories(tmp_path / "run")
    assert [record.reply for record in episode] == ["<action>heads</action>"] * 2 + [
        "nonsense",
        "<action>heads</action>",
    ]
    assert episode[-1].success
    told = capsys.readouterr().out
    assert "Say heads." in told
    assert "picture-000.png" in told
    assert list((tmp_path / "play" / "eval").glob("*.png"))


def test_the_end_of_the_input_keeps_what_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["eval", "--policy", "human", "--env", COIN.id, "--episodes", "2", "--out", "run"]
    monkeypatch.setattr("sys.stdin", io.StringIO("heads\n" * 4))
    assert main(command) == 2
    assert "1 of 2 episodes are kept in run. Go on with --resume" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("heads\n" * 3))
    assert main([*command, "--resume"]) == 0
    assert [episode[0].episode for episode in read_trajectories(tmp_path / "run")] == [0, 1]


def test_a_model_that_refuses_pictures_is_asked_without_them_and_resume_begins_where_nothing_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with FaultServer(lambda asked: Fault("400") if asked.pictures else None) as server:
        command = ["eval", "--policy", f"openai:m@{server.url}", "--env", COIN.id, "--episodes", "1", "--out", "run"]
        assert main(command) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"asking {server.url} ...\n")
        assert "--history-images 0" in told
        assert not Path("run").exists()
        assert main([*command, "--history-images", "0", "--resume"]) == 0
    assert len(list(read_trajectories(tmp_path / "run"))) == 1
    assert not any(asked.pictures for asked in server.asked[1:])


def test_a_server_is_sent_no_picture_in_words(tmp_path: Path) -> None:
    with FaultServer(lambda asked: Fault("400") if asked.pictures else None) as server:
        command = ["eval", "--policy", f"openai:m@{server.url}", "--env", WALK.id, "--episodes", "1"]
        assert main([*command, "--modality", "text", "--out", str(tmp_path / "run")]) == 0
    assert server.asked
    assert not any(asked.pictures for asked in server.asked)
    assert {type(asked.body["messages"][-1]["content"]) for asked in server.asked} == {str}
    assert "In words: cell 0 white" in server.asked[1].body["messages"][-1]["content"]


def test_a_model_holds_the_other_seat_by_its_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FaultServer(lambda asked: None) as server, installed(NIM):
        command = ["eval", "--policy", "oracle", "--env", NIM.id, "--episodes", "2", "--out", str(tmp_path / "run")]
        told = ["--opponents", f"openai:m@{server.url}", "--policy-arg", "opponents.temperature=0"]
        assert main([*command, *told]) == 0
        assert main([*command, *told, "--envs", "processes:1", "--resume"]) == 2
    assert "--opponents openai:m" in capsys.readouterr().err.splitlines()[-1]
    (part,) = json.loads((tmp_path / "run" / "run.json").read_text())["parts"].values()
    assert "openai:m" in part["arguments"]["opponents"]
    assert (
        server.url not in (tmp_path / "run" / "run.json").read_text().replace('"command"', "", 1).split("sessions")[0]
    )
    played = [asked for asked in server.asked if asked.pictures]
    assert len(played) >= 2
    assert {asked.body["temperature"] for asked in played} == {0}


def test_a_worker_that_is_lost_before_the_first_episode_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start, dead = processes.start_worker, iter([[sys.executable, "-S", "-c", "pass"]])
    monkeypatch.setattr(processes, "start_worker", lambda end, command: start(end, next(dead, command)))
    command = ["eval", "--policy", "random", "--env", "vlgym/NumberLine-v1", "--episodes", "1", "--out", "run"]
    monkeypatch.chdir(tmp_path)
    opened = Mock(side_effect=open_group)
    monkeypatch.setattr("vlgym.cli.eval_cmd.open_group", opened)
    assert main([*command, "--envs", "processes:1", "--env-timeout", "77.5"]) == 0
    assert opened.call_args.kwargs["limit"] == 77.5
    assert "was given up: it ended with status 0. A new one plays its 0 open episodes" in capsys.readouterr().err
    assert len(list(read_trajectories(tmp_path / "run"))) == 1


def test_a_run_says_how_its_prompts_were_dressed(tmp_path: Path) -> None:
    command = ["eval", "--policy", "oracle", "--env", WALK.id, "--episodes", "1"]
    dressed = ["--system", "Be brief.", "--style", "cot", "--few-shot", "2"]
    for name, words in (("plain", []), ("dressed", dressed)):
        assert main([*command, *words, "--out", str(tmp_path / name)]) == 0
    plain, held = (
        json.loads((tmp_path / name / "run.json").read_text())["parts"][WALK.id] for name in ("plain", "dressed")
    )
    (episode,) = read_trajectories(tmp_path / "dressed")
    shown = [message for message in episode[0].messages if message["role"] == "assistant"]
    assert held["prompt_additions"] == {"system": "Be brief.", "style": "cot", "example_turns": len(shown)}
    assert len(shown) > 2
    assert held["prompt_hash"] != plain["prompt_hash"]
    assert main([*command, *dressed, "--split", "train", "--out", str(tmp_path / "train")]) == 2


def test_a_dry_run_counts_what_would_be_asked_and_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["eval", "--policy", "openai:m@http://127.0.0.1:1/v1", "--env", WALK.id, "--episodes", "3", "--dry-run"]
    assert main([*command, "--price-in", "1", "--no-probe", "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out
    assert f"{WALK.id}: at most {3 * WALK.max_turns} requests of " in told
    assert "<image " in told
    assert not (tmp_path / "run").exists()
    assert main([*command, "--policy-arg", "temprature=1", "--out", str(tmp_path / "run")]) == 2
    assert "Nearest: temperature" in capsys.readouterr().err


DRY = ["eval", "--policy", "random", "--episodes", "1", "--dry-run", "--out", "nowhere"]


@pytest.mark.parametrize("parser", ["tag", "auto", "json"])
def test_a_dry_run_finds_reply_forms_read_alike(parser: str, capsys: pytest.CaptureFixture[str]) -> None:
    ids = "vlgym/NumberLine-v1,vlgym/EZPoints-v1,vlgym/TicTacToe-v0"
    assert main([*DRY, "--env", ids, "--parser", parser]) == 0
    assert capsys.readouterr().out.endswith("\n12 reply forms are read alike by parser, evaluation and env.step.\n")


def read_no_tag(parser: Parser, text: str, *more: Any) -> Parsed:
    return read_reply(parser, text.replace("<action>", ""), *more)


def end_at_once(env: Any, reply: Reply) -> tuple[Reply, str]:
    return replace(reply, text=reply.text[:-1]), ""


@pytest.mark.parametrize(
    ("place", "planted", "line"),
    [
        (reading_check, ("read_reply", read_no_tag), "parser no_action, evaluation 'X' by tag, env.step 'X' by tag"),
        (episodes, ("end_reply", end_at_once), "parser 'X' by tag, evaluation unclosed_action, env.step 'X' by tag"),
        (base, ("read_reply", read_no_tag), "parser 'X' by tag, evaluation no_action, env.step no_action"),
    ],
)
def test_a_dry_run_names_reply_forms_that_are_read_differently(
    place: Any, planted: tuple[str, Any], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(place, *planted)
    env = vlgym.make("vlgym/TicTacToe-v0")
    env.reset(seed=vlgym.episode_seed("vlgym/TicTacToe-v0", "test", 0))
    assert main([*DRY, "--env", "vlgym/TicTacToe-v0", "--parser", "tag"]) == 1
    said = capsys.readouterr()
    expected = line.replace("X", str(env.oracle()))
    assert f"vlgym/TicTacToe-v0, asked format: {expected}" in said.out
    assert "nothing:" not in said.out
    assert "read alike" not in said.out
    assert "reply forms are read differently" in said.err


def test_a_dry_run_asks_no_endpoint_that_holds_another_seat(capsys: pytest.CaptureFixture[str]) -> None:
    command = [*DRY, "--env", "vlgym/TicTacToe-v0", "--opponents", "openai:m@http://127.0.0.1:1/v1"]
    assert main(command) == 0, capsys.readouterr().err


def test_a_file_holds_options_and_the_command_line_goes_first(tmp_path: Path) -> None:
    file, out = tmp_path / "run.toml", tmp_path / "run"
    file.write_text(
        f'policy = "random"\nenv = ["{WALK.id}", "{COIN.id}"]\nepisodes = 5\npictures = "grey"\n'
        f'no-probe = true\nout = "{out}"\n'
        '[env-kwargs]\nparser = "json"\n'
    )
    assert main(["eval", "--config", str(file), "--episodes", "2"]) == 0
    parts = json.loads((out / "run.json").read_text())["parts"]
    assert {key: (part["episodes"], part["parser"]) for key, part in parts.items()} == dict.fromkeys(
        (WALK.id, f"{WALK.id} grey", COIN.id, f"{COIN.id} grey"), (2, "json")
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("episods = 3", "episods is no option of eval. Nearest: episodes."),
        ("episodes = true", "--episodes"),
        ("env = {a = 1}", "env is a table; write env = VALUE"),
        ("x", "cannot be read: Expected '='"),
    ],
)
def test_a_wrong_file_is_one_line(line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.toml"
    file.write_text(line)
    assert main(["eval", *GOOD, "--out", str(tmp_path / "run"), "--config", str(file)]) == 2
    assert message in capsys.readouterr().err


POLICY_PLUGIN = """
from vlgym import hookimpl
from vlgym.types import Reply

class Same:
    def __init__(self, text, seed=0):
        self.name, self.text, self.seed = f"same:{text}", text, seed

    def describe(self):
        return {"name": self.name, "seed": self.seed}

    def prefers(self):
        return {"history_turns": 1, "parser": "json"}

    def reply(self, turns):
        return [Reply(turn.env.unwrapped.parser.format([self.text])) for turn in turns]

@hookimpl
def vlgym_policies():
    return {"same": Same}
"""


def test_a_strangers_policy_plays_as_ours_do(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install_plugin(site, "same", POLICY_PLUGIN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["eval", "--env", "vlgym/NumberLine-v0", "--episodes", "4", "--out", "run", *words]
        return subprocess.run(
            [sys.executable, "-m", "vlgym", *command], env=environment, cwd=tmp_path, capture_output=True, text=True
        )

    assert "has no option temperature; it takes seed" in run("--policy", "same:+", "--temperature", "1").stderr
    done = run("--policy", "same:+", "--seed", "5")
    assert done.returncode == 0, done.stderr
    held = json.loads((tmp_path / "run" / "run.json").read_text())
    assert held["policy"] == {"name": "same:+", "seed": 5}
    part = held["parts"]["vlgym/NumberLine-v0"]
    assert (part["parser"], part["history"]) == ("json", {"turns": 1, "images": 1})
    assert {r.actions for e in read_trajectories(tmp_path / "run") for r in e} == {("+",)}


GOOD = ("--policy", "random", "--env", WALK.id)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "randm", "--env", WALK.id), "--policy='randm' is not one of"),
        (("--policy", "scripted:none.txt", "--env", WALK.id), "No such file"),
        (("--policy", "replay:none", "--env", WALK.id), "holds no metadata.jsonl"),
        (("--policy", "random"), "Give --env ID[,ID...] or --suite NAME (suites: all, "),
        (("--policy", "random", "--env", ","), "--env names no environment"),
        (("--policy", "random", "--env", "vlgym/Wolk-v0"), "Nearest: vlgym/Walk-v0"),
        (("--policy", "random", "--suite", "quik"), "--suite='quik' is not one of"),
        (("--policy", "random", "--suite", "all", "--env", "vlgym/Wolk-v0"), "--env='vlgym/Wolk-v0' is not one of"),
        ((*GOOD, "--split", "tset"), "--split='tset' is not one of train, val, test"),
        ((*GOOD, "--planner", "global"), "cannot be played by a global planner; it has online"),
        ((*GOOD, "--planner", "golbal"), "--planner='golbal' is not one of online, global"),
        ((*GOOD, "--parser", "tga"), "tga"),
        ((*GOOD, "--env-kwargs", "max_turns"), "--env-kwargs 'max_turns' must look like name=value"),
        ((*GOOD, "--env-kwargs", "max_tuns=3"), "has no argument 'max_tuns'"),
        ((*GOOD, "--temperature", "1"), "--policy random has no option temperature"),
        ((*GOOD, "--policy-arg", "x"), "--policy-arg 'x' must look like name=value"),
        ((*GOOD, "--max-cost", "1"), "--max-cost needs prices"),
        ((*GOOD, "--price-in", "nan"), "--price-in"),
        ((*GOOD, "--episodes", "0"), "--episodes"),
        ((*GOOD, "--num-envs", "x"), "--num-envs"),
        ((*GOOD, "--env-timeout", "0"), "--env-timeout 0.0 must be > 0"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_is_written(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["eval", *words, "--out", "run"]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_run_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--episodes", "2", "--out", str(tmp_path)]
    assert main(["eval", *GOOD, *out]) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["eval", *GOOD, *out]) == 2
    assert main(["eval", *GOOD, *out, "--resume", "--split", "val"]) == 2
    assert "Different: parts.vlgym/Walk-v0.split" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
