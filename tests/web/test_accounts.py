"""Accounts: passwords, sessions, tokens, and limits on guessing."""

from __future__ import annotations

import argon2
import pytest

from bursar.web import database as tables
from bursar.web.accounts import IDLE_SECONDS, MAX_AGE, YOU, Accounts, Attempts, checked_name, folded
from bursar.web.database import DATABASE_FILE, WebDatabase
from bursar.web.http_errors import HTTPError

QUICK = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
PASSWORD = "correct horse"


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def accounts(tmp_path, clock):
    database = WebDatabase.open(tmp_path / DATABASE_FILE, clock)
    yield Accounts(database, QUICK)
    database.close()


@pytest.fixture
def three(accounts):
    for name, role in (("Anna", "lead"), ("Bob", "annotator"), ("Eve", "annotator")):
        accounts.add(name, role, PASSWORD)
    return accounts


def refused(status, function, *arguments):
    with pytest.raises(HTTPError) as wrong:
        function(*arguments)
    assert wrong.value.status == status
    return wrong.value


# -- people ----------------------------------------------------------------------------------------------------------
def test_without_accounts_there_is_you_who_leads(accounts):
    assert (accounts.local_user.name, accounts.local_user.is_lead, accounts.exist()) == (YOU, True, False)


def test_the_first_account_has_to_lead(accounts):
    refused(409, accounts.add, "Bob", "annotator", PASSWORD)
    assert not accounts.exist()
    accounts.add("Anna", "lead", PASSWORD)
    accounts.add("Bob", "annotator", PASSWORD)
    assert [(p.name, p.role) for p in accounts.people()] == [("Anna", "lead"), ("Bob", "annotator")]


def test_a_name_is_taken_whatever_its_case(three):
    assert refused(409, three.add, "ANNA", "lead", PASSWORD).kind == "name_taken"


def test_the_last_lead_stays(three):
    assert refused(409, three.remove, "anna").kind == "last_lead"
    three.add("Max", "lead", PASSWORD)
    three.remove("anna")
    assert [p.name for p in three.people()] == ["Bob", "Eve", "Max"]


@pytest.mark.parametrize(
    "name", ["", " ", " Anna", "Anna ", "a/b", "a\nb", "<b>", "a" * 65, "\u202eevil", "a\x00b", ".."]
)
def test_a_name_that_cannot_be_told_from_others_is_refused(accounts, name):
    refused(422, accounts.add, name, "lead", PASSWORD)


@pytest.mark.parametrize("name", ["Anna", "Änne B.", "a@example.org", "名前", "o'x".replace("'", "-")])
def test_names_of_any_language_are_taken(accounts, name):
    accounts.add(name, "lead", PASSWORD)
    assert accounts.people()[0].name == checked_name(name)


def test_spellings_of_one_name_are_one_person():
    assert folded("e\u0301") == folded("\u00e9")
    assert folded("STRASSE") == folded("straße")
    assert folded("Anna") != folded("Anne")


@pytest.mark.parametrize("password", ["", "seven77", "x" * 257])
def test_a_password_has_its_length(accounts, password):
    refused(422, accounts.add, "Anna", "lead", password)


def test_passwords_are_kept_as_argon2_hashes_and_nothing_else(three, tmp_path):
    with three.database.reading() as connection:
        hashes = connection.execute(tables.people.select()).mappings().all()
    assert len({row["password"] for row in hashes}) == 3  # the same password, three salts
    assert all(row["password"].startswith("$argon2id$") for row in hashes)
    three.database.close()
    assert all(PASSWORD.encode() not in file.read_bytes() for file in tmp_path.iterdir())


# -- sessions --------------------------------------------------------------------------------------------------------
def test_signing_in_gives_a_session_of_ones_own(three):
    cookies = [three.sign_in("anna", PASSWORD, "1.2.3.4") for _ in range(2)]
    first, second = (three.by_cookie(cookie) for cookie in cookies)
    assert (first.name, first.role) == ("Anna", "lead")
    assert first.csrf != second.csrf
    three.sign_out(cookies[0])
    assert three.by_cookie(cookies[0]) is None
    assert three.by_cookie(cookies[1]) is not None


