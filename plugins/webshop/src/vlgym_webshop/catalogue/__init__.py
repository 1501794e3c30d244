"""The catalogue: products and wishes, generated or read from WebShop's files, kept in SQLite."""
