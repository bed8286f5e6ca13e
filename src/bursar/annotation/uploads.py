"""A file that becomes a project: what was found out about it, what labelling it would cost, and the project itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from bursar.annotation.projects import Draft, FullCost, Wishes, draft_project, full_cost, listed_task
from bursar.corpus import Corpus, describe_task, guess_format, read
from bursar.corpus.formats.table_files import Table
from bursar.corpus.formats.tables import corpus_of_table, find_roles, read_table, table_format
from bursar.corpus.metadata import shown_cell
from bursar.errors import BursarError, ConfigError
from bursar.tasks import Task

EXAMPLES = 3  # rows that are shown
LONGEST = 200  # characters of an example


@dataclass(frozen=True)
class WishedTask:
    """A task as it is typed in: labels are separated by commas, ``column`` holds labels that are known."""

    name: str
    kind: str = "classification"
    labels: str = ""
    column: str | None = None

    def task(self) -> Task:
        """The task itself."""
        if not self.name.strip():
            raise ConfigError("a task has no name", fix="name it, as in intent")
        return listed_task(self.name.strip(), self.kind, [self.labels] if self.labels.strip() else [])


@dataclass(frozen=True)
class Choice:
    """What is chosen about a file: the columns of the texts and the ids, the tasks, and what becomes of empty rows."""

    text: str | None = None
    id: str | None = None
    tasks: tuple[WishedTask, ...] = ()
    skip_empty: bool = False


@dataclass(frozen=True)
class Look:
    """What was found out about a file; ``problem`` and ``fix`` say why it cannot become a project yet."""

    items: int
    notes: tuple[str, ...]
    columns: Mapping[str, Sequence[str]]  # name to the first cells
    text: str | None
    id: str | None
    problem: str | None = None
    fix: str | None = None


@dataclass(eq=False)
class Upload:
    """A file that was handed over. It is read once; its name in messages is that of the file alone."""

    path: Path
    _corpora: dict[Choice, Corpus] = field(default_factory=dict)  # the newest one

    @cached_property
    def table(self) -> Table | None:
        """Its columns; ``None`` if it is no table, such as plain text."""
        return None if table_format(self.path) is None else read_table(self.path)

    def look(self, text: str | None = None, id: str | None = None, skip_empty: bool = False) -> Look:
        """What was found out, with the columns of the texts and the ids that are chosen, or those that are likely."""
        table = self.table
        if table is None:
            corpus = self.corpus(Choice())
            texts = [shortened(corpus[at].text) for at in range(min(EXAMPLES, len(corpus)))]
            return Look(len(corpus), corpus.notes, {"text": texts}, "text", None)
        columns = {name: [shortened(cell) for cell in islice(cells, EXAMPLES)] for name, cells in table.columns.items()}
        try:
            roles, _ = find_roles(table, Path(self.path.name), {"text": text, "id": id}, {})
        except BursarError as wrong:
            return Look(len(table), table.notes, columns, None, id, wrong.message, "choose the column of the texts")
        try:
            corpus = self.corpus(Choice(text, id, skip_empty=skip_empty))
        except BursarError as wrong:
            place = str(wrong).partition(". Fix: ")[0]
            fix = wrong.fix and wrong.fix.replace("pass over them with skip_empty=yes", "leave them out")
            return Look(len(table), table.notes, columns, roles.text, roles.id, place, fix)
        return Look(len(corpus), corpus.notes, columns, roles.text, roles.id)

    def corpus(self, choice: Choice) -> Corpus:
        """The file as a corpus with the tasks that are chosen."""
        if choice not in self._corpora:
            if len({wished.name.strip() for wished in choice.tasks}) < len(choice.tasks):
                raise ConfigError("two tasks have one name", fix="rename one of them")
            listed = [wished for wished in choice.tasks if wished.labels.strip() or not wished.column]
            tasks = {wished.name.strip(): wished.task() for wished in listed}
            labels = {wished.name.strip(): wished.column for wished in choice.tasks if wished.column}
            columns: dict[str, Any] = {"text": choice.text, "id": choice.id}
            try:
                if self.table is not None and guess_format(self.path).general:  # not read again
                    schema = {name: describe_task(task) for name, task in tasks.items()}
                    corpus = corpus_of_table(self.table, self.path, columns, labels, schema, choice.skip_empty)
                else:
                    given = columns | {"labels": labels or None} if self.table is not None else {}
                    given |= {"skip_empty": True} if choice.skip_empty else {}
                    corpus = read(self.path, tasks=tasks, **given)
            except BursarError as wrong:
                raise _without_folder(wrong, self.path.parent) from None
            self._corpora = {choice: corpus}
        return self._corpora[choice]

    def cost(self, choice: Choice, wishes: Wishes) -> FullCost:
        """What labelling everything would cost."""
        return full_cost(self.corpus(choice), wishes)

    def draft(self, choice: Choice, wishes: Wishes) -> Draft:
        """The project, checked and not yet created."""
        return draft_project(self.corpus(choice), wishes)


def shortened(cell: Any) -> str:
    """A cell as it is shown among the first rows.

    >>> shortened("a" * 500)[-3:], shortened(7.0)
    ('aa…', '7')
    """
    text = shown_cell(cell)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _without_folder(wrong: BursarError, folder: Path) -> BursarError:
    """The same error without the folder that the file was put into, with its line in the message."""
    message = str(wrong).replace(f"{folder}/", "")
    return BursarError(message.removesuffix(f". Fix: {wrong.fix}"), fix=wrong.fix)
