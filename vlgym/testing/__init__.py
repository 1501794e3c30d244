"""The conformance kit, shipped to plugin authors.

Subclass `EnvConformance`, name an id, and the whole contract is tested.
"""

from .checks import ALL_CHECKS, CHECKS, GAME_CHECKS, Certificate, EnvConformance, GameConformance, certify, checks_for
from .fingerprint import Behaviour, measure_behaviour
from .game_checks import find_leaks
from .measure import count_episodes, measure_blind_floor, measure_figures, measure_hashes, measure_levels
from .subject import CheckResult, Subject

__all__ = [
    "ALL_CHECKS", "CHECKS", "GAME_CHECKS", "Behaviour", "Certificate", "CheckResult", "EnvConformance",
    "GameConformance", "Subject", "certify", "checks_for", "count_episodes", "find_leaks", "measure_behaviour",
    "measure_blind_floor", "measure_figures", "measure_hashes", "measure_levels",
]  # fmt: skip
