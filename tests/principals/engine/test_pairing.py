"""How near a declared start is to a session that was seen."""

from principals.engine.pairing import Seen, rank


def test_a_start_shortly_before_or_a_while_after_the_process_began_may_be_its() -> None:
    for after_s, is_same in ((-61, False), (-60, True), (0, True), (600, True), (601, False)):
        assert (rank(1000 + after_s, Seen("b/1-1", 1000)) is not None) is is_same


def test_what_is_declared_after_it_was_over_is_another() -> None:
    seen = Seen("b/1-1", 1000, 1020)
    assert rank(1080, seen) is not None  # it may have gone on a little unseen
    assert rank(1081, seen) is None


def test_no_two_pairs_are_equally_near() -> None:
    ranks = [rank(declared, Seen(process, start)) for declared in (100, 110) for process, start in
             (("a", 100), ("b", 100), ("c", 110), ("d", 120))]  # fmt: skip
    assert len(set(ranks)) == len(ranks)
    assert min(each for each in ranks if each) == (0, 100, 100, "a")
