#include <stdio.h>
#include <string.h>

#include "base/text/text_buffer.h"
#include "cli/inspect/axes.h"
#include "cli/inspect/facts.h"
#include "cli/inspect/mxu.h"
#include "cli/inspect/print.h"
#include "models/start/deferred_buckets.h"
#include "models/text/model_text.h"
#include "models/whole/free_sizes.h"
#include "server/protocol/infer.h"
#include "server/protocol/text/text_write.h"

static void put_string(text_buffer *out, const char *s)
{
    text_write_json_string(out, s ? s : "", s ? strlen(s) : 0);
}

/* What takes text, or why nothing does. */
static void json_text(text_buffer *out, const model *m)
{
    text_buffer_put(out, ",\"text\":{\"file\":");
    put_string(out, m->text != NULL ? m->text->file : "");
    text_buffer_format(out, ",\"tokens_max\":%lld,\"note\":",
                       m->text != NULL ? (long long)m->text->tokens_max : 0ll);
    put_string(out, m->text_note);
    text_buffer_put(out, "}");
}

static void json_tensors(text_buffer *out, const char *key, const model_tensor *tensors, int count,
                         bool are_inputs)
{
    text_buffer_format(out, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        const model_tensor *t = &tensors[i];
        char dims[TENSOR_SHAPE_TEXT_BYTES];
        text_buffer_put(out, i ? ",{\"name\":" : "{\"name\":");
        put_string(out, t->name);
        text_buffer_format(out, ",\"datatype\":\"%s\",\"dims\":", dtype_kserve_name(t->dtype));
        put_string(out, infer_dims_text(dims, t));
        text_buffer_format(out, ",\"batch_axis\":%d,\"sequence_axis\":%d", t->batch_axis,
                           t->sequence_axis);
        if (are_inputs)
            text_buffer_format(out, ",\"pad_value\":%.17g,\"is_mask\":%s,\"is_optional\":%s",
                               t->pad_value, t->is_mask ? "true" : "false",
                               t->is_optional ? "true" : "false");
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, "]");
}

static void json_packing(text_buffer *out, const model *m)
{
    int first = inspect_padded_buckets(m);
    text_buffer_put(out, "],\"packing\":{\"why_not\":");
    put_string(out, m->packing_note);
    text_buffer_put(out, ",\"buckets\":[");
    for (int i = first; i < m->bucket_count; i++)
        text_buffer_format(out, "%s{\"rows\":%lld,\"length\":%lld,\"sequences\":%lld}",
                           i > first ? "," : "", (long long)m->buckets[i].shape.batch,
                           (long long)m->buckets[i].shape.sequence,
                           (long long)m->buckets[i].sequences);
    text_buffer_put(out, "]}");
}

/* What people read in two places of the text. */
static void json_batching_note(text_buffer *out, const model *m)
{
    arena memory = {0};
    const char *sizes = m->whole_sizes != NULL ? free_sizes_text(m->whole_sizes, &memory) : NULL;
    text_buffer all = {0};
    text_buffer_put(&all, m->batching_note);
    if (sizes != NULL && sizes[0] != 0)
        text_buffer_format(&all, "; sizes accepted: %s", sizes);
    put_string(out, text_buffer_string(&all));
    text_buffer_dispose(&all);
    arena_dispose(&memory);
}

void inspect_print_json(const model *m, const char *programs)
{
    text_buffer out = {0};
    int counts[GRAPH_OP_COUNT];
    inspect_count_operators(m->graph, counts);
    inspect_fusion fusion = inspect_count_fused(m);
    text_buffer_put(&out, "{\"platform\":");
    put_string(&out, m->platform);
    text_buffer_put(&out, ",\"source\":");
    put_string(&out, m->graph->source);
    json_tensors(&out, "inputs", m->inputs, m->input_count, true);
    json_tensors(&out, "outputs", m->outputs, m->output_count, false);
    inspect_axes_json(m, &out);
    json_text(&out, m);
    text_buffer_format(
        &out,
        ",\"can_batch\":%s,\"can_pad\":%s,\"batch_basis\":\"%s\","
        "\"pad_basis\":\"%s\",\"batch_max\":%lld,\"sequence_max\":%lld,"
        "\"findings\":",
        m->batching.can_batch ? "true" : "false", m->batching.can_pad ? "true" : "false",
        model_basis_name(m->batching.batch_basis), model_basis_name(m->batching.pad_basis),
        (long long)m->batching.batch_max, (long long)m->batching.sequence_max);
    json_batching_note(&out, m);
    text_buffer_put(&out, ",\"buckets\":[");
    for (int i = 0; i < inspect_padded_buckets(m); i++)
        text_buffer_format(&out, "%s{\"batch\":%lld,\"sequence\":%lld,\"is_deferred\":%s}",
                           i ? "," : "", (long long)m->buckets[i].shape.batch,
                           (long long)m->buckets[i].shape.sequence,
                           deferred_buckets_state(m, i) != DEFERRED_NOT ? "true" : "false");
    json_packing(&out, m);
    text_buffer_format(&out, ",\"nodes\":%d,\"operators\":{", m->graph->node_count);
    bool is_first = true;
    for (int op = 0; op < GRAPH_OP_COUNT; op++) {
        if (counts[op] > 0) {
            text_buffer_format(&out, "%s\"%s\":%d", is_first ? "" : ",",
                               graph_op_title((graph_op)op), counts[op]);
            is_first = false;
        }
    }
    text_buffer_format(&out,
                       "},\"products\":{\"fused\":%d,\"quantised\":%d,\"apart\":%d},"
                       "\"unsupported\":[],\"load_ms\":%.3f,\"warm_up_ms\":%.3f,",
                       fusion.fused, fusion.fused_int8, fusion.unfused, (double)m->load_ns / 1e6,
                       (double)m->warm_up_ns / 1e6);
    inspect_mxu_json(m, &out);
    if (programs != NULL) {
        text_buffer_put(&out, ",\"programs\":");
        text_buffer_put(&out, programs);
    }
    text_buffer_put(&out, "}\n");
    fwrite(text_buffer_string(&out), 1, out.bytes, stdout);
    text_buffer_dispose(&out);
}
