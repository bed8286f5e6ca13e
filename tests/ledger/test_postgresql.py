"""Ledgers on a PostgreSQL server: how they are addressed, what is rejected, and what is never shown."""

from __future__ import annotations

import sys
import time
import traceback
from urllib.parse import quote

import pytest

from bursar.errors import LedgerError
from bursar.ledger import Ledger
from bursar.ledger.places import holds_password, is_url, public_url, read_url, sibling_url
from tests.decisions import Note
from tests.ledger.ledgers import PostgresPlace, bought, corpus
from tests.postgres import GUARDED, PASSWORD

WRONG = "no such word"


@pytest.fixture
def place(place_for_ledger):
    return place_for_ledger("postgresql")


# -- addresses ---------------------------------------------------------------------------------------------------------
def test_ledgers_in_schemas_of_their_own_know_nothing_of_each_other(postgres, place):
    names = (f'{place.schema}/"RANDOM"', place.schema, place.schema.upper())
    ledgers = [Ledger.open(postgres.url(schema=name), corpus()) for name in names]
    for number, ledger in enumerate(ledgers):
        for key in range(number + 1):
            ledger.submit(bought(f"k{key}", item=f"u{key}"))
    assert [ledger.spent() for ledger in ledgers] == [3, 6, 9]
    for ledger in ledgers:
        ledger.close()


def test_without_a_schema_a_ledger_is_in_the_one_that_the_database_gives(postgres):
    postgres.raw("CREATE DATABASE team TEMPLATE template0")
    url = postgres.url(database="team")
    assert not Ledger.exists(url)
    first = Ledger.open(url, corpus())
    first.submit(bought())
    named = Ledger.open(f"{url}&schema=public".replace("postgresql://", "postgresql+psycopg://"), corpus())
    assert named.spent() == 3
    assert first.where == f"postgresql://bursar@/team?host={quote(str(postgres.folder), safe='')}"
    first.close()
    named.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://name:hidden@host/db", "mysql://"),
        ("sqlite:///hidden.db", "give a file"),
        ("postgresql+psycopg2://name:hidden@host/db", "psycopg2"),
        ("postgresql://name:hidden@host:port/db", "cannot be read"),
        ("postgresql:/name:hidden@host/db", "cannot be read"),
        ("postgresql://name:hid@den@host/db", "%40"),
        ("postgresql://name:hidden@host/db?schema=", "schema ''"),
        ("postgresql://name:hidden@host/db?schema=pg_mine", "pg_mine"),
        ("postgresql://name:hidden@host/db?schema=a&schema=b", "schema"),
        ("postgresql://name:hidden@host/db?schema=" + "ü" * 32, "63 bytes"),
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(url, said):
    with pytest.raises(LedgerError) as caught:
        Ledger.open(url, corpus())
    assert said in str(caught.value)
    assert "hid" not in str(caught.value)


def test_a_file_is_not_taken_for_an_address():
    assert not any(is_url(place) for place in (":memory:", "ledger.sqlite", "/runs/a:b/ledger.sqlite", "C:/x.sqlite"))
    assert all(is_url(place) for place in ("postgres://h/d", "postgresql:/h/d", "postgresql+psycopg://h/d"))


def test_a_ledger_is_kept_on_no_other_server():
    with pytest.raises(LedgerError, match="a ledger cannot be kept at mysql://") as refused:
        read_url("mysql://name:secret@host/team")
    assert "secret" not in str(refused.value)


def test_it_is_known_whether_an_address_has_a_password():
    assert holds_password(read_url("postgresql://name:secret@host/team"))
    assert not holds_password(read_url("postgresql://host/team"))


def test_a_schema_beside_the_default_one_has_its_own_name():
    assert sibling_url("postgresql://host/team", "RANDOM") == "postgresql://host/team?schema=RANDOM"


def test_the_schema_beside_another_must_have_a_name_that_fits():
    assert read_url(sibling_url("postgresql://h/d?schema=a b&sslmode=require", "MT-MIN+BLP_AL")).query == {
        "schema": "a b/MT-MIN+BLP_AL",
        "sslmode": "require",
    }
    with pytest.raises(LedgerError, match="63 bytes"):
        sibling_url("postgresql://h/d?schema=" + "a" * 60, "RANDOM")


def test_without_the_driver_its_name_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"bursar\[postgres\]"):
        Ledger.open("postgresql://host/db", corpus())


# -- secrets -----------------------------------------------------------------------------------------------------------
def test_a_password_opens_the_door_and_is_seen_nowhere(postgres, place, monkeypatch, capfd):
    url = postgres.url(GUARDED, PASSWORD, schema=place.schema)
    by_url = Ledger.open(url, corpus())
    by_url.submit(bought())
    by_query = Ledger.open(postgres.url(GUARDED, schema=place.schema, password=PASSWORD), corpus())
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    by_environment = Ledger.open(postgres.url(GUARDED, schema=place.schema), corpus())
    for ledger in (by_url, by_query, by_environment):
        assert ledger.spent() == 3
        for text in (ledger.where, repr(ledger), repr(ledger.__dict__)):
            assert PASSWORD not in text
            assert quote(PASSWORD) not in text
        assert ledger.where == f"postgresql://guarded@/postgres?host={quote(str(postgres.folder), safe='')}&schema=" + (
            place.schema.replace(" ", "+")
        )
        with pytest.raises(LedgerError) as caught:
            ledger.decide(Note(round=0, text=1), Note(round=0, text=2))
        assert PASSWORD not in str(caught.value)
        ledger.close()
    assert PASSWORD not in "".join(capfd.readouterr())


