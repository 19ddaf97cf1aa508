"""Who may do what: every route and method without a key, with a wrong one, and with each right, as docs/security.md has it."""
import contextlib
import http.client
import json
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import time

import numpy
import pytest
from hyperframe.frame import DataFrame, HeadersFrame

import frames
import serving

PAGE = (serving.ROOT / "docs/security.md").read_text()
ROUTES = re.findall(r"^\| `(GET|POST|DELETE) (/[^`]*)` \| (open|infer|read|admin|shared_memory) \|$", PAGE, re.M)
RIGHTS = ("infer", "read", "admin", "shared_memory")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
IMAGE = {"inputs": [serving.json_input("image", numpy.zeros((1, 64), numpy.float32))]}


def new_key(file, name, *flags):
    """Adds a line to the file, and returns the key."""
    run = subprocess.run([serving.BINARY, "key", name, *flags], capture_output=True, text=True, check=True)
    key = run.stderr.strip()
    assert key not in run.stdout and re.fullmatch(r"psk_[0-9a-f]{64}", key)
    with open(file, "a") as out:
        out.write(run.stdout)
    return key


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    file = tmp_path_factory.mktemp("keys") / "keys"
    made = {right: new_key(file, right, "--rights", right) for right in RIGHTS}
    made["all"] = new_key(file, "all", "--rights", ",".join(RIGHTS))
    made["digits"] = new_key(file, "digits", "--models", "dig*")
    made["other"] = new_key(file, "other", "--models", "other")
    return file, made


@pytest.fixture(scope="module")
def server(tmp_path_factory, keys):
    folder = tmp_path_factory.mktemp("access")
    # Copies: what is loaded and unloaded here is nobody else's.
    models = {name: shutil.copytree(serving.DIGITS, folder / name) for name in ("digits", "M")}
    models["secret"] = folder / "secret.onnx"
    models["secret"].write_bytes(b"not a model")
    flags = ["--keys", str(keys[0]), "--listen-health", "127.0.0.1:0"]
    s = serving.Server(folder / "log", models, *flags)
    with s:
        yield s


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def ask(server, method, path, headers):
    body = b"{}" if method in ("POST", "PUT", "PATCH") else None
    return server.request(method, path, body, headers)


def test_the_page_has_every_right():
    assert {right for _, _, right in ROUTES} == {"open", *RIGHTS} and len(ROUTES) >= 30


@pytest.mark.parametrize("verb, path, right", ROUTES)
def test_every_route_and_method(server, keys, verb, path, right):
    """401 without a key and with a wrong one, the same body; 403 with each other right; neither with its own."""
    _, made = keys
    wrong = "psk_" + "0" * 64
    verbs = [v for v, p, _ in ROUTES if p == path]  # of a path with several, each is a route of its own
    for method in (m for m in METHODS if m == verb or (verb == verbs[0] and m not in verbs)):
        without = ask(server, method, path, {})
        if right == "open":
            assert without.status not in (401, 403), (method, without)
            continue
        assert without.status == 401 and without.headers["WWW-Authenticate"].startswith("Bearer"), (method, without)
        for headers in (bearer(wrong), {"X-API-Key": wrong}, {"X-API-Key": ""}, {"Authorization": "Basic eDp5"}, bearer(made["all"][:-1]), bearer(made["all"] + "0")):
            answer = ask(server, method, path, headers)
            assert (answer.status, answer.body) == (401, without.body), (method, headers, answer)
        for other in RIGHTS:
            answer = ask(server, method, path, bearer(made[other]))
            if other == right:
                assert answer.status not in (401, 403), (method, answer)
                assert (answer.status in (405, 400)) or method in (verb, "HEAD"), (method, answer)
            else:
                assert answer.status == 403 and "WWW-Authenticate" not in answer.headers, (method, answer)
    if right == "admin":  # what was unloaded is loaded again
        assert ask(server, "POST", "/v2/repository/models/M/load", bearer(made["admin"])).status == 200


def test_over_http2(server, keys):
    client = frames.Client(server.port)
    client.ask("/v2/models/digits/infer", json.dumps(IMAGE).encode())
    done = []
    while not done:
        done = client.receive()
    assert [status for _, status, _ in done] == [401]
    client.close()


