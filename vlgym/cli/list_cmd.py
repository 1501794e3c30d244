"""`vlgym list` and `vlgym show`: the environments, from the plugins' specs and registry.yaml.

`list` imports no environment code. `show` makes the environment, to say how it stands to registry.yaml; where that
fails, the card is shown all the same. What others wrote (cards, names of distributions, docstrings, prompts) is printed
safely: a line of the list stays one line, and nothing steers the terminal.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..env.prompts import PromptBuilder
from ..env.spec import EnvSpec
from ..errors import UserError, check_choice, plain_line
from ..registry import Registry, get_registry
from ..registry.installing import how_to_install_all
from ..registry.making import load_class, make
from ..registry.recorded import Comparison, compare_recorded
from ..sight.blind_gap import LABELS, NOT_MEASURED, WARN_ABOVE, find_blind_share, rate_difficulty
from ..terminal import show_safe
from .catalogue import Entry, find_entry, list_entries
from .console import open_console, plain_messages, print_json, read_arguments, write_messages

if TYPE_CHECKING:
    from rich.console import Console

TABLE_WIDTH = 140
"""On a terminal with fewer columns `vlgym list` leaves out some of each environment's."""

WINS = ("floor", "blind", "ceiling")
"""Columns of the table that hold shares of successes."""

MOST_NAME = 24
"""Columns of a family's or a distribution's name in the table."""

HIDDEN = ("registry", "live", "not_made", "differences", "installed", "external", "remedy", "docstring")
"""Parts of a card without a row in its table."""

EnvId = Annotated[str, typer.Argument(metavar="ID", help="Environment id, for example vlgym/NumberLine-v0.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON on standard output.")]
Arguments = Annotated[
    list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help="Constructor argument; may be repeated.")
]


def list_environments(
    family: Annotated[str | None, typer.Option("--family", help="Only this family.")] = None,
    skill: Annotated[str | None, typer.Option("--skill", help="Only environments that need this skill.")] = None,
    difficulty: Annotated[
        str | None, typer.Option("--difficulty", help=f"Only environments that are {', '.join(LABELS)}.")
    ] = None,
    old: Annotated[bool, typer.Option("--old", help="Also published forms that a newer version replaces.")] = False,
    as_json: AsJson = False,
) -> None:
    """List every environment by family: installed, known but not installed, and of third parties."""
    everything = [
        entry for entry in list_entries(get_registry()) if old or entry.spec is None or not entry.spec.replaced_by
    ]
    entries = sorted(everything, key=lambda entry: (entry.spec is None, _family(entry)))
    for option, wanted, read in (
        ("--family", family, lambda entry: [_family(entry)]),
        ("--skill", skill, lambda entry: list(entry.spec.skills) if entry.spec is not None else []),
        ("--difficulty", difficulty, lambda entry: [entry.difficulty]),
    ):
        if wanted is not None:
            found = {value for entry in everything for value in read(entry) if value}
            check_choice(option, wanted, LABELS if option == "--difficulty" else sorted(found))
            entries = [entry for entry in entries if wanted in read(entry)]
    if as_json:
        print_json([entry.to_dict() for entry in entries])
    else:
        _print_table(entries)


def show(
    env_id: EnvId,
    as_json: AsJson = False,
    prompt: Annotated[bool, typer.Option("--prompt", help="Make the environment and print its first prompt.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode that --prompt begins.")] = 0,
    arg: Arguments = None,
) -> None:
    """Show one environment's whole card, and with --prompt what a model reads first."""
    registry = get_registry()
    entry = find_entry(registry, env_id)
    if arg and not prompt:
        raise UserError("--arg goes with --prompt: the card does not depend on constructor arguments.")
    if prompt and not entry.installed:
        registry.get(env_id)
    messages = _first_prompt(env_id, seed, read_arguments(arg or [])) if prompt else None
    card = _describe(registry, entry)
    if as_json:
        print_json(card if messages is None else {**card, "prompt": plain_messages(messages)})
        return
    _print_card(card)
    if messages is not None:
        open_console().print(f"\nFirst prompt, seed {seed}:\n{show_safe(write_messages(messages))}", soft_wrap=True)


def _print_table(entries: list[Entry]) -> None:
    console = open_console()
    if not entries:
        known = list_entries(get_registry())
        line = "No environment has all of these; leave out one of --family, --skill and --difficulty."
        if not known:
            line = f"No environment is installed or known. Install some: {how_to_install_all()}"
        console.print(line, markup=False, soft_wrap=True)
        return
    _print_columns(console, entries)
    absent = sum(not entry.installed for entry in entries)
    wins = (
        f"\n{', '.join(WINS)}: successes of random, idle or garbage play, of play without the picture (* above a third "
        "of the way from floor to ceiling, in success or in return), and of the oracle"
    )
    unknown = any(entry.recorded is not None and entry.recorded.get("blind") is None for entry in entries)
    console.print(wins + (f"; ? is {NOT_MEASURED}" if unknown else ""), soft_wrap=not console.is_terminal)
    console.print(f"{len(entries) - absent} installed" + (f", {absent} known but not usable here" if absent else ""))


def write_figures(figures: Mapping[str, Any] | None) -> str:
    """Return a floor, blind floor or ceiling of registry.yaml in words, its standard error included."""
    if figures is None:
        return "none"
    if "policy" in figures:
        return (
            f"return {figures['return']} ± {figures['se']} (standard error; {figures['policy']}), "
            f"success {figures['success']} ({figures['success_policy']}), {figures['episodes']} episodes"
        )
    return (
        f"return {figures['return']} ± {figures['se']} (standard error), success {figures['success']}, "
        f"{figures['episodes']} episodes"
    )


