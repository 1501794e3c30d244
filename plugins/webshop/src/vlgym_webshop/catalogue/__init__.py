"""The catalogue: what is sold and what shoppers want, generated or read from WebShop's files, kept in SQLite."""
