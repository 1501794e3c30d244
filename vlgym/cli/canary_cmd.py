"""`vlgym canary`: do pictures reach a model? Its answers against chance, or the pictures of a trainer's requests."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from ..errors import UserError
from ..evaluation.policy_names import make_policy
from .console import PolicyArgs, check_policy, open_console, read_arguments


def canary(
    policy: Annotated[
        str | None,
        typer.Argument(
            metavar="POLICY", help="Who answers: openai:MODEL@URL, hf:FOLDER-OR-NAME and all that `vlgym eval` takes."
        ),
    ] = None,
    listen: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="Instead of POLICY: an endpoint on loopback for a trainer or client; 0 takes a free port.",
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Episodes of each canary [default: 20; --listen knows the first 64]."),
    ] = None,
    policy_arg: PolicyArgs = None,
) -> None:
    """Test with canaries whether pictures reach a model: exit status 0 where all are seen, or all pictures arrive.

    A canary's answer stands in one picture and nowhere else (docs/trainers.md).
    """
    from ..integrations.canary import SEES, sample_canaries

    if (policy is None) == (listen is None):
        raise UserError("Name a policy, such as openai:MODEL@URL, or give --listen PORT.")
    if listen is not None:
        _listen(listen, episodes or 64)
        return
    player = make_policy(str(policy), read_arguments(policy_arg or [], "--policy-arg"))
    try:
        check_policy(player)
        results = sample_canaries(player, episodes or 20)
    finally:
        if hasattr(player, "close"):
            player.close()
    for each in results:
        lost = f", {each.unreadable} unreadable" if each.unreadable else ""
        open_console().print(
            f"{each.env_id}: {each.verdict}; {each.right} of {each.episodes} right "
            f"[{each.low:.2f} to {each.high:.2f}], chance {each.chance:.3f}{lost}"
        )
    if any(each.verdict != SEES for each in results):
        raise typer.Exit(1)


def _listen(port: int, episodes: int) -> None:
    from ..integrations.canary_server import CanaryServer

    console = open_console(stderr=True)

    def say(number: int, problem: str) -> None:
        if problem:
            console.print(f"request {number}: {problem}")

    with CanaryServer("train", episodes, port, on_request=say) as server:
        console.print(f"{server.url}  knows episodes 0 to {episodes - 1} of train (Ctrl-C ends it)")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            console.print("")
    played = ", ".join(f"{env_id} {count}" for env_id, count in server.finished.items())
    open_console().print(
        f"{'passed' if server.passed else 'FAILED'}: {server.requests} requests, {len(server.problems)} with lost "
        f"or changed pictures; {server.others} others; finished episodes: {played}"
    )
    if not server.passed:
        raise typer.Exit(1)
