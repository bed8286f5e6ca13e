"""From a spreadsheet with any columns to a corpus, and from there to other formats."""

from pathlib import Path

import pandas as pd

import bursar

pd.DataFrame(
    {
        "Ticket": [101, 102, 103],
        "Body": ["where is my order", "refund me please", "the red shoes broke"],
        "Topic": ["order", "refund", None],
    }
).to_excel("messages.xlsx", index=False)

corpus = bursar.read("messages.xlsx", text="Body", id="Ticket", labels={"topic": "Topic"})
for item in corpus:
    print(item.id, item.text, item.labels, item.metadata)
print(*corpus.notes, sep="\n")
bursar.write(corpus, Path("messages.jsonl"), "jsonl")
