#include "models/whole/free_sizes.h"

#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/specialise/specialise.h"

/* Tried for all sizes at once, in this order: what networks are usually made for, small ones first
 * among them; then for pairs of sizes. */
static const int64_t candidates[] = {64,  48,  32,  224, 16,  96, 128, 160, 192,  256,   320, 512,
                                     640, 112, 299, 416, 80,  24, 8,   576, 1024, 16000, 5,   7,
                                     3,   2,   1,   100, 400, 4,  10,  12,  20,   28,    40,  300};
static const int64_t pairs[] = {64, 48, 32, 224, 128, 512, 1, 2, 16, 80, 320, 3};
#define PAIRED_MAX 4 /* sizes that are tried with a value of their own */
/* Where one row is not enough: an index into rows, or the largest of some. */
static const int64_t rows[] = {2, 3, 4, 8, 16, 64, 256};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* What the search works on. */
typedef struct search {
    const graph *g;
    const graph_budget *budget;
    free_sizes *found;
    int8_t *size_of; /* [input][dim]: index of its size, -1 where it is constant */
    tensor *inputs;
    arena *memory;
} search;

static int8_t *size_at(const search *s, int input, int dim)
{
    return &s->size_of[input * TENSOR_RANK_MAX + dim];
}

static int find_size(const free_sizes *sizes, const char *name, bool is_batch)
{
    for (int i = 0; i < sizes->count; i++)
        if ((is_batch && sizes->sizes[i].is_batch) ||
            (!is_batch && !sizes->sizes[i].is_batch && name != NULL &&
             strcmp(sizes->sizes[i].name, name) == 0))
            return i;
    return -1;
}

/* Dims that follow B are one size, dims of one name another. -1: too many, or no memory. */
static int add_dim(free_sizes *found, const graph *g, const graph_value *v, int d, arena *memory)
{
    graph_dim dim = v->shape.dims[d];
    const char *name = v->dim_names ? v->dim_names[d] : NULL;
    bool is_batch = !dim.is_unknown && dim.batch == 1, is_named = name != NULL;
    bool is_sequence = !dim.is_unknown && dim.sequence == 1;
    if (is_sequence && name == NULL && !g->is_dynamic) /* any dim of those may have any size */
        name = "sequence";
    int index = find_size(found, name, is_batch);
    const char *place = arena_format(memory, "%s[%d]", v->name, d);
    if (place == NULL || (index < 0 && found->count == FREE_SIZES_MAX))
        return -1;
    if (index >= 0) {
        free_size *known = &found->sizes[index];
        known->places = arena_format(memory, "%s, %s", known->places, place);
        return known->places != NULL ? index : -1;
    }
    found->sizes[found->count] = (free_size){.name = name != NULL ? name : place,
                                             .places = place,
                                             .is_named = is_named,
                                             .is_batch = is_batch,
                                             .is_sequence = is_sequence,
                                             .at = 1,
                                             .step = -1};
    return found->count++;
}

/* `size_of`: of the search, or NULL. */
static status list_sizes(const graph *g, arena *memory, free_sizes *found, int8_t *size_of)
{
    for (int i = 0; i < g->input_count; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        for (int d = 0; d < v->shape.rank; d++) {
            int index = -1;
            if (!graph_dim_is_constant(v->shape.dims[d])) {
                index = add_dim(found, g, v, d, memory);
                if (index < 0 && found->count == FREE_SIZES_MAX)
                    return status_fail(STATUS_UNSUPPORTED, "inputs with over %d free sizes",
                                       FREE_SIZES_MAX);
                if (index < 0)
                    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
            }
            if (size_of != NULL)
                size_of[i * TENSOR_RANK_MAX + d] = (int8_t)index;
        }
    }
    return STATUS_OK;
}

status free_sizes_list(const graph *g, arena *memory, free_sizes *out)
{
    *out = (free_sizes){0};
    return list_sizes(g, memory, out, NULL);
}

