"""Looking up an id: each stage of failing has a message with a remedy."""

import pytest
from toys import make_entry, make_spec

from vlgym.env.spec import EnvSpec
from vlgym.errors import NotInstalledError, PluginError, UnknownEnvError
from vlgym.registry import Registry, build_registry, list_problems
from vlgym.registry.plugins import PluginRecord

WALK, JUMP = make_spec("vlgym/Walk-v0"), make_spec("vlgym/Jump-v1")


def record(**changes: object) -> PluginRecord:
    return PluginRecord("toys", "vlgym-toys", "1.0", **changes)  # type: ignore[arg-type]


def registry(*records: PluginRecord) -> Registry:
    fly = make_spec("vlgym/Fly-v0")
    known = {JUMP.id: make_entry(JUMP, "vlgym-toys"), fly.id: make_entry(fly, "vlgym-air")}
    return build_registry(list(records) or [record(specs=(WALK, JUMP))], known)


@pytest.mark.parametrize(
    ("records", "env_id", "error", "words"),
    [
        ([], "vlgym/Fly-v0", NotInstalledError,
         r"lives in vlgym-air, which is not installed: in a clone .*: pip install -e plugins/air$"),
        ([record(error="ImportError: no gl")], "vlgym/Jump-v1", PluginError,
         r"lives in vlgym-toys, which failed to load: ImportError: no gl See: vlgym doctor"),
        ([record(enabled=False)], "vlgym/Jump-v1", NotInstalledError, "which VLGYM_PLUGINS leaves out"),
        ([record(specs=(WALK,))], "vlgym/Jump-v1", NotInstalledError,
         r"1\.0, which is installed, lacks it: in a clone .*: pip install -e plugins/toys$"),
        ([], "vlgym/Walk-v7", UnknownEnvError,
         r"vlgym/Walk-v7 does not exist in that version; there is vlgym/Walk-v0"),
        ([], "vlgym/Wolk-v0", UnknownEnvError,
         r"No environment 'vlgym/Wolk-v0' is known\. Nearest: vlgym/Walk-v0.*vlgym list"),
        ([], "vlgym/Flyy-v0", UnknownEnvError, r"Nearest: .*vlgym/Fly-v0"),
        ([], "Walk", UnknownEnvError, r"'Walk' is not an environment id; ids look like namespace/Name-vN"),
        ([PluginRecord("air", "other-air", "2", error="ValueError: no")], "other/Glide-v0", UnknownEnvError,
         r"Broken plugin\(s\), which might hold it: other-air: ValueError: no"),
    ],
)  # fmt: skip
def test_an_unavailable_id_says_what_to_do(
    records: list[PluginRecord], env_id: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        registry(*records).get(env_id)


def claim(distribution: str, *specs: EnvSpec) -> PluginRecord:
    return PluginRecord(distribution, distribution, "1.0", specs=specs)


def test_a_recorded_id_is_its_distributions_alone_and_others_do_not_stand_in_its_way() -> None:
    evil = claim("vlgym-evil", JUMP, make_spec("evil/Walk-v0"))
    alone = registry(evil)
    assert (set(alone.specs), alone.refused) == ({"evil/Walk-v0"}, {"vlgym/Jump-v1": ("vlgym-evil",)})
    with pytest.raises(NotInstalledError, match="vlgym/Jump-v1 lives in vlgym-toys, which is not installed"):
        alone.get("vlgym/Jump-v1")
    both = registry(evil, record(specs=(JUMP,)))
    assert (both.get("vlgym/Jump-v1"), both.owner["vlgym/Jump-v1"], both.clashes) == (JUMP, "vlgym-toys", {})
    # Another distribution of this project has no right to it, either.
    assert registry(claim("vlgym-air", JUMP)).refused == {"vlgym/Jump-v1": ("vlgym-air",)}


def test_a_new_id_is_made_by_this_projects_distributions_alone() -> None:
    new, newer = make_spec("vlgym/New-v0"), make_spec("vlgym/Newer-v0")
    known = {JUMP.id: make_entry(JUMP, "vlgym-toys")}
    found = build_registry([claim("Vlgym_Toys", new), claim("vlgym-young", newer)], known, extras=["vlgym-young"])
    assert (found.get("vlgym/New-v0"), found.get("vlgym/Newer-v0"), found.refused) == (new, newer, {})
    found = build_registry([claim("vlgym-evil", new), claim("evil", newer)], known)
    assert (found.specs, set(found.refused)) == ({}, {"vlgym/New-v0", "vlgym/Newer-v0"})
    with pytest.raises(PluginError, match=r"vlgym/New-v0 is claimed by vlgym-evil, refused: ids of vlgym/ belong to"):
        found.get("vlgym/New-v0")


def test_each_distribution_that_claims_ids_without_a_right_gets_one_line() -> None:
    found = registry(claim("evil", JUMP, WALK), claim("worse", WALK))
    lines = [line for line in list_problems(found) if "refused" in line]
    assert [line.split(",")[0] for line in lines] == ["evil claims vlgym/Jump-v1", "worse claims vlgym/Walk-v0"]
    assert "use another namespace" in lines[0]
