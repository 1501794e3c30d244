"""Looking up an id: each stage of failing has a message that says what to do."""

import pytest
from toys import make_entry, make_spec

from vlgym.errors import NotInstalledError, PluginError, UnknownEnvError
from vlgym.plugins import PluginRecord
from vlgym.registry import Registry, build_registry

WALK, JUMP = make_spec("vlgym/Walk-v0"), make_spec("vlgym/Jump-v1")


def record(**changes: object) -> PluginRecord:
    return PluginRecord("toys", "vlgym-toys", "1.0", **changes)  # type: ignore[arg-type]


def registry(*records: PluginRecord) -> Registry:
    known = {
        spec.id: make_entry(spec, distribution)
        for spec, distribution in ((JUMP, "vlgym-toys"), (make_spec("vlgym/Fly-v0"), "vlgym-air"))
    }
    return build_registry(list(records) or [record(specs=(WALK, JUMP))], known)


def test_an_installed_id_gives_its_spec() -> None:
    assert registry().get("vlgym/Walk-v0") is WALK


def test_a_known_id_that_is_not_installed_says_what_to_install() -> None:
    with pytest.raises(
        NotInstalledError,
        match=r"lives in vlgym-air, which is not installed: in a clone .*: pip install -e plugins/air$",
    ):
        registry().get("vlgym/Fly-v0")


def test_a_known_id_of_a_broken_plugin_gives_the_recorded_error() -> None:
    with pytest.raises(
        PluginError, match=r"lives in vlgym-toys, which failed to load: ImportError: no gl See: vlgym doctor"
    ):
        registry(record(error="ImportError: no gl")).get("vlgym/Jump-v1")


def test_a_known_id_of_a_plugin_that_is_switched_off_says_so() -> None:
    with pytest.raises(NotInstalledError, match="which VLGYM_PLUGINS leaves out"):
        registry(record(enabled=False)).get("vlgym/Jump-v1")


def test_a_known_id_that_the_installed_version_lacks_asks_for_an_upgrade() -> None:
    with pytest.raises(
        NotInstalledError,
        match=r"1\.0, which is installed, lacks it: in a clone .*: pip install -e plugins/toys$",
    ):
        registry(record(specs=(WALK,))).get("vlgym/Jump-v1")


def test_another_version_of_an_id_is_pointed_out() -> None:
    with pytest.raises(UnknownEnvError, match=r"vlgym/Walk-v7 does not exist in that version; there is vlgym/Walk-v0"):
        registry().get("vlgym/Walk-v7")


def test_an_unknown_id_gets_the_nearest_ones_known_ones_included() -> None:
    with pytest.raises(
        UnknownEnvError, match=r"No environment 'vlgym/Wolk-v0' is known\. Nearest: vlgym/Walk-v0.*vlgym list"
    ):
        registry().get("vlgym/Wolk-v0")
    with pytest.raises(UnknownEnvError, match=r"Nearest: .*vlgym/Fly-v0"):
        registry().get("vlgym/Flyy-v0")


def test_a_string_that_is_no_id_is_explained() -> None:
    with pytest.raises(UnknownEnvError, match=r"'Walk' is not an environment id; ids look like namespace/Name-vN"):
        registry().get("Walk")


def test_an_unknown_id_mentions_broken_plugins_which_might_hold_it() -> None:
    broken = PluginRecord("air", "other-air", "2", error="ValueError: no")
    with pytest.raises(UnknownEnvError, match=r"Broken plugin\(s\), which might hold it: other-air: ValueError: no"):
        registry(broken).get("other/Glide-v0")
