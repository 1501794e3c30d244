"""Groups that step environments: in this process, in worker processes, on Ray, behind TCP.

    group = open_group("processes:4")
    runner = Runner([group.make("vlgym/OneRoom-v0") for _ in range(16)])

An episode is the same bit for bit in each. A group makes environments; a `Runner` steps them.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import UserError, check_number
from ..registry.making import make
from .processes import ProcessLink
from .workers import LIMIT, Link, Tell, WorkerGroup

_PLACE = r"[^\s/:,]+:\d{1,5}"
_FORM = re.compile(
    rf"local|(?:processes|ray(?P<ray>:auto|://{_PLACE})?|tcp://(?P<tcp>{_PLACE}(?:,{_PLACE})*))"
    r"(?::(?P<workers>[1-9]\d{0,3}))?"
)


class LocalGroup:
    """Environments of this process, stepped one after the other."""

    def make(self, env_id: str, **arguments: Any) -> Any:
        return make(env_id, **arguments)

    def close(self) -> None:
        """There is nothing to close."""


LOCAL = LocalGroup()
EnvGroup = LocalGroup | WorkerGroup


def read_envs(place: str, name: str = "envs") -> tuple[str, str, int | None]:
    """Read the name of a group.

    Returns:
        `local`, `processes`, `ray` or `tcp`; the address of a Ray cluster, empty for one that is
        started here, or the servers' addresses with commas; and the number of workers, `None` for
        the number of processors, or of the servers' workers.

    Raises:
        UserError: it is no such name; the message lists the forms.
    """
    match = _FORM.fullmatch(place)
    if match is None:
        raise UserError(
            f"{name} {place!r} is not valid. Use local, processes[:N], ray[:N], ray:auto[:N], ray://HOST:PORT[:N] or "
            "tcp://HOST:PORT[,HOST:PORT...][:N], with N workers."
        )
    address, workers = match["ray"] or "", match["workers"]
    address = match["tcp"] or (f"ray{address}" if address.startswith("://") else address[1:])
    return place.partition(":")[0], address, int(workers) if workers else None


def open_group(
    place: str = "local", *, envs: int | None = None, limit: float = LIMIT, tell: Tell = lambda line: None
) -> EnvGroup:
    """Open a group.

    Args:
        envs: how many environments will be stepped at once: there are no more workers than that.
        limit: seconds after which a worker that does not answer is given up.
        tell: called with a line for each worker that is given up or waits for a processor.

    Raises:
        UserError: `place` is wrong, Ray is not installed or not reached, or a server refuses.
    """
    kind, address, workers = read_envs(place)
    check_number("limit", limit, above=0)
    if kind == "local":
        return LOCAL

    # A way to start a worker, and the number of workers, which each kind counts otherwise.
    if kind == "ray":
        from .on_ray import RayLink, connect

        ray = connect(address)
        start: Callable[[int], Link] = partial(RayLink, ray=ray, tell=tell)
        workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))  # one actor each
    elif kind == "tcp":
        from .tcp import find_workers, read_token

        start, offered = find_workers(address.split(","), read_token())
        workers = min(workers or offered, offered)
    else:
        start, workers = ProcessLink, workers or os.cpu_count() or 1
    return WorkerGroup(start, min(workers, envs or workers), limit=limit, tell=tell)
