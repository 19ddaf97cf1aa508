"""TensorFlow Serving's gRPC services: its messages as they are documented, and its own stubs where they are installed."""
import grpc
import numpy
import pytest

import calls
import serving
import text_models
from tensorflow_messages import CLASSES, MESSAGES, method

PREDICTION, MODELS = "/tensorflow.serving.PredictionService/", "/tensorflow.serving.ModelService/"
# numpy's type: DataType, and the field that holds the elements.
TYPES = {
    "float32": (1, "float_val"), "float64": (2, "double_val"), "int32": (3, "int_val"), "uint8": (4, "int_val"), "int64": (9, "int64_val"), "bool": (10, "bool_val"),
    "float16": (19, "half_val"),
}  # fmt: skip
MODEL_OF = {"float32": "fp32", "float64": "fp64", "int32": "int32", "uint8": "uint8", "int64": "int64", "bool": "bool", "float16": "fp16"}


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", [("grpc.max_receive_message_length", -1)]) as c:
        yield c


def shape_of(dims):
    return CLASSES["TensorShapeProto"](dim=[CLASSES["Dim"](size=d) for d in dims])


def tensor_of(array, is_typed=False):
    number, field = TYPES[array.dtype.name]
    tensor = CLASSES["TensorProto"](dtype=number, tensor_shape=shape_of(array.shape))
    if is_typed:
        values = array.view(numpy.uint16) if array.dtype == numpy.float16 else array
        getattr(tensor, field).extend(values.reshape(-1).tolist())
    else:
        tensor.tensor_content = array.tobytes()
    return tensor


def array_of(tensor):
    name, field = {number: (name, field) for name, (number, field) in TYPES.items()}[tensor.dtype]
    values = numpy.array(getattr(tensor, field), numpy.uint16 if name == "float16" else name)
    values = values.view(numpy.float16) if name == "float16" else values
    return values.reshape([d.size for d in tensor.tensor_shape.dim])


def request_of(model, inputs, **spec):
    version = {"version": CLASSES["Int64Value"](value=spec.pop("version"))} if "version" in spec else {}
    return CLASSES["PredictRequest"](model_spec=CLASSES["ModelSpec"](name=model, **version, **spec), inputs=inputs)


def predict(channel, request, **more):
    return method(channel, PREDICTION + "Predict", "PredictRequest", "PredictResponse")(request, **more)


@pytest.mark.parametrize("is_typed", [False, True])
@pytest.mark.parametrize("name", TYPES)
def test_every_type(channel, name, is_typed):
    values = numpy.random.default_rng(1).integers(0, 2 if name == "bool" else 100, (3, 5)).astype(name)
    answer = predict(channel, request_of(f"identity_{MODEL_OF[name]}", {"in": tensor_of(values, is_typed)}))
    found = array_of(answer.outputs["out"])
    assert found.dtype == values.dtype and found.shape == values.shape and (found == values).all()
    assert (answer.model_spec.name, answer.model_spec.version.value, answer.model_spec.signature_name) == (f"identity_{MODEL_OF[name]}", 1, "serving_default")


@pytest.mark.parametrize("rows", [40, 1000])
def test_large_tensors(channel, rows):
    """Pieces of their own in the response, and a tensor that is used where it lies in the body."""
    values = numpy.random.default_rng(rows).normal(size=(rows, 500)).astype(numpy.float32)
    assert (array_of(predict(channel, request_of("identity_fp32", {"in": tensor_of(values)})).outputs["out"]) == values).all()
    typed = predict(channel, request_of("identity_fp32", {"in": tensor_of(values, True)}), compression=grpc.Compression.Gzip)
    assert (array_of(typed.outputs["out"]) == values).all()


def test_the_last_element_is_repeated(channel):
    tensor = CLASSES["TensorProto"](dtype=1, tensor_shape=shape_of([2, 3]), float_val=[1, 2])
    assert array_of(predict(channel, request_of("identity_fp32", {"in": tensor})).outputs["out"]).tolist() == [[1, 2, 2], [2, 2, 2]]
    tensor = CLASSES["TensorProto"](dtype=1, tensor_shape=shape_of([2, 2]))
    assert array_of(predict(channel, request_of("identity_fp32", {"in": tensor})).outputs["out"]).tolist() == [[0, 0], [0, 0]]


def test_texts(channel):
    texts = CLASSES["TensorProto"](dtype=7, tensor_shape=shape_of([2]), string_val=[b"the cat", b"paris"])
    content = CLASSES["TensorProto"](dtype=7, tensor_shape=shape_of([2]), tensor_content=b"\x07\x05the catparis")
    for tensor in (texts, content):
        found = array_of(predict(channel, request_of("embed", {"text": tensor})).outputs["sentence_embedding"])
        assert numpy.allclose(found, [text_models.embedding("the cat"), text_models.embedding("paris")], atol=1e-5)


