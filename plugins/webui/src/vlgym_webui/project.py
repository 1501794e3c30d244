"""A project: the page to rebuild, its description with pictures, and its interactions, in a folder.

    index.html, style.css, script.js   the ground truth, annotated by data-filter-by and data-evalby
    tasks.md, _images/*.png            the description, with pictures
    plain.md                           the same without looks (may be missing)
    project.yaml                       title, split, viewport, and:

    interactions:
      - name: open the menu
        steps:
          - click: "#menu-button"
          - hover: ".card"
          - type: {into: "#name", text: "Ada"}
          - wait: 500            # milliseconds of the page's own clock

MageBench's folders have no project.yaml but an actions.py. Python from outside is never run: such a
folder is loaded once its interactions are written down as steps. Every mistake is reported with the
file, the place in it, and the fix.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml

from vlgym.env.seeding import SPLITS
from vlgym.errors import UserError, check_choice, nearest
from vlgym.registry.limited_yaml import read_fields, read_yaml

from .aes import FILTERS, METHODS

KINDS = ("click", "hover", "type", "wait")
MOST_INTERACTIONS = 8
MOST_STEPS = 20
MOST_WAIT_MS = 20_000
MOST_TEXT = 200


class ProjectError(UserError):
    """A project's file is malformed; the message names the file, the place and the fix."""


@dataclass(frozen=True)
class Step:
    """One action of a user: one of `KINDS`, with a CSS selector but for `wait`."""

    kind: str
    selector: str = ""
    text: str = ""
    wait_ms: int = 0


@dataclass(frozen=True)
class Interaction:
    """Steps after which the page is looked at again."""

    name: str
    steps: tuple[Step, ...]


