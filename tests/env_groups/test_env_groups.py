"""Environments here, in processes and on Ray: the same episodes, also when workers are lost."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import Coin, Walk, make_spec

from vlgym.env.prompts import PromptBuilder
from vlgym.env.seeding import episode_seed
from vlgym.env_groups import LOCAL, open_group, read_envs, wire
from vlgym.env_groups.host import Host
from vlgym.env_groups.processes import ProcessLink
from vlgym.env_groups.workers import LostError, WorkerGroup
from vlgym.errors import FailedError, NotInstalledError, UserError
from vlgym.evaluation import run_evaluation
from vlgym.evaluation.plan import add_controls, plan_ids
from vlgym.play.controls import SHUFFLED
from vlgym.play.env_failures import EnvFailures
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner
from vlgym.types import StepRecord

pytestmark = pytest.mark.xdist_group("env groups")  # one worker, so that processes and actors are started once

IDS = ("vlgym/NumberLine-v0", "vlgym/TicTacToe-v0", "vlgym/Sokoban-v0")
MORE_IDS = (*IDS, "vlgym/SeeCount-v0", "vlgym/OneRoomS6Fast-v1")
PLAIN = (type(None), bool, int, float, str)


def types_of(value: Any) -> Any:
    """The value with the types of all its parts, arrays as bytes: equal is equal bit for bit."""
    if isinstance(value, dict):
        return "dict", [(types_of(key), types_of(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [types_of(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return type(value).__name__, value.dtype.str, value.shape, value.tobytes()
    assert type(value) in PLAIN, type(value)
    return type(value).__name__, repr(value)


def play(group: Any, env_ids: Sequence[str], turns: int = 4) -> list[Any]:
    """Return each environment's answers to a reset and to replies drawn from its action space."""
    envs = [group.make(env_id) for env_id in env_ids]
    seen: list[Any] = []
    for number, env in enumerate(envs):
        env.action_space.seed(number)
        seen.append(types_of(env.reset(seed=episode_seed(env_ids[number], "train", number))))
    over = [False] * len(envs)
    for turn in range(turns):
        for number, env in enumerate(envs):
            if not over[number]:
                text = "nothing" if turn == 1 else env.action_space.sample()
                step = env.step(text)
                over[number] = step[2] or step[3]
                seen.append((text, types_of(step)))
    for env in envs:
        env.close()
    return seen


@pytest.fixture(scope="module")
def processes() -> Iterator[WorkerGroup]:
    group = open_group("processes:2")
    yield group
    group.close()


@pytest.fixture(scope="module")
def ray_actors() -> Iterator[WorkerGroup]:
    group = open_group("ray:2")
    yield group
    group.close()
    import ray

    ray.shutdown()


MORE = [pytest.param(each, MORE_IDS, marks=pytest.mark.exhaustive) for each in ("processes", "ray_actors")]


@pytest.mark.parametrize(("group", "env_ids"), [("processes", IDS), *MORE])  # Ray takes half a minute to start
def test_episodes_elsewhere_are_the_same_bit_for_bit(group: str, env_ids: Any, request: Any) -> None:
    assert play(request.getfixturevalue(group), env_ids) == play(LOCAL, env_ids)


def row_of(record: StepRecord) -> Any:
    return record.env_id, record.episode, record.turn, types_of(asdict(record))


def test_an_environment_elsewhere_says_of_itself_what_one_here_says(processes: WorkerGroup) -> None:
    here, there = LOCAL.make(IDS[0]), processes.make(IDS[0])
    assert there.vlgym_spec == here.vlgym_spec
    for env in (here, there):
        env.reset(seed=5)
    for ask in (lambda env: env.solve(), lambda env: env.think("+"), lambda env: env.legal_actions()):
        assert ask(there) == ask(here)
    there.close()


def test_wrong_arguments_are_the_same_error_as_here(processes: WorkerGroup) -> None:
    for arguments in ({"no_such": 1}, {"parser": "no-such"}):
        with pytest.raises(UserError) as here:
            LOCAL.make(IDS[0], **arguments)
        with pytest.raises(UserError) as there:
            processes.make(IDS[0], **arguments).reset(seed=0)
        assert " ".join(str(here.value).split()) == str(there.value)
    with pytest.raises(UserError, match="cannot be sent"):
        processes.make(IDS[0], parser=object())
    env = processes.make(IDS[0])
    with pytest.raises(UserError, match="needs a seed"):
        env.reset()
    env.close()


