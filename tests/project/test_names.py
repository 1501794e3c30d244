"""A class or a constant of the core and the learners has one name, and a name has one meaning."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from sources import list_files, module_name, read_tree

ALLOWED = {
    "Config": "each learner has its options; docs show `Config`",
    "Game": "configurations of SkyRL, VAGEN and verl name `Game`; an author's rules are one, too",
    "FORMAT": "each file format has its version",
}


def list_doubles(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return class name or constant -> the modules that define it, where several do, with other values."""
    classes: dict[str, list[str]] = defaultdict(list)
    constants: dict[str, dict[str, str]] = defaultdict(dict)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(module)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                        value = ast.unparse(node.value)
                        if isinstance(name, ast.Name) and name.id.isupper() and not value.startswith("TypeVar("):
                            constants[name.id][module] = value
    several = {name: modules for name, modules in classes.items() if len(modules) > 1}
    return several | {name: [*values] for name, values in constants.items() if len(values) > 1}


def test_names_of_classes_and_constants_are_not_shared() -> None:
    trees = {module_name(path): read_tree(path) for path in list_files("vlgym", "baselines")}
    doubles = list_doubles(trees)
    assert {name: modules for name, modules in doubles.items() if name not in ALLOWED} == {}
    assert doubles.keys() >= ALLOWED.keys()
    assert len(ALLOWED) <= 10


def test_a_shared_name_is_found() -> None:
    one, other = ast.parse("class Part: ...\nLEVEL, MOST = 1, 2"), ast.parse("class Part: ...\nMOST: int = 3")
    assert list_doubles({"one": one, "other": other}) == {"Part": ["one", "other"], "MOST": ["one", "other"]}
