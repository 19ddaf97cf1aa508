/* The CPU device on a small graph: rows do not depend on their batch, runs do not allocate. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/cpu/evaluate.h"
#include "devices/cpu/plan/plan.h"
#include "devices/device.h"
#include "graph/import.h"
#include "graph/specialise/specialise.h"

#define WIDTH 48
#define SEQUENCE 5

static graph_value_index random_constant(graph *g, int rows, int columns)
{
    int64_t dims[] = {rows, columns};
    float data[WIDTH * WIDTH];
    uint32_t seed = 7u + (uint32_t)g->value_count;
    for (int i = 0; i < rows * columns; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / (float)(1 << 26) - 0.125f;
    }
    return graph_add_constant_f32(g, NULL, 2, dims, data);
}

/* Like an attention block: embedding, matrix multiplications, softmax, normalisation, pooling. */
static graph *make_model(void)
{
    graph *g = graph_create("block");
    graph_dim dims[] = {{.batch = 1}, {.sequence = 1}};
    graph_value_index ids = graph_add_input(g, "ids", DTYPE_I64, 2, dims);
    graph_value_index table = random_constant(g, 40, WIDTH);
    graph_value_index w = random_constant(g, WIDTH, WIDTH), v = random_constant(g, WIDTH, WIDTH);
    int64_t one = 1, perm_list[] = {0, 2, 1};
    graph_attribute perm = graph_make_ints(g, "perm", 3, perm_list);
    graph_value_index x =
        graph_add(g, GRAPH_OP_GATHER, 2, (graph_value_index[]){table, ids}, 0, NULL);
    graph_value_index q = graph_add(g, GRAPH_OP_MATMUL, 2, (graph_value_index[]){x, w}, 0, NULL);
    graph_value_index k = graph_add(g, GRAPH_OP_MATMUL, 2, (graph_value_index[]){x, v}, 0, NULL);
    k = graph_add(g, GRAPH_OP_TRANSPOSE, 1, &k, 1, &perm);
    graph_value_index s = graph_add(g, GRAPH_OP_MATMUL, 2, (graph_value_index[]){q, k}, 0, NULL);
    s = graph_add(g, GRAPH_OP_SOFTMAX, 1, &s, 0, NULL);
    s = graph_add(g, GRAPH_OP_MATMUL, 2, (graph_value_index[]){s, x}, 0, NULL);
    s = graph_add(g, GRAPH_OP_ADD, 2, (graph_value_index[]){s, x}, 0, NULL);
    s = graph_add(g, GRAPH_OP_GELU, 1, &s, 0, NULL);
    graph_value_index axes = graph_add_constant_i64(g, NULL, 1, &one, &one);
    graph_value_index m =
        graph_add(g, GRAPH_OP_REDUCE_MEAN, 2, (graph_value_index[]){s, axes}, 0, NULL);
    graph_add_output(g, s, "states");
    graph_add_output(g, m, "mean");
    return g;
}

static void make_batch(tensor inputs[1], tensor outputs[2], arena *memory, int64_t rows)
{
    cr_assert_eq(tensor_allocate(&inputs[0], memory, DTYPE_I64, 2, (int64_t[]){rows, SEQUENCE}), 0);
    cr_assert_eq(
        tensor_allocate(&outputs[0], memory, DTYPE_F32, 3, (int64_t[]){rows, SEQUENCE, WIDTH}), 0);
    cr_assert_eq(tensor_allocate(&outputs[1], memory, DTYPE_F32, 3, (int64_t[]){rows, 1, WIDTH}),
                 0);
    for (int64_t i = 0; i < rows * SEQUENCE; i++)
        ((int64_t *)inputs[0].data)[i] = (i * 7 + i / SEQUENCE) % 40;
}

static void check_rows(const char *level)
{
    device *d = NULL;
    graph *g = make_model();
    arena memory = {0};
    cr_assert_eq(device_cpu_create(2, level, &d), STATUS_OK);
    device_model model = {.graph = g, .name = "block", .mask_input = -1};
    tensor all_in[1], all_out[2], in[1], out[2];
    make_batch(all_in, all_out, &memory, 9);
    device_program *nine = NULL, *one = NULL;
    cr_assert_eq(d->interface->compile(d, &model, (device_bucket){9, SEQUENCE}, &nine), STATUS_OK,
                 "%s", status_message());
    cr_assert_eq(d->interface->compile(d, &model, (device_bucket){1, SEQUENCE}, &one), STATUS_OK);
    device_batch batch = {.inputs = all_in, .outputs = all_out};
    cr_assert_eq(d->interface->execute(d, nine, 0, &batch), STATUS_OK, "%s", status_message());
    make_batch(in, out, &memory, 1);
    for (int64_t row = 0; row < 9; row++) {
        memcpy(in[0].data, (int64_t *)all_in[0].data + row * SEQUENCE, SEQUENCE * sizeof(int64_t));
        device_batch alone = {.inputs = in, .outputs = out};
        cr_assert_eq(d->interface->execute(d, one, 1, &alone), STATUS_OK);
        for (int o = 0; o < 2; o++)
            cr_expect(memcmp(out[o].data,
                             (char *)all_out[o].data + (size_t)row * tensor_bytes(&out[o]),
                             tensor_bytes(&out[o])) == 0,
                      "row %lld of output %d has other bits alone (%s)", (long long)row, o, level);
    }
    ((int64_t *)in[0].data)[2] = 40;
    device_batch wrong = {.inputs = in, .outputs = out};
    cr_expect_eq(d->interface->execute(d, one, 0, &wrong), STATUS_INVALID_ARGUMENT);
    device_status facts;
    d->interface->describe(d, &facts);
    cr_expect_eq(facts.executions, 11);
    cr_expect_eq(facts.failures, 1);
    cr_expect_eq(facts.compiles, 2);
    d->interface->release(d, nine);
    d->interface->release(d, one);
    d->interface->destroy(d);
    graph_destroy(g);
    arena_dispose(&memory);
}

