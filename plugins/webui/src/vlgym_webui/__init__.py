"""WebUI for vlgym: rebuild a small web page from a description with pictures; scored by Atomic Element Similarity
(AES).
"""
