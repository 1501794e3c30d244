"""Regenerate the pages that are made from the code: `python docs/generate.py`.

docs/environments.md    from the installed specs and registry.yaml
docs/cli.md, hooks.md, errors.md, check.md, gallery.md    from the help texts, docstrings and specs of the code
docs/*.md, README.md    the files that they print, from tests/fixtures/ and from `vlgym new-plugin`; their tables, from
                        docs/studies/, docs/results/ and registry.yaml (docs/figures.py)
docs/images/            results.png and demo_curve.png from docs/studies/

The site's pages of the API, of studies, and of families whose plugin's README is the only one, are made by
`write_site_pages` when it is built.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import io
import os
import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
WIDTH = 224
"""Pixels of a picture in the gallery."""

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
    "vlgym.wrappers": """
.. automodule:: vlgym.wrappers
""",
    "vlgym.env": """
.. automodule:: vlgym.env.adapter
""",
    "vlgym.play": """
.. automodule:: vlgym.play.policies
.. automodule:: vlgym.play.rollout
.. automodule:: vlgym.play.trajectory
.. automodule:: vlgym.env_groups
""",
    "vlgym.games": """
.. automodule:: vlgym.games.tournament
""",
    "vlgym.sight": """
.. automodule:: vlgym.sight.blind
.. automodule:: vlgym.sight.blind_policies
""",
    "vlgym.evaluation": """
.. automodule:: vlgym.evaluation
   :imported-members:
""",
    "vlgym.integrations": """
.. automodule:: vlgym.integrations.agent
.. automodule:: vlgym.integrations.canary
""",
    "vlgym.testing": """
.. automodule:: vlgym.testing
   :imported-members:
""",
    "baselines": """
.. automodule:: baselines.learning.losses
""",
}
"""Folder -> what its page of the API holds. The first begins with `make` and ends with the card."""

MARK = "<!-- Written by docs/generate.py. -->"
FIRST = "../vlgym/templates/static/first"
"""First pictures, from docs/; the site shows moving pictures in their place (docs/conf.py)."""
LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml"}
FILE = re.compile(r"(<!-- (?:file|new-plugin ([^:\n]+)): (\S+) -->)(?:\n```\w*\n.*?\n```)?", re.DOTALL)


def generate() -> dict[str, str]:
    """Return page name (from docs/) -> text, of the pages that git holds."""
    import figures

    paths = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    pages = {os.path.relpath(path, DOCS): path.read_text(encoding="utf-8") for path in sorted(paths)}
    made = {
        name: figures.fill_tables(FILE.sub(_print_file, text))
        for name, text in pages.items()
        if FILE.search(text) or figures.TABLE.search(text)
    }
    whole = {
        "environments": write_environments, "cli": write_cli, "hooks": write_hooks, "errors": write_errors,
        "check": write_checks, "gallery": write_gallery,
    }  # fmt: skip
    return {**made, **{f"{name}.md": f"{MARK}\n\n{write().rstrip()}\n" for name, write in whole.items()}}


def write_site_pages(folder: Path) -> None:
    """Write the pages of the site that git does not hold."""
    (folder / "api").mkdir(exist_ok=True)
    for name, directives in API.items():
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
    """Write a table with task, turns, and the blind floor of the current ids."""
    from vlgym.registry.registry_file import read_registry
    from vlgym.sight.blind_gap import find_blind_share

    entries = [entry for entry in read_registry().values() if not entry["spec"].replaced_by]
    lines = [
        "# Environments\n",
        "Blind: success of the best player found without the picture ([sight.md](sight.md)), on the test split. Share: "
        "the way from random play to the oracle that it covers, in success or in return. `vlgym list reading hard` "
        "lists the ids of a skill and a difficulty, `vlgym list --old` replaced forms, `vlgym show ID` turns, "
        "floor, ceiling, returns, [levels](write-a-plugin.md#levels), card and options, `vlgym show ID --prompt` the "
        "message; `vlgym doctor` what is missing.\n",
        "| id after `vlgym/` | task | blind, share |\n" + "|---" * 3 + "|",
    ]
    for family in sorted({entry["spec"].family for entry in entries}):
        lines.append(f"| **[{family}]({find_source(family)})** |||")
        for entry in (entry for entry in entries if entry["spec"].family == family):
            share = find_blind_share(entry)
            measured = _show(entry.get("blind")) + ("" if share is None else f", {share:.2f}")
            lines.append(f"| {entry['spec'].id.removeprefix('vlgym/')} | {entry['spec'].summary} | {measured} |")
    return "\n".join(lines) + "\n"


def write_gallery() -> str:
    """Write a grid for each family, with a moving picture and a summary for each current environment."""
    lines = [
        "# Gallery\n",
        "The first picture of every environment, as a model sees it; on the site, the oracle's first test episode.\n",
    ]
    specs = list_shown()
    for family in dict.fromkeys(spec.family for spec in specs):
        lines.append(f"## [{family}]({find_source(family)})\n\n<div class='gallery'>")
        for spec in specs:
            if spec.family == family:
                name = spec.id.replace("/", "-")
                lines.append(
                    f'<figure><img src="{FIRST}/{name}.webp" alt="An episode of {spec.id}" width="{WIDTH}" '
                    f'loading="lazy"><figcaption><code>{spec.id}</code><br>{html.escape(spec.summary)}</figcaption>'
                    "</figure>"
                )
        lines.append("</div>\n")
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
    """The `--help` text of every command."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from vlgym.cli.app import build_app

    calls: list[list[str]] = [[]]
    for name, command in sorted(get_command(build_app()).commands.items()):  # type: ignore[attr-defined]
        calls += [[name], *([name, sub] for sub in sorted(getattr(command, "commands", {})))]
    parts = ["# Command line\n"]
    for call in calls:
        result = CliRunner().invoke(
            build_app(), [*call, "--help"], env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
        )
        parts.append(f"## `{' '.join(['vlgym', *call])}`\n\n```text\n{result.output.strip()}\n```\n")
    return "\n".join(parts)


