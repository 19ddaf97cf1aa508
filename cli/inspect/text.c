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

/* One line for each batch size that several sequence lengths share, instead of every pair. */
static void print_buckets(const model *m)
{
    text_buffer line = {0};
    int count = inspect_padded_buckets(m);
    for (int i = 0; i < count; i++) {
        int64_t batch = m->buckets[i].shape.batch;
        bool is_first = true;
        for (int j = 0; j < i; j++)
            is_first = is_first && m->buckets[j].shape.batch != batch;
        if (!is_first)
            continue;
        if (m->buckets[i].shape.sequence == 0) {
            text_buffer_format(&line, "%s%lld", line.bytes ? ", " : "rows: ", (long long)batch);
            continue;
        }
        text_buffer_format(&line, "%s%lld x",
                           line.bytes ? "; " : "rows x tokens: ", (long long)batch);
        const char *comma = " ";
        for (int j = i; j < count; j++) {
            if (m->buckets[j].shape.batch == batch) {
                text_buffer_format(&line, "%s%lld", comma, (long long)m->buckets[j].shape.sequence);
                comma = ", ";
            }
        }
    }
    print_titled("buckets   ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

static void print_packing(const model *m)
{
    text_buffer line = {0};
    if (m->packed_encoder == NULL)
        text_buffer_format(&line, "a row holds one sequence: %s", m->packing_note);
    else
        text_buffer_put(&line, "on PJRT devices a row may hold several sequences; rows x tokens:");
    for (int i = inspect_padded_buckets(m); i < m->bucket_count; i++)
        text_buffer_format(&line, "%s %lld x %lld", i > inspect_padded_buckets(m) ? "," : "",
                           (long long)m->buckets[i].shape.batch,
                           (long long)m->buckets[i].shape.sequence);
    print_titled("packing   ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

static void print_fusion(const model *m)
{
    inspect_fusion fusion = inspect_count_fused(m);
    text_buffer line = {0};
    text_buffer_format(&line,
                       "%d matmuls and convolutions run fused with the operators after them, %d "
                       "of these in int8; %d run unfused",
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
