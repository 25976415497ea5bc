"""Pictures and statistics: pure functions of the files that runs leave behind."""