def test_versions_and_outputs(channel):
    one = tensor_of(numpy.ones((1, 2), numpy.float32))
    answer = predict(channel, request_of("identity_fp32", {"in": one}, version=1, signature_name="serving_default"))
    assert set(answer.outputs) == {"out"}
    filtered = request_of("identity_fp32", {"in": one})
    filtered.output_filter.append("out")
    filtered.request_options.client_id = b"somebody"  # changes nothing
    assert set(predict(channel, filtered).outputs) == {"out"}


def test_labels(tmp_path, channel):
    model = serving.identity_model(tmp_path, 1, "labelled")
    (model / "model.json").write_text('{"labels": {"stable": 1}}')
    with calls.Server(tmp_path / "log", {"labelled": model}) as s, grpc.insecure_channel(f"127.0.0.1:{s.port}") as c:
        one = tensor_of(numpy.ones((1, 2), numpy.float32))
        assert predict(c, request_of("labelled", {"in": one}, version_label="stable")).model_spec.version.value == 1
        code, message = calls.status_of(lambda: predict(c, request_of("labelled", {"in": one}, version_label="canary")))
        assert code == grpc.StatusCode.NOT_FOUND and "canary" in message


def test_errors(channel):
    one, bad = tensor_of(numpy.ones((1, 2), numpy.float32)), CLASSES["TensorProto"]
    code, make = grpc.StatusCode, lambda **fields: request_of("identity_fp32", {"in": bad(**fields)})
    shape, filtered, options = shape_of([1, 2]), request_of("identity_fp32", {"in": one}), request_of("identity_fp32", {"in": one})
    filtered.output_filter.append("else")
    options.request_options.return_all_stoptokens = True
    for expected, words, request in (
        (code.NOT_FOUND, 'no model "none"', request_of("none", {"in": one})),
        (code.NOT_FOUND, "version 9", request_of("identity_fp32", {"in": one}, version=9)),
        (code.INVALID_ARGUMENT, "versions begin with 1", request_of("identity_fp32", {"in": one}, version=-1)),
        (code.INVALID_ARGUMENT, 'signature "other"', request_of("identity_fp32", {"in": one}, signature_name="other")),
        (code.INVALID_ARGUMENT, "model_spec.name", CLASSES["PredictRequest"](inputs={"in": one})),
        (code.INVALID_ARGUMENT, 'no input "else"', request_of("identity_fp32", {"else": one})),
        (code.INVALID_ARGUMENT, 'no output "else"', filtered),
        (code.INVALID_ARGUMENT, "request_options", options),
        (code.INVALID_ARGUMENT, "dtype 8 is not supported", make(dtype=8, tensor_shape=shape, scomplex_val=[1, 2, 3, 4])),
        (code.INVALID_ARGUMENT, "datatype FP64", make(dtype=2, tensor_shape=shape, double_val=[1, 2])),
        (code.INVALID_ARGUMENT, 'field "int_val", but FP32 comes in "float_val"', make(dtype=1, tensor_shape=shape, int_val=[1, 2])),
        (code.INVALID_ARGUMENT, "elements of shape", make(dtype=1, tensor_shape=shape, float_val=[1, 2, 3])),
        (code.INVALID_ARGUMENT, "7 binary bytes", make(dtype=1, tensor_shape=shape, tensor_content=b"7 bytes")),
        (code.INVALID_ARGUMENT, "unknown_rank", make(dtype=1, tensor_shape=CLASSES["TensorShapeProto"](unknown_rank=True))),
        (code.INVALID_ARGUMENT, "negative", make(dtype=1, tensor_shape=shape_of([-1, 2]))),
        (code.INVALID_ARGUMENT, "a row of 4194304 tokens", make(dtype=1, tensor_shape=shape_of([2, 1 << 22]), float_val=[1])),
    ):  # fmt: skip
        found, message = calls.status_of(lambda: predict(channel, request))
        assert found == expected and words in message, (words, found, message)


def test_metadata(channel):
    ask = method(channel, PREDICTION + "GetModelMetadata", "GetModelMetadataRequest", "GetModelMetadataResponse")
    request = CLASSES["GetModelMetadataRequest"](model_spec=CLASSES["ModelSpec"](name="digits"), metadata_field=["signature_def"])
    answer = ask(request)
    assert (answer.model_spec.name, answer.model_spec.version.value) == ("digits", 1)
    packed = answer.metadata["signature_def"]
    assert packed.type_url == "type.googleapis.com/tensorflow.serving.SignatureDefMap"
    signature = CLASSES["SignatureDefMap"].FromString(packed.value).signature_def["serving_default"]
    image = signature.inputs["image"]
    assert signature.method_name == "tensorflow/serving/predict" and set(signature.outputs) == {"logits"}
    assert (image.name, image.dtype, [d.size for d in image.tensor_shape.dim]) == ("image", 1, [-1, 64])
    for fields, word in (([], "is empty"), (["other"], '"other"')):
        request.ClearField("metadata_field")
        request.metadata_field.extend(fields)
        code, message = calls.status_of(lambda: ask(request))
        assert code == grpc.StatusCode.INVALID_ARGUMENT and word in message
    other = CLASSES["GetModelMetadataRequest"](model_spec=CLASSES["ModelSpec"](name="none"), metadata_field=["signature_def"])
    assert calls.status_of(lambda: ask(other))[0] == grpc.StatusCode.NOT_FOUND


