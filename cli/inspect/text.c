#include <stdio.h>
#include <string.h>

#include "base/text/text_buffer.h"
#include "base/text/wrap.h"
#include "cli/inspect/axes.h"
#include "cli/inspect/facts.h"
#include "cli/inspect/print.h"
#include "models/loading/load.h"
#include "models/start/deferred_buckets.h"
#include "models/text/load_text.h"
#include "models/text/model_text.h"
#include "server/protocol/infer.h"

#define NAME_COLUMNS 24

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
        /* The columns stay where they are behind a long name. */
        bool is_long = strlen(tensors[i].name) > NAME_COLUMNS;
        printf("  %-*s%s%-6s %s", NAME_COLUMNS, tensors[i].name,
               is_long ? "\n                           " : " ", dtype_kserve_name(tensors[i].dtype),
               infer_dims_text(dims, &tensors[i]));
        printf("%s%s\n", tensors[i].is_mask ? "  mask" : "",
               tensors[i].is_optional ? "  optional" : "");
    }
}

typedef struct bucket_range {
    const model *m;
    int from, to;
    bool is_deferred; /* only those that are made when traffic wants them */
} bucket_range;

static bool is_in(const bucket_range *r, int i)
{
    return !r->is_deferred || deferred_buckets_state(r->m, i) != DEFERRED_NOT;
}

/* Whether bucket `i` is the first one of its sequence length. */
static bool is_first_of_length(const bucket_range *r, int i)
{
    for (int k = r->from; k < i; k++)
        if (is_in(r, k) && r->m->buckets[k].shape.sequence == r->m->buckets[i].shape.sequence)
            return false;
    return true;
}

/* The batch sizes of one sequence length, as "1, 2, 4 rows". */
static const char *rows_of_length(const bucket_range *r, int64_t sequence, text_buffer *out)
{
    text_buffer_clear(out);
    for (int i = r->from; i < r->to; i++)
        if (is_in(r, i) && r->m->buckets[i].shape.sequence == sequence)
            text_buffer_format(out, "%s%lld", out->bytes > 0 ? ", " : "",
                               (long long)r->m->buckets[i].shape.batch);
    text_buffer_put(out, strcmp(text_buffer_string(out), "1") == 0 ? " row" : " rows");
    return text_buffer_string(out);
}

/* Adds "1, 2 rows of 16, 32 tokens; 1 row of 64 tokens": lengths with the same rows together. */
static void put_buckets(text_buffer *line, const bucket_range *r)
{
    text_buffer rows = {0}, previous = {0};
    for (int i = r->from; i < r->to; i++) {
        int64_t sequence = r->m->buckets[i].shape.sequence;
        if (!is_in(r, i) || !is_first_of_length(r, i))
            continue;
        const char *text = rows_of_length(r, sequence, &rows);
        bool is_same = strcmp(text, text_buffer_string(&previous)) == 0;
        if (!is_same && previous.bytes > 0)
            text_buffer_put(line, " tokens; ");
        if (!is_same)
            text_buffer_put(line, text);
        if (sequence > 0)
            text_buffer_format(line, "%s%lld", is_same ? ", " : " of ", (long long)sequence);
        text_buffer_clear(&previous);
        text_buffer_put(&previous, text);
    }
    if (r->m->buckets[r->from].shape.sequence > 0)
        text_buffer_put(line, " tokens");
    text_buffer_dispose(&rows);
    text_buffer_dispose(&previous);
}

static void print_buckets(const model *m)
{
    text_buffer line = {0};
    int padded = inspect_padded_buckets(m);
    if (padded > 0)
        put_buckets(&line, &(bucket_range){.m = m, .to = padded});
    else
        text_buffer_put(&line, m->graph->is_dynamic ? "none: requests run at shapes of their own"
                               : model_is_whole(m)
                                   ? "none: the model is planned for each shape that requests have"
                               : m->batching.sequence_max == 0
                                   ? "none: requests run one at a time"
                                   : "none: rows run at their own length");
    print_titled("buckets   ", text_buffer_string(&line));
    text_buffer_clear(&line);
    if (m->deferred != NULL) {
        text_buffer_put(&line, "of these, ");
        put_buckets(&line, &(bucket_range){.m = m, .to = padded, .is_deferred = true});
        text_buffer_put(&line, " are made after ready, when traffic wants them: before ready they "
                               "would cost more than limits.start_operations_max allows, or take "
                               "too much memory");
        print_titled("deferred  ", text_buffer_string(&line));
    }
    text_buffer_dispose(&line);
}

