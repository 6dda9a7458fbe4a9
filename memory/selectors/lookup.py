"""Finding the lessons that fit an error, among those somebody may read.

Two bounded reads choose candidates: equal signatures, and lessons that share a word which is rare in the viewer's
scopes. The engine then decides. A word is rare by the whole collection, not by the few rows loaded.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count

from memory.engine.match import MAX_MATCHES, RARE_FLOOR, Candidate, LessonIndex, Match, words_of
from memory.engine.signature import VERSION, Signature, sign
from memory.models import Lesson, LessonToken
from memory.models.choices import Scope
from memory.models.tokens import MAX_TOKEN
from principals.actors import Actor
from principals.models import Cluster

MAX_EXACT = 50
MAX_SIMILAR = 200
MAX_WORDS = 120  # of the error asked for; the longest tell most
_NEARNESS = {Scope.CLUSTER: 0, Scope.LAB: 1, Scope.PROJECT: 2}


@dataclass(frozen=True, slots=True)
class FoundLesson:
    """A lesson that fits, how well (0 to 1) and why."""

    lesson: Lesson
    score: float
    why: str
    exact: bool


def look_up(actor: Actor, text: str, cluster: Cluster | None = None, limit: int = MAX_MATCHES) -> list[FoundLesson]:
    """Return at most `limit` (of 3) lessons for an error text, best first, each cause once; none means unknown.

    `cluster` leaves out what is known of other clusters only. Of one lesson in several scopes the widest is given: more
    people answered for it.
    """
    asked = sign(text)
    if not asked.kernel:
        return []
    scopes = _scope_keys(actor, cluster)
    index = LessonIndex(kernels=_kernels(scopes))
    words = sorted((word[:MAX_TOKEN] for word in words_of(asked.normalised)), key=lambda word: (-len(word), word))
    index.frequency = _frequency(scopes, words[:MAX_WORDS])
    rare = [word for word in index.frequency if index.is_rare(word)]
    # A word that was not counted must not pass for a rare one.
    index.frequency.update(dict.fromkeys(words[MAX_WORDS:], index.kernels + RARE_FLOOR + 1))
    candidates = _candidates(actor, asked, scopes, rare)
    built = LessonIndex.build(_candidate(lesson) for lesson in candidates.values())
    index.entries = built.entries
    return _distinct(index.find(text, limit=len(candidates)), candidates)[: max(1, min(limit, MAX_MATCHES))]


def _scope_keys(actor: Actor, cluster: Cluster | None) -> list[str]:
    """Return the scopes an actor reads, as keys of the index; `visible_to` is asked of every row besides."""
    clusters = [cluster.pk] if cluster else list(Cluster.objects.values_list("pk", flat=True))
    own: Iterable[str] = ()
    if actor.user is not None:
        projects = Lesson.objects.active().filter(scope=Scope.PROJECT, owner=actor.user)
        own = projects.order_by().values_list("scope_key", flat=True).distinct()
    if actor.agent is not None and actor.user is not None:
        own = [f"project:{actor.user.pk}:{lab}" for lab in (0, actor.agent.lab_id)]
    labs = [f"lab:{pk}" for pk in sorted(actor.member_lab_ids)]
    return [*own, *labs, *(f"cluster:{pk}" for pk in clusters)]


def _kernels(scopes: list[str]) -> int:
    return Lesson.objects.active().filter(scope_key__in=scopes).order_by().values("signature").distinct().count()


def _frequency(scopes: list[str], words: list[str]) -> Counter[str]:
    """Count in how many different errors of these scopes each word stands."""
    rows = LessonToken.objects.filter(token__in=words, scope_key__in=scopes).order_by().values_list("token")
    return Counter(dict(rows.annotate(errors=Count("signature", distinct=True))))


def _candidates(actor: Actor, asked: Signature, scopes: list[str], rare: list[str]) -> dict[str, Lesson]:
    sharing = LessonToken.objects.filter(token__in=rare, scope_key__in=scopes).order_by().values_list("lesson")
    most = [row[0] for row in sharing.annotate(shared=Count("pk")).order_by("-shared", "-lesson")[:MAX_SIMILAR]]
    # Values of two normalisers must not be compared; rows of another version wait for their recomputation.
    visible = Lesson.objects.visible_to(actor).active().filter(scope_key__in=scopes, normaliser_version=VERSION)
    visible = visible.with_evidence().select_related("owner", "lab", "cluster", "derived_from")
    equal = visible.filter(signature=asked.exact).order_by("-created")[:MAX_EXACT]
    found = {lesson.public_id: lesson for lesson in equal}
    if most:
        found |= {lesson.public_id: lesson for lesson in visible.filter(pk__in=most)}
    return found


def _candidate(lesson: Lesson) -> Candidate:
    kept = Signature(
        lesson.signature, lesson.kernel, "", lesson.normalised, tuple(lesson.parameters), lesson.normaliser_version
    )
    return Candidate(lesson.public_id, lesson.normalised, kept)


def _distinct(matches: list[Match], lessons: dict[str, Lesson]) -> list[FoundLesson]:
    """Order by fit, then by what others said, then by reach; of one lesson or one wording keep the first."""

    def worth(match: Match) -> tuple[float, int, int, str]:
        lesson = lessons[match.key]
        said: int = lesson.confirmations - lesson.refutations
        return (-match.score, -said, _NEARNESS[Scope(lesson.scope)], match.key)

    reach = {match.key: _NEARNESS[Scope(lessons[match.key].scope)] for match in matches}
    widest: dict[str, str] = {}
    for match in sorted(matches, key=lambda match: (reach[match.key], -match.score)):
        widest.setdefault(lessons[match.key].lineage, match.key)
    kept: dict[str, FoundLesson] = {}
    for match in sorted(matches, key=worth):
        lesson = lessons[match.key]
        if widest[lesson.lineage] == match.key:
            found = FoundLesson(lesson, round(match.score, 3), match.why, match.how.value == "exact")
            kept.setdefault(lesson.content_digest, found)
    return list(kept.values())
