"""Facts arrive as they were sent, in pieces of any size; what is none is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.collector.facts import Ending, Executed, Exited, Fact, Forked, Key, Sighting, Snapshot, Told
from telemetry.engine.collector.frames import LONGEST, BrokenFrame, Decoder, encode

PIDS, TIMES, COUNTS = st.integers(0, 2**32 - 1), st.integers(0, 2**63), st.integers(0, 2**40)
SIGHTINGS = st.builds(
    Sighting, PIDS, TIMES, PIDS, st.integers(-1, 2**32), st.integers(0, 2**31), st.booleans(),
    st.binary(max_size=64), st.binary(max_size=40), st.binary(max_size=400), st.integers(-2, 2**32 - 1),
    st.integers(0, 2**16 - 1),
)  # fmt: skip
FACTS = st.one_of(
    st.builds(Forked, TIMES, PIDS, st.builds(Key, PIDS, TIMES)),
    st.builds(Executed, TIMES, PIDS, st.none() | SIGHTINGS, st.booleans()),
    st.builds(Exited, TIMES, PIDS),
    st.builds(Snapshot, TIMES, st.lists(SIGHTINGS, max_size=3).map(tuple)),
    st.builds(Told, st.sampled_from(["events", "walk"]), *[COUNTS] * 7),
    st.just(Ending()),
)


@given(st.lists(FACTS, max_size=8), st.integers(1, 200))
def test_facts_arrive_as_they_were_sent(facts: list[Fact], piece: int) -> None:
    data = b"".join(encode(each) for each in facts)
    decoder = Decoder()
    found = [fact for at in range(0, len(data), piece) for fact in decoder.feed(data[at : at + piece])]
    assert found == facts


@given(st.binary(max_size=300))
def test_what_is_no_frame_is_refused_or_waits(data: bytes) -> None:
    decoder = Decoder()
    try:
        list(decoder.feed(data))
    except BrokenFrame:
        return
    assert len(decoder._rest) <= LONGEST + 5


@pytest.mark.parametrize("frame", [(LONGEST + 1, 1, b""), (0, 99, b""), (3, 1, b"abc"), (0, 4, b"")])
def test_a_frame_without_end_or_sense_is_refused(frame: tuple[int, int, bytes]) -> None:
    length, kind, body = frame
    with pytest.raises(BrokenFrame):
        list(Decoder().feed(struct.pack("=IB", length, kind) + body))


@pytest.mark.parametrize("job", [-3, 2**32, 2**62])
def test_a_job_that_there_cannot_be_is_refused(job: int) -> None:
    sighting = Sighting(1, 2, 3, 4, 5, False, b"x", b"", b"", job)
    with pytest.raises(BrokenFrame):
        list(Decoder().feed(encode(Executed(1, 1, sighting))))


def test_words_are_text_and_few() -> None:
    sighting = Sighting(1, 2, 3, 4, 5, False, b"x", b"/a/claude (deleted)", b"\xff\0b\0" * 1000)
    seen = sighting.seen()
    assert (len(seen.argv), seen.argv[:2], seen.exe) == (256, ("\ufffd", "b"), "/a/claude")
    assert sighting._replace(argv=b"").seen().argv == ()
