"""The conformance kit, shipped to plugin authors.

Subclass `EnvConformance`, name an id, and the whole contract is tested.
"""

from .certificate import Certificate as Certificate
from .certificate import certify as certify
from .checks import ALL_CHECKS as ALL_CHECKS
from .checks import CHECKS as CHECKS
from .checks import GAME_CHECKS as GAME_CHECKS
from .checks import EnvConformance as EnvConformance
from .checks import GameConformance as GameConformance
from .checks import checks_for as checks_for
from .fingerprint import Behaviour as Behaviour
from .fingerprint import measure_behaviour as measure_behaviour
from .game_checks import find_leaks as find_leaks
from .level_checks import measure_levels as measure_levels
from .measure import count_episodes as count_episodes
from .measure import measure_blind_floor as measure_blind_floor
from .measure import measure_figures as measure_figures
from .measure import measure_hashes as measure_hashes
from .subject import CheckResult as CheckResult
from .subject import Subject as Subject
