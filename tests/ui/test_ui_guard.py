"""Who may ask the web page, and what no form, record or worker makes it do."""

import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import invoke, is_running, wait_until
from starlette.testclient import TestClient
from ui_records import BASE, ask, play, write

from vlgym.errors import UserError
from vlgym.play.remote import _rebuild
from vlgym.ui.site import create_app, serve_page


def test_names_of_this_machine_are_answered_and_another_that_points_here_is_refused() -> None:
    others = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1")
    for name in ("127.0.0.1", "localhost", *others):
        status = 400 if name in others else 200
        assert ask(base=f"http://{name}:8421").get("/").status_code == status, name
    for host in ("[::1].evil.com", "[::1]", "localhost:80.evil.com", "localhost.evil.com", ":80"):
        for origin in ("http://[::1", f"http://{host}"):
            headers = {"host": host, "origin": origin}
            assert ask().get("/", headers=headers).status_code == 400
            assert ask().post("/play", headers=headers).status_code == 400


def test_a_request_needs_the_token_and_a_link_brings_it_once(tmp_path: Path) -> None:
    client = TestClient(create_app([], tmp_path, "secret"), base_url=BASE)
    for address in ("/", "/gallery", "/static/keys.js", "/?token=other"):
        assert client.get(address).status_code == 401
    assert client.post("/?token=secret", headers={"origin": BASE}).status_code == 401
    answer = client.get("/gallery?token=secret&family=cards", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{BASE}/gallery?family=cards")
    assert "vlgym_8421=secret; HttpOnly; Path=/; SameSite=strict" in answer.headers["set-cookie"]
    assert client.get("/gallery").status_code == 200
    client.cookies.clear()
    answer = client.get(f"{BASE}//evil.example/?token=secret", follow_redirects=False)
    assert answer.headers["location"] == f"{BASE}//evil.example/"


def test_the_browser_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    client = ask(write(tmp_path / "run", play(0)))
    own = ("script-src", "style-src", "img-src", "connect-src", "form-action")
    none = ("default-src", "base-uri", "frame-ancestors")
    expected = {**dict.fromkeys(own, "'self'"), **dict.fromkeys(none, "'none'")}
    for address in ("/", "/gallery", "/nowhere", "/static/keys.js"):
        headers = client.get(address).headers
        rules = headers["content-security-policy"].split(";")
        policy = dict(rule.strip().partition(" ")[::2] for rule in rules)
        assert policy | expected == policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    page = client.get("/").text.replace(BASE, "")
    assert [words for words in ("http://", "https://", " style=") if words in page] == []


@pytest.mark.parametrize("origin", [
    BASE, None, "null", "http://[::1", "http://evil.example", "http://127.0.0.1:9999",
    "http://127.0.0.1:8421.evil.example",
])  # fmt: skip
def test_changes_come_from_pages_of_this_server(origin: str | None) -> None:
    headers = {"origin": origin} if origin else {}
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        status = ask().request(method, "/", headers=headers).status_code
        assert status == (405 if origin == BASE else 403)


def test_a_port_that_is_taken_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(UserError, match="--port 0"):
            serve_page([], tmp_path, other.getsockname()[1], print)


def test_the_command_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "is not a folder" in invoke("ui", tmp_path / "none", status=2).err


OWN = {"origin": BASE}
POKER = "vlgym/KuhnPoker-v0"
CODE = "page_secrets_code:made"


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears when the callable `CODE` is called, here or in a child process."""
    mark = tmp_path / "called"
    code = f"def made():\n    open({str(mark)!r}, 'w').close()\n"
    (tmp_path / "page_secrets_code.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return mark


def begin(client: TestClient, **fields: str) -> str:
    """Send the form that begins a game; return the page that it leads to."""
    data = {"env": POKER, "split": "test", **fields}
    return client.post("/play", data=data, headers=OWN).text


def test_a_form_imports_no_parser(tmp_path: Path, imported: Path) -> None:
    for parser in (CODE, json.dumps(CODE), json.dumps([CODE])):
        page = begin(ask(tmp_path), env="vlgym/NumberLine-v1", arguments=f"parser={parser}")
        assert "only tag, json, plan, choice, auto are taken" in page
    assert not imported.exists()


def test_neither_a_worker_nor_a_models_folder_imports_a_parser(tmp_path, imported, monkeypatch):
    with pytest.raises(UserError, match="not known here"):
        _rebuild(POKER, {}, {"name": CODE, "place": CODE, "version": 1, "format": ""})
    model = SimpleNamespace(prefers=lambda: {"parser": CODE})
    monkeypatch.setattr("vlgym.cli.eval_cmd.find_policy", lambda *_: lambda: model)
    error = invoke("eval", "--policy", "x", "--env", POKER, "--out", tmp_path / "out", status=2).err
    assert "only tag, json, plan" in error
    assert not imported.exists()


def test_a_form_names_no_policy_that_needs_more_than_its_name(tmp_path: Path) -> None:
    replies = tmp_path / "replies.txt"
    replies.write_text("<action>bet</action>\n")
    options = "base_url=http://127.0.0.1:9/v1\napi_key_env=HOME"
    for others in (f"scripted:{replies}", "openai:m", "openai", "scripted"):
        page = begin(ask(tmp_path), opponents=others, options=options)
        assert "is not one of" in page, others
        assert "<h2>Turn" not in page


def test_no_application_is_made_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="token"):
        create_app([], tmp_path, "")


def test_a_number_of_5000_digits_is_none(tmp_path: Path) -> None:
    client, number = ask(tmp_path), "1" * 5000
    assert client.get(f"/episodes?page={number}").status_code == 200
    for episodes in ("1" + "0" * 5000, "000000001" + "0" * 5000, "²"):
        data = {"env": POKER, "episodes": episodes}
        assert client.post("/play", data=data, headers=OWN).status_code == 400
    deep = begin(client, env="vlgym/NumberLine-v1", arguments="x=" + "[" * 100_000)
    assert "has no argument" in html.unescape(deep)


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
        _, errors = child.communicate(timeout=15)  # 3 s on a machine that does nothing else
    finally:
        child.kill()
        child.wait()
        for each in connections:
            each.close()
    assert "running task" not in errors  # those who wait get an answer
    started = [int(each.name) for each in tmp_path.iterdir() if each.name.isdigit()]
    assert len(started) == 1
    wait_until(lambda: not any(map(is_running, started)))
