"""`vlgym check`: the conformance certificate of environments, with evidence; exit status 1 when a property fails."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import check_choice
from ..registry import get_registry
from ..terminal import is_live, print_wrapped
from .console import Arguments, open_console, read_arguments

if TYPE_CHECKING:
    from ..testing import Certificate, CheckResult


def check(
    env_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Environment ids.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only this check; may be repeated.")
    ] = None,
    arg: Arguments = None,
    full: Annotated[bool, typer.Option("--full", help="Print the evidence of each property that holds, too.")] = False,
) -> None:
    """Test environments against the whole contract and print a certificate for each."""
    registry = get_registry()
    chosen = list(dict.fromkeys(env_ids))
    for env_id in chosen:
        registry.get(env_id)
    arguments = read_arguments(arg or [])
    if only:
        from ..testing import ALL_CHECKS

        for name in only:
            check_choice("--only", name, ALL_CHECKS)
    certificates = [_certify(env_id, arguments, only, full=full or bool(only)) for env_id in chosen]
    good = sum(certificate.passed for certificate in certificates)
    if len(certificates) > 1:
        open_console().print(f"{good} of {len(certificates)} environments passed.")
    if good < len(certificates):
        raise typer.Exit(1)


def _certify(env_id: str, arguments: dict[str, Any], only: list[str] | None, *, full: bool) -> Certificate:
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
        if full or not holds:
            word, style = ("pass", "green") if result.passed else ("FAIL", "bold red")
            if result.warning:
                word, style = "warn", "yellow"
            console.print(f"  {word} ", style=style, end="")
            console.print(f"{result.name:<{width}}  {result.evidence}")
            meaning = (inspect.getdoc(ALL_CHECKS[result.name]) or "").partition("\n\n")[0]
            print_wrapped(console, [] if holds else [["       required:", " ".join(meaning.split())]])
        _announce(next(waiting))

    console.print(f"Certificate of {env_id}", style="bold")
    _announce(names[0])
    certificate = certify(env_id, arguments, only=names, on_result=report)
    if not full and groups:
        rows = [[f"  pass {group}", ", ".join(properties)] for group, properties in sorted(groups.items())]
        print_wrapped(console, rows)
    good = sum(result.passed and not result.warning for result in certificate.results)
    warned = f", {certificate.warnings} warned of" if certificate.warnings else ""
    count = len(certificate.results)
    more = "" if full else "; evidence: --full"
    console.print(f"  {good} of {count} properties hold{warned} ({certificate.seconds:.1f} s){more}\n")
    return certificate


def _announce(name: str) -> None:
    """Say on a terminal which check runs now. No spinner thread: some checks fork, and one watches standard output."""
    if is_live(open_console(stderr=True)):
        sys.stderr.write(f"\r\x1b[2K  ...  {name}" if name else "\r\x1b[2K")
        sys.stderr.flush()
