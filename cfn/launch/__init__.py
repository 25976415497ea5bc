"""Launching many runs from one command."""
