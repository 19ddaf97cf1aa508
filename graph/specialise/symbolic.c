#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/shapes/rules.h"
#include "graph/specialise/fuse_batch_norm.h"
#include "graph/specialise/specialise.h"

/* Two sizes for input dims that depend on neither B nor S, to find the outputs that depend on them.
 */
#define UNRELATED_FIRST 5
#define UNRELATED_SECOND 6

static status bind_at(const graph *g, int64_t batch, int64_t sequence, int64_t unrelated,
                      tensor *inputs)
{
    for (int i = 0; i < g->input_count; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        if (v->shape.rank < 0)
            return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" has no rank", v->name);
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++) {
            graph_dim dim = v->shape.dims[d];
            if (dim.is_unknown && unrelated < 0)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "dim %d of input \"%s\" depends on neither batch nor sequence",
                                   d, v->name);
            dims[d] = dim.is_unknown ? unrelated : graph_dim_at(dim, batch, sequence);
        }
        tensor made = {0};
        status s = infer_set(&made, v->dtype, v->shape.rank, dims);
        if (s)
            return status_prefix(s, "input \"%s\"", v->name);
        inputs[i] = made;
    }
    return STATUS_OK;
}

status graph_bind(const graph *g, int64_t batch, int64_t sequence, tensor *inputs)
{
    if (batch < 0 || sequence < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "batch %lld, sequence %lld", (long long)batch,
                           (long long)sequence);
    return bind_at(g, batch, sequence, -1, inputs);
}

/* Shapes of the outputs at one probe point; `found` has g->output_count tensors. */
static status probe(const graph *g, const graph_budget *budget, graph_evaluate_fn evaluate,
                    int64_t batch, int64_t sequence, int64_t unrelated, tensor *found)
{
    tensor *inputs = calloc((size_t)g->input_count + 1, sizeof inputs[0]);
    if (inputs == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to probe \"%s\"", g->name);
    graph *made = NULL;
    status s = bind_at(g, batch, sequence, unrelated, inputs);
    if (s == STATUS_OK)
        s = graph_specialise(g, &(graph_binding){inputs, budget}, evaluate, &made);
    for (int i = 0; s == STATUS_OK && i < g->output_count; i++)
        found[i] = graph_value_tensor(&made->values[made->outputs[i]]);
    free(inputs);
    graph_destroy(made);
    return s;
}

/* Probe points: (b, s) in {batch, batch + 1} x {sequence, sequence + step} for the fit, a fifth to
 * check it, and a sixth of one row with other unrelated dims. Several sets, because a model may
 * allow only some sizes (a multiple of its patch size, at most its position table, one row). */
typedef struct probe_set {
    int64_t batch, sequence, step;
} probe_set;
static const probe_set probe_sets[] = {{2, 5, 2}, {2, 16, 16}, {2, 64, 64}, {1, 1, 1}};
#define PROBES 6

static status probe_all(const graph *g, const graph_budget *budget, graph_evaluate_fn evaluate,
                        const probe_set *set, tensor *found)
{
    for (int k = 0; k < PROBES; k++) {
        int64_t batch = set->batch + (k == 4 ? 3 : k & 1);
        int64_t sequence = set->sequence + (k == 4 ? 3 : k >> 1 & 1) * set->step;
        if (k == 5) {
            batch = 1; /* where Squeeze drops the rows' axis, or the first two rows are one */
            sequence = set->sequence;
        }
        status s =
            probe(g, budget, evaluate, batch, sequence, k == 5 ? UNRELATED_SECOND : UNRELATED_FIRST,
                  found + (size_t)k * (size_t)g->output_count);
        if (s)
            return s;
    }
    return STATUS_OK;
}

static graph_dim fit(const int64_t at[PROBES], const probe_set *set)
{
    graph_dim dim = {0};
    /* at[]: (b,s) (b+1,s) (b,s+step) (b+1,s+step) check unrelated */
    int64_t mixed = at[3] - at[2] - at[1] + at[0], along = at[2] - at[0];
    dim.is_unknown = mixed % set->step != 0 || along % set->step != 0;
    dim.batch_sequence = mixed / set->step;
    dim.batch = at[1] - at[0] - dim.batch_sequence * set->sequence;
    dim.sequence = along / set->step - dim.batch_sequence * set->batch;
    dim.constant = at[0] - dim.batch * set->batch - dim.sequence * set->sequence -
                   dim.batch_sequence * set->batch * set->sequence;
    if (!dim.is_unknown)
        dim.is_unknown =
            graph_dim_at(dim, set->batch + 3, set->sequence + 3 * set->step) != at[4] ||
            graph_dim_at(dim, 1, set->sequence) != at[5];
    return dim.is_unknown ? (graph_dim){.is_unknown = true} : dim;
}

