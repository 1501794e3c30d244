"""Evaluation: of one environment (`evaluate`), or of a plan, with records (`run_evaluation`)."""

from .episodes import evaluate as evaluate
from .plan import plan_ids as plan_ids
from .plan import plan_suite as plan_suite
from .run import run_evaluation as run_evaluation
from .summary import SAME_BOUNDS as SAME_BOUNDS
from .summary import Report as Report
from .summary import changes_bounds as changes_bounds
from .summary import normalized_score as normalized_score
from .summary import sight_score as sight_score
from .summary import summarize as summarize
from .summary import without_images as without_images
