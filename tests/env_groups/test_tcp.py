"""Workers behind TCP: the same episodes, a proved token, no worker without its learner."""

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from commands import wait_until
from env_groups.test_env_groups import play

from vlgym.cli.app import main
from vlgym.env_groups import LOCAL, open_group, tcp
from vlgym.env_groups.tcp import TCP_WORKER_COMMAND, WorkerServer
from vlgym.errors import FailedError, UserError

KEY = "a token of this test"
IDS = ("vlgym/NumberLine-v0", "vlgym/SeeCount-v0", "vlgym/NumberLine-v0")
SLEEPS = (sys.executable, "-S", "-c", "import time; time.sleep(600)")


@contextmanager
def serving(workers: int, command: Any = TCP_WORKER_COMMAND) -> Iterator[WorkerServer]:
    server = WorkerServer("127.0.0.1", 0, workers, KEY, command)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(30)
    assert not thread.is_alive()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tcp.TOKEN, KEY)
    monkeypatch.setattr(tcp, "_PATIENCE_S", 0)
    monkeypatch.setattr(tcp, "_WAIT_S", 0.1)


def test_episodes_on_two_servers_are_the_same_and_the_workers_end_with_the_group() -> None:
    with serving(1) as one, serving(2) as two:
        group = open_group(f"tcp://127.0.0.1:{one.port},127.0.0.1:{two.port}")
        assert group.workers == 3
        assert play(group, IDS) == play(LOCAL, IDS)
        assert (len(one.running), len(two.running)) == (1, 2)
        for process in (*one.running, *two.running):
            assert KEY.encode() not in Path(f"/proc/{process.pid}/environ").read_bytes()
        with pytest.raises(UserError, match="An import string is code"):
            group.make(IDS[0], parser="json.decoder:JSONDecoder").reset(seed=0)
        group.close()
        wait_until(lambda: not one.running | two.running)


def test_a_worker_that_is_killed_is_replaced_by_another_servers_where_its_own_is_gone() -> None:
    lines: list[str] = []
    with serving(1) as two:
        with serving(1) as one:
            places = f"127.0.0.1:{one.port},127.0.0.1:{two.port}"
            group = open_group(f"tcp://{places}", tell=lines.append)
            env, here = group.make(IDS[0]), LOCAL.make(IDS[0])
            for each in (env, here):
                each.reset(seed=3)
                each.step("<action>+</action>")
            next(iter(one.running)).kill()
            assert repr(env.step("<action>+</action>")) == repr(here.step("<action>+</action>"))
        assert repr(env.step("<action>-</action>")) == repr(here.step("<action>-</action>"))
        assert (len(lines), len(two.running)) == (2, 1)
        group.close()


def test_a_learner_that_leaves_in_a_step_leaves_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "LEAVES_S", 0)
    with serving(4, SLEEPS) as server:
        for _ in range(10):
            link = tcp.TcpLink(0, [f"127.0.0.1:{server.port}"], KEY)
            link.send(b"half a frame")
            link.end()
            wait_until(lambda: len(server.running) < 4)
        wait_until(lambda: not server.running)
        for _ in range(4):
            assert server._free.acquire(timeout=10)


def test_more_learners_than_workers_are_told_so() -> None:
    with serving(1, SLEEPS) as server:
        place = f"127.0.0.1:{server.port}"
        link = tcp.TcpLink(0, [place], KEY)
        with pytest.raises(FailedError, match=rf"{place}: all its workers are taken"):
            open_group(f"tcp://{place}").make(IDS[0]).reset(seed=0)
        link.end()


def test_a_wrong_token_and_strangers_get_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(1, SLEEPS) as server:
        for sent in (b"GET / HTTP/1.1\r\nHost: local\r\n\r\n", b"w" + bytes(64), b"w"):
            with socket.create_connection(("127.0.0.1", server.port)) as stranger:
                stranger.sendall(sent)
                stranger.shutdown(socket.SHUT_WR)
                stranger.settimeout(30)
                answer = stranger.makefile("rb").read()
            assert answer[len(tcp.GREETING) + tcp.NONCE :] in (b"", b"-\1\0")
        monkeypatch.setenv(tcp.TOKEN, KEY + "!")
        with pytest.raises(UserError, match=r"does not take the token in VLGYM_TOKEN"):
            open_group(f"tcp://127.0.0.1:{server.port}")
        assert not server.running


class Impostor:
    """Answers one connection as a server that lacks the token; it keeps what the client said."""

    def __init__(self, proof: Callable[[bytes, bytes], bytes]) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self.listening.getsockname()[1]}"
        self.thread = threading.Thread(target=self._answer, args=(proof,))
        self.thread.start()

    def _answer(self, proof: Callable[[bytes, bytes], bytes]) -> None:
        connection, _ = self.listening.accept()
        hello = tcp.GREETING + bytes(tcp.NONCE)
        with self.listening, connection:
            connection.sendall(hello)
            request = connection.recv(1 + tcp.NONCE + tcp.DIGEST_BYTES, socket.MSG_WAITALL)
            connection.sendall(b"+\1\0" + proof(hello, request))


