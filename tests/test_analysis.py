"""Views over the archive hold what the tables held, and each named question agrees with plain Python."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import duckdb
import pytest
from psycopg.conninfo import make_conninfo

import logstore
from logstore import (
    ArchiveError,
    Attempt,
    Event,
    InvalidSelection,
    LogStore,
    SandboxError,
    analysis,
    archive,
    partitions,
)
from logstore.commands import main
from logstore.embedded import EmbeddedServer
from logstore.segments import Segment
from logstore.statements import statements
from tests.conftest import new_database
from tests.records_of import START, attempt, event

Row = tuple[Any, ...]


def log(rng: Random, count: int = 120) -> tuple[list[Event], list[Attempt]]:
    """Events of two months, their attempts with retries; some never attempted, some never successful."""
    events, attempts = [], []
    for n in range(count):
        made = event(
            f"e{n}",
            tenant_id=rng.choice(["acme", "bravo", "coyote"]),
            topic=rng.choice(["t1", "t2", "t3"]),
            time=START + timedelta(seconds=rng.randrange(55 * 86400), microseconds=rng.randrange(10**6)),
            data={"n": n, "text": "ü" * rng.randrange(40)},
            eligible_for_retry=rng.random() < 0.8,
        )
        events.append(made)
        if rng.random() < 0.85:
            for destination in rng.sample(["d1", "d2", "d3"], rng.randint(1, 2)):
                attempts += deliver(rng, made, destination)
    return events, attempts


def deliver(rng: Random, made: Event, destination: str) -> Iterator[Attempt]:
    moment = made.time
    for number in range(1, rng.randint(1, 5) + 1):
        moment += timedelta(seconds=rng.randrange(1, 90), microseconds=rng.randrange(10**6))
        good = rng.random() < 0.4
        yield Attempt.of(
            made,
            id=f"{made.id}-{destination}-{number}",
            destination_id=destination,
            status="success" if good else "failed",
            code="200" if good else rng.choice(["500", "timeout", None]),
            time=moment,
            attempt_number=number,
            manual=number == 4,
        )
        if good:
            return


EVENTS, ATTEMPTS = log(Random(5))
MONTHS = ("2026_03", "2026_04")


@pytest.fixture(scope="module")
def archived(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogStore]:
    """Everything above, moved to the archive; the tables are still there."""
    with logstore.open(new_database(server), role="operator", home=tmp_path_factory.mktemp("[an]*archive?")) as store:
        store.insert_many(EVENTS, ATTEMPTS)
        for parent, month in itertools.product(("events", "attempts"), MONTHS):
            move(store, f"{parent}_{month}", segment_rows=50)
        yield store


def move(store: LogStore, name: str, *, segment_rows: int = 100_000) -> list[Segment]:
    """A month is served from its segments from now on."""
    sealed = archive.export(store, name, segment_rows=segment_rows)
    archive.flip(store, name)
    return sealed


# The questions in plain Python: each takes the attempts in range and the parameters, and gives the rows in order.


def percentile(values: Sequence[float], share: float) -> float:
    """By interpolation between the two nearest, as SQL's percentile_cont does."""
    ordered, place = sorted(values), share * (len(values) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def seconds(later: datetime, earlier: datetime) -> float:
    return (later - earlier).total_seconds()


def grouped(rows: Sequence[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def delivery(a: Attempt) -> Row:
    return a.tenant_id, a.event_id, a.destination_id


def by_destination(a: Attempt) -> Row:
    return a.tenant_id, a.destination_id


def good(rows: Sequence[Attempt]) -> list[Attempt]:
    return [a for a in rows if a.status == "success"]


def bad(rows: Sequence[Attempt]) -> list[Attempt]:
    return [a for a in rows if a.status == "failed"]


def success_rate(rows: list[Attempt]) -> list[Row]:
    found = grouped(rows, lambda a: (a.tenant_id, a.destination_id, a.time.date()))
    made = [(*key, len(part), len(good(part)), len(good(part)) / len(part)) for key, part in found.items()]
    return sorted(made, key=lambda r: (-r[2].toordinal(), r[0], r[1]))


def attempts_to_success(rows: list[Attempt]) -> list[Row]:
    needed = Counter(a.attempt_number for a in good(rows) if not a.manual)
    total, so_far, made = sum(needed.values()), 0, []
    for number, count in sorted(needed.items()):
        so_far += count
        made.append((number, count, count / total, so_far / total))
    return made


def waiting(rows: list[Attempt]) -> list[Row]:
    made = []
    for topic, part in grouped([a for a in rows if not a.manual], lambda a: a.topic).items():
        waits = [seconds(a.time, a.event_time) for a in part]
        made.append((topic, len(waits), *(percentile(waits, share) for share in (0.5, 0.95, 0.99))))
    return sorted(made, key=lambda r: (-r[3], r[0]))


def time_to_first_attempt(rows: list[Attempt]) -> list[Row]:
    return waiting([a for a in rows if a.attempt_number == 1])


def time_to_success(rows: list[Attempt]) -> list[Row]:
    return waiting(good(rows))


def failure_groups(rows: list[Attempt]) -> list[Row]:
    found = grouped(bad(rows), lambda a: (a.tenant_id, a.destination_id, a.code))
    made = [(*k, len(part), min(a.time for a in part), max(a.time for a in part)) for k, part in found.items()]
    return sorted(made, key=lambda r: (-r[3], r[0], r[1], r[2] is None, r[2] or ""))


def noisiest_tenants(rows: list[Attempt]) -> list[Row]:
    made = [
        (tenant, len(part), len(bad(part)), sum(a.attempt_number > 1 for a in part), len(part) / len(rows))
        for tenant, part in grouped(rows, lambda a: a.tenant_id).items()
    ]
    return sorted(made, key=lambda r: (-r[1], r[0]))


def retry_storms(rows: list[Attempt]) -> list[Row]:
    def window(a: Attempt) -> datetime:
        return datetime.fromtimestamp(a.time.timestamp() // 86400 * 86400, UTC)

    found = grouped([a for a in rows if a.attempt_number > 1], lambda a: (a.tenant_id, a.destination_id, window(a)))
    made = [(*k, len(part), len(bad(part))) for k, part in found.items() if part[1:]]
    return sorted(made, key=lambda r: (-r[3], r[2], r[0], r[1]))


def never_succeeded(rows: list[Attempt]) -> list[Row]:
    succeeded = {delivery(a) for a in good(ATTEMPTS)}
    made = [
        (*key, len(part), min(a.time for a in part), max(a.time for a in part))
        for key, part in grouped(bad(rows), delivery).items()
        if key not in succeeded and part[0].eligible_for_retry
    ]
    return sorted(made, key=lambda r: (-r[5].timestamp(), *r[:3]))


def slowest_destinations(rows: list[Attempt]) -> list[Row]:
    made = []
    for key, part in grouped([a for a in good(rows) if not a.manual], by_destination).items():
        waits = [seconds(a.time, a.event_time) for a in part]
        if len(waits) >= 10:
            made.append((*key, len(waits), sum(waits) / len(waits), percentile(waits, 0.5), percentile(waits, 0.95)))
    return sorted(made, key=lambda r: (-r[5], r[0], r[1]))


def day_over_day(rows: list[Attempt]) -> list[Row]:
    made: list[Row] = []
    before: tuple[int, int] | None = None
    for day, part in sorted(grouped(rows, lambda a: a.time.date()).items()):
        now = (len(part), len(bad(part)))
        change = (now[0] - before[0], now[0] / before[0] - 1, now[1] - before[1]) if before else (None, None, None)
        made.append((day, now[0], change[0], change[1], now[1], change[2]))
        before = now
    return made[::-1]


def failing_destinations(rows: list[Attempt]) -> list[Row]:
    made = []
    for key, part in grouped(rows, by_destination).items():
        last = max((a.time for a in good(part)), default=None)
        since = [a.time for a in bad(part) if last is None or a.time > last]
        if since:
            made.append((*key, last, min(since), max(since), len(since)))
    return sorted(made, key=lambda r: (-r[5], r[0], r[1]))


def payload_size(rows: list[Event], texts: dict[str, int]) -> list[Row]:
    made = []
    for topic, part in grouped(rows, lambda e: e.topic).items():
        sizes = [texts[e.id] for e in part]
        made.append((topic, len(sizes), sum(sizes), percentile(sizes, 0.5), percentile(sizes, 0.95), max(sizes)))
    return sorted(made, key=lambda r: (-r[2], r[0]))


def never_attempted(rows: list[Event]) -> list[Row]:
    tried = {a.event_id for a in ATTEMPTS}
    found = grouped([e for e in rows if e.id not in tried], lambda e: (e.tenant_id, e.topic))
    made = [
        (*key, len(part), min(e.time for e in part), max(e.time for e in part), min(e.id for e in part))
        for key, part in found.items()
    ]
    return sorted(made, key=lambda r: (-r[2], r[0], r[1]))


ORACLES: dict[str, tuple[Callable[[list[Attempt]], list[Row]], dict[str, Any]]] = {
    "success_rate": (success_rate, {}),
    "attempts_to_success": (attempts_to_success, {}),
    "time_to_first_attempt": (time_to_first_attempt, {}),
    "time_to_success": (time_to_success, {}),
    "failure_groups": (failure_groups, {}),
    "noisiest_tenants": (noisiest_tenants, {}),
    "retry_storms": (retry_storms, {"minutes": 1440, "least": 2}),
    "never_succeeded": (never_succeeded, {}),
    "slowest_destinations": (slowest_destinations, {"least": 10}),
    "day_over_day": (day_over_day, {}),
    "failing_destinations": (failing_destinations, {}),
}
RANGES: list[dict[str, Any]] = [
    {},
    {"since": START + timedelta(days=9), "until": START + timedelta(days=40)},
    {"tenant": "acme"},
    {"until": date(2026, 3, 20), "tenant": "bravo"},
]


def in_range(rows: Sequence[Any], chosen: dict[str, Any]) -> list[Any]:
    until = chosen.get("until", datetime.max.replace(tzinfo=UTC))
    until = until if isinstance(until, datetime) else datetime(until.year, until.month, until.day, tzinfo=UTC)
    since = chosen.get("since", datetime.min.replace(tzinfo=UTC))
    return [r for r in rows if since <= r.time < until and chosen.get("tenant", r.tenant_id) == r.tenant_id]


def check(found: list[Row], expected: list[Row]) -> None:
    assert len(found) == len(expected)
    for row, want in zip(found, expected, strict=True):
        floats = [i for i, value in enumerate(want) if isinstance(value, float)]
        assert [float(row[i]) for i in floats] == pytest.approx([want[i] for i in floats], rel=1e-9)
        assert [v for i, v in enumerate(row) if i not in floats] == [v for i, v in enumerate(want) if i not in floats]


@pytest.mark.parametrize("tiers", ["cold", "both"])
@pytest.mark.parametrize("chosen", RANGES, ids=str)
@pytest.mark.parametrize("name", sorted(ORACLES))
def test_a_question_about_attempts_agrees_with_python(
    archived: LogStore, name: str, chosen: dict[str, Any], tiers: Any
) -> None:
    oracle, more = ORACLES[name]
    if name == "noisiest_tenants":
        chosen = {key: value for key, value in chosen.items() if key != "tenant"}
    answer = analysis.ask(archived, name, tiers=tiers, **chosen, **more)
    expected = oracle(in_range(ATTEMPTS, chosen))
    assert expected or chosen, "the data set leaves nothing to compare"
    check(answer.rows, expected)
    assert answer.title and not answer.warnings and not answer.truncated


@pytest.mark.parametrize("chosen", RANGES, ids=str)
def test_questions_about_events_agree_with_python(archived: LogStore, chosen: dict[str, Any]) -> None:
    rows = in_range(EVENTS, chosen)
    check(analysis.ask(archived, "never_attempted", **chosen).rows, never_attempted(rows))
    with archived.database.connection() as connection:
        texts = dict(connection.execute("SELECT id, octet_length(data::text) FROM events").fetchall())
    check(analysis.ask(archived, "payload_size", **chosen).rows, payload_size(rows, texts))


def test_every_question_has_an_oracle_words_and_bound_parameters() -> None:
    known = analysis.questions()
    assert set(known) == {*ORACLES, "never_attempted", "payload_size"} and len(known) >= 12
    for question in known.values():
        assert question.title.endswith("?")
        assert set(re.findall(r"\$(\w+)", question.sql)) == {p.name for p in question.parameters}
    assert list(known) == list(statements("duckdb", "questions"))


def test_a_limit_is_the_first_of_the_same_order(archived: LogStore) -> None:
    whole = analysis.ask(archived, "failure_groups").rows
    assert analysis.ask(archived, "failure_groups", limit=3).rows == whole[:3]
    assert analysis.ask(archived, "failure_groups", limit="3").rows == whole[:3]


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("sucess rate", {}, "success_rate"),
        ("xyzzy", {}, "failure_groups"),
        ("success_rate", {"tennant": "acme"}, "did you mean 'tenant'"),
        ("noisiest_tenants", {"minutes": 5}, "takes no 'minutes'"),
        ("success_rate", {"limit": 0}, "at least 1"),
        ("success_rate", {"limit": "many"}, "whole number"),
        ("success_rate", {"limit": True}, "whole number"),
        ("success_rate", {"since": "monday"}, "2026-08-01T12:00:00Z"),
        ("success_rate", {"since": datetime(2026, 3, 1)}, "time zone"),
        ("success_rate", {"since": 5}, "must be a time"),
        ("success_rate", {"tenant": 7}, "must be text"),
    ],
    ids=str,
)
def test_a_mistake_in_asking_is_said_clearly(
    archived: LogStore, name: str, parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidSelection, match=words):
        analysis.ask(archived, name, **parameters)


def test_a_parameter_is_bound_and_never_becomes_sql(archived: LogStore) -> None:
    assert analysis.ask(archived, "failure_groups", tenant="acme' OR true --").rows == []


# The views


def ids(connection: Any, table: str) -> list[str]:
    return sorted(row[0] for row in connection.execute(f"SELECT id FROM {table}").fetchall())


@pytest.mark.parametrize("tiers", ["cold", "both"])
def test_the_views_hold_every_row_once(archived: LogStore, tiers: Any) -> None:
    with analysis.connect(archived, tiers=tiers) as duck:
        assert ids(duck, "events") == sorted(e.id for e in EVENTS)
        assert ids(duck, "attempts") == sorted(a.id for a in ATTEMPTS)


@pytest.mark.parametrize("step", ["open", "closed", "exported", "cold", "detached", "dropped"])
def test_both_tiers_hold_a_month_once_wherever_it_is(store: LogStore, step: str) -> None:
    store.insert_many(attempts=[attempt("a"), attempt("b", time=START + timedelta(days=40))])
    name = "attempts_2026_03"
    steps: dict[str, Callable[[], object]] = {
        "closed": lambda: partitions.close(store.database, name),
        "exported": lambda: archive.export(store, name),
        "cold": lambda: archive.flip(store, name),
        "detached": lambda: partitions.detach(store.database, name),
        "dropped": lambda: partitions.drop(store.database, name),
    }
    for done in list(steps)[: list(steps).index(step) + 1] if step != "open" else []:
        steps[done]()
    with analysis.connect(store, tiers="both") as duck:
        assert ids(duck, "attempts") == ["a", "b"]
    with analysis.connect(store) as duck:
        assert ids(duck, "attempts") == ([] if step in ("open", "closed", "exported") else ["a"])


def test_rows_are_the_records_with_json_as_text_and_times_in_utc(archived: LogStore) -> None:
    for tiers in ("cold", "both"):
        with analysis.connect(archived, tiers=tiers) as duck:  # type: ignore[arg-type]
            row = duck.execute(
                "SELECT time, data->>'$.text', eligible_for_retry FROM events WHERE id = $id", {"id": "e7"}
            ).fetchone()
            types = dict(duck.execute("SELECT column_name, column_type FROM (DESCRIBE attempts)").fetchall())
        assert row == (EVENTS[7].time, EVENTS[7].data["text"], EVENTS[7].eligible_for_retry)
        assert types["time"] == types["event_time"] == "TIMESTAMP WITH TIME ZONE"
        assert (types["event_data"], types["attempt_number"], types["manual"]) == ("VARCHAR", "INTEGER", "BOOLEAN")
        assert tuple(types) == Attempt.columns


def test_frames_and_arrow_come_out(archived: LogStore) -> None:
    with analysis.connect(archived) as duck:
        frame = duck.execute("SELECT time, id FROM events ORDER BY time").df()
        assert str(frame["time"].dtype) == "datetime64[us, UTC]" and len(frame) == len(EVENTS)
        assert duck.execute("SELECT * FROM attempts").to_arrow_table().num_rows == len(ATTEMPTS)
    answer = analysis.ask(archived, "failure_groups")
    assert str(answer.to_pandas()["first_seen"].dtype) == "datetime64[us, UTC]"


def test_an_empty_archive_has_empty_views_with_the_columns(store: LogStore) -> None:
    for tiers in ("cold", "both"):
        with analysis.connect(store, tiers=tiers) as duck:  # type: ignore[arg-type]
            assert tuple(c[0] for c in duck.execute("SELECT * FROM attempts").description) == Attempt.columns
            assert duck.execute("SELECT count(*) FROM events").fetchone() == (0,)
    assert analysis.ask(store, "success_rate").rows == []


def test_an_unknown_tier_is_refused(store: LogStore) -> None:
    with pytest.raises(InvalidSelection, match="'cold' or 'both'"):
        analysis.connect(store, tiers="hot")  # type: ignore[arg-type]


def test_a_reader_may_ask(archived: LogStore, open_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGSTORE_ARCHIVE", str(archived.settings.archive))
    reader = open_store(archived.database.conninfo, role="reader")
    assert len(analysis.ask(reader, "noisiest_tenants", tiers="both")) == 3
    assert analysis.sandbox(reader, "SELECT count(*) FROM events").rows == [(len(EVENTS),)]


def test_what_cannot_be_read_is_named_never_silently_missing(store: LogStore) -> None:
    store.insert_many(attempts=[attempt("a"), attempt("b", time=START + timedelta(days=1))])
    lost, kept = move(store, "attempts_2026_03", segment_rows=1)
    lost.path(store.settings.archive).unlink()
    for answer in (analysis.sandbox(store, "SELECT * FROM attempts"), analysis.ask(store, "success_rate")):
        assert len(answer) == kept.rows
        assert "1 attempts from 2026-03-01T00:00:00Z" in answer.warnings[0] and lost.segment_id in answer.warnings[0]
    with pytest.warns(UserWarning, match="its file is gone"), analysis.connect(store) as duck:
        assert ids(duck, "attempts") == ["b"]


@pytest.mark.parametrize("damage", [b"", b"PAR1 this is no Parquet any more PAR1"], ids=["emptied", "overwritten"])
def test_a_damaged_file_is_one_sentence_that_names_the_remedy(store: LogStore, damage: bytes) -> None:
    store.insert_many(attempts=[attempt("a")])
    (segment,) = move(store, "attempts_2026_03")
    segment.path(store.settings.archive).write_bytes(damage)
    with pytest.raises(ArchiveError, match="logstore verify"):
        analysis.ask(store, "success_rate")
    with pytest.raises(ArchiveError, match="logstore verify"):
        analysis.connect(store)
    with pytest.raises(SandboxError, match="logstore verify"):
        analysis.sandbox(store, "SELECT * FROM attempts")


def test_a_month_that_moved_is_seen_by_the_next_question_one_exported_by_half_is_not(store: LogStore) -> None:
    store.insert_many(attempts=[attempt("a"), attempt("b", time=START + timedelta(days=40))])
    move(store, "attempts_2026_03")
    archive.export(store, "attempts_2026_04")
    assert analysis.ask(store, "noisiest_tenants").rows[0][1] == 1
    archive.flip(store, "attempts_2026_04")
    assert analysis.ask(store, "noisiest_tenants").rows[0][1] == 2


def test_options_of_the_address_are_kept_when_hot_rows_are_copied(store: LogStore, open_store: Any, dsn: str) -> None:
    store.insert_many(attempts=[attempt("a")])
    with store.database.connection(autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
        connection.execute("ALTER TABLE attempts SET SCHEMA other")
    other = open_store(make_conninfo(dsn, options="-c search_path=public,other"))
    with analysis.connect(other, tiers="both") as duck:
        assert ids(duck, "attempts") == ["a"]


def test_an_answer_shows_hostile_text_as_text(archived: LogStore) -> None:
    answer = analysis.sandbox(archived, "SELECT '<script>alert(1)</script>' AS \"<b>\", NULL AS n")
    shown = answer._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "&lt;b&gt;" in shown


# The commands


@pytest.fixture
def run(archived: LogStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command on the archived store; gives exit code, standard output, standard error."""
    monkeypatch.setenv("LOGSTORE_DSN", archived.database.conninfo)
    monkeypatch.setenv("LOGSTORE_HOME", str(archived.settings.home))

    def run_one(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run_one


def test_sql_answers_people_and_programs(run: Any) -> None:
    code, out, _ = run("sql", "SELECT count(*) AS n, min(time) AS first, 1.5 AS d FROM events", "--json")
    document = json.loads(out)
    first = min(e.time for e in EVENTS).isoformat().replace("+00:00", "Z")
    assert (code, document["columns"], document["rows"]) == (0, ["n", "first", "d"], [[len(EVENTS), first, "1.5"]])
    assert "only the first 2 rows" in run("sql", "SELECT id FROM events", "--rows", "2")[1]
    assert "evil\\x1b" in run("sql", "SELECT 'evil' || chr(27) AS x")[1]
    assert run("sql", "SELECT {'a': [1, NULL]} AS s, 'nan'::float AS f", "--json")[1]


def test_ask_answers_lists_and_corrects(run: Any) -> None:
    code, out, _ = run("ask", "noisiest_tenants", "--limit", "1", "--json")
    assert (code, len(json.loads(out)["rows"])) == (0, 1)
    assert "Which tenants cause the most attempts?" in run("ask", "noisiest_tenants", "--tiers", "both")[1]
    assert {q["name"] for q in json.loads(run("ask", "--json")[1])} == set(analysis.questions())
    assert "failure_groups" in run("ask")[1]
    for wrong, word in [(("ask", "noisy_tenants"), "noisiest_tenants"), (("sql", "DROP VIEW events"), "only SELECT")]:
        code, out, err = run(*wrong)
        assert (code, out) == (2, "") and word in err
    code, _, err = run("ask", "noisiest_tenants", "--tenant", "acme")
    assert code == 2 and "it takes since, until, limit" in err


def test_days_and_windows_before_1970_begin_before_their_times_as_later_ones_do() -> None:
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    duck.execute(
        """CREATE TABLE attempts AS
        SELECT 'acme' AS tenant_id, 'des' AS destination_id, 'failed' AS status, 2 AS attempt_number, time
        FROM (VALUES (TIMESTAMPTZ '1969-12-31 23:58:00+00'), (TIMESTAMPTZ '1970-01-01 00:02:00+00')) AS t(time)"""
    )

    def ask(name: str, **given: int) -> list[Row]:
        question = analysis.questions()[name]
        return duck.execute(question.sql, question.bind(given)).fetchall()

    days = [date(1970, 1, 1), date(1969, 12, 31)]
    assert [row[0] for row in ask("day_over_day")] == days
    assert [row[2] for row in ask("success_rate")] == days
    windows = [row[2] for row in ask("retry_storms", minutes=7, least=1)]
    assert windows == [datetime(1969, 12, 31, 23, 53, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