/* Whether the graph accepts the sizes as they are. */
static status accept(const search *s, tensor *outputs)
{
    graph_trace trace = {0};
    for (int i = 0; i < s->g->input_count; i++) {
        const graph_value *v = &s->g->values[s->g->inputs[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++) {
            int8_t index = *size_at(s, i, d);
            dims[d] = index < 0 ? v->shape.dims[d].constant : s->found->sizes[index].at;
        }
        s->inputs[i].data = NULL;
        status failure = tensor_set_shape(&s->inputs[i], v->dtype, v->shape.rank, dims);
        if (failure)
            return failure;
    }
    status failure =
        graph_trace_values(s->g, &(graph_binding){s->inputs, s->budget}, cpu_evaluate_node, &trace);
    for (int i = 0; !failure && outputs != NULL && i < s->g->output_count; i++) {
        outputs[i] = trace.values[s->g->outputs[i]];
        outputs[i].data = NULL;
    }
    graph_trace_dispose(&trace);
    return failure;
}

/* Failures that another size may cure. */
static bool is_size_fault(status failure)
{
    return failure == STATUS_INVALID_ARGUMENT;
}

static status try_equal(const search *s, int64_t batch, const int64_t *list, size_t count)
{
    status first = STATUS_OK;
    char message[STATUS_MESSAGE_BYTES_MAX] = "";
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < s->found->count; k++)
            s->found->sizes[k].at = s->found->sizes[k].is_batch ? batch : list[i];
        status failure = accept(s, NULL);
        if (!is_size_fault(failure) || s->found->count == 0)
            return failure;
        if (first == STATUS_OK) {
            first = failure;
            strcpy(message, status_message());
        }
    }
    return status_fail(first, "%s", message);
}

/* Two sizes with values of their own, the others as the first. */
static status try_pairs(const search *s)
{
    for (int one = 0; one < s->found->count && one < PAIRED_MAX; one++) {
        for (size_t i = 0; i < COUNT(pairs) * COUNT(pairs); i++) {
            int64_t own = pairs[i % COUNT(pairs)], others = pairs[i / COUNT(pairs)];
            if (own == others || s->found->sizes[one].is_batch)
                continue;
            for (int k = 0; k < s->found->count; k++)
                s->found->sizes[k].at = s->found->sizes[k].is_batch ? 1 : k == one ? own : others;
            status failure = accept(s, NULL);
            if (!is_size_fault(failure))
                return failure;
        }
    }
    return STATUS_INVALID_ARGUMENT;
}

/* Than the size that was refused before. */
static bool is_farther(const free_size *size, int64_t other)
{
    return llabs(other - size->at) > llabs(size->refused - size->at);
}

static status try_size(const search *s, int index, int64_t size, bool *is_accepted)
{
    int64_t before = s->found->sizes[index].at;
    s->found->sizes[index].at = size;
    status failure = accept(s, NULL);
    s->found->sizes[index].at = before;
    *is_accepted = failure == STATUS_OK;
    if (cancel_is_end(failure) || failure == STATUS_OUT_OF_MEMORY)
        return failure;
    free_size *tried = &s->found->sizes[index];
    if (failure == STATUS_OK || (tried->refusal != NULL && is_farther(tried, size)))
        return STATUS_OK;
    tried->refused = size;
    tried->refusal = arena_format(s->memory, "%s", status_message());
    return tried->refusal != NULL ? STATUS_OK
                                  : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
}

