"""WebShop for vlgym: a shop with catalogue, search engine, web server and browser, played in words."""
