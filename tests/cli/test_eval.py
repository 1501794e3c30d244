"""`vlgym eval`: from a name to records and a report; a wrong option is one line and no work."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from commands import Output, invoke
from fault_server import Fault, FaultServer
from toy_games import NIM
from toys import installed, make_spec

import vlgym
from vlgym.env import base
from vlgym.env_groups import open_group, processes
from vlgym.evaluation import episodes, policy_names, reading_check
from vlgym.parsers import Parsed, Parser, read_reply
from vlgym.play.policies import RandomPolicy
from vlgym.play.trajectory import read_trajectories
from vlgym.registry import get_registry
from vlgym.registry.plugins import PluginRecord
from vlgym.types import Reply, Turn, Usage

WALK = make_spec()
COIN = make_spec(
    "vlgym/Coin-v0", "toys:Coin", planners=("online", "global"), max_turns=30, image_size=(16, 16),
    reward_range=(-1.0, 2.0),
)  # fmt: skip
RUN = Path("run")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with installed(WALK, COIN):
        yield tmp_path


def evaluate(policy: str, *words: object, status: int = 0, typed: str = "") -> Output:
    """Evaluate a policy into `RUN`."""
    return invoke("eval", "--policy", policy, "--out", RUN, *words, status=status, typed=typed)


def read_parts(folder: Path = RUN) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())["parts"]


def test_records_and_header_of_a_run() -> None:
    options = ["--pictures", "grey", "--history-turns", "2", "--history-images", "3", "--parser", "json"]
    options += ["--episodes", "3", "--repeats", "2", "--env-kwargs", "max_turns=5"]
    stderr = evaluate("random", "--env", f"{WALK.id},{COIN.id}", *options).err
    parts = read_parts()
    assert sorted(parts) == [COIN.id, f"{COIN.id} grey", WALK.id, f"{WALK.id} grey"]
    walk = parts[WALK.id]
    assert (walk["episodes"], walk["repeats"], walk["split"], walk["parser"]) == (3, 2, "test", "json")
    assert walk["history"] == {"turns": 2, "images": 3}
    assert (walk["arguments"]["max_turns"], walk["changed"]) == (5, True)
    assert json.loads((RUN / "run.json").read_text())["policy"] == {"name": "random"}
    episodes = list(read_trajectories(RUN))
    assert len(episodes) == 4 * 6
    assert max(len(episode) for episode in episodes) <= 5
    assert [key for key in parts if f"{key}: 6 episodes done" not in stderr] == []


def test_forms_of_auto_are_read_and_recorded_and_verified() -> None:
    thoughts = "So <action>left</action>? " * 900
    replies = [f"<think>{thoughts}</think>**Action:** Right.", r"\boxed{\text{left}}", "?"]
    Path("said.json").write_text(json.dumps(replies))
    evaluate("scripted:said.json", "--env", WALK.id, "--episodes", "1", "--parser", "auto")
    turns = next(iter(read_trajectories(RUN)))[:3]
    assert [(turn.actions, turn.form, turn.parse, turn.cut) for turn in turns] == [
        (("right",), "line", "ok", False), (("left",), "boxed", "ok", False), ((), None, "no_action", False),
    ]  # fmt: skip
    assert turns[0].span is not None
    assert (len(turns[0].reply), turns[0].reply[slice(*turns[0].span)]) == (16_384, "Right.")
    invoke("verify", RUN)


@pytest.mark.parametrize("words", [["--modality", "text"], ["--env-kwargs", "modality=text"]])
def test_play_by_words_shows_no_picture_and_leaves_the_controls_out(words: Sequence[str]) -> None:
    stderr = evaluate("oracle", "--env", WALK.id, "--episodes", "1", *words, "--pictures", "grey,shuffled").err
    assert "left out: grey, shuffled: the prompts show no pictures\n" in stderr
    ((key, part),) = read_parts().items()
    assert key == WALK.id
    assert (part["arguments"]["modality"], part["history"]["images"], part["changed"]) == ("text", 0, True)
    (episode,) = read_trajectories(RUN)
    messages = [message for turn in episode for message in turn.messages]
    assert {part["type"] for message in messages for part in message["content"]} == {"text"}
    assert "(image omitted)" not in str(episode[-1].messages)
    assert "In words: cell 0 white" in episode[0].messages[-1]["content"][0]["text"]


def test_a_slow_model_says_how_fast_its_tokens_come(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(RandomPolicy):
        def reply(self, turns: Sequence[Turn]) -> list[Reply]:
            return [replace(reply, usage=Usage(5, 7)) for reply in super().reply(turns)]

    monkeypatch.setattr("vlgym.terminal.SLOW_S", 0.0)  # every reply is slow
    monkeypatch.setattr("vlgym.cli.eval_cmd.find_policy", lambda name, options: Slow)
    stderr = evaluate("random", "--env", WALK.id, "--episodes", "2", "--num-envs", "2").err
    replies, tokens = map(int, re.findall(r"^(\d+) replies, (\d+) tokens in \d+ s, ", stderr, re.M)[0])
    assert tokens == 7 * replies > 0


def test_a_bare_install_evaluates_compares_and_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scipy", "openai", "torch", "starlette"):
        monkeypatch.setitem(sys.modules, name, None)
    for policy in ("random", "oracle"):
        invoke("eval", "--policy", policy, "--env", WALK.id, "--episodes", "3", "--out", policy)
        assert Path(policy, "report.html").is_file()
    invoke("compare", "random", "oracle")
    with installed(NIM):
        invoke("tournament", "oracle", "random", "--env", NIM.id, "--games", "1", "--out", "games")


def test_a_planner_and_a_split_reach_the_environment() -> None:
    evaluate("oracle", "--env", COIN.id, "--episodes", "2", "--planner", "global", "--split", "val")
    part = read_parts()[f"{COIN.id} global"]
    assert (part["planner"], part["split"], part["parser"]) == ("global", "val", "plan")
    assert [len(episode) for episode in read_trajectories(RUN)] == [1, 1]


def test_a_person_plays_and_the_end_of_the_input_keeps_what_was_finished() -> None:
    words = ("--env", COIN.id, "--episodes", "2")
    typed = "heads\n:oracle\n:prompt\n<action>heads</action>\nnonsense\nheads\n"
    ended = evaluate("human", *words, status=2, typed=typed)
    assert "1 of 2 episodes are kept in run. Go on with --resume" in ended.err
    assert "Unknown command ':oracle'" in ended.out  # a person's replies are the person's
    assert "Say heads." in ended.out
    assert "picture-000.png" in ended.out
    assert list(Path("play/eval").glob("*.png"))
    evaluate("human", *words, "--resume", typed="heads\n" * 3)
    first, second = read_trajectories(RUN)
    heads = "<action>heads</action>"
    assert [record.reply for record in first] == [heads, heads, "nonsense", heads]
    assert [(each[0].episode, each[-1].success) for each in (first, second)] == [(0, True), (1, True)]


def test_a_model_that_refuses_pictures_is_asked_without_them() -> None:
    with FaultServer(lambda request: Fault("400") if request.pictures else None) as server:
        policy, words = f"openai:m@{server.url}", ["--env", COIN.id, "--episodes", "1"]
        stderr = evaluate(policy, *words, status=2).err
        assert stderr.startswith(f"asking {server.url} ...\n")
        assert "--history-images 0" in stderr
        assert not RUN.exists()
        evaluate(policy, *words, "--history-images", "0", "--resume")
    assert len(list(read_trajectories(RUN))) == 1
    assert not any(request.pictures for request in server.requests[1:])


def test_a_model_holds_the_other_seat_by_its_address() -> None:
    with FaultServer() as server, installed(NIM):
        words = ["--env", NIM.id, "--episodes", "2", "--opponents", f"openai:m@{server.url}"]
        words += ["--policy-arg", "opponents.temperature=0"]
        evaluate("oracle", *words)
        refused = evaluate("oracle", *words, "--envs", "processes:1", "--resume", status=2)
    assert "--opponents openai:m" in refused.err.splitlines()[-1]
    ((_, part),) = read_parts().items()
    assert "openai:m" in part["arguments"]["opponents"]
    assert server.url not in json.dumps(part)
    played = [request for request in server.requests if request.pictures]
    assert len(played) >= 2
    assert {request.body["temperature"] for request in played} == {0}


def test_a_worker_lost_before_the_first_episode_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    start, dead = processes.start_worker, iter([[sys.executable, "-S", "-c", "pass"]])
    monkeypatch.setattr(processes, "start_worker", lambda end, command: start(end, next(dead, command)))
    opened = Mock(side_effect=open_group)
    monkeypatch.setattr("vlgym.cli.eval_cmd.open_group", opened)
    words = ("--env", "vlgym/NumberLine-v1", "--episodes", "1", "--envs", "processes:1")
    stderr = evaluate("random", *words, "--env-timeout", "77.5").err
    assert opened.call_args.kwargs["limit"] == 77.5
    assert "was given up: it ended with status 0. A new one plays its 0 open episodes" in stderr
    assert len(list(read_trajectories(RUN))) == 1


def test_a_run_says_how_its_prompts_were_dressed() -> None:
    command = ["eval", "--policy", "oracle", "--env", WALK.id, "--episodes", "1"]
    dressed = ["--system", "Be brief.", "--style", "cot", "--few-shot", "2"]
    invoke(*command, "--out", "plain")
    invoke(*command, *dressed, "--out", "run")
    plain, part = (read_parts(Path(name))[WALK.id] for name in ("plain", "run"))
    (episode,) = read_trajectories(RUN)
    examples = [message for message in episode[0].messages if message["role"] == "assistant"]
    assert part["prompt_additions"] == {"system": "Be brief.", "style": "cot", "example_turns": len(examples)}
    assert len(examples) > 2
    assert part["prompt_hash"] != plain["prompt_hash"]
    invoke(*command, *dressed, "--split", "train", "--out", "train", status=2)


def test_a_dry_run_counts_what_would_be_asked_and_asks_nothing() -> None:
    policy, words = "openai:m@http://127.0.0.1:1/v1", ["--env", WALK.id, "--episodes", "3", "--dry-run"]
    stdout = evaluate(policy, *words, "--price-in", "1", "--no-probe").out
    assert f"{WALK.id}: at most {3 * WALK.max_turns} requests of " in stdout
    assert "<image " in stdout
    assert not RUN.exists()
    assert "Nearest: temperature" in evaluate(policy, *words, "--policy-arg", "temprature=1", status=2).err
    other_seat = ["--env", "vlgym/TicTacToe-v0", "--opponents", policy]
    evaluate("random", "--episodes", "1", "--dry-run", *other_seat)


DRY = ["--episodes", "1", "--dry-run"]


@pytest.mark.parametrize(
    "parser", ["tag", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("auto", "json"))]
)
def test_a_dry_run_finds_reply_forms_read_alike(parser: str) -> None:
    ids = "vlgym/NumberLine-v1,vlgym/EZPoints-v1,vlgym/TicTacToe-v0"
    stdout = evaluate("random", *DRY, "--env", ids, "--parser", parser).out
    assert stdout.endswith("\n12 reply forms are read alike by parser, evaluation and env.step.\n")


def read_no_tag(parser: Parser, text: str, *more: Any) -> Parsed:
    return read_reply(parser, text.replace("<action>", ""), *more)


def end_at_once(env: Any, reply: Reply) -> tuple[Reply, str]:
    return replace(reply, text=reply.text[:-1]), ""


@pytest.mark.parametrize(
    ("place", "planted", "readings"),
    [
        (reading_check, ("read_reply", read_no_tag), ("no_action", "X", "X")),
        (episodes, ("end_reply", end_at_once), ("X", "unclosed_action", "X")),
        (base, ("read_reply", read_no_tag), ("X", "no_action", "no_action")),
    ],
)
def test_a_dry_run_names_reply_forms_that_are_read_differently(place, planted, readings, monkeypatch):
    monkeypatch.setattr(place, *planted)
    env = vlgym.make("vlgym/TicTacToe-v0")
    env.reset(seed=vlgym.episode_seed("vlgym/TicTacToe-v0", "test", 0))
    output = evaluate("random", *DRY, "--env", "vlgym/TicTacToe-v0", "--parser", "tag", status=1)
    parser, run, step = (each.replace("X", f"'{env.oracle()}' by tag") for each in readings)
    line = f"vlgym/TicTacToe-v0, asked format: parser {parser}, evaluation {run}, env.step {step}"
    assert line in output.out
    assert "nothing:" not in output.out
    assert "read alike" not in output.out
    assert "reply forms are read differently" in output.err


def test_a_file_holds_options_and_the_command_line_goes_first() -> None:
    Path("run.toml").write_text(
        f'policy = "random"\nenv = ["{WALK.id}", "{COIN.id}"]\nepisodes = 5\npictures = "grey"\n'
        'no-probe = true\nout = "run"\n[env-kwargs]\nparser = "json"\n'
    )
    invoke("eval", "--config", "run.toml", "--episodes", "2")
    parts = read_parts()
    assert sorted(parts) == [COIN.id, f"{COIN.id} grey", WALK.id, f"{WALK.id} grey"]
    assert {(part["episodes"], part["parser"]) for part in parts.values()} == {(2, "json")}


@pytest.mark.parametrize(("line", "message"), [
    ("episods = 3", "episods is no option of eval. Nearest: episodes."), ("episodes = true", "--episodes"),
    ("env = {a = 1}", "env is a table; write env = VALUE"), ("x", "cannot be read: Expected '='"),
])  # fmt: skip
def test_a_wrong_file_is_one_line(line: str, message: str) -> None:
    Path("run.toml").write_text(line)
    assert message in evaluate("random", "--env", WALK.id, "--config", "run.toml", status=2).err


class Same:
    """A plugin's policy, with its own wishes for prompts and parser."""

    def __init__(self, text: str, seed: int = 0) -> None:
        self.name, self.text, self.seed = f"same:{text}", text, seed

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "seed": self.seed}

    def prefers(self) -> dict[str, Any]:
        return {"history_turns": 1, "parser": "json"}

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(turn.env.unwrapped.parser.format([self.text])) for turn in turns]


