"""Helpers for tests of the annotation page: small projects of every kind of task, a server, and a page driver."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from numpy.typing import NDArray

from bursar.corpus.words import find_words
from bursar.ledger import Answer

Label = dict[str, Any]
GONE = ("net::ERR_CONNECTION", "net::ERR_EMPTY_RESPONSE")  # what a browser says of a server that is not there


def write_project(folder: Path, tasks: Mapping[str, Any], items: Sequence[Mapping[str, Any]], **more: Any) -> Path:
    """A project whose first round asks about all of these items, for all tasks, unless the settings say otherwise."""
    from bursar.campaign.config import parse_config
    from bursar.campaign.runs import Run

    folder.mkdir(parents=True)
    images = [item["image"] for item in items if "image" in item]
    if images:
        source = write_images(folder / "corpus.npz", tasks, np.stack(images))
    else:
        source = write_texts(folder / "corpus.jsonl", tasks, items)
    table = {
        "name": "Trial",
        "corpus": {"source": str(source), "dev": None, "test": None},
        "costs": {"pricing": "predicted"},
        "budget": {"seed_items": len(items), "per_round": 10, "rounds": 1},
        "strategy": {"name": "MT-AVG"},
        "learner": {"name": "image-cnn" if images else "transformer"},
        "audit": {"share": 0.0, "shadow": False},
    }
    Run(folder, parse_config(table | more)).pin()
    return folder


def write_texts(path: Path, tasks: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Path:
    """Unlabelled texts."""
    lines = [{"bursar": 1, "tasks": tasks}]
    lines += [{"id": f"u{number}", "split": "train", **item} for number, item in enumerate(items)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def write_images(path: Path, tasks: Mapping[str, Any], images: NDArray[Any]) -> Path:
    """Unlabelled images."""
    labels = {name: np.full(len(images), -1) for name in tasks}
    names = {f"{name}_names": np.array(task["labels"]) for name, task in tasks.items()}
    np.savez(path, images=images, split=np.array(["train"] * len(images)), **labels, **names)
    return path


class Served:
    """A project behind a server in this process, on a port that stays the same when it is started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.suggestions: dict[str, Label] = {}  # by task, of every item; where there are none, the model's
        self.start()

    def start(self) -> None:
        from bursar.web.app_state import AppState
        from bursar.web.server import make_app

        self.app_state = AppState(self.folder)
        self.app_state.trainer.start = lambda: None  # type: ignore[method-assign]  # tests say when: see `train`
        models = self.app_state.session.suggestions
        self.app_state.session.suggestions = lambda item: self.suggestions or models(item)  # type: ignore[method-assign]
        config = uvicorn.Config(
            make_app(self.app_state), port=self.port, log_level="error", timeout_graceful_shutdown=1
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        until(lambda: self.server.started)

    def stop(self) -> None:
        self.app_state.hub.close()
        self.server.should_exit = True
        self.thread.join(30)

    def train(self) -> None:
        """Train the next round, as the training process does."""
        from bursar.annotation.round_worker import next_round

        next_round(self.folder, lambda told: None)
        self.app_state.session.refresh()
        self.app_state.hub.clear_progress()

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as reply:
            return json.load(reply)

    def answers(self) -> list[Label]:
        """All answers, newest first."""
        return list(self.get("/api/mine")["answers"])

    def answer_as(self, person: str, item: str, labels: Label) -> None:
        """Another person answers, at a time when every lease has expired."""
        database, clock = self.app_state.database, self.app_state.database.clock
        database.clock = lambda: clock() + 2 * self.app_state.queue.seconds
        try:
            self.app_state.assignments.answer(Answer(item, labels, person))
        finally:
            database.clock = clock

    def labels(self) -> Label:
        """The labels of the newest answer."""
        return dict(self.answers()[0]["labels"])


class Killable(Served):
    """The same behind ``bursar serve``, in a process that can be killed."""

    def start(self) -> None:
        command = [sys.executable, "-m", "bursar", "serve", str(self.folder), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self.there)

    def there(self) -> bool:
        try:
            return bool(self.get("/api/state"))
        except OSError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    stop = kill


def until(holds: Callable[[], Any], seconds: float = 120.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.02)


class Hand:
    """Drives a browser tab: reads the page, presses keys, clicks words."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.tab.set_default_timeout(120_000)  # the machine may be busy
        self.errors: list[str] = []
        self.expected = list(GONE)  # parts of errors that are meant to happen
        self.requests: list[str] = []
        self.sent: list[tuple[str, Label]] = []  # path and body of what was posted
        self.tab.on(
            "console", lambda message: message.type in ("error", "warning") and self.errors.append(message.text)
        )
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("request", self._note)

    def comes_to(self, url: str) -> Hand:
        """Open the page with empty browser storage."""
        self.tab.goto("about:blank")
        engine = self.tab.context.new_cdp_session(self.tab)
        engine.send("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "local_storage"})
        engine.detach()
        self.errors.clear()
        self.requests.clear()
        self.sent.clear()
        self.expected[:] = GONE
        return self.opens(url)

    def opens(self, url: str) -> Hand:
        self.tab.goto(f"{url}/annotate")
        return self

    def _note(self, request: Any) -> None:
        self.requests.append(request.url)
        if request.method == "POST":
            self.sent.append((request.url.split("/api")[-1], json.loads(request.post_data or "{}")))

    # -- looking -----------------------------------------------------------------------------------------------------
    def sees(self, selector: str, text: str | None = None) -> Hand:
        """Wait until it is there; with a text, until it says that."""
        found = self.tab.locator(selector).first
        found.wait_for(state="visible")
        return self if text is None else self.until(lambda: text in found.inner_text())

    def until(self, holds: Callable[[], Any]) -> Hand:
        """Wait until a condition is true, while the tab runs."""
        end = time.monotonic() + 120
        while not holds():
            assert time.monotonic() < end, "the condition did not become true in time"
            self.tab.wait_for_timeout(20)
        return self

    def ready(self) -> Hand:
        return self.sees("#workspace .task.active")

    def text(self, selector: str) -> str:
        return str(self.tab.locator(selector).first.inner_text())

    def texts(self, selector: str) -> list[str]:
        return [str(one) for one in self.tab.locator(selector).all_text_contents()]

    def count(self, selector: str) -> int:
        return int(self.tab.locator(selector).count())

    def chosen(self, task: str) -> list[str]:
        """The labels that are shown as chosen."""
        return self.texts(f'[data-task="{task}"] .label.on .name')

    def spans(self) -> list[str]:
        """The labels marked upon the text, in the order in which they stand; suggestions left out."""
        return self.texts(".flag:not(.ghost) bdi")

    def answered(self, task: str) -> bool:
        return self.count(f'[data-task="{task}"].answered') == 1

    # -- doing -------------------------------------------------------------------------------------------------------
    def press(self, *keys: str) -> Hand:
        for key in keys:
            self.tab.keyboard.press(key)
        return self

    def types(self, text: str) -> Hand:
        self.tab.keyboard.type(text)
        return self

    def click(self, selector: str) -> Hand:
        self.tab.locator(selector).first.click()
        return self

    def label(self, task: str, name: str) -> Hand:
        """Click a label."""
        self.tab.locator(f'[data-task="{task}"] .label').filter(has_text=name).first.click()
        return self

    def at_word(self, text: str, word: int) -> tuple[float, float]:
        """Where a word of a marked text is: its offsets are the corpus's, counted in code points."""
        start, end = (len(text[:place].encode("utf-16-le")) // 2 for place in find_words(text)[word])
        x, y = self.tab.evaluate(
            """([start, end]) => {
                const node = document.querySelector(".words").firstChild;
                const range = document.createRange();
                range.setStart(node, start);
                range.setEnd(node, end);
                const box = range.getClientRects()[0];
                return [box.left + box.width / 2, box.top + box.height / 2];
            }""",
            [start, end],
        )
        return float(x), float(y)

    def drag(self, source: tuple[float, float], target: tuple[float, float]) -> Hand:
        mouse = self.tab.mouse
        mouse.move(*source)
        mouse.down()
        mouse.move(*target, steps=4)
        mouse.up()
        return self

    def drag_words(self, text: str, first: int, last: int) -> Hand:
        return self.drag(self.at_word(text, first), self.at_word(text, last))

    def click_word(self, text: str, word: int) -> Hand:
        self.tab.mouse.click(*self.at_word(text, word))
        return self

    def centre(self, selector: str) -> tuple[float, float]:
        boxes: list[Any] = []  # a page that draws itself anew has none for a moment

        def found() -> bool:
            boxes.append(self.tab.locator(selector).first.bounding_box())
            return boxes[-1] is not None

        self.until(found)
        box = boxes[-1]
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def send(self, *keys: str) -> Hand:
        """Press Enter, or whatever sends, and wait until it is with the server and something else is shown."""
        self.tab.evaluate("document.querySelector('#panels .task').dataset.old = 'yes'")
        self.press(*(keys or ("Enter",)))
        return self.until(lambda: self.count("[data-old]") == 0 and self.kept("/outbox/") == 0)

    def kept(self, part: str) -> int:
        """How many things this browser keeps under names with this part."""
        return int(
            self.tab.evaluate("part => Object.keys(localStorage).filter(name => name.includes(part)).length", part)
        )

    def module(self, name: str, script: str, argument: Any = None) -> Any:
        """Call a function of the page's modules: `script` is a function of the module and the argument."""
        call = f'async (argument) => ({script})(await import("/static/annotate/{name}.js"), argument)'
        return self.tab.evaluate(call, argument)
