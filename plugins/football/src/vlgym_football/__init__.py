"""MageBench's football on the Google Research Football engine. `plugin.py` holds the card, `football.py` the
environment."""