def test_an_evaluation_writes_the_same_records(processes: WorkerGroup, tmp_path: Path) -> None:
    parts = add_controls(plan_ids([IDS[0]], episodes=3), [SHUFFLED])
    for name, group in (("here", LOCAL), ("there", processes)):
        run_evaluation(parts, RandomPolicy(), tmp_path / name, num_envs=3, group=group)
    here, there = ((tmp_path / name / "metadata.jsonl").read_bytes() for name in ("here", "there"))
    assert sorted(here.splitlines()) == sorted(there.splitlines())
    assert here.count(b"\n") > 8
    run, other = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("here", "there"))
    assert {**run, "crc32": 0, "sessions": 0} == {**other, "crc32": 0, "sessions": 0}


ALONE = """
import sys
from vlgym.env_groups import open_group
open_group("processes:1").make("vlgym/NumberLine-v0").reset(seed=1)
print(sorted(name for name in sys.modules if name.startswith("vlgym_cards.")))
"""


def test_environment_code_is_not_imported_by_who_steps_it_and_no_worker_outlives_it() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("['vlgym_cards.plugin']\n", "")


class PretendLink:
    """A worker in this process, lost when it is told to: before or after it answered."""

    def __init__(self, index: int, fate: Callable[[dict[str, Any]], str] = lambda _: "") -> None:
        self.name, self.fate, self.host = f"pretended worker {index}", fate, Host(make_toy)
        self.requests: deque[Any] = deque()
        self.lost = False

    def send(self, frame: bytes) -> None:
        self.requests.append(wire.unpack(frame))

    def flush(self) -> None:
        pass

    def receive(self, limit: float) -> Any:
        fate = "" if self.lost else self.fate(self.requests[0])
        self.lost = self.lost or fate == "before"
        if self.lost:
            raise LostError("it was lost")
        answer = wire.unpack(self.host.write_answer(self.requests.popleft()))
        self.lost = fate == "after"
        if self.lost:
            raise LostError("it was lost with its answer")
        return answer

    def end(self) -> None:
        self.lost = True

    def finish(self) -> None:
        self.host.close()


TOYS: dict[str, Any] = {"vlgym/Walk-v0": Walk, "vlgym/Coin-v0": Coin}


def make_toy(env_id: str) -> Any:
    return TOYS[env_id](vlgym_spec=make_spec(env_id))


def play_toys(make_env: Callable[[str], Any], failures: EnvFailures | None = None) -> list[Any]:
    def make(index: int) -> Any:
        return make_env(list(TOYS)[index % 2])

    envs = [make(index) for index in range(5)]
    runner = Runner(envs, builder=PromptBuilder(1, 2), remake=make, failures=failures)
    rows = [runner.step(RandomPolicy()) for _ in range(25)]
    runner.close()
    return [row_of(record) for row in rows for record in row]


def test_workers_that_are_lost_at_random_moments_change_nothing() -> None:
    rng, lines = random.Random(0), []

    def draw(request: dict[str, Any]) -> str:
        return rng.choices(("", "before", "after"), (300 if request["n"] < 0 else 20, 1, 1))[0]

    group = WorkerGroup(lambda index: PretendLink(index, draw), 2, tell=lines.append)
    noted: list[Any] = []
    rows = play_toys(group.make, EnvFailures(noted.append))
    assert noted == []
    assert rows == play_toys(make_toy)
    keys = [row[:3] for row in rows]
    assert len(set(keys)) == len(keys) == 125  # every turn once
    assert group.lost == len(lines) >= 10
    assert "was given up: it was lost" in lines[0]


def test_a_worker_with_another_version_is_refused() -> None:
    class Older(PretendLink):
        def receive(self, limit: float) -> Any:
            answer = super().receive(limit)
            answer["value"]["vlgym"] = "0.0.1"
            return answer

    group = WorkerGroup(Older, 1)
    with pytest.raises(UserError, match=r"has vlgym 0\.0\.1, and this process .*; install the same"):
        group.make("vlgym/Walk-v0").reset(seed=1)


def test_a_request_that_no_worker_survives_ends_the_run_with_one_line() -> None:
    def poison(request: dict[str, Any]) -> str:
        return "before" if request["do"] == "step" and request["n"] > 0 else ""

    group = WorkerGroup(lambda index: PretendLink(index, poison), 2)
    envs = [group.make("vlgym/Walk-v0") for _ in range(4)]
    line = r"4 workers in a row were lost over one request to vlgym/Walk-v0 \(step\)"
    with pytest.raises(FailedError, match=line):
        Runner(envs, remake=lambda _: group.make("vlgym/Walk-v0")).step(RandomPolicy())
    assert group.lost == 4


