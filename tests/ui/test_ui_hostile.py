"""Hostile records: the pages stay up, show them as text, and read no other file."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from page_tags import Tags
from starlette.testclient import TestClient
from ui_records import ask, draw, play, row, write, write_log, write_raw

from vlgym.play.trajectory import hash_picture

SCRIPT = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7007}}</pre></select><!--'
PICTURE = f"images/{hash_picture(draw(7))}.png"


def open_first(client: TestClient) -> str:
    """The page of the first episode of the list."""
    page = client.get("/episodes").text
    (address, *_) = re.findall(r'<td><a href="(/turn/[^"]*)"', page)
    answer = client.get(html.unescape(address))
    assert answer.status_code == 200
    return answer.text


def check_harmless(page: str) -> None:
    """No tag of the record is one of the page, nothing runs or comes from elsewhere."""
    found = Tags(page)
    assert found.comments == []
    for tag, attributes in found.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert tag != "script" or (attributes.get("src") or "").startswith("/static/")
        assert tag != "img" or (attributes.get("src") or "").startswith("/picture/")
    assert "{{7*7007}}" in page or "49049" not in page


def test_tags_in_any_field_are_text_on_every_page(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": SCRIPT}, {"type": SCRIPT, "text": SCRIPT}]
    bad = row(
        env_id=SCRIPT, part=SCRIPT + "part", reply=SCRIPT, actions=[SCRIPT], parse=SCRIPT, after=SCRIPT, text=SCRIPT,
        prompt=json.dumps([{"role": SCRIPT, "content": parts}]), span=[0, 9],
        learner={"value": 1, "advantage": 2, "tokens": [SCRIPT], "log_probs": [-1.0]},
    )  # fmt: skip
    for name in ("one", "two"):
        run = write_raw(tmp_path / name, bad)
        (run / "run.json").write_text(json.dumps({"title": SCRIPT, "config": {SCRIPT: SCRIPT}, "parts": {SCRIPT: 1}}))
        (run / "log.jsonl").write_text(json.dumps({"update": 1, "episode/success": 1, SCRIPT: 2}) + "\n")
    client = ask(tmp_path)
    turn = open_first(client)
    check_harmless(turn)
    assert "&lt;script&gt;alert(1)" in turn
    (run,) = set(re.findall(r'href="(/run/\w+)"', turn))
    (side,) = set(re.findall(r'href="(/side/[^"]*)"', turn))
    for address in ("/", "/episodes", run, side):
        answer = client.get(address)
        assert answer.status_code == 200
        check_harmless(answer.text)


def test_the_words_of_an_address_are_text_too(tmp_path: Path) -> None:
    client = ask(write(tmp_path / "run", play(0)))
    for name in ("run", "env", "result", "code", "q", "sort", "page"):
        for address in ("/", "/episodes"):
            answer = client.get(address, params={name: SCRIPT})
            assert answer.status_code == 200
            check_harmless(answer.text)
    for address in ("/gallery/env/<script>alert(1)</script>", "/run/<script>alert(1)</script>", "/<script>alert(1)"):
        answer = client.get(address)
        assert answer.status_code == 404
        check_harmless(answer.text)


BAD_FIELDS: list[dict[str, Any]] = [
    {"env_id": None}, {"env_id": ["x"]}, {"env_id": "x" * 10_000}, {"seed": "x"}, {"seed": 10**400}, {"turn": "0"},
    {"reward": "x"}, {"reward": None}, {"reward": 10**400}, {"reward": float("nan")}, {"reward": float("inf")},
    {"reward": True}, {"actions": "x"}, {"actions": [1, None]}, {"span": [5]}, {"span": [-3, 99]}, {"span": "ab"},
    {"span": [True, 3]}, {"span": [3, 1]}, {"reply": None}, {"reply": 7}, {"reply": "\ud800 half"}, {"parse": 3},
    {"prompt": "{"}, {"prompt": None}, {"prompt": "7"}, {"prompt": "[1, null, {}]"}, {"prompt": "[" * 50_000},
    {"prompt": json.dumps([{"role": "user", "content": "plain"}])},
    {"prompt": json.dumps([{"role": 1, "content": [{"type": "image"}, 3, {"type": "image", "file_name": 9}]}])},
    {"usage": "x"}, {"usage": {"seconds": "x", "prompt_tokens": None}}, {"score": "x"}, {"file_name": 5},
    {"file_name": ""}, {"learner": 3}, {"learner": {"tokens": "x", "log_probs": [1]}}, {"part": {}},
    {"learner": {"tokens": ["x"], "log_probs": ["y"], "value": "z"}}, {"episode": -1}, {"episode": 2**70},
    {"learner": {"tokens": [3], "log_probs": [-1e308], "value": float("nan"), "advantage": 10**400}},
]  # fmt: skip


def test_a_field_of_another_type_breaks_no_page(tmp_path: Path) -> None:
    for number, bad in enumerate(BAD_FIELDS):
        line = json.dumps({**row(), **bad}).encode() + b"\n"
        for name in ("a", "b"):
            write_raw(tmp_path / f"{name}{number}", line, row(episode=9, seed=number))
    client = ask(tmp_path)
    listed = client.get("/episodes").text
    (broken,) = re.findall(r"(\d+) line\(s\) cannot be read", listed)
    (total,) = re.findall(r"of (\d+) episodes", listed)
    assert int(broken) + int(total) == 4 * len(BAD_FIELDS)
    seen: set[str] = set()
    pages = [client.get(f"/episodes?sort=newest&page={page}").text for page in range(1, 5)]
    for address in {each for page in pages for each in re.findall(r'href="(/(?:turn|run)/[^"]*)"', page)}:
        answer = client.get(html.unescape(address))
        assert answer.status_code == 200, address
        seen |= {*re.findall(r'href="(/side/[^"]*)"', answer.text)}
    assert all(client.get(html.unescape(address)).status_code == 200 for address in sorted(seen)[::7])
    for sort in ("return", "turns", "failures"):
        assert client.get(f"/episodes?sort=-{sort}").status_code == 200


LINES = [
    b"\n", b"{\n", b"null\n", b"[]\n", b"7\n", b"\x00\xff\xfe\n", b"[" * 200_000 + b"\n", b'{"a":' * 100_000 + b"\n",
    b'{"reward": ' + b"9" * 10_000 + b"}\n", b"x" * 3_000_000 + b"\n",
]  # fmt: skip


def test_lines_that_cannot_be_read_are_counted_and_the_others_are_shown(tmp_path: Path) -> None:
    write_raw(tmp_path, row(episode=1), *LINES, row(episode=2))
    page = ask(tmp_path).get("/episodes").text
    assert page.count("<td><a href=") == 2
    assert f"{len(LINES)} line(s) cannot be read" in page


def test_a_huge_reply_is_shortened_on_its_page(tmp_path: Path) -> None:
    write_raw(tmp_path, row(reply="a" * 5_000_000 + "END"))
    page = open_first(ask(tmp_path))
    assert len(page) < 200_000
    assert "4940003 characters left out" in page
    assert "END" in page


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png", "/etc/hostname", "images/../../secret.png", "link.png", "images/link.png", "deep/secret.png",
        "images", "pipe.png", "images/\0x.png", "secret.txt", "",
    ],
)  # fmt: skip
def test_a_picture_outside_of_its_folder_is_not_shown(tmp_path: Path, name: str) -> None:
    parts = [{"type": "image", "file_name": name}]
    bad = row(file_name=name, prompt=json.dumps([{"role": "user", "content": parts}]))
    run = write_raw(tmp_path / "run", bad)
    secret = (run / PICTURE).read_bytes()  # a real picture: only its place is wrong
    (tmp_path / "secret.png").write_bytes(secret)
    (run / "secret.txt").write_bytes(b"password")
    os.symlink(tmp_path / "secret.png", run / "link.png")
    os.symlink(tmp_path / "secret.png", run / "images" / "link.png")
    os.symlink(tmp_path, run / "deep")
    os.mkfifo(run / "pipe.png")
    client = ask(tmp_path / "run")
    page = open_first(client)
    for source in re.findall(r'<img src="([^"]*)"', page):
        assert client.get(html.unescape(source)).status_code == 404
    (key,) = set(re.findall(r'href="/turn/(\w+)/0/0"', client.get("/episodes").text))
    assert client.get(f"/picture/{key}/{quote(name, safe='')}").status_code == 404
    assert client.get(f"/picture/{key}/{quote(PICTURE, safe='')}").content == secret


def test_no_address_leads_to_another_file(tmp_path: Path) -> None:
    client = ask(write(tmp_path / "run", play(0)))
    for address in (
        "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/turn/../0/0",
        "/turn/x/0/0", "/turn/..%2f..%2fetc/0/0", "/picture/x/images/a.png", "/turn/x/99999999999999999999/0",
        "/run/..%2f..", "/side/x/0/y/0/0", "/gallery/env/../../etc/passwd",
    ):  # fmt: skip
        answer = client.get(address)
        assert answer.status_code == 404, address
        assert "root:" not in answer.text


def test_records_by_a_link_or_a_pipe_are_not_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", play(0))
    inside = tmp_path / "inside"
    (inside / "a").mkdir(parents=True)
    (inside / "b").mkdir()
    os.symlink(outside / "metadata.jsonl", inside / "a" / "metadata.jsonl")
    os.mkfifo(inside / "b" / "metadata.jsonl")
    os.symlink(outside, inside / "c")
    write(inside / "d", play(3))
    page = ask(inside).get("/episodes").text
    assert re.findall(r'<td><a href="/turn/.*?#(\d)', page, re.DOTALL) == ["3"]


def test_a_damaged_record_says_so_on_its_page(tmp_path: Path) -> None:
    write_raw(tmp_path, row(reply="as it was"))
    path = tmp_path / "metadata.jsonl"
    path.write_bytes(path.read_bytes().replace(b"as it was", b"is it was"))
    assert "This record is not as it was written" in open_first(ask(tmp_path))


def test_a_record_that_went_away_is_said_to_be_gone(tmp_path: Path) -> None:
    client = ask(write(tmp_path / "run", play(0)))
    (address,) = re.findall(r'<td><a href="(/turn/[^"]*)"', client.get("/episodes").text)
    os.remove(tmp_path / "run" / "metadata.jsonl")
    assert "The record cannot be read" in client.get(address).text


def test_a_broken_log_or_run_file_breaks_no_page(tmp_path: Path) -> None:
    for name, log, run in (
        ("a", b"{\nnull\n7\n" + b'{"update": 1, "episode/success": 1e999, "env_steps": "x"}\n', b"["),
        ("b", b'{"update": 1, "episode/return": 1e308}\n{"update": 2, "episode/return": -1e308}\n', b'{"config": 3}'),
        ("c", b"", b'{"config": {"a": {"b": [1]}}, "environments": [1], "policy": null, "versions": "x"}'),
    ):
        folder = write_log(tmp_path / name, [])
        write(folder / "episodes" / "update-1", play(0))
        (folder / "log.jsonl").write_bytes(log)
        (folder / "run.json").write_bytes(run)
    client = ask(tmp_path)
    for key in re.findall(r'<option value="(\w{10})"', client.get("/episodes").text):
        for address in (f"/run/{key}", f"/episodes?run={key}"):
            answer = client.get(address)
            assert answer.status_code == 200
            assert "nan" not in "".join(re.findall(r'points="([^"]*)"', answer.text))
