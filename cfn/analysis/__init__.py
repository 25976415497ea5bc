"""Figures, tables and the report: functions of the files in run folders. Nothing here trains."""
