"""Tensors in memory that a client shares: tritonclient unchanged, over HTTP and gRPC, and clients that mean no good."""
import os
import pathlib
import subprocess
import uuid

import grpc
import numpy
import pytest
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

import calls
import serving
import text_models

shm = pytest.importorskip("tritonclient.utils.shared_memory")
FOLDER = pathlib.Path("/dev/shm")
VALUES = numpy.random.default_rng(2).normal(size=(3, 40)).astype(numpy.float32)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    models = {"identity": serving.identity_model(folder, TensorProto.FLOAT, "identity"), "embed": text_models.make(folder)["embed"]}
    flags = ["--set", "server.shared_memory=true", "--set", "limits.shared_memory_bytes_max=16777216", "--set", "limits.decompressed_bytes_max=3670016"]
    with calls.Server(folder / "server.log", models, *flags) as s:
        yield s


@pytest.fixture(params=["http", "grpc"])
def triton(request):
    return {"http": tritonclient.http, "grpc": tritonclient.grpc}[request.param]


@pytest.fixture
def client(server, triton):
    with triton.InferenceServerClient(f"127.0.0.1:{server.port}") as c:
        c.unregister_system_shared_memory()
        yield c


@pytest.fixture
def region(client):
    """A region of 4 KiB, registered as "here"."""
    key = f"/penstock_{uuid.uuid4().hex}"
    handle = shm.create_shared_memory_region("here", key, 4096)
    client.register_system_shared_memory("here", key, 4096)
    yield handle, FOLDER / key[1:]
    shm.destroy_shared_memory_region(handle)


def input_at(triton, array, offset=0, name="in", region="here", datatype="FP32", size=None):
    tensor = triton.InferInput(name, list(array.shape), datatype)
    tensor.set_shared_memory(region, size or array.nbytes, offset=offset)
    return tensor


def output_at(triton, size, offset=0, name="out", region="here"):
    output = triton.InferRequestedOutput(name)
    output.set_shared_memory(region, size, offset=offset)
    return output


def regions_of(client, name=""):
    found = client.get_system_shared_memory_status(name)
    found = found if isinstance(found, list) else [dict(name=r.name, key=r.key, offset=r.offset, byte_size=r.byte_size) for r in found.regions.values()]
    return sorted((r["name"], r["offset"], r["byte_size"]) for r in found)


def test_input_and_output(client, triton, region):
    handle, _ = region
    shm.set_shared_memory_region(handle, [VALUES])
    result = client.infer("identity", [input_at(triton, VALUES)], outputs=[output_at(triton, 1024, offset=2048)], request_id="9")
    assert (shm.get_contents_as_numpy(handle, numpy.float32, [3, 40], offset=2048) == VALUES).all()
    if triton is tritonclient.grpc:
        output = result.get_response().outputs[0]
        found = {k: v.int64_param or v.string_param for k, v in output.parameters.items()}
        assert found == {"shared_memory_region": "here", "shared_memory_byte_size": VALUES.nbytes, "shared_memory_offset": 2048}
        assert list(output.shape) == [3, 40] and list(result.get_response().raw_output_contents) == [b""]
    else:
        # Triton's C++ client takes parameters for a promise of binary bytes.
        assert result.get_output("out") == {"name": "out", "datatype": "FP32", "shape": [3, 40]}


def test_one_side_only(client, triton, region):
    handle, _ = region
    shm.set_shared_memory_region(handle, [VALUES])
    assert (client.infer("identity", [input_at(triton, VALUES)]).as_numpy("out") == VALUES).all()
    tensor = triton.InferInput("in", [3, 40], "FP32")
    tensor.set_data_from_numpy(VALUES + 1)
    client.infer("identity", [tensor], outputs=[output_at(triton, 480)])
    assert (shm.get_contents_as_numpy(handle, numpy.float32, [3, 40]) == VALUES + 1).all()


def test_strings(client, triton, region):
    handle, _ = region
    texts = numpy.array([b"the cat", b"paris"], object)
    packed = serialize_byte_tensor(texts).item()
    shm.set_shared_memory_region(handle, [numpy.frombuffer(packed, numpy.uint8)])
    result = client.infer("embed", [input_at(triton, texts, name="text", datatype="BYTES", size=len(packed))], outputs=[output_at(triton, 256, 1024, "sentence_embedding")])
    found = shm.get_contents_as_numpy(handle, numpy.float32, [2, 8], offset=1024)
    assert result and numpy.allclose(found, [text_models.embedding("the cat"), text_models.embedding("paris")], atol=1e-5)


