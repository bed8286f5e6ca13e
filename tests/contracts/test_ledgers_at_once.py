"""What every ledger owes to many who come at once: one writes after the other, and a reader sees one moment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from bursar.ledger import Skip
from bursar.ledger.schema import STEPS
from tests.decisions import Choice
from tests.ledger.ledgers import bought, corpus


def at_once(count, work):
    """What ``work(number)`` gave or raised, for so many threads that begin together."""
    ready, found = threading.Barrier(count), [None] * count

    def run(number):
        ready.wait()
        try:
            found[number] = work(number)
        except Exception as wrong:
            found[number] = wrong

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_of_many_who_send_the_same_at_once_one_is_first_and_the_others_repeat(ledger):
    for number in range(5):
        sent = at_once(6, lambda _, n=number: ledger.submit(bought(f"k{n}", item=f"u{n}")))
        assert sorted(receipt.repeated for receipt in sent) == [False] + 5 * [True]
    skipped = at_once(6, lambda _: ledger.skip(Skip("k", "u1", "why")))
    assert sorted(receipt.repeated for receipt in skipped) == [False] + 5 * [True]
    assert ledger.spent() == 15
    assert len(ledger.skips()) == 1


def test_of_many_who_decide_at_once_one_decides(ledger):
    found = at_once(6, lambda number: ledger.decide(Choice(round=1, items=number)))
    won = [number for number, wrong in enumerate(found) if wrong is None]
    assert len(won) == 1
    assert ledger.decision(Choice, 1).items == won[0]
    assert sum("another choice" in str(wrong) for wrong in found) == 5


def test_many_who_open_a_new_ledger_at_once_make_one(ledger_place):
    def work(number):
        mine = ledger_place.open()
        mine.submit(bought(f"k{number}", item=f"u{number}"))
        return mine.close()

    assert at_once(6, work) == [None] * 6
    assert len(ledger_place.raw("SELECT version FROM versions")) == len(STEPS)
    assert ledger_place.raw("SELECT sum(actual), max(id) FROM charges") == [(18, 6)]


WRITER = """
import sys
from tests.ledger.ledgers import Ledger, bought, corpus
ledger = Ledger.open(sys.argv[1], corpus())
print("ready", flush=True)
sys.stdin.readline()
first = [not ledger.submit(bought(f"k{number}", item=f"u{number % 6}")).repeated for number in range(40)]
own = [not ledger.submit(bought(f"{sys.argv[2]}{number}", item=f"u{number % 6}")).repeated for number in range(10)]
print(sum(first), sum(own))
"""


def test_processes_that_send_the_same_at_once_record_it_once(ledger_place):
    command = [sys.executable, "-c", WRITER, str(ledger_place.place)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": os.getcwd()}
    writers = [subprocess.Popen([*command, name], **pipes) for name in "ab"]
    try:
        assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        counts = [tuple(map(int, writer.communicate()[0].split())) for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
    assert sum(first for first, _ in counts) == 40
    assert [own for _, own in counts] == [10, 10]
    ledger = ledger_place.open()
    assert len(ledger.keys()) == 60
    assert ledger.spent() == 180
    ledger.close()


def test_a_reader_sees_one_moment_while_others_write(ledger):
    """Every submission is written with its charge, so that no reader ever counts one without the other."""
    done = threading.Event()

    def look():
        while not done.is_set():
            with ledger._reading() as connection:
                count = connection.exec_driver_sql("SELECT count(*) FROM submissions").scalar()
                paid = connection.exec_driver_sql("SELECT count(*) FROM charges").scalar()
            if count != paid:
                return count, paid
        return None

    def work(number):
        if number:
            return look()
        try:
            for n in range(60):
                ledger.submit(bought(f"k{n}", item=f"u{n % 6}"))
        finally:
            done.set()

    assert at_once(3, work) == [None] * 3
    assert corpus().ids.tolist() == ledger.view().ids.tolist()
