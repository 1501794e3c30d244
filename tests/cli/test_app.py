"""The command line as a whole: version, help, exit statuses, plugins, and how it runs as a process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from toys import install_plugin
from typer.testing import CliRunner

import vlgym
from vlgym.cli.app import build_app, main

HERE = Path(__file__).resolve().parent.parent
COMMANDS = ("list", "show", "check", "play", "registry", "eval", "report", "compare", "doctor")


def run_vlgym(
    *arguments: str, paths: tuple[Path, ...] = (), switch: str = "none", text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `python -m vlgym` in a fresh process."""
    env = {**os.environ, "VLGYM_PLUGINS": switch, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run(
        [sys.executable, "-m", "vlgym", *arguments],
        capture_output=True,
        text=True,
        env=env,
        input=text,
        check=False,
        timeout=60,
    )


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"vlgym {vlgym.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = CliRunner().invoke(build_app(), [command, "--help"])
    assert result.exit_code == 0
    assert f"Usage: vlgym {command}" in result.output or f" {command} " in result.output
    assert command in CliRunner().invoke(build_app(), ["--help"]).output


@pytest.mark.parametrize(
    "call", [["lits"], ["show"], ["list", "--jsonn"], ["play", "x", "--seed", "first"], ["registry", "wirte"]]
)
def test_wrong_usage_has_status_2_and_no_traceback(call: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(call) == 2
    captured = capsys.readouterr()
    assert "Error" in captured.err
    assert "Traceback" not in captured.err


def test_an_option_given_twice_is_refused_unless_it_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--policy", "idle", "--out", "x", "--env", "a", "--env", "b"]) == 2
    assert "--env is given twice; give it once: --env ID[,ID...]" in capsys.readouterr().err
    assert main(["registry", "--id", "a", "--id", "b"]) == 2
    assert "twice" not in capsys.readouterr().err


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(registry: Any) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("vlgym.cli.list_cmd.list_entries", fail)
    with pytest.raises(ZeroDivisionError):
        main(["list"])


PLUGIN = """
    from vlgym import hookimpl
    from vlgym.env.spec import EnvSpec

    @hookimpl
    def vlgym_envs():
        return [EnvSpec(id="fake/Walk-v0", entry_point="toys:Walk", summary="A fake walk.", family="fake", max_turns=8,
                        reward_range=(0, 1), success_rule="r", image_size=(22, 22))]
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    install_plugin(tmp_path, "fake", PLUGIN, distribution="their-fake")
    return tmp_path


def test_an_installed_plugin_is_listed_and_played(plugin: Path) -> None:
    paths = (plugin, HERE)
    listed = run_vlgym("list", paths=paths, switch="fake")
    assert "their-fake (external)" in listed.stdout.splitlines()[1]
    assert listed.stderr == ""
    played = run_vlgym(
        "play", "fake/Walk-v0", "--out", str(plugin / "out"), paths=paths, switch="fake", text=":oracle\n" * 9
    )
    assert (played.returncode, played.stderr) == (0, "")
    assert "success yes, return 1" in played.stdout


def test_a_broken_plugin_is_one_line_once_and_the_command_works(plugin: Path) -> None:
    install_plugin(plugin, "bad", "raise RuntimeError('no engine')")
    done = run_vlgym("list", paths=(plugin, HERE), switch="fake,bad")
    assert done.returncode == 0
    assert "their-fake (external)" in done.stdout
    assert done.stderr == "vlgym: plugin bad (vlgym-bad) failed to load: RuntimeError: no engine\n"
    doctor = run_vlgym("doctor", paths=(plugin, HERE), switch="fake,bad")
    assert doctor.returncode == 1
    assert "bad (vlgym-bad 1.0): failed, RuntimeError: no engine" in doctor.stdout


def test_list_and_doctor_import_no_environment_code_of_others_and_no_conformance_kit(plugin: Path) -> None:
    code = (
        "import sys\nfrom vlgym.cli.app import main\n"
        "for call in (['list'], ['doctor']):\n    assert main(call) == 0\n"
        "print([name for name in ('toys', 'vlgym.testing', 'torch', 'transformers') if name in sys.modules])"
    )
    env = {**os.environ, "VLGYM_PLUGINS": "fake", "PYTHONPATH": os.pathsep.join(map(str, (plugin, HERE)))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_user_error_is_plain_in_a_process_too() -> None:
    done = run_vlgym("show", "vlgym/Nowhere-v0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("vlgym: No environment 'vlgym/Nowhere-v0' is known")
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_traceback(plugin: Path) -> None:
    env = {**os.environ, "VLGYM_PLUGINS": "fake", "PYTHONPATH": os.pathsep.join(map(str, (plugin, HERE)))}
    process = subprocess.Popen(
        [sys.executable, "-m", "vlgym", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()


def heed_interrupts() -> None:
    """Undo what a shell does to background jobs, whose children ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_ends_a_game_with_status_130(plugin: Path) -> None:
    env = {**os.environ, "VLGYM_PLUGINS": "fake", "PYTHONPATH": os.pathsep.join(map(str, (plugin, HERE)))}
    command = [sys.executable, "-m", "vlgym", "play", "fake/Walk-v0", "--out", str(plugin / "out")]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        preexec_fn=heed_interrupts,
    )
    assert process.stdout is not None
    while ">" not in (line := process.stdout.read(1)) and line:
        pass
    deadline = time.monotonic() + 30
    while not list((plugin / "out").rglob("turn-000.png")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
