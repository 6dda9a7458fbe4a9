"""What harnesses tell of themselves over OTLP: read from an allow-list, and turned into counts of a closed list.

Nothing that a record holds as text is kept: an attribute is looked at only where `harnesses.toml` names it, and what
comes of it is a number under a measure of ours, or a digest with a key.
"""
