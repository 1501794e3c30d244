"""Drawn apps for vlgym: an app is a seed, a screen is a picture, and a click is an action."""
