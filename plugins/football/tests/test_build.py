"""The build command: the wheel that it keeps, and the packages that it names."""

from pathlib import Path

import pytest
from vlgym_football import build

from vlgym.errors import MissingSystemPartError


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("VLGYM_CACHE", str(tmp_path))
    return tmp_path


def test_an_installed_engine_needs_no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "build_wheel", lambda target: pytest.fail("it was built"))
    monkeypatch.setattr(build, "install_wheel", lambda wheel: pytest.fail("it was installed"))
    assert build.ensure_engine().endswith("installed")


def test_a_kept_wheel_is_installed_and_built_again_where_that_is_wanted(cache, monkeypatch):
    calls: list[str] = []

    def fake_build(target: Path) -> None:
        calls.append("build")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"wheel")

    monkeypatch.setattr(build, "find_engine", lambda: build.ENGINE_VERSION)  # another build
    monkeypatch.setattr(build, "imports", lambda: True)
    monkeypatch.setattr(build, "build_wheel", fake_build)
    monkeypatch.setattr(build, "install_wheel", lambda wheel: calls.append("install"))
    assert "built and installed" in build.ensure_engine()
    assert "built" not in build.ensure_engine()
    build.ensure_engine(rebuild=True)
    assert calls == ["build", "install", "install", "build", "install"]


def test_missing_packages_are_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SYSTEM_PARTS", (("libsdl2-dev", "/nowhere/SDL.h"), ("libegl-dev", "/usr/*")))
    monkeypatch.setattr(build.shutil, "which", lambda name: None if name == "cmake" else "/usr/bin/" + name)
    assert build.find_missing_packages() == ["cmake", "libsdl2-dev"]
    with pytest.raises(MissingSystemPartError, match=r"apt-get install .* cmake libsdl2-dev"):
        build.build_wheel(cache / "x.whl")
