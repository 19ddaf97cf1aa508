"""gRPC's ways in: streams of messages, calls that stay open, compressed messages, metadata."""
import gzip

import pytest

import serving
import wire
from wire import DATA, END_STREAM, frame, head, head_frames

SERVICE = "/inference.GRPCInferenceService/"
INFER, STREAM = SERVICE + "ModelInfer", SERVICE + "ModelStreamInfer"
REFLECTION, WATCH = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.health.v1.Health/Watch"
NAMES_DIGITS, LISTS_SERVICES = b"\n\x06digits", b"\x3a\x01*"
FEW_REQUESTS = ("--set", "server.loops=1", "--set", "limits.connections_max=100")  # 6500 of them at once
MIB = 1 << 20

pytestmark = pytest.mark.skipif(not serving.BINARY.exists(), reason="build/release is not built")


def call(method, **more):
    return head("POST", method, content_type="application/grpc", te="trailers", **more)


def message(data, flag=0):
    return bytes((flag,)) + len(data).to_bytes(4, "big") + data


def open_calls(server, method, body, count, flags=0, **values):
    client = wire.http2(server.port, **values)
    client.sendall(b"".join(head_frames(s, call(method)) + frame(DATA, flags, s, body) for s in range(1, 2 * count, 2)))
    return client


def answers_newcomers(server, count=30):
    answered = server.polite.answered
    wire.wait_until(lambda: server.polite.answered > answered + count or server.polite.failures, "others are answered")


@pytest.mark.parametrize("method, body", [(STREAM, message(NAMES_DIGITS) * 50), (REFLECTION, message(LISTS_SERVICES) * 50)])
def test_messages_whose_answers_are_not_taken(attack, method, body):
    """Of many calls on many connections: requests of others have room."""
    with attack(*FEW_REQUESTS, memory_mib=200) as server:
        clients = [open_calls(server, method, body, 100, window=0) for _ in range(20)]
        answers_newcomers(server)
        for client in clients:
            client.close()


def test_responses_that_are_not_taken(attack):
    """Of many streams on many connections: a connection that takes none makes room for requests of others."""
    with attack(*FEW_REQUESTS, memory_mib=200) as server:
        clients = []
        for _ in range(80):
            client = wire.http2(server.port, window=0)
            client.sendall(b"".join(head_frames(s, head(path="/v2"), END_STREAM) for s in range(1, 200, 2)))
            clients.append(client)
        answers_newcomers(server)
        for client in clients:
            client.close()


def test_calls_that_stay_open(attack):
    """Watches, and messages that are never whole."""
    with attack(memory_mib=200) as server:
        clients = [open_calls(server, WATCH, message(b""), 100, END_STREAM) for _ in range(20)]
        clients += [open_calls(server, STREAM, message(bytes(MIB))[: 12 << 10], 100) for _ in range(4)]
        answers_newcomers(server)
        for client in clients:
            client.close()


@pytest.mark.parametrize("kind", ["empty", "flag", "wrong flag", "bomb", "metadata", "timeout"])
def test_messages(attack, kind):
    """Each is refused, or ends its call; nothing else happens."""
    bomb = gzip.compress(bytes(200 * MIB), 9)
    body = {"empty": message(b"") * 2000, "flag": message(b"", 1) * 2000, "wrong flag": message(b"", 7), "bomb": message(bomb, 1)}.get(kind, message(NAMES_DIGITS))
    more = {"bomb": dict(grpc_encoding="gzip"), "timeout": dict(grpc_timeout="99999999999H")}.get(kind, {})
    extra = b"".join(wire.field(f"x-{i}", "v" * 600) for i in range(90)) if kind == "metadata" else b""
    # No window is opened: a connection of which all answers do not fit into the first one ends when its time is over.
    with attack("--set", "timeouts.response_ms=2000", memory_mib=300) as server:
        for method in (STREAM, INFER):
            client = wire.http2(server.port)
            parts = [body[i : i + 16384] for i in range(0, len(body), 16384)]
            for stream in (1, 3):
                client.sendall(head_frames(stream, call(method, **more) + extra))
                for part in parts:
                    client.sendall(frame(DATA, 0, stream, part))
                client.sendall(frame(DATA, END_STREAM, stream))
            ended, reader = set(), wire.Reader(client)
            while ended != {1, 3} and (got := reader.next()) is not None:
                if got[0] in (wire.HEADERS, wire.DATA) and got[1] & END_STREAM or got[0] == wire.RESET:
                    ended.add(got[2])
            client.close()
        answers_newcomers(server, 5)