def test_an_episode_that_comes_out_otherwise_fails_like_an_environment_that_raises(monkeypatch) -> None:
    class Fickle(Walk):
        made = 0

        def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
            super().start(rng, options)
            Fickle.made += 1
            self.position = Fickle.made

    fates = iter(["", "", "before"])
    group = WorkerGroup(lambda index: PretendLink(index, lambda request: next(fates, "")), 1)
    noted: list[Any] = []
    monkeypatch.setitem(TOYS, "vlgym/Walk-v0", Fickle)
    walks = (group.make("vlgym/Walk-v0") for _ in range(9))
    runner = Runner([next(walks)], remake=lambda _: next(walks), failures=EnvFailures(noted.append))
    (record,) = runner.step(RandomPolicy())
    assert (record.parse, record.truncated) == ("env_error", True)
    assert "came out otherwise" in noted[0]["error"]


def test_what_an_environment_raises_is_told_as_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Walk):
        def act(self, action: str) -> Any:
            raise KeyError("lamp\x1b")

        def close(self) -> None:
            raise OSError("stuck")

    def noted_of(make: Callable[[int], Any]) -> list[Any]:
        noted: list[Any] = []
        runner = Runner([make(0)], remake=make, failures=EnvFailures(noted.append))
        for _ in range(2):
            runner.step(RandomPolicy())
        with pytest.raises(FailedError, match="failed 3 times in a row"):
            runner.step(RandomPolicy())
        return noted

    monkeypatch.setitem(TOYS, "vlgym/Walk-v0", Broken)
    group = WorkerGroup(PretendLink, 1)
    there = noted_of(lambda _: group.make("vlgym/Walk-v0"))
    assert there == noted_of(lambda _: make_toy("vlgym/Walk-v0"))
    assert len(there) == 3
    assert "KeyError: 'lamp" in there[0]["error"]


def test_killed_and_stopped_processes_are_replaced_and_change_nothing() -> None:
    lines: list[str] = []
    group = open_group("processes:2", tell=lines.append)
    there, here = (Runner([each.make(IDS[0]) for _ in range(4)]) for each in (group, LOCAL))
    for worker, fate, limit in ((0, signal.SIGKILL, 60), (1, signal.SIGSTOP, 1)):
        group.limit = limit
        place = group._workers[worker].link.pid
        os.kill(place, fate)
        late = threading.Timer(60, os.kill, (place, signal.SIGKILL))  # the limit was not kept
        late.start()
        assert [*map(row_of, there.step(RandomPolicy()))] == [*map(row_of, here.step(RandomPolicy()))]
        late.cancel()
    there.close()
    group.close()
    assert len(lines) == group.lost
    killed, *stopped = lines
    assert "it was ended by signal 9" in killed
    assert all("it did not answer within 1 s" in line for line in stopped)
    assert stopped


ANSWER = "import socket, sys, time; s = socket.socket(fileno=int(sys.argv[1])); s.recv(9)\n"


def worker_that(code: str) -> list[str]:
    """The command of a worker process that runs this after the first bytes of a request."""
    return [sys.executable, "-S", "-c", ANSWER + code]


@pytest.mark.parametrize("answer", [b"\xff" * 100, wire.pack({"n": 1, "env": 9, "value": None})])
def test_a_worker_that_writes_nonsense_is_given_up(answer: bytes) -> None:
    command = worker_that(f"s.sendall({answer!r}); s.recv(9**9)")
    group = WorkerGroup(lambda index: ProcessLink(index, command), 1, limit=30)
    with pytest.raises(FailedError, match="4 workers in a row were lost"):
        group.make(IDS[0]).reset(seed=0)
    group.close()


def test_an_answer_that_comes_a_byte_at_a_time_has_one_deadline() -> None:
    link = ProcessLink(0, worker_that("while True: s.sendall(bytes(1)); time.sleep(0.1)"))
    link.send(b"something")
    assert link._socket.recv(1) == bytes(1)  # it has begun
    began = time.monotonic()
    with pytest.raises(LostError, match=r"it did not answer within 0\.5 s"):
        link.receive(0.5)
    assert time.monotonic() - began < 1
    link.end()


ATOMS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.text().map(lambda t: "~" + t)
    | st.sampled_from([np.float32(0.1), np.int64(-3), np.bool_(True), np.zeros((0, 3)), np.array(5, np.uint8)])
    | st.integers(0, 5).map(lambda n: np.arange(2 * n, dtype=np.float64).reshape(2, n)[:, ::-1])
)  # fmt: skip
DATA = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.just("~a"), inner, max_size=4)
    ),
    max_leaves=10,
)  # fmt: skip


