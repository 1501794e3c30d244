"""`vlgym serve ID` against OpenEnv's client and validator: episodes, refusals, no leaks."""

import base64
import importlib
import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml
from PIL import Image

from vlgym.env.seeding import episode_seed
from vlgym.env_groups.tcp import TOKEN
from vlgym.registry import get_registry

pytest.importorskip("openenv", reason="needs an environment of its own: make trainers")
from openenv.cli._cli_utils import validate_env_structure
from openenv.core.generic_client import GenericEnvClient
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

pytestmark = pytest.mark.filterwarnings("ignore:connect")

IDS = ("vlgym/NumberLine-v1", "vlgym/OneRoomS6Fast-v1", "vlgym/CanaryMemory-v0")
EPISODES, TRIES, SESSIONS, IDLE = 10, 200, 4, 20
KEY = "a token of this test"
RESET = json.dumps({"type": "reset", "data": {"seed": 1}})


@contextmanager
def serving(*options: str, **variables: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`vlgym serve` on a free port; yields its address and its process."""
    command = [sys.executable, "-m", "vlgym", "serve", *options, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables})
    try:
        yield process.stdout.readline().split("/vlgym")[0], process
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with serving(",".join(IDS), "--sessions", str(SESSIONS)) as pair:
        yield pair


def list_workers(process: subprocess.Popen[str]) -> list[str]:
    """The server's child processes."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]


def differences(result: Any, observation: Any, reward: float | None, over: bool, info: Any) -> int:
    """How many of the values of a turn differ from Gymnasium's; pictures count byte for byte."""
    seen = result.observation
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(seen["image"]))))
    pairs = (
        (seen["text"], observation["text"]), (result.reward, reward), (result.done, over),
        (seen["info"], json.loads(json.dumps(info))),
    )  # fmt: skip
    return (not np.array_equal(picture, observation["image"])) + sum(there != here for there, here in pairs)


@pytest.mark.parametrize("env_id", IDS)
def test_episodes_are_gymnasiums_byte_for_byte(server, env_id, record_property):
    here, turns, count = gymnasium.make(env_id, disable_env_checker=True), 0, 0
    with GenericEnvClient(f"{server[0]}/{env_id}").sync() as env:
        for number in range(EPISODES):
            rng, seed = np.random.default_rng(number), episode_seed(env_id, "train", number)
            observation, info = here.reset(seed=seed)
            count += differences(env.reset(seed=seed), observation, None, False, info)
            over = False
            while not over:
                reply = f"<action>{rng.choice([*here.unwrapped.legal_actions(), 'nothing'])}</action>"
                observation, reward, terminated, truncated, info = here.step(reply)
                over, turns = terminated or truncated, turns + 1
                count += differences(env.step({"reply": reply}), observation, float(reward), over, info)
            state = env.state()
            assert (state["seed"], state["env_id"]) == (seed, env_id)
    record_property("comparison", f"{env_id}: {EPISODES} episodes, {turns} turns, {count} differences")
    assert count == 0


