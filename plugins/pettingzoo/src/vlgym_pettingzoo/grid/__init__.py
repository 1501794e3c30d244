"""Games in which two players, red and blue, walk on a square board and move at once."""
