"""The constructor's arguments in force, of any environment, without its author's help."""

import copy
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from toys import Walk, make_spec, make_walk

from vlgym.env.arguments import list_arguments, to_plain
from vlgym.parsers import JsonParser
from vlgym.registry.making import build


class Stranger(Walk):
    """A third party's: arguments with a default, filled in by the constructor, and left open."""

    def __init__(
        self, length: int = 11, *, speed: float | None = None, colour: str | None = None,
        mode: str = "auto", **kwargs: Any,
    ) -> None:  # fmt: skip
        self.length, self.colour, self.mode = length, colour, mode
        self.speed = speed or 2.5
        super().__init__(**{"max_turns": 3 * length, **kwargs})

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self.colour = "red"

    def resolve_arguments(self) -> dict[str, Any]:
        return {"mode": "quick" if self.mode == "auto" else self.mode}


def test_every_argument_is_recorded_with_the_value_in_force() -> None:
    assert Stranger(vlgym_spec=make_spec()).arguments == {
        "length": 11, "speed": 2.5, "mode": "quick", "parser": "auto-v1", "planner": "online",
        "modality": "image", "invalid_action": "noop", "invalid_penalty": 0.0, "max_turns": 33,
        "image_size": [22, 22],
    }  # fmt: skip


def test_an_argument_given_by_position_and_those_of_the_card_count_too() -> None:
    assert Stranger(7).arguments["length"] == 7
    spec = make_spec("vlgym/Stranger-v0", f"{__name__}:Stranger", kwargs={"length": 5})
    assert build(spec).arguments["length"] == 5
    assert build(spec, length=6).arguments["length"] == 6
    assert list_arguments(Stranger)[:4] == ["length", "speed", "colour", "mode"]


def test_a_child_that_fixes_an_argument_and_one_that_takes_any_are_recorded_too() -> None:
    class Fast(Stranger):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(speed=9.0, **kwargs)

    class Loose(Walk):
        def __init__(self, **kwargs: Any) -> None:
            self.size = kwargs.pop("size", 3)
            super().__init__(**kwargs)

    assert Fast().arguments["speed"] == 9.0
    assert Loose(size=4).arguments["size"] == 4


def test_an_episode_changes_nothing_of_the_record_and_a_copy_keeps_it() -> None:
    env = Stranger()
    env.reset(seed=0)
    assert env.colour == "red"
    assert env.arguments == Stranger().arguments
    assert copy.deepcopy(Stranger(length=9)).arguments == Stranger(length=9).arguments
    env.arguments["length"] = 99
    assert env.arguments["length"] == 11


def test_values_become_plain_data_by_one_rule() -> None:
    @dataclasses.dataclass
    class Size:
        wide: int
        tall: float

    class Thing:
        def __init__(self) -> None:
            self.shape, self._secret = (1, 2), 3

    kind = f"{__name__}:test_values_become_plain_data_by_one_rule.<locals>"
    rows = [
        ([np.int64(3), np.float32(0.5), np.array([[1, 2]]), np.bool_(True)], [3, 0.5, [[1, 2]], True]),
        ([math.inf, math.nan], ["inf", "nan"]),
        ({"b", "a"}, ["a", "b"]),
        (Path("a/b"), "a/b"),
        ([Walk, make_walk], ["toys:Walk", "toys:make_walk"]),
        (JsonParser(), "json-v3"),
        (Size(1, 2.0), {"class": f"{kind}.Size", "wide": 1, "tall": 2.0}),
        (Thing(), {"class": f"{kind}.Thing", "shape": [1, 2]}),
        ({3: None}, {"3": None}),
    ]
    plain = [to_plain(value) for value, _ in rows]
    assert plain == [expected for _, expected in rows]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_an_object_that_holds_itself_is_described_to_a_depth() -> None:
    class Ring:
        pass

    ring = Ring()
    ring.next = ring  # type: ignore[attr-defined]
    assert json.dumps(to_plain(ring)).count("Ring") == 5
