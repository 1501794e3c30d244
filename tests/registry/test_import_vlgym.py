"""`import vlgym` is light, registers every id, and reports broken plugins in one readable line each."""

import json
import os
import subprocess
import sys
from pathlib import Path

from toys import install_plugin

import vlgym


def run_python(code: str, *paths: Path, switch: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that has `paths` on its import path."""
    env = {key: value for key, value in os.environ.items() if key not in ("VLGYM_PLUGINS", "PYTHONWARNINGS")}
    env["PYTHONPATH"] = os.pathsep.join(str(path) for path in paths)
    if switch is not None:
        env["VLGYM_PLUGINS"] = switch
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False, timeout=60
    )


def test_it_imports_no_environment_code_and_nothing_heavy() -> None:
    done = run_python(
        "import sys, json, vlgym\n"
        "modules = [spec.entry_point.split(':')[0] for spec in vlgym.get_registry().specs.values()]\n"
        "heavy = ['torch', 'transformers', 'typer', 'rich', 'miniworld', 'pyglet', 'vlgym.testing', 'vlgym.cli',\n"
        "         'vlgym.browser.chromium', 'selenium', 'psutil', 'vlgym.endpoint', 'openai', 'httpx2']\n"
        "print(json.dumps([name for name in modules + heavy if name in sys.modules]))"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_it_prints_nothing_and_puts_the_warning_format_back() -> None:
    code = "import warnings\nbefore = warnings.formatwarning\nimport vlgym\nprint(warnings.formatwarning is before)"
    done = run_python(code, switch="none")
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_the_public_list_exists_and_is_short() -> None:
    assert len(vlgym.__all__) <= 15
    for name in vlgym.__all__:
        assert getattr(vlgym, name).__doc__, name


GOOD = """
    from vlgym import hookimpl
    from vlgym.env.spec import EnvSpec

    @hookimpl
    def vlgym_envs():
        return [EnvSpec(id="fake/Walk-v0", entry_point="toys:Walk", summary="s", family="fake", max_turns=8,
                        reward_range=(0, 1), success_rule="r", image_size=(22, 22))]
"""


ALIVE = "import gymnasium, vlgym\nprint(gymnasium.make('fake/Walk-v0').reset(seed=0)[1]['success'])"
HERE = Path(__file__).parents[1]


def test_plugins_that_print_exit_or_raise_anything_leave_the_output_alone_and_the_rest_works(tmp_path: Path) -> None:
    install_plugin(tmp_path, "base", "class Odd(BaseException): pass\nraise Odd('odd')")
    install_plugin(tmp_path, "loud", "\n    print('loading')" + GOOD.replace("fake/", "loud/"))
    install_plugin(
        tmp_path, "leave", GOOD.replace("return [", "import sys; sys.exit('bye')\n        [").replace("fake", "leave")
    )
    install_plugin(tmp_path, "good", GOOD)
    done = run_python(ALIVE, tmp_path, HERE, switch="base,loud,leave,good")
    assert (done.returncode, done.stdout) == (0, "False\n")
    assert sorted(line.split(" failed to load: ")[-1] for line in done.stderr.splitlines()) == [
        "Odd: odd", "SystemExit: bye", "loading"
    ]  # fmt: skip


def test_warnings_as_errors_do_not_end_the_import(tmp_path: Path) -> None:
    install_plugin(tmp_path, "bad", "raise RuntimeError('no engine')")
    install_plugin(tmp_path, "good", GOOD)
    code = f"import warnings, gymnasium\nwarnings.simplefilter('error')\n{ALIVE}"
    done = run_python(code, tmp_path, HERE, switch="bad,good")
    assert done.stdout == "False\n"
    assert "plugin bad (vlgym-bad) failed to load: RuntimeError: no engine" in done.stderr


def test_two_plugins_that_claim_one_id_are_one_line(tmp_path: Path) -> None:
    install_plugin(tmp_path, "good", GOOD)
    install_plugin(tmp_path, "twin", GOOD)
    done = run_python(
        "import gymnasium, vlgym\ntry:\n    gymnasium.make('fake/Walk-v0')\nexcept vlgym.UserError as e:\n    print(e)",
        tmp_path, switch="good,twin",
    )  # fmt: skip
    assert done.stderr.count("\n") == 1
    assert "vlgym: fake/Walk-v0 is claimed by vlgym-good and vlgym-twin" in done.stderr
    assert done.stdout.startswith("fake/Walk-v0 is claimed by two plugins: vlgym-good and vlgym-twin.")


def test_a_plugin_whose_module_is_imported_before_vlgym_is_found_all_the_same(tmp_path: Path) -> None:
    install_plugin(tmp_path, "early", GOOD)
    code = "import early_plugin, vlgym; print('fake/Walk-v0' in vlgym.get_registry().specs)"
    done = run_python(code, tmp_path, switch="early")
    assert done.stdout.strip() == "True", done.stderr