def test_large_tensors(client, triton):
    values = numpy.random.default_rng(3).normal(size=(1500, 500)).astype(numpy.float32)
    handle = shm.create_shared_memory_region("large", f"/penstock_{uuid.uuid4().hex}", 2 * values.nbytes)
    try:
        key = next(p for p in FOLDER.glob("penstock_*") if p.stat().st_size == 2 * values.nbytes)
        client.register_system_shared_memory("large", f"/{key.name}", 2 * values.nbytes)
        shm.set_shared_memory_region(handle, [values])
        client.infer("identity", [input_at(triton, values, region="large")], outputs=[output_at(triton, values.nbytes, values.nbytes, region="large")])
        assert (shm.get_contents_as_numpy(handle, numpy.float32, values.shape, offset=values.nbytes) == values).all()
    finally:
        shm.destroy_shared_memory_region(handle)


def test_registering(client, triton, region):
    _, path = region
    client.register_system_shared_memory("part", path.name, 96, offset=4000)
    assert regions_of(client) == [("here", 0, 4096), ("part", 4000, 96)] and regions_of(client, "part") == [("part", 4000, 96)]
    client.unregister_system_shared_memory("part")
    client.unregister_system_shared_memory("part")  # it is not there: that is what was asked for
    assert regions_of(client) == [("here", 0, 4096)]
    with pytest.raises(InferenceServerException, match="no shared memory region"):
        client.get_system_shared_memory_status("part")
    client.unregister_system_shared_memory()
    assert regions_of(client) == []
    assert not client.get_cuda_shared_memory_status(as_json=True).get("regions") if triton is tritonclient.grpc else client.get_cuda_shared_memory_status() == []
    client.unregister_cuda_shared_memory()
    with pytest.raises(InferenceServerException, match="CUDA shared memory is not supported"):
        client.register_cuda_shared_memory("gpu", b"eA==", 0, 4)


def test_what_may_not_be_registered(client, region, tmp_path):
    _, path = region
    fifo, link, outside = FOLDER / f"fifo_{uuid.uuid4().hex}", FOLDER / f"link_{uuid.uuid4().hex}", tmp_path / "outside"
    os.mkfifo(fifo)
    outside.write_bytes(bytes(100))
    link.symlink_to(outside)
    try:
        for key, size, offset, words in (
            ("/penstock_none", 10, 0, "there is none of that key"),
            ("/../../etc/passwd", 10, 0, "is no name of shared memory"),
            ("../etc/passwd", 10, 0, "is no name of shared memory"),
            ("/..", 10, 0, "is no name of shared memory"),
            ("", 10, 0, "is no name of shared memory"),
            (f"/{fifo.name}", 10, 0, "is no shared memory"),
            (f"/{link.name}", 10, 0, "symbolic links"),
            (f"/{path.name}", 4097, 0, "has 4096"),
            (f"/{path.name}", 4096, 1, "has 4096"),
            (f"/{path.name}", 1, 2**63 - 1, "has 4096"),
            (f"/{path.name}", 0, 0, "is empty"),
        ):
            with pytest.raises(InferenceServerException, match=words):
                client.register_system_shared_memory("bad", key, size, offset=offset)
        with pytest.raises(InferenceServerException, match="registered already"):
            client.register_system_shared_memory("here", f"/{path.name}", 10)
        assert regions_of(client) == [("here", 0, 4096)]
    finally:
        fifo.unlink()
        link.unlink()


def test_regions_are_bounded(client, region):
    _, path = region
    for i in range(63):
        client.register_system_shared_memory(f"r{i}", path.name, 4)
    with pytest.raises(InferenceServerException, match="64 shared memory regions"):
        client.register_system_shared_memory("more", path.name, 4)
    client.unregister_system_shared_memory()
    large = FOLDER / f"penstock_{uuid.uuid4().hex}"
    try:
        with open(large, "wb") as file:
            file.truncate(17 << 20)
        client.register_system_shared_memory("here", large.name, 16 << 20)
        with pytest.raises(InferenceServerException, match="more than 16777216 bytes"):
            client.register_system_shared_memory("more", large.name, 1)
        client.unregister_system_shared_memory()
        client.register_system_shared_memory("here", large.name, 16 << 20)  # it counts no longer
    finally:
        large.unlink()


def test_errors_of_requests(client, triton, region):
    bare = triton.InferInput("in", [3, 40], "FP32")
    bare.set_shared_memory("here", 0)
    first = lambda **more: [input_at(triton, VALUES, **more)]
    for words, inputs, outputs in (
        ('region "none" is not registered', first(region="none"), None),
        ('shared_memory_byte_size" is missing', [bare], None),
        ("has 4096 bytes, not 480 at 3617", first(offset=3617), None),
        ("shared_memory_byte_size is 4, but the tensor takes 480", first(size=4), None),
        ('region "none" is not registered', first(), [output_at(triton, 480, region="none")]),
        ("has 4096 bytes, not 5000 at 0", first(), [output_at(triton, 5000)]),
        ("shared_memory_byte_size is 479, but the result takes 480", first(), [output_at(triton, 479)]),
    ):
        with pytest.raises(InferenceServerException, match=words):
            client.infer("identity", inputs, outputs=outputs)


