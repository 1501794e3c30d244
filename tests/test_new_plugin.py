"""`vlgym new-plugin`: what it writes is built, installed into a fresh environment, certified, evaluated and trained."""

from __future__ import annotations

import json
import os
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from fresh import make_fresh, run_fresh

from vlgym.cli.app import main
from vlgym.errors import UserError
from vlgym.scaffold import write_plugin
from vlgym.testing import ALL_CHECKS, CHECKS

pytestmark = pytest.mark.xdist_group("new plugin")  # one worker, so that the environment is made once
BOTH = "vlgym-tea-room,vlgym-card-table,vlgym-stone-pile"
WORDS = ("stand", "take a card")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three new plugins: one with rules of its own, one that wraps Gymnasium's Blackjack, a game."""
    folder = tmp_path_factory.mktemp("written")
    assert main(["new-plugin", "tea-room", "--out", str(folder)]) == 0
    words = ["--wrap", "Blackjack-v1", "--actions", ",".join(WORDS)]
    assert main(["new-plugin", "card-table", *words, "--out", str(folder)]) == 0
    assert main(["new-plugin", "stone-pile", "--multi-agent", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def python(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_fresh(tmp_path_factory.mktemp("fresh"), sorted(written.iterdir()))


def test_a_package_has_all_that_a_repository_needs(written: Path) -> None:
    folder = written / "vlgym-tea-room"
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
        ".github/workflows/test.yml", ".gitignore", "LICENSE", "README.md", "pyproject.toml",
        "src/vlgym_tea_room/__init__.py", "src/vlgym_tea_room/environment.py", "src/vlgym_tea_room/plugin.py",
        "tests/test_environment.py",
    ]  # fmt: skip
    assert not [path for path in written.iterdir() if path.name.startswith(".")]  # nothing is left beside them


def test_what_is_written_earns_the_whole_certificate_without_a_warning(python: Path) -> None:
    done = run_fresh(python, "-m", "vlgym", "check", "tea-room/TeaRoom-v0", "--json", plugins=BOTH)
    assert done.returncode == 0, done.stdout + done.stderr
    certificate = json.loads(done.stdout)[0]
    assert certificate["passed"]
    assert len(certificate["checks"]) == len(CHECKS)
    assert not [check for check in certificate["checks"] if check.get("warning")]


@pytest.mark.parametrize(
    ("name", "own", "checks"), [("tea-room", 6, CHECKS), ("card-table", 1, CHECKS), ("stone-pile", 17, ALL_CHECKS)]
)
def test_its_own_tests_pass_and_hold_the_certificate(
    python: Path, written: Path, name: str, own: int, checks: dict[str, object]
) -> None:
    folder = written / f"vlgym-{name}"
    done = run_fresh(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", plugins=BOTH, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{own + len(checks)} passed" in done.stdout
    assert "warning" not in done.stdout  # no property of what is written is warned of


def test_a_game_is_short_and_two_policies_play_it(python: Path, written: Path, tmp_path: Path) -> None:
    source = written / "vlgym-stone-pile" / "src" / "vlgym_stone_pile"
    lines = [line for path in source.glob("*.py") for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) <= 80  # docs/games.md says so
    out = tmp_path / "cup"
    done = run_fresh(
        python, "-m", "vlgym", "tournament", "random", "oracle", "--env", "stone-pile/StonePile-v0", "--games", "4",
        "--out", str(out), plugins=BOTH, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| oracle |" in (out / "table.md").read_text()


def test_what_breaks_the_contract_fails_by_the_name_of_its_property(
    python: Path, written: Path, tmp_path: Path
) -> None:
    """The oracle of a copy walks the wrong way; the copy's source comes before the installed one."""
    source = (written / "vlgym-tea-room/src/vlgym_tea_room/environment.py").read_text()
    copy = tmp_path / "vlgym_tea_room"
    copy.mkdir()
    (copy / "__init__.py").touch()
    (copy / "plugin.py").write_text((written / "vlgym-tea-room/src/vlgym_tea_room/plugin.py").read_text())
    (copy / "environment.py").write_text(
        source.replace('"down" if y < flag_y else "up"', '"up" if y < flag_y else "down"')
    )
    words = ["-p", "vlgym.testing.pytest_plugin", "--vlgym-env", "tea-room/TeaRoom-v0", "-k", "oracle or parsers"]
    done = run_fresh(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, plugins=BOTH, cwd=tmp_path
    )  # `-m` puts the folder first on the path
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED tea-room/TeaRoom-v0::oracle" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


def test_an_unknown_environment_in_the_setting_is_one_line(python: Path, tmp_path: Path) -> None:
    words = ["-p", "vlgym.testing.pytest_plugin", "--vlgym-env", "tea-room/TeaRom-v0"]
    done = run_fresh(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, plugins=BOTH, cwd=tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert "Nearest: tea-room/TeaRoom-v0" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_it_is_evaluated_and_trained_as_it_is(python: Path, tmp_path: Path) -> None:
    done = run_fresh(
        python, "-m", "vlgym", "eval", "--policy", "oracle", "--env", "tea-room/TeaRoom-v0", "--episodes", "3",
        "--out", str(tmp_path / "oracle"), plugins=BOTH, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    out = tmp_path / "run"
    done = run_fresh(
        python, "-m", "baselines.vldac", "--env", "tea-room/TeaRoom-v0", "--updates", "1", "--warm.steps", "2",
        "--value-warmup", "0", "--num-envs", "2", "--rollout-steps", "2", "--eval-episodes", "2",
        "--out", str(out), plugins=BOTH, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((out / "log.jsonl").read_text().splitlines()[0])["env_steps"] == 4


def test_the_words_are_the_wrapped_actions_in_their_order(python: Path) -> None:
    code = (
        "import gymnasium, json\n"
        "env = gymnasium.make('vlgym:card-table/CardTable-v0').unwrapped\n"
        "env.reset(seed=1)\n"
        "print(json.dumps([env.actions, env.vlgym_spec.max_turns, env.vlgym_spec.reward_range]))\n"
    )
    done = run_fresh(python, "-c", code, plugins=BOTH)
    actions, turns, rewards = json.loads(done.stdout)
    assert actions == {word: number for number, word in enumerate(WORDS)}
    assert turns == 200  # where the wrapped environment has no limit of its own
    assert rewards == [-1, 1]


# ---- what cannot be written ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Tea Room"], "is not a name for a plugin"),
        (["../up"], "is not a name for a plugin"),
        (["class"], "is taken"),
        (["vlgym"], "is taken"),
        (["cards"], "vlgym-cards is a distribution that exists already"),
        (["tea", "--actions", "a,b"], "--wrap"),
        (["tea", "--wrap", "CartPole-v1", "--multi-agent"], "give one of them"),
        (["tea", "--wrap", "FrozenLake-v7"], "Gymnasium cannot make it"),
        (["tea", "--wrap", "a b; c"], "is not an environment id"),
        (["tea", "--wrap", "Pendulum-v1"], "discrete"),
        (["tea", "--wrap", "CartPole-v1", "--actions", "left"], "must give 2 different words"),
        (["tea", "--wrap", "CartPole-v1", "--actions", "left,left"], "must give 2 different words"),
        (["tea", "--wrap", "CartPole-v1", "--actions", 'le"ft,right'], "must give 2 different words"),
    ],
)
def test_what_cannot_be_written_is_one_line_and_leaves_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-plugin", *words, "--out", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    kept = tmp_path / "vlgym-tea-room" / "mine.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        write_plugin("tea-room", tmp_path)
    assert [path.name for path in kept.parent.iterdir()] == ["mine.txt"]


def test_a_full_disk_leaves_no_half_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def full(self: Path, *args: object, **kwargs: object) -> int:
        if self.name == "plugin.py":
            raise OSError(28, "No space left on device")
        return write(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UserError, match="No space left"):
        write_plugin("tea-room", tmp_path)
    assert os.listdir(tmp_path) == []


class SameStart(gymnasium.Env):
    """Begins alike whatever the seed is."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(1)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[int, dict]:
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        return 0, -3.5, False, False, {}

    def render(self) -> np.ndarray:
        return np.zeros((8, 9, 3), np.uint8)


def test_an_environment_with_one_start_is_written_with_a_word_about_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gymnasium.register("SameStart-v0", SameStart)
    try:
        assert main(["new-plugin", "same", "--wrap", "SameStart-v0", "--out", str(tmp_path)]) == 0
    finally:
        gymnasium.registry.pop("SameStart-v0", None)
    told = " ".join(capsys.readouterr().out.split())
    assert "SameStart-v0 begins with the same picture whatever the seed is" in told
    card = (tmp_path / "vlgym-same/src/vlgym_same/plugin.py").read_text()
    assert "reward_range=(-3.5, 1.0)" in card
    assert "image_size=(8, 9)" in card
