"""A person plays on the page: a whole game, its records, forms, and bad processes."""

import functools
import html
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import is_running
from starlette.testclient import TestClient
from ui_records import BASE, ask

from vlgym.env_groups.processes import ProcessLink
from vlgym.env_groups.workers import WorkerGroup
from vlgym.play.trajectory import read_trajectories
from vlgym.reports.compute import compute_report
from vlgym.ui.games import PageGames
from vlgym.ui.play import name_keys

OWN = {"origin": BASE}
LINE = "vlgym/NumberLine-v1"


def begin(client: TestClient, **fields: str) -> tuple[str, str]:
    """Begin a game; return its address and page."""
    answer = client.post("/play", data={"env": LINE, "split": "test", **fields}, headers=OWN)
    assert answer.status_code == 200, answer.text
    return str(answer.url).removeprefix(BASE), answer.text


def send(client: TestClient, address: str, page: str, **fields: str) -> str:
    """Send the form of a page; return the next page."""
    count = re.findall(r'name="count" value="(\d+)"', page)[0]
    return client.post(address, data={"count": count, **fields}, headers=OWN).text


def ask_oracle(client: TestClient, address: str) -> str:
    page = client.get(f"{address}?oracle=1").text
    (reply,) = re.findall(r'would say:</p><pre class="reply">(.*?)</pre>', page, re.DOTALL)
    return html.unescape(reply)


def play_out(client: TestClient, address: str) -> str:
    """Play an episode as the oracle says; return the page of its end."""
    page = client.get(address).text
    while "<h2>Turn" in page:
        page = send(client, address, page, reply=ask_oracle(client, address))
    return page


def test_a_click_on_the_picture_is_an_action_and_the_record_marks_its_place(tmp_path: Path) -> None:
    client = ask(tmp_path)
    address, page = begin(client, env="vlgym/ScreensClick-v0")
    assert '<input type="image" name="point"' in page
    page = send(client, address, page, **{"point.x": "112", "point.y": "9999999"})
    assert "<h2>Turn" not in page
    ((record,),) = read_trajectories(next(tmp_path.rglob("metadata.jsonl")).parent)
    assert record.actions == ("click(251, 999)",)
    assert record.point == pytest.approx((112 / 448, 895 / 896), abs=0.002)
    (link, *_) = re.findall(r'href="(/turn/[^"]+)"', client.get("/episodes").text)
    assert re.search(r'<circle class="ink" cx="2[45]\.\d+%" cy="99\.\d+%"', client.get(link).text)
    assert '<input type="image"' not in begin(client)[1]


def test_a_game_is_recorded_as_an_evaluation_of_the_policy_human(tmp_path: Path) -> None:
    client = ask(tmp_path)
    address, _ = begin(client, episodes="2")
    view = client.get(f"{address}?view=1").text
    sections = re.findall(r'class="message".*?</section>', view, re.DOTALL)
    first = play_out(client, address)
    assert ">Won<" in first
    assert "episode 2 of 2" in send(client, address, first, next="1")
    last = play_out(client, address)
    assert "All 2 episode(s) are played, 2 won" in last
    folder = tmp_path / "human" / "NumberLine-v1-001"
    run = json.loads((folder / "run.json").read_text())
    assert (run["policy"], run["split"]) == ({"name": "human"}, "test")
    part = compute_report(folder)["parts"][LINE]
    assert (part["episodes"], part["success"]["wins"]) == (2, 2)
    (watched,) = re.findall(r'href="(/run/\w+)">Watch', last)
    assert client.get(watched).text.count('<td><a href="/turn/') == 2
    prompt = next(iter(read_trajectories(folder)))[0].messages
    for message, text in zip(prompt, sections, strict=True):  # the model's view is the prompt
        words = [part["text"] for part in message["content"] if part["type"] == "text"]
        assert [each for each in words if each not in html.unescape(text)] == []
        assert f">{message['role']}<" in text


def test_the_form_begins_with_numberline_and_folds_rare_fields(tmp_path: Path) -> None:
    page = ask(tmp_path).get("/play").text
    assert re.findall(r"<option[^>]*>(vlgym/[^<]*)<", page)[:2] == [LINE, "vlgym/Sokoban-v0"]
    assert len(re.findall(r'<details class="wide"><summary>', page)) == 2
    assert page.index("<details") < page.index('name="opponents"')
    again = ask(tmp_path).get("/play?env=vlgym/Sokoban-v0&opponents=self").text
    assert re.findall(r"<option selected>(vlgym/[^<]*)<", again) == ["vlgym/Sokoban-v0"]
    assert '<details class="wide" open><summary>Other seats' in again


