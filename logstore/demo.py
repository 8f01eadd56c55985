"""Realistic sample data of a webhook delivery platform, the same for the same (events, end, days, seed)."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from http import HTTPStatus
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from logstore.errors import InvalidSelection
from logstore.records import Attempt, Event, Json, from_micros, to_micros

TENANTS = """acme-retail northwind-foods contoso-bank globex-logistics blue-heron-books tailwind-air hooli-media
initech-payroll umbra-health stark-tools wayne-motors oceanic-travel soylent-grocery vandelay-imports wonka-sweets
cyberdyne-labs gringotts-pay piedpiper-cloud duff-brewing los-pollos monsters-energy aperture-optics bluth-homes
sirius-robotics kwik-corner"""  # largest first: the n-th publishes about n ** -1.3 of what the first one does
PLACES = {  # region: city, country, currency
    "eu": (("Berlin", "DE", "EUR"), ("Málaga", "ES", "EUR"), ("Kraków", "PL", "PLN"), ("Malmö", "SE", "SEK")),
    "us": (("Austin", "US", "USD"), ("Portland", "US", "USD"), ("Montréal", "CA", "CAD")),
    "ap": (("Sydney", "AU", "AUD"), ("Whangārei", "NZ", "NZD"), ("Singapore", "SG", "SGD")),
}
NAMES = ("Zoë Müller", "Grace Okafor", "José Núñez", "Sam O'Brien", "Łukasz Żak", "田中 愛子", "Мария Орлова")
MAILBOXES = ("zoe.mueller", "grace.okafor", "jose.nunez", "sam.obrien", "lukasz.zak", "aiko.tanaka", "maria.orlova")
PRODUCTS = ("Espresso cups", "Linen shirt", "USB-C dock", "Trail shoes", "Crème brûlée kit", "Desk lamp", "Notebook A5")
PLANS = {"starter": 19.0, "team": 99.0, "business": 349.0}
NOTES = ("Leave it at the door, please.", "Gift: <b>no invoice</b> in the box!", "Ring twice – the bell is weak.", None)

# How long after a failure the next attempt follows; when the last of them fails too, the delivery is exhausted.
RETRY_AFTER = [timedelta(seconds=seconds) for seconds in (30, 120, 600, 3600, 6 * 3600)]
FAILURES = {"500": 30, "503": 22, "timeout": 16, "502": 10, "429": 10, "connection_refused": 6, "404": 3, "422": 3}
NO_RESPONSE = {"timeout": "no response within 10 s", "connection_refused": "dial tcp: connection refused"}
HOURS = (2, 2, 1, 1, 2, 3, 5, 8, 11, 13, 14, 13, 12, 13, 14, 14, 12, 10, 9, 8, 7, 5, 4, 3)  # weight of each hour, UTC
WEEKEND = 0.45

_HOUR = 3_600_000_000  # microseconds
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_Place = tuple[str, str, str]


def _id(rng: Random, prefix: str, length: int = 22) -> str:
    return prefix + "".join(rng.choices(_ALPHABET, k=length))


def _customer(rng: Random) -> Json:
    number = rng.randrange(400)  # few enough that customers come back
    name, mailbox = NAMES[number % len(NAMES)], f"{MAILBOXES[number % len(NAMES)]}{number}@example.com"
    customer = {"id": f"cus_{number:05d}", "name": name, "email": mailbox}
    return customer | {"phone": f"+1 555 {rng.randrange(10**4):04d}"} if rng.random() < 0.3 else customer


def _item(rng: Random) -> Json:
    item = {"sku": f"SKU-{rng.randrange(10**4):04d}", "name": rng.choice(PRODUCTS), "quantity": rng.randint(1, 4)}
    return item | {"price": round(rng.lognormvariate(3.2, 0.8), 2)}


def _bill(rng: Random, place: _Place) -> Json:
    items = [_item(rng) for _ in range(1 + min(30, int(rng.expovariate(0.22))))]
    amount = round(sum(item["quantity"] * item["price"] for item in items), 2)
    return {"amount": amount, "currency": place[2], "customer": _customer(rng), "items": items}


def _order(rng: Random, verb: str, place: _Place) -> Json:
    code = rng.randrange(10_000, 99_999)
    # Most publishers write a postal code as text; one old client sends a number.
    address = {"city": place[0], "country": place[1], "zip": code if rng.random() < 0.02 else str(code)}
    shipping = {"method": rng.choice(("standard", "express", "pickup")), "address": address}
    if verb == "shipped":
        shipping["tracking"] = _id(rng, "1Z", 16)
    note = {"note": rng.choice(NOTES)} if rng.random() < 0.25 else {}
    return {"id": _id(rng, "ord_", 14), "status": verb, "shipping": shipping} | _bill(rng, place) | note


def _invoice(rng: Random, verb: str, place: _Place) -> Json:
    bill = _bill(rng, place)
    tax = {"rate": 0.19, "amount": round(bill["amount"] * 0.19, 2)}
    return {"id": _id(rng, "inv_", 14), "number": f"INV-{rng.randrange(10**6):06d}", "status": verb, "tax": tax} | bill


def _payment(rng: Random, verb: str, place: _Place) -> Json:
    card = {"brand": rng.choice(("visa", "mastercard", "amex")), "last4": f"{rng.randrange(10**4):04d}"}
    failure = {"code": rng.choice(("card_declined", "insufficient_funds", "expired_card")), "retryable": True}
    payment = {"id": _id(rng, "pay_", 14), "status": verb, "card": card, "failure": failure, "customer": _customer(rng)}
    return payment | {"amount": round(rng.lognormvariate(4, 0.9), 2), "currency": place[2]}


def _user(rng: Random, verb: str, place: _Place) -> Json:
    user = _customer(rng) | {"city": place[0], "plan": rng.choice(list(PLANS)), "locale": f"en-{place[1]}"}
    user["roles"] = rng.sample(("admin", "billing", "editor", "viewer"), rng.randint(1, 3))
    user["preferences"] = {"newsletter": rng.random() < 0.4, "theme": rng.choice(("light", "dark")), "digest": "weekly"}
    return user | {"changes": {"plan": {"from": "trial", "to": user["plan"]}}} if verb == "updated" else user


def _subscription(rng: Random, verb: str, place: _Place) -> Json:
    plan, seats = rng.choice(list(PLANS)), rng.randint(1, 40)
    terms = {"plan": plan, "seats": seats, "amount": PLANS[plan] * seats, "currency": place[2], "interval": "month"}
    return {"id": _id(rng, "sub_", 14), "status": verb, "customer": _customer(rng), "auto_renew": True} | terms


def _inventory(rng: Random, verb: str, place: _Place) -> Json:
    stock = {"level": verb, "on_hand": rng.randint(0, 9), "threshold": 10, "warehouse": place[0]}
    supplier = {"id": f"sup_{rng.randrange(90):03d}", "lead_days": rng.choice((3, 7, 21, None))}
    history = [rng.randint(0, 500) for _ in range(rng.randint(14, 60))]
    return {"id": _id(rng, "stk_", 14), "item": _item(rng), "supplier": supplier, "sold_per_day": history} | stock


def _response(rng: Random, code: str) -> Json:
    if code in NO_RESPONSE:
        return {"error": NO_RESPONSE[code], "duration_ms": 10_000 if code == "timeout" else rng.randint(1, 40)}
    phrase, proxy = HTTPStatus(int(code)).phrase, code in ("502", "503")  # a proxy answers for a server that cannot
    body = f"<html><title>{code} {phrase}</title></html>" if proxy else json.dumps({"message": phrase})
    headers = {"content-type": "text/html" if proxy else "application/json", "server": "nginx"}
    if code in ("429", "503"):
        headers["retry-after"] = "30"
    headers["x-request-id"] = f"{rng.getrandbits(64):016x}"
    took = int(rng.lognormvariate(4.8, 0.7)) + 5
    return {"status": int(code), "headers": headers, "body": "" if code == "204" else body, "duration_ms": took}


TOPICS: dict[str, tuple[int, Callable[[Random, str, _Place], Json]]] = {  # topic: popularity, payload
    "order.created": (30, _order),
    "order.shipped": (20, _order),
    "user.updated": (14, _user),
    "invoice.paid": (12, _invoice),
    "inventory.low": (8, _inventory),
    "user.created": (6, _user),
    "subscription.renewed": (6, _subscription),
    "payment.failed": (5, _payment),
    "order.cancelled": (4, _order),
    "invoice.overdue": (3, _invoice),
}


class Destination(NamedTuple):
    """An endpoint of a tenant, and how often a first attempt fails there on an ordinary day."""

    id: str
    failure_rate: float


class Tenant(NamedTuple):
    """A customer of the platform; `routes` says which destinations subscribe to which topic."""

    id: str
    region: str
    destinations: list[Destination]
    routes: dict[str, list[Destination]]


class Incident(NamedTuple):
    """Something out of the ordinary: when and where; an empty field means all of the tenant's."""

    start: datetime
    end: datetime
    tenant_id: str
    destination_id: str = ""
    topic: str = ""

    def hits(self, event: Event, destination_id: str, time: datetime) -> bool:
        here = self.tenant_id == event.tenant_id and self.destination_id in ("", destination_id)
        return here and self.topic in ("", event.topic) and self.start <= time < self.end


