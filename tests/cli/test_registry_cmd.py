"""`vlgym registry`: measured, and never silently accepting changed behaviour."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import toys
from commands import invoke
from toys import installed, make_spec

from vlgym.registry import get_registry
from vlgym.registry.registry_file import read_registry, write_registry
from vlgym.types import Outcome

WALK, JUMP = make_spec("vlgym/Walk-v0"), make_spec("vlgym/Jump-v0", max_turns=6)
OUTSIDE = make_spec("outside/Walk-v0")


@pytest.fixture(scope="module", autouse=True)
def only_toys() -> Iterator[None]:
    """No environment is installed but the toys: two of ours and one of others."""
    registry = get_registry()
    with pytest.MonkeyPatch.context() as patch:
        for part in (registry.specs, registry.owner, registry.known):
            for env_id in list(part):
                patch.delitem(part, env_id)  # type: ignore[arg-type]
        patch.setattr("vlgym.testing.measure.MANY_EPISODES", 8)
        patch.setattr("vlgym.sight.blind_learner.LEARNING_EPISODES", 8)
        for name in ("CHOOSING_TURNS", "CONSTANT_TURNS"):
            patch.setattr(f"vlgym.testing.measure.{name}", 16)
        with installed(WALK, JUMP), installed(OUTSIDE, distribution="their-walks"):
            yield


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measured") / "registry.yaml"
    invoke("registry", "--path", path)
    return path


@pytest.fixture
def path(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured.parent, tmp_path / "registry")) / measured.name


def test_write_measures_first_party_environments_only(path: Path) -> None:
    entries = read_registry(path)
    assert sorted(entries) == ["vlgym/Jump-v0", "vlgym/Walk-v0"]
    entry = entries["vlgym/Walk-v0"]
    assert (entry["spec"], entry["distribution"], entry["parser_hash"]) == (WALK, "vlgym-toys", "auto-v1")
    assert entry["ceiling"] == {"return": 1.0, "se": 0.0, "success": 1.0, "episodes": 8}
    assert 0 < entry["floor"]["return"] == entry["floor"]["success"] < 0.7
    assert entry["floor"]["return"] <= entry["blind"]["return"] <= 1
    assert entry["blind"].keys() == {"return", "se", "success", "episodes", "policy", "success_policy"}
    assert entry["blind"]["episodes"] == 8


def test_one_id_is_measured_again_to_the_same_figures_and_the_rest_is_kept(path: Path) -> None:
    entries = read_registry(path)
    write_registry({env_id: {**entry, "floor": None} for env_id, entry in entries.items()}, path)
    captured = invoke("registry", "--path", path, "--id", "vlgym/Walk-v0")
    assert captured.out.endswith("registry.yaml: 2 environment(s) written, 1 measured.\n")
    assert captured.err == "Walk, episodes: 16 ...\n"
    after = read_registry(path)
    assert after["vlgym/Walk-v0"] == entries["vlgym/Walk-v0"]
    assert after["vlgym/Jump-v0"]["floor"] is None


def test_what_has_changed_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(get_registry().specs, "vlgym/Jump-v0")
    with installed(make_spec("vlgym/Walk-v0", summary="Another walk."), make_spec("vlgym/New-v0")):
        out = invoke("registry", "--path", path).out
    assert "changed: vlgym/Walk-v0: spec field(s) summary changed." in out
    assert "changed: vlgym/Jump-v0: recorded, but no installed first-party plugin provides it." in out
    assert "changed: vlgym/New-v0: provided by vlgym-toys, but not recorded." in out


def test_levels_are_recorded_like_the_other_figures(tmp_path: Path, toys_importable: None) -> None:
    path = tmp_path / "registry.yaml"
    spec = make_spec("vlgym/TooFar-v0", "broken_toys:TooFar", levels=("two cells", "five"), figure_episodes=2)
    with installed(spec):
        invoke("registry", "--path", path)
        near, far = read_registry(path)[spec.id]["levels"]
        assert read_registry(path)[spec.id]["ceiling"]["episodes"] == 2
        assert (near["length"], near["oracle"], near["blind"], 0.3 < near["random"] < 0.8) == (2.0, 1.0, 1.0, True)
        assert (far["length"], far["oracle"], far["blind"], far["random"]) == (4.0, 0.0, 0.0, 0.0)


def test_changed_behaviour_is_refused_unless_it_is_accepted_or_has_a_new_version(path, monkeypatch):
    before, old = path.read_bytes(), read_registry(path)
    monkeypatch.setattr(toys.Walk, "act", lambda self, action: Outcome(0.5, feedback="lazy"))
    captured = invoke("registry", "--path", path, status=2)
    assert captured.out.count("bump the id's version") == 2
    assert "was not written: 2 environment(s) behave differently under the same id" in captured.err
    assert "--accept-behaviour-change" in captured.err
    assert path.read_bytes() == before
    accepted = Path(shutil.copytree(path.parent, path.parent.with_name("accepted"))) / path.name
    invoke("registry", "--path", accepted, "--accept-behaviour-change", "--id", WALK.id)
    assert read_registry(accepted)[WALK.id]["fingerprint"] != old[WALK.id]["fingerprint"]
    for env_id in (WALK.id, JUMP.id):
        monkeypatch.delitem(get_registry().specs, env_id)
    with installed(make_spec("vlgym/Walk-v1")):
        invoke("registry", "--path", path)
    assert list(read_registry(path)) == ["vlgym/Walk-v1"]


@pytest.mark.parametrize(
    ("env_id", "message"),
    [("outside/Walk-v0", "is not first-party"), ("vlgym/Wolk-v0", "Nearest: vlgym/Walk-v0")],
)
def test_an_id_that_does_not_belong_there_is_refused(env_id: str, message: str, path: Path) -> None:
    before = path.read_bytes()
    assert message in invoke("registry", "--path", path, "--id", env_id, status=2).err
    assert path.read_bytes() == before
