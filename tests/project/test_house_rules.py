"""Rules of every module: small rooms, no outside text run, no global draws, a docstring."""

import ast
import re
from collections import Counter

import pytest
from faults.mutations import read_list
from sources import ROOT, list_files, read_tree, show

pytestmark = pytest.mark.xdist_group("sources")  # which one worker reads once
FILES = list_files("vlgym", "plugins", "baselines")
LONGEST = 600
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
GLOBAL_PYTHON = {
    "seed", "random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform",
    "gauss", "normalvariate", "betavariate", "getrandbits", "setstate",
}  # fmt: skip
GLOBAL_NUMPY = {
    "seed", "rand", "randn", "randint", "random", "random_sample", "choice", "shuffle", "permutation",
    "uniform", "normal", "set_state",
}  # fmt: skip
PUTS_BACK = {  # modules that may set a global generator, which they put back
    "plugins/alfworld/src/vlgym_alfworld/package.py",  # importing textworld draws from it
    "plugins/alfworld/src/vlgym_alfworld/thor.py",  # AI2-THOR draws from it
}
PICKLES = {  # modules that may import `pickle`
    "vlgym/env/states.py",  # pickles an argument, to name one that cannot be; loads nothing
    "vlgym/testing/play_checks.py",  # loads a pickle that it has just made
}


def offences(tree: ast.Module) -> list[str]:
    """Return one line for each call or import that the house rules forbid."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
            lines += [f"line {node.lineno}: import {name}" for name in names & FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
                lines.append(f"line {node.lineno}: from {node.module}")
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            module, _, function = name.rpartition(".")
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            bad = (
                name in FORBIDDEN_CALLS
                or name in ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput")
                or _is_true(keywords.get("shell"))
                or (name == "torch.load" and not _is_true(keywords.get("weights_only")))
                or (name.endswith("load") and _is_true(keywords.get("allow_pickle")))
                or (module == "random" and function in GLOBAL_PYTHON)
                or (module in ("np.random", "numpy.random") and function in GLOBAL_NUMPY)
            )
            if bad:
                lines.append(f"line {node.lineno}: {name}()")
    return lines


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def test_a_module_has_at_most_600_lines_and_says_what_it_is() -> None:
    wrong = []
    for path in FILES:
        tree = read_tree(path)
        if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST:
            wrong.append(f"{show(path)} is too long")
        if not ast.get_docstring(tree) and (path.name != "__init__.py" or tree.body):
            wrong.append(f"{show(path)} has no docstring")
    assert wrong == []


def test_a_module_runs_no_outside_text_and_draws_from_no_global_generator() -> None:
    faults = []
    for path in FILES:
        lines = offences(read_tree(path))
        if show(path) in PUTS_BACK:
            allowed = ("random.setstate()", "np.random.set_state()")
            lines = [line for line in lines if not line.endswith(allowed)]
        if show(path) in PICKLES:
            lines = [line for line in lines if not line.endswith("import pickle")]
        faults += [f"{show(path)}: {line}" for line in lines]
    assert faults == []


WRITING_CALLS = {
    "write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "rename", "copyfile", "copy2",
    "copytree", "replace", "savefig", "save_file", "save_pretrained", "create_dataset_from_buffers",
    "ParquetWriter", "SummaryWriter", "mkstemp", "NamedTemporaryFile",
}  # fmt: skip
WRITES = {  # modules that write by other ways than those of `vlgym.files`
    "vlgym/files.py",
    "vlgym/browser/keeper.py",  # /proc of its own process
    "vlgym/terminal.py",  # the null device
    "plugins/football/src/vlgym_football/engine.py",  # the null device
    "plugins/football/src/vlgym_football/build.py",  # renames in a temporary folder of its own
    "vlgym/integrations/parquet.py",  # in the folder of `written_whole`
    "vlgym/integrations/minari.py",  # in the folder of `written_whole`
    "baselines/models/lora.py",  # in the folder of `written_whole`
    "baselines/runs/folder.py",  # in `written_whole` and `written_file`, and renames of folders
    "baselines/runs/logs.py",  # a figure, in memory; TensorBoard's files, in a folder of `make_folder`
    "plugins/webshop/src/vlgym_webshop/catalogue/build.py",  # SQLite and the index, in a folder of their own
}


def writing(tree: ast.Module) -> list[str]:
    """Return one line for each call that can write a file."""
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        word = node.func.attr if isinstance(node.func, ast.Attribute) else name
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        texts = [ast.unparse(each) for each in values]
        if word == "open" and name != "os.open":
            writes = any(re.fullmatch(r"'[rwaxbt+]*[wax+][rwaxbt+]*'", text) for text in texts)
        elif name == "os.open" or word in ("O_CREAT", "fdopen"):
            writes = any("O_WRONLY" in text or "O_RDWR" in text for text in texts)
        elif word == "replace":
            writes = name == "os.replace" or (name != word and len(node.args) == 1 and not node.keywords)
        elif word in ("connect", "move", "truncate"):
            writes = name in ("sqlite3.connect", "shutil.move", "os.truncate")
        else:
            writes = word in WRITING_CALLS
        if writes:
            lines.append(f"line {node.lineno}: {name or word}()")
    return lines


def test_files_are_written_by_the_one_module_that_follows_no_link() -> None:
    lines = {show(path): writing(read_tree(path)) for path in FILES}
    assert {name: each for name, each in lines.items() if each and name not in WRITES} == {}
    assert [name for name in WRITES if not lines.get(name)] == []


def test_a_folder_is_one_subject_and_the_root_of_the_package_small() -> None:
    folders = {path.parent for path in (*FILES, *(ROOT / "tests").rglob("*.py"))}
    assert [str(folder) for folder in folders if len(list(folder.glob("*.py"))) > 15] == []
    assert len([path for path in (ROOT / "vlgym").iterdir() if path.is_file()]) <= 12


def test_no_two_modules_share_a_name_and_none_is_named_utils() -> None:
    for package in ("vlgym", "baselines"):
        names = Counter(path.stem for path in list_files(package) if not path.stem.startswith("__"))
        assert [name for name, count in names.items() if count > 1] == []
    vague = {"utils", "util", "helpers", "misc", "common"}
    assert [show(path) for path in FILES if path.stem in vague] == []


def test_the_rules_find_each_offence() -> None:
    lines = [
        "eval('1')", "exec(text)", "compile(text, '', 'exec')", "import pickle",
        "from pickle import loads", "subprocess.run('ls', shell=True)", "os.system('ls')", "torch.load(path)",
        "torch.load(path, weights_only=False)", "np.load(path, allow_pickle=True)", "random.choice([1])",
        "np.random.seed(0)", "numpy.random.rand(3)",
    ]  # fmt: skip
    assert [line for line in lines if len(offences(ast.parse(line))) != 1] == []


def test_every_listed_mutation_fits_the_sources() -> None:
    assert len(read_list()) > 300
