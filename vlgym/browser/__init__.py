"""A contained Chromium for plugins that show web pages: in a `room`, within limits.

The core never imports it: a plugin that does depends on `selenium` and `psutil` itself.
"""
