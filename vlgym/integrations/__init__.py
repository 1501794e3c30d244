"""Environments and records in other libraries, a module for each."""
