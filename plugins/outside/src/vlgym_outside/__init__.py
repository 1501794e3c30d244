"""BabyAI and Crafter for vlgym, for evaluation only. Importing this imports no environment code."""

__version__ = "0.1.0"