@pytest.mark.parametrize("more", [{"user": GUARDED}, {"database": "nowhere"}, {"host": "/nowhere"}, {"sslmode": "x"}])
def test_whoever_is_not_let_in_is_told_why_and_the_wrong_password_is_not(postgres, more):
    url = postgres.url(**{"password": WRONG, **more})
    with pytest.raises(LedgerError, match="cannot be opened as a ledger: ") as caught:
        Ledger.open(url, corpus())
    said = "".join(traceback.format_exception(caught.value))
    assert WRONG not in said
    assert "Fix: " not in said
    assert quote(WRONG) not in said
    with pytest.raises(LedgerError):
        Ledger.exists(url)


def test_whoever_forgot_the_password_is_told_where_it_goes(postgres, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with pytest.raises(LedgerError, match=r"Fix: give it in PGPASSWORD or in the file ~/\.pgpass"):
        Ledger.open(postgres.url(GUARDED, passfile="/dev/null"), corpus())


def test_words_of_the_server_that_hold_the_password_are_not_repeated(postgres):
    """Here the password is the name of a database that is not there, which the server repeats."""
    with pytest.raises(LedgerError) as caught:
        Ledger.open(postgres.url(password="sesame", database="sesame-street"), corpus())
    assert str(caught.value).endswith("not shown, because it contains a password")


def test_what_is_shown_of_an_address_is_who_where_and_which():
    url = read_url("postgresql+psycopg://me:secret@h:5433/d?schema=s&password=secret&sslkey=k&host=h2&options=-csecret")
    assert public_url(url) == "postgresql://me@h:5433/d?host=h2&schema=s"


# -- promises ----------------------------------------------------------------------------------------------------------
def test_commits_are_on_disk_and_turns_are_kept_whatever_the_address_asks_for(postgres, place):
    asked = "-c synchronous_commit=off -c default_transaction_isolation=serializable -c search_path=public"
    ledger = Ledger.open(postgres.url(schema=place.schema, options=asked), corpus())
    with ledger._writing() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"
        assert connection.exec_driver_sql("SELECT current_schema()").scalar() == place.schema
        assert connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").scalar() == 1
    with ledger._reading() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "repeatable read"
        assert connection.exec_driver_sql("SHOW transaction_read_only").scalar() == "on"
    ledger.submit(bought())
    assert ledger.spent() == 3
    ledger.close()


def test_a_stronger_kind_of_commit_is_left_as_it_is(postgres, place):
    ledger = Ledger.open(postgres.url(schema=place.schema, options="-c synchronous_commit=remote_apply"), corpus())
    with ledger._reading() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "remote_apply"
    ledger.close()


def set_fsync(server, value):
    server.raw(f"ALTER SYSTEM SET fsync = {value}")
    server.raw("SELECT pg_reload_conf()")
    until = time.monotonic() + 30
    while server.raw("SHOW fsync") != [(value,)] and time.monotonic() < until:
        time.sleep(0.01)


def test_a_server_that_does_not_wait_for_its_disk_is_refused(postgres, place):
    set_fsync(postgres, "off")
    try:
        with pytest.raises(LedgerError, match=r"fsync = off.*Fix: turn fsync on"):
            place.open()
    finally:
        set_fsync(postgres, "on")
    place.open().close()


def test_a_database_that_cannot_keep_all_text_is_refused(postgres):
    postgres.raw("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(LedgerError, match="needs UTF8"):
        Ledger.open(postgres.url(database="ascii"), corpus())


def test_a_schema_that_holds_something_else_is_refused_and_left_as_it_was(postgres, tmp_path):
    postgres.raw("CREATE SCHEMA others")
    theirs = PostgresPlace(postgres, "others", tmp_path)
    theirs.raw("CREATE TABLE submissions (title TEXT)")
    with pytest.raises(LedgerError, match='"submissions" already exists'):
        theirs.open()
    assert theirs.tables() == {"submissions"}
    theirs.raw("CREATE TABLE versions (number TEXT)")
    with pytest.raises(LedgerError, match="cannot be opened as a ledger"):
        theirs.open()


def test_somebody_who_may_only_read_can_open_a_ledger_and_not_write_to_it(postgres, place):
    mine = place.open()
    mine.submit(bought())
    postgres.raw("CREATE ROLE reader LOGIN")
    place.raw(f'GRANT USAGE ON SCHEMA "{place.schema}" TO reader')
    place.raw(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{place.schema}" TO reader')
    theirs = Ledger.open(postgres.url("reader", schema=place.schema), corpus())
    assert theirs.fingerprint() == mine.fingerprint()
    with pytest.raises(LedgerError, match="permission denied"):
        theirs.submit(bought("mine", item="u2"))
    assert mine.keys() == {"k"}
    mine.close()
    theirs.close()


def test_a_ledger_goes_on_after_its_server_was_started_again(postgres, place):
    ledger = place.open()
    ledger.submit(bought())
    postgres.kill()
    try:
        with pytest.raises(LedgerError, match="when the database can be reached"):
            ledger.submit(bought("k2", item="u2"))
        with pytest.raises(LedgerError):
            ledger.view()
    finally:
        postgres.start()
    assert not ledger.submit(bought("k2", item="u2")).repeated
    assert ledger.submit(bought()).repeated
    assert ledger.spent() == 6
    ledger.close()
