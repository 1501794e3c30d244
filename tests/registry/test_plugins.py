"""Plugins are loaded each under guard; an id that is not there has a message with a remedy."""

import re
import types
from collections.abc import Callable
from typing import Any

import pytest
from toys import make_entry, make_spec

from vlgym import hookimpl
from vlgym.env.spec import EnvSpec
from vlgym.errors import NotInstalledError, PluginError, SpecError, UnknownEnvError
from vlgym.registry import Registry, build_registry, list_problems
from vlgym.registry.plugins import PluginRecord, find_misspelt, load_plugins

Candidate = tuple[str, str, str, Any]


def plugin(name: str, distribution: str | None = None, **members: Any) -> Candidate:
    """Return a candidate whose module has these members."""
    module = types.ModuleType(f"{name}_plugin")
    for key, value in members.items():
        setattr(module, key, value)
    return name, distribution or f"vlgym-{name}", "1.0", types.SimpleNamespace(load=lambda: module)


def envs(*specs: Any) -> Callable[[], Any]:
    return hookimpl(lambda: list(specs))


def raising(error: BaseException) -> Candidate:
    def load() -> Any:
        raise error

    return "bad", "vlgym-bad", "1.0", types.SimpleNamespace(load=load)


GOOD = plugin("good", vlgym_envs=envs(make_spec("good/Walk-v0")))


def load_beside_good(candidate: Candidate) -> PluginRecord:
    """Load the candidate and a good plugin; the good one must load whatever the other does."""
    bad, good = load_plugins([candidate, GOOD], switch="")
    assert good.error is None
    assert [spec.id for spec in good.specs] == ["good/Walk-v0"]
    assert bad.error is None or (bad.specs, bad.policies) == ((), {})
    return bad


def test_a_good_plugin_gives_its_specs_sorted_and_its_policies_by_name() -> None:
    specs, policies = envs(make_spec("two/B-v0"), make_spec("two/A-v0")), {"mine": dict}
    record = load_beside_good(plugin("two", vlgym_envs=specs, vlgym_policies=hookimpl(lambda: policies)))
    assert [spec.id for spec in record.specs] == ["two/A-v0", "two/B-v0"]
    assert (record.name, record.distribution, record.version) == ("two", "vlgym-two", "1.0")
    assert (record.enabled, record.policies, record.error) == (True, policies, None)


def test_ctrl_c_at_import_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        load_plugins([raising(KeyboardInterrupt())], switch="")


@pytest.mark.parametrize("text", ["\x1b[2Jgone", "right \u202e left", "a\u200bb", "bell\x07"])
def test_a_card_with_control_characters_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="without control characters") as caught:
        make_spec("odd/Walk-v0", summary=text)
    assert str(caught.value).isprintable()


class Odd(BaseException):
    """Raised by strangers."""


def leave() -> Any:
    raise SystemExit(5)


@pytest.mark.parametrize(("candidate", "message"), [
    (raising(ValueError("two\nlines")), r"ValueError: two lines"),
    (raising(ValueError("\x1b[31mred\u202e\x07")), r"ValueError: \\x1b\[31mred\\u202e\\x07"),
    (raising(SystemExit(3)), r"SystemExit: 3"), (raising(GeneratorExit()), r"GeneratorExit"),
    (raising(Odd("odd")), r"Odd: odd"),
    (plugin("bad", vlgym_policies=hookimpl(leave)), r"SystemExit: 5"),
    (plugin("bad", vlgym_envs=hookimpl(lambda: [make_spec(max_turns=0)])), r"SpecError: .*"),
    (plugin("bad", vlgym_envs=envs(make_spec("bad/A-v0", contract=99))),
     r"bad/A-v0 was written for contract 99, this vlgym has 1.*"),
    (plugin("bad", vlgym_envs=list), r".*vlgym_envs lacks the @hookimpl decorator.*"),
    (plugin("bad", vlgym_envs=hookimpl(lambda color: [])), r".*color.*"),
    (plugin("bad", vlgym_env=hookimpl(lambda: ())),
     r"unknown hook 'vlgym_env'; the hooks are vlgym_curricula, vlgym_envs, vlgym_policies,.* vlgym_envs.*"),
    (plugin("bad", vlgym_enviroments=list), r"unknown hook 'vlgym_enviroments'.*"),
    *((plugin("bad", vlgym_policies=hookimpl(lambda it=it: it)), ".+") for it in (["mine"], 3)),
    *((plugin("bad", vlgym_envs=hookimpl(lambda it=it: it)), ".+")
      for it in (make_spec(), {"id": "a/B-v0"}, ["a/B-v0"], "a/B-v0")),
])  # fmt: skip
def test_any_fault_of_a_plugin_is_recorded_in_one_line(candidate: Candidate, message: str) -> None:
    assert re.fullmatch(message, load_beside_good(candidate).error or "")


