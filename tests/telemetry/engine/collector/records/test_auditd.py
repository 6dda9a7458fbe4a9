"""Audit records: real forms, events whose lines are mixed, and what never comes."""

import random
import re
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telemetry.engine.collector.records import assembling
from telemetry.engine.collector.records.assembling import Assembler
from telemetry.engine.collector.records.auditd import _NAMES
from telemetry.engine.collector.records.telling import Birth, End, Loss, Program, Record, Unreadable
from tests.telemetry.engine.collector.records.sensors import auditd, work

UNAME = b"""\
type=SYSCALL msg=audit(1492752522.985:8972): arch=c000003e syscall=59 success=yes exit=0 a0=10812c8 a1=1070208 \
a2=1152008 a3=59a items=2 ppid=10027 pid=10043 auid=1001 uid=1001 gid=1002 euid=1001 suid=1001 fsuid=1001 egid=1002 \
sgid=1002 fsgid=1002 tty=pts0 ses=11 comm="uname" exe="/bin/uname" key="key=user_commands"
type=EXECVE msg=audit(1492752522.985:8972): argc=2 a0="uname" a1="-a"
type=CWD msg=audit(1492752522.985:8972): cwd="/home/ada"
type=PATH msg=audit(1492752522.985:8972): item=0 name="/bin/uname" inode=155 dev=08:01 mode=0100755 nametype=NORMAL
type=PROCTITLE msg=audit(1492752522.985:8972): proctitle=756E616D65002D61
type=EOE msg=audit(1492752522.985:8972):"""
ENRICHED = b"""\
node=login1 type=SYSCALL msg=audit(1615114232.123:5): arch=c000003e syscall=59 success=yes exit=0 a0=63b29337fd18 \
items=2 ppid=7 pid=8 auid=1000 uid=1000 gid=1000 tty=pts1 ses=1 comm="rm" exe="/usr/bin/rm" key=(null)\x1d\
ARCH=x86_64 SYSCALL=execve AUID="user" UID="user" GID="user"
node=login1 type=EXECVE msg=audit(1615114232.123:5): argc=3 a0="rm" a1="-rf" a2=6275696C64206F7574
node=login1 type=EOE msg=audit(1615114232.123:5): """
CALL = "type=SYSCALL msg=audit(100.500:{0}): arch=c000003e syscall={1} {2} a0={3} ppid=7 pid=8 uid=1000 tty=(none)"


def read(text: bytes | str, into: Assembler | None = None) -> list[Record]:
    made = into or Assembler()
    lines = text.encode() if isinstance(text, str) else text
    return [record for line in lines.splitlines() for record in made.read(line)] + list(made.idle())


def call(serial: int = 1, number: int = 59, result: str = "success=yes exit=0", flags: str = "0") -> str:
    return CALL.format(serial, number, result, flags)


def test_a_program_is_told_by_several_lines() -> None:
    at_ns = 1_492_752_522_985_000_000
    assert read(UNAME) == [Program(at_ns, 10043, 10027, 1001, 1, b"/bin/uname", (b"uname", b"-a"))]


def test_what_auditd_adds_and_the_name_of_the_node_are_no_part_of_it() -> None:
    assert read(ENRICHED) == [
        Program(1_615_114_232_123_000_000, 8, 7, 1000, 1, b"/usr/bin/rm", (b"rm", b"-rf", b"build out"))
    ]


def test_an_end_has_no_result_and_of_two_names_for_a_call_its_own_counts() -> None:
    line = (
        "type=SYSCALL msg=audit(1735072331.659:2032): arch=c000003e syscall=231 a0=0 a1=e7 a2=3c a3=7 items=0 "
        'ppid=42401 pid=42411 auid=0 uid=0 gid=0 tty=pts1 ses=33 comm="zsh" exe="/usr/bin/zsh" key=(null)\x1d'
        'ARCH=x86_64 SYSCALL=exit_group AUID="root" UID="root"'
    )
    assert read(line) == [End(1_735_072_331_659_000_000, 42411)] == read(line.replace("c000003e", "deadbeef"))


