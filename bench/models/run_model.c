/* One ONNX model on the CPU's engine, without a server, on given inputs, as bench/models/run.py
 * asks for it: run_model MODEL.onnx FEEDS.json [THREADS [LEVEL]]. FEEDS.json lists the inputs:
 * [{"name", "dtype", "dims", "file"}], the file raw. Commands come line by line on standard input,
 * each is answered with one line of JSON: "run SECONDS" (times of the runs), "profile SECONDS" (the
 * shortest time of every step), "write FOLDER" (the outputs of one run, raw). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/plan/plan.h"
#include "devices/cpu/threads/thread_pool.h"
#include "graph/import.h"
#include "graph/specialise/fuse_batch_norm.h"
#include "graph/specialise/specialise.h"

#define OPERANDS_MAX 32
#define TIMES_MAX (1 << 20)
#define KEPT_BYTES 65536 /* for results */

typedef struct runner {
    graph *source, *specialised;
    cpu_weights *weights;
    cpu_plan *plan; /* NULL: */
    cpu_dynamic *dynamic;
    cpu_dynamic_memory memory;
    tensor inputs[OPERANDS_MAX], outputs[OPERANDS_MAX];
    void *workspace;
    arena results;
    const kernels *kernels;
    thread_pool *pool;
    int threads;
} runner;

static void stop(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, status_message());
    exit(1);
}

static void *allocate(size_t bytes)
{
    size_t rounded = (bytes + 127) & ~(size_t)63;
    void *memory = aligned_alloc(64, rounded);
    if (!memory)
        stop("memory");
    memset(memory, 0, rounded);
    return memory;
}

static void read_file(const char *path, void *to, size_t bytes)
{
    FILE *in = fopen(path, "rb");
    if (!in || fread(to, 1, bytes, in) != bytes)
        stop(path);
    fclose(in);
}

/* The feed of that name; by place where the names differ. */
static json_t *find_feed(json_t *feeds, const char *name, int i)
{
    size_t k;
    json_t *feed;
    json_array_foreach(feeds, k, feed) if (strcmp(json_string_value(json_object_get(feed, "name")),
                                                  name) == 0) return feed;
    return json_array_get(feeds, (size_t)i);
}

static void read_feeds(runner *r, const char *path)
{
    json_error_t error;
    json_t *feeds = json_load_file(path, 0, &error), *dim;
    const graph *g = r->source;
    if (!feeds || g->input_count > OPERANDS_MAX || g->output_count > OPERANDS_MAX ||
        json_array_size(feeds) < (size_t)g->input_count)
        stop(path);
    for (int i = 0; i < g->input_count; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        json_t *feed = find_feed(feeds, v->name, i);
        int64_t dims[TENSOR_RANK_MAX];
        size_t rank;
        json_array_foreach(json_object_get(feed, "dims"), rank, dim) dims[rank] =
            json_integer_value(dim);
        if (tensor_set_shape(&r->inputs[i], v->dtype, (int)rank, dims))
            stop(v->name);
        size_t bytes = tensor_bytes(&r->inputs[i]);
        r->inputs[i].data = allocate(bytes);
        read_file(json_string_value(json_object_get(feed, "file")), r->inputs[i].data, bytes);
    }
    json_decref(feeds);
}

/* Shapes only: the values of inputs are not bound. */
static status make_plan(runner *r)
{
    tensor shapes[OPERANDS_MAX];
    const graph *g = r->source;
    for (int i = 0; i < g->input_count; i++) {
        shapes[i] = r->inputs[i];
        shapes[i].data = NULL;
    }
    status s =
        graph_specialise(g, &(graph_binding){.inputs = shapes}, cpu_evaluate_node, &r->specialised);
    if (!s)
        s = cpu_plan_create_for(r->specialised, r->kernels, r->weights, r->threads, &r->plan);
    return s;
}

static void prepare(runner *r)
{
    status s = make_plan(r);
    cpu_dynamic_options options = {.graph = r->source,
                                   .kernels = r->kernels,
                                   .weights = r->weights,
                                   .threads = r->threads,
                                   .evaluate = cpu_evaluate_node};
    if (s == STATUS_UNSUPPORTED && !(s = cpu_dynamic_create(&options, &r->dynamic)))
        return;
    if (s)
        stop(r->source->name);
    const graph *g = r->specialised;
    for (int i = 0; i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        r->outputs[i] = (tensor){.dtype = v->dtype, .rank = v->shape.rank};
        for (int d = 0; d < v->shape.rank; d++)
            r->outputs[i].dims[d] = v->shape.dims[d].constant;
        r->outputs[i].data = allocate(tensor_bytes(&r->outputs[i]));
    }
    r->workspace = allocate(cpu_plan_workspace_bytes(r->plan));
}

