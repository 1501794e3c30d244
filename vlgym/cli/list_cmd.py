"""`vlgym list` and `vlgym show`: the environments, from the plugins' specs and registry.yaml.

`list` imports no environment code. `show` makes the environment, to compare it with registry.yaml;
where that fails, the card is shown all the same. Texts of others (cards, docstrings, prompts) are
printed safely: a line of the list stays one line, and nothing steers the terminal.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Argument, Option

from ..env import VLEnv
from ..env.spec import EnvSpec
from ..errors import UnknownEnvError, UserError, check_choice, check_writable, plain_line, show_safe
from ..files import write_whole
from ..registry import FIRST_PARTY, Registry, get_registry
from ..registry.installing import how_to_install_all
from ..registry.making import load_class, make
from ..registry.recorded import Comparison, compare_recorded
from ..sight.blind_gap import LABELS, NOT_MEASURED, WARN_ABOVE, find_blind_share, rate_difficulty
from ..terminal import print_wrapped
from .console import Arguments, EnvId, open_console, read_arguments, write_messages

WINS = ("floor", "blind", "ceiling")  # figures of registry.yaml
FIRST_SECTIONS = ("goal", "actions", "reward", "observation", "endings")  # on top of a card
PICTURE_WORDS = {
    "exact": "drawn by the package, the same everywhere", "similar": "drawn by this machine's libraries"
}  # fmt: skip
MOST_LINES = 3  # of a section, without --full and levels; other values one less, a level one


@dataclass(frozen=True)
class Entry:
    """One id of the catalogue.

    Attributes:
        spec: its card; `None` where only claims of plugins are known.
        external: a third party's, not this project's.
        remedy: the obstacle, or the command that fixes it; empty when `make` can build it.
        recorded: its entry of registry.yaml; `None` where there is none.
    """

    env_id: str
    spec: EnvSpec | None
    distribution: str
    external: bool
    remedy: str
    recorded: Mapping[str, Any] | None

    @property
    def family(self) -> str:
        return plain_line(self.spec.family) if self.spec else ""

    @property
    def words(self) -> set[str]:
        """The words that find it in the list: family, skills and difficulty."""
        return {self.family, self.difficulty, *self.spec.skills} if self.spec else set()

    @property
    def difficulty(self) -> str:
        """The card's label, as far as the blind floor leaves it."""
        share = find_blind_share(self.recorded)
        return rate_difficulty(self.spec.difficulty, share) if self.spec else ""


def find_entry(registry: Registry, env_id: str) -> Entry:
    """Return the entry of an installed, recorded or claimed id, or raise `UnknownEnvError`."""
    known, remedy = registry.known.get(env_id), ""
    spec: EnvSpec | None
    try:
        spec, distribution = registry.get(env_id), registry.owner[env_id]
    except UnknownEnvError:
        raise
    except UserError as error:
        # The registry's error is the remedy.
        remedy = re.sub(rf"^{re.escape(env_id)} (is |lives in \S+, which is )?", "", str(error))
        claims = registry.clashes.get(env_id, ())
        spec, distribution = None, ", ".join(claims or registry.refused.get(env_id, ()))
        if known and not claims:
            spec, distribution = known["spec"], known["distribution"]

    # A refused claim on an id of this project is a third party's.
    refused = spec is None and env_id in registry.refused
    external = refused or not env_id.startswith(f"{FIRST_PARTY}/")
    return Entry(env_id, spec, distribution, external, remedy, known)


def list_environments(
    words: Annotated[list[str] | None, Argument(metavar="[WORD]...",
        help="List the ids that have these words: a family, skill or difficulty.")] = None,
    old: Annotated[bool, Option("--old",
        help="Also published forms that a newer version replaces.")] = False,
) -> None:  # fmt: skip
    """List the families of environments, or the ids of one; installed, known but not installed, and third parties'."""
    registry = get_registry()
    env_ids = sorted({*registry.specs, *registry.known, *registry.clashes, *registry.refused})
    everything = [find_entry(registry, env_id) for env_id in env_ids]
    everything = [entry for entry in everything if old or not entry.spec or not entry.spec.replaced_by]
    entries = sorted(everything, key=lambda entry: (entry.spec is None, entry.family))

    # Each word leaves fewer; families are for those who do not know a word yet.
    for word in words or []:
        check_choice("WORD", word, sorted({*LABELS}.union(*(entry.words for entry in everything))))
        entries = [entry for entry in entries if word in entry.words]
    if not everything:
        open_console().print(f"No environment is installed or known. Install some: {how_to_install_all()}")
    elif not entries:
        open_console().print("No environment has all of these words.")
    elif words:
        _print_ids(entries)
    else:
        _print_families(entries)


