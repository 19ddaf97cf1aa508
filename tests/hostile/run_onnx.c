#include "run_onnx.h"

#include <stdlib.h>

#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/plan/plan.h"
#include "graph/encoder/encoder.h"
#include "graph/import.h"
#include "graph/specialise/specialise.h"

#define VALUES_BYTES_MAX (8L << 20) /* a model that grew beyond this is rejected */

/* What a damaged model may cost: nothing is folded or run beyond it. */
static const graph_budget budget = {.activation_bytes_max = VALUES_BYTES_MAX,
                                    .operations_max = 100000000};

/* Small numbers: token ids as well as pixels. */
static void fill(tensor *t)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        switch (t->dtype) {
        case DTYPE_F32:
            ((float *)t->data)[i] = (float)(i % 7) / 4;
            break;
        case DTYPE_I64:
            ((int64_t *)t->data)[i] = i % 3;
            break;
        case DTYPE_I32:
            ((int32_t *)t->data)[i] = (int32_t)(i % 3);
            break;
        default:
            return; /* zeros */
        }
    }
}

static status make_tensors(const graph *g, const graph_value_index *values, int count,
                           arena *memory, tensor **out)
{
    tensor *made = arena_allocate_zeroed(memory, (size_t)count + 1, sizeof *made);
    for (int i = 0; made != NULL && i < count; i++) {
        const graph_value *v = &g->values[values[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++)
            dims[d] = v->shape.dims[d].constant;
        /* models/ has a limit of its own for these: an input may be one that no node reads */
        status s = tensor_set_shape(&made[i], v->dtype, v->shape.rank, dims);
        if (!s && tensor_bytes(&made[i]) > VALUES_BYTES_MAX)
            s = status_fail(STATUS_TOO_LARGE, "a tensor of %zu bytes", tensor_bytes(&made[i]));
        if (!s)
            s = tensor_allocate(&made[i], memory, v->dtype, v->shape.rank, dims);
        if (s)
            return s;
        fill(&made[i]);
    }
    *out = made;
    return made != NULL ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory");
}

static status run(const graph *g)
{
    const kernels *table;
    cpu_plan *plan;
    arena memory = {0};
    tensor *inputs, *outputs;
    status s = kernels_select(NULL, &table);
    if (s == STATUS_OK)
        s = cpu_plan_create(g, table, NULL, &plan);
    if (s)
        return s;
    size_t bytes = cpu_plan_workspace_bytes(plan);
    void *workspace = arena_allocate_aligned(&memory, bytes + 1, CPU_PLAN_WORKSPACE_ALIGNMENT);
    s = make_tensors(g, g->inputs, g->input_count, &memory, &inputs);
    if (s == STATUS_OK)
        s = make_tensors(g, g->outputs, g->output_count, &memory, &outputs);
    if (s == STATUS_OK)
        s = cpu_plan_run(plan, inputs, outputs, workspace, NULL);
    arena_dispose(&memory);
    cpu_plan_destroy(plan);
    return s;
}

/* A model whose shapes depend on values. */
static status run_dynamic(const graph *g)
{
    cpu_dynamic_options options = {
        .graph = g, .budget = &budget, .threads = 1, .evaluate = cpu_evaluate_node};
    cpu_dynamic_memory workspace = {0};
    cpu_dynamic *program = NULL;
    arena memory = {0};
    tensor *inputs = calloc((size_t)g->input_count + 1, sizeof *inputs);
    tensor *outputs = calloc((size_t)g->output_count + 1, sizeof *outputs);
    status s = kernels_select(NULL, &options.kernels);
    if (s == STATUS_OK)
        s = graph_bind(g, 2, 5, inputs);
    for (int i = 0; s == STATUS_OK && i < g->input_count; i++) {
        if (tensor_bytes(&inputs[i]) > VALUES_BYTES_MAX)
            s = status_fail(STATUS_TOO_LARGE, "an input of %zu bytes", tensor_bytes(&inputs[i]));
        else
            s = tensor_allocate(&inputs[i], &memory, inputs[i].dtype, inputs[i].rank,
                                inputs[i].dims);
        if (s == STATUS_OK)
            fill(&inputs[i]);
    }
    options.weights = cpu_weights_create(g);
    if (s == STATUS_OK)
        s = cpu_dynamic_create(&options, &program);
    if (s == STATUS_OK)
        s = cpu_dynamic_run(program, inputs, outputs, &memory,
                            &(cpu_dynamic_caller){.memory = &workspace});
    cpu_dynamic_memory_trim(&workspace, 0);
    cpu_dynamic_destroy(program);
    cpu_weights_release(options.weights);
    free(inputs);
    free(outputs);
    arena_dispose(&memory);
    return s;
}

status run_onnx(const uint8_t *data, size_t bytes)
{
    graph *g = NULL, *special = NULL;
    encoder found;
    status s = graph_import_onnx_bytes(data, bytes, NULL, NULL, &g);
    if (s)
        return s;
    s = graph_infer_symbolic(g, &budget, cpu_evaluate_node);
    if (s == STATUS_OK && encoder_recognise(g, &budget, cpu_evaluate_node, &found) == STATUS_OK)
        encoder_dispose(&found);
    tensor *inputs = calloc((size_t)g->input_count + 1, sizeof *inputs);
    if (s == STATUS_UNSUPPORTED) {
        s = run_dynamic(g);
        goto end;
    }
    if (s == STATUS_OK)
        s = graph_bind(g, 2, 5, inputs);
    if (s == STATUS_OK)
        s = graph_specialise(g, &(graph_binding){inputs, &budget}, cpu_evaluate_node, &special);
    if (s == STATUS_OK)
        s = graph_cost_check(special, &budget);
    if (s == STATUS_OK)
        s = run(special);
end:
    free(inputs);
    graph_destroy(special);
    graph_destroy(g);
    return s;
}
