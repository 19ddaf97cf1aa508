/* One run on several cores: helpers take part, and the bits are those of one core. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/plan/plan.h"
#include "devices/cpu/threads/thread_pool.h"
#include "graph/build.h"
#include "graph/specialise/specialise.h"

#define THREADS 3
#define WAIT_NS (UINT64_C(60) * 1000000000)

static _Atomic int begun;

/* Waits for the other unit, which only another thread can begin. */
static void meet(const void *context, void *memory, size_t unit)
{
    (void)context, (void)unit;
    *(char *)memory = 1;
    atomic_fetch_add(&begun, 1);
    uint64_t end = clock_now_ns() + WAIT_NS;
    while (atomic_load(&begun) < 2 && clock_now_ns() < end)
        ;
}

Test(cpu_split, helpers_take_part)
{
    thread_pool *pool;
    cr_assert_eq(thread_pool_create(1, THREADS, &pool), STATUS_OK);
    thread_pool_begin(pool, 0);
    char parts[THREADS * 64];
    const cpu_team team = {pool, 0, 1, THREADS};
    const cpu_call call = {.parts = parts, .part_stride = 64, .team = &team};
    cpu_split(&call, 1e9, meet, NULL, 2);
    thread_pool_end(pool, 0);
    thread_pool_destroy(pool);
    cr_assert_eq(atomic_load(&begun), 2);
}

static _Atomic int helped; /* units that ran in the memory of a helper */

typedef struct small_loop {
    void *caller_memory;
    uint64_t unit_ns;
} small_loop;

static void pass_time(uint64_t ns)
{
    for (uint64_t end = clock_now_ns() + ns; clock_now_ns() < end;)
        ;
}

static void note_helper(const void *context, void *memory, size_t unit)
{
    (void)unit;
    const small_loop *l = context;
    if (memory != l->caller_memory)
        atomic_fetch_add(&helped, 1);
    pass_time(l->unit_ns);
}

/* Loops said to take 10 us, `apart_ns` after one another, until a helper takes part or `most` have
 * run. */
static void run_small_loops(uint64_t unit_ns, uint64_t apart_ns, int most)
{
    thread_pool *pool;
    cr_assert_eq(thread_pool_create(1, THREADS, &pool), STATUS_OK);
    char parts[THREADS * 64];
    const cpu_team team = {pool, 0, 1, THREADS};
    const cpu_call call = {.parts = parts, .part_stride = 64, .team = &team};
    const small_loop loop = {parts, unit_ns};
    uint64_t end = clock_now_ns() + WAIT_NS;
    atomic_store(&helped, 0);
    for (int i = 0; i < most && atomic_load(&helped) == 0 && clock_now_ns() < end; i++) {
        thread_pool_begin(pool, 0);
        cpu_split(&call, 10000, note_helper, &loop, 2);
        thread_pool_end(pool, 0);
        pass_time(apart_ns);
    }
    thread_pool_destroy(pool);
}

Test(cpu_split, small_loops_one_upon_the_other_are_shared)
{
    run_small_loops(2000, 0, INT_MAX);
    cr_assert_gt(atomic_load(&helped), 0);
}

Test(cpu_split, small_loops_now_and_then_run_alone)
{
    /* Units last long, so that a helper which is woken is in time for the second. */
    run_small_loops(200000, 200000, 100);
    cr_assert_eq(atomic_load(&helped), 0);
}

Test(cpu_split, items_are_even_and_in_steps)
{
    const cpu_team team = {.threads = 2};
    const cpu_call alone = {0}, both = {.team = &team};
    cr_expect_eq(cpu_split_items(&alone, 1000, 384, 12), 336);
    cr_expect_eq(cpu_split_items(&both, 1000, 384, 12), 252);
    cr_expect_eq(cpu_split_items(&both, 100, 384, 12), 60);
    cr_expect_eq(cpu_split_items(&both, 1, 384, 12), 12);
}

