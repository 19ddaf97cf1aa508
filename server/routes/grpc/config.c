/* A model's configuration over gRPC, with the names of Triton's model_config.proto. */
#include "server/protocol/grpc/inference.pb-c.h"
#include "server/protocol/signature.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

typedef struct configuration {
    Inference__ModelConfig config;
    Inference__ModelVersionPolicy policy;
    Inference__ModelVersionPolicy__Latest latest;
    Inference__ModelDynamicBatching batching;
    Inference__ModelInput inputs[SIGNATURE_INPUTS_MAX];
    Inference__ModelInput *input_list[SIGNATURE_INPUTS_MAX];
    Inference__ModelOutput outputs[MODEL_TENSORS_MAX];
    Inference__ModelOutput *output_list[MODEL_TENSORS_MAX];
    int64_t input_dims[SIGNATURE_INPUTS_MAX][TENSOR_RANK_MAX];
    int64_t output_dims[MODEL_TENSORS_MAX][TENSOR_RANK_MAX];
    int32_t sizes[MODEL_AXIS_MAX];
    model_tensor signature[SIGNATURE_INPUTS_MAX];
} configuration;

static Inference__DataType data_type(dtype type)
{
    static const Inference__DataType types[DTYPE_COUNT] = {
        [DTYPE_BOOL] = INFERENCE__DATA_TYPE__TYPE_BOOL,
        [DTYPE_U8] = INFERENCE__DATA_TYPE__TYPE_UINT8,
        [DTYPE_U16] = INFERENCE__DATA_TYPE__TYPE_UINT16,
        [DTYPE_U32] = INFERENCE__DATA_TYPE__TYPE_UINT32,
        [DTYPE_U64] = INFERENCE__DATA_TYPE__TYPE_UINT64,
        [DTYPE_I8] = INFERENCE__DATA_TYPE__TYPE_INT8,
        [DTYPE_I16] = INFERENCE__DATA_TYPE__TYPE_INT16,
        [DTYPE_I32] = INFERENCE__DATA_TYPE__TYPE_INT32,
        [DTYPE_I64] = INFERENCE__DATA_TYPE__TYPE_INT64,
        [DTYPE_F16] = INFERENCE__DATA_TYPE__TYPE_FP16,
        [DTYPE_BF16] = INFERENCE__DATA_TYPE__TYPE_BF16,
        [DTYPE_F32] = INFERENCE__DATA_TYPE__TYPE_FP32,
        [DTYPE_F64] = INFERENCE__DATA_TYPE__TYPE_FP64,
        [DTYPE_BYTES] = INFERENCE__DATA_TYPE__TYPE_STRING,
    };
    return types[type];
}

/* Returns how many dims there are without the batch axis of a batched model. */
static size_t fill_dims(int64_t dims[TENSOR_RANK_MAX], const model_tensor *t, bool is_batched)
{
    size_t count = 0;
    for (int i = is_batched && t->batch_axis == 0; i < t->rank; i++)
        dims[count++] = signature_dim(t, i);
    return count;
}

static void fill_inputs(configuration *c, const model *m, bool is_batched)
{
    int count = signature_inputs(m, c->signature);
    for (int i = 0; i < count; i++) {
        const model_tensor *t = &c->signature[i];
        Inference__ModelInput *to = c->input_list[i] = &c->inputs[i];
        *to = (Inference__ModelInput)INFERENCE__MODEL_INPUT__INIT;
        to->name = (char *)(uintptr_t)t->name;
        to->data_type = data_type(t->dtype);
        to->dims = c->input_dims[i];
        to->n_dims = fill_dims(c->input_dims[i], t, is_batched);
        to->optional = t->is_optional;
    }
    c->config.input = c->input_list;
    c->config.n_input = (size_t)count;
}

static void fill_outputs(configuration *c, const model *m, bool is_batched)
{
    for (int i = 0; i < m->output_count; i++) {
        const model_tensor *t = &m->outputs[i];
        Inference__ModelOutput *to = c->output_list[i] = &c->outputs[i];
        *to = (Inference__ModelOutput)INFERENCE__MODEL_OUTPUT__INIT;
        to->name = (char *)(uintptr_t)t->name;
        to->data_type = data_type(t->dtype);
        to->dims = c->output_dims[i];
        to->n_dims = fill_dims(c->output_dims[i], t, is_batched);
    }
    c->config.output = c->output_list;
    c->config.n_output = (size_t)m->output_count;
}

static void fill_batching(configuration *c, const model *m)
{
    c->batching = (Inference__ModelDynamicBatching)INFERENCE__MODEL_DYNAMIC_BATCHING__INIT;
    for (int i = 0; i < m->batch_bucket_count; i++)
        c->sizes[i] = (int32_t)m->batch_buckets[i];
    c->batching.preferred_batch_size = c->sizes;
    c->batching.n_preferred_batch_size = (size_t)m->batch_bucket_count;
    c->batching.max_queue_delay_microseconds = m->batching.queue_delay_ns / 1000;
    c->config.dynamic_batching = &c->batching;
}

static void fill(configuration *c, const model *m)
{
    bool is_batched = signature_is_batched(m);
    c->config = (Inference__ModelConfig)INFERENCE__MODEL_CONFIG__INIT;
    c->policy = (Inference__ModelVersionPolicy)INFERENCE__MODEL_VERSION_POLICY__INIT;
    c->latest =
        (Inference__ModelVersionPolicy__Latest)INFERENCE__MODEL_VERSION_POLICY__LATEST__INIT;
    c->latest.num_versions = 1;
    c->policy.latest = &c->latest;
    c->config.name = (char *)(uintptr_t)m->name;
    c->config.platform = (char *)(uintptr_t)m->platform;
    c->config.backend = (char *)(uintptr_t) "penstock";
    c->config.version_policy = &c->policy;
    c->config.max_batch_size = is_batched ? (int32_t)m->batching.batch_max : 0;
    fill_inputs(c, m, is_batched);
    fill_outputs(c, m, is_batched);
    if (is_batched && m->batching.can_batch)
        fill_batching(c, m);
}

void method_model_config(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__ModelConfigRequest *asked = (const Inference__ModelConfigRequest *)in;
    Inference__ModelConfigResponse out = INFERENCE__MODEL_CONFIG_RESPONSE__INIT;
    const model *m;
    if (!method_find_model(r, asked->name, asked->version, &m))
        return;
    configuration *c = arena_allocate(memory, sizeof *c);
    if (c == NULL) {
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
    } else {
        fill(c, m);
        out.config = &c->config;
        method_reply(r, &out.base);
    }
    model_release(m);
}
