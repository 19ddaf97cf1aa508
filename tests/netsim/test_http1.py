"""HTTP/1 connections on a network made of chance: bytes in pieces of any size, late, interleaved with those of other connections, or cut off after
some byte. Beside them a model says what must be answered. A seed that fails is named by its test; NETSIM_SEEDS=1000 tries more."""
import os
import random
import socket
import struct

import numpy
import pytest

import serving

SEEDS = int(os.environ.get("NETSIM_SEEDS", 8))
LINKS = 6
PARTS = [
    b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /v2/models/none/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v2/models/none/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
]
CUT = b"".join(PARTS)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("netsim")
    models = {"digits": serving.DIGITS, "echo": serving.identity_model(folder, serving.TensorProto.FLOAT, "echo")}
    with serving.Server(folder / "server.log", models, "--set", "server.loops=1") as s:
        yield s


def chunked(body, chance):
    out, at = b"", 0
    while at < len(body):
        n = chance.randrange(1, 1 + len(body))
        out += f"{len(body[at : at + n]):x}\r\n".encode() + body[at : at + n] + b"\r\n"
        at += n
    return out + b"0\r\n\r\n"


def make_request(chance):
    """Bytes of a request, and what checks its response: (status, body) -> None."""
    kind = chance.choice(["live", "none", "echo", "echo", "head"])
    if kind == "live":
        return b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", 200, None)
    if kind == "head":
        return b"HEAD /v2 HTTP/1.1\r\nHost: a\r\n\r\n", ("HEAD", 200, None)
    if kind == "none":
        return f"GET /v2/models/none{chance.randrange(1000)} HTTP/1.1\r\nHost: a\r\n\r\n".encode(), ("GET", 404, None)
    array = numpy.array([[chance.random() for _ in range(chance.randrange(1, 300))]], numpy.float32)
    body, headers = serving.binary_request({"in": array})
    head = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    if chance.random() < 0.5:
        return (head + "Transfer-Encoding: chunked\r\n\r\n").encode() + chunked(body, chance), ("POST", 200, array)
    return (head + f"Content-Length: {len(body)}\r\n\r\n").encode() + body, ("POST", 200, array)


def read_responses(data, methods):
    """(status, headers, body) of each whole response, and the bytes after them."""
    found = []
    while b"\r\n\r\n" in data:
        head, rest = data.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        assert lines[0].startswith("HTTP/1.1 "), lines[0]
        has_body = len(found) >= len(methods) or methods[len(found)] != "HEAD"
        length = int(headers["content-length"]) if has_body else 0
        if len(rest) < length:
            break
        found.append((int(lines[0].split()[1]), headers, rest[:length]))
        data = rest[length:]
    return found, data


class Link:
    def __init__(self, server, chance):
        self.chance = chance
        made = [make_request(chance) for _ in range(chance.randrange(1, 12))]
        self.text, self.expected = b"".join(text for text, _ in made), [e for _, e in made]
        self.ends = [sum(len(text) for text, _ in made[: i + 1]) for i in range(len(made))]
        self.stop_at = chance.randrange(len(self.text)) if chance.random() < 0.4 else len(self.text)
        self.end = chance.choice(["half close", "reset"]) if self.stop_at < len(self.text) else "half close"
        self.sent, self.got, self.is_over, self.has_ended = 0, b"", False, False
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def step(self):
        """Sends a piece, or ends, or reads a piece."""
        if self.sent < self.stop_at and self.chance.random() < 0.7:
            n = min(self.chance.choice([1, 7, 100, 3000]), self.stop_at - self.sent)
            self.socket.sendall(self.text[self.sent : self.sent + n])
            self.sent += n
        elif self.sent == self.stop_at and not self.has_ended:
            self.has_ended = True
            if self.end == "reset":
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.socket.close()
                self.is_over = True
            else:
                self.socket.shutdown(socket.SHUT_WR)
        elif self.has_ended or self.chance.random() < 0.3:
            self.receive()

    def receive(self):
        self.socket.setblocking(self.has_ended)
        try:
            data = self.socket.recv(self.chance.choice([1, 50, 5000]))
            self.got += data
            if not data:
                assert self.has_ended, "closed before the client's end"
                self.socket.close()
                self.is_over = True
        except BlockingIOError:
            pass
        if not self.is_over:
            self.socket.settimeout(20)

    def check(self):
        found, rest = read_responses(self.got, [method for method, _, _ in self.expected])
        whole = sum(end <= self.sent for end in self.ends)
        if self.end == "half close":
            assert len(found) >= whole and rest == b"", f"{len(found)} of {whole} answered, then {rest[:100]}"
            assert all(status in (400, 408) for status, _, _ in found[whole:]) and len(found) <= whole + 1, found[whole:]
        assert len(found) <= whole + 1
        for (status, headers, body), (_, code, array) in list(zip(found, self.expected))[:whole]:
            assert status == code, (status, body[:200])
            if array is not None:
                outputs = serving.binary_outputs(serving.Answer(status, {"Inference-Header-Content-Length": headers["inference-header-content-length"],
                                                                         "Content-Type": headers["content-type"]}, body))  # fmt: skip
                assert numpy.array_equal(outputs["out"], array)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_connections(server, seed):
    chance = random.Random(seed)
    links = [Link(server, chance) for _ in range(LINKS)]
    while open_links := [link for link in links if not link.is_over]:
        chance.choice(open_links).step()
    for link in links:
        link.check()


def answers_to(server, data, ending):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
        s.sendall(data)
        if ending == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return b""
        s.shutdown(socket.SHUT_WR)
        got = b""
        while part := s.recv(65536):
            got += part
        return got


def test_cut_after_each_byte(server):
    """What came whole is answered, once, and the rest is not taken for a request."""
    ends = [len(b"".join(PARTS[: i + 1])) for i in range(len(PARTS))]
    for at in range(len(CUT) + 1):
        found, rest = read_responses(answers_to(server, CUT[:at], "half close"), ["GET", "POST", "POST"])
        whole = sum(end <= at for end in ends)
        codes = [status for status, _, _ in found]
        assert codes[:whole] == [200, 404, 404][:whole] and rest == b"", (at, codes, rest)
        assert codes[whole:] in ([], [400], [408]), (at, codes)


def test_reset_after_each_byte(server):
    for at in range(len(CUT) + 1):
        answers_to(server, CUT[:at], "reset")
    assert server.get("/v2/health/live").status == 200
