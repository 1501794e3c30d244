"""Access to the web page: who may ask, from where, and what the browser may do with the answer."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from commands import invoke
from starlette.testclient import TestClient
from ui_records import BASE, ask, play, write

from vlgym.errors import UserError
from vlgym.ui.site import create_app, serve_page


def test_names_of_this_machine_are_answered_and_another_that_points_here_is_refused() -> None:
    for name in ("127.0.0.1", "localhost"):
        assert ask(base=f"http://{name}:8421").get("/").status_code == 200
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"):
        assert ask(base=f"http://{name}:8421").get("/").status_code == 400
    for host in ("[::1].evil.com", "[::1]", "localhost:80.evil.com", "localhost.evil.com", ":80"):
        for origin in ("http://[::1", f"http://{host}"):
            assert ask().get("/", headers={"host": host, "origin": origin}).status_code == 400
            assert ask().post("/play", headers={"host": host, "origin": origin}).status_code == 400


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
    for address in ("/", "/gallery", "/nowhere", "/static/keys.js"):
        headers = client.get(address).headers
        policy = dict(each.strip().partition(" ")[::2] for each in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        names = ("script-src", "style-src", "img-src", "connect-src", "form-action")
        assert {policy[name] for name in names} == {"'self'"}
        assert (policy["base-uri"], policy["frame-ancestors"]) == ("'none'", "'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    page = client.get("/").text
    assert "http://" not in page.replace(BASE, "")
    assert "https://" not in page
    assert " style=" not in page


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"origin": BASE}, False), ({}, True), ({"origin": "null"}, True), ({"origin": "http://[::1"}, True),
        ({"origin": "http://evil.example"}, True),
        ({"origin": "http://127.0.0.1:9999"}, True), ({"origin": "http://127.0.0.1:8421.evil.example"}, True),
    ],
)  # fmt: skip
def test_changes_come_from_pages_of_this_server(headers: dict[str, str], refused: bool) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert ask().request(method, "/", headers=headers).status_code == (403 if refused else 405)


def test_a_port_that_is_taken_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(UserError, match="--port 0"):
            serve_page([], tmp_path, other.getsockname()[1], print)


def test_the_command_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "is not a folder" in invoke("ui", tmp_path / "none", status=2).err
