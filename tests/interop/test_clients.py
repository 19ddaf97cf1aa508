"""Clients of others, each over every version of HTTP that it speaks, in clear text and over TLS."""
import subprocess

import pytest

import exchange
from exchange import PATH
from programs import find, h2load, nghttp, run

TIMES = (200, 20)  # of small and of large requests


def ask_with_curl(folder, url, e, flag, times):
    """What it tells of each request. The answers are compared."""
    told = run(find("curl"), "-sk", flag, "--data-binary", f"@{e.file}", *e.header_flags(), "-o", f"{folder}/#1", "-w", "%{http_version} %{http_code}\n",
               f"{url}{PATH}?[1-{times}]").decode()  # fmt: skip
    assert all(e.is_answer((folder / str(i)).read_bytes()) for i in range(1, times + 1)), told
    return told.split("\n")[:-1]


@pytest.mark.parametrize("scheme, flag, version", [("http", "--http1.1", "1.1"), ("https", "--http1.1", "1.1"), ("https", "--http2", "2")])
def test_curl(server, exchanges, tmp_path, scheme, flag, version):
    url = f"{scheme}://127.0.0.1:{server.tls_port if scheme == 'https' else server.port}"
    for e, times in zip(exchanges, TIMES):
        assert ask_with_curl(tmp_path, url, e, flag, times) == [f"{version} 200"] * times


def test_curl_upgrades(server):
    """The first request asks for the upgrade, the others are streams. Without bodies: curl 7.88 may take the 101 for the answer to an upload."""
    told = run(find("curl"), "-s", "--http2", "-w", " %{http_version} %{http_code}\n", f"http://127.0.0.1:{server.port}/v2/health/live?[1-200]").decode()
    assert told.split("\n")[:-1] == ['{"live":true} 2 200'] * 200, told[:300]


def test_curl_with_prior_knowledge(server, exchanges, tmp_path):
    """One request a run: curl 7.88 fails at a second one on the same connection, with any server."""
    for e in exchanges:
        for _ in range(5):
            assert ask_with_curl(tmp_path, f"http://127.0.0.1:{server.port}", e, "--http2-prior-knowledge", 1) == ["2 200"]


@pytest.mark.parametrize("flags", [["--h1"], []], ids=["http1", "http2"])
def test_h2load(url, exchanges, flags):
    for e, times in zip(exchanges, (2000, 100)):
        h2load(url, e, times, *flags)


@pytest.mark.parametrize("flags", [[], ["-u"]], ids=["http2", "upgrade"])
def test_nghttp(url, exchanges, flags):
    if flags and url.startswith("https"):
        pytest.skip("there is no upgrade over TLS")
    for e in exchanges:
        nghttp(url, e, 50, *flags)


@pytest.mark.parametrize("is_http2", [False, True], ids=["http1", "http2"])
def test_httpx(url, exchanges, is_http2):
    small, large = exchanges
    exchange.ask(url, [large if i % 12 == 0 else small for i in range(200)], is_http2)


def test_go(url, exchanges):
    """net/http, which speaks HTTP/2 in clear text only by prior knowledge."""
    program = find("interop-go")
    for e, times in zip(exchanges, TIMES):
        answer = run(program, url + PATH, e.file, e.headers["Inference-Header-Content-Length"], times)
        assert e.is_answer(answer)  # the program has compared the others with it


def test_java(server, exchanges, tmp_path):
    """java.net.http, which upgrades in clear text. One start for all: it takes longer than the requests."""
    java, source = find("java"), __file__.replace("test_clients.py", "Client.java")
    if subprocess.run([java, "--list-modules"], capture_output=True, text=True).stdout.find("jdk.compiler") < 0:
        pytest.skip("this Java has no compiler")
    urls = f"http://127.0.0.1:{server.port}{PATH},https://127.0.0.1:{server.tls_port}{PATH}"
    files = [(e.file, e.headers["Inference-Header-Content-Length"], times, tmp_path / e.file.name) for e, times in zip(exchanges, TIMES)]
    run(java, "-XX:TieredStopAtLevel=1", source, urls, *[word for file in files for word in file])
    assert all(e.is_answer(file[3].read_bytes()) for e, file in zip(exchanges, files))  # the program has compared the others with it
