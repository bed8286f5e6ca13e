"""The bell that Label Studio rings: it is heard once, nothing is believed of it, and a wrong address is refused."""

from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

from bursar.errors import ConfigError
from bursar.web.labelstudio.bell import Bell


def ring(url, body=b"{}"):
    return urllib.request.urlopen(url, data=body, timeout=5).status


def test_a_ring_ends_the_wait_at_once_and_many_are_one():
    with Bell("http://127.0.0.1:0/") as bell:
        threading.Timer(0.1, lambda: [ring(bell.url) for _ in range(3)]).start()
        begun = time.monotonic()
        assert bell.wait(30)
        assert time.monotonic() - begun < 10
        time.sleep(0.3)
        bell.wait(0)
        assert not bell.wait(0)


def test_without_a_ring_the_wait_ends_by_itself():
    with Bell("http://127.0.0.1:0/") as bell:
        assert not bell.wait(0.05)


@pytest.mark.parametrize("body", [b"", b"not json", b"x" * 100_000])
def test_whatever_is_said_it_only_rings(body):
    with Bell("http://127.0.0.1:0/hook") as bell:
        assert ring(bell.url, body) == 204
        assert bell.wait(5)


def test_another_path_or_a_look_does_not_ring():
    with Bell("http://127.0.0.1:0/hook") as bell:
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ring(bell.url.replace("hook", "other"))
        with pytest.raises(urllib.error.HTTPError, match="501"):
            urllib.request.urlopen(bell.url, timeout=5)
        assert not bell.wait(0)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:80", "https://127.0.0.1:1/", "http://127.0.0.1/", "http://127.0.0.1:x/", ""]
)
def test_an_address_that_is_none_is_refused_with_an_example(url):
    with pytest.raises(ConfigError, match=r"is no address to be told at.*8123"):
        Bell(url)


def test_a_port_that_is_taken_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="cannot listen there"):
            Bell(f"http://127.0.0.1:{taken.getsockname()[1]}/")
