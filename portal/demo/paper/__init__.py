"""The published measurement as ground truth: a generator that plants its numbers, and says what it planted.

It shares no code with what measures: it writes accounting text, declared sessions, exports of GPU use, the scheduler's
counts and what collectors send, and keeps its own books. So the report can be held to them.
"""
