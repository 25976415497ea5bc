"""The exam: whether a bonus counts, asked on streams of visits whose true counts are known."""