def _print_columns(console: Console, entries: list[Entry]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    names = ("id", "family", "distribution", "difficulty", "oracle", "max turns", *WINS, "summary")
    shown = names if console.width >= TABLE_WIDTH else ("id", "difficulty", "blind", "summary")
    for name in shown:
        limit = MOST_NAME if name in ("family", "distribution") else None  # a long name squeezes no summary
        whole = "fold" if limit is None else "ellipsis"
        table.add_column(name, no_wrap=name != "summary", overflow=whole, max_width=limit)  # type: ignore[arg-type]
    for entry, before in zip(entries, [None, *entries], strict=False):
        if before is not None and _family(before) != _family(entry):
            table.add_row()
        cells = {"id": entry.env_id, "distribution": _name_owner(entry), "summary": _say_last(entry)}
        cells |= {name: _write_wins(entry, name) for name in WINS}
        if entry.spec is not None:
            cells |= {"family": _family(entry), "difficulty": entry.difficulty, "oracle": entry.spec.oracle}
            cells["max turns"] = str(entry.spec.max_turns)
        table.add_row(*(Text(cells.get(name, "")) for name in shown), style=None if entry.installed else "dim")
    console.print(table)


def _write_wins(entry: Entry, name: str) -> str:
    """Return the share of successes that registry.yaml records; `?` for a blind floor that was not measured.

    A mark stands at a blind floor that is more than a third of the way from floor to ceiling.
    """
    if entry.recorded is None:
        return "-"
    figures = entry.recorded.get(name)
    if figures is None:
        return "?" if name == "blind" else "none"
    marked = name == "blind" and (find_blind_share(entry.recorded) or 0.0) > WARN_ABOVE
    return f"{figures['success']:.2f}{'*' if marked else ''}"


def _family(entry: Entry) -> str:
    return plain_line(entry.spec.family) if entry.spec is not None else ""


def _name_owner(entry: Entry) -> str:
    owner = plain_line(entry.distribution)
    return f"{owner} (external)" if entry.external else owner


def _say_last(entry: Entry) -> str:
    if not entry.installed or entry.spec is None:
        return plain_line(f"not installed: {entry.remedy}")
    newer, summary = entry.spec.replaced_by, plain_line(entry.spec.summary)
    return f"(kept for comparison, see {newer}) {summary}" if newer else summary


def _describe(registry: Registry, entry: Entry) -> dict[str, Any]:
    spec = entry.spec or registry.get(entry.env_id)  # a clash has no card: get() says who claims it
    recorded = registry.known.get(entry.env_id)
    measured = (
        {key: value for key, value in recorded.items() if key not in ("spec", "distribution")} if recorded else None
    )
    share = find_blind_share(recorded)
    found = compare_recorded(registry, entry.env_id) if entry.installed else Comparison()
    return {
        **spec.to_dict(),
        "blind_share": share,
        "rated_difficulty": rate_difficulty(spec.difficulty, share),
        "reset_options": found.options,
        "distribution": entry.distribution,
        "installed": entry.installed,
        "external": entry.external,
        "remedy": entry.remedy,
        "live": found.live or None,
        "not_made": found.error,
        "registry": measured,
        "differences": list(found.differences),
        "docstring": _read_docstring(spec) if entry.installed else "",
    }


def _read_docstring(spec: EnvSpec) -> str:
    """The docstring of an environment's class; empty where its module cannot be imported."""
    try:
        return inspect.getdoc(load_class(spec)) or ""
    except (Exception, SystemExit):  # whatever a plugin does, the card is shown
        return ""


def _print_card(card: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    owner = f"{card['distribution']}{' (external)' if card['external'] else ''}"
    status = "installed" if card["installed"] else f"not installed: {card['remedy']}"
    rows = {name: value for name, value in card.items() if name not in HIDDEN}
    rows.update(distribution=owner, status=status)
    share = rows["blind_share"]
    rows["blind_share"] = NOT_MEASURED if share is None else f"{share:.2f} of the way from floor to ceiling"
    rows.update(card["live"] or {})
    for name, value in (card["registry"] or {}).items():
        rows[f"{name} (registry.yaml)"] = write_figures(value) if name in WINS else value
    if card["registry"]:
        if card["registry"].get("blind") is None:
            rows["blind (registry.yaml)"] = NOT_MEASURED
        same = "no difference from registry.yaml in card, prompt and parser"
        unknown = f"not compared, it cannot be made here: {card['not_made']}"
        rows["compared"] = " ".join(card["differences"]) or (unknown if card["live"] is None else same)
    console = open_console()
    for name, value in rows.items():
        table.add_row(name.replace("_", " "), Text(show_safe(_write_value(value))))
    console.print(table)
    if card["docstring"]:
        open_console().print(f"\n{show_safe(card['docstring'])}", markup=False, highlight=False, soft_wrap=True)


def _write_value(value: Any) -> str:
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return "; ".join(f"{name}: {item}" for name, item in value.items()) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "-"
    return "-" if value is None else str(value)


def _first_prompt(env_id: str, seed: int, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    env = make(env_id, **arguments)
    try:
        observation, info = env.reset(seed=seed)
        details = info["vlgym"]
        builder = PromptBuilder.for_spec(env.vlgym_spec)
        return builder.build(
            details["instructions"], details["turn_text"], observation["image"], system=env.system_text
        )
    finally:
        env.close()
