"""MiniWorld's 23 three-dimensional environments. Importing this imports no environment code."""
