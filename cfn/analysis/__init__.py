"""Figures, tables, comparisons and the report, computed from the files in run folders. Nothing here trains."""