def test_numbers_of_kinds_do_as_well_as_their_names() -> None:
    numbered = UNAME.replace(b"type=SYSCALL msg=", b"audit: type=1300 ").replace(b"type=EXECVE msg=", b"type=1309 ")
    assert read(numbered) == read(UNAME)


def test_long_words_come_in_pieces_and_many_words_in_several_lines() -> None:
    text = (
        f'{call()}\ntype=EXECVE msg=audit(100.500:1): argc=3 a0="sh" a1_len=8 a1[0]=6563\n'
        "type=EXECVE msg=audit(100.500:1): a1[1]=686F a1[2]=2078\ntype=EXECVE msg=audit(100.500:1): a2=(null)\n"
        "type=EOE msg=audit(100.500:1): "
    )
    [program] = read(text)
    assert isinstance(program, Program) and program.argv == (b"sh", b"echo x", b"")


def test_of_two_megabytes_of_words_as_much_is_kept_as_would_be_read_of_proc() -> None:
    piece = "type=EXECVE msg=audit(100.500:1): " + " ".join(f"a{{0}}[{n}]={'61' * 4000}" for n in range(10))
    made = Assembler()
    list(made.read(call().encode()))
    for place in range(300):
        list(made.read(piece.format(place).encode()))
        assert made._size <= 40_000
    [program] = made.idle()
    assert isinstance(program, Program) and sum(map(len, program.argv)) <= 32_768


def test_the_title_stands_in_for_words_that_were_lost() -> None:
    [program] = read(f"{call()}\ntype=PROCTITLE msg=audit(100.500:1): proctitle=6C73002D6C")
    assert isinstance(program, Program) and program.argv == (b"ls", b"-l")
    [program] = read(call())
    assert isinstance(program, Program) and program.argv == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (call(result="success=no exit=-2"), []), (call(number=257, result="success=yes exit=3"), []),
        (call(number=56, result="success=yes exit=9", flags="1200011"), [Birth(100_500_000_000, 8, 9)]),
        (call(number=56, result="success=yes exit=9", flags="3d0f00"), []),  # a thread
        (call(number=57, result="success=yes exit=9"), [Birth(100_500_000_000, 8, 9)]),
        (call(number=231, result=""), [End(100_500_000_000, 8)]), (call(number=60, result=""), []),
        (call(number=94, result="").replace("c000003e", "c00000b7"), [End(100_500_000_000, 8)]),
        (call(number=1, result="").replace("c000003e", "deadbeef"), []),
    ],
)  # fmt: skip
def test_forks_and_ends_are_told_where_a_site_audits_them(text: str, told: list[Record]) -> None:
    assert read(text) == told


@pytest.mark.parametrize(
    "line", [b"", b"type=SYSCALL", b"type=X msg=audit(1:2): ", b"hello", b"type=EOE msg=audit(x.123:1)"]
)
def test_what_is_no_record_is_told_as_such(line: bytes) -> None:
    with pytest.raises(Unreadable):
        list(Assembler().read(line))


def test_a_program_whose_call_was_lost_is_a_loss() -> None:
    assert read('type=EXECVE msg=audit(100.500:1): argc=1 a0="ls"') == [Loss(1)]


def test_records_of_another_node_are_none_of_ours() -> None:
    made = Assembler()
    list(made.read(ENRICHED.splitlines()[0]))
    with pytest.raises(Unreadable):
        list(made.read(ENRICHED.splitlines()[0].replace(b"login1", b"login2")))


def test_the_sample_of_rules_audits_what_is_read_and_no_more() -> None:
    sample = (Path(__file__).parents[5] / "deploy/sensors/gatehouse-audit.rules").read_text()
    audited = {name for names in re.findall(r"-S (\S+)", sample) for name in names.split(",")}
    assert audited == {name.decode() for name in _NAMES}


