#include "models/batching/independence.h"

#include "devices/cpu/evaluate.h"

static status examine(const model *m, device_bucket shape, graph_independence *out)
{
    *out = (graph_independence){.verdict = GRAPH_INDEPENDENT};
    status s = graph_examine_independence(m->graph, shape.batch, shape.sequence, &m->budget,
                                          cpu_evaluate_node, out);
    if (!s || cancel_is_end(s) || s == STATUS_OUT_OF_MEMORY || s == STATUS_TOO_LARGE)
        return s;
    *out = (graph_independence){.verdict = GRAPH_UNDECIDED,
                                .op = GRAPH_OP_COUNT,
                                .reason = "the model does not accept several rows"};
    return STATUS_OK;
}

status independence_examine(const model *m, int64_t length, graph_independence *out)
{
    /* Two batches: where a static size of the graph happens to be one of them, the other shows that
     * it is no number of rows. */
    static const int64_t batches[] = {2, 3};
    *out = (graph_independence){.verdict = GRAPH_INDEPENDENT};
    status s = STATUS_OK;
    for (int i = 0; i < 2 && !s && out->verdict == GRAPH_INDEPENDENT; i++)
        s = examine(m, (device_bucket){batches[i], length}, out);
    if (s == STATUS_TOO_LARGE) {
        *out = (graph_independence){.verdict = GRAPH_UNDECIDED,
                                    .op = GRAPH_OP_COUNT,
                                    .reason = "several rows cost too much"};
        s = STATUS_OK;
    }
    return s;
}

status independence_confirm(const model *m, graph_independence *out)
{
    *out = (graph_independence){.verdict = GRAPH_INDEPENDENT};
    status s = STATUS_OK;
    for (int i = 0; i < m->bucket_count && !s && out->verdict == GRAPH_INDEPENDENT; i++) {
        if (m->buckets[i].shape.batch > 1)
            s = examine(m, m->buckets[i].shape, out);
        if (s == STATUS_TOO_LARGE)
            s = STATUS_OK; /* it will not compile either */
    }
    return s;
}

status independence_examine_tokens(const model *m, int64_t length, graph_independence *out)
{
    *out = (graph_independence){.verdict = GRAPH_UNDECIDED,
                                .op = GRAPH_OP_COUNT,
                                .reason = "the model does not accept a row of one token"};
    if (length < 2)
        return STATUS_OK;
    status s = graph_examine_tokens(m->graph, length, &m->budget, cpu_evaluate_node, out);
    return cancel_is_end(s) || s == STATUS_OUT_OF_MEMORY ? s : STATUS_OK;
}
