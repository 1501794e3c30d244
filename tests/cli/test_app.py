"""The command line as a whole: version, help, exit statuses, plugins, and its process."""

import os
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from commands import invoke
from toys import PLUGIN, install_plugin

import vlgym
from vlgym.cli.app import COMMANDS


def test_the_version_is_the_packages_and_every_command_has_help() -> None:
    assert invoke("--version").out == f"vlgym {vlgym.__version__}\n"
    listed = invoke("--help").out
    for command in COMMANDS:
        assert f"Usage: vlgym {command} " in invoke(command, "--help").out
        assert f" {command} " in listed


@pytest.mark.parametrize("call", [["lits"], ["show"], ["list", "--jsonn"], ["registry", "wirte"]])
def test_wrong_usage_has_status_2_and_no_traceback(call: list[str]) -> None:
    captured = invoke(*call, status=2)
    assert "Error" in captured.err
    assert "Traceback" not in captured.err


def test_an_option_given_twice_is_refused_unless_it_may_be() -> None:
    twice = invoke("eval", "--policy", "idle", "--out", "x", "--env", "a", "--env", "b", status=2).err
    assert "--env is given twice; give it once: --env ID[,ID...]" in twice
    assert "twice" not in invoke("registry", "--id", "a", "--id", "b", status=2).err


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a plugin that is the only one in processes that are started here."""
    source = PLUGIN.format(first="", ids=["fake/Walk-v0"])
    install_plugin(tmp_path, "fake", source, distribution="their-fake")
    monkeypatch.setenv("VLGYM_PLUGINS", "fake")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tmp_path, Path(__file__).parents[1]))))
    return tmp_path


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *words], stdout=PIPE, stderr=PIPE, text=True)


def test_list_and_doctor_import_nothing_heavy_and_no_environment_code_of_others(plugin: Path) -> None:
    code = (
        "import sys\nfrom vlgym.cli.app import main\n"
        "for call in (['list'], ['doctor']):\n    assert main(call) == 0\n"
        "heavy = 'toys vlgym.testing torch transformers datasets pyarrow minari'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    out, err = start("-c", code).communicate(timeout=60)
    assert "their-fake (external)" in out
    assert (out.splitlines()[-1], err) == ("[]", "")


def test_a_reader_that_goes_away_is_no_traceback(plugin: Path) -> None:
    with start("-m", "vlgym", "list") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