static graph_value_index random_floats(graph *g, int rank, const int64_t *dims)
{
    tensor t;
    cr_assert_eq(tensor_allocate(&t, &g->memory, DTYPE_F32, rank, dims), STATUS_OK);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        ((float *)t.data)[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
    return graph_add_constant(g, NULL, &t);
}

/* Operators on rows, planes and runs of [1,40,96,96]. */
static void add_rows(graph *g, graph_value_index y)
{
    const int64_t deep[] = {1, 40, 1, 1}, channels = 40, half[] = {20, 96, 20};
    graph_attribute first = graph_make_int("axis", 1), last = graph_make_int("axis", -1);
    graph_attribute perm = graph_make_ints(g, "perm", 4, (int64_t[]){0, 2, 1, 3});
    graph_value_index z = graph_binary(g, GRAPH_OP_MUL, y, random_floats(g, 4, deep));
    z = graph_add(g, GRAPH_OP_TRANSPOSE, 1, &z, 1, &perm); /* [1,96,40,96] */
    graph_add_output(g, graph_add(g, GRAPH_OP_SOFTMAX, 1, &z, 1, &first), "softmax");
    graph_add_output(g, graph_add(g, GRAPH_OP_LOG_SOFTMAX, 1, &z, 1, &last), "log_softmax");
    graph_add_output(g, graph_add(g, GRAPH_OP_ARG_MAX, 1, &z, 1, &first), "places");
    graph_add_output(g, graph_reduce(g, GRAPH_OP_REDUCE_SUM, z, 1, false), "sums");
    graph_add_output(g, graph_reduce(g, GRAPH_OP_REDUCE_MAX, z, 3, false), "tops");
    int64_t width = 96;
    graph_value_index norm[] = {z, random_floats(g, 1, &width), random_floats(g, 1, &width)};
    graph_add_output(g, graph_add(g, GRAPH_OP_LAYER_NORMALIZATION, 3, norm, 0, NULL),
                     "rows_normal");
    graph_value_index images[] = {y, random_floats(g, 1, &channels),
                                  random_floats(g, 1, &channels)};
    graph_add_output(g, graph_add(g, GRAPH_OP_INSTANCE_NORMALIZATION, 3, images, 0, NULL),
                     "planes");
    graph_value_index heads[] = {graph_reshape(g, z, 3, (int64_t[]){20, 192, 96}),
                                 random_floats(g, 3, half)};
    graph_add_output(g, graph_add(g, GRAPH_OP_MATMUL, 2, heads, 0, NULL), "heads");
    graph_value_index one = graph_reshape(g, z, 2, (int64_t[]){3840, 96});
    graph_value_index gram[] = {graph_transpose(g, one, 2, (int64_t[]){1, 0}), one};
    graph_add_output(g, graph_add(g, GRAPH_OP_MATMUL, 2, gram, 0, NULL), "gram");
}

/* Convolutions of few pixels, by many weights, and with taps far apart, of [1,40,96,96]. */
static void add_convolutions(graph *g, graph_value_index y)
{
    const int64_t many[] = {128, 40, 3, 3}, late[] = {128, 128, 3, 3}, few[] = {8, 40, 3, 3};
    graph_attribute stride = graph_make_ints(g, "strides", 2, (int64_t[]){16, 16});
    graph_attribute around[] = {graph_make_ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1})};
    graph_attribute apart[] = {graph_make_ints(g, "pads", 4, (int64_t[]){8, 8, 8, 8}),
                               graph_make_ints(g, "dilations", 2, (int64_t[]){8, 8})};
    graph_value_index in[] = {y, random_floats(g, 4, many)};
    graph_value_index small = graph_add(g, GRAPH_OP_CONV, 2, in, 1, &stride);
    graph_add_output(g, small, "few_pixels");
    graph_value_index last[] = {small, random_floats(g, 4, late)};
    graph_add_output(g, graph_add(g, GRAPH_OP_CONV, 2, last, 1, around), "late");
    graph_value_index wide[] = {y, random_floats(g, 4, few)};
    graph_add_output(g, graph_add(g, GRAPH_OP_CONV, 2, wide, 2, apart), "apart");
}

/* Both directions of a recurrent layer, and what is quantised, of [1,40,96,96]. */
static void add_layers(graph *g, graph_value_index y)
{
    const int64_t w[] = {2, 64, 40}, r[] = {2, 64, 16};
    graph_attribute lstm[] = {graph_make_int("hidden_size", 16),
                              graph_make_string("direction", "bidirectional")};
    graph_value_index steps[] = {graph_reshape(g, y, 3, (int64_t[]){96, 96, 40}),
                                 random_floats(g, 3, w), random_floats(g, 3, r)};
    graph_add_output(g, graph_add(g, GRAPH_OP_LSTM, 3, steps, 2, lstm), "directions");
    graph_add_output(g, graph_add(g, GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, 1, &y, 0, NULL), "bytes");
}