def _read_card(text: str, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a project's card. `where` begins error messages here and below."""
    try:
        return read_fields(read_yaml(text), where, keys, ("title",), ProjectError)
    except yaml.YAMLError as error:
        words = f"not valid YAML: {error}. Check indentation, quotes and colons there."
        raise ProjectError(f"{where}: {words}") from None


def _read_text(value: Any, where: str, longest: int = 400) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        wanted = f"a string in quotes, of 1 to {longest} characters"
        raise ProjectError(f"{where} is {value!r:.60}; write {wanted}.")
    return value


def _read_number(value: Any, where: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ProjectError(f"{where} is {value!r:.60}; write a whole number from {least} to {most}.")
    return value


def _read_list(value: Any, where: str, least: int, most: int) -> list[Any]:
    if not isinstance(value, list) or not least <= len(value) <= most:
        wanted = f"a list of {least} to {most} items, each begun with '-'"
        raise ProjectError(f"{where} is {value!r:.60}; write {wanted}.")
    return value


def _read_interactions(value: Any, where: str) -> tuple[Interaction, ...]:
    interactions = []
    for number, item in enumerate(_read_list(value, f"{where}: interactions", 0, MOST_INTERACTIONS), 1):
        place = f"{where}: interaction {number}"
        fields = read_fields(item, place, ("name", "steps"), ("name", "steps"), ProjectError)
        steps = enumerate(_read_list(fields["steps"], f"{place}: steps", 1, MOST_STEPS), 1)
        read = tuple(_read_step(step, f"{place}, step {index}") for index, step in steps)
        interactions.append(Interaction(_read_text(fields["name"], f"{place}: name", 80), read))
    return tuple(interactions)


def _read_step(value: Any, where: str) -> Step:
    fields = read_fields(value, where, KINDS, (), ProjectError)
    if len(fields) != 1:
        kinds = ", ".join(KINDS)
        raise ProjectError(f"{where} has {len(fields)} kinds; write one of {kinds}, each begun with '-'.")

    # The kind decides the form of its argument.
    ((kind, argument),) = fields.items()
    where = f"{where}: {kind}"
    if kind == "wait":
        return Step(kind, wait_ms=_read_number(argument, where, 1, MOST_WAIT_MS))
    if kind == "type":
        parts = read_fields(argument, where, ("into", "text"), ("into", "text"), ProjectError)
        return Step(kind, _selector(parts["into"], where), _read_text(parts["text"], where, MOST_TEXT))
    return Step(kind, _selector(argument, where))


def _selector(value: Any, where: str) -> str:
    selector = _read_text(value, where).strip()
    unpaired = any(selector.count(pair[0]) != selector.count(pair[1]) for pair in ("[]", "()"))
    if unpaired or selector.startswith("//") or "{" in selector:
        raise ProjectError(f'{where}: {selector!r} is no CSS selector; write one such as "#menu > .item".')
    return selector


FOLDER = Path(__file__).parent / "projects"
CODE_FILES = ("index.html", "style.css", "script.js")
PRIVATE_FILES = ("tasks.md", "plain.md", "project.yaml", "tasks_content.json")
VIEWPORT = [800, 600]
MAGEBENCH_VIEWPORT = [1920, 1080]
MOST_FILE_BYTES = 4_000_000

_KEYS = ("title", "split", "viewport", "interactions")
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_ANNOTATION = re.compile(r"\s+data-(?:filter-by|evalby)=(?:\"[^\"]*\"|'[^']*')")


@dataclass(frozen=True)
class Project:
    """One page to rebuild, in a folder of its name."""

    name: str
    title: str
    split: str
    viewport: tuple[int, int]  # width and height in pixels
    interactions: tuple[Interaction, ...]
    description: str  # `tasks.md` without its picture lines
    plain: str  # `plain.md`, if it exists; else the description
    pictures: tuple[Path, ...]  # of `tasks.md`, initial page first
    files: dict[str, bytes]  # path in the folder -> contents: annotated ground truth and assets

    @property
    def assets(self) -> dict[str, bytes]:
        """The files that a rebuilt page may use: everything but the code."""
        return {path: data for path, data in self.files.items() if path not in CODE_FILES}

    def code(self) -> dict[str, str]:
        """Return the ground truth's code without annotations: the oracle's answer."""
        code = {path: self.files[path].decode("utf-8") for path in CODE_FILES if path in self.files}
        code["index.html"] = _ANNOTATION.sub("", code["index.html"])
        return code


@lru_cache(maxsize=8)
def list_projects(split: str | None = None) -> tuple[str, ...]:
    """Return the names of the shipped projects in alphabetical order, all or of one split."""
    names = [path.name for path in list_folders()]
    return tuple(name for name in names if split is None or load_project(name).split == split)


def list_folders() -> list[Path]:
    """Return the folders of the shipped projects in alphabetical order."""
    return sorted(path.parent for path in FOLDER.glob("*/index.html"))


def load_project(name: str) -> Project:
    """Load a shipped project by name, or any folder by its path; a `UserError` for no good one."""
    folder = Path(name) if "/" in name or "\\" in name else FOLDER / name
    if not (folder / "index.html").is_file():
        names = [path.name for path in list_folders()]
        raise UserError(
            f"There is no WebUI project {name!r}.{nearest(name, names)} Shipped are {', '.join(names)}; for "
            "one of your own give the path of its folder, with a slash, which must hold an index.html."
        )
    return read_folder(folder.resolve())


def read_folder(folder: Path, *, described: bool = True) -> Project:
    """Read a project's folder, in this package's form or MageBench's; `described`: with tasks.md."""
    card = folder / "project.yaml"
    own = card.is_file()
    if not own and (folder / "actions.py").is_file():
        raise ProjectError(
            f"{folder / 'actions.py'}: interactions written as Python code are never run. Write them as "
            f"steps into {card}: a line 'title: {folder.name}', then 'interactions:' with a name and a list "
            "of click, hover, type and wait for each entry of the list `actions`; see docs/webui.md."
        )

    # A folder of MageBench has no card: its window is the published one.
    fields = _read_card(_read_file(card), str(card), _KEYS) if own else {}
    viewport = fields.get("viewport", VIEWPORT if own else MAGEBENCH_VIEWPORT)
    width, height = _read_list(viewport, f"{card}: viewport", 2, 2)
    description, pictures = _read_description(folder) if described else ("", ())
    plain = folder / "plain.md"
    project = Project(
        name=folder.name,
        title=_read_text(fields["title"], f"{card}: title", 80) if own else folder.name,
        split=check_choice(f"{card}: split", fields.get("split", "train"), SPLITS, ProjectError),
        viewport=(
            _read_number(width, f"{card}: viewport width", 200, 3840),
            _read_number(height, f"{card}: viewport height", 200, 2160),
        ),
        interactions=_read_interactions(fields.get("interactions", []), str(card)),
        description=description,
        plain=_read_file(plain).strip() if plain.is_file() else description,
        pictures=pictures,
        files=dict(_read_files(folder)),
    )
    _check_annotations(project, folder / "index.html", strict=own)
    return project


def _read_description(folder: Path) -> tuple[str, tuple[Path, ...]]:
    path = folder / "tasks.md"
    if not path.is_file():
        raise ProjectError(
            f"{path}: the description is missing; write tasks.md, with ![page](_images/0.png) for a picture."
        )
    text = _read_file(path)

    # A picture must lie in the folder: a project from outside shows no other file of this machine.
    pictures = []
    for target in _PICTURE.findall(text):
        picture = (folder / target).resolve()
        if not picture.is_relative_to(folder) or not picture.is_file():
            raise ProjectError(
                f"{path}: the picture {target!r} is not in the folder; "
                f"make it with: python -m vlgym_webui.shoot {folder}"
            )
        pictures.append(picture)

    # The text goes on without its picture lines and the gaps that they leave.
    lines = [_PICTURE.sub("", line).rstrip() for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), tuple(pictures)


def _read_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        private = name.startswith("_images/") or name in PRIVATE_FILES
        shown = path.is_file() and not private and not name.endswith((".py", ".pyc"))
        if path.is_symlink() or (shown and path.stat().st_size > MOST_FILE_BYTES):
            raise ProjectError(
                f"{path}: a link, or larger than {MOST_FILE_BYTES} bytes; replace it by a small plain file."
            )
        if shown:
            yield name, path.read_bytes()


def _read_file(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ProjectError(f"{path}: not UTF-8 text; save the file as UTF-8.") from None


class _Annotations(HTMLParser):
    """Collects (line, filter, methods) of annotated elements."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[int, str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: (value or "").strip() for name, value in attrs}
        if "data-filter-by" in values or "data-evalby" in values:
            methods = [name for name in map(str.strip, values.get("data-evalby", "").split("|")) if name]
            self.elements.append((self.getpos()[0], values.get("data-filter-by", ""), methods))


def _check_annotations(project: Project, path: Path, *, strict: bool) -> None:
    """Check that there are annotations, and (`strict`: not in MageBench's pages) their names."""
    reader = _Annotations()
    reader.feed(_read_file(path))
    script = project.files.get("script.js", b"")
    if not reader.elements and b"data-filter-by" not in script and b"filterBy" not in script:
        raise ProjectError(
            f"{path}: no element is annotated, so nothing can be scored; add for example "
            'data-filter-by="text" data-evalby="text|color|font-size" to the elements that count.'
        )

    # A misspelt name would score nothing, silently.
    for line, filter_by, methods in reader.elements if strict else ():
        place = f"{path}, line {line}"
        check_choice(f"{place}: data-filter-by", filter_by, FILTERS, ProjectError)
        if not methods:
            raise ProjectError(f'{place}: data-evalby is missing; write for example data-evalby="color|width".')
        for method in methods:
            check_choice(f"{place}: data-evalby", method, METHODS, ProjectError)