def show(
    env_id: EnvId,
    prompt: Annotated[bool, Option("--prompt",
        help="Make the environment and print its first prompt.")] = False,
    picture: Annotated[Path | None, Option(metavar="FILE.png",
        help="Draw the first picture of each level, in a row.")] = None,
    seed: Annotated[int, Option(min=0, help="Seed of the episodes of --prompt and --picture.")] = 0,
    arg: Arguments = None,
    full: Annotated[bool, Option("--full",
        help="Cut nothing, and print the class's whole docstring.")] = False,
) -> None:  # fmt: skip
    """Show one environment's card, and with --prompt what a model reads first."""
    registry = get_registry()
    entry = find_entry(registry, env_id)
    if arg and not (prompt or picture):
        raise UserError("--arg goes with --prompt or --picture: the card depends on no constructor argument.")
    first = ""
    if picture:
        check_writable("--picture", picture)
    if prompt or picture:
        from ..play.rollout import Runner

        with closing(make(env_id, **read_arguments(arg or []))) as env:
            if prompt:
                first = write_messages(Runner([env], episodes=1, seed=seed).turns()[0].messages)
            if picture:
                _draw_levels(env, seed, picture)
    _print_card(registry, entry, full)
    if first:
        open_console().print(f"\nFirst prompt, seed {seed}:\n{first}")


def _print_families(entries: list[Entry]) -> None:
    console = open_console()
    rows = []
    cards = [entry for entry in entries if entry.spec is not None]
    for family, group in groupby(cards, lambda entry: entry.family):
        members = list(group)
        first = next((entry for entry in members if not entry.remedy), members[0])
        rows.append([family, str(len(members)), plain_line(first.remedy) or _ask(first)])

    # Ids that plugins only claim have no family; families that can be played come first.
    others = [entry for entry in entries if entry.spec is None]
    rows += [[plain_line(entry.env_id), "", plain_line(entry.remedy)] for entry in others]
    usable = {entry.family for entry in entries if not entry.remedy}
    rows.sort(key=lambda row: row[0] not in usable)
    print_wrapped(console, [["family", "ids", "what it asks"], *rows])
    console.print("\nThe ids of one: vlgym list FAMILY. A card: vlgym show ID.")


def _read_summary(entry: Entry) -> str:
    """Return a distribution's summary; the second sentence of this project's tells the original."""
    try:
        return metadata(entry.distribution)["Summary"] or ""
    except PackageNotFoundError:
        return ""


def _ask(entry: Entry) -> str:
    """Return the task of a family: the summary of its distribution, else of an environment."""
    owner = f"{entry.distribution} (external): " if entry.external else ""
    return plain_line(f"{owner}{_read_summary(entry) or _say_last(entry)}")


def _print_ids(entries: list[Entry]) -> None:
    console = open_console()
    rows = [[plain_line(entry.env_id), entry.difficulty, _write_blind(entry), _say_last(entry)] for entry in entries]
    print_wrapped(console, [["id", "difficulty", "blind", "summary"], *rows])
    console.print()

    # Marks that stand in the table are explained, and only those.
    line = "blind: share won without the picture; * above a third of the way from floor to ceiling"
    unknown = any(entry.recorded and entry.recorded.get("blind") is None for entry in entries)
    print_wrapped(console, [[line + (f"; ? is {NOT_MEASURED}" if unknown else "")]])
    cards = [entry.spec for entry in entries if entry.spec is not None and not entry.remedy]
    for name, values in (
        ("pictures", [PICTURE_WORDS[card.pictures] for card in cards]),
        ("original", [each for card in cards for each in card.references]),
        ("needs", [each for card in cards for each in card.system_requirements]),
    ):
        if values:
            print_wrapped(console, [[f"{name}:", plain_line("; ".join(dict.fromkeys(values)))]])
    absent = sum(bool(entry.remedy) for entry in entries)
    more = f", {absent} known but not usable here" if absent else ""
    console.print(f"{len(entries) - absent} installed{more}")


def _write_figures(figures: Mapping[str, Any] | None) -> str:
    """Return figures of registry.yaml in words; ± is the standard error."""
    if figures is None:
        return "none"
    keys = ("policy", "success_policy")
    names = [f" ({figures[key]})" if key in figures else "" for key in keys]
    return (
        f"return {figures['return']} ± {figures['se']}{names[0]}, success {figures['success']}{names[1]}, "
        f"{figures['episodes']} episodes"
    )


def _write_blind(entry: Entry) -> str:
    """Return the share won without the picture, with its mark; `?` where it was not measured."""
    if entry.recorded is None:
        return "-"
    figures = entry.recorded.get("blind")
    marked = (find_blind_share(entry.recorded) or 0.0) > WARN_ABOVE
    return "?" if figures is None else f"{figures['success']:.2f}{'*' if marked else ''}"


