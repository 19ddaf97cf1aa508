/* From the tokens of one or two texts to the result: truncation, spans without spaces, special
 * tokens. */
#include <assert.h>

#include "text/aligned/grow.h"
#include "text/scratch.h"

static void shorten(sequence_tokens *q, size_t count, bool truncates_left)
{
    assert(count <= q->count);
    if (truncates_left)
        q->first += q->count - count;
    q->count = count;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Both lengths, where the longer text is cut first; then both have half. */
static void divide(size_t *n1, size_t *n2, size_t room)
{
    bool is_swapped = *n1 > *n2;
    size_t shorter = is_swapped ? *n2 : *n1, longer;
    longer = shorter > room ? shorter : room - shorter > shorter ? room - shorter : shorter;
    if (shorter + longer > room) {
        shorter = room / 2;
        longer = shorter + room % 2;
    }
    *n1 = is_swapped ? longer : shorter;
    *n2 = is_swapped ? shorter : longer;
}

/* truncate_encodings() of the library: `room` is for the texts' own tokens. */
static status truncate_to(tokenizer_scratch *s, bool is_pair, size_t room,
                          const tokenizer_options *o)
{
    sequence_tokens *first = s->sequences, *second = s->sequences + 1;
    size_t n1 = first->count, n2 = is_pair ? second->count : 0;
    if (room == 0)
        n1 = n2 = 0;
    else if (n1 + n2 <= room)
        return STATUS_OK;
    else if (o->strategy == TOKENIZER_LONGEST_FIRST && is_pair)
        divide(&n1, &n2, room);
    else if (o->strategy == TOKENIZER_LONGEST_FIRST)
        n1 = room;
    else {
        size_t *target = o->strategy == TOKENIZER_ONLY_FIRST ? &n1 : &n2;
        size_t removed = n1 + n2 - room;
        if (o->strategy == TOKENIZER_ONLY_SECOND && !is_pair)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "there is no second text that could be truncated");
        if (*target <= removed)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "the text that may be truncated is too short: %zu tokens, of which "
                               "%zu would have to go",
                               *target, removed);
        *target -= removed;
    }
    shorten(first, smaller(n1, first->count), o->truncates_left);
    if (is_pair)
        shorten(second, smaller(n2, second->count), o->truncates_left);
    return STATUS_OK;
}

/* process_offsets() of the library. */
static void trim_spans(const processor *p, sequence_tokens *q)
{
    for (size_t i = 0; i < q->count; i++) {
        tokenizer_span *place = q->spans + q->first + i;
        uint32_t front = q->spaces[q->first + i] >> 16, back = q->spaces[q->first + i] & 0xFFFF;
        if (front > 0) {
            bool is_first = i == 0 || place->begin == 0;
            if (is_first && p->adds_prefix_space && front == 1)
                front = 0;
            uint32_t begin = place->begin + front;
            place->begin = begin < place->end ? begin : place->end;
        }
        if (back > 0 && place->end >= back) {
            uint32_t end = place->end - back;
            place->end = end > place->begin ? end : place->begin;
        }
    }
}

static status reserve(tokenizer_scratch *s, size_t more)
{
    if (s->capacity - s->count >= more)
        return STATUS_OK;
    size_t capacity = grow_capacity(s->capacity, s->count + more);
    if (!grow(&s->ids, capacity, sizeof *s->ids) ||
        !grow(&s->type_ids, capacity, sizeof *s->type_ids) ||
        !grow(&s->spans, capacity, sizeof *s->spans) || !grow(&s->sequence_of, capacity, 1))
        return grow_fail();
    s->capacity = capacity;
    return STATUS_OK;
}

static status add_sequence(tokenizer_scratch *s, int index, uint32_t type_id)
{
    const sequence_tokens *q = s->sequences + index;
    status failed = reserve(s, q->count);
    if (failed)
        return failed;
    for (size_t i = 0; i < q->count; i++) {
        s->ids[s->count] = q->ids[q->first + i];
        s->type_ids[s->count] = type_id;
        s->spans[s->count] = q->spans[q->first + i];
        s->sequence_of[s->count++] = (uint8_t)index;
    }
    return STATUS_OK;
}

static status add_special(tokenizer_scratch *s, const processor *p, template_part part)
{
    status failed = reserve(s, part.id_count);
    if (failed)
        return failed;
    for (size_t i = 0; i < part.id_count; i++) {
        s->ids[s->count] = p->ids[part.first_id + i];
        s->type_ids[s->count] = part.type_id;
        s->spans[s->count] = (tokenizer_span){0, 0};
        s->sequence_of[s->count++] = TOKENIZER_NO_SEQUENCE;
    }
    return STATUS_OK;
}

static status fill(const tokenizer *t, tokenizer_scratch *s, bool is_pair, bool adds_special)
{
    const processor *p = &t->processor;
    const template *parts = is_pair ? &p->pair : &p->single;
    s->count = 0;
    status failed = reserve(s, 1); /* arrays are never NULL */
    if (!p->has_templates) {
        if (!failed)
            failed = add_sequence(s, 0, 0);
        return failed || !is_pair ? failed : add_sequence(s, 1, 1);
    }
    for (size_t i = 0; i < parts->part_count && !failed; i++) {
        template_part part = parts->parts[i];
        if (part.is_sequence)
            failed = add_sequence(s, part.sequence, part.type_id);
        else if (adds_special)
            failed = add_special(s, p, part);
    }
    return failed;
}

status text_assemble(const tokenizer *t, tokenizer_scratch *s, bool is_pair,
                     const tokenizer_options *options, tokenizer_tokens *out)
{
    const processor *p = &t->processor;
    size_t special = options->omits_special_tokens ? 0 : tokenizer_special_count(t, is_pair);
    size_t before = s->sequences[0].count + (is_pair ? s->sequences[1].count : 0);
    if (options->tokens_max != 0) {
        if (options->tokens_max < special)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "%zu tokens have no room for %zu special tokens",
                               options->tokens_max, special);
        status failed = truncate_to(s, is_pair, options->tokens_max - special, options);
        if (failed)
            return failed;
    }
    size_t after = s->sequences[0].count + (is_pair ? s->sequences[1].count : 0);
    for (int i = 0; i <= is_pair && p->trims_spans; i++)
        trim_spans(p, s->sequences + i);
    status failed = fill(t, s, is_pair, !options->omits_special_tokens);
    if (failed)
        return failed;
    *out = (tokenizer_tokens){.count = s->count,
                              .ids = s->ids,
                              .type_ids = s->type_ids,
                              .spans = s->spans,
                              .sequences = s->sequence_of,
                              .is_truncated = after < before || s->sequences[0].is_cut ||
                                              (is_pair && s->sequences[1].is_cut)};
    return STATUS_OK;
}