static void fit_output(graph *g, int output, const tensor *found, const probe_set *set)
{
    graph_value *v = &g->values[g->outputs[output]];
    const tensor *first = &found[output];
    v->dtype = first->dtype;
    v->has_dtype = true;
    v->shape = (graph_shape){.rank = first->rank};
    for (int k = 1; k < PROBES; k++)
        if (found[(size_t)k * (size_t)g->output_count + (size_t)output].rank != first->rank) {
            v->shape.rank = -1;
            return;
        }
    for (int d = 0; d < first->rank; d++) {
        int64_t at[PROBES];
        for (int k = 0; k < PROBES; k++)
            at[k] = found[(size_t)k * (size_t)g->output_count + (size_t)output].dims[d];
        v->shape.dims[d] = fit(at, set);
    }
}

/* Rows as long as these show what shorter ones hide: one frame for every 160 samples looks constant
 * below 160. Where the model does not take them, or folds much for them, it needs no such check. */
static const int64_t long_rows[] = {163, 1601, 48017};
#define LONG_ROWS_FOLDED_MAX ((int64_t)64 << 20)

static status check_long_rows(graph *g, const graph_budget *budget, graph_evaluate_fn evaluate,
                              const probe_set *set, tensor *found)
{
    graph_budget least = budget ? *budget : graph_budget_default;
    if (least.activation_bytes_max > LONG_ROWS_FOLDED_MAX)
        least.activation_bytes_max = LONG_ROWS_FOLDED_MAX;
    for (size_t k = 0; k < sizeof long_rows / sizeof long_rows[0]; k++) {
        status s = probe(g, &least, evaluate, set->batch, long_rows[k], UNRELATED_FIRST, found);
        if (cancel_is_end(s))
            return s;
        for (int i = 0; s == STATUS_OK && i < g->output_count; i++) {
            graph_shape *shape = &g->values[g->outputs[i]].shape;
            for (int d = 0; d < shape->rank && d < found[i].rank; d++)
                if (!shape->dims[d].is_unknown &&
                    graph_dim_at(shape->dims[d], set->batch, long_rows[k]) != found[i].dims[d])
                    shape->dims[d] = (graph_dim){.is_unknown = true};
        }
    }
    return STATUS_OK;
}

static bool has_sequence(const graph *g)
{
    for (int i = 0; i < g->input_count; i++) {
        const graph_shape *shape = &g->values[g->inputs[i]].shape;
        for (int d = 0; d < shape->rank; d++)
            if (shape->dims[d].sequence != 0)
                return true;
    }
    return false;
}

status graph_prepare(graph *g, const graph_budget *budget, graph_evaluate_fn evaluate)
{
    graph_fold_constants(g, budget, evaluate);
    graph_fuse_batch_norms(g);
    return graph_check_memory(g);
}

status graph_infer_symbolic(graph *g, const graph_budget *budget, graph_evaluate_fn evaluate)
{
    status s = graph_prepare(g, budget, evaluate);
    if (s)
        return s;
    tensor *found = calloc(PROBES * ((size_t)g->output_count + 1), sizeof found[0]);
    if (found == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to probe \"%s\"", g->name);
    s = STATUS_INTERNAL;
    char first_message[STATUS_MESSAGE_BYTES_MAX];
    status first = STATUS_OK;
    for (size_t i = 0; s && i < sizeof probe_sets / sizeof probe_sets[0]; i++) {
        s = probe_all(g, budget, evaluate, &probe_sets[i], found);
        if (cancel_is_end(s))
            break;
        if (s && first == STATUS_OK) {
            first = s;
            strcpy(first_message, status_message());
        }
        for (int k = 0; s == STATUS_OK && k < g->output_count; k++)
            fit_output(g, k, found, &probe_sets[i]);
        if (s == STATUS_OK && has_sequence(g))
            s = check_long_rows(g, budget, evaluate, &probe_sets[i], found);
        if (cancel_is_end(s))
            break;
    }
    free(found);
    if (cancel_is_end(s))
        return s;
    return s ? status_fail(first, "%s", first_message) : STATUS_OK;
}