# --- losses --------------------------------------------------------------------------------------------------
def test_numbers_that_never_come_are_lost_and_those_of_auditd_itself_are_no_numbers() -> None:
    own = "type=DAEMON_START msg=audit(100.500:9999): op=start ver=3.0\n"
    assert read(f"{call(1)}\n{own}{call(2)}\n{call(7)}") == [*read(call(1)), *read(call(2)), Loss(4), *read(call(7))]


def test_numbers_that_begin_anew_lose_nothing() -> None:
    assert [each for each in read(f"{call(5_000_000)}\n{call(12)}\n{call(13)}") if isinstance(each, Loss)] == []


def test_what_the_kernel_says_of_losses_is_added_up() -> None:
    said = "audit: audit_lost={} audit_rate_limit=0 audit_backlog_limit=8192\naudit: backlog limit exceeded\n"
    losses = read("".join(said.format(total) for total in (40, 46, 50)))
    assert sum(each.number for each in losses if isinstance(each, Loss)) == 1 + 6 + 4
    assert read("[ 1.2] audit: backlog limit exceeded") == [Loss(1)]


def test_half_an_event_holds_up_the_next_for_two_seconds_and_no_longer() -> None:
    made = Assembler()
    half = call(1).encode()
    later = [call(serial).replace("100.500", f"{100 + serial}.500").encode() for serial in (2, 3, 4, 5)]
    ends = [f"type=EOE msg=audit({100 + serial}.500:{serial}): ".encode() for serial in (2, 3, 4, 5)]
    told = [list(made.read(half))]
    for line, end in zip(later, ends, strict=True):
        told.append([*made.read(line), *made.read(end)])
    assert [len(each) for each in told] == [0, 0, 3, 1, 1]


def test_a_time_to_come_holds_up_nothing_that_follows() -> None:
    made = Assembler()
    told = list(made.read(call(1).replace("100.500", "9999999999.500").encode()))
    for serial in range(3, 30):  # the second number never comes
        told += made.read(call(serial).replace("100.500", f"{100 + serial}.500").encode())
        told += made.read(f"type=EOE msg=audit({100 + serial}.500:{serial}): ".encode())
    assert len([each for each in told if isinstance(each, Program)]) >= 25


def test_events_that_are_never_completed_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "MOST_WAITING", 50)
    made, told = Assembler(), 0
    for serial in range(1, 2001):
        told += len(list(made.read(call(serial).encode())))
        assert len(made._waiting) <= 51
    assert told >= 1949


def test_words_of_events_that_are_never_completed_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "MOST_BYTES", 100_000)
    made = Assembler()
    for serial in range(1, 200):
        list(made.read(call(serial).encode()))
        list(made.read(f"type=EXECVE msg=audit(100.500:{serial}): argc=1 a0={'61' * 30_000}".encode()))
        assert made._size <= 100_000 + 32_768


# --- order ---------------------------------------------------------------------------------------------------
def events() -> list[list[bytes]]:
    """The lines of each event, in their order; all of them at one time, so that nothing is waited for in vain."""
    lines = [re.sub(rb"audit\(\d+\.\d+:", b"audit(100.500:", line) for line in auditd(work())]
    return [list(each) for _, each in groupby(lines, key=lambda line: line.partition(b"audit(")[2].partition(b")")[0])]


@given(st.randoms(use_true_random=False), st.integers(2, 12))
@settings(max_examples=25)
def test_mixed_lines_come_to_the_same_in_the_same_order(chance: random.Random, at_once: int) -> None:
    first, *others = events()  # a stream begins with the first number that comes
    mixed, going, left = list(first), list[list[bytes]](), list(others)
    while going or left:
        while left and len(going) < at_once:
            going.append(list(left.pop(0)))
        each = chance.choice(going)
        mixed.append(each.pop(0))
        if not each:
            going.remove(each)
    assert read(b"\n".join(mixed)) == read(b"\n".join(line for event in events() for line in event))
