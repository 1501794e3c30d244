"""Which check names which planted fault, and what a whole certificate takes.

    python tests/benchmarks/planted_faults.py --write

Runs, for each fault of `tests/faults/table.py`, the check that has to name it; and all checks on the correct
environment and on a cheap one of ours.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS)]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")]))

from faults.lantern import lantern_spec  # noqa: E402
from faults.planted_sight import ProcessesStay  # noqa: E402
from faults.table import FAULTS  # noqa: E402
from report import finish, parse_write, table  # noqa: E402
from toys import installed  # noqa: E402

from vlgym.testing import CHECKS, certify  # noqa: E402


def measure_processor() -> float:
    """Seconds that this process and its children have used."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def main() -> None:
    """Run every fault's check and print or write the page."""
    write = parse_write(__doc__ or "").write
    here = os.getcwd()
    rows, caught = [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LANTERN_LOG"] = os.path.join(folder, "lantern.log")
        tempfile.tempdir = folder
        for fault in FAULTS:
            os.chdir(os.path.dirname(folder))
            spec = fault.spec()
            names = [fault.check] if fault.check else [name for name in CHECKS if name != "processes"]
            with installed(spec):
                found = [result for result in certify(spec.id, only=names).results if not result.passed]
            caught += bool(found)
            told = found[0].evidence.replace("|", "/").replace(folder, "TMP")[:110] if found else ""
            rows.append([fault.what, found[0].name if found else "", told or f"not caught: {fault.why}"])
        for process in ProcessesStay.started:
            process.kill()
        os.chdir(here)
        times = []
        for name, spec in (("the correct environment", lantern_spec()), ("NumberLine", None)):
            begun = measure_processor()
            if spec is None:
                certificate = certify("vlgym/NumberLine-v0")
            else:
                with installed(spec):
                    certificate = certify(spec.id)
            used = measure_processor() - begun
            times.append(f"{name}: {used:.1f} s of processor time, {certificate.seconds:.1f} s on the clock")
    text = [
        "Each fault is a small change of one correct environment (`tests/faults/lantern.py`); the check in its row is "
        "the one that has to name it. `tests/faults/test_planted_faults.py` runs the same in CI.",
        f"{caught} of {len(FAULTS)} faults are caught by the check that names them.",
        f"All checks took, on a machine with other work to do: {'; '.join(times)}.",
        table(["fault", "check", "its evidence"], rows),
    ]
    finish("planted_faults", "Planted faults", "\n\n".join(text), ["vlgym", "gymnasium", "numpy"], write)


if __name__ == "__main__":
    main()
