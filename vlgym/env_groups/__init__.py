"""How the environments of a batch are stepped: one after the other in this process, in worker processes, or on Ray.

    group = open_group("processes:4")
    runner = Runner([group.make("vlgym/OneRoom-v0") for _ in range(16)])
    ...
    runner.close()
    group.close()

An episode is the same bit for bit whichever is used. A group makes environments; whoever steps several of them at once
is `vlgym.rollout.Runner`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import UserError, check_number
from ..making import make
from .processes import ProcessLink
from .workers import LIMIT, WorkerGroup

LOCAL_NAME = "local"
MOST_WORKERS = 4096

_FORM = re.compile(r"(?P<kind>local|processes|ray)(?P<address>:auto|://[^\s/:]+:\d{1,5})?(?::(?P<workers>\d{1,6}))?")


class LocalGroup:
    """Environments of this process, stepped one after the other."""

    def make(self, env_id: str, **arguments: Any) -> Any:
        """As `vlgym.make`."""
        return make(env_id, **arguments)

    def close(self) -> None:
        """There is nothing to close."""


LOCAL = LocalGroup()
EnvGroup = LocalGroup | WorkerGroup
"""Where environments live."""


@dataclass(frozen=True)
class GroupOptions:
    """What `--envs` says.

    Attributes:
        kind: `local`, `processes` or `ray`.
        address: of a Ray cluster (`auto`, `ray://host:port`); empty for one that is started here.
        workers: processes or actors; `None` for as many as there are processors.
    """

    kind: str = LOCAL_NAME
    address: str = ""
    workers: int | None = None


def read_options(said: str, name: str = "envs") -> GroupOptions:
    """Read `local`, `processes[:N]`, `ray[:N]`, `ray:auto[:N]` or `ray://HOST:PORT[:N]`.

    Raises:
        UserError: it is none of these.
    """
    found = _FORM.fullmatch(said)
    if found is None or (found["kind"] != "ray" and found["address"]) or (found["kind"] == LOCAL_NAME and ":" in said):
        flag = f"{name} {said}" if name.startswith("-") else f"{name}={said!r}"
        raise UserError(
            f"{flag} is not one of local, processes, processes:N, ray, ray:N, ray:auto, ray://HOST:PORT (each ray with "
            ":N at its end, too), N workers."
        )
    workers = None if found["workers"] is None else int(found["workers"])
    if workers is not None:
        check_number(f"{name}: workers", workers, 1, MOST_WORKERS)
    address = found["address"] or ""
    return GroupOptions(found["kind"], f"ray{address}" if address.startswith("://") else address[1:], workers)


def open_group(
    said: str = LOCAL_NAME,
    *,
    envs: int | None = None,
    limit: float = LIMIT,
    tell: Callable[[str], object] = lambda line: None,
) -> EnvGroup:
    """Open a group.

    Args:
        said: see `read_options`.
        envs: how many environments will be stepped at once: there are no more workers than that.
        limit: seconds after which a worker that does not answer is given up.
        tell: called with a line for each worker that is given up.

    Raises:
        UserError: `said` is wrong, or Ray is not installed or not reached.
    """
    options = read_options(said)
    check_number("limit", limit, above=0)
    if options.kind == LOCAL_NAME:
        return LOCAL
    most = envs or MOST_WORKERS
    if options.kind == "ray":
        from .on_ray import connect, count_workers, start_actor

        connect(options.address)
        workers = min(options.workers or count_workers(), most)
        return WorkerGroup(start_actor, workers, limit=limit, tell=tell)
    workers = min(options.workers or os.cpu_count() or 1, most)
    return WorkerGroup(ProcessLink, workers, limit=limit, tell=tell)
