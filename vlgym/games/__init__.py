"""Several agents in one game: the table, PettingZoo's two interfaces, tournaments, ratings."""
