#include "devices/cpu/encoder/internal.h"
#include "kernels/attention.h"

/* One worker's memory for a chunk. */

static void *place(char *memory, size_t *offset, size_t bytes)
{
    void *at = memory ? memory + *offset : NULL;
    *offset += cpu_encoder_align(bytes);
    return at;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t lay_out(const cpu_encoder *e, size_t tokens, size_t length, void *memory,
                      cpu_encoder_scratch *out)
{
    const encoder *s = &e->source;
    size_t hidden = (size_t)s->hidden, wide = (size_t)s->intermediate, offset = 0;
    size_t attended = larger(cpu_encoder_attended_width(s), hidden);
    size_t widest = larger(cpu_encoder_qkv_width(s), cpu_encoder_up_width(s));
    widest = larger(larger(widest, hidden), (size_t)s->word_table->dims[1]);
    size_t pooled = larger(larger(e->head_width_max, e->pooled_width_max), hidden);
    size_t f = sizeof(float);
    out->x = place(memory, &offset, tokens * hidden * f);
    out->normed = s->is_pre_norm ? place(memory, &offset, tokens * hidden * f) : out->x;
    out->qkv = place(memory, &offset, tokens * widest * f);
    out->projected = out->up = out->qkv;
    out->attended = out->down = place(memory, &offset, tokens * attended * f);
    out->a = place(memory, &offset, tokens * attended * sizeof(int16_t));
    out->a_up = place(memory, &offset, tokens * wide * sizeof(int16_t));
    out->a_scale = place(memory, &offset, tokens * f);
    out->a_zero = place(memory, &offset, tokens * sizeof(int32_t));
    out->low = place(memory, &offset, tokens * f);
    out->high = place(memory, &offset, tokens * f);
    for (int i = 0; i < 2; i++)
        out->pooled[i] = place(memory, &offset, tokens * pooled * f);
    for (int i = 0; i < 3; i++)
        out->ids[i] = place(memory, &offset, tokens * sizeof(int64_t));
    out->mask = place(memory, &offset, tokens);
    out->offsets = place(memory, &offset, (tokens + 1) * sizeof(int32_t));
    out->attention =
        place(memory, &offset, attention_f32_workspace_bytes(length, (size_t)s->head_dim));
    out->distances = place(memory, &offset, cpu_encoder_distances_count(s, length) * sizeof(float));
    return offset;
}

static size_t tokens_for(size_t length)
{
    return length > CPU_ENCODER_CHUNK_TOKENS_MAX ? length : CPU_ENCODER_CHUNK_TOKENS_MAX;
}

size_t cpu_encoder_workspace_bytes(const cpu_encoder *e, size_t length)
{
    cpu_encoder_scratch ignored;
    return lay_out(e, tokens_for(length), length, NULL, &ignored);
}

void cpu_encoder_find_scratch(const cpu_encoder *e, const cpu_encoder_runner *r, int worker,
                              cpu_encoder_scratch *out)
{
    size_t length = r->workspace_length;
    lay_out(e, tokens_for(length), length, r->workspaces[worker], out);
}
