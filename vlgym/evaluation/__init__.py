"""Evaluation: one environment and one policy (`evaluate`), or a whole plan with records on disk (`run_evaluation`)."""

from .held_out import SAME_BOUNDS as SAME_BOUNDS
from .held_out import Report as Report
from .held_out import changes_bounds as changes_bounds
from .held_out import evaluate as evaluate
from .held_out import normalized_score as normalized_score
from .held_out import sight_score as sight_score
from .held_out import summarize as summarize
from .held_out import without_images as without_images
from .plan import plan_ids as plan_ids
from .plan import plan_suite as plan_suite
from .run import run_evaluation as run_evaluation