def test_signing_in_anew_ends_the_session_before(three):
    old = three.sign_in("anna", PASSWORD, "1.2.3.4")
    new = three.sign_in("bob", PASSWORD, "1.2.3.4", old)
    assert three.by_cookie(old) is None
    assert three.by_cookie(new).name == "Bob"


def test_the_cookie_is_not_in_the_database(three, tmp_path):
    cookie = three.sign_in("anna", PASSWORD, "1.2.3.4")
    three.database.close()
    assert all(cookie.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_session_lasts_while_it_is_used_but_not_for_ever(three, clock):
    cookie = three.sign_in("anna", PASSWORD, "1.2.3.4")
    begun = clock.now
    while clock.now + IDLE_SECONDS - 60 < begun + MAX_AGE:
        clock.now += IDLE_SECONDS - 60
        assert three.by_cookie(cookie) is not None
    clock.now = begun + MAX_AGE + 1
    assert three.by_cookie(cookie) is None


def test_a_session_that_is_not_used_ends(three, clock):
    cookie = three.sign_in("anna", PASSWORD, "1.2.3.4")
    clock.now += IDLE_SECONDS + 1
    assert three.by_cookie(cookie) is None


def test_sessions_survive_the_server(tmp_path, three):
    cookie = three.sign_in("anna", PASSWORD, "1.2.3.4")
    csrf = three.by_cookie(cookie).csrf
    three.database.close()
    database = WebDatabase.open(tmp_path / DATABASE_FILE, three.database.clock)
    assert Accounts(database, QUICK).by_cookie(cookie).csrf == csrf
    database.close()


def test_a_new_password_ends_the_persons_other_sessions(three):
    keep, other, bobs = (three.sign_in(name, PASSWORD, "1.2.3.4") for name in ("anna", "anna", "bob"))
    three.set_password("Anna", "another password", keep=three.by_cookie(keep).session)
    assert [three.by_cookie(cookie) is not None for cookie in (keep, other, bobs)] == [True, False, True]
    refused(401, three.sign_in, "anna", PASSWORD, "1.2.3.4")
    three.sign_in("anna", "another password", "1.2.3.4")


def test_whoever_is_removed_is_out_at_once(three):
    cookie = three.sign_in("bob", PASSWORD, "1.2.3.4")
    _, token = three.make_token(three.by_cookie(cookie), "script")
    three.remove("Bob")
    assert three.by_cookie(cookie) is None
    assert three.by_token(token) is None
    refused(401, three.sign_in, "bob", PASSWORD, "1.2.3.4")
    three.add("Bob", "annotator", "another password")  # somebody else of that name has none of it
    assert three.by_token(token) is None


# -- those who guess -------------------------------------------------------------------------------------------------
def test_a_wrong_name_and_a_wrong_password_are_answered_alike(three):
    wrong = [refused(401, three.sign_in, name, "wrong password", "1.2.3.4") for name in ("anna", "nobody")]
    assert wrong[0].body == wrong[1].body


def test_an_unknown_name_costs_a_hash_like_a_known_one(three, monkeypatch):
    checked = []
    verify = argon2.PasswordHasher.verify
    monkeypatch.setattr(
        argon2.PasswordHasher, "verify", lambda self, hashed, word: checked.append(hashed) or verify(self, hashed, word)
    )
    for name in ("anna", "nobody"):
        refused(401, three.sign_in, name, "wrong password", "1.2.3.4")
    parameters = [argon2.extract_parameters(hashed) for hashed in checked]
    assert len(checked) == 2
    assert parameters[0] == parameters[1]


@pytest.mark.parametrize("name", ["anna", "nobody"])
def test_after_a_few_guesses_one_has_to_wait_also_with_the_right_password(three, clock, name):
    most = Attempts.MOST["pair"]
    for _ in range(most):
        refused(401, three.sign_in, name, "wrong password", "1.2.3.4")
    late = refused(429, three.sign_in, name, PASSWORD, "1.2.3.4")
    assert 0 < late.retry_after <= Attempts.WINDOW + 1
    clock.now += late.retry_after
    if name == "anna":
        three.sign_in(name, PASSWORD, "1.2.3.4")
    else:
        refused(401, three.sign_in, name, PASSWORD, "1.2.3.4")


def test_guessing_elsewhere_locks_nobody_out(three):
    for _ in range(Attempts.MOST["pair"] + 1):
        with pytest.raises(HTTPError):
            three.sign_in("anna", "wrong password", "6.6.6.6")
    three.sign_in("anna", PASSWORD, "1.2.3.4")


def test_one_address_cannot_try_many_names(clock):
    attempts = Attempts(clock)
    for number in range(Attempts.MOST["address"]):
        attempts.begin(f"name {number}", "6.6.6.6")
    assert refused(429, attempts.begin, "another", "6.6.6.6").kind == "too_many_attempts"
    attempts.begin("another", "1.2.3.4")


def test_one_name_cannot_be_tried_from_many_addresses(clock):
    attempts = Attempts(clock)
    for number in range(Attempts.MOST["name"]):
        attempts.begin("anna", f"10.0.0.{number}")
    refused(429, attempts.begin, "anna", "10.9.9.9")


def test_a_right_password_clears_the_slate(three):
    for _ in range(3):
        for _ in range(Attempts.MOST["pair"] - 1):
            refused(401, three.sign_in, "anna", "wrong password", "1.2.3.4")
        three.sign_in("anna", PASSWORD, "1.2.3.4")


def test_a_right_password_of_ones_own_does_not_buy_guesses_at_others(three):
    for number in range(Attempts.MOST["address"]):
        three.sign_in("bob", PASSWORD, "6.6.6.6")
        refused(401, three.sign_in, f"name {number}", "wrong password", "6.6.6.6")
    refused(429, three.sign_in, "bob", PASSWORD, "6.6.6.6")
    three.sign_in("bob", PASSWORD, "1.2.3.4")


def test_what_is_remembered_of_guesses_is_bounded(clock, monkeypatch):
    monkeypatch.setattr(Attempts, "MOST_KEYS", 30)
    attempts = Attempts(clock)
    for number in range(200):
        attempts.begin(f"name {number}", f"10.0.0.{number}")
    assert len(attempts._tried) <= 30


def test_an_old_hash_is_made_anew_when_its_owner_comes(three):
    stronger = Accounts(three.database, argon2.PasswordHasher(time_cost=2, memory_cost=64, parallelism=1))
    stronger.sign_in("anna", PASSWORD, "1.2.3.4")
    with three.database.reading() as connection:
        row = connection.execute(tables.people.select().where(tables.people.c.folded == "anna")).mappings().one()
    assert argon2.extract_parameters(row["password"]).time_cost == 2


# -- tokens ----------------------------------------------------------------------------------------------------------
def test_a_token_is_its_makers_and_goes_when_it_is_taken_away(three, tmp_path):
    anna, bob = (three.by_cookie(three.sign_in(name, PASSWORD, "1.2.3.4")) for name in ("anna", "bob"))
    made, secret = three.make_token(bob, "script")
    found = three.by_token(secret)
    assert (found.name, found.role, found.csrf) == ("Bob", "annotator", None)
    assert [t.label for t in three.tokens(bob)] == ["script"]
    assert three.tokens(bob)[0].used_at is not None
    refused(404, three.remove_token, anna, made.id)
    three.remove_token(bob, made.id)
    assert three.by_token(secret) is None
    three.database.close()
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_token_of_you_ends_with_the_first_account(accounts):
    _, secret = accounts.make_token(accounts.local_user, "script")
    assert accounts.by_token(secret).is_lead
    assert [t.label for t in accounts.tokens(accounts.local_user)] == ["script"]
    accounts.add("Anna", "lead", PASSWORD)
    assert accounts.by_token(secret) is None
