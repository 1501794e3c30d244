"""How long every parser of the suite takes for the replies that cost it most.

    python tests/benchmarks/parser_time.py --write

For each reply style of each family's first environment, the strings that the check `parser_time` tries are read at
16,000 characters, and the slowest of them at shorter lengths, too. The script ends with status 1 where the check would
fail.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from report import finish, parse_write, table

from vlgym.making import make
from vlgym.parsers import get_parser
from vlgym.registry import get_registry
from vlgym.seeding import episode_seed
from vlgym.testing.parser_time import LENGTHS, measure_parser, write_shapes, write_string
from vlgym.types import Parser


def read(parser: Parser, legal: Sequence[str], text: str) -> float:
    """Milliseconds of the processor for a reply, the best of three."""
    times = []
    for _ in range(3):
        begun = time.thread_time()
        parser.parse(text, legal)
        times.append(1000 * (time.thread_time() - begun))
    return min(times)


def main() -> None:
    """Measure, and print or write the page."""
    write = parse_write(__doc__ or "").write
    rows: list[list[object]] = []
    slow, families = [], set()
    for env_id, spec in get_registry().specs.items():
        if spec.family in families:
            continue
        families.add(spec.family)
        env = make(env_id)
        env.reset(seed=episode_seed(env_id, "train", 0))
        legal = env.legal_actions()
        env.close()
        for style in spec.reply_styles:
            parser = get_parser(style)
            if not measure_parser(parser, legal).linear:
                slow.append(f"{env_id} {style}")
            shapes = list(write_shapes(parser, legal))
            worst = max(shapes, key=lambda shape: read(parser, legal, write_string(shape, LENGTHS[-1])))
            times = [read(parser, legal, write_string(worst, length)) for length in LENGTHS]
            rows.append(
                [f"`{env_id}`", parser.name, len(shapes), *(f"{one:.2f}" for one in times),
                 f"{times[-1] / times[1]:.1f}", f"`{worst!r}`".replace("|", "\\|")]
            )  # fmt: skip
            print(*rows[-1], flush=True)
    body = (
        "Milliseconds of the processor (the best of three) for the string that takes longest at 16,000 characters. The "
        "strings are pieces of the parser's own format and common characters, repeated between others. `growth` is the "
        f"time at {LENGTHS[-1]:,} characters divided by that at {LENGTHS[1]:,}: 4 is linear, 16 quadratic. "
        f"Parsers that the check `parser_time` refuses: {', '.join(slow) or 'none'}.\n\n"
    )
    lengths = [f"{length:,}" for length in LENGTHS]
    header = ["environment", "parser", "strings", *lengths, "growth", "prefix, repeated piece, end"]
    finish("parser_time", "Parsers' time", body + table(header, rows), ["vlgym"], write)
    if slow:
        sys.exit(f"not linear: {', '.join(slow)}")


if __name__ == "__main__":
    main()
