from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bursar.corpus.formats.table_files import write_table

SENTENCES = 1_000_000
READ = """
import resource, sys, time
from bursar.corpus import read
start = time.perf_counter()
items = len(read(sys.argv[1]))
print(items, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def put(path: Path) -> None:
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 8))) for _ in range(5000)]
    with open(path, "w", encoding="utf-8") as file:
        for number in range(SENTENCES):
            words = rng.choices(vocabulary, k=rng.randint(8, 16))
            places, at = [], 0
            for word in words:
                places.append([at, at + len(word)])
                at += len(word) + 1
            starts = rng.sample(range(len(words)), rng.randint(1, 2))
            labels = {"intent": f"i{number % 30}", "slots": [[s, s + 1, f"s{s}"] for s in starts]}
            record = {"id": f"u{number}", "text": " ".join(words), "words": places, "labels": labels}
            file.write(json.dumps(record) + "\n")


READ_TABLE = """
import sys, time
import bursar
start = time.process_time()
corpus = bursar.read(sys.argv[1], labels={"intent": "Category"})
peak = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(len(corpus), time.process_time() - start, peak[0] / 2**20)
"""


@pytest.mark.parametrize("suffix", [".csv", pytest.param(".xlsx", marks=pytest.mark.soak)])
def test_a_table_of_100_000_rows_is_imported_in_half_a_minute_and_a_gigabyte(tmp_path: Path, suffix: str) -> None:
    rng, rows = random.Random(0), 100_000
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(5000)]
    columns = {
        "Ticket": [f"T{number:06d}" for number in range(rows)],
        "Body": [" ".join(rng.choices(words, k=rng.randint(8, 40))) for _ in range(rows)],
        "Category": [("order", "refund", None)[number % 3] for number in range(rows)],
        "Cost": [number / 8 for number in range(rows)],
    }
    path = tmp_path / f"table{suffix}"
    write_table(columns, path)
    done = subprocess.run([sys.executable, "-c", READ_TABLE, str(path)], capture_output=True, text=True, check=True)
    items, seconds, gigabytes = map(float, done.stdout.split())
    assert items == rows
    assert seconds < 30  # of the processor: the machine may be busy
    assert gigabytes < 1


@pytest.mark.soak
def test_a_million_sentences_are_read_in_a_minute_and_in_less_than_four_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "million.jsonl"
    put(path)
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    items, seconds, gigabytes = map(float, done.stdout.split())
    assert items == SENTENCES
    assert seconds < 60
    assert gigabytes < 4
