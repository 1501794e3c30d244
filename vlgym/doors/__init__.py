"""The former name of `vlgym.integrations`, for one release: it warns."""

import warnings

from .. import integrations

__path__ = integrations.__path__

warnings.warn("vlgym.doors is called vlgym.integrations; this name goes in 0.2.", DeprecationWarning, stacklevel=2)