def validate(*words: str) -> str:
    """Run OpenEnv's validator, which must pass; return its output."""
    command = [str(Path(sys.executable).parent / "openenv"), "validate", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_openenvs_validator_passes(server):
    assert "FAIL" not in validate("--url", f"{server[0]}/{IDS[0]}")


def test_the_package_for_openenvs_hub_is_valid_and_its_client_plays(server, monkeypatch):
    package = Path(__file__).parents[2] / "hub" / "openenv"
    validate("--level", "static", str(package))
    validate_env_structure(package, strict=True)
    manifest = yaml.safe_load((package / "openenv.yaml").read_text())
    assert tuple(manifest["validation"]["reward"]["range"]) == get_registry().get(IDS[0]).reward_range
    served = f'"serve", "{IDS[0]}", "--host", "0.0.0.0", "--port", "{manifest["port"]}"'
    assert served in (package / "Dockerfile").read_text()
    monkeypatch.syspath_prepend(str(package))
    with importlib.import_module("client").VlgymEnv(f"{server[0]}/{IDS[0]}").sync() as env:
        env.reset(seed=1)
        assert env.step({"reply": "<action>+</action>"}).observation["text"]


def test_clients_that_leave_in_the_middle_of_an_episode_leave_no_session(server):
    url = f"{server[0].replace('http', 'ws')}/{IDS[0]}/ws"
    for number in range(TRIES):
        client = connect(url)
        client.send(RESET)
        if number % 2:
            client.recv()
            client.send(json.dumps({"type": "step", "data": {"reply": "<action>+</action>"}}))
        client.socket.close()  # as a process that is killed
        if number % SESSIONS == SESSIONS - 1:
            with all_sessions(url):
                pass
    with all_sessions(url) as clients:
        for client in clients:
            client.send(RESET)
            assert json.loads(client.recv())["type"] == "observation"
        with connect(url) as late:
            assert json.loads(late.recv())["data"]["code"] == "CAPACITY_REACHED"
    assert 0 < len(list_workers(server[1])) <= SESSIONS


@contextmanager
def all_sessions(url: str) -> Iterator[list[Any]]:
    """Hold every session of the server, as soon as those that were left are closed."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with ExitStack() as stack:
            clients = [stack.enter_context(connect(url)) for _ in range(SESSIONS)]
            if all(has_session(client) for client in clients):
                yield clients
                return
        time.sleep(0.05)
    pytest.fail("a session stays taken")


def has_session(client: Any) -> bool:
    """True if the server gave the client a session."""
    try:
        client.send(json.dumps({"type": "state"}))
        return json.loads(client.recv())["type"] == "state"
    except ConnectionClosed:
        return False


def test_an_idle_session_is_closed_and_says_so():
    with serving(IDS[0], "--idle", str(IDLE)) as (address, _), GenericEnvClient(f"{address}/{IDS[0]}").sync() as env:
        env.reset(seed=1)
        time.sleep(IDLE * 1.25 + 6)
        with pytest.raises(RuntimeError, match="was closed because it was idle"):
            env.step({"reply": "+"})


def refused(url: str, data: bytes | None = None, **headers: str) -> tuple[int, str]:
    """Status and line of a refusal."""
    headers["Content-Type"] = "application/json"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60)
    return caught.value.code, json.loads(caught.value.read())["detail"]


def test_bad_input_is_one_line(server):
    address = server[0]
    status, line = refused(f"{address}/vlgym/Nothing-v0/health")
    assert status == 404
    assert line.startswith("No environment is here; there are /vlgym/NumberLine-v1")
    assert refused(f"{address}/{IDS[0]}/health", Origin="http://elsewhere.example")[0] == 403
    assert refused(f"{address}/{IDS[0]}/health", Host="elsewhere.example")[0] == 403
    with pytest.raises(ConnectionError, match="404"), GenericEnvClient(f"{address}/vlgym/Nothing-v0").sync() as env:
        env.reset()
    with GenericEnvClient(f"{address}/{IDS[0]}").sync() as env:
        for wrong in ({"words": "up"}, {"reply": 5}):
            with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
                env.step(wrong)
        with pytest.raises(RuntimeError, match="Reset the environment before the first step"):
            env.step({"reply": "up"})
        with pytest.raises(RuntimeError, match="EXECUTION_ERROR"):
            env.reset(seed="monday")
        assert env.reset(seed=1).observation["text"]


def read_peak(process: subprocess.Popen[str]) -> int:
    """Most memory that a process has had, in MB."""
    return int(Path(f"/proc/{process.pid}/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024


@pytest.mark.parametrize("chunks", [False, True], ids=["length", "chunks"])
@pytest.mark.parametrize("path", ["reset", "step", "nothing"])
def test_a_long_body_is_not_read(server, path, chunks):
    url, sent, before = f"{server[0]}/{IDS[0]}/{path}", 0, read_peak(server[1])
    host, port = server[0].removeprefix("http://").split(":")
    head = "Transfer-Encoding: chunked" if chunks else f"Content-Length: {1 << 30}"
    piece = bytes(1 << 20)
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(f"POST {url} HTTP/1.1\r\nHost: {host}:{port}\r\n{head}\r\n\r\n".encode())
        try:
            while sent < 1 << 30:
                client.sendall((b"%x\r\n%s\r\n" % (len(piece), piece)) if chunks else piece)
                sent += len(piece)
        except OSError:
            pass  # it was told to go
    assert sent < 1 << 26
    assert read_peak(server[1]) - before < 50
    assert refused(url, b"[" * (1 << 20) + b"1") == (413, "A request has at most 1048576 bytes.")


@pytest.mark.parametrize(
    ("path", "body", "status", "line"),
    [
        ("step", b'{"action": {"reply": "up"}}', 400, "Reset the environment before the first"),
        ("step", b'{"action": {"reply": NaN}}', 422, "reply"),
        ("step", b'{"action": {"reply": "up"}, "timeout_s": NaN}', 422, "timeout_s"),
        ("step", rb'{"action": {"reply": ["\ud800\u001b"]}}', 422, "reply"),
        ("step", b'{"action": "up"}', 422, "action"),
        ("step", b"[" * 100_000, 4, ""),
        ("step", b"\xff\x00", 4, ""),
        ("reset", b'{"seed": 1, "level": 3}', 400, "A reset takes seed and episode_id, not level"),
        ("reset", b'{"seed": 1' + b"0" * 5000 + b"}", 4, ""),
        ("reset", b'{"seed": -Infinity}', 422, "seed"),
    ],
)
def test_a_wrong_body_is_one_line(server, path, body, status, line):
    code, text = refused(f"{server[0]}/{IDS[0]}/{path}", body)
    assert status in (code, code // 100)
    assert line in text
    assert "Traceback" not in text
    assert text.isprintable()


def test_an_environment_that_raises_is_one_line(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import vlgym_cards.number_line as module\n"
        "def fail(*a, **k): raise KeyError('lamp')\n"
        "module.NumberLine.start = fail\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with serving(IDS[0], PYTHONPATH=paths) as (address, _):
        assert refused(f"{address}/{IDS[0]}/reset", b'{"seed": 1}') == (500, "'lamp'")


def test_with_a_token_every_request_needs_it():
    with serving(IDS[0], **{TOKEN: KEY}) as (address, _):
        address += f"/{IDS[0]}"
        for headers in (None, {"Authorization": f"Bearer {KEY}x"}):
            with pytest.raises(ConnectionError, match="401"), GenericEnvClient(address, headers=headers).sync() as env:
                env.reset()
        assert refused(f"{address}/health")[1] == "This server needs the header `Authorization: Bearer TOKEN`."
        with GenericEnvClient(address, headers={"Authorization": f"Bearer {KEY}"}).sync() as env:
            assert env.reset(seed=1).observation["image"]


@pytest.mark.parametrize(
    ("env_id", "line"), [("vlgym/NumberLin-v1", "Nearest: vlgym/NumberLine-v1"), (IDS[0], "Address already in use")]
)
def test_a_server_that_cannot_begin_says_why(env_id, line):
    with socket.create_server(("127.0.0.1", 0)) as other:
        command = [sys.executable, "-m", "vlgym", "serve", env_id, "--port", str(other.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert line in done.stderr
