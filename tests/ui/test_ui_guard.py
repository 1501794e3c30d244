"""Who may ask the web page, from where, and what the browser may do with the answer."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from ui_records import BASE, ask, play, write

from vlgym.cli.app import main
from vlgym.errors import UserError
from vlgym.ui.guarding import LARGEST_BODY, find_refusal
from vlgym.ui.server import serve
from vlgym.ui.settings import Settings, is_loopback


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "127.3.2.1"])
def test_names_of_this_machine_are_answered(name: str) -> None:
    assert ask(base=f"http://{name}:8421").get("/").status_code == 200


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"])
def test_another_name_that_was_made_to_point_here_is_refused(name: str) -> None:
    answer = ask(base=f"http://{name}:8421").get("/")
    assert (answer.status_code, "localhost" in answer.text) == (403, True)


def test_the_browser_may_load_nothing_from_elsewhere_and_run_no_script_of_the_page(tmp_path: Path) -> None:
    client = ask(write(tmp_path / "run", play(0)))
    for address in ("/", "/gallery", "/nowhere", "/static/keys.js"):
        headers = client.get(address).headers
        policy = dict(each.strip().partition(" ")[::2] for each in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src", "form-action")} == {
            "'self'"
        }
        assert (policy["base-uri"], policy["frame-ancestors"]) == ("'none'", "'none'")
        assert headers["x-content-type-options"] == "nosniff"
    page = client.get("/").text
    assert "http://" not in page.replace(BASE, "")
    assert "https://" not in page
    assert " style=" not in page


def test_another_sites_page_gets_no_answer_but_a_person_may_follow_its_link() -> None:
    client = ask()
    for site in ("cross-site", "same-site"):
        assert client.get("/", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}).status_code == 403
        assert client.get("/", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}).status_code == 200
    assert client.get("/", headers={"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"origin": BASE}, False),
        ({"origin": BASE, "sec-fetch-site": "same-origin"}, False),
        ({}, True),
        ({"origin": "null"}, True),
        ({"origin": "http://evil.example"}, True),
        ({"origin": "http://127.0.0.1:9999"}, True),
        ({"origin": "http://127.0.0.1:8421.evil.example"}, True),
        ({"origin": BASE, "sec-fetch-site": "cross-site"}, True),
        ({"origin": BASE, "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"}, True),
    ],
)
def test_what_changes_something_must_come_from_a_page_of_this_server(headers: dict[str, str], refused: bool) -> None:
    given = Headers({"host": "127.0.0.1:8421", **headers})
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert (find_refusal(Settings(), method, given) is not None) == refused
    assert ask().post("/", headers=headers).status_code == (403 if refused else 405)


def test_elsewhere_a_token_is_needed_and_a_link_brings_it_once() -> None:
    client = ask(token="secret", host="0.0.0.0", base="http://box.example:8421")
    assert client.get("/").status_code == 401
    assert client.get("/static/style.css").status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    assert client.get("/", cookies={"vlgym_token": "wrong"}).status_code == 401
    client.cookies.clear()
    brought = client.get("/gallery?token=secret&a=1", follow_redirects=False)
    assert (brought.status_code, brought.headers["location"]) == (303, "/gallery?a=1")
    cookie = brought.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/").status_code == 200
    assert client.post("/", headers={"origin": "http://box.example:8421"}).status_code == 405


def test_the_token_in_a_link_sends_nobody_to_another_server() -> None:
    client = ask(token="secret", host="0.0.0.0", base="http://box.example:8421")
    for path in ("//evil.example/?token=secret", "/%5Cevil.example/?token=secret"):
        answer = client.get(f"http://box.example:8421{path}", follow_redirects=False)
        assert not answer.headers.get("location", "/").startswith(("//", "/\\"))


def test_a_body_that_is_larger_than_any_form_is_not_read() -> None:
    answer = ask().post("/", headers={"origin": BASE}, content=b"x" * (LARGEST_BODY + 1))
    assert answer.status_code >= 400


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("x", False),
        ("", False),
    ],
)
def test_only_this_machines_own_addresses_need_no_token(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected


def test_a_port_that_is_taken_is_one_line_that_says_what_to_do() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(UserError, match="--port 0"):
            serve(Settings(port=other.getsockname()[1]), print)


def test_the_command_refuses_a_folder_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["ui", str(tmp_path / "none")]) == 2
    assert "is no folder" in capsys.readouterr().err