def test_a_click_is_the_action_in_the_reply_format_and_a_typed_action_too(tmp_path: Path) -> None:
    client = ask(tmp_path)
    address, page = begin(client)
    buttons = re.findall(r'<button name="action" value="(\d+)"[^>]*>([^<]*)<', page)
    numbers = {html.unescape(name).strip(): number for number, name in buttons}
    (wanted,) = re.findall(r"<action>(.*?)</action>", ask_oracle(client, address))
    page = send(client, address, page, action=numbers[wanted])
    escaped = html.escape(wanted)
    assert f"&lt;action&gt;<mark>{escaped}</mark>&lt;/action&gt;" in page
    assert f"executed: {escaped}" in page
    assert f"executed: {escaped}" in send(client, address, page, reply=wanted)


def test_one_person_holds_both_seats_of_a_game_that_is_played_together(tmp_path: Path) -> None:
    client = ask(tmp_path)
    (address, page), players = begin(client, env="vlgym/KitchenPair-v0", opponents="self"), []
    for _ in range(2):
        players += re.findall(r"player (\d)</span></h2>", page)
        page = send(client, address, page, action="0")
    assert sorted(players) == ["1", "2"]
    assert 'data-key="ArrowUp"' in page


@pytest.mark.parametrize(("fields", "line"), [
    ({"opponents": "self"}, f"{LINE} is for one agent and has no other seats"),
    ({"env": "vlgym/KuhnPoker-v0", "opponents": "self"}, "its seats play against each other"),
    ({"env": "vlgym/KuhnPoker-v0", "opponents": "nobody"}, "'nobody' is not one of"),
    ({"env": "vlgym/KuhnPoker-v0", "opponents": "random", "arguments": "seat=7"}, "has the seats 0, 1"),
    ({"env": "vlgym/NumberLin-v1"}, "vlgym/NumberLine-v1"), ({"episodes": "0"}, "whole number from 1"),
    ({"episodes": "many"}, "whole number from 1"), ({"arguments": "invalid_penalty"}, "name=value"),
], ids=range(8))  # fmt: skip
def test_a_wrong_field_is_a_line(tmp_path: Path, fields: dict[str, str], line: str) -> None:
    data = {"env": LINE, "split": "test", **fields}
    page = ask(tmp_path).post("/play", data=data, headers=OWN).text
    assert line in html.unescape(page)
    assert "Traceback" not in page


def test_a_form_that_is_sent_twice_plays_one_turn(tmp_path: Path) -> None:
    client = ask(tmp_path)
    address, page = begin(client)
    for _ in range(2):
        once = send(client, address, page, action="0")
        assert "<h2>Turn 2 " in once
    assert "<h2>Turn 3 " in send(client, address, once, action="0")


def test_a_refusal_stops_the_game_and_an_unreadable_reply_is_shown_as_text(tmp_path: Path) -> None:
    client = ask(tmp_path)
    _, stopped = begin(client, arguments="colour=red")
    assert re.search("The game has stopped: .*?colour", stopped)
    assert list((tmp_path / "human").iterdir()) == []
    address, page = begin(client)
    page = send(client, address, page, reply="<script>alert(1)</script> no idea")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "no_action</span>" in page


def test_a_game_whose_worker_is_killed_goes_on_in_another_one(tmp_path: Path) -> None:
    client = ask(tmp_path, processes=True)
    address, page = begin(client)
    page = send(client, address, page, action="0")
    os.killpg(find_worker(client), signal.SIGKILL)
    page = send(client, address, page, action="0")
    assert "<h2>Turn 3 " in page
    assert "has stopped" not in page
    worker = find_worker(client)
    client.post(address, data={"end": "1"}, headers=OWN)
    assert not is_running(worker)
    assert client.get(address).status_code == 404
    assert list((tmp_path / "human").glob("*/metadata.jsonl")) == []


def find_worker(client: TestClient) -> int:
    """Process of the only game's worker."""
    (game,) = client.app.state.games.open.values()  # type: ignore[attr-defined]
    return game._group._workers[0].link.pid


@pytest.mark.parametrize(("script", "limit", "line"), [
    ("pass", 20.0, "it ended with status 0"),
    ("import time; time.sleep(60)", 0.2, "did not answer within 0.2 s"),
])  # fmt: skip
def test_a_process_that_answers_nothing_ends_its_game_with_a_line(tmp_path, monkeypatch, script, limit, line):
    monkeypatch.setattr("vlgym.env_groups.workers.START", 0.0)
    start = functools.partial(ProcessLink, command=(sys.executable, "-c", script))
    game = PageGames(tmp_path, lambda: WorkerGroup(start, 1, limit=limit)).begin(LINE, {}, episodes=1)
    assert line in game.error
    assert "\n" not in game.error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("actions", "expected"), [
    (["up", "down", "left", "right"], ["Up", "Down", "Left", "Right"]),
    (["turn left", "turn right", "move forward"], ["Left", "Right", "Up"]),
    (["push left", "go left", "+"], ["Left", "", ""]), (["leftover", 7, "x" * 10], ["", "", ""]),
])  # fmt: skip
def test_an_arrow_key_stands_for_an_action(actions: list[Any], expected: list[str]) -> None:
    assert [key.removeprefix("Arrow") for _, _, key in name_keys(actions)] == expected
