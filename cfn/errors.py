"""The errors a user can cause. Each is one sentence: what is wrong, which key, what would be right."""


class UsageError(Exception):
    """Something the user asked for cannot be; the message is shown as it is, without a traceback."""


class BadValueError(UsageError, ValueError):
    """A constructor's argument is impossible. `cfn train` puts the group's name before the key."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(key, sentence)
        self.key = key
        self.sentence = sentence

    def __str__(self) -> str:
        return f"{self.key}: {self.sentence}"
