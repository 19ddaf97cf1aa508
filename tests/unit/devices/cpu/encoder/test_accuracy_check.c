/* What the accuracy check of int8 and bf16 compares, and what becomes of layers that it rejects. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "devices/device.h"
#include "graph/encoder/encoder.h"
#include "graph/import.h"

#define LENGTH 16

typedef struct fixture {
    arena memory; /* of constants that a test changes */
    graph *g;
    device *d;
    device_program *p;
    char text[4096]; /* what the device says of the program */
} fixture;

/* Of tests/data/hugging_face. */
static void import(fixture *f, const char *name)
{
    char path[4096];
    *f = (fixture){0};
    snprintf(path, sizeof path, PENSTOCK_SOURCE_DIR "/tests/data/hugging_face/%s", name);
    cr_assert_eq(graph_import_hugging_face(path, NULL, NULL, &f->g), STATUS_OK, "%s",
                 status_message());
    cr_assert_eq(graph_infer_symbolic(f->g, NULL, cpu_evaluate_node), STATUS_OK, "%s",
                 status_message());
}

static void compile(fixture *f, device_precision precision)
{
    const device_cpu_options options = {.threads = 1};
    const device_model model = {
        .graph = f->g, .name = "encoder", .model_key = 77, .precision = precision, .mask_input = 1};
    cr_assert_eq(device_cpu_create_with(&options, &f->d), STATUS_OK, "%s", status_message());
    cr_assert_eq(f->d->interface->compile(f->d, &model, (device_bucket){64, LENGTH}, &f->p),
                 STATUS_OK, "%s", status_message());
    f->d->interface->explain(f->d, f->p, f->text, sizeof f->text);
}

static void dispose(fixture *f)
{
    f->d->interface->release(f->d, f->p);
    f->d->interface->destroy(f->d);
    graph_destroy(f->g);
    arena_dispose(&f->memory);
}

/* Int8 is never exact: a cosine of 1 means that nothing was compared. */
Test(cpu_accuracy_check, compares_the_outputs_of_heads)
{
    fixture f;
    import(&f, "bert_classes");
    compile(&f, DEVICE_INT8);
    cr_expect(strstr(f.text, "mean 0.99") != NULL, "%s", f.text);
    dispose(&f);
}

/* Weights lie in a read-only file: the constant `t` of a graph gets its data copied. */
static float *own_copy(const tensor *t, arena *memory)
{
    void *data = arena_allocate_aligned(memory, tensor_bytes(t), 64);
    memcpy(data, t->data, tensor_bytes(t));
    ((tensor *)t)->data = data;
    return data;
}

/* In layer 0, FFN unit 0 is always 0 and has the largest weights; unit 1 is always large and has
 * weights of 0. FP32 does not see them. As bfloat16 those weights are infinite, and as integers the
 * product of both scales is: 0 times that is not a number. */
static void spoil_formats(const graph *g, arena *memory)
{
    encoder e;
    cr_assert_eq(encoder_recognise(g, NULL, cpu_evaluate_node, &e), STATUS_OK);
    const encoder_linear *up = &e.layers[0].up, *down = &e.layers[0].down;
    cr_assert(up->is_transposed && down->is_transposed); /* [N, K] */
    int64_t units = up->weight->dims[0], width = up->weight->dims[1];
    float *up_weight = own_copy(up->weight, memory), *up_bias = own_copy(up->bias, memory);
    float *down_weight = own_copy(down->weight, memory);
    memset(up_weight, 0, 2 * (size_t)width * sizeof(float));
    up_bias[0] = 0;
    up_bias[1] = 1e9f;
    for (int64_t i = 0; i < width; i++) {
        down_weight[i * units] = FLT_MAX;
        down_weight[i * units + 1] = 0;
    }
    encoder_dispose(&e);
}

/* The outputs of one row of many ids. */
static void expect_numbers(fixture *f)
{
    tensor inputs[4], outputs[4];
    cr_assert(f->g->input_count <= 4 && f->g->output_count <= 4);
    for (int i = 0; i < f->g->input_count; i++) {
        cr_assert_eq(tensor_allocate(&inputs[i], &f->memory, DTYPE_I64, 2, (int64_t[]){1, LENGTH}),
                     0);
        for (int64_t k = 0; k < LENGTH; k++)
            ((int64_t *)inputs[i].data)[k] = i == 0 ? 3 + k : i == 1;
    }
    for (int i = 0; i < f->g->output_count; i++) {
        const graph_shape *s = &f->g->values[f->g->outputs[i]].shape;
        int64_t dims[TENSOR_RANK_MAX];
        for (int k = 0; k < s->rank; k++)
            dims[k] = graph_dim_at(s->dims[k], 1, LENGTH);
        cr_assert_eq(tensor_allocate(&outputs[i], &f->memory, DTYPE_F32, s->rank, dims), 0);
    }
    device_segment segment = {1, LENGTH, inputs, outputs};
    device_batch batch = {.segments = &segment, .segment_count = 1};
    cr_assert_eq(f->d->interface->execute(f->d, f->p, 0, &batch), STATUS_OK, "%s",
                 status_message());
    for (int i = 0; i < f->g->output_count; i++)
        for (int64_t k = 0; k < tensor_count(&outputs[i]); k++)
            cr_assert(isfinite(tensor_get_number(&outputs[i], k)), "%s", f->text);
}

static void check_spoilt(device_precision precision)
{
    fixture f;
    import(&f, "bert");
    spoil_formats(f.g, &f.memory);
    compile(&f, precision);
    cr_expect(strstr(f.text, "1 matrices in fp32") != NULL, "%s", f.text);
    expect_numbers(&f);
    dispose(&f);
}

Test(cpu_accuracy_check, what_is_no_number_in_another_precision_stays_in_fp32)
{
    check_spoilt(DEVICE_BF16);
    check_spoilt(DEVICE_INT8);
}
