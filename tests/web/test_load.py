"""Fifty annotators at once, and a server that is killed meanwhile: nothing is lost, duplicated or assigned twice."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from bursar.annotation.session import AnnotationSession
from bursar.web.database import DATABASE_FILE, WebDatabase
from bursar.web.queue import Overlap, Queue
from tests.postgres import PostgresServer
from tests.web.processes import Crew, Server, people_with_tokens
from tests.web.small import make_project, right

PEOPLE = [f"person {number}" for number in range(50)]
SHARED = Overlap(0.2, 2)
QUICK = 100  # milliseconds in which 19 of 20 answers are on disk


def annotate_and_kill(folder, *, items, seconds, kills, think, database=None):
    """Everybody annotates for a while, and meanwhile the server, or its database, is killed and started again."""
    ledger = {} if database is None else {"ledger": {"url": database.url(schema="load")}}
    make_project(folder, items=items, budget={"seed_items": items}, **ledger)
    tokens = people_with_tokens(folder, PEOPLE, SHARED)
    server = Server(folder).start()
    crew = Crew(server.port, tokens, SHARED, think)

    def meanwhile():
        for _ in range(kills):
            time.sleep(seconds / (kills + 1))
            for killed in [server] if database is None else [database]:
                killed.kill()
                killed.start()

    try:
        crew.run(seconds, meanwhile)
        held = server.call("GET", "/api/people", tokens[PEOPLE[0]])[1]["people"]
        code, _, words = server.stop()
    finally:
        server.process.kill()
    assert code == 0, words
    assert crew.trouble == [], words[-4000:]
    assert bool(crew.faults) == (database is not None), words[-4000:]
    assert all(person["holds"] <= 1 for person in held)
    return crew


def check_ledger(folder, crew, items):
    """The ledger has what was acknowledged, once, and money was charged once."""
    session = AnnotationSession.open(folder)
    try:
        answers = session.ledger.answers()
        said = {(a.item, a.annotator): a for a in answers}
        told = {(item, name) for item, names in crew.acknowledged.items() for name in names}
        assert told <= set(said), "something acknowledged is missing"
        assert len(answers) == len(said), "something is there twice"
        assert not any(len(names) != len(set(names)) for names in crew.acknowledged.values())
        roles = Counter((a.item, a.role) for a in answers)
        assert all(count == 1 for (_, role), count in roles.items() if role == "answer")
        for item in {a.item for a in answers}:
            assert 1 <= sum(roles[item, role] for role in ("answer", "overlap")) <= SHARED.people_for(item)
        assert all(a.labels == right(a.item) for a in answers)
        words = dict(zip(session.corpus.ids.tolist(), session.corpus.words.tolist(), strict=True))
        spent = sum(words[item] + 3 + len(right(item)["slots"]) for item, _ in said)
        assert session.ledger.spent() == spent
        first = sum(role == "answer" for _, role in roles)
        assert len(session.wanted()) == items - first
    finally:
        session.close()
    database = WebDatabase.open(folder / DATABASE_FILE)
    leases = Queue(database).leases()
    assert len({lease.id for lease in leases}) == len({(lease.item, lease.person) for lease in leases})
    database.close()


def test_a_server_that_is_killed_under_load_loses_and_doubles_nothing(tmp_path):
    folder = tmp_path / "project"
    crew = annotate_and_kill(folder, items=3000, seconds=10, kills=1, think=0.4)
    check_ledger(folder, crew, items=3000)
    assert crew.lost  # the kill was felt
    assert len(crew.seconds) > 50
    assert sorted(crew.seconds)[len(crew.seconds) // 2] < 10  # a busy machine; the soak test measures


def test_a_database_that_is_killed_under_load_loses_and_doubles_nothing(tmp_path):
    database, folder = PostgresServer(), tmp_path / "project"
    try:
        crew = annotate_and_kill(folder, items=2000, seconds=10, kills=2, think=0.4, database=database)
        check_ledger(folder, crew, items=2000)
    finally:
        database.stop()
    assert len(crew.seconds) > 50


@pytest.mark.soak
@pytest.mark.parametrize("kills", [0, 4])
def test_fifty_people_save_quickly_and_safely_for_two_minutes(tmp_path, capsys, kills):
    folder = tmp_path / "project"
    crew = annotate_and_kill(folder, items=12_000, seconds=120, kills=kills, think=1.0)
    check_ledger(folder, crew, items=12_000)
    ordered = sorted(crew.seconds)
    middle, slow = 1000 * ordered[len(ordered) // 2], 1000 * crew.p95
    with capsys.disabled():
        print(f"\n{kills} kills, {len(ordered)} answers saved: median {middle:.0f} ms, p95 {slow:.0f} ms")  # noqa: T201
    if not kills:  # whoever comes first after a kill finds everybody else at the door
        assert slow < QUICK, "saving is slow, or this machine is busy with something else"
