"""Workers that are Ray actors, on this machine or on a cluster: the extra `vlgym[ray]`.

Requests and answers are bytes in the form of `vlgym.env_groups.wire`. Ray itself pickles them, as
it does everything on a cluster; a cluster is one circle of trust.
"""

import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..errors import FailedError, UserError, plain_line
from ..registry.installing import import_extra
from .host import Host
from .wire import NonsenseError, unpack
from .workers import LostError

SILENT_S = 10.0  # for the start of an actor before a line says that it waits


class Actor:
    """The actor on Ray: a `Host`."""

    def __init__(self) -> None:
        self.host = Host()

    def answer(self, frames: list[bytes]) -> list[bytes]:
        return [self.host.write_answer(unpack(frame)) for frame in frames]

    def close(self) -> None:
        self.host.close()


class RayLink:
    """Connection to an actor, which it starts; `tell` gets a line while no processor is free."""

    def __init__(self, index: int, ray: Any, tell: Callable[[str], object]) -> None:
        self._ray, self._tell = ray, tell
        # The group restarts workers: Ray would start an actor again without its episodes.
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}
        self.actor = ray.remote(**options)(Actor).remote()
        self._started = self.actor.__ray_ready__.remote()
        self.name = f"worker {index} (Ray actor {self.actor._actor_id.hex()[:8]})"
        self._unsent: list[bytes] = []
        self._calls: deque[tuple[Any, int]] = deque()
        self._answers: deque[bytes] = deque()

    def send(self, frame: bytes) -> None:
        self._unsent.append(frame)

    def flush(self) -> None:
        """See `Link`: a call takes as long for many requests as for one."""
        if self._unsent:
            self._calls.append((self.actor.answer.remote(self._unsent), len(self._unsent)))
            self._unsent = []

    def receive(self, limit: float) -> Any:
        """See `Link`; a call has the limit for each of its requests, the actor's start once."""
        self.flush()
        if self._started is not None:
            self._wait_for_start(limit)

        # One call answers the requests that were sent together.
        try:
            if not self._answers:
                call, count = self._calls.popleft()
                frames = self._ray.get(call, timeout=limit * count)
                if not isinstance(frames, list) or [type(each) for each in frames] != [bytes] * count:
                    raise NonsenseError(f"not a list of {count} frames")
                self._answers.extend(frames)
        except self._ray.exceptions.GetTimeoutError:
            raise LostError(f"it did not answer within {limit * count:g} s") from None
        except self._ray.exceptions.RayError as error:
            raise LostError(plain_line(str(error), 200)) from None
        return unpack(bytearray(self._answers.popleft()))

    def _wait_for_start(self, limit: float) -> None:
        for seconds in (SILENT_S, limit):
            if self._ray.wait([self._started], timeout=seconds)[0]:  # also where the actor is lost
                self._started = None
                return
            if seconds == SILENT_S:
                self._tell(f"environment {self.name} is waiting for a free processor, for at most {limit:g} s.")
        raise FailedError(
            f"No processor of the Ray cluster was free for environment {self.name} within {limit:g} s. Add a node, or "
            "continue with fewer workers: --envs ray:N."
        )

    def finish(self) -> None:
        with suppress(Exception):
            self._ray.wait([self.actor.close.remote()], timeout=5)

    def end(self) -> None:
        with suppress(Exception):
            self._ray.kill(self.actor, no_restart=True)


def connect(address: str) -> Any:
    """Return Ray, started here or connected to the cluster `auto` or `ray://host:port`.

    An empty address is Ray's own rule: the cluster that RAY_ADDRESS names, else a Ray of this
    machine that ends with this process. `UserError` where Ray or the cluster is missing.
    """
    ray = import_extra("ray", extra="ray", user="An environment on Ray")
    if ray.is_initialized():
        return ray

    # Ray's own messages would mix with the command's.
    options = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address=address or None, include_dashboard=None if address else False, **options)
    except Exception as error:
        where = f"the Ray cluster {address}" if address else "Ray on this machine"
        why = plain_line(f"{type(error).__name__}: {error}", 300)
        raise UserError(
            f"{where} cannot be reached: {why}. Start one with `ray start --head`, or take --envs ray or "
            "--envs processes."
        ) from None
    return ray
