"""Text from elsewhere as one plain line: nothing in it moves a cursor, starts a line or colours a terminal."""


def plain(text: str) -> str:
    """Return a text with whatever is no letter in it written out, as `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
