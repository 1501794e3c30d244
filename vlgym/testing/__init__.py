"""The conformance kit, shipped to plugin authors.

Subclass `EnvConformance`, name an id, and the whole contract is tested.
"""

from .certificate import Certificate, certify
from .checks import CHECKS, CheckResult, Subject
from .conformance import EnvConformance
from .fingerprint import Behaviour, measure_behaviour
from .measure import count_episodes, measure_blind_floor, measure_entry, measure_figures, measure_hashes

__all__ = [
    "CHECKS",
    "Behaviour",
    "Certificate",
    "CheckResult",
    "EnvConformance",
    "Subject",
    "certify",
    "count_episodes",
    "measure_behaviour",
    "measure_blind_floor",
    "measure_entry",
    "measure_figures",
    "measure_hashes",
]
