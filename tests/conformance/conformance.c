/* Runs node tests of the onnx package on the CPU and says of each: pass, fail, unsupported, crash.
 *
 *     conformance [--rtol R] [--atol A] [--cpu-level L] [--seconds N] FOLDER...
 *
 * A folder holds model.onnx and test_data_set_*, as the onnx package lays them out. Each runs in a
 * child process with a time limit. One line of output each: verdict, tab, name, tab, reason. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/plan/plan.h"
#include "graph/import.h"
#include "graph/specialise/specialise.h"
#include "tests/conformance/tensor_file.h"

#define PORTS_MAX 64

typedef struct tolerance {
    double relative, absolute;
} tolerance;

typedef struct test_case {
    arena memory;
    graph *model;
    const char *level; /* of the kernels; NULL: the best this CPU has */
    tensor inputs[PORTS_MAX], expected[PORTS_MAX];
    char note[400]; /* "dynamic": it does not run as a plan */
} test_case;

static status read_ports(test_case *test, const char *folder, const char *kind, int count,
                         tensor *tensors)
{
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s_%d.pb", folder, kind, i);
        status s = tensor_file_read(path, &test->memory, &tensors[i]);
        if (s)
            return status_prefix(s, "%s %d", kind, i);
    }
    return STATUS_OK;
}

static status specialise(const test_case *test, graph **out)
{
    tensor binding[PORTS_MAX];
    for (int i = 0; i < test->model->input_count; i++) {
        binding[i] = test->inputs[i];
        binding[i].data = NULL;
    }
    return graph_specialise(test->model, &(graph_binding){.inputs = binding}, cpu_evaluate_node,
                            out);
}

/* Runs a model whose shapes or ways depend on values. */
static status execute_dynamic(test_case *test, tensor *outputs)
{
    cpu_dynamic_options options = {
        .graph = test->model, .threads = 1, .evaluate = cpu_evaluate_node};
    cpu_dynamic_memory workspace = {0};
    cpu_dynamic *program = NULL;
    status s = kernels_select(test->level, &options.kernels);
    if (s)
        return s;
    options.weights = cpu_weights_create(test->model);
    snprintf(test->note, sizeof test->note, "dynamic");
    s = cpu_dynamic_create(&options, &program);
    if (!s)
        s = cpu_dynamic_run(program, test->inputs, outputs, &test->memory,
                            &(cpu_dynamic_caller){.memory = &workspace});
    cpu_dynamic_memory_trim(&workspace, 0);
    cpu_dynamic_destroy(program);
    cpu_weights_release(options.weights);
    return s;
}

/* Runs the specialised graph the way a bucket is served: as a plan over one workspace. */
static status execute(test_case *test, const graph *g, tensor *outputs)
{
    const kernels *table;
    cpu_plan *plan = NULL;
    status s = kernels_select(test->level, &table);
    if (s)
        return s;
    if ((s = cpu_plan_create(g, table, NULL, &plan)))
        return s;
    size_t bytes = cpu_plan_workspace_bytes(plan);
    void *workspace =
        arena_allocate_aligned(&test->memory, bytes ? bytes : 1, CPU_PLAN_WORKSPACE_ALIGNMENT);
    if (workspace == NULL)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a workspace of %zu bytes", bytes);
    for (int i = 0; s == STATUS_OK && i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++)
            dims[d] = v->shape.dims[d].constant;
        s = tensor_allocate(&outputs[i], &test->memory, v->dtype, v->shape.rank, dims);
    }
    if (s == STATUS_OK)
        s = cpu_plan_run(plan, test->inputs, outputs, workspace, NULL);
    cpu_plan_destroy(plan);
    return s;
}

/* onnx/backend/test/runner: numpy.testing.assert_allclose; bfloat16 gets two of its units. */
static bool compare(int index, const tensor *found, const tensor *expected, tolerance limit,
                    char *reason, size_t reason_bytes)
{
    char a[TENSOR_SHAPE_TEXT_BYTES], b[TENSOR_SHAPE_TEXT_BYTES];
    if (found->dtype != expected->dtype || !tensor_same_shape(found, expected)) {
        snprintf(reason, reason_bytes, "output %d is %s%s, expected %s%s", index,
                 dtype_name(found->dtype), tensor_shape_text(a, found->rank, found->dims),
                 dtype_name(expected->dtype), tensor_shape_text(b, expected->rank, expected->dims));
        return false;
    }
    if (found->dtype == DTYPE_BF16 && limit.relative < 0x1p-6)
        limit.relative = 0x1p-6;
    for (int64_t i = 0; i < tensor_count(found); i++) {
        double x = tensor_get_number(found, i), y = tensor_get_number(expected, i);
        if (x == y || (isnan(x) && isnan(y)) ||
            fabs(x - y) <= limit.absolute + limit.relative * fabs(y))
            continue;
        snprintf(reason, reason_bytes, "output %d[%lld] is %.9g, expected %.9g", index,
                 (long long)i, x, y);
        return false;
    }
    return true;
}

