"""EnvSpec refuses each malformed field by name, and survives the way through YAML and JSON."""

import json

import pytest
import yaml
from toys import make_spec

from vlgym.env.probes import Probe
from vlgym.env.spec import EnvSpec
from vlgym.errors import SpecError


@pytest.mark.parametrize(("field", "value"), [
    ("id", "OneRoom-v0"), ("id", "vlgym/OneRoom"), ("id", "vlgym/One Room-v0"),
    ("id", "vlgym/OneRoom-v"), ("id", "9lives/Cat-v0"), ("id", 7),
    ("entry_point", "module.Class"), ("entry_point", "module:Class()"),
    ("entry_point", "mod ule:Class"), ("entry_point", None), ("summary", ""),
    ("summary", "two\nlines"), ("family", "  "), ("success_rule", ""), ("max_turns", 0),
    ("max_turns", 2.5), ("max_turns", True), ("max_turns", "10"), ("skills", "navigation"),
    ("reply_styles", ()), ("reply_styles", (1,)), ("planners", ()), ("planners", ("offline",)),
    ("figure_episodes", 1), ("figure_episodes", 2.5), ("splits", ()),
    ("splits", ("train", "dev")), ("references", ("a", None)),
    ("system_requirements", "libgl1"), ("reward_range", (1.0, 0.0)), ("reward_range", (0.0,)),
    ("reward_range", (0.0, float("nan"))), ("reward_range", ("0", "1")),
    ("image_size", (0, 10)), ("image_size", (224.0, 224.0)), ("image_size", 224),
    ("difficulty", "easyy"), ("oracle", "yes"), ("oracle_success", 1.01),
    ("oracle_success", None), ("random_success_below", -0.1), ("prompt_version", -1),
    ("history_turns", 1.5), ("history_images", "1"), ("contract", "1"), ("kwargs", [("a", 1)]),
    ("levels", ("",)), ("levels", ("two\nlines",)), ("levels", "near"),
    ("blind", "a.b:C"), ("blind", ("a.b",)), ("blind", (3,)),
    ("replaced_by", "Walk-v1"), ("replaced_by", "vlgym/Walk-v0"), ("replaced_by", 1),
])  # fmt: skip
def test_a_malformed_field_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(SpecError) as caught:
        make_spec(**{("env_id" if field == "id" else field): value})
    assert f"field {field}" in str(caught.value)
    assert repr(value) in str(caught.value)


def test_a_spec_survives_yaml_and_json() -> None:
    kwargs = {"size": 3, "deep": {"a": [1, 2]}}
    spec = make_spec("my-org/Big_Room-v12", kwargs=kwargs, skills=["navigation"], image_size=[32, 64])
    assert (spec.namespace, spec.title, spec.skills, spec.image_size) == (
        "my-org", "Big_Room", ("navigation",), (32, 64),
    )  # fmt: skip
    assert EnvSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert EnvSpec.from_dict(yaml.safe_load(yaml.safe_dump(spec.to_dict()))) == spec


def test_missing_and_unknown_fields_and_what_json_cannot_hold_are_named() -> None:
    with pytest.raises(SpecError, match="kwargs must be JSON-able"):
        make_spec(kwargs={"shape": {1, 2}})
    data = make_spec().to_dict()
    with pytest.raises(SpecError, match="unexpected keyword argument 'max_turn'"):
        EnvSpec.from_dict({**data, "max_turn": 3})
    del data["summary"], data["max_turns"]
    with pytest.raises(SpecError, match="missing 2 required positional arguments: 'summary' and 'max_turns'"):
        EnvSpec.from_dict(data)


def test_the_digest_changes_with_what_an_environment_is_and_with_nothing_else() -> None:
    spec = make_spec()
    assert len(spec.digest()) == 16
    changed = ({"max_turns": 9}, {"summary": "Other."}, {"kwargs": {"a": 1}}, {"truncates_early": True})
    others = [make_spec("vlgym/Walk-v1"), *(make_spec(**change) for change in changed)]
    assert len({spec.digest(), *(other.digest() for other in others)}) == 6
    for change in (
        {}, {"replaced_by": "vlgym/Walk-v1"}, {"levels": ("near", "far")},
        {"probes": (Probe("edge"),)}, {"pictures": "exact"}, {"blind": ("a.b:C",)},
    ):  # fmt: skip
        assert make_spec(**change).digest() == spec.digest(), change