Test(cpu_device, a_row_has_the_same_bits_alone_and_in_a_batch)
{
    check_rows("scalar");
    check_rows("avx2");
    check_rows(NULL);
}

/* Every allocation of this program goes through these while counting. */
static _Atomic int counted;
static _Atomic bool is_counting;

#if !defined(__SANITIZE_ADDRESS__)
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);

void *malloc(size_t bytes)
{
    counted += is_counting;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    counted += is_counting;
    return __libc_calloc(count, bytes);
}
#endif

Test(cpu_device, execution_allocates_nothing)
{
#if defined(__SANITIZE_ADDRESS__)
    cr_skip_test("the sanitizer owns malloc");
#endif
    device *d = NULL;
    graph *g = make_model();
    arena memory = {0};
    cr_assert_eq(device_cpu_create(1, NULL, &d), STATUS_OK);
    device_model model = {.graph = g, .name = "block", .mask_input = -1};
    device_program *program = NULL;
    cr_assert_eq(d->interface->compile(d, &model, (device_bucket){4, SEQUENCE}, &program),
                 STATUS_OK);
    tensor in[1], out[2];
    make_batch(in, out, &memory, 4);
    device_batch batch = {.inputs = in, .outputs = out};
    is_counting = true;
    void *volatile seen = malloc(16); /* shows that the counter counts */
    free(seen);
    status s = STATUS_OK;
    for (int i = 0; i < 20 && !s; i++)
        s = d->interface->execute(d, program, 0, &batch);
    is_counting = false;
    cr_expect_eq(s, STATUS_OK);
    cr_expect_eq(counted, 1, "%d allocations in 20 executions", counted - 1);
    d->interface->release(d, program);
    d->interface->destroy(d);
    graph_destroy(g);
    arena_dispose(&memory);
}

#define ROWS 24

/* Alone, in batches and with helpers: the whole ragged way. */
Test(cpu_device, ragged_execution_allocates_nothing)
{
#if defined(__SANITIZE_ADDRESS__)
    cr_skip_test("the sanitizer owns malloc");
#endif
    char path[4096];
    const char *shared = getenv("PENSTOCK_SHARED") ? getenv("PENSTOCK_SHARED") : PENSTOCK_SHARED;
    snprintf(path, sizeof path, "%s/models/models/bert_tiny_legacy.onnx", shared);
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is absent", path);
    device *d = NULL;
    graph *g = NULL;
    arena memory = {0};
    cr_assert_eq(graph_import_onnx(path, NULL, &g), STATUS_OK);
    cr_assert_eq(graph_infer_symbolic(g, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(device_cpu_create(3, NULL, &d), STATUS_OK);
    device_model model = {.graph = g, .name = "bert", .precision = DEVICE_INT8, .mask_input = 1};
    device_program *program = NULL;
    cr_assert_eq(d->interface->compile(d, &model, (device_bucket){ROWS, 16}, &program), STATUS_OK);
    cr_assert_eq(program->layout, DEVICE_RAGGED);
    tensor in[ROWS][3], out[ROWS];
    device_segment segments[ROWS];
    for (int i = 0; i < ROWS; i++) {
        int64_t length = 1 + i % 16, dims[] = {1, length, 32};
        for (int k = 0; k < 3; k++) {
            cr_assert_eq(tensor_allocate(&in[i][k], &memory, DTYPE_I64, 2, dims), 0);
            for (int64_t p = 0; p < length; p++)
                ((int64_t *)in[i][k].data)[p] = k == 0 ? 3 + p : k == 1;
        }
        cr_assert_eq(tensor_allocate(&out[i], &memory, DTYPE_F32, 3, dims), 0);
        segments[i] = (device_segment){1, length, in[i], &out[i]};
    }
    counted = 0;
    is_counting = true;
    status s = STATUS_OK;
    for (int i = 0; i < 40 && !s; i++) {
        device_batch batch = {.segments = segments + i % ROWS,
                              .segment_count = i % 3 ? 1 : ROWS - i % ROWS};
        s = d->interface->execute(d, program, i % 3, &batch);
    }
    is_counting = false;
    cr_expect_eq(s, STATUS_OK, "%s", status_message());
    cr_expect_eq(counted, 0, "%d allocations in 40 executions", counted);
    d->interface->release(d, program);
    d->interface->destroy(d);
    graph_destroy(g);
    arena_dispose(&memory);
}
