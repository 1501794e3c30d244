"""The last lines of a run say what each integration compared."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
sys.path.extend([str(TESTS / "servers"), str(TESTS / "baselines")])

if importlib.util.find_spec("torchvision"):
    from torchvision_here import make_importable

    make_importable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "comparison":
                terminalreporter.write_line(value)