def test_status(server, channel):
    ask = method(channel, MODELS + "GetModelStatus", "GetModelStatusRequest", "GetModelStatusResponse")
    request = lambda name: CLASSES["GetModelStatusRequest"](model_spec=CLASSES["ModelSpec"](name=name))
    (found,) = ask(request("digits")).model_version_status
    assert (found.version, found.state, found.status.error_code, found.status.error_message) == (1, 30, 0, "")
    assert calls.status_of(lambda: ask(request("none")))[0] == grpc.StatusCode.NOT_FOUND
    server.post("/v2/repository/models/identity_uint8/unload", b"")
    assert [v.state for v in ask(request("identity_uint8")).model_version_status] == [50]
    server.post("/v2/repository/models/identity_uint8/load", b"")
    assert [v.state for v in ask(request("identity_uint8")).model_version_status] == [30]


def test_what_no_model_has(channel):
    spec = CLASSES["ModelSpec"](name="digits")
    task = CLASSES["InferenceTask"](model_spec=spec, method_name="tensorflow/serving/regress")
    for path, request, code, word in (
        (PREDICTION + "Classify", CLASSES["ClassificationRequest"](model_spec=spec), grpc.StatusCode.INVALID_ARGUMENT, "Expected classification signature"),
        (PREDICTION + "Regress", CLASSES["ClassificationRequest"](model_spec=spec), grpc.StatusCode.INVALID_ARGUMENT, "Expected regression signature"),
        (PREDICTION + "MultiInference", CLASSES["MultiInferenceRequest"](tasks=[task]), grpc.StatusCode.INVALID_ARGUMENT, "Expected regression signature"),
        (PREDICTION + "MultiInference", CLASSES["MultiInferenceRequest"](), grpc.StatusCode.INVALID_ARGUMENT, "tasks"),
        (PREDICTION + "Classify", CLASSES["ClassificationRequest"](model_spec=CLASSES["ModelSpec"](name="none")), grpc.StatusCode.NOT_FOUND, "none"),
        (MODELS + "HandleReloadConfigRequest", CLASSES["ReloadConfigRequest"](), grpc.StatusCode.UNIMPLEMENTED, "HandleReloadConfigRequest"),
    ):
        ask = channel.unary_unary(path, lambda m: m.SerializeToString(), CLASSES["Nothing"].FromString)
        found, message = calls.status_of(lambda: ask(request))
        assert found == code and word in message, (path, found, message)


def test_reflection_has_the_same_numbers(server):
    pool = pytest.importorskip("google.protobuf.descriptor_pool")
    database = pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database")
    found = database.ProtoReflectionDescriptorDatabase(grpc.insecure_channel(f"127.0.0.1:{server.port}"))
    ours = pool.DescriptorPool(found)
    for name in ("PredictionService", "ModelService"):
        assert ours.FindServiceByName(f"tensorflow.serving.{name}").methods
    for package, messages in MESSAGES.items():
        for name in set(messages) - {"Dim", "Nothing", "RequestOptions"}:
            fields = ours.FindMessageTypeByName(f"{package}.{name}").fields
            documented = CLASSES[name].DESCRIPTOR.fields_by_name
            assert {f.name: f.number for f in fields} == {f.name: documented[f.name].number for f in fields}, name


def test_its_own_stubs(server):
    """Unchanged, where they are installed: they need TensorFlow."""
    tensorflow = pytest.importorskip("tensorflow")
    apis = pytest.importorskip("tensorflow_serving.apis")
    from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2, model_service_pb2_grpc, predict_pb2, prediction_service_pb2_grpc

    assert apis
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        values = numpy.random.default_rng(5).normal(size=(4, 6)).astype(numpy.float32)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "identity_fp32"
        request.model_spec.version.value = 1
        for tensor in (tensorflow.make_tensor_proto(values), tensorflow.make_tensor_proto(3.0, shape=(2, 6))):
            request.inputs["in"].CopyFrom(tensor)
            found = tensorflow.make_ndarray(stub.Predict(request, 60).outputs["out"])
            assert (found == tensorflow.make_ndarray(tensor)).all()
        asked = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        asked.model_spec.name = "digits"
        signatures = get_model_metadata_pb2.SignatureDefMap()
        assert stub.GetModelMetadata(asked).metadata["signature_def"].Unpack(signatures)
        assert signatures.signature_def["serving_default"].inputs["image"].dtype == tensorflow.float32.as_datatype_enum
        status = get_model_status_pb2.GetModelStatusRequest()
        status.model_spec.name = "digits"
        (version,) = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(status).model_version_status
        assert version.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
