"""Health and metrics on an address and an event loop of their own."""
import re

import pytest

import serving
from test_model_loads import Repository


def health_port(server):
    return int(re.search(r"listening on http://127\.0\.0\.1:(\d+) for health", server.log())[1])


def ask(server, path, method="GET", body=None):
    connection = serving.http.client.HTTPConnection("127.0.0.1", health_port(server), timeout=60)
    try:
        return server.request(method, path, body, connection=connection)
    finally:
        connection.close()


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    log = tmp_path_factory.mktemp("health") / "server.log"
    with serving.Server(log, {"digits": serving.DIGITS}, "--listen-health", "127.0.0.1:0", "--set", "limits.connections_max=20") as s:
        yield s


def test_health_and_metrics_and_nothing_else(probed):
    assert ask(probed, "/v2/health/live").json() == {"live": True}
    assert ask(probed, "/v2/health/ready").json()["ready"] is True
    assert b"\npenstock_ready 1.0\n" in ask(probed, "/metrics").body
    for path in ("/", "/v2", "/v2/models/digits", "/v2/models/digits/ready", "/v2/models/stats"):
        assert ask(probed, path).status == 404, path
    assert ask(probed, "/v2/models/digits/infer", "POST", b"{}").status == 404
    assert ask(probed, "/v2/repository/models/digits/unload", "POST").status == 404
    assert probed.get("/v2/health/live").status == 200  # here, too


def test_connections_of_others_take_no_room(probed):
    held = [serving.socket.create_connection(("127.0.0.1", probed.port)) for _ in range(40)]
    assert ask(probed, "/v2/health/live").status == 200
    for s in held:
        s.close()


def test_probes_go_on_while_the_server_drains_and_do_not_delay_it(tmp_path):
    """A load that does not end holds the drain until all was looked at."""
    with Repository(tmp_path, "--listen-health", "127.0.0.1:0") as r:
        s, held = r.server, r.begin_endless()
        probe = serving.http.client.HTTPConnection("127.0.0.1", health_port(s), timeout=60)
        assert s.request("GET", "/v2/health/ready", connection=probe).status == 200
        s.terminate()
        while (answer := s.request("GET", "/v2/health/ready", connection=probe)).status == 200:
            pass
        assert answer.status == 503 and answer.json()["state"] == "draining"
        held.close()
        assert s.process.wait(serving.STOP_S) == 0  # though the probe's connection is open, and was just used
        probe.close()