def write_checks() -> str:
    """A section per check of the certificate: what holds, what the check sees, and what it cannot see."""
    from vlgym.testing.checks import ALL_CHECKS, RFC_008

    lines = ["# Checks\n", "What `vlgym check ID` tests, in this order. A certificate is evidence, not proof.\n"]
    for name, check in ALL_CHECKS.items():
        head, _, rest = (inspect.getdoc(check) or "").partition("\n\n")
        lines += [f"## `{name}`\n", " ".join(head.split()), "", " ".join(rest.split()), ""]
        if name in RFC_008:
            lines.append(f"OpenEnv's RFC 008: {', '.join(f'`{each}`' for each in RFC_008[name])}.\n")
    return "\n".join(lines)


def write_hooks() -> str:
    """A section per hook, titled with its signature."""
    from vlgym.registry import hookspecs

    lines = ["# Hooks\n", inspect.getdoc(hookspecs) or "", ""]
    for name, function in vars(hookspecs).items():
        if name.startswith("vlgym_"):
            signature = str(inspect.signature(function)).replace("'", "")
            lines += [f"## `{name}{signature}`\n", inspect.getdoc(function) or "", ""]
    return "\n".join(lines)


def write_errors() -> str:
    """Every error class with its next step."""
    from vlgym import errors

    lines = ["# Errors\n", inspect.getdoc(errors) or "", "", "| error | meaning |", "|---|---|"]
    for name, cls in vars(errors).items():
        if isinstance(cls, type) and issubclass(cls, Exception):
            lines.append(f"| `{name}` | {' '.join((inspect.getdoc(cls) or '').split())} |")
    return "\n".join(lines) + "\n"


def _print_file(match: re.Match[str]) -> str:
    """The mark, and below it the file that it names, or that `vlgym new-plugin` writes with the mark's words."""
    mark, words, name = match.groups()
    with tempfile.TemporaryDirectory() as folder:
        if words is not None:
            from vlgym.cli.app import main as call

            with contextlib.redirect_stdout(io.StringIO()):
                call(["new-plugin", *words.split(), "--out", folder])
        path = Path(folder if words is not None else ROOT) / name
        text = path.read_text(encoding="utf-8").rstrip()
    return f"{mark}\n```{LANGUAGES.get(path.suffix, '')}\n{text}\n```"


def _show(measured: dict[str, float] | None) -> str:
    return f"{measured['success']:.2f}" if measured else "not measured"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for page, text in generate().items():
        (DOCS / page).write_text(text, encoding="utf-8")
    import figures

    figures.draw_outcomes(DOCS / "images" / "results.png")
    figures.draw_demo(DOCS / "images" / "demo_curve.png")
