"""Why an answer is left to the real command."""


class PassedOn(Exception):
    """The real command must answer. `reason` is one of a few stable words, for counting."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
