/* Runs of one dynamic program on several threads, at shapes that come and go, with helpers: each
 * gets the answer that it gets alone. Stand-alone, for the thread sanitizer. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/threads/thread_pool.h"

#define CALLERS 3
#define CORES 4
#define ROUNDS 60
#define CHANNELS 64
#define SHAPES 40 /* more than are kept */

static thread_pool *pool;
static cpu_dynamic *program;

/* A dense layer, a choice between two of its functions by a value, and where the result is not
 * zero: of all three, plans and single nodes. */
static graph *make_graph(void)
{
    static float weights[CHANNELS * CHANNELS];
    graph *g = graph_create("g");
    graph_dim dims[] = {{.is_unknown = true}, graph_dim_constant(CHANNELS)};
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 2, dims);
    for (int i = 0; i < CHANNELS * CHANNELS; i++)
        weights[i] = (float)(i * 37 % 101 - 50) / 100;
    graph_value_index w =
        graph_add_constant_f32(g, "w", 2, (int64_t[]){CHANNELS, CHANNELS}, weights);
    graph_value_index y = graph_add(g, GRAPH_OP_MATMUL, 2, (graph_value_index[]){x, w}, 0, NULL);
    graph_value_index axes = graph_add_constant_i64(g, NULL, 1, (int64_t[]){2}, (int64_t[]){0, 1});
    graph_attribute drops = graph_make_int("keepdims", 0);
    graph_value_index most =
        graph_add(g, GRAPH_OP_REDUCE_MAX, 2, (graph_value_index[]){x, axes}, 1, &drops);
    graph_value_index limit = graph_add_constant_f32(g, NULL, 0, NULL, &(float){50});
    graph_value_index is_high =
        graph_add(g, GRAPH_OP_GREATER, 2, (graph_value_index[]){most, limit}, 0, NULL);
    graph_value_index branches[] = {is_high, graph_add(g, GRAPH_OP_RELU, 1, &y, 0, NULL),
                                    graph_add(g, GRAPH_OP_TANH, 1, &y, 0, NULL)};
    graph_value_index chosen = graph_add(g, GRAPH_OP_IF, 3, branches, 0, NULL);
    graph_add_output(g, graph_add(g, GRAPH_OP_MATMUL, 2, (graph_value_index[]){chosen, w}, 0, NULL),
                     "y");
    graph_add_output(g, graph_add(g, GRAPH_OP_NON_ZERO, 1, &chosen, 0, NULL), "places");
    return g;
}

static void run(int64_t rows, const cpu_team *team, cpu_dynamic_memory *memory, tensor *outputs,
                arena *results)
{
    float *x = malloc((size_t)rows * CHANNELS * sizeof *x);
    tensor input = {.dtype = DTYPE_F32, .rank = 2, .dims = {rows, CHANNELS}, .data = x};
    for (int64_t i = 0; i < rows * CHANNELS; i++)
        x[i] = (float)((i * 13 + rows) % (rows % 2 ? 100 : 40));
    if (cpu_dynamic_run(program, &input, outputs, results,
                        &(cpu_dynamic_caller){.memory = memory, .team = team})) {
        fprintf(stderr, "%s\n", status_message());
        abort();
    }
    free(x);
}

static void *run_rounds(void *number)
{
    int caller = *(int *)number;
    unsigned seed = (unsigned)caller + 1;
    cpu_dynamic_memory memory = {0}, other = {0};
    kernels_prepare_thread();
    for (int round = 0; round < ROUNDS; round++) {
        int64_t rows = 1 + rand_r(&seed) % SHAPES * 4;
        tensor helped[2], alone[2];
        arena results = {0};
        int idle = thread_pool_begin(pool, caller);
        const cpu_team team = {pool, caller, CALLERS, idle + 1};
        run(rows, idle > 0 ? &team : NULL, &memory, helped, &results);
        thread_pool_end(pool, caller);
        run(rows, NULL, &other, alone, &results);
        for (int o = 0; o < 2; o++)
            if (!tensor_same_shape(&helped[o], &alone[o]) ||
                memcmp(helped[o].data, alone[o].data, tensor_bytes(&alone[o])) != 0) {
                fprintf(stderr, "output %d of %d rows differs\n", o, (int)rows);
                abort();
            }
        arena_dispose(&results);
        if (round % 8 == 0)
            cpu_dynamic_memory_trim(&memory, 0);
    }
    cpu_dynamic_memory_trim(&memory, 0);
    cpu_dynamic_memory_trim(&other, 0);
    return NULL;
}

int main(void)
{
    graph *g = make_graph();
    cpu_dynamic_options options = {.graph = g, .threads = CORES, .evaluate = cpu_evaluate_node};
    options.weights = cpu_weights_create(g);
    if (kernels_select(NULL, &options.kernels) || cpu_dynamic_create(&options, &program) ||
        thread_pool_create(CALLERS, CORES, &pool))
        abort();
    pthread_t threads[CALLERS];
    int numbers[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, run_rounds, &numbers[i]))
            abort();
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    thread_pool_destroy(pool);
    cpu_dynamic_destroy(program);
    cpu_weights_release(options.weights);
    graph_destroy(g);
    printf("every run gave the same\n1 passed, 0 failed, 0 skipped\n");
    return 0;
}
