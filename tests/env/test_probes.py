"""A probe is plain data, and checks itself."""

from typing import Any

import pytest
from toys import make_spec

from vlgym.env.probes import Probe
from vlgym.env.spec import EnvSpec
from vlgym.errors import SpecError


def test_a_probe_in_a_spec_survives_the_way_through_plain_data() -> None:
    probe = Probe("the edge", ["left", "@oracle..."], {"target": 5}, {"max_turns": 4}, "test", 3)  # type: ignore[arg-type]
    spec = make_spec(probes=(probe,))
    assert probe.replies == ("left", "@oracle...")
    assert EnvSpec.from_dict(spec.to_dict()) == spec
    assert Probe("short").to_dict() == {"rule": "short", "replies": []}


@pytest.mark.parametrize(("fields", "message"), [
    ({"rule": ""}, "field rule"), ({"rule": "r", "replies": "left"}, "field replies"),
    ({"rule": "r", "replies": ["@legal one"]}, "field replies"),
    ({"rule": "r", "replies": ["@edit a to b"]}, "field replies"),
    ({"rule": "r", "split": "dev"}, "field split"), ({"rule": "r", "index": -1}, "field index"),
    ({"rule": "r", "options": [1]}, "field options"),
    ({"rule": "r", "kwargs": {"a": object()}}, "kwargs must be JSON-able"),
    ({"rule": "r", "reply": []}, "unexpected keyword argument 'reply'"),
    ({"replies": []}, "missing 1 required positional argument: 'rule'"),
])  # fmt: skip
def test_a_probe_that_is_malformed_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Probe.from_dict(fields)
