"""The same environments in trainers that people already use; a module for each, which imports the trainer's package
only where it needs it."""
