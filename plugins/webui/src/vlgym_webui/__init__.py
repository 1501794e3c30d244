"""WebUI for vlgym: rebuild a small web page from a description with pictures."""
