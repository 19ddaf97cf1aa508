/* A model's configuration over gRPC, with the names of Triton's model_config.proto. */
#include <string.h>

#include "server/protocol/grpc/inference.pb-c.h"
#include "server/protocol/signature.h"
#include "server/protocol/text/json_scan.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

#define VERSIONS_MAX 64
#define POLICY_DEPTH_MAX 8

typedef struct configuration {
    Inference__ModelConfig config;
    Inference__ModelVersionPolicy policy;
    Inference__ModelVersionPolicy__Latest latest;
    Inference__ModelVersionPolicy__All all;
    Inference__ModelVersionPolicy__Specific specific;
    int64_t versions[VERSIONS_MAX];
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

/* [1,3] */
static void read_versions(configuration *c, json_scan *s)
{
    bool is_first = true, has_element = false;
    status failure = json_open_array(s);
    while (!failure && !(failure = json_array_next(s, &is_first, &has_element)) && has_element &&
           c->specific.n_versions < VERSIONS_MAX)
        failure = json_read_i64(s, &c->versions[c->specific.n_versions++]);
}

/* {"latest":{"num_versions":1}}, {"specific":{"versions":[1,3]}} or {"all":{}}: the model's own
 * text. */
static void read_policy(configuration *c, json_scan *s)
{
    json_object o, values;
    json_string kind, key;
    bool has_key = false;
    int64_t count = 0;
    if (json_open_object(s, &o) || json_object_next(s, &o, &kind, &has_key) || !has_key ||
        json_open_object(s, &values) || json_object_next(s, &values, &key, &has_key) || !has_key)
        return;
    if (json_string_is(kind, "latest") && !json_read_i64(s, &count)) {
        c->latest.num_versions = (uint32_t)count;
        c->policy.policy_choice_case = INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST;
        c->policy.latest = &c->latest;
    } else if (json_string_is(kind, "specific")) {
        read_versions(c, s);
        c->policy.policy_choice_case = INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC;
        c->policy.specific = &c->specific;
    }
}

static void fill_policy(configuration *c, const model *m)
{
    arena memory = {0};
    json_scan scan;
    c->policy = (Inference__ModelVersionPolicy)INFERENCE__MODEL_VERSION_POLICY__INIT;
    c->latest =
        (Inference__ModelVersionPolicy__Latest)INFERENCE__MODEL_VERSION_POLICY__LATEST__INIT;
    c->all = (Inference__ModelVersionPolicy__All)INFERENCE__MODEL_VERSION_POLICY__ALL__INIT;
    c->specific =
        (Inference__ModelVersionPolicy__Specific)INFERENCE__MODEL_VERSION_POLICY__SPECIFIC__INIT;
    c->specific.versions = c->versions;
    c->policy.policy_choice_case = INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_ALL;
    c->policy.all = &c->all;
    if (m->version_policy != NULL) {
        json_scan_init(&scan, m->version_policy, strlen(m->version_policy), POLICY_DEPTH_MAX, true,
                       &memory);
        read_policy(c, &scan);
        arena_dispose(&memory);
    }
    c->config.version_policy = &c->policy;
}

static void fill(configuration *c, const model *m)
{
    bool is_batched = signature_is_batched(m);
    c->config = (Inference__ModelConfig)INFERENCE__MODEL_CONFIG__INIT;
    c->config.name = (char *)(uintptr_t)m->name;
    c->config.platform = (char *)(uintptr_t)m->platform;
    c->config.backend = (char *)(uintptr_t) "penstock";
    fill_policy(c, m);
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
