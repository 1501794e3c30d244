"""Plugins are loaded each under guard; a broken one says why and harms no other."""

import re
import signal
import types
from collections.abc import Callable
from typing import Any

import pytest
from toys import make_entry, make_spec

from vlgym import hookimpl
from vlgym.errors import PluginError, SpecError
from vlgym.registry import Registry, build_registry, list_problems
from vlgym.registry.plugins import PluginRecord, find_misspelt, load_plugins

Candidate = tuple[str, str, str, Any]


class Point:
    """An entry point whose loading is a function."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self.load = load


def plugin(name: str, distribution: str | None = None, **members: Any) -> Candidate:
    """Return a candidate whose module has these members."""
    module = types.ModuleType(f"{name}_plugin")
    for key, value in members.items():
        setattr(module, key, value)
    return name, distribution or f"vlgym-{name}", "1.0", Point(lambda: module)


def envs(*specs: Any) -> Callable[[], Any]:
    return hookimpl(lambda: list(specs))


def raising(error: BaseException) -> Candidate:
    def load() -> Any:
        raise error

    return "bad", "vlgym-bad", "1.0", Point(load)


GOOD = plugin("good", vlgym_envs=envs(make_spec("good/Walk-v0")))


def load_beside_good(candidate: Candidate) -> PluginRecord:
    """Load the candidate and a good plugin; the good one must load whatever the other does."""
    bad, good = load_plugins([candidate, GOOD], switch="")
    assert good.error is None
    assert [spec.id for spec in good.specs] == ["good/Walk-v0"]
    assert bad.error is None or (bad.specs, bad.policies) == ((), {})
    return bad


def test_a_good_plugin_gives_its_specs_sorted_and_its_policies_by_name() -> None:
    specs = envs(make_spec("two/B-v0"), make_spec("two/A-v0"))
    record = load_beside_good(plugin("two", vlgym_envs=specs, vlgym_policies=hookimpl(lambda: {"mine": dict})))
    assert [spec.id for spec in record.specs] == ["two/A-v0", "two/B-v0"]
    assert (record.name, record.distribution, record.version, record.enabled) == ("two", "vlgym-two", "1.0", True)
    assert (record.policies, record.error) == ({"mine": dict}, None)


def test_ctrl_c_at_import_is_not_swallowed() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    slow = ("slow", "vlgym-slow", "1.0", Point(lambda: signal.raise_signal(signal.SIGINT)))
    try:
        with pytest.raises(KeyboardInterrupt):
            load_plugins([slow], switch="")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("text", ["\x1b[2Jgone", "right \u202e left", "a\u200bb", "bell\x07"])
def test_a_card_with_control_characters_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="without control characters") as caught:
        make_spec("odd/Walk-v0", summary=text)
    assert str(caught.value).isprintable()


class Odd(BaseException):
    """Raised by strangers."""


def leave() -> Any:
    raise SystemExit(5)


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        (raising(ImportError("no module named football")), r"ImportError: no module named football"),
        (raising(ValueError("two\nlines")), r"ValueError: two lines"),
        (raising(ValueError("\x1b[31mred\u202e\x07")), r"ValueError: \\x1b\[31mred\\u202e\\x07"),
        (raising(SystemExit(3)), r"SystemExit: 3"),
        (raising(GeneratorExit()), r"GeneratorExit"),
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
    ],
)  # fmt: skip
def test_any_fault_of_a_plugin_is_recorded_in_one_line(candidate: Candidate, message: str) -> None:
    assert re.fullmatch(message, load_beside_good(candidate).error or "")


def test_a_module_that_only_adds_to_suites_is_a_plugin() -> None:
    assert load_beside_good(plugin("tool", vlgym_suites=hookimpl(lambda: ()))).error is None


@pytest.mark.parametrize(
    ("switch", "loaded"),
    [
        ("", ["cards", "web", "x"]), ("none", []), ("cards", ["cards"]), ("cards, web", ["cards", "web"]),
        ("vlgym-web", ["web"]), ("other-x", ["x"]), ("nothing-like-it", []),
    ],
)  # fmt: skip
def test_the_switch_restricts_plugins(switch: str, loaded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [plugin("cards"), plugin("web"), plugin("x", "other-x")]
    assert [record.name for record in load_plugins(candidates, switch) if record.enabled] == loaded
    monkeypatch.setenv("VLGYM_PLUGINS", switch)
    assert [record.name for record in load_plugins(candidates) if record.enabled] == loaded


def test_a_misspelt_name_in_the_switch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    records = load_plugins([plugin("cards"), plugin("toys", "acme-toys")], switch="card,acme-toys")
    assert find_misspelt(records, "card,acme-toys,vlgym-cards") == [
        "VLGYM_PLUGINS names 'card', which is no installed plugin (cards, toys). Nearest: cards, vlgym-cards."
    ]
    assert find_misspelt(records, "none") == find_misspelt(records, "") == find_misspelt(records, "toys") == []
    monkeypatch.setenv("VLGYM_PLUGINS", "nonsense")
    assert any("'nonsense'" in line for line in list_problems(build_registry(records)))


def test_a_plugin_that_is_switched_off_is_not_imported() -> None:
    assert load_plugins([raising(RuntimeError("imported"))], "none")[0].error is None


def claim(name: str, distribution: str) -> PluginRecord:
    specs = envs(make_spec("a/Walk-v0"), make_spec(f"a/{name.title()}-v0"))
    return load_plugins([plugin(name, distribution, vlgym_envs=specs)], "")[0]


@pytest.fixture
def clash() -> Registry:
    return build_registry([claim("one", "dist-one"), claim("two", "dist-two")])


def test_an_id_that_two_plugins_claim_is_set_aside_and_names_both(clash: Registry) -> None:
    assert sorted(clash.specs) == ["a/One-v0", "a/Two-v0"]
    assert clash.clashes == {"a/Walk-v0": ("dist-one", "dist-two")}
    assert clash.owner["a/Two-v0"] == "dist-two"
    with pytest.raises(PluginError, match=r"dist-one and dist-two\. Uninstall one.*VLGYM_PLUGINS=dist-one"):
        clash.get("a/Walk-v0")


def test_each_problem_is_one_line(clash: Registry) -> None:
    broken = load_plugins([raising(ValueError("no"))], "")
    registry = build_registry([*clash.plugins, *broken], {}, "registry.yaml is not valid YAML.")
    assert list_problems(registry) == [
        "plugin bad (vlgym-bad) failed to load: ValueError: no",
        "a/Walk-v0 is claimed by dist-one and dist-two; uninstall one, or load one only: VLGYM_PLUGINS=dist-one",
        "registry.yaml is not valid YAML.",
    ]
    assert list_problems(build_registry([claim("one", "dist-one")], {"a/B-v0": make_entry(make_spec("a/B-v0"))})) == []
