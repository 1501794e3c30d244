"""The credit bench: advantage estimators against the true advantage, measured by branching saved states."""

from .. import get_ready

get_ready()