@pytest.mark.parametrize(
    "proof",
    [
        lambda hello, request: bytes(tcp.DIGEST_BYTES),
        lambda hello, request: request[-tcp.DIGEST_BYTES :],  # the client's own
        lambda hello, request: tcp.prove(tcp.CLIENT + hello + request + b"+\1\0", KEY),
        lambda hello, request: tcp.prove(tcp.SERVER + hello + request + b"+\1\0", "another token"),
        lambda hello, request: tcp.prove(tcp.SERVER + hello + bytes(len(request)) + b"+\1\0", KEY),  # of another
    ],
)
def test_a_server_that_does_not_prove_the_token_gets_no_environment(proof: Any) -> None:
    server = Impostor(proof)
    with pytest.raises(UserError, match=rf"tcp://{server.place} does not prove the token in VLGYM_TOKEN"):
        open_group(f"tcp://{server.place}")
    server.thread.join(30)


def test_strangers_that_drip_bytes_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "HANDSHAKE_S", 3.0)
    ended = threading.Event()

    def drip(strangers: list[socket.socket]) -> None:
        while not ended.wait(0.3):
            for stranger in strangers:
                with suppress(OSError):  # the server has given it up
                    stranger.sendall(b"w")

    with serving(1, SLEEPS) as server, ExitStack() as stack:
        strangers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            for _ in range(2 * tcp.MOST_WAITING)
        ]
        dripping = threading.Thread(target=drip, args=(strangers,))
        dripping.start()
        try:
            wait_until(lambda: len(server._unproved) == tcp.MOST_WAITING)
            began = time.monotonic()
            group = open_group(f"tcp://127.0.0.1:{server.port}")
            assert time.monotonic() - began < 2
            assert group.workers == 1
            wait_until(lambda: not server._unproved)  # although they still drip
            assert time.monotonic() - began < 10
        finally:
            ended.set()
            dripping.join()


def test_a_crowd_loses_its_own_oldest_connection_not_that_of_a_client_elsewhere() -> None:
    with serving(1, SLEEPS) as server, ExitStack() as stack:

        def connect(host: str) -> socket.socket:
            place = ("127.0.0.1", server.port)
            return stack.enter_context(socket.create_connection(place, source_address=(host, 0)))

        good = connect("127.0.0.2")
        crowd = [connect("127.0.0.1") for _ in range(2 * tcp.MOST_WAITING)]
        assert crowd[-1].recv(1)  # all were accepted
        hello = good.recv(len(tcp.GREETING) + tcp.NONCE, socket.MSG_WAITALL)
        request = tcp.ASK + bytes(tcp.NONCE)
        good.sendall(request + tcp.prove(tcp.CLIENT + hello + request, KEY))
        assert good.recv(1) == tcp.TAKEN


def test_what_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve", "--workers", "1", "--port", str(port)]) == 2
        assert f"--port {port}: Address already in use" in capsys.readouterr().err
        page = b"HTTP/1.1 400 Bad Request\r\n" + bytes(40)
        answer = threading.Thread(target=lambda: other.accept()[0].sendall(page))
        answer.start()
        with pytest.raises(UserError, match="it speaks another protocol or version"):
            open_group(f"tcp://127.0.0.1:{port}")
        answer.join()
    place = f"tcp://127.0.0.1:{port}"
    with pytest.raises(UserError, match=f"{place}: Connection refused. Start `vlgym serve"):
        open_group(place)
    monkeypatch.delenv(tcp.TOKEN)
    with pytest.raises(UserError, match="in the environment variable VLGYM_TOKEN"):
        open_group(place)


def test_gymnasium_makes_an_environment_there_whose_plugin_is_not_installed_here(monkeypatch):
    options: dict[str, Any] = {"image_size": (60, 80), "render_mode": "rgb_array"}
    here = gymnasium.make(IDS[1], **options)
    monkeypatch.setattr("vlgym.play.remote.get_registry", lambda: pytest.fail("asked for here"))
    with serving(1) as server:
        url = f"tcp://127.0.0.1:{server.port}"
        there = gymnasium.make("vlgym:remote", url=url, env_id=IDS[1], **options)
        assert there.observation_space == here.observation_space
        assert repr(there.reset(seed=5)) == repr(here.reset(seed=5))
        reply = here.unwrapped.solve()
        assert repr(there.step(reply)) == repr(here.step(reply))
        assert np.array_equal(there.render(), here.render())
        texts = {there.reset()[0]["image"].tobytes() for _ in range(3)}
        assert len(texts) == 3
        there.close()
        wait_until(lambda: not server.running)
        with pytest.raises(UserError, match="No environment"):
            gymnasium.make("vlgym:remote", url=url, env_id="vlgym/Nothing-v0")
        wait_until(lambda: not server.running)
