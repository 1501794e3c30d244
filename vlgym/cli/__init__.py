"""The command line `vlgym`: `app` puts it together, one module for each command, or for a few that are alike.

`list`, `show` and `doctor` import no environment code. Rich, and everything else that is slow, is imported by the
command that needs it.
"""