/* The smallest power of two by which the size may grow, up to 64. */
static status find_step(const search *s, int index)
{
    free_size *size = &s->found->sizes[index];
    bool is_accepted = false;
    size->step = 0;
    size->least = size->at;
    for (int64_t step = 1; step <= 64; step *= 2) {
        status failure = try_size(s, index, size->at + step, &is_accepted);
        if (failure)
            return failure;
        if (is_accepted) {
            size->step = step;
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

/* The smallest size in steps from `at`: all of them, or those from a window on. */
static status find_least(const search *s, int index)
{
    free_size *size = &s->found->sizes[index];
    if (size->step < 1)
        return STATUS_OK;
    int64_t step = size->step, refused = -1, taken = (size->at - 1) / step;
    int64_t first = size->at - taken * step, next = 0; /* sizes are first + i * step */
    while (refused + 1 < taken) {
        bool is_accepted = false;
        status failure = try_size(s, index, first + next * step, &is_accepted);
        if (failure)
            return failure;
        if (is_accepted)
            taken = next;
        else
            refused = next;
        next = (refused + taken) / 2;
    }
    size->least = first + taken * step;
    return STATUS_OK;
}

status free_sizes_find(const graph *g, const graph_budget *budget, arena *memory, free_sizes *out,
                       tensor *inputs, tensor *outputs)
{
    char message[STATUS_MESSAGE_BYTES_MAX];
    *out = (free_sizes){0};
    search s = {.g = g, .budget = budget, .found = out, .inputs = inputs, .memory = memory};
    s.size_of = arena_allocate(memory, (size_t)(g->input_count + 1) * TENSOR_RANK_MAX);
    if (s.size_of == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    status failure = list_sizes(g, memory, out, s.size_of);
    if (failure)
        return failure;
    failure = try_equal(&s, 1, candidates, COUNT(candidates));
    if (is_size_fault(failure) && out->count > 0) {
        strcpy(message, status_message());
        failure = try_pairs(&s);
        for (size_t i = 0; i < COUNT(rows) && is_size_fault(failure); i++)
            failure = try_equal(&s, rows[i], pairs, COUNT(pairs));
        if (is_size_fault(failure))
            return status_fail(failure, "%s", message);
    }
    for (int i = 0; !failure && i < out->count; i++) {
        failure = find_step(&s, i);
        if (!failure && !out->sizes[i].is_batch)
            failure = find_least(&s, i);
    }
    return failure ? failure : accept(&s, outputs);
}

const char *free_size_text(const free_size *size, arena *memory)
{
    if (size->step < 0)
        return "";
    if (size->step == 1 && size->least == 1)
        return "any";
    if (size->step == 1)
        return arena_format(memory, "%lld or more", (long long)size->least);
    if (size->step > 1 && size->least == size->step)
        return arena_format(memory, "multiples of %lld", (long long)size->step);
    if (size->step > 1)
        return arena_format(memory, "%lld, and more in steps of %lld", (long long)size->least,
                            (long long)size->step);
    return arena_format(memory, "%lld", (long long)size->at);
}

const char *free_sizes_text(const free_sizes *sizes, arena *memory)
{
    const char *text = "";
    for (int i = 0; i < sizes->count && text != NULL; i++) {
        const free_size *size = &sizes->sizes[i];
        if (size->is_batch)
            continue;
        const char *own = free_size_text(size, memory);
        text = own != NULL ? arena_format(memory, "%s%s%s: %s", text, text[0] != 0 ? "; " : "",
                                          size->name, own)
                           : NULL;
    }
    return text;
}

/* Dims without a name go by their places, each for itself. */
static const char *add_keys(const char *text, const free_size *size, arena *memory)
{
    const char *at = size->is_named ? size->name : size->places;
    while (text != NULL && *at != 0) {
        const char *end = size->is_named ? NULL : strstr(at, "], ");
        size_t bytes = end != NULL ? (size_t)(end + 1 - at) : strlen(at);
        text = arena_format(memory, "%s%s\"%.*s\": SIZE", text, text[0] != 0 ? ", " : "",
                            (int)bytes, at);
        at += end != NULL ? bytes + 2 : bytes;
    }
    return text;
}

const char *free_sizes_dims(const free_sizes *sizes, arena *memory)
{
    const char *text = "";
    for (int i = 0; i < sizes->count && text != NULL; i++)
        if (!sizes->sizes[i].is_batch)
            text = add_keys(text, &sizes->sizes[i], memory);
    return text;
}
