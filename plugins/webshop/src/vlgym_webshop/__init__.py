"""WebShop for vlgym: a shop with a catalogue, a search engine, a web server and a browser, acted in by words."""
