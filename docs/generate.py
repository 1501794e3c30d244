"""Regenerate the pages that are made from the code: `python docs/generate.py`.

docs/environments.md, gallery.md    from the installed specs and registry.yaml
docs/check.md, cli.md, errors.md, hooks.md    from docstrings and the help texts
docs/*.md, README.md    their tables, from docs/studies/, docs/results/ and registry.yaml (docs/figures.py)
docs/images/            results.png, demo_curve.png and credit.png from docs/studies/

`write_site_pages` makes further pages when the site is built: the API, the studies, and the families whose plugin's
README is the only page.
"""

import inspect
import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
AWAY = ", from a start that is away from it and does not face it", " (away)"
"""Words that several summaries share, and the word in their place."""
CLAUSE, LIST = 8, 12
"""Words of an option on the page of the command line: clauses behind the first, and a list of values, end there."""
KINDS = {" <int range>": " N", " <float range>": " X", " <float>": " X", " <str>": " WORD", " <path>": " PATH"}
"""Typer's kinds of values, as the page of the command line names them."""

API = {
    "vlgym": """
.. autofunction:: vlgym.make

.. autoclass:: vlgym.VLEnv
   :members:
   :show-inheritance:

.. automodule:: vlgym
   :members:
   :imported-members:
   :exclude-members: EnvSpec, Outcome, VLEnv, make

.. automodule:: vlgym.types

.. autoclass:: vlgym.EnvSpec
   :members:
""",
    "vlgym.wrappers": ("vlgym.wrappers",),
    "vlgym.env": ("vlgym.env.adapter",),
    "vlgym.play": ("vlgym.play.policies", "vlgym.play.rollout", "vlgym.play.trajectory", "vlgym.env_groups"),
    "vlgym.games": ("vlgym.games.tournament",),
    "vlgym.sight": ("vlgym.sight.blind", "vlgym.sight.blind_policies"),
    "vlgym.evaluation": ".. automodule:: vlgym.evaluation\n   :imported-members:",
    "vlgym.integrations": ("vlgym.integrations.agent", "vlgym.integrations.canary"),
    "vlgym.testing": ".. automodule:: vlgym.testing\n   :imported-members:",
    "baselines": ("baselines.learning.losses",),
}
"""Folder -> what its page of the API holds, or its modules. The first begins with `make` and ends with the card."""

MARK = "<!-- Written by docs/generate.py. -->"
FIRST = "../vlgym/templates/static/first"
"""First pictures, from docs/; the site has moving pictures in their place (docs/conf.py)."""


def generate() -> dict[str, str]:
    """Return page name (from docs/) -> text, of the pages that git holds."""
    import figures

    paths = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    pages = {os.path.relpath(path, DOCS): path.read_text(encoding="utf-8") for path in sorted(paths)}
    made = {name: figures.fill_tables(text) for name, text in pages.items() if figures.TABLE.search(text)}
    whole = {
        "check": write_checks, "cli": write_cli, "environments": write_environments, "errors": write_errors,
        "gallery": write_gallery, "hooks": write_hooks,
    }  # fmt: skip
    return {**made, **{f"{name}.md": f"{MARK}\n\n{write().rstrip()}\n" for name, write in whole.items()}}


def write_site_pages(folder: Path) -> None:
    """Write the pages of the site that git does not hold."""
    (folder / "api").mkdir(exist_ok=True)
    for name, directives in API.items():
        if isinstance(directives, tuple):
            directives = "\n".join(f".. automodule:: {module}" for module in directives)
        page = f"# {name}\n\n```{{eval-rst}}\n{directives.strip()}\n```\n"
        (folder / "api" / f"{name.removeprefix('vlgym.')}.md").write_text(page, encoding="utf-8")
    pages = "\n".join(f"api/{name.removeprefix('vlgym.')}" for name in API)
    text = f"# Python API\n\nModules that a plugin, a script or a learner imports.\n\n```{{toctree}}\n{pages}\n```\n"
    (folder / "api.md").write_text(text, encoding="utf-8")
    (folder / "families").mkdir(exist_ok=True)
    for family in {spec.family for spec in list_shown()}:
        if find_page(family).startswith("families/"):
            text = (ROOT / "plugins" / family / "README.md").read_text(encoding="utf-8")
            (folder / find_page(family)).write_text(text.replace("](../../docs/", "](../"), encoding="utf-8")
    import figures

    for name, text in figures.write_study_pages().items():
        (folder / "studies" / f"{name}.md").write_text(text, encoding="utf-8")


