"""The command `cfn`: one table of commands, one module per command, and the sentences for errors."""
