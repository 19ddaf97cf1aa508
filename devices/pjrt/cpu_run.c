#include "devices/pjrt/cpu_run.h"

#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"

#define LENGTH_MAX 64   /* tokens of a row; longer samples are cut */
#define TOKENS_MAX 1024 /* of all rows */

const device_samples *pjrt_samples_of(const device_model *model)
{
    return model->samples != NULL ? model->samples : model->text_samples;
}

void pjrt_cpu_run_dispose(pjrt_cpu_run *r)
{
    cpu_plan_destroy(r->plan);
    graph_destroy(r->graph);
    free(r->workspace);
    arena_dispose(&r->memory);
}

static status choose_rows(pjrt_cpu_run *r)
{
    const encoder *e = r->model->encoder;
    int64_t limit = r->model->graph->sequence_max, longest = 1;
    int64_t most = limit > 0 && limit < LENGTH_MAX ? limit : LENGTH_MAX;
    status s = STATUS_OK;
    r->samples = pjrt_samples_of(r->model);
    if (r->samples == NULL) {
        s = device_samples_generate(e->word_table->dims[0], most, &r->memory, &r->generated);
        r->samples = &r->generated;
    }
    if (s)
        return s;
    for (int i = 0; i < r->samples->count; i++)
        if (r->samples->samples[i].length > longest)
            longest = r->samples->samples[i].length;
    r->length = longest < most ? longest : most;
    r->rows = r->samples->count;
    if (r->rows * r->length > TOKENS_MAX)
        r->rows = TOKENS_MAX / r->length;
    return STATUS_OK;
}

/* Spread over the samples. */
static const device_sample *sample_of(const pjrt_cpu_run *r, int64_t row)
{
    return &r->samples->samples[row * r->samples->count / r->rows];
}

/* Models that pool a mean get one text, others two as well: as pairs, in every other row. */
static bool is_pair(const encoder *e, int64_t row)
{
    bool takes_pairs = e->token_type_table != NULL && e->token_type_table->dims[0] > 1;
    for (int i = 0; i < e->output_count; i++)
        takes_pairs &= e->outputs[i].pooling != ENCODER_POOLING_MEAN;
    return takes_pairs && row % 2 == 1;
}

/* A model without a mask sees its sequences again and again instead of padding. */
static void fill_row(const pjrt_cpu_run *r, int input, int64_t row, tensor *to)
{
    const encoder *e = r->model->encoder;
    const device_sample *sample = sample_of(r, row);
    for (int64_t i = 0; i < r->length; i++) {
        bool is_real = i < sample->length || e->mask_input < 0;
        int64_t id = is_real ? sample->ids[i % sample->length] : 0;
        if (id >= e->word_table->dims[0])
            id = 0;
        bool is_second = is_pair(e, row) && is_real && i >= sample->length / 2;
        int64_t number = input == e->ids_input          ? id
                         : input == e->mask_input       ? is_real
                         : input == e->token_type_input ? is_second
                                                        : 0;
        tensor_set_number(to, row * r->length + i, (double)number);
    }
}

static status fill_inputs(pjrt_cpu_run *r)
{
    const graph *g = r->graph;
    r->inputs = arena_allocate_zeroed(&r->memory, (size_t)g->input_count + 1, sizeof *r->inputs);
    const int64_t dims[] = {r->rows, r->length};
    for (int i = 0; r->inputs != NULL && i < g->input_count; i++) {
        dtype type = g->values[g->inputs[i]].dtype;
        status s = tensor_allocate(&r->inputs[i], &r->memory, type, 2, dims);
        if (s)
            return s;
        for (int64_t row = 0; row < r->rows; row++)
            fill_row(r, i, row, &r->inputs[i]);
    }
    return r->inputs != NULL ? STATUS_OK
                             : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a calibration");
}

static status allocate_outputs(pjrt_cpu_run *r, arena *memory)
{
    const graph *g = r->graph;
    r->outputs = arena_allocate_zeroed(memory, (size_t)g->output_count + 1, sizeof *r->outputs);
    for (int i = 0; r->outputs != NULL && i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++)
            dims[d] = v->shape.dims[d].constant;
        if (v->dtype != DTYPE_F32)
            return status_fail(STATUS_UNSUPPORTED, "output \"%s\" is not in f32", v->name);
        status s = tensor_allocate(&r->outputs[i], memory, v->dtype, v->shape.rank, dims);
        if (s)
            return s;
    }
    return r->outputs != NULL ? STATUS_OK
                              : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a calibration");
}

status pjrt_cpu_run_start(pjrt_cpu_run *r, const device_model *model, const encoder_trial *trial,
                          arena *memory)
{
    const encoder_form form = {.trial = trial};
    const kernels *table;
    *r = (pjrt_cpu_run){.model = model};
    status s = choose_rows(r);
    if (s == STATUS_OK)
        s = encoder_pad(model->encoder, model->graph, model->budget, cpu_evaluate_node, r->rows,
                        r->length, &form, &r->graph);
    if (s == STATUS_OK)
        s = kernels_select(NULL, &table);
    if (s == STATUS_OK)
        s = cpu_plan_create(r->graph, table, NULL, &r->plan);
    if (s == STATUS_OK)
        s = fill_inputs(r);
    if (s == STATUS_OK)
        s = allocate_outputs(r, memory);
    if (s)
        return s;
    size_t bytes = (cpu_plan_workspace_bytes(r->plan) / CPU_PLAN_WORKSPACE_ALIGNMENT + 1) *
                   CPU_PLAN_WORKSPACE_ALIGNMENT;
    r->workspace = aligned_alloc(CPU_PLAN_WORKSPACE_ALIGNMENT, bytes);
    if (r->workspace == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a calibration");
    memset(r->workspace, 0, bytes);
    kernels_prepare_thread();
    return cpu_plan_run(r->plan, r->inputs, r->outputs, r->workspace,
                        model->budget != NULL ? model->budget->cancel : NULL);
}

device_accuracy pjrt_cpu_run_compare(const pjrt_cpu_run *r, const tensor *reference,
                                     const tensor *found)
{
    device_comparison c = {0};
    size_t of_row = (size_t)(tensor_count(found) / r->rows);
    bool has_tokens = found->rank >= 2 && found->dims[1] == r->length &&
                      (found->rank > 2 || r->model->encoder->outputs[0].is_column);
    size_t width = has_tokens ? of_row / (size_t)r->length : of_row;
    for (int64_t row = 0; row < r->rows; row++) {
        int64_t length = sample_of(r, row)->length;
        bool is_cut = has_tokens && length < r->length && r->model->encoder->mask_input >= 0;
        device_comparison_add(&c, (const float *)reference->data + (size_t)row * of_row,
                              (const float *)found->data + (size_t)row * of_row,
                              is_cut ? (size_t)length * width : of_row);
    }
    return device_comparison_read(&c, width);
}
