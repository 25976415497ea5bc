"""Figures: of one run, of several runs, and of the paper."""
