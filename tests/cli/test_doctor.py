"""`vlgym doctor`: what is installed, what is broken, what fixes it."""

import subprocess

import pytest
from commands import invoke
from toys import make_entry, make_spec, make_walk

from vlgym.cli import doctor
from vlgym.registry import Registry, build_registry
from vlgym.registry.installing import how_to_install, how_to_install_all
from vlgym.registry.plugins import PluginRecord
from vlgym.registry.recorded import hash_texts


def use(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "get_registry", lambda: registry)


GOOD = PluginRecord("toys", "vlgym-toys", "1.0", specs=(make_spec(system_requirements=("no-such-package-here",)),))
FAILED = PluginRecord("bad", "vlgym-bad", "2.0", error="ImportError: no engine")
OURS = ("vlgym-toys", "vlgym-twin")
OFF = PluginRecord("off", "vlgym-off", "3.0", enabled=False)


def test_versions_changed_files_and_misspelt_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    use(build_registry([]), monkeypatch)
    monkeypatch.setattr(doctor, "find_version", lambda package: None if package == "torch" else "1.2.3")
    out = invoke("doctor").out
    assert how_to_install_all() in out
    assert f"the learners need both: {how_to_install('vlgym[train]')}" in out
    versions = dict(line.split(maxsplit=1) for line in out.partition("Plugins")[0].splitlines()[1:-1])
    assert (versions["torch"], versions["gymnasium"], len(versions)) == ("not installed", "1.2.3", 8)
    use(build_registry([GOOD], extras=OURS), monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(doctor, "find_edit", lambda: "registry.yaml was changed.")
        assert "broken: registry.yaml was changed." in invoke("doctor", status=1).out
    monkeypatch.setenv("VLGYM_PLUGINS", "toyz")
    out = invoke("doctor", status=1).out
    assert "VLGYM_PLUGINS names 'toyz', which is no installed plugin (toys)." in out


def test_a_missing_system_package_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fly = make_spec("vlgym/Fly-v0")
    use(build_registry([GOOD, OFF], {fly.id: make_entry(fly)}), monkeypatch)
    monkeypatch.setattr("vlgym.cli.doctor.shutil.which", lambda name: name)
    for text, missing in (("no-such-package-here installed\n", False), ("other installed\n", True)):
        done = subprocess.CompletedProcess([], 0, stdout=text)
        monkeypatch.setattr("vlgym.cli.doctor.subprocess.run", lambda *_, done=done, **__: done)
        out = invoke("doctor").out
        assert ("apt-get install no-such-package-here (needed by vlgym/Walk-v0)" in out) == missing
        assert invoke("doctor", "--apt").out.strip() == ("no-such-package-here" if missing else "")
    assert "toys (vlgym-toys 1.0): loaded, 1 environment(s)" in out
    assert "off (vlgym-off 3.0): switched off" in out
    assert "1 environment(s); not usable here: vlgym/Fly-v0" in out
    assert out.rstrip().endswith("Nothing is broken.")


def test_failed_plugins_clashes_and_malformed_files_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = PluginRecord("twin", "vlgym-twin", "1.0", specs=(make_spec(),))
    use(build_registry([GOOD, FAILED, twin], {}, "registry.yaml is not valid YAML.", OURS), monkeypatch)
    out = invoke("doctor", status=1).out
    assert "bad (vlgym-bad 2.0): failed, ImportError: no engine" in out
    problems = [line.removeprefix("broken: ") for line in out.splitlines() if line.startswith("broken: ")]
    assert problems == [
        "plugin bad (vlgym-bad) failed to load: ImportError: no engine",
        "vlgym/Walk-v0 is claimed by vlgym-toys and vlgym-twin; uninstall one, or load one only: "
        "VLGYM_PLUGINS=vlgym-toys",
        "registry.yaml is not valid YAML.",
    ]


def test_a_claim_on_an_id_of_this_project_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    evil = PluginRecord("evil", "vlgym-evil", "6.6", specs=(make_spec(), make_spec("evil/Walk-v0")))
    use(build_registry([GOOD, evil], extras=OURS), monkeypatch)
    out = invoke("doctor", status=1).out
    assert "broken: vlgym-evil claims vlgym/Walk-v0, refused: ids of vlgym/ belong to" in out
    assert "evil (vlgym-evil 6.6): loaded, 1 environment(s)" in out


def test_hashes_that_differ_from_the_registrys_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    jump, ghost = make_spec("vlgym/Jump-v0"), make_spec("vlgym/Ghost-v0", "no_such_module_here:Ghost")
    plugin = PluginRecord("toys", "vlgym-toys", "1.0", specs=(make_spec(), jump, ghost))
    known = {spec.id: make_entry(spec) for spec in (make_spec(), jump, ghost)}
    known[jump.id] |= hash_texts(make_walk())
    use(build_registry([plugin], known), monkeypatch)
    out = invoke("doctor", status=1).out
    assert "card, prompt and parser as recorded: 1 environment(s)" in out
    assert "not compared: vlgym/Ghost-v0 cannot be made here: PluginError" in out
    (broken,) = (line for line in out.splitlines() if line.startswith("broken"))
    assert broken.startswith("broken: vlgym/Walk-v0: prompt_hash is ")