def _say_last(entry: Entry) -> str:
    if entry.remedy or entry.spec is None:
        return plain_line(entry.remedy)
    newer = entry.spec.replaced_by
    return plain_line((f"(kept for comparison, see {newer}) " if newer else "") + entry.spec.summary)


def _write_levels(levels: Sequence[str], measured: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return a row for each level: oracle, best blind player, random play, and its text."""
    rows = {f"level {number}": line for number, line in enumerate(levels)}
    for name, figures in zip(rows, measured, strict=False):
        rows[name] = (
            f"oracle {figures['oracle']} in {figures['length']} turns, blind {figures['blind']}, "
            f"random {figures['random']}: {rows[name]}"
        )
    return rows


def _read_docstring(spec: EnvSpec) -> str:
    """Return the docstring of an environment's class, and those of the bases that it names."""
    try:
        made = load_class(spec)
        text = inspect.getdoc(made) or ""
        package = spec.entry_point.partition(".")[0]
        bases = [each for each in made.__mro__[1:] if each.__module__.startswith(package)]
        bases = [each for each in bases if f"`{each.__name__}`" in text and each.__doc__]
        return "\n\n".join([text, *(inspect.cleandoc(each.__doc__ or "") for each in bases)])
    except (Exception, SystemExit):  # whatever a plugin does, the card is shown
        return ""


def _print_card(registry: Registry, entry: Entry, full: bool) -> None:
    console = open_console()
    spec = entry.spec or registry.get(entry.env_id)  # a clash says who claims the id
    figures = entry.recorded or {}
    comparison = Comparison() if entry.remedy else compare_recorded(registry, entry.env_id)
    docstring = "" if entry.remedy else _read_docstring(spec)
    owner = f"{entry.distribution}{' (external)' if entry.external else ''}"
    share = find_blind_share(entry.recorded)
    compared = "card, prompt and parser as registry.yaml records"
    if not comparison.live:
        compared = f"not compared, it cannot be made here: {comparison.error}"

    # Rows in the order of reading: what it is, then what surrounds it.
    sections, (height, width) = _read_sections(docstring), spec.image_size
    first = [name for name in FIRST_SECTIONS if name in sections and not full]
    rows: dict[str, Any] = {name: sections[name] for name in first}
    rows |= {
        "success": spec.success_rule, "turns": f"at most {spec.max_turns}",
        "status": entry.remedy,
        "origin": "" if entry.external else _read_summary(entry).partition(". ")[2],
        "picture": f"{height} x {width}; in the prompt: {spec.history_images}",
        "reply": f"{', '.join(spec.reply_styles)}; planner {', '.join(spec.planners)}",
        "skills": spec.skills, "interaction": "; ".join(spec.interaction),
        "arguments": spec.kwargs, "reset options": comparison.options,
        "needs": spec.system_requirements, "references": spec.references,
        "blind share": NOT_MEASURED if share is None else f"{share:.2f} of the way from floor to ceiling",
    }  # fmt: skip
    rows = {name: value for name, value in rows.items() if value}
    rows |= _write_levels(spec.levels, figures.get("levels", []))
    rows |= {name: _write_figures(figures[name]) for name in WINS if name in figures}
    if figures:
        rows["compared"] = " ".join(comparison.differences) or compared

    # Long values are cut without --full, so that a card fits a screen.
    title = f"{spec.id}  {entry.family}, {entry.difficulty}, {plain_line(owner)}"
    console.print(title, style="bold")
    room = MOST_LINES - bool(spec.levels)
    print_wrapped(console, [[show_safe(spec.summary)]], room)
    if full and docstring:
        console.print(f"{docstring}\n")
    longest = max(map(len, rows))
    for name, value in rows.items():
        most = 0 if full else 1 if name.startswith("level ") else room if name in FIRST_SECTIONS else MOST_LINES - 1
        print_wrapped(console, [[name.ljust(longest), show_safe(_write_value(value))]], most)
    console.print("\nWhat a model reads first: --prompt" + ("" if full else ". Uncut: --full"))


def _read_sections(docstring: str) -> dict[str, str]:
    """Return the sections of a docstring (`Goal: ...`) by their names in small letters."""
    parts = re.split(r"^([A-Z]\w+):", docstring, flags=re.MULTILINE)
    bodies = (re.split(r"\n\s*\n", body)[0] for body in parts[2::2])
    return {name.lower(): " ".join(body.split()) for name, body in zip(parts[1::2], bodies, strict=True)}


def _write_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _draw_levels(env: VLEnv, seed: int, file: Path) -> None:
    """Write the first pictures of an environment's levels as one, the easiest on the left."""
    from ..env.rendering import encode_png

    places = [{"level": level} for level in range(len(env.level_arguments))] or [{}]
    images = [env.reset(seed=seed, options=options)[0]["image"] for options in places]
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, encode_png(np.concatenate(images, axis=1)))