static const char *run_data_set(test_case *test, const char *folder, tolerance limit, char *reason,
                                size_t reason_bytes)
{
    graph *made = NULL;
    tensor found[PORTS_MAX] = {0};
    status s = read_ports(test, folder, "input", test->model->input_count, test->inputs);
    if (s == STATUS_OK)
        s = read_ports(test, folder, "output", test->model->output_count, test->expected);
    if (s == STATUS_OK)
        s = specialise(test, &made);
    if (s == STATUS_OK)
        s = execute(test, made, found);
    else if (s == STATUS_UNSUPPORTED)
        s = execute_dynamic(test, found);
    const char *verdict = "pass";
    if (s) {
        snprintf(reason, reason_bytes, "%s: %s", status_name(s), status_message());
        verdict = s == STATUS_UNSUPPORTED ? "unsupported" : "fail";
    } else {
        snprintf(reason, reason_bytes, "%s", test->note);
        for (int i = 0; i < test->model->output_count; i++)
            if (!compare(i, &found[i], &test->expected[i], limit, reason, reason_bytes))
                verdict = "fail";
    }
    graph_destroy(made);
    return verdict;
}

static const char *run_folder(const char *folder, const char *level, tolerance limit, char *reason,
                              size_t reason_bytes)
{
    test_case test = {.level = level};
    char path[4096];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    status s = graph_import_onnx(path, NULL, &test.model);
    if (s == STATUS_OK &&
        (test.model->input_count > PORTS_MAX || test.model->output_count > PORTS_MAX))
        s = status_fail(STATUS_UNSUPPORTED, "more than %d inputs or outputs", PORTS_MAX);
    if (s) {
        snprintf(reason, reason_bytes, "%s: %s", status_name(s), status_message());
        return s == STATUS_UNSUPPORTED ? "unsupported" : "fail";
    }
    const char *verdict = "fail";
    snprintf(reason, reason_bytes, "no data");
    for (int k = 0;; k++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d", folder, k);
        if (access(path, R_OK) != 0)
            break;
        verdict = run_data_set(&test, path, limit, reason, reason_bytes);
        if (strcmp(verdict, "pass") != 0)
            break;
    }
    graph_destroy(test.model);
    arena_dispose(&test.memory);
    return verdict;
}

static void run_in_child(const char *folder, const char *level, tolerance limit, unsigned seconds)
{
    const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char reason[STATUS_MESSAGE_BYTES_MAX + 64];
        alarm(seconds);
        const char *verdict = run_folder(folder, level, limit, reason, sizeof reason);
        for (char *c = reason; *c != 0; c++)
            if (*c == '\n' || *c == '\t')
                *c = ' ';
        printf("%s\t%s\t%s\n", verdict, name, reason);
        fflush(stdout);
        _exit(0);
    }
    int state = 0;
    if (child < 0 || waitpid(child, &state, 0) != child)
        printf("crash\t%s\tno process\n", name);
    else if (WIFSIGNALED(state))
        printf("crash\t%s\tsignal %d (%s)\n", name, WTERMSIG(state), strsignal(WTERMSIG(state)));
    else if (WEXITSTATUS(state) != 0)
        printf("crash\t%s\texit %d\n", name, WEXITSTATUS(state));
}

int main(int argc, char **argv)
{
    tolerance limit = {1e-3, 1e-7};
    unsigned seconds = 20;
    const char *level = NULL;
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--rtol") == 0)
            limit.relative = strtod(argv[at + 1], NULL);
        else if (strcmp(argv[at], "--atol") == 0)
            limit.absolute = strtod(argv[at + 1], NULL);
        else if (strcmp(argv[at], "--cpu-level") == 0)
            level = argv[at + 1];
        else if (strcmp(argv[at], "--seconds") == 0)
            seconds = (unsigned)strtoul(argv[at + 1], NULL, 10);
        else
            break;
    }
    if (at >= argc) {
        fprintf(
            stderr,
            "usage: conformance [--rtol R] [--atol A] [--cpu-level L] [--seconds N] FOLDER...\n");
        return 2;
    }
    for (; at < argc; at++)
        run_in_child(argv[at], level, limit, seconds);
    return 0;
}