def test_a_strangers_policy_plays_as_ours_do(monkeypatch: pytest.MonkeyPatch) -> None:
    record = PluginRecord("same", "vlgym-same", "1.0", policies={"same": Same})
    monkeypatch.setattr(policy_names, "get_registry", lambda: replace(get_registry(), plugins=(record,)))
    evaluate("same:+", "--env", "vlgym/NumberLine-v0", "--episodes", "4", "--seed", "5")
    assert json.loads((RUN / "run.json").read_text())["policy"] == {"name": "same:+", "seed": 5}
    ((_, part),) = read_parts().items()
    assert (part["parser"], part["history"]) == ("json", {"turns": 1, "images": 1})
    assert {r.actions for e in read_trajectories(RUN) for r in e} == {("+",)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give --env ID[,ID...] or --suite NAME (suites: all, "),
        (("--env", ","), "--env names no environment"),
        (("--env", "vlgym/Wolk-v0"), "Nearest: vlgym/Walk-v0"),
        (("--suite", "all", "--env", "vlgym/Wolk-v0"), "--env='vlgym/Wolk-v0' is not one of"),
        (("--env", WALK.id, "--env-kwargs", "max_tuns=3"), "has no argument 'max_tuns'"),
        (("--env", WALK.id, "--max-cost", "1"), "--max-cost needs prices"),
    ],
)
def test_a_wrong_option_is_one_line(words: tuple[str, ...], message: str, here: Path) -> None:
    output = evaluate("random", *words, status=2)
    assert message in output.err
    assert "Traceback" not in output.err
    assert output.out == ""
    assert list(here.iterdir()) == []
