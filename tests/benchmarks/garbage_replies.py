"""10,000 fuzzed replies per environment: none may raise, and none that no legal action was read from may pay.

    python tests/benchmarks/garbage_replies.py --families cards miniworld --write

Hypothesis writes the replies: any Unicode text, and pieces of real formats glued together. Small pictures keep it
quick.
"""

from __future__ import annotations

import argparse

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report import finish, parse_write, table

from vlgym.env import VLEnv
from vlgym.making import make
from vlgym.registry import get_registry
from vlgym.seeding import episode_seed

BATCH = 20
PIECES = (
    "<action>", "</action>", "<plan>", "</plan>", '{"action": "', '"}', "{", "}", "turn left", "move forward", "+", "-",
    "=", "hit", "stand", "1", "10", ";", "\n", "\x00", "<|image_pad|>", "action", "or", "__import__('os')",
)  # fmt: skip


def reply_lists() -> st.SearchStrategy[list[str]]:
    """Lists of `BATCH` replies."""
    glued = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
    return st.lists(st.one_of(st.text(max_size=80), glued), min_size=BATCH, max_size=BATCH)


def fuzz(env: VLEnv, env_id: str, replies: int) -> tuple[int, int]:
    """Send that many replies; return how many were sent and how many were invalid. Raises on an offence."""
    counts = [0, 0]
    env.reset(seed=episode_seed(env_id, "val", 0))

    @settings(max_examples=replies // BATCH, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(reply_lists())
    def send(texts: list[str]) -> None:
        for text in texts:
            _, reward, terminated, truncated, info = env.step(text)
            counts[0] += 1
            counts[1] += info["invalid_action"]
            if info["invalid_action"] and reward > 0:
                raise AssertionError(f"{env_id}: invalid reply {text!r} paid {reward}")
            if terminated or truncated:
                env.reset(seed=episode_seed(env_id, "val", counts[0]))

    send()
    return counts[0], counts[1]


def main() -> None:
    """Fuzz every environment of the chosen families."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=["cards", "miniworld"])
    parser.add_argument("--replies", type=int, default=10_000)
    args = parse_write(__doc__ or "", parser)
    rows = []
    for env_id, spec in get_registry().specs.items():
        if spec.family in args.families:
            env = make(env_id, image_size=(32, 32))
            sent, invalid = fuzz(env, env_id, args.replies)
            env.close()
            rows.append([f"`{env_id}`", f"{sent:,}", f"{invalid:,}", 0, 0])
            print(rows[-1], flush=True)
    header = ["environment", "replies", "counted invalid", "raised", "invalid and paid"]
    body = "The script stops at the first reply that raises or is invalid and paid: where it ends, both are 0.\n\n"
    finish("garbage_replies", "Garbage replies", body + table(header, rows), ["vlgym", "hypothesis"], args.write)


if __name__ == "__main__":
    main()
