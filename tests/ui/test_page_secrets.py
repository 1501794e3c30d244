"""The web page's secrets: no form, record or worker makes it import code or send a key."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import invoke
from starlette.testclient import TestClient
from ui_records import BASE, ask, is_running

from vlgym.errors import UserError
from vlgym.files import seal
from vlgym.integrations.minari import _describe
from vlgym.play.remote import _rebuild
from vlgym.ui.site import create_app

OWN = {"origin": BASE}
POKER = "vlgym/KuhnPoker-v0"
CODE = "page_secrets_code:made"


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears when the callable `CODE` is called, here or in a child process."""
    mark = tmp_path / "called"
    (tmp_path / "page_secrets_code.py").write_text(f"def made():\n    open({str(mark)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return mark


def begin(client: TestClient, **said: str) -> str:
    """Send the form that begins a game; return the page that it leads to."""
    return client.post("/play", data={"env": POKER, "split": "test", **said}, headers=OWN).text


@pytest.mark.parametrize("said", [CODE, json.dumps(CODE), json.dumps([CODE])])
def test_a_form_imports_no_parser(tmp_path: Path, imported: Path, said: str) -> None:
    page = begin(ask(tmp_path), env="vlgym/NumberLine-v1", arguments=f"parser={said}")
    assert "only tag, json, plan, choice, auto are taken" in page
    assert not imported.exists()


def test_neither_a_record_nor_a_worker_nor_a_models_folder_imports_a_parser(
    tmp_path: Path, imported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    part = {"arguments": {}, "parser": CODE}
    (tmp_path / "run" / "run.json").write_text(json.dumps(seal({"format": 4, "parts": {POKER: part}})))
    record: Any = SimpleNamespace(part="", env_id=POKER)
    with pytest.raises(UserError, match="only tag, json, plan"):
        _describe(tmp_path / "run", record)
    with pytest.raises(UserError, match="not known here"):
        _rebuild(POKER, {}, {"name": CODE, "place": CODE, "version": 1, "format": ""})
    model = SimpleNamespace(prefers=lambda: {"parser": CODE})
    monkeypatch.setattr("vlgym.cli.eval_cmd.find_policy", lambda *_: lambda: model)
    said = invoke("eval", "--policy", "x", "--env", POKER, "--out", tmp_path / "out", status=2).err
    assert "only tag, json, plan" in said
    assert not imported.exists()


def test_a_form_names_no_policy_that_needs_more_than_its_name(tmp_path: Path) -> None:
    replies = tmp_path / "replies.txt"
    replies.write_text("<action>bet</action>\n")
    for others in (f"scripted:{replies}", "openai:m", "openai", "scripted"):
        page = begin(ask(tmp_path), opponents=others, options="base_url=http://127.0.0.1:9/v1\napi_key_env=HOME")
        assert "is not one of" in page, others
        assert "<h2>Turn" not in page


def test_no_application_is_made_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="token"):
        create_app([], tmp_path, "")


def test_a_number_of_5000_digits_is_none(tmp_path: Path) -> None:
    client, number = ask(tmp_path), "1" * 5000
    assert client.get(f"/episodes?page={number}").status_code == 200
    for episodes in ("1" + "0" * 5000, "000000001" + "0" * 5000, "²"):
        assert client.post("/play", data={"env": POKER, "episodes": episodes}, headers=OWN).status_code == 400
    deep = client.post("/play", data={"env": "vlgym/NumberLine-v1", "arguments": "x=" + "[" * 100_000}, headers=OWN)
    assert "has no argument" in html.unescape(deep.text)


def test_a_form_of_2_mb_is_too_large_with_and_without_a_length(tmp_path: Path) -> None:
    client, body = ask(tmp_path), b"reply=" + b"x" * 2_000_000
    for content in (body, iter([body[:1_500_000], body[1_500_000:]])):
        answer = client.post("/play", content=content, headers=OWN)
        assert answer.status_code == 413
        assert "too large" in answer.text


PAGE = """
import functools, sys
from pathlib import Path
from vlgym.env_groups.processes import ProcessLink
from vlgym.env_groups.workers import WorkerGroup
from vlgym.ui import site

stuck = (sys.executable, "-c", "import os, time; "
         f"open({sys.argv[1]!r} + '/' + str(os.getpid()), 'w').close(); time.sleep(600)")
workers = lambda: WorkerGroup(functools.partial(ProcessLink, command=stuck), 1)
site.PageGames = functools.partial(site.PageGames, workers=workers)
site.serve_page([], Path(sys.argv[1]) / "human", 0, lambda address: print(address, flush=True))
"""


def wait_until(met: Any) -> None:
    until = time.monotonic() + 30
    while not met():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_waiting_game_holds_up_no_other_page_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PAGE, str(tmp_path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    connections = []
    try:
        assert child.stdout is not None
        port, token = re.findall(r":(\d+)/\?token=(\S+)", child.stdout.readline())[0]
        head = f"Host: 127.0.0.1:{port}\r\nCookie: vlgym_{port}={token}\r\n"

        def send(first: str, more: str = "") -> socket.socket:
            connections.append(socket.create_connection(("127.0.0.1", int(port)), 30))
            connections[-1].sendall(f"{first} HTTP/1.1\r\n{head}{more}".encode())
            return connections[-1]

        form = f"env={POKER}&split=test"
        origin = f"Origin: http://127.0.0.1:{port}\r\nContent-Length: {len(form)}\r\n\r\n"
        send("POST /play", origin + form)
        wait_until(lambda: any(each.name.isdigit() for each in tmp_path.iterdir()))
        answer = send("GET /static/style.css", "\r\n").recv(99)
        assert b"200 OK" in answer
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=15)  # 3 s on a machine that does nothing else
    finally:
        child.kill()
        child.wait()
        for each in connections:
            each.close()
    assert "running task" not in said  # those who wait get an answer
    started = [int(each.name) for each in tmp_path.iterdir() if each.name.isdigit()]
    assert len(started) == 1
    wait_until(lambda: not any(map(is_running, started)))
