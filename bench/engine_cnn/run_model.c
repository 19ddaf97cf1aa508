/* One ONNX model on the CPU device's plans, without a server: run_model MODEL.onnx BATCH THREADS
 * SECONDS [LEVEL]. Every thread runs whole batches of random inputs; prints one JSON object. With
 * an INPUT file (raw f32 of the first input) and an OUTPUT file after LEVEL it runs once and writes
 * the first output's bytes: for comparing answers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/plan/plan.h"
#include "graph/import.h"

#define OPERANDS_MAX 16
#define THREADS_MAX 64

typedef struct worker {
    pthread_t thread;
    const cpu_plan *plan;
    tensor inputs[OPERANDS_MAX], outputs[OPERANDS_MAX];
    void *workspace;
    uint64_t end_ns, runs, busy_ns;
} worker;

static void stop(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, status_message());
    exit(1);
}

static void allocate(tensor *t, const graph_value *v)
{
    *t = (tensor){.dtype = v->dtype, .rank = v->shape.rank};
    for (int d = 0; d < t->rank; d++)
        t->dims[d] = v->shape.dims[d].constant;
    t->data = aligned_alloc(64, (tensor_bytes(t) + 127) & ~(size_t)63);
    memset(t->data, 0, tensor_bytes(t));
    uint32_t state = 1;
    for (int64_t i = 0; t->dtype == DTYPE_F32 && i < tensor_count(t); i++) {
        state = state * 1664525 + 1013904223;
        ((float *)t->data)[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
}

static void prepare(worker *w, const graph *g, const cpu_plan *plan)
{
    w->plan = plan;
    for (int i = 0; i < g->input_count; i++)
        allocate(&w->inputs[i], &g->values[g->inputs[i]]);
    for (int i = 0; i < g->output_count; i++)
        allocate(&w->outputs[i], &g->values[g->outputs[i]]);
    size_t bytes = (cpu_plan_workspace_bytes(plan) + 63) & ~(size_t)63;
    w->workspace = aligned_alloc(64, bytes);
    memset(w->workspace, 0, bytes);
}

static void *work(void *context)
{
    worker *w = context;
    kernels_prepare_thread();
    uint64_t start = clock_now_ns();
    do {
        if (cpu_plan_run(w->plan, w->inputs, w->outputs, w->workspace, NULL))
            stop("run");
        w->runs++;
    } while (clock_now_ns() < w->end_ns);
    w->busy_ns = clock_now_ns() - start;
    return NULL;
}

static void run_once(worker *w, const char *input, const char *output)
{
    FILE *in = fopen(input, "rb");
    size_t bytes = tensor_bytes(&w->inputs[0]);
    if (!in || fread(w->inputs[0].data, 1, bytes, in) != bytes)
        stop(input);
    fclose(in);
    work(w);
    FILE *out = fopen(output, "wb");
    if (!out || !fwrite(w->outputs[0].data, tensor_bytes(&w->outputs[0]), 1, out) || fclose(out))
        stop(output);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "run_model MODEL.onnx BATCH THREADS SECONDS [LEVEL [INPUT OUTPUT]]\n");
        return 2;
    }
    int64_t batch = atoll(argv[2]);
    int threads = atoi(argv[3]);
    const kernels *table;
    graph *g, *specialised;
    cpu_plan *plan;
    tensor shapes[OPERANDS_MAX];
    if (threads < 1 || threads > THREADS_MAX)
        return 2;
    if (kernels_select(argc > 5 && argv[5][0] ? argv[5] : NULL, &table) ||
        graph_import_onnx(argv[1], NULL, &g) || graph_bind(g, batch, 1, shapes) ||
        graph_specialise(g, &(graph_binding){.inputs = shapes}, cpu_evaluate_node, &specialised) ||
        cpu_plan_create(specialised, table, NULL, &plan))
        stop(argv[1]);
    worker workers[THREADS_MAX] = {0};
    for (int i = 0; i < threads; i++)
        prepare(&workers[i], specialised, plan);
    if (argc > 7) {
        run_once(&workers[0], argv[6], argv[7]);
        return 0;
    }
    for (int i = 0; i < threads; i++) /* warm, then measure */
        work(&workers[i]);
    uint64_t now = clock_now_ns();
    for (int i = 0; i < threads; i++) {
        workers[i].runs = 0;
        workers[i].end_ns = now + (uint64_t)(atof(argv[4]) * 1e9);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return 1;
    }
    double rate = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        rate += (double)workers[i].runs * (double)batch * 1e9 / (double)workers[i].busy_ns;
    }
    printf("{\"rows_per_s\": %.2f, \"level\": \"%s\"}\n", rate, kernels_level_name(table->level));
    return 0;
}