/* Every operator that is split, at sizes where it is. */
static graph *make_graph(void)
{
    graph *g = graph_create("net");
    const int64_t image[] = {1, 8, 96, 96}, first[] = {40, 8, 3, 3}, taps[] = {40, 1, 3, 3};
    const int64_t back[] = {40, 16, 2, 2}, line[] = {64, 40, 5}, wide[] = {40, 4096}, four = 4;
    graph_dim dims[4];
    for (int i = 0; i < 4; i++)
        dims[i] = graph_dim_constant(image[i]);
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 4, dims);
    graph_attribute pads = graph_make_ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1});
    graph_attribute deep[] = {pads, graph_make_int("group", 40)};
    graph_attribute two = graph_make_ints(g, "strides", 2, (int64_t[]){2, 2});
    graph_attribute kernel = graph_make_ints(g, "kernel_shape", 2, (int64_t[]){3, 3});
    graph_value_index in[] = {x, random_floats(g, 4, first)};
    x = graph_unary(g, GRAPH_OP_HARD_SWISH, graph_add(g, GRAPH_OP_CONV, 2, in, 1, &pads));
    graph_value_index depth[] = {x, random_floats(g, 4, taps)};
    graph_value_index y = graph_add(g, GRAPH_OP_CONV, 2, depth, 2, deep);
    y = graph_binary(g, GRAPH_OP_ADD, graph_unary(g, GRAPH_OP_EXP, x), y);
    graph_add_output(g, graph_add(g, GRAPH_OP_MAX_POOL, 1, &y, 1, &kernel), "pooled");
    graph_value_index scales = graph_add_constant_f32(g, NULL, 1, &four, (float[]){1, 1, 2, 1.5f});
    graph_value_index large[] = {y, GRAPH_NO_VALUE, scales};
    graph_attribute linear = graph_make_string("mode", "linear");
    graph_add_output(g, graph_add(g, GRAPH_OP_RESIZE, 3, large, 1, &linear), "resized");
    graph_value_index spread[] = {y, random_floats(g, 4, back)};
    graph_add_output(g, graph_add(g, GRAPH_OP_CONV_TRANSPOSE, 2, spread, 1, &two), "spread");
    graph_value_index lines[] = {graph_reshape(g, y, 3, (int64_t[]){1, 40, 9216}),
                                 random_floats(g, 3, line)};
    graph_add_output(g, graph_add(g, GRAPH_OP_CONV, 2, lines, 0, NULL), "lines");
    graph_value_index rows = graph_reshape(g, y, 2, (int64_t[]){9216, 40});
    graph_value_index many[] = {rows, random_floats(g, 2, (int64_t[]){40, 48})};
    graph_add_output(g, graph_add(g, GRAPH_OP_MATMUL, 2, many, 0, NULL), "rows");
    graph_value_index few[] = {graph_reduce(g, GRAPH_OP_REDUCE_MAX, rows, 0, true),
                               random_floats(g, 2, wide)};
    graph_add_output(g,
                     graph_unary(g, GRAPH_OP_TANH, graph_add(g, GRAPH_OP_MATMUL, 2, few, 0, NULL)),
                     "columns");
    add_rows(g, y);
    add_layers(g, y);
    add_convolutions(g, y);
    return g;
}

static tensor *make_outputs(const graph *g, arena *memory)
{
    tensor *out = arena_allocate_zeroed(memory, (size_t)g->output_count, sizeof *out);
    for (int i = 0; i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++)
            dims[d] = v->shape.dims[d].constant;
        cr_assert_eq(tensor_allocate(&out[i], memory, v->dtype, v->shape.rank, dims), STATUS_OK);
    }
    return out;
}

Test(cpu_split, the_bits_are_those_of_one_core)
{
    graph *g = make_graph(), *specialised;
    arena memory = {0};
    tensor input = {0}, shape;
    cr_assert_eq(tensor_allocate(&input, &memory, DTYPE_F32, 4, (int64_t[]){1, 8, 96, 96}), 0);
    for (int64_t i = 0; i < tensor_count(&input); i++)
        ((float *)input.data)[i] = (float)(i * 31 % 977) / 977;
    shape = input;
    shape.data = NULL;
    cr_assert_eq(
        graph_specialise(g, &(graph_binding){.inputs = &shape}, cpu_evaluate_node, &specialised),
        STATUS_OK, "%s", status_message());
    const kernels *table;
    cpu_plan *plan;
    thread_pool *pool;
    cr_assert_eq(kernels_select(NULL, &table), STATUS_OK);
    cr_assert_eq(cpu_plan_create_for(specialised, table, NULL, THREADS, &plan), STATUS_OK, "%s",
                 status_message());
    cr_assert_eq(thread_pool_create(1, THREADS, &pool), STATUS_OK);
    size_t bytes = (cpu_plan_workspace_bytes(plan) + 63) & ~(size_t)63;
    void *workspace = aligned_alloc(CPU_PLAN_WORKSPACE_ALIGNMENT, bytes);
    tensor *alone = make_outputs(specialised, &memory);
    cr_assert_eq(cpu_plan_run(plan, &input, alone, workspace, NULL), STATUS_OK);
    const cpu_team team = {pool, 0, 1, THREADS};
    for (int turn = 0; turn < 5; turn++) {
        tensor *shared = make_outputs(specialised, &memory);
        memset(workspace, 0xff, bytes); /* parts are not what the last run left */
        thread_pool_begin(pool, 0);
        cr_assert_eq(cpu_plan_run_with(plan, &input, shared, workspace, &team, NULL), STATUS_OK);
        thread_pool_end(pool, 0);
        for (int i = 0; i < specialised->output_count; i++)
            cr_expect_eq(memcmp(shared[i].data, alone[i].data, tensor_bytes(&alone[i])), 0,
                         "output %d", i);
    }
    thread_pool_destroy(pool);
    cpu_plan_destroy(plan);
    free(workspace);
    graph_destroy(specialised);
    graph_destroy(g);
    arena_dispose(&memory);
}
