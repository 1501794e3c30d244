"""Planted faults: the check that names a fault catches it, and the correct environment has none."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.lantern import lantern_spec
from faults.planted_sight import ProcessesStay
from faults.table import FAULTS, make_fault_spec
from toys import installed

from vlgym.testing import certify

pytestmark = pytest.mark.exhaustive  # tests/testing/test_checks.py breaks every check in other ways
SEEN = [(check, name) for check, names in FAULTS.items() for name in names.split()]


@pytest.fixture(autouse=True)
def own_surroundings(toys_importable: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put back what faults change, and keep their files together."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANTERN", "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("LANTERN_LOG", str(tmp_path / "lantern.log"))
    yield
    os.chdir(tmp_path)
    for process in ProcessesStay.started:
        process.kill()
        process.wait()
    ProcessesStay.started.clear()


@pytest.mark.parametrize("name", ["Lantern", "SavedLantern"])
def test_the_correct_environment_has_every_property(name: str) -> None:
    spec = lantern_spec(name)
    with installed(spec):
        certificate = certify(spec.id)
    assert [(result.name, result.evidence) for result in certificate.results if not result.passed] == []


@pytest.mark.parametrize(("check", "name"), SEEN)
def test_a_planted_fault_is_caught_by_the_check_that_names_it(check: str, name: str) -> None:
    spec = make_fault_spec(name)
    with installed(spec):
        result = certify(spec.id, only=[check]).results[0]
    assert not result.passed, result.evidence