def write_environments() -> str:
    """Write a list of the current ids: blind floor and task. Ids link to their first pictures."""
    from vlgym.registry.registry_file import read_registry
    from vlgym.sight.blind_gap import find_blind_share

    entries = [entry for entry in read_registry().values() if not entry["spec"].replaced_by]
    lines = [
        "# Environments\n",
        "An id begins with `vlgym/` and links to its first picture. The numbers: success of the best player found "
        "without the picture ([sight.md](sight.md)) on the test split, and its share of the way from random play to "
        "the oracle, in success or in return. Away: from a start away from the box that does not face it.\n",
        "`vlgym list reading hard` lists the ids of a skill and a difficulty, `vlgym list --old` replaced forms. "
        "`vlgym show ID` prints card, turns, floor, ceiling, returns, [levels](write-a-plugin.md#levels) and "
        "options.",
    ]
    for family in sorted({entry["spec"].family for entry in entries}):
        lines.append(f"\n## [{family}]({find_source(family)})\n")
        for entry in (entry for entry in entries if entry["spec"].family == family):
            spec, share = entry["spec"], find_blind_share(entry)
            name = f"[{spec.id.removeprefix('vlgym/')}]({FIRST}/{spec.id.replace('/', '-')}.webp)"
            measured = _show(entry.get("blind")) + ("" if share is None else f", {share:.2f}")
            lines.append(f"- {name} {measured}: {spec.summary.replace(*AWAY).rstrip('.')}")
    return "\n".join(lines)


def write_gallery() -> str:
    """Write a grid for each family, with the first picture of each current environment."""
    lines = ["# Gallery\n"]
    specs = list_shown()
    for family in dict.fromkeys(spec.family for spec in specs):
        lines.append(f"## [{family}]({find_source(family)})\n\n<div class='gallery'>\n")
        for spec in specs:
            if spec.family == family:
                name = spec.id.removeprefix("vlgym/")
                lines.append(f'[![{name}]({FIRST}/{spec.id.replace("/", "-")}.webp "{name}")](environments.md)')
        lines.append("\n</div>\n")
    return "\n".join(lines)


def find_page(family: str) -> str:
    """Return the page of a family: its own in docs/, or its plugin's README."""
    page = {"pettingzoo": "games"}.get(family, family)
    return f"{page}.md" if (DOCS / f"{page}.md").is_file() else f"families/{page}.md"


def find_source(family: str) -> str:
    """Return the page of a family as git holds it."""
    page = find_page(family)
    return f"../plugins/{family}/README.md" if page.startswith("families/") else page


def list_shown() -> list:
    """The specs of the gallery, family by family: the newest version of each that registry.yaml knows."""
    from vlgym.registry import get_registry

    registry = get_registry()
    specs = [spec for spec in registry.specs.values() if spec.id in registry.known and not spec.replaced_by]
    return sorted(specs, key=lambda spec: (spec.family, spec.id))


