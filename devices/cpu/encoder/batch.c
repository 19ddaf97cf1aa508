#include <assert.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"

/* Splits a batch of segments into sequences, and those into chunks: whole sequences, of as many
 * tokens as keep a core's caches busy and no more. */

/* Tokens of a chunk when there are many. Each chunk reads all weights, so AMX, whose GEMMs are
 * fast, wants longer chunks; elsewhere the activations of a layer should stay in L2 beside them. */
#define CHUNK_TOKENS 96
#define CHUNK_TOKENS_AMX 128
#define SHARE_TOKENS 32 /* with fewer for each core, the cores share one chunk instead */

static int64_t read_integer(const tensor *t, size_t i)
{
    switch (t->dtype) {
    case DTYPE_I64:
        return ((const int64_t *)t->data)[i];
    case DTYPE_I32:
        return ((const int32_t *)t->data)[i];
    default:
        return tensor_get_integer(t, (int64_t)i);
    }
}

static bool is_real(const tensor *mask, size_t i)
{
    switch (mask->dtype) {
    case DTYPE_I64:
        return ((const int64_t *)mask->data)[i] != 0;
    case DTYPE_I32:
        return ((const int32_t *)mask->data)[i] != 0;
    default:
        return tensor_get_number(mask, (int64_t)i) != 0;
    }
}

static status read_ids(const cpu_encoder_pass *p, int input, const tensor *table, size_t first,
                       const cpu_encoder_sequence *s, int64_t *out)
{
    const graph *g = p->e->options.graph;
    const tensor *t = &s->segment->inputs[input];
    size_t at = (size_t)s->row * (size_t)s->segment->length;
    for (size_t i = 0; i < s->length; i++) {
        int64_t id = read_integer(t, at + i);
        if (id < 0 || id >= table->dims[0])
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "input \"%s\": %lld at row %lld, position %zu; ids are 0 to %lld",
                               g->values[g->inputs[input]].name, (long long)id, (long long)s->row,
                               i, (long long)table->dims[0] - 1);
        out[first + i] = id;
    }
    return STATUS_OK;
}

static void count_positions(const encoder *s, const int64_t *words, size_t length, int64_t *out)
{
    if (s->positions != ENCODER_POSITIONS_FROM_IDS) {
        for (size_t i = 0; i < length; i++)
            out[i] = (int64_t)i + s->position_offset;
        return;
    }
    int64_t next = s->pad_id + 1;
    for (size_t i = 0; i < length; i++)
        out[i] = words[i] == s->pad_id ? s->pad_id : next++;
}

status cpu_encoder_read_inputs(cpu_encoder_pass *p)
{
    const encoder *e = &p->e->source;
    cpu_encoder_scratch *scratch = &p->scratch;
    size_t first = 0;
    p->has_mask = false;
    for (size_t i = 0; i < p->sequence_count; i++) {
        const cpu_encoder_sequence *s = &p->sequences[i];
        scratch->offsets[i] = (int32_t)first;
        status failure = read_ids(p, e->ids_input, e->word_table, first, s, scratch->ids[0]);
        if (failure)
            return failure;
        count_positions(e, scratch->ids[0] + first, s->length, scratch->ids[1] + first);
        if (e->token_type_table && e->token_type_input >= 0)
            failure =
                read_ids(p, e->token_type_input, e->token_type_table, first, s, scratch->ids[2]);
        else
            memset(scratch->ids[2] + first, 0, s->length * sizeof(int64_t));
        if (failure)
            return failure;
        memset(scratch->mask + first, 1, s->length);
        if (e->mask_input >= 0) {
            const tensor *mask = &s->segment->inputs[e->mask_input];
            size_t at = (size_t)s->row * (size_t)s->segment->length;
            for (size_t k = 0; k < s->length; k++) {
                bool real = is_real(mask, at + k);
                bool is_prompt =
                    real && e->excludes_prompt && tensor_get_number(mask, (int64_t)(at + k)) == 2;
                scratch->mask[first + k] = is_prompt ? 2 : real;
                p->has_mask |= !real;
            }
        }
        first += s->length;
    }
    scratch->offsets[p->sequence_count] = (int32_t)first;
    assert(first == p->tokens);
    return STATUS_OK;
}

/* No other token and no pooling reads the masked tokens at the end of a row: they need not be
 * computed. A row whose tokens are all masked is computed whole. */
static size_t real_length(const cpu_encoder *e, const device_segment *segment, int64_t row)
{
    size_t length = (size_t)segment->length, at = (size_t)row * length, end = length;
    if (e->source.mask_input < 0 || e->has_hidden)
        return length;
    const tensor *mask = &segment->inputs[e->source.mask_input];
    while (end > 0 && !is_real(mask, at + end - 1))
        end--;
    return end > 0 ? end : length;
}

static size_t cut(const cpu_encoder_layout *l, size_t count, size_t target,
                  cpu_encoder_chunk *chunks, size_t *largest)
{
    size_t chunk_count = 0;
    *largest = 0;
    for (size_t i = 0; i < count;) {
        cpu_encoder_chunk c = {.first = i};
        do
            c.tokens += l->sequences[i++].length;
        while (i < count && c.tokens + l->sequences[i].length / 2 <= target &&
               c.tokens + l->sequences[i].length <= CPU_ENCODER_CHUNK_TOKENS_MAX);
        c.count = i - c.first;
        *largest = c.tokens > *largest ? c.tokens : *largest;
        chunks[chunk_count++] = c;
    }
    return chunk_count;
}

typedef struct batch {
    const cpu_encoder *e;
    const cpu_encoder_runner *runner;
    bool is_split;
    /* The first failure and its message; the caller's thread reads them. One writer. */
    _Atomic int failure;
    char message[STATUS_MESSAGE_BYTES_MAX];
} batch;

