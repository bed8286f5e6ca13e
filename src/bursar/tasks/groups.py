"""Groups of tasks that must be trained together, because one uses the spans of the other."""

from __future__ import annotations

from collections.abc import Mapping

from bursar.tasks.task import Task


def groups_of(tasks: Mapping[str, Task]) -> list[list[str]]:
    """Task names in groups that must be trained together, in the order of their first tasks.

    >>> from bursar.tasks import Classification, Relations, Tagging
    >>> entities, intent = Tagging("entities", ("a", "b")), Classification("intent", ("x", "y"))
    >>> links = Relations("links", ("in",), entity_types=("a", "b"))
    >>> groups_of({"links": links, "intent": intent, "entities": entities})
    [['entities', 'links'], ['intent']]
    """
    partners = {name: task.partner(tasks) for name, task in tasks.items()}
    leaders = {name: partner or name for name, partner in partners.items()}
    return [
        [leader, *(name for name in tasks if leaders[name] == leader and name != leader)]
        for leader in dict.fromkeys(leaders.values())
    ]
