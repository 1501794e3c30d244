"""One direction: a module imports only from rows above; plugins and baselines from few."""

import sys
from pathlib import Path

import pytest
from sources import ROOT, imported_modules, list_files, module_name, show

pytestmark = pytest.mark.xdist_group("sources")  # which one worker reads once
LADDER = (
    ("errors", "types", "intervals"), ("files", "terminal", "parsers"), ("browser",), ("env",), ("registry",),
    ("play", "wrappers"), ("endpoint", "env_groups", "sight"), ("evaluation",), ("reports", "integrations"), ("doors",),
    ("games",), ("testing",), ("ui",), ("cli",), ("__main__",),
)  # fmt: skip
"""The rooms of vlgym and the modules at its root; each imports from its own and from rows above."""
ROW = {part: row for row, parts in enumerate(LADDER) for part in parts}
FOR_PLUGINS = (
    "errors", "types", "files", "terminal", "parsers", "browser", "env", "testing", "games.multi", "sight.blind",
    "registry.hookspecs", "registry.installing", "registry.limited_yaml", "registry.suites",
)  # fmt: skip
NOT_FOR_BASELINES = ("cli", "ui", "testing", "registry.plugins", "registry.hookspecs")
HEAVY = {"torch", "transformers", "tyro", "tensorboard", "matplotlib"}
ROOMS = (("runs", "models"), ("engine",), ("learning", "policies"), ("studies",), ("credit",))
"""The folders of baselines; each imports from rows above, the last also commands."""
FLOOR = {room: row for row, rooms in enumerate(ROOMS) for room in rooms}
COMMANDS = {"vldac", "rl4vlm", "self_play", "loop", "grpo", "archer", "sft"}


def modules_of(path: Path) -> set[str]:
    """Return the rooms and modules of vlgym that a file imports, without `vlgym.`."""
    names = {name.removeprefix("vlgym.") for name in imported_modules(path) if name.startswith("vlgym.")}
    return {name for name in names if name.split(".")[0] in ROW}


def parts_of(path: Path) -> set[str]:
    return {name.split(".")[0] for name in modules_of(path)}


def inside(path: Path, rooms: tuple[str, ...]) -> set[str]:
    """Return what a file imports of `rooms`, each a room or a module of one."""
    places = tuple(f"{room}." for room in rooms)
    return {name for name in modules_of(path) if f"{name}.".startswith(places)}


def outside(path: Path, rooms: tuple[str, ...]) -> set[str]:
    return modules_of(path) - inside(path, rooms)


def roots_of(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported_modules(path)}


def test_a_module_of_the_core_imports_only_from_above_and_no_learners_library() -> None:
    wrong = []
    for path in list_files("vlgym"):
        parts, roots = module_name(path).split("."), roots_of(path)
        if parts == ["vlgym"]:
            above = {"testing", "cli", "ui", "__main__"} & parts_of(path)
        else:
            own = parts[1]
            assert own in ROW, f"{own} has no row on the ladder: give it one"
            above = {part for part in parts_of(path) if part != own and ROW[part] >= ROW[own]}
        foreign = {root for root in roots if root.startswith("vlgym_")}
        if above or foreign or roots & (HEAVY | {"baselines"}):
            wrong.append(f"{show(path)} {sorted(above)}")
    assert wrong == []


def test_only_plugins_use_the_browser_and_its_packages() -> None:
    packages = {"selenium", "psutil", "urllib3", "websocket"}
    files = [path for path in list_files("vlgym", "baselines") if path.parent.name != "browser"]
    assert [show(path) for path in files if "browser" in parts_of(path) or packages & roots_of(path)] == []


def test_a_plugin_uses_only_modules_for_plugins_and_no_other_plugin() -> None:
    wrong = []
    for path in list_files("plugins"):
        own = module_name(path).split(".")[0]
        foreign = {root for root in roots_of(path) if root.startswith(("vlgym_", "baselines"))} - {own}
        if (bad := outside(path, FOR_PLUGINS)) or (foreign and path.parts[-2] != "scripts"):
            wrong.append(f"{show(path)} {sorted(bad)} {sorted(foreign)}")
    assert wrong == []


def test_blind_players_and_plugin_modules_import_no_environment_code() -> None:
    blind, plugins = ([path for path in list_files("plugins") if path.stem == stem] for stem in ("blind", "plugin"))
    forbidden = {"gc", "inspect", "sys", "importlib", "ctypes"}
    allowed = set(sys.stdlib_module_names) - forbidden | {"vlgym"}
    wrong = [path for path in blind if outside(path, ("sight.blind",)) or not roots_of(path) <= allowed]
    rooms = ("env.spec", "env.probes", "registry.suites", "registry.hookspecs", "errors")
    wrong += [path for path in plugins if outside(path, rooms)]
    assert blind
    assert plugins
    assert [show(path) for path in wrong] == []


def test_baselines_use_public_names_of_the_core_and_import_downwards() -> None:
    wrong = []
    for path in list_files("baselines"):
        bad = inside(path, NOT_FOR_BASELINES) | {root for root in roots_of(path) if root.startswith("vlgym_")}
        parts = module_name(path).split(".")
        if len(parts) == 3:
            own = parts[1]
            names = [name.split(".") for name in imported_modules(path)]
            used = {name[1] for name in names if name[0] == "baselines" and len(name) > 1} - {own}
            bad |= {room for room in used & FLOOR.keys() if FLOOR[room] >= FLOOR[own]}
            bad |= used & COMMANDS if own not in ROOMS[-1] else set()
        if bad:
            wrong.append(f"{show(path)} imports {sorted(bad)}")
    assert wrong == []


def test_baselines_holds_the_commands_and_the_rooms_and_nothing_else() -> None:
    here = ROOT / "baselines"
    assert {path.stem for path in here.glob("*.py")} == COMMANDS | {"__init__", "plugin"}
    assert {path.parent.name for path in here.glob("*/__init__.py")} == set(FLOOR)


def test_a_reader_of_the_learner_needs_at_most_26_files() -> None:
    files = {module_name(path): path for path in list_files("baselines")}
    reached, left = set(), ["baselines.vldac"]
    while left:
        if (name := left.pop()) in files and name not in reached:
            reached.add(name)
            left += imported_modules(files[name])
    modules = {name for name in reached if files[name].name != "__init__.py"}
    assert len(modules) <= 26, sorted(modules)
    assert modules >= {"baselines.learning.run", "baselines.engine.engine", "baselines.models.tiny"}
