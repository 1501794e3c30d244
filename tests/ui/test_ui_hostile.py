"""Hostile records: the pages stay up, show them as text, and read no other file."""

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
from ui_records import ask, draw, open_first, play, row, write, write_log, write_raw

from vlgym.play.trajectory import hash_picture

SCRIPT = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7007}}</pre></select><!--'
PICTURE = f"images/{hash_picture(draw(7))}.png"


def open_page(client: TestClient, address: str, status: int = 200, **options: Any) -> str:
    answer = client.get(html.unescape(address), **options)
    assert answer.status_code == status, address
    return answer.text


def check_harmless(page: str) -> None:
    """No tag of the record is one of the page, nothing runs or comes from elsewhere."""
    read = Tags(page)
    assert read.comments == []
    for tag, attributes in read.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        place = {"script": "/static/", "img": "/picture/"}.get(tag, "")
        assert (attributes.get("src") or "").startswith(place)
    assert "{{7*7007}}" in page or "49049" not in page


def test_tags_in_any_field_are_text_on_every_page(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": SCRIPT}, {"type": SCRIPT, "text": SCRIPT}]
    names = ("env_id", "part", "reply", "parse", "after", "text")
    bad = row(
        **dict.fromkeys(names, SCRIPT), actions=[SCRIPT], span=[0, 9],
        prompt=json.dumps([{"role": SCRIPT, "content": parts}]),
        learner={"value": 1, "advantage": 2, "tokens": [SCRIPT], "log_probs": [-1.0]},
    )  # fmt: skip
    header = {"title": SCRIPT, "config": {SCRIPT: SCRIPT}, "parts": {SCRIPT: 1}}
    for name in ("one", "two"):
        run = write_raw(tmp_path / name, bad)
        (run / "run.json").write_text(json.dumps(header))
        (run / "log.jsonl").write_text(json.dumps({"update": 1, "episode/success": 1, SCRIPT: 2}) + "\n")
    client = ask(tmp_path)
    _, turn = open_first(client)
    check_harmless(turn)
    assert "&lt;script&gt;alert(1)" in turn
    (run,) = set(re.findall(r'href="(/run/\w+)"', turn))
    (side,) = set(re.findall(r'href="(/side/[^"]*)"', turn))
    for address in ("/", "/episodes", run, side):
        check_harmless(open_page(client, address))


def test_the_words_of_an_address_are_text_too(tmp_path: Path) -> None:
    client = ask(write(tmp_path / "run", play(0)))
    for name in ("run", "env", "result", "code", "q", "sort", "page"):
        check_harmless(open_page(client, "/episodes", params={name: SCRIPT}))
    for address in ("/gallery/env/", "/run/", "/"):
        check_harmless(open_page(client, f"{address}<script>alert(1)</script>", 404))


BAD_FIELDS: list[dict[str, Any]] = [
    {"env_id": None}, {"env_id": ["x"]}, {"env_id": "x" * 10_000}, {"seed": "x"}, {"seed": 10**400},
    {"turn": "0"}, {"reward": "x"}, {"reward": None}, {"reward": 10**400}, {"reward": float("nan")},
    {"reward": float("inf")}, {"reward": True}, {"actions": "x"}, {"actions": [1, None]}, {"span": [5]},
    {"span": [-3, 99]}, {"span": "ab"}, {"span": [True, 3]}, {"span": [3, 1]}, {"reply": None},
    {"reply": 7}, {"reply": "\ud800 half"}, {"parse": 3}, {"prompt": "{"}, {"prompt": None},
    {"prompt": "7"}, {"prompt": "[1, null, {}]"}, {"prompt": "[" * 50_000}, {"file_name": 5},
    {"prompt": json.dumps([{"role": "user", "content": "plain"}])}, {"file_name": ""}, {"part": {}},
    {"prompt": json.dumps([{"role": 1, "content": [{"type": "image"}, 3, {"file_name": 9}]}])},
    {"usage": "x"}, {"usage": {"seconds": "x", "prompt_tokens": None}}, {"score": "x"}, {"learner": 3},
    {"learner": {"tokens": "x", "log_probs": [1]}}, {"episode": -1}, {"episode": 2**70},
    {"learner": {"tokens": ["x"], "log_probs": ["y"], "value": "z"}},
    {"learner": {"tokens": [3], "log_probs": [-1e308], "value": float("nan"), "advantage": 10**400}},
]  # fmt: skip


def test_a_field_of_another_type_breaks_no_page(tmp_path: Path) -> None:
    lines = [{**row(episode=n, seed=n), **bad} for n, bad in enumerate(BAD_FIELDS, 1)]
    for name in ("a", "b"):
        write_raw(tmp_path / name, *(json.dumps(line).encode() + b"\n" for line in lines))
    client = ask(tmp_path)
    pages = [client.get(f"/episodes?sort=newest&page={page}").text for page in (1, 2)]
    (broken,) = re.findall(r"(\d+) line\(s\) cannot be read", pages[0])
    (total,) = re.findall(r"of (\d+) episodes", pages[0])
    assert int(broken) + int(total) == 2 * len(BAD_FIELDS)
    sides: set[str] = set()
    for address in set(re.findall(r'href="(/(?:turn|run)/[^"]*)"', "".join(pages))):
        answer = client.get(html.unescape(address))
        assert answer.status_code == 200, address
        sides |= {*re.findall(r'href="(/side/[^"]*)"', answer.text)}
    assert len(sides) > 20
    places = [*sorted(sides)[::7], *(f"/episodes?sort=-{name}" for name in ("return", "turns", "failures"))]
    assert [each for each in places if client.get(html.unescape(each)).status_code != 200] == []


LINES = [
    b"\n", b"{\n", b"null\n", b"[]\n", b"7\n", b"\x00\xff\xfe\n", b"[" * 200_000 + b"\n",
    b'{"a":' * 100_000 + b"\n", b'{"reward": ' + b"9" * 10_000 + b"}\n", b"x" * 3_000_000 + b"\n",
]  # fmt: skip


def test_lines_that_cannot_be_read_are_counted_and_the_others_are_shown(tmp_path: Path) -> None:
    write_raw(tmp_path, row(episode=1), *LINES, row(episode=2))
    page = ask(tmp_path).get("/episodes").text
    assert page.count("<td><a href=") == 2
    assert f"{len(LINES)} line(s) cannot be read" in page


def test_a_huge_reply_is_shortened_on_its_page(tmp_path: Path) -> None:
    write_raw(tmp_path, row(reply="a" * 5_000_000 + "END"))
    _, page = open_first(ask(tmp_path))
    assert len(page) < 200_000
    assert "4940003 characters left out" in page
    assert "END" in page


@pytest.mark.parametrize("name", [
    "../secret.png", "/etc/hostname", "images/../../secret.png", "link.png", "images/link.png", "deep/secret.png",
    "images", "pipe.png", "images/\0x.png", "secret.txt", "",
])  # fmt: skip
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
    _, page = open_first(client)
    for source in re.findall(r'<img src="([^"]*)"', page):
        open_page(client, source, 404)
    (key,) = set(re.findall(r'href="/turn/(\w+)/0/0"', open_page(client, "/episodes")))
    open_page(client, f"/picture/{key}/{quote(name, safe='')}", 404)
    assert client.get(f"/picture/{key}/{quote(PICTURE, safe='')}").content == secret


def test_no_address_leads_to_another_file(tmp_path: Path) -> None:
    client = ask(write(tmp_path / "run", play(0)))
    for address in (
        "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd",
        "/turn/../0/0", "/turn/x/0/0", "/turn/..%2f..%2fetc/0/0", "/picture/x/images/a.png",
        "/turn/x/99999999999999999999/0", "/run/..%2f..", "/side/x/0/y/0/0",
        "/gallery/env/../../etc/passwd",
    ):  # fmt: skip
        assert "root:" not in open_page(client, address, 404)


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


def test_a_damaged_record_says_so_and_one_that_went_away_is_gone(tmp_path: Path) -> None:
    path = write_raw(tmp_path, row(reply="as it was")) / "metadata.jsonl"
    path.write_bytes(path.read_bytes().replace(b"as it was", b"is it was"))
    client = ask(tmp_path)
    address, page = open_first(client)
    assert "This record is not as it was written" in page
    os.remove(path)
    assert "The record cannot be read" in open_page(client, address)


def test_a_broken_log_or_run_file_breaks_no_page(tmp_path: Path) -> None:
    points = b'{"update": 1, "episode/return": 1e308}\n{"update": 2, "episode/return": -1e308}\n'
    for name, log, run in (
        ("a", b'{\nnull\n7\n{"update": 1, "episode/success": 1e999, "env_steps": "x"}\n', b"["),
        ("b", points, b'{"config": 3}'),
        ("c", b"", b'{"config": {"a": {"b": [1]}}, "environments": [1], "policy": null, "versions": "x"}'),
    ):
        folder = write_log(tmp_path / name, [])
        write(folder / "episodes" / "update-1", play(0))
        (folder / "log.jsonl").write_bytes(log)
        (folder / "run.json").write_bytes(run)
    client = ask(tmp_path)
    for key in re.findall(r'<option value="(\w{10})"', open_page(client, "/episodes")):
        for address in (f"/run/{key}", f"/episodes?run={key}"):
            points = "".join(re.findall(r'points="([^"]*)"', open_page(client, address)))
            assert "nan" not in points
