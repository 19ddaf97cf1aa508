#include "models/whole/own_sizes.h"

#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/specialise/specialise.h"

#define NAMES_MAX 8
/* Of no common divisor, and seldom a constant of a model: no two fit each other by chance. */
static const int64_t row_sizes[NAMES_MAX] = {7, 11, 13, 17, 19, 23, 29, 31};
static const int64_t token_sizes[] = {37, 131, 521};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool has_rows(graph_dim d)
{
    return !d.is_unknown && d.batch != 0;
}

static bool has_tokens(graph_dim d)
{
    return !d.is_unknown && d.sequence != 0;
}

static const char *name_of(const graph_value *v, int d)
{
    return v->dim_names != NULL ? v->dim_names[d] : NULL;
}

/* Where `name` is in the list, or -1. */
static int find_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; name != NULL && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* The names of the dims that `is_kind` takes, each once. */
static int list_names(const graph *g, bool (*is_kind)(graph_dim), const char **names)
{
    int count = 0;
    for (int i = 0; i < g->input_count; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        for (int d = 0; d < v->shape.rank; d++) {
            const char *name = is_kind(v->shape.dims[d]) ? name_of(v, d) : NULL;
            if (name != NULL && count < NAMES_MAX && find_name(names, count, name) < 0)
                names[count++] = name;
        }
    }
    return count;
}

/* Whether some input has tokens, some rows, and none both. */
static bool is_apart(const graph *g)
{
    bool any_rows = false, any_tokens = false;
    for (int i = 0; i < g->input_count; i++) {
        const graph_shape *shape = &g->values[g->inputs[i]].shape;
        bool rows = false, tokens = false;
        for (int d = 0; d < shape->rank; d++) {
            rows |= has_rows(shape->dims[d]);
            tokens |= has_tokens(shape->dims[d]);
        }
        if (rows && tokens)
            return false;
        any_rows |= rows;
        any_tokens |= tokens;
    }
    return any_rows && any_tokens;
}

/* Whether the graph accepts row_sizes[i] for the rows of names[i]; the first for all others. */
static status try_rows(const graph *g, const graph_budget *budget, const char *const *names,
                       int count, int64_t tokens)
{
    tensor inputs[64];
    graph_trace trace = {0};
    if (g->input_count > (int)COUNT(inputs))
        return STATUS_INVALID_ARGUMENT;
    for (int i = 0; i < g->input_count; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++) {
            int at = find_name(names, count, name_of(v, d));
            dims[d] = graph_dim_at(v->shape.dims[d], row_sizes[at < 0 ? 0 : at], tokens);
        }
        inputs[i].data = NULL;
        status failure = tensor_set_shape(&inputs[i], v->dtype, v->shape.rank, dims);
        if (failure)
            return failure;
    }
    status failure =
        graph_trace_values(g, &(graph_binding){inputs, budget}, cpu_evaluate_node, &trace);
    graph_trace_dispose(&trace);
    return failure;
}

static bool is_fatal(status failure)
{
    return cancel_is_end(failure) || failure == STATUS_OUT_OF_MEMORY;
}

static status accepts_own_rows(const graph *g, const graph_budget *budget, const char *const *names,
                               int count, bool *accepts)
{
    *accepts = false;
    for (size_t i = 0; i < COUNT(token_sizes); i++) {
        status failure = try_rows(g, budget, names, 0, token_sizes[i]);
        if (failure && !is_fatal(failure))
            continue; /* too few tokens, perhaps */
        if (!failure)
            failure = try_rows(g, budget, names, count, token_sizes[i]);
        *accepts = failure == STATUS_OK;
        return is_fatal(failure) ? failure : STATUS_OK;
    }
    return STATUS_OK;
}

static bool is_free(graph_dim d)
{
    return !graph_dim_is_constant(d);
}

/* Frees the sizes, and says which ones. */
static const char *free_all(graph *g, arena *memory)
{
    const char *names[NAMES_MAX];
    int count = list_names(g, is_free, names);
    const char *text = "its inputs have sizes of their own";
    for (int i = 0; i < count && text != NULL; i++)
        text = arena_format(memory, "%s%s%s", text, i == 0 ? ": " : ", ", names[i]);
    for (int i = 0; i < g->input_count; i++) {
        graph_shape *shape = &g->values[g->inputs[i]].shape;
        for (int d = 0; d < shape->rank; d++)
            if (is_free(shape->dims[d]))
                shape->dims[d] = (graph_dim){.is_unknown = true};
    }
    return text;
}

status own_sizes_examine(graph *g, const graph_budget *budget, arena *memory, const char **why)
{
    const char *names[NAMES_MAX];
    int count = list_names(g, has_rows, names);
    bool is_own = is_apart(g);
    *why = NULL;
    status failure = STATUS_OK;
    if (!is_own && count > 1)
        failure = accepts_own_rows(g, budget, names, count, &is_own);
    if (failure || !is_own)
        return failure;
    *why = free_all(g, memory);
    return *why != NULL ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
}
