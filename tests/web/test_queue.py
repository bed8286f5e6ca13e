"""The queue: order, no item twice, expiring leases, and fifty people at once."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.web.database import DATABASE_FILE, WebDatabase
from bursar.web.http_errors import HTTPError
from bursar.web.queue import MAX_LEASES, Overlap, Queue, WorkItem, choose, draw


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(tmp_path, clock):
    database = WebDatabase.open(tmp_path / DATABASE_FILE, clock)
    yield Queue(database, seconds=600)
    database.close()


def work(count, round=0):
    return WorkList([WorkItem(round, f"u{number}") for number in range(count)])


@dataclass(frozen=True)
class WorkList:
    """A fixed list of items, in the place of a session's."""

    pieces: list[WorkItem]

    def work(self):
        return self.pieces

    def is_open(self, key):
        return any(piece.key == key for piece in self.pieces)


# -- the rule --------------------------------------------------------------------------------------------------------
people = st.sampled_from(["ann", "bob", "eve"])
pieces = st.lists(
    st.tuples(st.integers(0, 9), st.frozensets(people, max_size=3)), max_size=8, unique_by=lambda piece: piece[0]
)


@settings(max_examples=60, deadline=None)
@given(people, pieces, st.dictionaries(st.integers(0, 9), st.frozensets(people)), st.integers(1, 3), st.floats(0, 1))
def test_the_first_item_with_room_for_this_person_is_chosen(person, answered, holding, most, share):
    overlap = Overlap(share, most)
    rows = [WorkItem(0, f"u{number}", by) for number, by in answered]
    held = {(0, f"u{number}"): by for number, by in holding.items()}
    fits = []
    for row in rows:
        others = row.answered | held.get(row.key, frozenset())
        limit = most if draw(row.item) < share else 1
        if person not in others and len(others) < limit:
            fits.append(row)
    assert choose(person, rows, held, overlap) == (fits[0] if fits else None)


def test_the_share_of_overlap_is_kept_and_only_grows_with_it():
    ids = [f"item {number}" for number in range(4000)]
    tenth = {item for item in ids if Overlap(0.1, 3).people_for(item) == 3}
    half = {item for item in ids if Overlap(0.5, 3).people_for(item) == 3}
    assert abs(len(tenth) / len(ids) - 0.1) < 0.02
    assert tenth < half
    assert {Overlap(0.0).people_for(item) for item in ids} == {1}
    assert {Overlap(1.0).people_for(item) for item in ids} == {2}


# -- leases ----------------------------------------------------------------------------------------------------------
def test_items_are_given_in_order_and_each_to_one_person(queue):
    given = [queue.next(name, work(3)) for name in ("ann", "bob", "eve", "max")]
    assert [lease and lease.item for lease in given] == ["u0", "u1", "u2", None]


def test_a_page_that_was_loaded_anew_gets_its_item_back(queue, clock):
    first = queue.next("ann", work(3))
    clock.now += 100
    again = queue.next("ann", work(3))
    assert (again.id, again.item, again.expires_at) == (first.id, first.item, clock.now + 600)


def test_a_page_that_names_what_it_holds_is_given_more_but_not_all(queue):
    known = []
    for _ in range(MAX_LEASES + 3):
        known.append(queue.next("ann", work(20), known).id)
    assert len(set(known)) == MAX_LEASES
    assert len(queue.leases()) == MAX_LEASES


def test_a_lease_that_runs_out_goes_to_the_next_person(queue, clock):
    lease = queue.next("ann", work(1))
    clock.now += 599
    assert queue.next("bob", work(1)) is None
    clock.now += 1
    assert queue.next("bob", work(1)).item == "u0"
    with pytest.raises(HTTPError, match="expired"):
        queue.renew(lease.id, "ann")


def test_a_lease_is_renewed_and_even_revived_while_nobody_else_has_the_item(queue, clock):
    lease = queue.next("ann", work(1))
    clock.now += 500
    assert queue.renew(lease.id, "ann").expires_at == clock.now + 600
    clock.now += 10_000
    assert queue.leases() == []
    assert queue.renew(lease.id, "ann").expires_at == clock.now + 600
    assert queue.next("bob", work(1)) is None


def test_nobody_renews_or_releases_the_lease_of_another(queue):
    lease = queue.next("ann", work(1))
    for act in (queue.renew, queue.release):
        with pytest.raises(HTTPError) as refused:
            act(lease.id, "bob")
        assert refused.value.status == 404
    queue.release(lease.id, "ann")
    assert queue.next("bob", work(1)).item == "u0"


def test_a_lease_for_work_that_is_gone_does_not_come_back(queue):
    queue.next("ann", work(2))
    assert queue.next("ann", WorkList([WorkItem(0, "u1")])).item == "u1"
    assert queue.next("ann", work(2, round=1)).round == 1


def test_where_overlap_is_asked_for_so_many_people_get_an_item_and_nobody_twice(queue):
    queue.set_overlap(Overlap(1.0, 2))
    assert [queue.next(name, work(2)).item for name in ("ann", "bob", "eve")] == ["u0", "u0", "u1"]
    queue.settle((0, "u0"), "ann", over=False)
    answered = [WorkItem(0, "u0", frozenset({"ann"})), WorkItem(0, "u1")]
    assert queue.next("ann", WorkList(answered)).item == "u1"
    assert queue.holders((0, "u0")) == ["bob"]


def test_settling_for_good_takes_the_item_from_everybody(queue):
    queue.set_overlap(Overlap(1.0, 3))
    for name in ("ann", "bob"):
        queue.next(name, work(1))
    queue.settle((0, "u0"), "ann", over=True)
    assert queue.leases() == []


def test_leases_survive_the_server(tmp_path, clock):
    for run in range(2):
        database = WebDatabase.open(tmp_path / DATABASE_FILE, clock)
        queue = Queue(database)
        lease = queue.next("ann", work(2))
        assert lease.item == "u0"
        assert queue.next("bob", work(2)).item == "u1"
        assert len(queue.leases()) == 2, run
        database.close()


# -- everybody at once -----------------------------------------------------------------------------------------------
def annotate_all(queue, items, names, need):
    """Everybody takes and answers until there is nothing left; who answered what."""
    answered = {item: set() for item in items}
    turn, trouble = threading.Lock(), []

    class Rest:
        def work(self):
            with turn:
                return [WorkItem(0, item, frozenset(by)) for item, by in answered.items() if len(by) < need(item)]

        def is_open(self, key):
            with turn:
                return len(answered[key[1]]) < need(key[1])

    def annotate(name):
        while lease := queue.next(name, Rest()):
            with turn:
                if name in answered[lease.item] or len(answered[lease.item]) >= need(lease.item):
                    trouble.append(lease)
                answered[lease.item].add(name)
                over = len(answered[lease.item]) >= need(lease.item)
            queue.settle(lease.key, name, over)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(annotate, names))
    assert not trouble
    return answered


def test_fifty_people_at_once_answer_every_item_as_often_as_it_needs(queue):
    queue.set_overlap(Overlap(0.3, 2))
    names = [f"person {number}" for number in range(50)]
    answered = annotate_all(queue, [f"u{number}" for number in range(150)], names, queue.overlap.people_for)
    assert {item: len(by) for item, by in answered.items()} == {i: queue.overlap.people_for(i) for i in answered}
    assert Counter(len(by) for by in answered.values())[2] > 20
    assert queue.leases() == []
