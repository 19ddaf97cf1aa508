/* BertNormalizer in one pass. The library cleans, surrounds ideographs, decomposes, drops accents
 * and lowercases one after the other; each character's result keeps the character's span, except
 * where marks that stay are reordered: then the steps run one by one. */
#include <string.h>

#include "text/normalize/edit.h"
#include "text/normalize/normalizer.h"
#include "text/unicode/compose.h"
#include "text/unicode/properties.h"

#define EDIT_BYTES_MAX 160 /* of one character: 32 parts and two spaces */

static void put_lower(const normalizer *n, uint32_t code, span s, aligned_text *to)
{
    if (n->lowers && unicode_properties(code) & UNICODE_LOWERS) {
        if (code == 0x130) {
            aligned_text_put(to, 'i', s);
            aligned_text_put(to, 0x307, s);
            return;
        }
        code = unicode_lowercase(code);
    }
    aligned_text_put(to, code, s);
}

static void put_parts(const normalizer *n, uint32_t code, span s, aligned_text *to)
{
    int32_t parts[UNICODE_PARTS_MAX];
    unsigned count = unicode_decompose(code, false, parts);
    for (unsigned i = 0; i < count; i++) {
        if (!(unicode_properties((uint32_t)parts[i]) & UNICODE_NONSPACING))
            put_lower(n, (uint32_t)parts[i], s, to);
    }
}

/* A character that something happens to. */
static void put_special(const normalizer *n, uint32_t code, unsigned properties, span s,
                        aligned_text *to)
{
    if (n->cleans) {
        bool stays = code == '\t' || code == '\n' || code == '\r';
        if (code == 0 || code == 0xFFFD || (properties & UNICODE_OTHER && !stays))
            return;
        if (properties & UNICODE_SPACE)
            code = ' ';
    }
    bool is_ideograph = n->handles_ideographs && properties & UNICODE_IDEOGRAPH;
    if (is_ideograph)
        aligned_text_put(to, ' ', s);
    if (n->strips_accents)
        put_parts(n, code, s, to);
    else
        put_lower(n, code, s, to);
    if (is_ideograph)
        aligned_text_put(to, ' ', s);
}

/* Marks that stay behind and are sorted: rare scripts. */
static bool reorders(const normalizer *n, const aligned_text *from, size_t begin, size_t end)
{
    if (!n->strips_accents)
        return false;
    for (size_t at = begin; at < end; at += utf8_length(from->data[at])) {
        unsigned p = from->data[at] < 0x80 ? 0 : unicode_properties(utf8_decode(from->data + at));
        if (p & UNICODE_REORDERS && !(p & UNICODE_NONSPACING))
            return true;
    }
    return false;
}

/* The steps, one by one: what follows cleaning and ideographs. */
static void normalize_slowly(const normalizer *n, const aligned_text *from, size_t begin,
                             size_t end, aligned_text *to)
{
    normalizer first = *n;
    aligned_text cleaned = {0}, decomposed = {0};
    first.strips_accents = first.lowers = false;
    normalize_bert(&first, from, begin, end, &cleaned);
    normalize_decompose(&cleaned, 0, cleaned.bytes, false, &decomposed);
    for (size_t at = 0; at < decomposed.bytes; at += utf8_length(decomposed.data[at])) {
        uint32_t code = utf8_decode(decomposed.data + at);
        if (!aligned_text_reserve(to, EDIT_BYTES_MAX))
            break;
        if (!(unicode_properties(code) & UNICODE_NONSPACING))
            put_lower(n, code, decomposed.spans[at], to);
    }
    to->is_broken |= cleaned.is_broken || decomposed.is_broken;
    aligned_text_dispose(&cleaned);
    aligned_text_dispose(&decomposed);
}

void normalize_bert(const normalizer *n, const aligned_text *from, size_t begin, size_t end,
                    aligned_text *to)
{
    unsigned special = (n->cleans ? UNICODE_SPACE | UNICODE_OTHER : 0) |
                       (n->handles_ideographs ? UNICODE_IDEOGRAPH : 0) |
                       (n->strips_accents ? UNICODE_DECOMPOSES | UNICODE_NONSPACING : 0) |
                       (n->lowers ? UNICODE_LOWERS : 0);
    if (reorders(n, from, begin, end)) {
        normalize_slowly(n, from, begin, end, to);
        return;
    }
    if (!aligned_text_reserve(to, end - begin + EDIT_BYTES_MAX))
        return;
    for (size_t at = begin; at < end;) {
        unsigned length = utf8_length(from->data[at]);
        uint32_t code = utf8_decode(from->data + at);
        span s = aligned_text_span(from, at);
        unsigned properties = unicode_properties(code);
        if (to->capacity - to->bytes < EDIT_BYTES_MAX &&
            !aligned_text_reserve(to, end - at + EDIT_BYTES_MAX))
            return;
        if (properties & special || code == 0xFFFD || code == 0)
            put_special(n, code, properties, s, to);
        else
            aligned_text_put(to, code, s);
        at += length;
    }
}
