"""EnvSpec refuses each malformed field by name, and survives the way through YAML and JSON."""

import dataclasses
import json

import pytest
import yaml
from toys import make_spec

from vlgym.env.spec import EnvSpec
from vlgym.errors import SpecError, UserError


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "OneRoom-v0"),
        ("id", "vlgym/OneRoom"),
        ("id", "vlgym/One Room-v0"),
        ("id", "vlgym/OneRoom-v"),
        ("id", "9lives/Cat-v0"),
        ("id", 7),
        ("entry_point", "module.Class"),
        ("entry_point", "module:Class()"),
        ("entry_point", "mod ule:Class"),
        ("entry_point", None),
        ("summary", ""),
        ("summary", "two\nlines"),
        ("family", "  "),
        ("success_rule", ""),
        ("max_turns", 0),
        ("max_turns", 2.5),
        ("max_turns", True),
        ("max_turns", "10"),
        ("skills", "navigation"),
        ("reply_styles", ()),
        ("reply_styles", (1,)),
        ("planners", ()),
        ("planners", ("offline",)),
        ("figure_episodes", 1),
        ("figure_episodes", 2.5),
        ("splits", ()),
        ("splits", ("train", "dev")),
        ("references", ("a", None)),
        ("system_requirements", "libgl1"),
        ("reward_range", (1.0, 0.0)),
        ("reward_range", (0.0,)),
        ("reward_range", (0.0, float("nan"))),
        ("reward_range", ("0", "1")),
        ("image_size", (0, 10)),
        ("image_size", (224.0, 224.0)),
        ("image_size", 224),
        ("difficulty", "easyy"),
        ("oracle", "yes"),
        ("oracle_success", 1.01),
        ("oracle_success", None),
        ("random_success_below", -0.1),
        ("prompt_version", -1),
        ("history_turns", 1.5),
        ("history_images", "1"),
        ("contract", "1"),
        ("kwargs", [("a", 1)]),
    ],
)
def test_a_malformed_field_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(SpecError) as caught:
        make_spec(**{("env_id" if field == "id" else field): value})
    assert f"field {field}" in str(caught.value)
    assert repr(value) in str(caught.value)


def test_arguments_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(SpecError, match="kwargs must be JSON-able"):
        make_spec(kwargs={"shape": {1, 2}})


def test_a_misspelled_difficulty_gets_the_nearest_one() -> None:
    with pytest.raises(SpecError, match="Nearest: medium"):
        make_spec(difficulty="mediun")


def test_a_spec_error_is_one_that_the_user_can_fix() -> None:
    assert issubclass(SpecError, UserError)


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_spec().max_turns = 3  # type: ignore[misc]


def test_a_spec_survives_yaml_and_json() -> None:
    spec = make_spec(kwargs={"size": 3, "deep": {"a": [1, 2]}}, skills=("navigation", "memory"), oracle_success=0.5)
    assert EnvSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert EnvSpec.from_dict(yaml.safe_load(yaml.safe_dump(spec.to_dict()))) == spec


def test_lists_become_tuples() -> None:
    spec = make_spec(skills=["a"], reward_range=[0, 1], image_size=[32, 64])
    assert (spec.skills, spec.reward_range, spec.image_size) == (("a",), (0, 1), (32, 64))


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(SpecError, match="unexpected keyword argument 'max_turn'"):
        EnvSpec.from_dict({**make_spec().to_dict(), "max_turn": 3})


def test_missing_fields_are_named() -> None:
    data = make_spec().to_dict()
    del data["summary"], data["max_turns"]
    with pytest.raises(SpecError, match="missing 2 required positional arguments: 'summary' and 'max_turns'"):
        EnvSpec.from_dict(data)


def test_the_digest_changes_with_every_field_and_with_nothing_else() -> None:
    spec = make_spec()
    assert spec.digest() == make_spec().digest()
    assert len(spec.digest()) == 16
    changed = [
        make_spec(max_turns=9),
        make_spec(summary="Other."),
        make_spec(kwargs={"a": 1}),
        make_spec("vlgym/Walk-v1"),
    ]
    assert len({spec.digest(), *(other.digest() for other in changed)}) == 5


def test_namespace_and_title_are_parts_of_the_id() -> None:
    spec = make_spec("my-org/Big_Room-v12")
    assert (spec.namespace, spec.title) == ("my-org", "Big_Room")


def test_an_older_version_names_the_newer_one_and_its_digest_stays() -> None:
    assert make_spec("vlgym/Walk-v0", replaced_by="vlgym/Walk-v1").digest() == make_spec("vlgym/Walk-v0").digest()
    for wrong in ("Walk-v1", "vlgym/Walk-v0", 1):
        with pytest.raises(SpecError, match="replaced_by"):
            make_spec("vlgym/Walk-v0", replaced_by=wrong)
