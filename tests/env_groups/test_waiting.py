"""Environments that wait: a worker steps each in a thread, and answers in the order of the requests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from toys import Walk, make_spec

from vlgym.env_groups import host as host_module
from vlgym.env_groups.host import Host, may_wait
from vlgym.env_groups.processes import SocketLink
from vlgym.env_groups.worker import serve_connection
from vlgym.env_groups.workers import WorkerGroup

ENVS = 8


class Together(Walk):
    """A step ends when all environments are in it."""

    meeting = threading.Barrier(ENVS)
    threads: ClassVar[set[int]] = set()

    def act(self, action: str) -> Any:
        self.meeting.wait(timeout=60)
        self.threads.add(threading.get_ident())
        return super().act(action)


@pytest.fixture
def group() -> Iterator[WorkerGroup]:
    """A group of one worker, which is a thread of this process."""
    workers = []

    def start(index: int) -> SocketLink:
        ours, theirs = socket.socketpair()
        host = Host(lambda env_id, **given: Together(vlgym_spec=make_spec(), **given), lambda env_id: True)
        workers.append(threading.Thread(target=serve_connection, args=(theirs, host), daemon=True))
        workers[-1].start()
        return SocketLink(ours, "a thread")

    group = WorkerGroup(start, 1, limit=60)
    yield group
    group.close()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()


def test_environments_that_wait_are_stepped_at_once_and_answered_in_order(group: WorkerGroup) -> None:
    envs = [group.make("vlgym/Walk-v0") for _ in range(ENVS)]
    here = [Walk(vlgym_spec=make_spec()) for _ in range(ENVS)]
    for number, (env, other) in enumerate(zip(envs, here, strict=True)):
        assert repr(env.reset(seed=number)) == repr(other.reset(seed=number))
    for _ in range(2):
        replies = [other.solve() for other in here]
        for env, reply in zip(envs, replies, strict=True):
            env.send_step(reply)
        for env, other, reply in zip(envs, here, replies, strict=True):
            assert repr(env.step(reply)) == repr(other.step(reply))
    assert len(Together.threads) == ENVS
    assert group.lost == 0
    envs[0].close()


def test_a_card_says_whether_an_environment_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = {"vlgym/Walk-v0": make_spec("vlgym/Walk-v0", waits=True), "vlgym/Coin-v0": make_spec("vlgym/Coin-v0")}
    monkeypatch.setattr(host_module, "get_registry", lambda: SimpleNamespace(specs=specs))
    assert [may_wait(env_id) for env_id in (*specs, "vlgym/Nothing-v0")] == [True, False, False]
