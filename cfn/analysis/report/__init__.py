"""The report of `cfn report`: one HTML page on many runs."""
