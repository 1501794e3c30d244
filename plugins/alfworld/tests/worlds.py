"""Small hand-made worlds for tests."""

from vlgym_alfworld.game import World


def make_world(**changes: object) -> World:
    """A closed cabinet, a table, a microwave and a desk with a lamp; two mugs and a pen; the agent at the table."""
    values: dict[str, object] = {
        "agent_at": "at table",
        "receptacle_at": {
            "cabinet 1": "at cabinet",
            "diningtable 1": "at table",
            "microwave 1": "at microwave",
            "desk 1": "at desk",
        },
        "receptacle_kinds": {
            "cabinet 1": "cabinet",
            "diningtable 1": "diningtable",
            "microwave 1": "microwave",
            "desk 1": "desk",
        },
        "object_kinds": {"mug 1": "mug", "mug 2": "mug", "pen 1": "pen", "desklamp 1": "desklamp"},
        "holder": {"mug 1": "cabinet 1", "mug 2": "diningtable 1", "pen 1": "diningtable 1", "desklamp 1": "desk 1"},
        "held": None,
        "openable": frozenset({"cabinet 1", "microwave 1"}),
        "opened": frozenset(),
        "states": {"clean": frozenset(), "hot": frozenset(), "cool": frozenset(), "sliced": frozenset()},
        "toggled": frozenset(),
        "takeable": frozenset({"mug 1", "mug 2", "pen 1"}),
        "holds_kinds": {
            "cabinet": frozenset({"mug"}),
            "diningtable": frozenset({"mug", "pen"}),
            "desk": frozenset({"pen"}),
        },
    }
    return World(**{**values, **changes})  # type: ignore[arg-type]