@pytest.mark.parametrize(("switch", "loaded"), [
    ("", "cards web x"), ("none", ""), ("cards", "cards"), ("cards, web", "cards web"),
    ("vlgym-web", "web"), ("other-x", "x"), ("nothing-like-it", ""),
])  # fmt: skip
def test_the_switch_restricts_plugins(switch: str, loaded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [plugin("cards"), plugin("web"), plugin("x", "other-x")]
    monkeypatch.setenv("VLGYM_PLUGINS", switch)
    for records in (load_plugins(candidates, switch), load_plugins(candidates)):
        assert " ".join(record.name for record in records if record.enabled) == loaded


def test_a_misspelt_name_in_the_switch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    records = load_plugins([plugin("cards"), plugin("toys", "acme-toys")], switch="card,acme-toys")
    assert find_misspelt(records, "card,acme-toys,vlgym-cards") == [
        "VLGYM_PLUGINS names 'card', which is no installed plugin (cards, toys). Nearest: cards, vlgym-cards."
    ]
    assert [line for switch in ("none", "", "toys") for line in find_misspelt(records, switch)] == []
    monkeypatch.setenv("VLGYM_PLUGINS", "nonsense")
    assert any("'nonsense'" in line for line in list_problems(build_registry(records)))


def test_a_plugin_that_is_switched_off_is_not_imported() -> None:
    assert load_plugins([raising(RuntimeError("imported"))], "none")[0].error is None


def test_an_id_that_two_plugins_claim_is_set_aside_and_names_both() -> None:
    walk, one, two = (make_spec(f"a/{name}-v0") for name in ("Walk", "One", "Two"))
    clash = build_registry([claim_ids("dist-one", walk, one), claim_ids("dist-two", walk, two)])
    assert sorted(clash.specs) == ["a/One-v0", "a/Two-v0"]
    assert clash.clashes == {"a/Walk-v0": ("dist-one", "dist-two")}
    assert clash.owner["a/Two-v0"] == "dist-two"
    with pytest.raises(PluginError, match=r"dist-one and dist-two\. Uninstall one.*VLGYM_PLUGINS=dist-one"):
        clash.get("a/Walk-v0")


WALK, JUMP = make_spec("vlgym/Walk-v0"), make_spec("vlgym/Jump-v1")


def record(**changes: object) -> PluginRecord:
    return PluginRecord("toys", "vlgym-toys", "1.0", **changes)  # type: ignore[arg-type]


def registry(*records: PluginRecord) -> Registry:
    fly = make_spec("vlgym/Fly-v0")
    known = {JUMP.id: make_entry(JUMP, "vlgym-toys"), fly.id: make_entry(fly, "vlgym-air")}
    return build_registry(list(records) or [record(specs=(WALK, JUMP))], known)


@pytest.mark.parametrize(("records", "env_id", "error", "words"), [
    ([], "vlgym/Fly-v0", NotInstalledError,
     r"lives in vlgym-air, which is not installed: in a clone .*: pip install -e plugins/air$"),
    ([record(error="ImportError: no gl")], "vlgym/Jump-v1", PluginError,
     r"lives in vlgym-toys, which failed to load: ImportError: no gl See: vlgym doctor"),
    ([record(enabled=False)], "vlgym/Jump-v1", NotInstalledError, "which VLGYM_PLUGINS leaves out"),
    ([record(specs=(WALK,))], "vlgym/Jump-v1", NotInstalledError,
     r"1\.0, which is installed, lacks it: in a clone .*: pip install -e plugins/toys$"),
    ([], "vlgym/Walk-v7", UnknownEnvError, "does not exist in that version; there is vlgym/Walk-v0"),
    ([], "vlgym/Wolk-v0", UnknownEnvError, r"is known\. Nearest: vlgym/Walk-v0.*vlgym list"),
    ([], "vlgym/Flyy-v0", UnknownEnvError, r"Nearest: .*vlgym/Fly-v0"),
    ([], "Walk", UnknownEnvError, r"'Walk' is not an environment id; ids look like namespace/Name-vN"),
    ([PluginRecord("air", "other-air", "2", error="ValueError: no")], "other/Glide-v0", UnknownEnvError,
     r"Broken plugin\(s\), which might hold it: other-air: ValueError: no"),
])  # fmt: skip
def test_an_unavailable_id_says_what_to_do(records, env_id, error, words):
    with pytest.raises(error, match=words):
        registry(*records).get(env_id)


def claim_ids(distribution: str, *specs: EnvSpec) -> PluginRecord:
    return PluginRecord(distribution, distribution, "1.0", specs=specs)


def test_a_recorded_id_is_its_distributions_alone_and_others_do_not_stand_in_its_way() -> None:
    evil = claim_ids("vlgym-evil", JUMP, make_spec("evil/Walk-v0"))
    alone = registry(evil)
    assert (set(alone.specs), alone.refused) == ({"evil/Walk-v0"}, {"vlgym/Jump-v1": ("vlgym-evil",)})
    with pytest.raises(NotInstalledError, match="vlgym/Jump-v1 lives in vlgym-toys, which is not installed"):
        alone.get("vlgym/Jump-v1")
    both = registry(evil, record(specs=(JUMP,)))
    assert (both.get("vlgym/Jump-v1"), both.owner["vlgym/Jump-v1"], both.clashes) == (JUMP, "vlgym-toys", {})
    # Another distribution of this project has no right to it, either.
    assert registry(claim_ids("vlgym-air", JUMP)).refused == {"vlgym/Jump-v1": ("vlgym-air",)}


def test_a_new_id_is_made_by_this_projects_distributions_alone() -> None:
    new, newer = make_spec("vlgym/New-v0"), make_spec("vlgym/Newer-v0")
    known = {JUMP.id: make_entry(JUMP, "vlgym-toys")}
    claims = [claim_ids("Vlgym_Toys", new), claim_ids("vlgym-young", newer)]
    ours = build_registry(claims, known, extras=["vlgym-young"])
    assert (ours.get(new.id), ours.get(newer.id), ours.refused) == (new, newer, {})
    others = build_registry([claim_ids("vlgym-evil", new), claim_ids("evil", newer)], known)
    assert (others.specs, set(others.refused)) == ({}, {new.id, newer.id})
    with pytest.raises(PluginError, match=r"is claimed by vlgym-evil, refused: ids of vlgym/ belong to"):
        others.get(new.id)
