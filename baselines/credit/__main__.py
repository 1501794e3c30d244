"""`python -m baselines.credit`."""

from ..learning.command import main
from . import Config, __doc__, run

main(Config, run, __doc__)