def half_of_a_body(server, head):
    """Sends a head, and half of a body of 20 MB: what comes back, and the bytes that were sent until then."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as s:
        s.sendall(head)
        s.setblocking(False)
        sent, answer, end = 0, b"", time.monotonic() + 10
        while b"\r\n\r\n" not in answer and time.monotonic() < end and sent < 10_000_000:
            readable, writable, _ = select.select([s], [s], [], 1)
            if readable:
                answer += s.recv(65536)
            elif writable:
                sent += s.send(bytes(16384))
        return answer, sent


@pytest.mark.parametrize("path", ["/v2/models/digits/infer", "/v2/nothing", "/v2/health/live"])
@pytest.mark.parametrize("length", ["Content-Length: 20000000", "Transfer-Encoding: chunked"])
def test_a_strangers_body_is_refused_at_its_head(server, keys, path, length):
    """401 before the body has come, without a key and with a wrong one; who has a key may send."""
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\n{length}\r\n".encode()
    if "chunked" in length:
        head_end = b"\r\n1312D00\r\n"
    else:
        head_end = b"\r\n"
    for key in (b"", b"X-API-Key: psk_00\r\n"):
        answer, sent = half_of_a_body(server, head + key + head_end)
        assert answer.startswith(b"HTTP/1.1 401 ") and b"www-authenticate: Bearer" in answer and sent < 9_000_000, (key, sent, answer[:300])
    answer, sent = half_of_a_body(server, head + f"X-API-Key: {keys[1]['infer']}\r\n".encode() + head_end)
    assert answer == b"" and sent >= 10_000_000, (sent, answer[:300])


def test_a_stranger_that_sends_all_sees_the_refusal(server):
    answer = server.post("/v2/models/digits/infer", bytes(1_000_000))
    assert answer.status == 401, answer


@pytest.mark.parametrize("length", [[], [("content-length", "20000000")]])
def test_a_strangers_body_over_http2(server, keys, length):
    """401 when more has come, or is told of, than a small body has; who has a key may send it."""
    for key, expected in (((), [401]), ((("x-api-key", keys[1]["infer"]),), [])):
        client = frames.Client(server.port, timeout=3)
        client.waiting[1] = [None, b""]
        fields = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/v2/models/digits/infer"), *length, *key]
        client.socket.sendall(HeadersFrame(1, client.encoder.encode(fields), flags=["END_HEADERS"]).serialize())
        done = []
        with contextlib.suppress(TimeoutError):
            for sent in range(16000, 8 * 16000 + 1, 16000):
                while not done and sent > client.windows[1]:
                    done = client.receive()
                if not done:
                    client.socket.sendall(DataFrame(1, bytes(16000)).serialize())
            while not done:
                done = client.receive()
        assert [status for _, status, _ in done] == expected, (length, key)
        client.close()


def test_where_keys_are_read(server, keys):
    _, made = keys
    path = "/v2/models/digits/infer"
    for headers in (bearer(made["infer"]), {"X-API-Key": made["infer"]}, {"authorization": f"bearer   {made['infer']}"}):
        assert server.post(path, IMAGE, headers).status == 200
    # Of two, a proxy in front may have checked the other.
    raw = f"POST {path} HTTP/1.1\r\nHost: a\r\nX-API-Key: {made['infer']}\r\nX-API-Key: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    assert server.raw(raw.encode()).startswith(b"HTTP/1.1 400 ")


def test_a_key_for_some_models(server, keys):
    _, made = keys
    infer = lambda model, key: server.post(f"/v2/models/{model}/infer", IMAGE, bearer(made[key])).status
    predict = lambda model, key: server.post(f"/v1/models/{model}:predict", {"instances": [[0] * 64]}, bearer(made[key])).status
    assert infer("digits", "digits") == predict("digits", "digits") == 200
    # Whether there is such a model or not.
    for model in ("M", "none", "di"):
        assert infer(model, "digits") == predict(model, "digits") == 403
    assert infer("digits", "other") == 403 and infer("other", "other") == 404
    for name in ("digits", "none"):
        for path, body in (("/v1/embeddings", {"model": name, "input": "x"}), (f"/models/{name}/embed", {"inputs": "x"})):
            assert server.post(path, body, bearer(made["other"])).status == 403, path


def test_strangers_learn_no_names(server, keys):
    _, made = keys
    assert server.get("/v2/health/ready").json() == {"ready": True, "state": "ready"}
    assert server.get("/v2/health/ready", bearer(made["infer"])).json() == {"ready": True, "state": "ready"}
    assert server.get("/v2/health/ready", bearer(made["read"])).json()["unavailable"][0]["name"] == "secret"
    assert server.get("/v2/health/live").status == 200 and server.get("/nowhere").status == 404


def test_the_health_address_asks_for_keys_too(server, keys):
    port = int(re.search(r"listening on http://127.0.0.1:(\d+) for health", server.log())[1])
    status = lambda path, headers={}: server.request("GET", path, None, headers, http.client.HTTPConnection("127.0.0.1", port, timeout=60)).status
    assert status("/v2/health/ready") == 200 and status("/v2") == 404
    assert status("/metrics") == 401 and status("/metrics", bearer(keys[1]["read"])) == 200


def test_refusals_are_counted(server, keys):
    _, made = keys

    def counts():
        text = server.get("/metrics", bearer(made["read"])).body.decode()
        return {r: int(n) for r, n in re.findall(r'penstock_access_refusals_total\{reason="(\w+)"\} (\d+)', text)}

    before = counts()
    server.get("/v2")
    server.get("/v2", bearer("nobody's"))
    server.get("/v2", bearer("nobody's"))
    server.get("/v2", bearer(made["infer"]))
    after = counts()
    assert {r: after[r] - before[r] for r in after} == {"no_key": 1, "wrong_key": 2, "no_right": 1}


def test_keys_are_read_again(tmp_path):
    file = tmp_path / "keys"
    first = new_key(file, "first", "--rights", "read")
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--keys", str(file)) as s:
        assert s.get("/v2", bearer(first)).status == 200
        file.write_text("")
        second = new_key(file, "second", "--rights", "read")
        s.process.send_signal(signal.SIGHUP)
        serving.wait_until(lambda: s.get("/v2", bearer(second)).status == 200, "the new key counts")
        assert s.get("/v2", bearer(first)).status == 401
        # A broken file changes nothing, and its line is told.
        file.write_text("\nsecond sha256:12 read\n")
        s.process.send_signal(signal.SIGHUP)
        serving.wait_until(lambda: "keys:2: after sha256:" in s.log(), "it is told")
        assert s.get("/v2", bearer(second)).status == 200
        assert first not in s.log() and second not in s.log()


def test_a_tenants_key_may_run_models(tmp_path):
    (tmp_path / "keys").write_text("")
    tenants = {"gold": {"key": "s3cret"}}
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--keys", str(tmp_path / "keys"), "--set", f"tenants={json.dumps(tenants)}") as s:
        assert s.post("/v2/models/digits/infer", IMAGE, bearer("s3cret")).status == 200
        assert s.get("/v2", bearer("s3cret")).status == 403
        assert s.post("/v2/models/digits/infer", IMAGE, {"X-Tenant": "gold"}).status == 401


class LocalConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def test_repository_control_is_off_but_on_its_own_address(tmp_path):
    """Without keys a stranger unloads nothing; whoever reaches the address or the socket for it does."""
    path = tmp_path / "admin.sock"
    flags = ["--listen-admin", "127.0.0.1:0", "--listen-admin", f"unix:{path}"]
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *flags) as s:
        unload = "/v2/repository/models/digits/unload"
        refused = s.post(unload, b"")
        assert refused.status == 403 and "listen_admin" in refused.json()["error"], refused
        assert s.post("/v2/models/digits/infer", IMAGE).status == 200
        port = int(re.search(r"listening on http://127.0.0.1:(\d+) for administration", s.log())[1])
        for connection in (http.client.HTTPConnection("127.0.0.1", port, timeout=60), LocalConnection(str(path))):
            with contextlib.closing(connection):
                assert s.post("/v2/repository/models/digits/load", b"", connection=connection).status == 200
                assert s.post("/v2/models/digits/infer", IMAGE, connection=connection).status == 200
                assert s.request("GET", "/metrics", connection=connection).status == 200
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_keys_count_on_the_admin_address_and_not_on_its_socket(tmp_path, keys):
    path = tmp_path / "admin.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))  # left over from a process that was killed
    stale.close()
    flags = ["--listen-admin", "127.0.0.1:0", "--listen-admin", f"unix:{path}", "--keys", str(keys[0])]
    s = serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *flags)
    with s:
        port = int(re.search(r"listening on http://127.0.0.1:(\d+) for administration", s.log())[1])
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            assert s.request("GET", "/v2", connection=connection).status == 401
            assert s.request("GET", "/v2", headers=bearer(keys[1]["read"]), connection=connection).status == 200
        with contextlib.closing(LocalConnection(str(path))) as connection:
            assert s.request("GET", "/v2", connection=connection).status == 200


def test_repository_control_for_everybody_has_to_be_asked_for(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--set", "server.repository_control=true") as s:
        assert s.post("/v2/repository/models/digits/load", b"").status == 200
        assert "model_repository" in s.get("/v2").json()["extensions"]


def test_beyond_loopback_without_keys_is_told_once(tmp_path, keys):
    for flags, count in ((["--listen", "0.0.0.0:0", "--listen", "*:0"], 1), ([], 0), (["--listen", "0.0.0.0:0", "--keys", str(keys[0])], 0)):
        with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *flags) as s:
            assert s.log().count("no keys are set") == count, flags


def make_authority(folder, name):
    run = lambda *a: subprocess.run(["openssl", *map(str, a)], check=True, capture_output=True, cwd=folder)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run("req", "-x509", *curve, "-days", 2, "-subj", f"/CN={name}", "-out", f"{name}.pem", "-keyout", f"{name}.key")

    def sign(client, *alternatives):
        run("req", *curve, "-subj", f"/CN={client}", "-out", f"{client}.csr", "-keyout", f"{client}.key")
        extensions = folder / f"{client}.ext"
        extensions.write_text("".join(f"subjectAltName={a}\n" for a in alternatives))
        run("x509", "-req", "-in", f"{client}.csr", "-CA", f"{name}.pem", "-CAkey", f"{name}.key", "-CAcreateserial", "-days", 2, "-extfile", extensions, "-out", f"{client}.pem")
        return folder / f"{client}.pem", folder / f"{client}.key"

    return folder / f"{name}.pem", sign


def test_certificates_of_clients_are_identities(tmp_path, certificate):
    authority, sign = make_authority(tmp_path, "authority")
    _, sign_else = make_authority(tmp_path, "elsewhere")
    clients = {"ops.test": sign("ops.test"), "host": sign("host", "DNS:ci.test,URI:spiffe://test/ci"), "nobody": sign("nobody")}
    forged = sign_else("forged.test")
    (tmp_path / "keys").write_text("ops cert:ops.test admin,read\nci cert:spiffe://test/ci infer\nforged cert:forged.test read\n")
    key = new_key(tmp_path / "keys", "reader", "--rights", "read")
    flags = ["--keys", str(tmp_path / "keys"), "--tls-client-ca", str(authority)]

    def connect(pair, **more):
        context = ssl._create_unverified_context()
        for option, value in more.items():
            setattr(context, option, value)
        if pair:
            context.load_cert_chain(*pair)
        return http.client.HTTPSConnection("127.0.0.1", s.tls_port, timeout=60, context=context)

    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *flags, tls=certificate) as s:
        for more in ({}, {"maximum_version": ssl.TLSVersion.TLSv1_2}):
            status = lambda method, path, pair, headers=None: s.request(method, path, b"{}" if method == "POST" else None, headers, connect(pair, **more)).status
            for _ in range(2):  # again: sessions may be resumed
                assert status("GET", "/v2", clients["ops.test"]) == 200
            assert status("POST", "/v2/repository/models/digits/load", clients["ops.test"]) == 200
            assert status("POST", "/v2/models/digits/infer", clients["ops.test"]) == 403
            assert status("POST", "/v2/models/digits/infer", clients["host"]) == 400  # an empty request that may be one
            assert status("GET", "/v2", clients["host"]) == 403
            assert status("GET", "/v2", clients["nobody"]) == status("GET", "/v2", None) == 401
            assert status("GET", "/v2", clients["host"], bearer(key)) == 200  # a key that is sent counts
            assert status("GET", "/v2/health/ready", None) == 200
            with pytest.raises((ssl.SSLError, OSError)):
                status("GET", "/v2", forged)
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *flags, "--set", "tls.require_client_certificate=true", tls=certificate) as s:
        assert s.request("GET", "/v2", connection=connect(clients["ops.test"])).status == 200
        with pytest.raises((ssl.SSLError, OSError)):
            s.request("GET", "/v2", connection=connect(None))
