#include <stdio.h>
#include <string.h>

#include "base/text_buffer.h"
#include "base/wrap.h"
#include "cli/inspect/facts.h"
#include "cli/inspect/print.h"
#include "server/protocol/infer.h"

static void print_titled(const char *title, const char *text)
{
    printf("%s", title);
    wrap_print(stdout, text, (int)strlen(title));
}

static void print_tensors(const char *title, const model_tensor *tensors, int count)
{
    printf("%s\n", title);
    for (int i = 0; i < count; i++) {
        char dims[TENSOR_SHAPE_TEXT_BYTES];
        printf("  %-24s %-6s %s", tensors[i].name, dtype_kserve_name(tensors[i].dtype),
               infer_dims_text(dims, &tensors[i]));
        printf("%s%s\n", tensors[i].is_mask ? "  mask" : "",
               tensors[i].is_optional ? "  optional" : "");
    }
}

/* Adds the distinct sizes of buckets [from, to) along one axis, as "1, 2, 4"; returns how many. */
static int put_sizes(text_buffer *line, const model *m, int from, int to, bool is_sequence)
{
    int count = 0;
    for (int i = from; i < to; i++) {
        device_bucket at = m->buckets[i].shape;
        bool is_first = true;
        for (int k = from; k < i && is_first; k++)
            is_first = is_sequence ? m->buckets[k].shape.sequence != at.sequence
                                   : m->buckets[k].shape.batch != at.batch;
        if (is_first)
            text_buffer_format(line, "%s%lld", count++ > 0 ? ", " : "",
                               (long long)(is_sequence ? at.sequence : at.batch));
    }
    return count;
}

/* Adds buckets [from, to): the sizes of each axis, or all pairs if some combinations are missing.
 */
static void put_buckets(text_buffer *line, const model *m, int from, int to)
{
    size_t begin = line->bytes;
    text_buffer_put(line, "rows: ");
    int batches = put_sizes(line, m, from, to, false);
    if (m->buckets[from].shape.sequence == 0)
        return;
    text_buffer_put(line, "; tokens in a row: ");
    if (batches * put_sizes(line, m, from, to, true) == to - from)
        return;
    line->bytes = begin;
    text_buffer_put(line, "rows x tokens:");
    for (int i = from; i < to; i++)
        text_buffer_format(line, "%s %lldx%lld", i > from ? "," : "",
                           (long long)m->buckets[i].shape.batch,
                           (long long)m->buckets[i].shape.sequence);
}

static void print_buckets(const model *m)
{
    text_buffer line = {0};
    int padded = inspect_padded_buckets(m);
    if (padded > 0)
        put_buckets(&line, m, 0, padded);
    else
        text_buffer_put(&line, "none: batches run at the exact lengths of their rows");
    print_titled("buckets   ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

static void print_packing(const model *m)
{
    text_buffer line = {0};
    int padded = inspect_padded_buckets(m);
    if (m->packed_encoder == NULL)
        text_buffer_format(&line, "a row holds one sequence: %s", m->packing_note);
    else
        text_buffer_put(&line, "on PJRT devices a row may hold several sequences; ");
    if (m->packed_encoder != NULL && m->bucket_count > padded)
        put_buckets(&line, m, padded, m->bucket_count);
    print_titled("packing   ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

static void print_fusion(const model *m)
{
    inspect_fusion fusion = inspect_count_fused(m);
    text_buffer line = {0};
    text_buffer_format(&line,
                       "in buckets, %d matmuls and convolutions run fused with the operators after "
                       "them, %d of these in int8; %d run unfused",
                       fusion.fused, fusion.fused_int8, fusion.unfused);
    print_titled("fusion    ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

static void print_operators(const model *m, const int counts[GRAPH_OP_COUNT])
{
    text_buffer line = {0};
    for (int op = 0; op < GRAPH_OP_COUNT; op++)
        if (counts[op] > 0)
            text_buffer_format(&line, "%s%d %s", line.bytes ? ", " : "", counts[op],
                               graph_op_name((graph_op)op));
    text_buffer_format(&line, " (%d nodes)", m->graph->node_count);
    print_titled("operators ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

void inspect_print_text(const model *m)
{
    int counts[GRAPH_OP_COUNT];
    inspect_count_operators(m->graph, counts);
    printf("platform  %s\nsource    %s\n", m->platform, m->graph->source ? m->graph->source : "");
    print_tensors("inputs", m->inputs, m->input_count);
    print_tensors("outputs", m->outputs, m->output_count);
    printf("batching  %s, %s; at most %lld rows",
           m->batching.can_batch ? "rows are independent" : "rows run alone",
           m->batching.sequence_max == 0 ? "no sequence axis"
           : m->batching.can_pad         ? "rows can be padded"
                                         : "rows run at their own length",
           (long long)m->batching.batch_max);
    if (m->batching.sequence_max > 0)
        printf(" of at most %lld tokens", (long long)m->batching.sequence_max);
    printf("\n");
    if (m->batching_note && m->batching_note[0])
        print_titled("why       ", m->batching_note);
    print_buckets(m);
    if (m->on_device.exported != NULL)
        return;
    print_packing(m);
    print_fusion(m);
    print_operators(m, counts);
    printf("loaded in %.1f ms, warm-up %.1f ms\n", (double)m->load_ns / 1e6,
           (double)m->warm_up_ns / 1e6);
}
