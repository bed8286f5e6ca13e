from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.soak
def test_a_million_sentences_are_read_in_a_minute_and_in_less_than_four_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "million.jsonl"
    put(path)
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    items, seconds, gigabytes = map(float, done.stdout.split())
    assert items == SENTENCES
    assert seconds < 60
    assert gigabytes < 4
