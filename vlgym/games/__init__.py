"""Several agents in one game: the table and its seats, PettingZoo's two interfaces, tournaments, ratings, standings."""
