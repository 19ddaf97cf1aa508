#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets to tests/fuzz/corpus: small inputs of every kind that a target knows. Run it again after changing it;
the result is the same each time.

    .venv/bin/python tests/fuzz/make_corpus.py
"""
import gzip
import json
import pathlib
import shutil
import struct
import zlib

import hpack
import numpy
import onnx
import onnx.backend.test.case.node as node_cases
from onnx import TensorProto, helper, numpy_helper

import tokenizer_seeds

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = HERE / "corpus"


def write(target, seeds):
    folder = CORPUS / target
    folder.mkdir(parents=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def text(value):
    return json.dumps(value, separators=(",", ":"))


# Bodies. The first byte: model (0 pixels, 1 tokens, 2 strings, 3 every type), 4 strict, 8 the body may be borrowed.


def kserve_input(name, datatype, shape, data, **more):
    return dict(name=name, datatype=datatype, shape=shape, data=data, **more)


def kserve():
    pixels = kserve_input("x", "FP32", [2, 2], [[1, 2.5], [-3e-1, 4]])
    ids, mask = kserve_input("ids", "INT64", [1, 3], [1, 2, 3]), kserve_input("mask", "INT64", [1, 3], [1, 1, 1])
    every = [
        kserve_input("a", "BOOL", [1, 1], [True]), kserve_input("b", "UINT8", [1, 1], [255]), kserve_input("c", "INT8", [1, 1], [-128]),
        kserve_input("d", "INT16", [1, 1], [7]), kserve_input("e", "UINT16", [1, 1], [65535]), kserve_input("f", "INT32", [1, 1], [1e3]),
        kserve_input("g", "UINT32", [1, 1], [1]), kserve_input("h", "INT64", [1, 1], [9007199254740993]),
        kserve_input("i", "UINT64", [1, 1], [18446744073709551615]), kserve_input("j", "FP16", [1, 1], [0.1]),
        kserve_input("k", "BF16", [1, 1], [0.1]), kserve_input("l", "FP32", [1, 1], [1e-45]), kserve_input("m", "FP64", [1, 1], [1.5]),
        kserve_input("n", "BYTES", [1, 1], ["text"]),
    ]  # fmt: skip
    whole = dict(id="7", parameters=dict(timeout=5, priority=1, other=[1, {"a": None}]), inputs=[pixels], outputs=[dict(name="y", parameters=dict(binary_data=True))])
    return {
        "pixels": b"\0" + text(whole).encode(),
        "spaces": b"\0" + json.dumps(whole, indent=1).encode(),
        "tokens": b"\1" + text(dict(inputs=[ids, mask])).encode(),
        "without_mask": b"\5" + text(dict(inputs=[ids])).encode(),
        "strings": b"\2" + rb'{"inputs":[{"name":"text","datatype":"BYTES","shape":[2,1],"data":["a\u00e9\ud83d\ude00\n","b"]}]}',
        "every_type": b"\3" + text(dict(inputs=every)).encode(),
        "not_a_number": b"\0" + b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[NaN,-Infinity]}]}',
        "twice": b"\0" + b'{"inputs":[],"inputs":[]}',
        "deep": b"\0" + b'{"x":' + b"[" * 20 + b"]" * 20 + b"}",
        "trailing_comma": b"\0" + b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2,]}]}',
    }


def wire(number, value):
    """A field of a protobuf message: a varint, or bytes."""
    varint = lambda v: bytes([v]) if v < 128 else bytes([v & 127 | 128]) + varint(v >> 7)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def grpc():
    def tensor(name, datatype, shape, contents=b""):
        return wire(5, wire(1, name) + wire(2, datatype) + wire(3, bytes(shape)) + (wire(5, contents) if contents else b""))

    parameter = lambda key, kind, value: wire(4, wire(1, key) + wire(2, wire(kind, value)))
    pixels, tokens = tensor(b"x", b"FP32", [1, 2]), tensor(b"ids", b"INT64", [1, 3], wire(3, bytes([1, 2, 3])))
    raw = wire(7, struct.pack("<2f", 1, 2))
    return {
        "raw": b"\0" + wire(1, b"m") + wire(2, b"1") + wire(3, b"id") + parameter(b"timeout", 2, 5000) + pixels + wire(6, wire(1, b"y")) + raw,
        "borrowed": b"\x08" + raw + pixels,
        "typed": b"\1" + tokens + parameter(b"binary_data_output", 1, 0),
        "typed_one_by_one": b"\1" + tensor(b"ids", b"INT64", [1, 2], wire(3, 7) + wire(3, 1 << 63)),
        "floats": b"\0" + tensor(b"x", b"FP32", [1, 2], wire(6, struct.pack("<2f", 1, 2))),
        "strings": b"\2" + tensor(b"text", b"BYTES", [2, 1], wire(8, b"ab") + wire(8, b"")),
        "raw_strings": b"\2" + tensor(b"text", b"BYTES", [1, 1]) + wire(7, struct.pack("<I", 2) + b"ab"),
        "every_type": b"\3" + tensor(b"a", b"BOOL", [1, 1], wire(1, 1)) + tensor(b"c", b"INT8", [1, 1], wire(2, (1 << 64) - 128)) + tensor(b"m", b"FP64", [1, 1], wire(7, bytes(8))),
        "huge_length": b"\0" + b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    }


def predict():
    def tensor(name, kind, shape, elements):
        dims = b"".join(wire(2, wire(1, d)) for d in shape)
        return wire(2, wire(1, name) + wire(2, wire(1, kind) + wire(2, dims) + elements))

    spec = wire(1, wire(1, b"m") + wire(2, wire(1, 1)) + wire(3, b"serving_default"))
    label = wire(1, wire(1, b"m") + wire(4, b"stable"))
    floats = struct.pack("<2f", 1, 2)
    return {
        "content": b"\0" + spec + tensor(b"x", 1, [1, 2], wire(4, floats)) + wire(3, b"y"),
        "typed": b"\0" + label + tensor(b"x", 1, [1, 2], wire(5, floats)),
        "repeated": b"\0" + tensor(b"x", 1, [4, 2], wire(5, floats[:4])),
        "nothing": b"\0" + tensor(b"x", 1, [8, 2], b""),
        "tokens": b"\1" + tensor(b"ids", 9, [1, 3], wire(10, bytes([1, 2, 3]))),
        "strings": b"\2" + tensor(b"text", 7, [2, 1], wire(8, b"ab") + wire(8, b"")),
        "packed_strings": b"\2" + tensor(b"text", 7, [2, 1], wire(4, b"\2\0ab")),
        "every_type": b"\3" + tensor(b"a", 10, [1, 1], wire(11, 1)) + tensor(b"c", 6, [1, 1], wire(7, (1 << 64) - 128)) + tensor(b"j", 19, [1, 1], wire(13, 1)),
        "options": b"\0" + wire(7, wire(9, 1)),
        "huge_shape": b"\0" + tensor(b"x", 1, [1 << 40, 1 << 40], wire(5, floats)),
    }


def kserve_binary():
    def body(options, envelope, blobs):
        head = text(envelope).encode()
        return bytes([options]) + struct.pack(">H", len(head)) + head + blobs

    def announced(name, datatype, shape, size):
        return dict(name=name, datatype=datatype, shape=shape, parameters=dict(binary_data_size=size))

    strings = struct.pack("<I", 2) + b"ab" + struct.pack("<I", 0)
    return {
        "pixels": body(0, dict(inputs=[announced("x", "FP32", [1, 2], 8)], parameters=dict(binary_data_output=True)), struct.pack("<2f", 1, 2)),
        "borrowed": body(8, dict(inputs=[announced("x", "FP32", [1, 2], 8)]), struct.pack("<2f", 1, 2)),
        "tokens": body(1, dict(inputs=[announced("ids", "INT64", [1, 2], 16)]), struct.pack("<2q", 1, 2)),
        "strings": body(2, dict(inputs=[announced("text", "BYTES", [2, 1], len(strings))]), strings),
        "mixed": body(1, dict(inputs=[announced("ids", "INT64", [1, 1], 8), kserve_input("mask", "INT64", [1, 1], [1])]), struct.pack("<q", 1)),
        "raw_pixels": b"\0\0\0" + struct.pack("<2f", 1, 2),
        "raw_tokens": b"\1\0\0" + struct.pack("<3q", 1, 2, 3),
        "raw_strings": b"\2\0\0" + strings[:6],
    }


def tensorflow():
    return {
        "rows": b"\0" + text(dict(instances=[[1, 2], [3, 4]])).encode(),
        "named": b"\1" + text(dict(instances=[dict(ids=[1, 2], mask=[1, 1]), dict(ids=[3], mask=[1]), dict(ids=[4, 5], mask=[1, 1])])).encode(),
        "columns": b"\1" + text(dict(inputs=dict(ids=[[1, 2]], mask=[[1, 1]]))).encode(),
        "one_column": b"\0" + text(dict(inputs=[[1, 2]])).encode(),
        "base64": b"\2" + text(dict(instances=[[dict(b64="aGk=")], ["text"]])).encode(),
        "signature": b"\0" + text(dict(signature_name="serving_default", instances=[dict(x=[1, 2])])).encode(),
        "broken": b"\0" + b'{"inputs":{"a":[[1]],"b":[[1],}}',
        "ends_at_an_element": b"\2" + b'{"instances":[[',  # once read one byte beyond the end
    }


# Bodies of the routes that take text. The first byte: the route, in the order of enum route_kind from EMBEDDINGS; 16 the body stays.


def language():
    bodies = {
        "embeddings": (0, dict(model="m", input=["a", "b"], encoding_format="base64", dimensions=2, user="u")),
        "embeddings_ids": (0, dict(model="m", input=[[1, 2], [3]])),
        "embeddings_one": (0, dict(model=None, input="a \u00e9 \U0001f600")),
        "embeddings_wrong": (0, dict(input=["a", ""])),
        "v1_rerank": (1, dict(model="m", query="q", documents=["a", {"text": "b"}], top_n=1, return_documents=True)),
        "embed": (2, dict(inputs=["a", "b"], normalize=False, truncate=True, truncation_direction="Left", prompt_name="query")),
        "embed_ids": (2, dict(inputs=[1, 2, 3])),
        "rerank": (5, dict(query="q", texts=["a", "b"], raw_scores=True, return_text=True)),
        "predict": (6, dict(inputs=[["a", "b"], ["c"]])),
        "similarity": (7, dict(inputs=dict(source_sentence="a", sentences=["b", "c"]))),
        "tokenize": (8, dict(inputs="a b", add_special_tokens=False)),
        "decode": (9, dict(ids=[[1, 2], [3]], skip_special_tokens=False)),
    }
    seeds = {name: bytes((kind,)) + text(body).encode() for name, (kind, body) in bodies.items()}
    return seeds | {"kept": bytes((16,)) + text(bodies["embeddings"][1]).encode(), "deep": b"\2" + b'{"inputs":' + b"[" * 40}


def numbers():
    found = ["0", "-0", "1", "-12.5e-3", "1e400", "1e-400", "4.9e-324", "2.2250738585072011e-308", "9007199254740993", "18446744073709551616",
             "0.1", "3.4028235677973366e38", "7.0064923216240853e-46", "123456789012345678901234567890", "1E+2", "NaN", "-Infinity", "01", "1.", ".5"]  # fmt: skip
    return {f"number_{i}": n for i, n in enumerate(found)}


def routes():
    found = ["/", "/metrics", "/v2", "/v2/health/live", "/v2/models/m", "/v2/models/a%2Fb/versions/12/infer", "/v2/models/stats",
             "/v2/repository/index", "/v2/repository/models/m/load", "/v1/models/m:predict", "/v1/models/m/versions/3:predict",
             "/v1/models/m/labels/stable/metadata", "/v2/models/%zz", "/v2/models/" + "x" * 300]  # fmt: skip
    return {f"path_{i}": path for i, path in enumerate(found)}


def compressed():
    data = b"some text, some text, some text"
    return {
        "gzip": b"\1" + gzip.compress(data, mtime=0),
        "zlib": b"\0" + zlib.compress(data),
        "bomb": b"\1" + gzip.compress(bytes(200000), mtime=0),
        "two_members": b"\1" + gzip.compress(data, mtime=0) * 2,
        "cut": b"\1" + gzip.compress(data, mtime=0)[:-3],
        "names": b"\0gzip;q=0.5, deflate, *;q=0",
    }


# HTTP


def http1_heads():
    return {
        "get": "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n",
        "post": "POST /v2/models/m/infer HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\n\r\nhello",
        "chunked": "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        "both_lengths": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "old": "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "absolute": "GET http://a/v2 HTTP/1.1\r\nHost: a\r\n\r\n",
        "folded": "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n",
        "bare_line_feeds": "GET / HTTP/1.1\nHost: a\n\n",
        "space_before_colon": "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "upgrade": "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        "many_fields": "GET / HTTP/1.1\r\nHost: a\r\n" + "X: y\r\n" * 101 + "\r\n",
    }


def chunked():
    return {
        "two_chunks": "\x055\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX: y\r\n\r\nnext",
        "empty": "\x010\r\n\r\n",
        "hexadecimal": "\x021a\r\n" + "x" * 26 + "\r\n0\r\n\r\n",
        "too_large": "\0fffffffffffffff\r\n",
        "broken": "\x030x5\r\nhello\r\n0\r\n\r\n",
    }


def http1_sessions():
    """The first byte: 1 answer late, 2 with large responses, 4 the client leaves early, 8 it reads late, 16 drain; the second: the size of pieces."""
    get, head = "GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD /v2 HTTP/1.1\r\nHost: a\r\n\r\n"
    post = "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    chunks = "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n"
    large = "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + "x" * 9000
    found = {
        "pipeline": "\0\xff" + get + head + post + chunks + get,
        "byte_by_byte": "\0\0" + post + chunks + head,
        "late": "\1\x05" + get + post + chunks,
        "large_responses": "\2\xff" + get * 3,
        "unread": "\x0b\xff" + get * 5,
        "leaves": "\7\x10" + get + post * 3,
        "drains": "\x10\x05" + get + post + chunks,
        "many": "\0\xff" + get * 40,
        "half_a_body": "\0\xff" + post[:-2],
        "half_a_head": "\1\xff" + get + get[:20],
        "too_large": "\0\xff" + large + get,
        "chunk_too_large": "\0\xff" + chunks.replace("5\r\nhello", "ffffff\r\nhello"),
        "refused": "\0\xff" + get + "GET / HTTP/1.1\r\n\r\n" + get,
        "expect": "\0\x10" + post.replace("Content-Length", "Expect: 100-continue\r\nContent-Length"),
        "expect_else": "\0\xff" + post.replace("Content-Length", "Expect: x\r\nContent-Length"),
        "old": "\0\xffGET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get,
        "close": "\1\xffGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + get,
        "wrong_verb": "\0\xff" + get.replace("GET", "DELETE") + get.replace("GET", "OPTIONS"),
        "upgrade": "\0\xffGET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        "foreign": "\0\xffEHLO a\r\n",
    }
    return {name: text.encode("latin-1") for name, text in found.items()}


DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION, PRIORITY_UPDATE = *range(10), 16


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def head(method="GET", path="/", huffman=True, **fields):
    pairs = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path), *((k.replace("_", "-"), v) for k, v in fields.items())]
    return hpack.Encoder().encode(pairs, huffman=huffman)


def http2():
    get, post = frame(HEADERS, 5, 1, head()), frame(HEADERS, 4, 1, head("POST", "/m", content_length="5"))
    body = frame(DATA, 1, 1, b"hello")
    whole = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HIHI", 4, 1 << 20, 3, 100)) + get
    block = head("POST", "/long", huffman=False, x_one="1" * 50)
    cut = frame(HEADERS, 0, 1, block[:20]) + frame(CONTINUATION, 0, 1, block[20:40]) + frame(CONTINUATION, 4, 1, block[40:])
    # The first byte: 1 answer at the head, 2 answer late, 4 consume late, 8 trailers, 16 the preface is in the input, 32 reset, 64 drain.
    return {
        "get": b"\0\xff" + get,
        "post": b"\0\xff" + post + body,
        "early_answer": b"\1\xff" + post + body,
        "late": b"\6\x02" + post + body + frame(HEADERS, 5, 3, head()),
        "trailers": b"\x08\xff" + post + frame(DATA, 0, 1, b"hello") + frame(HEADERS, 5, 1, hpack.Encoder().encode([("x-checksum", "1")])),
        "whole": b"\x10\xff" + whole,
        "byte_by_byte": b"\x10\0" + whole + frame(PING, 0, 0, b"12345678"),
        "continuation": b"\0\xff" + cut + frame(DATA, 1, 1, b"x"),
        "padded": b"\0\xff" + frame(HEADERS, 0xC, 1, b"\2" + head("POST", "/") + b"\0\0") + frame(DATA, 9, 1, b"\3abc\0\0\0"),
        "priority": b"\0\xff" + frame(PRIORITY, 0, 3, struct.pack(">IB", 1, 15)) + frame(PRIORITY_UPDATE, 0, 0, struct.pack(">I", 1) + b"u=1, i") + get,
        "window": b"\0\xff" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1)) + get + frame(WINDOW, 0, 1, struct.pack(">I", 100)) + frame(WINDOW, 0, 0, struct.pack(">I", 9)),
        "reset": b"\x22\x03" + post + frame(RESET, 0, 1, struct.pack(">I", 8)) + frame(HEADERS, 5, 3, head()),
        "table": b"\0\xff" + frame(SETTINGS, 0, 0, struct.pack(">HI", 1, 0)) + frame(SETTINGS, 1, 0) + frame(HEADERS, 5, 1, b"\x20" + head()),
        "drain": b"\x42\x02" + b"".join(frame(HEADERS, 5, i, head()) for i in (1, 3, 5)) + frame(PING, 1, 0, b"penstock"),
        "many": b"\2\xff" + b"".join(frame(HEADERS, 5, i, head()) for i in range(1, 40, 2)),
        "goaway": b"\0\xff" + get + frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)),
        "unknown": b"\0\xff" + frame(0x42, 0, 0, b"??") * 5 + get,
        "on_a_closed_stream": b"\0\xff" + get + body,
        "large_head_of_bytes": b"\2\xff" + frame(HEADERS, 5, 1, head() + b"\xb8" * 12000),  # once counted as held although nothing of it was
    }


# Configuration and models


def configurations():
    return {
        "empty": "{}",
        "server": text(dict(server=dict(listen=["127.0.0.1:8080", "[::1]:80"], loops=2), limits=dict(body_bytes_max=1000), timeouts=dict(request_ms=5))),
        "models": text(dict(models=dict(digits=dict(path="/m", precision="int8"), other="/o"), devices=["cpu", "pjrt:a.so"], batching=dict(batch_max=4))),
        "tenants": text(dict(tenants=dict(gold=dict(key="s3cret", weight=100, requests_per_s=5)))),
        "unknown": text(dict(limits=dict(json_depht_max=3))),
        "wrong_type": text(dict(drain=5)),
    }


def manifests():
    tensors = [dict(name="x", datatype="FP32", dims=["batch", 4])]
    return {
        "empty": "{}",
        "whole": text(dict(precision="int8", buckets=dict(batch=[1, 4], sequence=[16, 64]), inputs=dict(ids=dict(pad=0), mask=dict(mask=True, optional=True)),
                           dims=dict(height=224), labels=dict(stable=3), slo_ms=20, packing="never", can_batch=True, pooling="mean")),
        "program": text(dict(program=dict(inputs=tensors, outputs=tensors, weights="w.safetensors", arguments=["w", "x"]))),
        "wrong": text(dict(precision="int9", batch_max=-1)),
    }  # fmt: skip


def small_models():
    """Graphs with what single operators do not have: a branch, a function, quantised layers, shapes that are computed."""
    value = lambda n, shape, t=TensorProto.FLOAT: helper.make_tensor_value_info(n, t, shape)
    weight = lambda n, a: numpy_helper.from_array(a, n)
    floats = lambda *shape: numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape) / 8

    def model(nodes, inputs, outputs, weights=(), domain=("own", 1), **more):
        graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(*domain)], **more)
        made.ir_version = 8
        return made.SerializeToString()

    node = helper.make_node
    branch = lambda name: helper.make_graph([node("Constant", [], [name], value_float=1.0)], name, [], [value(name, [])])
    twice = helper.make_function("own", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)])
    x, y = value("x", ["batch", 4]), value("y", ["batch", 3])
    untyped = lambda n: onnx.ValueInfoProto(name=n)
    body = helper.make_graph([node("Add", ["s", "x"], ["t"]), node("Identity", ["c"], ["d"]), node("Mul", ["t", "half"], ["u"])],
                             "body", [untyped(n) for n in "ics"], [untyped(n) for n in "dtu"])
    step = helper.make_graph([node("Add", ["s", "r"], ["t"]), node("Mul", ["t", "half"], ["u"])], "step", [untyped(n) for n in "sr"], [untyped(n) for n in "tu"])
    ml = "ai.onnx.ml", 5
    tree = dict(domain=ml[0], nodes_treeids=[0] * 5, nodes_nodeids=[0, 1, 2, 3, 4], nodes_featureids=[0, 0, 3, 0, 0], nodes_values=[0.0, 0, 5, 0, 0],
                nodes_modes=["BRANCH_LEQ", "LEAF", "BRANCH_LT", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 3, 0, 0], nodes_falsenodeids=[2, 0, 4, 0, 0])
    weights = lambda kind: {f"{kind}_treeids": [0] * 3, f"{kind}_nodeids": [1, 3, 4], f"{kind}_ids": [0] * 3, f"{kind}_weights": [.25, .5, .75]}
    far = dict(tree, nodes_truenodeids=[1, 0, (1 << 63) - 1, 0, 0])
    ensemble = dict(domain=ml[0], tree_roots=[0], nodes_modes=weight("m", numpy.zeros(2, "u1")), nodes_splits=weight("v", floats(2)), nodes_featureids=[0, 3],
                    nodes_truenodeids=[1, 0], nodes_trueleafs=[0, 1], nodes_falsenodeids=[2, 1], nodes_falseleafs=[1, 1],
                    leaf_targetids=[0, 0, 0], leaf_weights=weight("w", floats(3)))
    half, three = weight("half", numpy.float32(0.5)), weight("three", numpy.array(3))
    return {
        "layer": model([node("Gemm", ["x", "w", "b"], ["h"]), node("Relu", ["h"], ["y"])], [x], [y], [weight("w", floats(4, 3)), weight("b", floats(3))]),
        "quantised": model(
            [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             node("DequantizeLinear", ["w", "s", "o"], ["v"]), node("MatMul", ["d", "v"], ["y"])],
            [x], [y], [weight("s", numpy.float32(0.1)), weight("z", numpy.uint8(128)), weight("o", numpy.int8(0)), weight("w", numpy.ones((4, 3), numpy.int8))]),
        "branch": model([node("If", ["c"], ["y"], then_branch=branch("t"), else_branch=branch("e"))], [value("x", [1])], [value("y", [])], [weight("c", numpy.bool_(True))]),
        "loop": model([node("Loop", ["three", "", "x"], ["y", "z"], body=body)], [x], [value("y", ["batch", 4]), value("z", [3, "batch", 4])], [half, three]),
        "scan": model([node("Scan", ["start", "x"], ["y", "z"], body=step, num_scan_inputs=1)], [x], [value("y", [4]), value("z", ["batch", 4])],
                      [half, weight("start", floats(4))]),
        "sequence": model(
            [node("SplitToSequence", ["x", "two"], ["s"], axis=1), node("SequenceInsert", ["s", "x", "zero"], ["t"]), node("SequenceErase", ["t", "zero"], ["u"]),
             node("ConcatFromSequence", ["u"], ["y"], axis=0)], [x], [value("y", ["n", 2])], [weight("two", numpy.array(2)), weight("zero", numpy.array(0))]),
        "non_zero": model([node("NonZero", ["x"], ["n"]), node("Transpose", ["n"], ["t"]), node("GatherND", ["x", "t"], ["y"])], [x], [value("y", ["n"])]),
        "tile_to_nothing": model([node("Tile", ["x", "n"], ["y"])], [value("x", [2, 3]), value("n", [2], TensorProto.INT16)], [value("y", ["a", "b"])]),
        "trees": model([node("TreeEnsembleRegressor", ["x"], ["y"], base_values=[.5], **tree, **weights("target"))], [x], [value("y", ["batch", 1])], domain=ml),
        "tree_classes": model([node("TreeEnsembleClassifier", ["x"], ["l", "s"], classlabels_int64s=[4, 5], post_transform="LOGISTIC", **tree, **weights("class")),
                               node("ZipMap", ["s"], ["y"], domain=ml[0], classlabels_int64s=[4, 5])], [x], [value("l", ["batch"], TensorProto.INT64), value("y", ["batch", 2])], domain=ml),
        "tree_ensemble": model([node("TreeEnsemble", ["x"], ["y"], **ensemble)], [x], [value("y", ["batch", 1])], domain=ml),
        "tree_far_number": model([node("TreeEnsembleRegressor", ["x"], ["y"], **far, **weights("target"))], [x], [value("y", ["batch", 1])], domain=ml),  # once an overflow
        "tree_base_text": model([node("TreeEnsembleRegressor", ["x"], ["y"], base_values_as_tensor=weight("b", numpy.array([b"1"], object)), **tree, **weights("target"))],
                                [x], [value("y", ["batch", 1])], domain=ml),  # once an assertion
        "function": model([node("Twice", ["x"], ["y"], domain="own")], [x], [value("y", ["batch", 4])], functions=[twice]),
        "computed_shape": model(
            [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Concat", ["n", "two"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])],
            [x], [value("y", ["batch", 2, 2])], [weight("zero", numpy.array([0])), weight("two", numpy.array([2, 2]))]),
        "tokens": model(
            [node("Gather", ["table", "ids"], ["h"]), node("ReduceMean", ["h"], ["m"], axes=[1], keepdims=0), node("Softmax", ["m"], ["y"])],
            [value("ids", ["batch", "sequence"], TensorProto.INT64)], [value("y", ["batch", 4])], [weight("table", floats(5, 4))]),
    }  # fmt: skip


OPERATORS = """Attention AveragePool BatchNormalization Cast Clip Concat Conv ConvTranspose CumSum Einsum Expand Gelu GlobalAveragePool
    LayerNormalization LSTM MatMulInteger MaxPool NonZero OneHot Pad QLinearMatMul Range ReduceSum Resize ScatterND Slice Split Tile TopK Transpose
    Unsqueeze Where""".split()


def node_models():
    """The first small test model of the onnx package for each of these operators."""
    found = {}
    for case in sorted(node_cases.collect_testcases(None), key=lambda c: c.name):
        kinds = {n.op_type for n in case.model.graph.node}
        name = next((o for o in OPERATORS if kinds == {o}), None)
        data = case.model.SerializeToString()
        if name and name not in found and len(data) < 1500:
            found[name] = data
    return {name.lower(): data for name, data in sorted(found.items())}


def stored():
    """tests/fuzz/targets/stored.c: which file, then words of it: place, bytes of the number, the number."""
    patch = lambda at, value, invert=0: struct.pack(">HB", at, 8 | invert) + struct.pack("<Q", value)
    files = {f"file_{i}": bytes([i]) for i in range(8)}
    return {**files, "words": b"\xff" + bytes(8 * 40), "count": b"\1" + patch(6, 1 << 40), "data_offset": b"\0" + patch(8, 64), "data_bytes": b"\0" + patch(9, 1 << 62),
            "some": b"\3" + patch(20, 3) + patch(31, 0) + patch(47, 0, 128)}


def safetensors(header, data=b""):
    packed = text(header).encode()
    return struct.pack("<Q", len(packed)) + packed + data


def safetensors_files():
    return {
        "two": safetensors(dict(a=dict(dtype="F32", shape=[2], data_offsets=[0, 8]), b=dict(dtype="I64", shape=[1, 1], data_offsets=[8, 16])), bytes(16)),
        "metadata": safetensors({"__metadata__": dict(format="pt"), "a": dict(dtype="BF16", shape=[], data_offsets=[0, 2])}, bytes(2)),
        "empty": safetensors({}),
        "overlap": safetensors(dict(a=dict(dtype="U8", shape=[4], data_offsets=[0, 4]), b=dict(dtype="U8", shape=[4], data_offsets=[2, 6])), bytes(6)),
        "lie": struct.pack("<Q", 1 << 60) + b"{}",
    }


def hugging_face():
    config = lambda name: json.dumps(json.loads((ROOT / f"tests/data/hugging_face/{name}/config.json").read_text()))
    found = {name: config(name) for name in ("bert", "distilbert_classes", "mpnet", "roberta_classes")}
    weights = safetensors({"embeddings.word_embeddings.weight": dict(dtype="F32", shape=[8, 4], data_offsets=[0, 128])}, bytes(128))
    return {**found, "own_weights": config("bert").encode() + b"\0" + weights}


# penstock-load


def responses():
    return {
        "plain": "\x20HTTP/1.1 200 OK\r\nContent-Length: 2\r\nServer-Timing: queue;dur=1.5, compute;dur=2;desc=\"a\"\r\n\r\n{}",
        "chunked": "\x03HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "to_the_end": "\x05HTTP/1.0 200 OK\r\n\r\nall of this",
        "continue": "\x09HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nInference-Header-Content-Length: 7\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        "no_body": "\x07HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "lie": "\x01HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
    }


def metadata():
    tensors = dict(x=dict(dtype="DT_FLOAT", tensor_shape=dict(dim=[dict(size="-1"), dict(size="4")])))
    return {
        "kserve": b"\0" + text(dict(name="m", versions=["1"], inputs=[dict(name="x", datatype="FP32", shape=[-1, 4])], outputs=[])).encode(),
        "tensorflow": b"\1" + text(dict(metadata=dict(signature_def=dict(signature_def=dict(serving_default=dict(inputs=tensors)))))).encode(),
    }


def traces():
    return {
        "numbers": "0.5 12\n0.25\n# a comment\n\n3 40\n",
        "objects": '{"offset_ms":5,"tokens":3}\n{"time":"2026-11-22T10:00:00.5Z","body":{"inputs":[]}}\n{"ts":1.5,"length":7}\n',
        "access_log": '127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "POST /v2/models/m/infer HTTP/1.1" 200 2326\n' * 2,
    }


def lines():
    return {
        "expect": b'\0{"outputs":[{"name":"y","data":[1,2.5]}]}\n[1]\n',
        "bodies": b'\1{"inputs":[]}\n{"a":1}\n',
        "ids": b"\2[1,2,3]\n4 5 6\n",
    }


def main():
    shutil.rmtree(CORPUS, ignore_errors=True)
    models = {name: data for name, data in {**small_models(), **node_models()}.items()}
    made = dict(kserve=kserve(), kserve_binary=kserve_binary(), tensorflow=tensorflow(), grpc=grpc(), predict=predict(), language=language(), numbers=numbers(), route=routes(), compress=compressed(),
                http1_head=http1_heads(), http1_chunked=chunked(), http1_session=http1_sessions(), http2_session=http2(), config=configurations(), manifest=manifests(), onnx=models,
                hugging_face=hugging_face(), safetensors=safetensors_files(), stored=stored(), load_response=responses(), load_metadata=metadata(), load_trace=traces(),
                load_lines=lines(), tokenizer=tokenizer_seeds.files(), tokenize=tokenizer_seeds.texts())  # fmt: skip
    for target, seeds in made.items():
        write(target, seeds)
    onnx.checker.check_model(models["layer"])


if __name__ == "__main__":
    main()
