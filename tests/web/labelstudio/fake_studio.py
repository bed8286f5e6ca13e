"""An in-memory Label Studio with what a sync needs; tests/web/test_label_studio.py uses the real one."""

from __future__ import annotations

import json
from itertools import count

from bursar.corpus.formats.label_studio_results import results_of
from bursar.errors import StudioError
from bursar.web.labelstudio.tasks import design_for


class FakeStudio:
    """Projects and tasks by number. What is given and taken goes through JSON, as it does over a wire."""

    url = "http://label-studio"

    def __init__(self, page=3):
        self.numbers = count(1)
        self.clock = count(1)
        self.projects, self.tasks, self.imports = {}, {}, []
        self.page = page
        self.fails_after = None  # so many imports

    def people(self):
        return {1: "ada@example.com", 2: "bo@example.com"}

    def find_project(self, mark, known=None):
        found = [number for number, about in self.projects.items() if mark in about["description"] + about["config"]]
        return found[0] if found else None

    def create_project(self, title, description, config):
        number = next(self.numbers)
        self.projects[number] = {"title": title, "description": description, "config": config}
        return number

    def pages(self, project):
        mine = [task for task in self.tasks.values() if task["project"] == project]
        for start in range(0, max(1, len(mine)), self.page):
            yield json.loads(json.dumps(mine[start : start + self.page]))

    def import_tasks(self, project, tasks):
        if self.fails_after is not None and len(self.imports) >= self.fails_after:
            raise StudioError("the line is cut")
        self.imports.append(len(tasks))
        for task in json.loads(json.dumps(tasks)):
            number = next(self.numbers)
            self.tasks[number] = {"id": number, "project": project, "annotations": [], **task}
        return len(tasks)

    # -- what people do there ----------------------------------------------------------------------------------------
    def task(self, item):
        return next(task for task in self.tasks.values() if task["data"]["id"] == item)

    def annotate(self, corpus, item, labels, person=1, **more):
        at = int(corpus.positions([item])[0])
        results = results_of(design_for(corpus), labels, corpus[at].text or "", corpus.texts.spans[at].tolist())
        return self.submit(item, results, person, **more)

    def submit(self, item, results, person=1, **more):
        when = f"2030-01-01T00:00:{next(self.clock):02}Z"
        annotation = {"id": next(self.numbers), "completed_by": person, "created_at": when, "updated_at": when}
        annotation |= {"result": results, "lead_time": 2.5, "was_cancelled": False} | more
        self.task(item)["annotations"].append(annotation)
        return annotation

    def edit(self, annotation, **changes):
        annotation.update(changes, updated_at=f"2030-01-01T00:01:{next(self.clock):02}Z")

    def delete(self, item, annotation):
        self.task(item)["annotations"].remove(annotation)
