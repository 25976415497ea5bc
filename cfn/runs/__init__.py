"""The run folder: its layout, how it is created and locked, and how it is read."""
