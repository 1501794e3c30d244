"""One direction: a module imports only from rows above its own.

Plugins and baselines keep to the parts that are meant for them.
"""

import sys
from pathlib import Path

import pytest
from sources import ROOT, imported_modules, list_files, module_name

LADDER = (
    ("errors", "types", "blind"),
    (
        "seeding",
        "intervals",
        "terminal",
        "argument_types",
        "pictures",
        "limited_yaml",
        "durable",
        "checksums",
        "blind_gap",
    ),
    ("env_failures",),
    ("probes",),
    ("spec", "benchmark_scores", "browser_programs", "browser_room", "browser_keeper", "exits", "process_limits"),
    ("spaces", "suites", "reset_options", "arguments", "versions", "states", "browser_connection"),
    ("shared_text",),
    ("hookspecs",),
    ("plugins", "registry_file", "installing"),
    ("registry",),
    ("prompts", "parsers", "rendering", "chromium"),
    ("game", "multi_game", "terminal_pictures"),
    ("env",),
    ("table", "remote"),
    ("adapter", "wrappers", "multi", "pettingzoo_envs"),
    ("making",),
    ("several", "doors"),
    ("policies", "blind_policies", "trajectory", "recorded", "human", "endpoint"),
    ("best_blind", "env_groups"),
    ("rollout", "policy_names"),
    ("evaluation",),
    ("reports", "scaffold", "export"),
    ("tournament",),
    ("testing",),
    ("ui",),
    ("cli",),
    ("__main__",),
)
ROW = {part: row for row, parts in enumerate(LADDER) for part in parts}
FOR_PLUGINS = {
    "errors", "exits", "types", "seeding", "spec", "probes", "suites", "spaces", "hookspecs", "prompts", "parsers",
    "rendering", "limited_yaml", "chromium", "blind", "env", "multi", "adapter", "wrappers", "testing", "reset_options",
    "installing",
}  # fmt: skip
NOT_FOR_BASELINES = {"cli", "ui", "testing", "plugins", "hookspecs"}
BROWSER = {
    "chromium.py", "browser_programs.py", "browser_room.py", "browser_connection.py", "process_limits.py",
}  # fmt: skip
HEAVY = {"torch", "transformers", "tyro", "tensorboard", "matplotlib"}


ROOMS = (("runs", "models"), ("engine",), ("learning", "policies"), ("studies",))
"""The folders of baselines; a module imports only from its own folder and from rows above it."""
FLOOR = {room: row for row, rooms in enumerate(ROOMS) for room in rooms}
COMMANDS = {"vldac", "rl4vlm", "loop", "grpo", "archer", "sft", "study"}


def parts_of(path: Path) -> set[str]:
    """Return the parts of vlgym (modules or subpackages at its top) that a file imports."""
    names = {name.split(".")[1] for name in imported_modules(path) if name.startswith("vlgym.")}
    return names & set(ROW)


def show(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", list_files("vlgym"), ids=show)
def test_a_module_imports_only_from_rows_above_its_own(path: Path) -> None:
    parts = module_name(path).split(".")
    if parts == ["vlgym"]:
        assert not parts_of(path) & {"testing", "cli", "ui", "__main__"}
        return
    own = parts[1]
    assert own in ROW, f"{own} has no row on the ladder: give it one"
    wrong = {part for part in parts_of(path) if part != own and ROW[part] >= ROW[own]}
    assert not wrong, f"{show(path)} (row {ROW[own]}) imports {sorted(wrong)}"


@pytest.mark.parametrize("path", list_files("vlgym"), ids=show)
def test_the_core_never_imports_a_learners_library_nor_what_stands_outside(path: Path) -> None:
    roots = {name.split(".")[0] for name in imported_modules(path)}
    assert not roots & (HEAVY | {"baselines"})
    assert not {root for root in roots if root.startswith("vlgym_")}


@pytest.mark.parametrize("path", list_files("vlgym", "baselines"), ids=show)
def test_only_plugins_use_the_browser_and_its_packages(path: Path) -> None:
    browser = path.name in BROWSER
    assert browser or not parts_of(path) & {Path(name).stem for name in BROWSER}
    roots = {name.split(".")[0] for name in imported_modules(path)}
    assert browser or not roots & {"selenium", "psutil", "urllib3", "websocket"}


@pytest.mark.parametrize("path", list_files("plugins"), ids=show)
def test_a_plugin_uses_only_what_is_meant_for_plugins_and_no_other_plugin(path: Path) -> None:
    assert parts_of(path) <= FOR_PLUGINS
    own = module_name(path).split(".")[0]
    foreign = {name.split(".")[0] for name in imported_modules(path) if name.startswith("vlgym_")} - {own}
    assert not foreign or path.parts[-2] == "scripts"
    assert "baselines" not in {name.split(".")[0] for name in imported_modules(path)}


@pytest.mark.parametrize("path", [path for path in list_files("plugins") if path.name == "blind.py"], ids=show)
def test_a_familys_blind_players_can_import_nothing_that_holds_a_games_state(path: Path) -> None:
    assert parts_of(path) <= {"blind"}
    roots = {name.split(".")[0] for name in imported_modules(path)} - {"vlgym"}
    assert roots <= set(sys.stdlib_module_names) - {"gc", "inspect", "sys", "importlib", "ctypes"}


@pytest.mark.parametrize("path", [path for path in list_files("plugins") if path.name == "plugin.py"], ids=show)
def test_a_plugin_module_imports_no_environment_code(path: Path) -> None:
    assert parts_of(path) <= {"hookspecs", "spec", "probes", "suites", "errors"}


@pytest.mark.parametrize("path", list_files("baselines"), ids=show)
def test_baselines_use_the_core_through_its_front_doors(path: Path) -> None:
    allowed = {"hookspecs"} if path.name == "plugin.py" else set()
    assert not parts_of(path) & (NOT_FOR_BASELINES - allowed)
    assert not {name for name in imported_modules(path) if name.startswith("vlgym_")}


@pytest.mark.parametrize("path", list_files("baselines"), ids=show)
def test_a_module_of_baselines_imports_only_from_its_own_folder_and_from_those_below_it(path: Path) -> None:
    parts = module_name(path).split(".")
    if len(parts) < 3:
        return  # a command, or the package itself
    own = parts[1]
    used = {name.split(".")[1] for name in imported_modules(path) if name.startswith("baselines.")} - {own}
    assert not used & COMMANDS
    wrong = {room for room in used & FLOOR.keys() if FLOOR[room] >= FLOOR[own]}
    assert not wrong, f"{show(path)} imports from {sorted(wrong)}"


def test_baselines_holds_the_commands_and_the_rooms_and_nothing_else() -> None:
    here = ROOT / "baselines"
    assert {path.stem for path in here.glob("*.py")} == COMMANDS | {"__init__", "plugin"}
    assert {path.parent.name for path in here.glob("*/__init__.py")} == set(FLOOR)


def test_every_row_of_the_ladder_exists() -> None:
    for part in ROW:
        assert (ROOT / "vlgym" / f"{part}.py").exists() or (ROOT / "vlgym" / part / "__init__.py").exists(), part