static void run_chunk(void *context, int worker, size_t unit)
{
    batch *b = context;
    const cpu_encoder_chunk *c = &b->runner->layout->chunks[unit];
    cpu_encoder_pass p = {.e = b->e,
                          .runner = b->runner,
                          .worker = worker,
                          .sequences = &b->runner->layout->sequences[c->first],
                          .sequence_count = c->count,
                          .tokens = c->tokens,
                          .is_split = b->is_split};
    cpu_encoder_find_scratch(b->e, b->runner, worker, &p.scratch);
    status s = cpu_encoder_read_inputs(&p);
    int none = STATUS_OK;
    if (s) {
        if (atomic_compare_exchange_strong(&b->failure, &none, (int)s))
            memcpy(b->message, status_message(), strlen(status_message()) + 1);
        return;
    }
    cpu_encoder_run_layers(&p);
    cpu_encoder_write_outputs(&p);
}

/* Chunks for `cores`: true when they share each chunk, false when each takes its own. */
static bool plan_chunks(cpu_encoder_layout *l, kernels_level level, size_t count, size_t tokens,
                        size_t cores, size_t *chunk_count)
{
    size_t aim = level >= KERNELS_AMX ? CHUNK_TOKENS_AMX : CHUNK_TOKENS;
    size_t largest, rounds = (tokens + aim * cores - 1) / (aim * cores);
    size_t target = (tokens + rounds * cores - 1) / (rounds * cores);
    if (cores > 1 && count >= cores && tokens >= cores * SHARE_TOKENS) {
        *chunk_count = cut(l, count, target, l->chunks, &largest);
        /* Unless one chunk is a large part of the work. */
        if (*chunk_count >= cores && largest * cores <= tokens + tokens / 4)
            return false;
    }
    *chunk_count =
        cut(l, count, cores > 1 ? CPU_ENCODER_CHUNK_TOKENS_MAX : target, l->chunks, &largest);
    return cores > 1;
}

/* Runs the `count` sequences of the layout, at most CPU_ENCODER_SEQUENCES_MAX. */
static status run_sequences(const cpu_encoder *e, const cpu_encoder_runner *r, int idle_cores,
                            size_t count, size_t tokens)
{
    batch b = {.e = e, .runner = r};
    size_t chunk_count, cores = r->threads ? (size_t)idle_cores + 1 : 1;
    b.is_split =
        plan_chunks(r->layout, e->options.kernels->level, count, tokens, cores, &chunk_count);
    if (cores > 1) {
        size_t useful = b.is_split ? cores : chunk_count;
        thread_pool_call_helpers(r->threads, r->caller, (int)(useful < cores ? useful : cores) - 1);
    }
    if (cores > 1 && !b.is_split)
        thread_pool_run(r->threads, r->caller, run_chunk, &b, chunk_count);
    else
        for (size_t i = 0; i < chunk_count; i++)
            run_chunk(&b, r->caller, i);
    status failure = (status)atomic_load(&b.failure);
    return failure ? status_fail(failure, "%s", b.message) : STATUS_OK;
}

static status check_segment(const cpu_encoder *e, const cpu_encoder_runner *r,
                            const device_segment *s)
{
    const graph *g = e->options.graph;
    size_t limit = e->length_max < r->workspace_length ? e->length_max : r->workspace_length;
    if (s->length < 1 || (size_t)s->length > limit)
        return status_fail(
            STATUS_INVALID_ARGUMENT, "input \"%s\": rows of %lld tokens; the model takes 1 to %zu",
            g->values[g->inputs[e->source.ids_input]].name, (long long)s->length, limit);
    const int inputs[] = {e->source.ids_input, e->source.mask_input, e->source.token_type_input};
    for (int i = 0; i < 3; i++) {
        const tensor *t = inputs[i] >= 0 ? &s->inputs[inputs[i]] : NULL;
        if (t && (t->rank != 2 || t->dims[0] != s->rows || t->dims[1] != s->length))
            return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" is not [%lld,%lld]",
                               g->values[g->inputs[inputs[i]]].name, (long long)s->rows,
                               (long long)s->length);
    }
    return STATUS_OK;
}

double cpu_encoder_operations(const cpu_encoder *e, double length)
{
    const encoder *s = &e->source;
    double hidden = (double)s->hidden, wide = (double)s->intermediate;
    double qkv = (double)cpu_encoder_qkv_width(s), up = (double)cpu_encoder_up_width(s);
    double attended = (double)cpu_encoder_attended_width(s);
    return s->layer_count * length *
           (2 * hidden * (qkv + attended + up + wide) + 4 * length * attended);
}

status cpu_encoder_run(const cpu_encoder *e, const cpu_encoder_runner *r, int idle_cores,
                       const device_segment *segments, int segment_count, double *operations)
{
    cpu_encoder_layout *l = r->layout;
    size_t count = 0, tokens = 0;
    *operations = 0;
    for (int i = 0; i < segment_count; i++) {
        status s = check_segment(e, r, &segments[i]);
        if (s)
            return s;
        for (int64_t row = 0; row < segments[i].rows; row++) {
            if (count == CPU_ENCODER_SEQUENCES_MAX) {
                s = run_sequences(e, r, idle_cores, count, tokens);
                if (s)
                    return s;
                count = tokens = 0;
            }
            size_t length = real_length(e, &segments[i], row);
            l->sequences[count++] = (cpu_encoder_sequence){&segments[i], row, length};
            tokens += length;
            *operations += cpu_encoder_operations(e, (double)length);
        }
    }
    return count > 0 ? run_sequences(e, r, idle_cores, count, tokens) : STATUS_OK;
}
