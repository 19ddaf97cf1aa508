"""Other tenants, and files that are read again while clients wait."""
import json
import signal
import ssl
import threading

import numpy

import frames
import serving
import wire

GOLD = {"X-API-Key": "s3cret"}


def test_a_full_queue_is_not_another_tenants(tmp_path, attack):
    """Clients without a key keep the queue full; one with a key and a large weight is never refused."""
    models = {"digits": serving.DIGITS, "slow": serving.slow_model(tmp_path)}
    config = tmp_path / "tenants.json"
    config.write_text(json.dumps({"tenants": {"gold": {"key": "s3cret", "weight": 100}}}))
    row, named = serving.binary_request({"in": numpy.zeros((1, 1024), numpy.float32)})
    with attack("--config", str(config), "--set", "batching.queue_rows_max=64", models=models, polite_headers=GOLD, memory_mib=200) as server:
        over, refused = threading.Event(), []

        def flood():
            """Keeps 80 requests open, and asks again for each that is answered."""
            client = frames.Client(server.port)
            while not over.is_set():
                while len(client.waiting) < 80:
                    client.ask("/v2/models/slow/infer", row, [(k.lower(), v) for k, v in named.items()])
                refused.extend(code for _, code, _ in client.receive() or () if code == 429)
            client.close()

        threads = [threading.Thread(target=flood, daemon=True) for _ in range(3)]
        for t in threads:
            t.start()
        try:
            wire.wait_until(lambda: len(refused) > 100, "the queue is full")
            answers = [server.post("/v2/models/slow/infer", row, dict(named, **GOLD)).status for _ in range(20)]
            assert answers == [200] * 20
        finally:
            over.set()
            for t in threads:
                t.join(60)


def test_handshakes_that_wait_while_files_are_read_again(attack, certificate):
    """A handshake may need the certificate that was there when it began."""
    with attack("--set", f"timeouts.head_ms={serving.WAIT_S}000", tls=certificate) as server:
        clients = [wire.connect(server.tls_port) for _ in range(3)]
        for count in range(1, 25):
            server.process.send_signal(signal.SIGHUP)
            wire.wait_until(lambda: server.log().count("TLS files reloaded") >= count, "the files are read again")
        context = ssl._create_unverified_context()
        for client in clients:
            with context.wrap_socket(client) as s:
                s.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                assert s.recv(100).startswith(b"HTTP/1.1 200")


def test_names_that_a_stranger_makes_up(attack):
    """Models, tenants and keys that do not exist are not remembered."""
    with attack(memory_mib=32) as server:
        connection = server.connect()
        size = len(server.get("/metrics").body)
        for i in range(3000):
            headers = {"X-Tenant": f"tenant-{i}", "X-API-Key": f"key-{i}", "traceparent": "x" * 1000}
            answer = server.post(f"/v2/models/none-{i}/infer", b"{}", headers, connection)
            assert answer.status in (401, 403, 404), answer
        assert len(server.get("/metrics").body) < 2 * size + 4096
