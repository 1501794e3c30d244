"""MageBench's football on the Google Research Football engine."""
