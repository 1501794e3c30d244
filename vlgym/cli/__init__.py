"""The command line `vlgym`: `app` has all commands; a module has one, or a few that are alike."""