def write_cli() -> str:
    """Write a section per command: usage, first clauses of its help, arguments and options with their defaults."""
    from typer.main import get_command

    from vlgym.cli.app import build_app

    lines = [
        "# Command line\n",
        "`vlgym COMMAND --help` has all values and ranges. Parentheses: defaults; dots: may be repeated. Policies: "
        "[evaluate.md](evaluate.md#policies).\n",
    ]
    for name, command in get_command(build_app()).commands.items():  # type: ignore[attr-defined]
        context = command.context_class(command, info_name=name)
        usage, options = f"vlgym {name}", []
        for option in command.get_params(context):
            # Typer's title ends with the type of the value, which an argument's own name says.
            title, text = option.get_help_record(context)
            kind = re.search(" <.*>", title)
            title = title.removesuffix(kind[0] if kind else "")
            title += KINDS.get(kind[0], "") if kind and title.startswith("--") else ""
            title += "..." if "may be repeated" in text else ""
            if option.required or not title.startswith("--"):
                usage += f" {title}" if option.required or title.startswith("[") else f" [{title}]"

            # An environment's id and a run's folder are known by their names.
            if title not in ("--help", "ID", "DIR"):
                default = re.search(r"\[default: \(?([^;)\]]+)", text)
                options.append(f"- `{title}`{f' ({default[1]})' if default else ''}: {_cut(text, '.;')}")
        lines += [f"## `{usage}`\n", f"{_cut(command.help, '.;:')}.\n", *options, *[""] * bool(options)]
    return "\n".join(lines)


def write_checks() -> str:
    """Write a line per check of the certificate."""
    from vlgym.testing.checks import ALL_CHECKS

    lines = [
        "# Checks\n",
        "What `vlgym check ID` tests, in this order. A certificate is evidence, not proof: the docstrings in "
        "[vlgym/testing](../vlgym/testing/checks.py) say what a check can and cannot see.\n",
    ]
    for name, check in ALL_CHECKS.items():
        lines.append(f"- `{name}`: {_first_sentence(inspect.getdoc(check))}")
    return "\n".join(lines)


def write_hooks() -> str:
    """Write a section per hook, titled with its signature."""
    from vlgym.registry import hookspecs

    lines = ["# Hooks\n", inspect.getdoc(hookspecs) or "", ""]
    for name, function in vars(hookspecs).items():
        if name.startswith("vlgym_"):
            signature = str(inspect.signature(function)).replace("'", "")
            lines += [f"## `{name}{signature}`\n", inspect.getdoc(function) or "", ""]
    return "\n".join(lines)


def write_errors() -> str:
    """Write a line per error class, with its next step."""
    from vlgym import errors

    lines = ["# Errors\n", inspect.getdoc(errors) or "", "\nClasses, with the next step:\n"]
    for name, cls in vars(errors).items():
        if isinstance(cls, type) and issubclass(cls, Exception):
            lines.append(f"- `{name}`: {' '.join((inspect.getdoc(cls) or '').split())}")
    return "\n".join(lines)


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=\.)\s+(?=[A-Z])", " ".join((text or "").split("\n\n")[0].split()))[0]


def _cut(text: str, ends: str) -> str:
    """Return the first clause of a help text, and those behind it up to `CLAUSE` words; a list up to `LIST` words."""
    text = re.sub(r"\s*\[(default: |required|[^\]\s]*[<>]=)[^\]]*\]\.?", "", text.split("\n\n")[0])
    text = " ".join(text.replace("; may be repeated", "").split())
    words, *clauses = re.split(rf"(?<=[{ends}])\s", text)
    while clauses and len(f"{words} {clauses[0]}".split()) <= CLAUSE:
        words += f" {clauses.pop(0)}"
    words = words.partition(":")[0] if len(words.split()) > LIST else words
    return re.sub(r"--[a-z-]+", r"`\g<0>`", words.rstrip(".;:"))


def _show(measured: dict[str, float] | None) -> str:
    return f"{measured['success']:.2f}" if measured else "not measured"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for page, text in generate().items():
        (DOCS / page).write_text(text, encoding="utf-8")
    import figures

    figures.draw_outcomes(DOCS / "images" / "results.png")
    figures.draw_demo(DOCS / "images" / "demo_curve.png")
    figures.measures.draw_measures(figures.read_runs("advantages"), DOCS / "images" / "credit.png")