static void run(runner *r)
{
    status s;
    int idle = thread_pool_begin(r->pool, 0);
    const cpu_team some = {r->pool, 0, 1, idle + 1}, *team = idle > 0 ? &some : NULL;
    if (r->plan) {
        s = cpu_plan_run_with(r->plan, r->inputs, r->outputs, r->workspace, team, NULL);
    } else {
        arena_reset(&r->results, KEPT_BYTES);
        s = cpu_dynamic_run(r->dynamic, r->inputs, r->outputs, &r->results,
                            &(cpu_dynamic_caller){.memory = &r->memory, .team = team});
    }
    thread_pool_end(r->pool, 0);
    if (s)
        stop("run");
}

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void run_for(runner *r, double seconds)
{
    static uint64_t times[TIMES_MAX];
    uint64_t end = clock_now_ns() + (uint64_t)(seconds * 1e9), count = 0, now = clock_now_ns();
    do {
        uint64_t start = now;
        run(r);
        now = clock_now_ns();
        times[count++] = now - start;
    } while (now < end && count < TIMES_MAX);
    qsort(times, count, sizeof times[0], compare_times);
    printf("{\"runs\": %llu, \"median_ms\": %.6f, \"least_ms\": %.6f, \"kind\": \"%s\"}\n",
           (unsigned long long)count, (double)times[count / 2] / 1e6, (double)times[0] / 1e6,
           r->plan ? "plan" : "node by node");
}

static void profile_for(runner *r, double seconds)
{
    if (!r->plan) {
        printf("[]\n");
        return;
    }
    int steps = cpu_plan_step_count(r->plan);
    uint64_t *least = allocate((size_t)steps * sizeof *least);
    memset(least, 0xff, (size_t)steps * sizeof *least);
    uint64_t end = clock_now_ns() + (uint64_t)(seconds * 1e9);
    do {
        int idle = thread_pool_begin(r->pool, 0);
        const cpu_team team = {r->pool, 0, 1, idle + 1};
        uint64_t now = clock_now_ns();
        for (int i = 0; i < steps; i++) {
            if (cpu_plan_run_step(r->plan, i, r->inputs, r->outputs, r->workspace,
                                  idle > 0 ? &team : NULL))
                stop("step");
            uint64_t start = now;
            now = clock_now_ns();
            least[i] = now - start < least[i] ? now - start : least[i];
        }
        thread_pool_end(r->pool, 0);
    } while (clock_now_ns() < end);
    json_t *all = json_array();
    for (int i = 0; i < steps; i++) {
        char text[300];
        json_t *one =
            json_pack("{s:s, s:f}", "step", cpu_plan_step_text(r->plan, i, text, sizeof text), "ms",
                      (double)least[i] / 1e6);
        json_array_append_new(all, one);
    }
    json_dumpf(all, stdout, JSON_COMPACT);
    printf("\n");
    json_decref(all);
    free(least);
}

static void write_outputs(runner *r, const char *folder)
{
    run(r);
    printf("[");
    for (int i = 0; i < r->source->output_count; i++) {
        char path[4096];
        const tensor *t = &r->outputs[i];
        if (snprintf(path, sizeof path, "%s/out.%d", folder, i) >= (int)sizeof path)
            stop(folder);
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(t->data, 1, tensor_bytes(t), out) != tensor_bytes(t) || fclose(out))
            stop(path);
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        printf("%s{\"dtype\": \"%s\", \"dims\": \"%s\"}", i ? ", " : "", dtype_name(t->dtype),
               tensor_shape_text(shape, t->rank, t->dims));
    }
    printf("]\n");
}

int main(int argc, char **argv)
{
    runner r = {0};
    if (argc < 3) {
        fprintf(stderr, "run_model MODEL.onnx FEEDS.json [THREADS [LEVEL]]\n");
        return 2;
    }
    kernels_prepare_thread();
    arena_init(&r.results, 0);
    r.threads = argc > 3 ? atoi(argv[3]) : 1;
    if (r.threads < 1 || thread_pool_create(1, r.threads, &r.pool))
        stop("threads");
    if (kernels_select(argc > 4 ? argv[4] : NULL, &r.kernels) ||
        graph_import_onnx(argv[1], NULL, &r.source))
        stop(argv[1]);
    graph_fold_constants(r.source, NULL, cpu_evaluate_node);
    graph_fuse_batch_norms(r.source);
    r.weights = cpu_weights_create(r.source);
    read_feeds(&r, argv[2]);
    prepare(&r);
    run(&r);
    printf("{\"ready\": true}\n");
    fflush(stdout);
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "run ", 4) == 0)
            run_for(&r, atof(line + 4));
        else if (strncmp(line, "profile ", 8) == 0)
            profile_for(&r, atof(line + 8));
        else if (strncmp(line, "write ", 6) == 0)
            write_outputs(&r, line + 6);
        else
            break;
        fflush(stdout);
    }
    return 0;
}