@given(DATA)
def test_what_is_packed_arrives_with_its_types(data: Any) -> None:
    copy = wire.unpack(wire.pack(data))
    assert types_of(copy) == types_of(data)
    assert wire.packed_alike(copy, data)


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array([None]), b"bytes", 1j, print])
def test_objects_do_not_travel(value: Any) -> None:
    with pytest.raises(UserError, match="cannot be sent"):
        wire.pack({"info": [value]})


FRAME = wire.pack({"a": (1, np.arange(3)), "b": {2: "x"}})


@given(st.binary(max_size=40) | st.tuples(st.integers(0, len(FRAME) - 1), st.integers(0, 255)))
def test_nonsense_raises_nothing_else(damage: Any) -> None:
    frame = bytearray(FRAME)
    if isinstance(damage, bytes):
        frame = bytearray(damage)
    else:
        frame[damage[0]] = damage[1]
    try:
        wire.unpack(frame)
    except wire.NonsenseError:
        return


@pytest.mark.parametrize(
    "text", [b'{"~a":["O",[1]]}', b'{"~a":["<f8",[-1]]}', b'{"~a":["<f8",[9]]}', b'{"~x":1}', b'{"~t":5}', b"[" * 9999]
)
def test_frames_that_ask_for_more_than_data_are_refused(text: bytes) -> None:
    with pytest.raises(wire.NonsenseError):
        wire.unpack(wire.PREFIX.pack(len(text), 8) + text + bytes(8))


@pytest.mark.parametrize("item", ["[]", '{"":{"":0}}', '{"~a":["u1",[0]]}'])
def test_the_text_of_a_frame_takes_little_memory(item: str) -> None:
    """A 32nd of the longest text takes at most a 32nd of 128 MiB."""
    text = b"[%s]" % ",".join([item] * (wire.MOST_TEXT // 32 // (len(item) + 1) - 1)).encode()
    tracemalloc.start()
    try:
        wire.unpack(wire.PREFIX.pack(len(text), 0) + text)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("text", "arrays"), [(wire.MOST_TEXT + 1, 0), (0, wire.MOST_BYTES + 1)])
def test_a_frame_that_is_too_long_is_not_read(text: int, arrays: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(wire.PREFIX.pack(text, arrays))
        with pytest.raises(wire.NonsenseError, match="limit"):
            wire.receive(ours, 30)
    with pytest.raises(UserError, match=r"cannot be sent to another process: text of \d+ bytes \(limit"):
        wire.pack({"text": "x" * text, "arrays": np.zeros(arrays, np.uint8)})


def test_what_is_nested_deeper_than_is_sent_is_not_read() -> None:
    deep: Any = 0
    for _ in range(64):
        deep = [deep]
    assert wire.unpack(wire.pack([deep])) == [deep]
    text = json.dumps([[deep]]).encode()
    with pytest.raises(wire.NonsenseError, match="nested more than 64 deep"):
        wire.unpack(wire.PREFIX.pack(len(text), 0) + text)


def test_a_reply_of_any_length_is_read_there_as_here(processes: WorkerGroup) -> None:
    there, here = processes.make(IDS[0]), LOCAL.make(IDS[0])
    for env in (there, here):
        env.reset(seed=0)
    reply = "\U0001f600" * 2_000_000
    assert repr(there.step(reply)) == repr(here.step(reply))
    there.close()


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("local", ("local", "", None)), ("processes:4", ("processes", "", 4)), ("ray", ("ray", "", None)),
        ("ray:2", ("ray", "", 2)), ("ray:auto:8", ("ray", "auto", 8)),
        ("ray://head:10001:3", ("ray", "ray://head:10001", 3)), ("tcp://a:1,b.c:2:3", ("tcp", "a:1,b.c:2", 3)),
    ],
)  # fmt: skip
def test_how_the_option_is_read(option: str, expected: Any) -> None:
    assert read_envs(option) == expected


@pytest.mark.parametrize(
    "option",
    ["", "locally", "local:2", "processes:", "processes:0", "processes:-1", "processes:auto", "ray://head", "ray:x",
     "tcp://a", "tcp://a:1,"],
)  # fmt: skip
def test_a_wrong_option_says_what_there_is(option: str) -> None:
    with pytest.raises(UserError, match=r"Use local, processes\[:N\], ray"):
        open_group(option)


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(NotInstalledError, match=r"pip install .*\[ray\]"):
        open_group("ray")


def test_there_are_no_more_workers_than_environments() -> None:
    assert open_group("processes:9", envs=3).workers == 3