static void print_packing(const model *m)
{
    text_buffer line = {0};
    int padded = inspect_padded_buckets(m);
    if (m->packed_encoder == NULL)
        text_buffer_format(&line, "a row holds one sequence: %s", m->packing_note);
    else
        text_buffer_put(&line, "on PJRT devices a row may hold several sequences: ");
    if (m->packed_encoder != NULL && m->bucket_count > padded)
        put_buckets(&line, &(bucket_range){.m = m, .from = padded, .to = m->bucket_count});
    print_titled("packing   ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

/* How the CPU runs the model, the last part of the note; NULL: it does not tell. */
static const char *cpu_note(const model *m)
{
    static const char cpu[] = "; on the CPU: ";
    const char *how = m->batching_note != NULL ? strstr(m->batching_note, cpu) : NULL;
    return how != NULL ? how + strlen(cpu) : NULL;
}

/* Of a plan; an encoder has layers of its own. */
static void print_fusion(const model *m)
{
    const char *how = cpu_note(m);
    if (how != NULL && strncmp(how, "an encoder", strlen("an encoder")) == 0)
        return;
    inspect_fusion fusion = inspect_count_fused(m);
    text_buffer line = {0};
    int all = fusion.fused + fusion.unfused;
    if (all == 0)
        return;
    text_buffer_format(&line,
                       "%d of %d matmuls and convolutions run fused with the operators after them",
                       fusion.fused, all);
    if (fusion.fused_int8 > 0)
        text_buffer_format(&line, ", %d of these in int8", fusion.fused_int8);
    print_titled("fusion    ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

static void print_operators(const model *m, const int counts[GRAPH_OP_COUNT])
{
    text_buffer line = {0};
    for (int op = 0; op < GRAPH_OP_COUNT; op++)
        if (counts[op] > 0)
            text_buffer_format(&line, "%s%d %s", line.bytes ? ", " : "", counts[op],
                               graph_op_title((graph_op)op));
    text_buffer_format(&line, " (%d node%s)", m->graph->node_count,
                       m->graph->node_count == 1 ? "" : "s");
    print_titled("operators ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

static const char *basis_text(model_basis basis)
{
    switch (basis) {
    case MODEL_BASIS_NONE:
        return "";
    case MODEL_BASIS_DECLARED:
        return " (declared in model.json)";
    case MODEL_BASIS_PROVED:
        return " (proved from the graph)";
    case MODEL_BASIS_PROBED:
        return " (found by experiments)";
    case MODEL_BASIS_UNDECIDED:
        return " (not proved otherwise)";
    }
    return "";
}

static void print_batching(const model *m)
{
    const model_batching *b = &m->batching;
    text_buffer line = {0};
    if (model_is_whole(m)) {
        printf("batching  each request runs alone, at its own shape\n");
        return;
    }
    text_buffer_format(&line, "%s%s",
                       b->can_batch ? "rows are independent" : "each request runs alone",
                       basis_text(b->batch_basis));
    if (b->sequence_max > 0 && b->can_batch)
        text_buffer_format(&line, ", rows %s%s",
                           b->can_pad ? "can be padded" : "run at their own length",
                           basis_text(b->pad_basis));
    if (b->can_batch)
        text_buffer_format(&line, "; at most %lld row%s a batch", (long long)b->batch_max,
                           b->batch_max == 1 ? "" : "s");
    if (b->sequence_max >= LOAD_ROW_MAX)
        text_buffer_put(&line, b->can_batch ? "; rows of any length" : ", at its own length (any)");
    else if (b->sequence_max > 0)
        text_buffer_format(&line, "%sat most %lld tokens%s",
                           b->can_batch ? "; rows of " : ", at its own length (",
                           (long long)b->sequence_max, b->can_batch ? "" : ")");
    print_titled("batching  ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

/* The note says how requests may be batched and why, then how the CPU runs them. What the line
 * above says already is left out. */
static void print_note(const model *m)
{
    static const struct {
        const char *note, *text;
    } known[] = {
        {"each request runs alone, at its own shape: ", ""},
        {"each request runs alone: ", ""},
        {"rows influence each other, so each request runs alone: ", "rows influence each other: "},
        {"rows are independent: proved from the graph", "no operator combines rows"},
        {"rows are independent: ", ""},
    };
    const char *note = m->batching_note ? m->batching_note : "", *how = cpu_note(m);
    const char *end = how != NULL ? how - strlen("; on the CPU: ") : note + strlen(note);
    text_buffer line = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(note, known[i].note, strlen(known[i].note)) == 0) {
            note += strlen(known[i].note);
            text_buffer_put(&line, known[i].text);
            break;
        }
    text_buffer_format(&line, "%.*s", (int)(end - note), note);
    if (line.bytes > 0)
        print_titled("why       ", text_buffer_string(&line));
    if (how != NULL)
        print_titled("cpu       ", how);
    text_buffer_dispose(&line);
}

/* What takes text, or why nothing does. */
static void print_text_input(const model *m)
{
    text_buffer line = {0};
    if (m->text == NULL && strcmp(m->text_note, LOAD_TEXT_NO_TOKENS) == 0)
        return; /* a picture, a sound: nobody expects it to */
    if (m->text != NULL)
        text_buffer_format(&line, "taken: %s, at most %lld tokens, %d prompts", m->text->file,
                           (long long)m->text->tokens_max, m->text->prompt_count);
    else
        text_buffer_format(&line, "not taken: %s", m->text_note);
    print_titled("text      ", text_buffer_string(&line));
    text_buffer_dispose(&line);
}

void inspect_print_text(const model *m)
{
    int counts[GRAPH_OP_COUNT];
    inspect_count_operators(m->graph, counts);
    printf("platform  %s\nsource    %s\n", m->platform, m->graph->source ? m->graph->source : "");
    print_tensors("inputs", m->inputs, m->input_count);
    print_tensors("outputs", m->outputs, m->output_count);
    inspect_axes_print(m);
    print_text_input(m);
    print_batching(m);
    print_note(m);
    print_buckets(m);
    if (m->on_device.exported != NULL)
        return;
    if (m->bucket_count > 0 && m->batching.sequence_max > 0)
        print_packing(m);
    if (!model_is_whole(m))
        print_fusion(m);
    print_operators(m, counts);
    printf("loaded in %.1f ms, warm-up %.1f ms\n", (double)m->load_ns / 1e6,
           (double)m->warm_up_ns / 1e6);
}
