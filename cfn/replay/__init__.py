"""What was seen, kept to learn from: each distinct frame once, and samples in proportion to their priorities."""
