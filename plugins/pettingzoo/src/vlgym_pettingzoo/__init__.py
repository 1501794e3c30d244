"""Games of several agents for vlgym. Importing this imports no environment code."""

__version__ = "0.1.0"