def test_a_region_that_becomes_shorter(client, triton, region):
    """Its owner may do that at any time: an error of the request, and nothing else."""
    _, path = region
    os.truncate(path, 100)
    for outputs in (None, [output_at(triton, 480)]):
        with pytest.raises(InferenceServerException, match="shorter than it was"):
            client.infer("identity", [input_at(triton, VALUES)], outputs=outputs)
    tensor = triton.InferInput("in", [3, 40], "FP32")
    tensor.set_data_from_numpy(VALUES)
    with pytest.raises(InferenceServerException, match="shorter than it was"):
        client.infer("identity", [tensor], outputs=[output_at(triton, 480)])
    assert path.stat().st_size == 100 and (client.infer("identity", [tensor]).as_numpy("out") == VALUES).all()


def test_inputs_together_are_bounded(server):
    """As a body would be that was compressed: 3.5 MiB here. One region, named again and again, is copied so often."""
    path = FOLDER / f"penstock_{uuid.uuid4().hex}"
    size, stub = 4 << 20, calls.stub(server.port)
    try:
        with open(path, "wb") as file:
            file.truncate(size)
        stub.SystemSharedMemoryUnregister(service_pb2.SystemSharedMemoryUnregisterRequest())
        stub.SystemSharedMemoryRegister(service_pb2.SystemSharedMemoryRegisterRequest(name="here", key=path.name, byte_size=size))
        tensor = service_pb2.ModelInferRequest.InferInputTensor(name="in", datatype="FP32", shape=[2048, 512])
        tensor.parameters["shared_memory_region"].string_param = "here"
        tensor.parameters["shared_memory_byte_size"].int64_param = size
        code, message = calls.status_of(lambda: stub.ModelInfer(service_pb2.ModelInferRequest(model_name="identity", inputs=[tensor])))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "inputs in shared memory of more than 3670016 bytes" in message, (code, message)
    finally:
        path.unlink()


def test_it_is_off_by_default(tmp_path):
    model = serving.identity_model(tmp_path, TensorProto.FLOAT, "identity")
    with calls.Server(tmp_path / "log", {"identity": model}, *serving.CONTROL) as s:
        with tritonclient.http.InferenceServerClient(f"127.0.0.1:{s.port}") as c:
            with pytest.raises(InferenceServerException, match="shared memory is turned off"):
                c.get_system_shared_memory_status()
            assert "system_shared_memory" not in c.get_server_metadata()["extensions"]
            with pytest.raises(InferenceServerException, match="is not registered"):
                c.infer("identity", [input_at(tritonclient.http, VALUES)])


def test_a_right_of_its_own(tmp_path):
    """Who may register is not who may run models, and a region is of use only to those with the right."""
    model, keys, made = serving.identity_model(tmp_path, TensorProto.FLOAT, "identity"), tmp_path / "keys", {}
    for name, rights in (("plain", "infer"), ("sharing", "infer,shared_memory"), ("operator", "admin,read")):
        run = subprocess.run([serving.BINARY, "key", name, "--rights", rights], capture_output=True, text=True, check=True)
        made[name] = {"authorization": f"Bearer {run.stderr.strip()}"}
        with open(keys, "a") as out:
            out.write(run.stdout)
    path = FOLDER / f"penstock_{uuid.uuid4().hex}"
    try:
        path.write_bytes(VALUES.tobytes())
        with calls.Server(tmp_path / "log", {"identity": model}, "--keys", str(keys)) as s:
            with tritonclient.http.InferenceServerClient(f"127.0.0.1:{s.port}") as c:
                for name in ("plain", "operator"):
                    with pytest.raises(InferenceServerException, match="does not allow that"):
                        c.register_system_shared_memory("here", path.name, VALUES.nbytes, headers=made[name])
                c.register_system_shared_memory("here", path.name, VALUES.nbytes, headers=made["sharing"])
                tensors = [input_at(tritonclient.http, VALUES)]
                assert (c.infer("identity", tensors, headers=made["sharing"]).as_numpy("out") == VALUES).all()
                with pytest.raises(InferenceServerException, match="is not registered, or this client may not use it"):
                    c.infer("identity", tensors, headers=made["plain"])
    finally:
        path.unlink()
