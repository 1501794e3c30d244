"""Questions about a position of a game: one picture, one answer."""