class Incidents(NamedTuple):
    """What happens in the sample data besides ordinary days."""

    outage: Incident
    slow_week: Incident
    burst: Incident
    dead_endpoint: Incident


@cache
def tenants() -> tuple[Tenant, ...]:
    """The tenants, largest first; the same whatever the seed, so that docs and tests can name them."""
    return tuple(_tenant(Random(name), name) for name in TENANTS.split())


def _tenant(rng: Random, name: str) -> Tenant:
    rates = [rng.choice((0.005, 0.01, 0.02, 0.12)) for _ in range(rng.randint(2, 5))]
    destinations = [Destination(_id(rng, "des_"), rate) for rate in rates]
    # The first one takes everything, the others two topics each; a list of its own per topic, since they are added to.
    routes = {topic: [destinations[0]] for topic in TOPICS}
    for destination in destinations[1:]:
        for topic in rng.sample(list(TOPICS)[2:], 2):
            routes[topic].append(destination)
    return Tenant(name, rng.choice(list(PLACES)), destinations, routes)


def incidents(*, end: datetime, days: int = 90) -> Incidents:
    """Where and when the sample data for these arguments is out of the ordinary."""
    acme, northwind, _, globex, books = tenants()[:5]
    day, hour = timedelta(days=1), timedelta(hours=1)
    down, slow, busy = (_workday(end - share * days * day) for share in (0.1, 0.45, 0.05))
    return Incidents(
        outage=Incident(down + 8 * hour, down + 16 * hour, acme.id, acme.destinations[0].id),
        slow_week=Incident(slow, slow + 7 * day, northwind.id),
        burst=Incident(busy + 14 * hour, busy + 15 * hour, books.id, topic="inventory.low"),
        dead_endpoint=Incident(end - days * day, end, globex.id, globex.destinations[1].id),
    )


