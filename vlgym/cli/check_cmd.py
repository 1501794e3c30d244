"""`vlgym check`, the certificate of environments, and `vlgym canary`: do pictures reach a model?"""

from __future__ import annotations

import inspect
import sys
import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..errors import UserError, check_choice
from ..evaluation.policy_names import make_policy
from ..registry import get_registry
from ..terminal import is_live, print_wrapped
from .console import Arguments, PolicyArgs, check_policy, closing_policies, open_console, read_arguments

if TYPE_CHECKING:
    from ..testing import Certificate, CheckResult


def check(
    env_ids: Annotated[list[str], Argument(metavar="ID...", help="Environment ids.")],
    only: Annotated[list[str] | None, Option("--only", metavar="NAME",
        help="Only this check; may be repeated.")] = None,
    arg: Arguments = None,
    full: Annotated[bool, Option("--full",
        help="Print the evidence of each property that holds, too.")] = False,
) -> None:  # fmt: skip
    """Test environments against the whole contract and print a certificate for each."""
    from ..testing import ALL_CHECKS

    chosen = list(dict.fromkeys(env_ids))
    for env_id in chosen:
        get_registry().get(env_id)
    for name in only or []:
        check_choice("--only", name, ALL_CHECKS)
    arguments = read_arguments(arg or [])

    # A wrong name ended the command before the first check.
    certificates = [_certify(env_id, arguments, only, full=full or bool(only)) for env_id in chosen]
    good = sum(certificate.passed for certificate in certificates)
    if len(certificates) > 1:
        open_console().print(f"{good} of {len(certificates)} environments passed.")
    if good < len(certificates):
        raise typer.Exit(1)


def _certify(env_id: str, arguments: Any, only: list[str] | None, *, full: bool) -> Certificate:
    from ..testing import ALL_CHECKS, certify, checks_for

    names = list(only) if only else checks_for(env_id)
    console = open_console()
    waiting = iter([*names[1:], ""])
    width = max(len(name) for name in names)
    groups: dict[str, list[str]] = {}

    def report(result: CheckResult) -> None:
        _announce("")
        holds = result.passed and not result.warning
        if holds:
            group = ALL_CHECKS[result.name].__module__.rpartition(".")[2].removesuffix("_checks")
            groups.setdefault(group, []).append(result.name)

        # Evidence is for what does not hold; the rest is one line for each group at the end.
        if full or not holds:
            word, style = ("pass", "green") if result.passed else ("FAIL", "bold red")
            if result.warning:
                word, style = "warn", "yellow"
            console.print(f"  {word} ", style=style, end="")
            console.print(f"{result.name:<{width}}  {result.evidence}")
            meaning = (inspect.getdoc(ALL_CHECKS[result.name]) or "").partition("\n\n")[0]
            required = ["       required:", " ".join(meaning.split())]
            print_wrapped(console, [] if holds else [required])
        _announce(next(waiting))

    console.print(f"Certificate of {env_id}", style="bold")
    _announce(names[0])
    certificate = certify(env_id, arguments, only=names, on_result=report)
    if not full and groups:
        rows = [[f"  pass {group}", ", ".join(names)] for group, names in sorted(groups.items())]
        print_wrapped(console, rows)
    good = sum(result.passed and not result.warning for result in certificate.results)
    warned = f", {certificate.warnings} warned of" if certificate.warnings else ""
    count = len(certificate.results)
    more = "" if full else "; evidence: --full"
    seconds = f"({certificate.seconds:.1f} s)"
    console.print(f"  {good} of {count} properties hold{warned} {seconds}{more}\n")
    return certificate


def _announce(name: str) -> None:
    """Say on a terminal which check runs now; without a thread, because some checks fork."""
    if is_live(open_console(stderr=True)):
        sys.stderr.write(f"\r\x1b[2K  ...  {name}" if name else "\r\x1b[2K")
        sys.stderr.flush()


def canary(
    policy: Annotated[str | None, Argument(metavar="POLICY",
        help="Who answers: openai:MODEL@URL, hf:FOLDER-OR-NAME and all that `vlgym eval` takes.")] = None,
    listen: Annotated[int | None, Option(metavar="PORT",
        help="Instead of POLICY: an endpoint on loopback for a trainer or client; 0 takes a free "
            "port.")] = None,
    episodes: Annotated[int | None, Option(min=1, max=10_000,
        help="Episodes of each canary [default: 20; --listen knows the first 64].")] = None,
    policy_arg: PolicyArgs = None,
) -> None:  # fmt: skip
    """Test with canaries whether pictures reach a model: exit status 0 where all are seen, or all pictures arrive.

    A canary's answer stands in one picture and nowhere else (docs/trainers.md).
    """
    from ..integrations.canary import SEES, sample_canaries

    if (policy is None) == (listen is None):
        raise UserError("Name a policy, such as openai:MODEL@URL, or give --listen PORT.")
    if listen is not None:
        _listen(listen, episodes or 64)
        return

    # One line for each canary, then the verdict on all.
    player = make_policy(str(policy), read_arguments(policy_arg or [], "--policy-arg"))
    with closing_policies([player]):
        check_policy(player)
        results = sample_canaries(player, episodes or 20)
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

    # It serves until Ctrl-C, which is no error here.
    with CanaryServer("train", episodes, port, on_request=say) as server:
        console.print(f"{server.url}  knows episodes 0 to {episodes - 1} of train (Ctrl-C ends it)")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            console.print("")
    played = ", ".join(f"{env_id} {count}" for env_id, count in server.finished.items())
    open_console().print(
        f"{'passed' if server.passed else 'FAILED'}: {server.requests} requests, "
        f"{len(server.problems)} with lost or changed pictures; {server.others} others; "
        f"finished episodes: {played}"
    )
    if not server.passed:
        raise typer.Exit(1)
