"""The evidence that a score needs the picture: blind players, their floors, and the sight score."""