def _workday(time: datetime) -> datetime:
    """The start of that day, or of the Friday before a weekend: weekends are thin, and incidents should show."""
    midnight = time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=max(0, midnight.weekday() - 4))


def events_and_attempts(
    *, events: int = 20_000, end: datetime, days: int = 90, seed: int = 7
) -> Iterator[tuple[Event, list[Attempt]]]:
    """Events in the order of their time, each with its attempts up to `end`."""
    if end.utcoffset() is None:
        raise InvalidSelection(f"end must carry a time zone; {end.isoformat()} has none: add tzinfo=datetime.UTC")
    if events < 0 or days < 1:
        raise InvalidSelection(f"events={events}, days={days}: ask for 0 events or more, over 1 day or more")
    return _Traffic(Random(seed), end.astimezone(UTC), days).stream(events)


def write(folder: str | Path, *, events: int = 20_000, end: datetime, days: int = 90, seed: int = 7) -> list[Path]:
    """JSON-lines files of the sample data, cut by event time into four of each kind or more; the paths written."""
    stream = events_and_attempts(events=events, end=end, days=days, seed=seed)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    size = min(50_000, -(-events // 4)) or 1
    paths: list[Path] = []
    for part in range(-(-events // size)):
        pair = [folder / f"{kind}-{part:03d}.jsonl" for kind in ("events", "attempts")]
        with pair[0].open("w", encoding="utf-8") as first, pair[1].open("w", encoding="utf-8") as second:
            for event, attempts in islice(stream, size):
                first.write(event.to_json() + "\n")
                second.writelines(attempt.to_json() + "\n" for attempt in attempts)
        paths += pair
    return paths


class _Traffic:
    """One run of the generator: its dice, its clock, and what is to go wrong."""

    def __init__(self, rng: Random, end: datetime, days: int) -> None:
        self.rng, self.start, self.end, self.days = rng, end - timedelta(days=days), end, days
        self.special = incidents(end=end, days=days)

    def stream(self, events: int) -> Iterator[tuple[Event, list[Attempt]]]:
        rng, burst = self.rng, self.special.burst
        extra = events // 50 if self.start <= burst.start and burst.end <= self.end else 0
        ordinary = ((micros, False) for micros in self.moments(self.start, self.rhythm(), events - extra))
        bursting = ((micros, True) for micros in self.moments(burst.start, [1.0], extra))
        shares = list(accumulate(rank**-1.3 for rank in range(1, len(tenants()) + 1)))
        popularity = list(accumulate(weight for weight, _ in TOPICS.values()))
        loud = next(tenant for tenant in tenants() if tenant.id == burst.tenant_id)
        for micros, in_burst in heapq.merge(ordinary, bursting):
            tenant = loud if in_burst else rng.choices(tenants(), cum_weights=shares)[0]
            topic = burst.topic if in_burst else rng.choices(list(TOPICS), cum_weights=popularity)[0]
            event = self.event(tenant, topic, from_micros(micros))
            attempts = [attempt for to in self.targets(tenant, event) for attempt in self.deliver(event, to)]
            yield event, sorted(attempts, key=lambda attempt: attempt.time)

    def rhythm(self) -> list[float]:
        """The weight of every hour: days differ, weekends are quiet, nights too."""
        weights = []
        for slot in range(self.days * 24):
            time = self.start + timedelta(hours=slot)
            if slot % 24 == 0:
                mood = self.rng.lognormvariate(0, 0.1)
            weights.append(HOURS[time.hour] * (WEEKEND if time.weekday() >= 5 else 1.0) * mood)
        return weights

    def moments(self, start: datetime, weights: list[float], count: int) -> Iterator[int]:
        """That many microseconds in order, spread over hours by their weights; only one hour is held at a time."""
        first, total, done = to_micros(start), sum(weights), 0
        for slot, reached in enumerate(accumulate(weights)):
            due = round(count * reached / total)
            yield from sorted(first + slot * _HOUR + self.rng.randrange(_HOUR) for _ in range(due - done))
            done = due

    def event(self, tenant: Tenant, topic: str, time: datetime) -> Event:
        rng = self.rng
        region = tenant.region if rng.random() < 0.9 else rng.choice(list(PLACES))
        family, verb = topic.split(".")
        data = TOPICS[topic][1](rng, verb, rng.choice(PLACES[region]))
        data |= {"object": family, "url": f"https://api.{tenant.id}.example.com/v1/{family}/{data['id']}"}
        if "amount" in data and rng.random() < 0.01:
            data["amount"] = f"{data['amount']:.2f}"  # in real logs a field changes its type now and then
        metadata = {"region": region, "source": rng.choice(("api", "api", "api", "dashboard", "batch"))}
        metadata |= {
            "trace_id": f"{rng.getrandbits(128):032x}",
            "api_version": rng.choice(("2025-11-01", "2026-02-15")),
        }
        if rng.random() < 0.1:
            metadata["idempotency_key"] = f"{rng.getrandbits(64):016x}"
        to = rng.choice(tenant.destinations).id if rng.random() < 0.02 else ""
        keys = {"id": _id(rng, "evt_"), "tenant_id": tenant.id, "destination_id": to, "topic": topic}
        return Event(**keys, time=time, eligible_for_retry=rng.random() >= 0.03, data=data, metadata=metadata)

    def targets(self, tenant: Tenant, event: Event) -> list[Destination]:
        """The destination that the event names, or all that subscribe; about 1 % reach none (disabled, lost)."""
        if self.rng.random() < 0.01:
            return []
        named = [destination for destination in tenant.destinations if destination.id == event.destination_id]
        return named or tenant.routes[event.topic]

    def deliver(self, event: Event, to: Destination) -> Iterator[Attempt]:
        """Automatic attempts until one succeeds or none is left, then sometimes one by hand; none after the end."""
        rng = self.rng
        slow = self.special.slow_week.hits(event, to.id, event.time)
        time = event.time + timedelta(seconds=rng.lognormvariate(6.8 if slow else -1.0, 0.6))
        waits = [*RETRY_AFTER, None] if event.eligible_for_retry else [None]
        for number, wait in enumerate(waits, 1):
            if time > self.end:
                return
            attempt = self.attempt(event, to, time, number)
            yield attempt
            if attempt.status == "success" or wait is None:
                break
            time += wait * rng.uniform(1.0, 1.15)
        by_hand = time + timedelta(hours=rng.uniform(1, 20))
        if rng.random() < (0.003 if attempt.status == "success" else 0.2) and by_hand <= self.end:
            yield self.attempt(event, to, by_hand, number + 1, manual=True)

    def attempt(self, event: Event, to: Destination, time: datetime, number: int, manual: bool = False) -> Attempt:
        code = self.code(event, to, time, number)
        return Attempt.of(
            event,
            id=_id(self.rng, "att_"),
            destination_id=to.id,
            status="success" if code.startswith("2") else "failed",
            time=time,
            attempt_number=number,
            manual=manual,
            code=code,
            response_data=_response(self.rng, code),
        )

    def code(self, event: Event, to: Destination, time: datetime, number: int) -> str:
        rng, special = self.rng, self.special
        if special.dead_endpoint.hits(event, to.id, time):
            return "404" if self.end - time > time - self.start else "410"  # halfway its host learnt to say "gone"
        if special.outage.hits(event, to.id, time) and rng.random() < 0.97:
            return rng.choice(("503", "503", "timeout"))
        if special.burst.hits(event, to.id, time) and rng.random() < 0.25:
            return "429"
        # What has failed once is likely to fail again: failures come in clusters.
        if rng.random() < (to.failure_rate if number == 1 else 0.35):
            return rng.choices(list(FAILURES), list(FAILURES.values()))[0]
        return rng.choice(("200", "200", "200", "200", "202", "204"))
