"""The command line `vlgym`: `app` puts it together; a module has one command, or a few that are alike."""
