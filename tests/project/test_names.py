"""A class, a constant or a public function has one name, and docstrings name existing things."""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pytest
from sources import ROOT, list_files, module_name, read_tree

pytestmark = pytest.mark.xdist_group("sources")  # which one worker reads once
ALLOWED = {
    "Config",  # each learner has its options; docs show `Config`
    "Game",  # configurations of SkyRL and verl name `Game`; an author's rules are one, too
    "FORMAT",  # each file format has its version
    "main",
    "run",
    "train",  # commands and learners
    "make_rows",  # each trainer has its rows
    "vlgym_policies",  # a hook and who answers it
}
OTHERS = {  # names in docstrings that stand for others' things
    "pi_old", "Qwen2VLTextModel", "Qwen2_5_VLTextModel", "ImmutableSandboxedEnvironment", "max_env_workers",
    "actor_rollout_ref.rollout.agent.agent_loop_config_path", "my_games.py",
}  # fmt: skip


def list_doubles(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return name -> the modules that define a class, a public function, or a constant of other values."""
    owners: dict[str, list[str]] = defaultdict(list)
    constants: dict[str, dict[str, str]] = defaultdict(dict)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and node.name[0] != "_"):
                owners[node.name].append(module)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                        value = ast.unparse(node.value)
                        if isinstance(name, ast.Name) and name.id.isupper() and not value.startswith("TypeVar("):
                            constants[name.id][module] = value
    several = {name: modules for name, modules in owners.items() if len(modules) > 1}
    return several | {name: [*values] for name, values in constants.items() if len(values) > 1}


def test_names_of_classes_functions_and_constants_are_not_shared() -> None:
    trees = {module_name(path): read_tree(path) for path in list_files("vlgym", "baselines")}
    doubles = list_doubles(trees)
    assert {name: modules for name, modules in doubles.items() if name not in ALLOWED} == {}
    assert doubles.keys() >= ALLOWED


def read_docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the docstrings of a module, those of constants and attributes included."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as constant):
                yield constant


def list_names(tree: ast.Module) -> set[str]:
    """Return the names of a module's code, its texts and their words."""
    texts, docstrings = [], {id(constant) for constant in read_docstrings(tree)}
    for node in ast.walk(tree):
        texts += [getattr(node, field, None) for field in ("id", "attr", "name", "arg", "asname", "module")]
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            texts.append(node.value)
    names = {text for text in texts if isinstance(text, str)}
    return names.union(re.findall(r"\w+", "\n".join(names)))


def list_stale(trees: Mapping[str, ast.Module], known: Iterable[str]) -> list[str]:
    """Return "module: name" of each backticked name in docstrings that no code has."""
    names = {*known, *dir(builtins)}.union(*map(list_names, trees.values()))
    stale = []
    for module, tree in trees.items():
        for constant in read_docstrings(tree):
            for name in re.findall(r"(?<!`)`([A-Za-z_][\w./]+)(?:\(.*?\))?`(?!`)", constant.value):
                parts = [name] if name.endswith((".py", ".md", ".yaml")) else re.findall(r"\w+", name)
                if not names.issuperset(part.rpartition("/")[2] for part in parts):
                    stale.append(f"{module}: {name}")
    return stale


def test_docstrings_name_what_exists() -> None:
    trees = {module_name(path): read_tree(path) for path in list_files("vlgym", "baselines")}
    files = [path for folder in ("vlgym", "baselines", "tests", "docs") for path in (ROOT / folder).rglob("*")]
    known = {name for path in [*files, *ROOT.iterdir()] for name in (path.name, path.stem)}
    sources = [path for path in files if path.suffix == ".py" and path.name != "test_names.py"]
    stale = list_stale(trees, known.union(*map(list_names, map(read_tree, sources))))
    assert {each.partition(": ")[2] for each in stale} == OTHERS, stale
