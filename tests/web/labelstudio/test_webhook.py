"""The webhook: several calls count as one, their content is ignored, and a wrong address is refused."""

from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

from bursar.errors import ConfigError
from bursar.web.labelstudio.sync import WebhookListener


def ring(url, body=b"{}"):
    return urllib.request.urlopen(url, data=body, timeout=5).status


def test_a_ring_ends_the_wait_at_once_and_many_are_one():
    with WebhookListener("http://127.0.0.1:0/") as webhook:
        threading.Timer(0.1, lambda: [ring(webhook.url) for _ in range(3)]).start()
        begun = time.monotonic()
        assert webhook.wait(30)
        assert time.monotonic() - begun < 10
        time.sleep(0.3)
        webhook.wait(0)
        assert not webhook.wait(0)


def test_without_a_ring_the_wait_ends_by_itself():
    with WebhookListener("http://127.0.0.1:0/") as webhook:
        assert not webhook.wait(0.05)


@pytest.mark.parametrize("body", [b"", b"not json", b"x" * 100_000])
def test_whatever_is_said_it_only_rings(body):
    with WebhookListener("http://127.0.0.1:0/hook") as webhook:
        assert ring(webhook.url, body) == 204
        assert webhook.wait(5)


def test_another_path_or_a_look_does_not_ring():
    with WebhookListener("http://127.0.0.1:0/hook") as webhook:
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ring(webhook.url.replace("hook", "other"))
        with pytest.raises(urllib.error.HTTPError, match="501"):
            urllib.request.urlopen(webhook.url, timeout=5)
        assert not webhook.wait(0)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:80", "https://127.0.0.1:1/", "http://127.0.0.1/", "http://127.0.0.1:x/", ""]
)
def test_an_address_that_is_none_is_refused_with_an_example(url):
    with pytest.raises(ConfigError, match=r"is not a webhook address.*8123"):
        WebhookListener(url)


def test_a_port_that_is_taken_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="cannot listen there"):
            WebhookListener(f"http://127.0.0.1:{taken.getsockname()[1]}/")
