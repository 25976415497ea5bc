"""The exam (`cfn exam`): questions that tell whether a bonus counts, on streams of visits with known counts."""
