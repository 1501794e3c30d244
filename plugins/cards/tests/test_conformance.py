"""The certificate of every environment of the family."""

from vlgym.testing import EnvConformance


class TestCards(EnvConformance):
    """Every property of the kit, for each id."""

    env_ids = (
        "vlgym/NumberLine-v0", "vlgym/EZPoints-v0", "vlgym/Points24-v0", "vlgym/Blackjack-v0",
        "vlgym/NumberLine-v1", "vlgym/EZPoints-v1", "vlgym/Points24-v1",
    )  # fmt: skip
