"""A page through list_attempt, beside the same SQL sent by psycopg, the seed's OR-form, OFFSET, and sqlakeyset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlakeyset
from sqlalchemy import create_engine, select

from bench import data
from bench.measure import Comparison, Result, Work, compare
from logstore import Attempt, LogStore, Selection, cursor, filters
from logstore.cursor import Position
from logstore.queries import question
from logstore.tables import attempts

ROWS = {"small": 120_000, "full": 3_000_000}
MONTHS = (3, 60)
_SAME, _SEED, _WALK = "same SQL by psycopg", "the seed's OR-form", "the same, of all tenants"
_TENANT = "tenant_1"
_WHERE = "data.amount >= 500"  # half of the records
_COLUMNS = ", ".join(Attempt.columns)
_ORDER = "ORDER BY time DESC, id DESC"
_OR_FORM = f"""
SELECT {_COLUMNS} FROM attempts
WHERE (%(tenant)s = '' OR tenant_id = %(tenant)s)
  AND (%(topics)s::text[] IS NULL OR cardinality(%(topics)s::text[]) = 0 OR topic = ANY(%(topics)s::text[]))
  AND (time < %(time)s OR (time = %(time)s AND id < %(id)s))
{_ORDER} LIMIT %(limit)s"""


@dataclass(frozen=True, kw_only=True)
class _Page:
    name: str
    selection: Selection
    skip: int  # records before it
    limit: int = 100

    @property
    def tenant(self) -> str:
        return "".join(self.selection.tenant_ids)


def run(size: str) -> Iterator[Result]:
    for months in MONTHS:
        store = data.log(ROWS[size], months)
        with store.database.connect(autocommit=True) as connection:
            for page in _pages(ROWS[size]):
                yield _compare(store, connection, page, months)


def _pages(rows: int) -> list[_Page]:
    one, few = Selection(tenant_ids=(_TENANT,)), Selection(tenant_ids=(data.SMALL_TENANT,))
    deep = rows // data.TENANTS * 9 // 10  # nine tenths down the tenant's list
    middle = rows // data.TENANTS * 45 // 100  # so that a page of one topic still fills
    topics = {n: one.but(topics=tuple(f"topic_{k}" for k in range(n))) for n in (1, 5, 20)}
    return [
        _Page(name="first page of a tenant", selection=one, skip=0),
        _Page(name="deep page of a tenant", selection=one, skip=deep),
        _Page(name="first page of a small tenant", selection=few, skip=0),
        _Page(name="page 10 000 of 10", selection=Selection(), skip=100_000, limit=10),
        *(
            _Page(name=f"first page, {n} topic{'s' * (n > 1)}", selection=chosen, skip=0)
            for n, chosen in topics.items()
        ),
        *(
            _Page(name=f"deep page, {n} topic{'s' * (n > 1)}", selection=chosen, skip=middle)
            for n, chosen in topics.items()
        ),
        _Page(name="deep page, where", selection=one.but(where=_WHERE), skip=deep),
    ]


def _compare(store: LogStore, connection: psycopg.Connection[Any], page: _Page, months: int) -> Result:
    position = place(connection, page.tenant, page.skip)
    product = turn(store, page.selection, position, page.limit)
    rivals = {_SAME: same_sql(connection, page.selection, position, page.limit)}
    # A page of ten is over before the second question, whether a month has moved, is answered; there depth is promised.
    promises = {_SAME: 1.5} if page.limit >= 100 else {"OFFSET": 0.2, "sqlakeyset": 1.0}
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(store.database.conninfo))
    with engine.connect() as plain:
        if page.selection.where is None:
            rivals["sqlakeyset"] = _sqlakeyset(plain, page, position)
        if position is not None and page.selection.where is None:
            rivals[_SEED] = _seed(connection, page, position)
        if position is not None and not page.selection.topics and page.selection.where is None:
            rivals["OFFSET"] = _offset(connection, page)
        if page.tenant and page.selection == Selection(tenant_ids=(page.tenant,)):
            # What no index can beat: as many rows along the primary key. Whoever loses the tenant's index is seen here.
            everywhere = place(connection, "", page.skip * data.TENANTS)
            rivals[_WALK] = same_sql(connection, Selection(), everywhere, page.limit)
            promises[_WALK] = 2.0
        return compare(
            Comparison(
                name=f"{page.name}, {months} months",
                product=product,
                rivals=rivals,
                promises=promises,
                repeat=50,
                rounds=9,
            )
        )


def place(connection: psycopg.Connection[Any], tenant: str, skip: int) -> Position | None:
    """Where a page begins that many records down the list of a tenant, or of all."""
    if not skip:
        return None
    text = f"SELECT time, id FROM attempts WHERE %s IN ('', tenant_id) {_ORDER} LIMIT 1 OFFSET %s"
    found = connection.execute(text, [tenant, skip - 1]).fetchone()
    assert found is not None
    return Position(*found)


def turn(store: LogStore, selection: Selection, position: Position | None, limit: int) -> Work:
    token = None if position is None else cursor.encode("attempt", position)
    return lambda: store.list_attempt(selection, limit=limit, next=token)


def same_sql(connection: psycopg.Connection[Any], selection: Selection, position: Position | None, limit: int) -> Work:
    """What a page should send. Where one index serves it is written out here, to see when the product's is another."""
    if selection.where is not None or len(selection.topics) > 1:
        where = None if selection.where is None else filters.parse(selection.where, "attempt")
        asked = question("attempt", selection, position=position, ascending=False, limit=limit + 1, where=where)
        text, values = asked.sql()
    else:
        given = {"tenant_id": selection.tenant_ids, "topic": selection.topics}
        values = {name: one for name, (one, *_) in ((n, v) for n, v in given.items() if v)}
        conditions = [f"{name} = %({name})s" for name in values]
        if position is not None:
            values |= {"time": position.time, "at_id": position.id}
            conditions += ["time <= %(time)s", "(time, id) < (%(time)s, %(at_id)s)"]
        kept = " AND ".join(conditions) or "true"
        text = f"SELECT {_COLUMNS} FROM attempts WHERE {kept} {_ORDER} LIMIT {limit + 1}"
    return lambda: connection.execute(text, values).fetchall()


def _seed(connection: psycopg.Connection[Any], page: _Page, position: Position) -> Work:
    values = {"tenant": page.tenant, "topics": list(page.selection.topics), "limit": page.limit + 1}
    values |= {"time": position.time, "id": position.id}
    return lambda: connection.execute(_OR_FORM, values).fetchall()


def _offset(connection: psycopg.Connection[Any], page: _Page) -> Work:
    whose = "tenant_id = %(tenant)s" if page.tenant else "true"
    text = f"SELECT {_COLUMNS} FROM attempts WHERE {whose} {_ORDER} LIMIT {page.limit + 1} OFFSET {page.skip}"
    return lambda: connection.execute(text, {"tenant": page.tenant}).fetchall()


def _sqlakeyset(connection: Any, page: _Page, position: Position | None) -> Work:
    statement = select(attempts).order_by(attempts.c.time.desc(), attempts.c.id.desc())
    if page.tenant:
        statement = statement.where(attempts.c.tenant_id == page.tenant)
    if page.selection.topics:
        statement = statement.where(attempts.c.topic.in_(page.selection.topics))
    after = None if position is None else (position.time, position.id)
    return lambda: sqlakeyset.select_page(connection, statement, per_page=page.limit, after=after)
