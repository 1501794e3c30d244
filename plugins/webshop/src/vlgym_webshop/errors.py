"""Errors of this plugin that a user can mend."""

from __future__ import annotations

from vlgym.errors import UserError


class CatalogueError(UserError):
    """A catalogue or one of WebShop's files is missing or malformed. Next step: as the message says."""
