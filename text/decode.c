/* Tokens to text. */
#include <assert.h>
#include <string.h>

#include "text/aligned/grow.h"
#include "text/scratch.h"

#define DECODED_BYTES_MAX (256u << 20)

/* The text that the decoders get for a token; NULL: left out. */
static const char *find_text(const tokenizer *t, uint32_t id, bool skips_special, size_t *bytes)
{
    const added_token *a = added_tokens_find(&t->added, id);
    if (a == NULL)
        return (const char *)vocabulary_token(&t->model.vocabulary, id, bytes);
    /* The library compares what it looks for with the contents of special tokens. */
    bool is_same = a->looked_for_bytes == a->content_bytes &&
                   memcmp(a->looked_for, a->content, a->content_bytes) == 0;
    if (skips_special && a->special && is_same)
        return NULL;
    *bytes = a->looked_for_bytes;
    return a->looked_for;
}

static void join(const tokenizer *t, const token_texts *texts, text_buffer *out)
{
    size_t begin = 0;
    for (size_t i = 0; i < texts->count; i++) {
        if (i > 0 && !t->has_decoder)
            text_buffer_append(out, " ", 1);
        if (texts->ends[i] > begin)
            text_buffer_append(out, texts->data + begin, texts->ends[i] - begin);
        begin = texts->ends[i];
    }
}

status tokenizer_decode(const tokenizer *t, const uint32_t *ids, size_t count,
                        bool skips_special_tokens, text_buffer *out)
{
    token_texts texts = {0}, next = {0};
    status s = STATUS_OK;
    assert(ids != NULL || count == 0);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = 0;
        const char *text = find_text(t, ids[i], skips_special_tokens, &bytes);
        if (text != NULL) {
            token_texts_append(&texts, text, bytes);
            token_texts_end(&texts);
        }
    }
    for (size_t i = 0; i < t->decoder_count && !s; i++) {
        token_texts_clear(&next);
        s = decoder_apply(t->decoders + i, &texts, &next);
        if (!s && next.bytes > DECODED_BYTES_MAX)
            s = status_fail(STATUS_TOO_LARGE, "the text of the tokens is too long");
        token_texts swapped = texts;
        texts = next;
        next = swapped;
    }
    if (!s && texts.is_broken)
        s = grow_fail();
    if (!s)
        join(t, &texts, out);
    token_texts_dispose(&texts);
    token_texts_dispose(&next);
    return s;
}
