/* Normalisers, pre-tokenizers and decoders. */
#include <stdlib.h>
#include <string.h>

#include "text/load/base64.h"
#include "text/load/fields.h"
#include "text/load/load.h"
#include "text/unicode/properties.h"

#define NORMALIZERS                                                                                \
    "BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace, Prepend, "     \
    "Precompiled, Nmt, ByteLevel, Sequence"
#define SPLITTERS                                                                                  \
    "BertPreTokenizer, Whitespace, WhitespaceSplit, ByteLevel, Metaspace, Split, Punctuation, "    \
    "Digits, CharDelimiterSplit, FixedLength, Sequence"
#define CONTENT_BYTES_MAX 1024 /* of what replaces or is prepended */
#define DECODERS                                                                                   \
    "WordPiece, ByteLevel, Metaspace, BPEDecoder, ByteFallback, Fuse, Replace, Strip, CTC, "       \
    "Sequence"

static status too_many(const char *what)
{
    return status_fail(STATUS_TOO_LARGE, "more than %d %s", TOKENIZER_STEPS_MAX, what);
}

static status too_long_content(size_t bytes)
{
    return status_fail(STATUS_TOO_LARGE, "a text of %zu bytes to insert; at most %d are supported",
                       bytes, CONTENT_BYTES_MAX);
}

/* Of "pattern": {"String": ...} or {"Regex": ...}. */
static status load_pattern(const json_t *component, pattern **out)
{
    const json_t *object = NULL;
    status s = field_required(component, "pattern", JSON_OBJECT, &object);
    if (s)
        return s;
    const json_t *text = json_object_get(object, "String");
    const json_t *expression = json_object_get(object, "Regex");
    const json_t *chosen = text ? text : expression;
    if (!json_is_string(chosen))
        return status_fail(STATUS_CORRUPT, "\"pattern\": expected \"String\" or \"Regex\"");
    s = pattern_create(json_string_value(chosen), json_string_length(chosen), text == NULL, out);
    return s ? status_prefix(s, "\"pattern\"") : STATUS_OK;
}

static status read_bert(const json_t *c, normalizer *n)
{
    n->cleans = n->handles_ideographs = n->lowers = true;
    status s = field_bool(c, "clean_text", &n->cleans);
    if (!s)
        s = field_bool(c, "handle_chinese_chars", &n->handles_ideographs);
    if (!s)
        s = field_bool(c, "lowercase", &n->lowers);
    n->strips_accents = n->lowers;
    return s ? s : field_bool(c, "strip_accents", &n->strips_accents);
}

static status read_charsmap(const json_t *c, normalizer *n)
{
    const json_t *text = NULL;
    uint8_t *data = NULL;
    size_t bytes = 0;
    status s = field_required(c, "precompiled_charsmap", JSON_STRING, &text);
    if (!s)
        s = text_base64_decode(json_string_value(text), json_string_length(text), &data, &bytes);
    if (!s)
        s = charsmap_create(data, bytes, &n->charsmap);
    free(data);
    return s ? s : field_bool(c, "takes_longest", &n->takes_longest);
}

static const struct {
    const char *type;
    normalizer_kind kind;
} normalizer_types[] = {{"BertNormalizer", NORMALIZER_BERT},
                        {"NFC", NORMALIZER_NFC},
                        {"NFD", NORMALIZER_NFD},
                        {"NFKC", NORMALIZER_NFKC},
                        {"NFKD", NORMALIZER_NFKD},
                        {"Lowercase", NORMALIZER_LOWERCASE},
                        {"Strip", NORMALIZER_STRIP},
                        {"StripAccents", NORMALIZER_STRIP_ACCENTS},
                        {"Replace", NORMALIZER_REPLACE},
                        {"Prepend", NORMALIZER_PREPEND},
                        {"Precompiled", NORMALIZER_CHARSMAP},
                        {"Nmt", NORMALIZER_NMT},
                        {"ByteLevel", NORMALIZER_BYTE_LEVEL}};

static status read_normalizer_fields(const json_t *c, normalizer *n)
{
    status s = STATUS_OK;
    switch (n->kind) {
    case NORMALIZER_BERT:
        return read_bert(c, n);
    case NORMALIZER_STRIP:
        s = field_bool(c, "strip_left", &n->strips_left);
        return s ? s : field_bool(c, "strip_right", &n->strips_right);
    case NORMALIZER_REPLACE:
        s = load_pattern(c, &n->pattern);
        return s ? s : field_text(c, "content", &n->content, &n->content_bytes);
    case NORMALIZER_PREPEND:
        return field_text(c, "prepend", &n->content, &n->content_bytes);
    case NORMALIZER_CHARSMAP:
        return read_charsmap(c, n);
    default:
        return STATUS_OK;
    }
}

static status read_normalizer(const json_t *c, const char *type, void *context)
{
    struct tokenizer *t = context;
    for (size_t i = 0; i < sizeof normalizer_types / sizeof *normalizer_types; i++) {
        if (strcmp(type, normalizer_types[i].type) != 0)
            continue;
        if (t->normalizer_count == TOKENIZER_STEPS_MAX)
            return too_many("normalizers");
        normalizer *n = t->normalizers + t->normalizer_count++;
        n->kind = normalizer_types[i].kind;
        status s = read_normalizer_fields(c, n);
        return s || n->content_bytes <= CONTENT_BYTES_MAX ? s : too_long_content(n->content_bytes);
    }
    return field_unknown_type("normalizer", type, NORMALIZERS);
}

status text_load_normalizers(const json_t *file, struct tokenizer *t)
{
    const json_t *c = json_object_get(file, "normalizer");
    status s = field_is_there(c) ? field_each(c, "normalizers", read_normalizer, t) : STATUS_OK;
    if (s)
        return status_prefix(s, "\"normalizer\"");
    normalizer_ascii_table(t->normalizers, t->normalizer_count, t->ascii);
    return STATUS_OK;
}

static status read_behavior(const json_t *c, split_behavior *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const json_t *value = json_object_get(c, "behavior");
    if (!field_is_there(value))
        return STATUS_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), names[i]) == 0) {
            *out = (split_behavior)i;
            return STATUS_OK;
        }
    }
    return status_fail(STATUS_CORRUPT, "\"behavior\": expected Removed, Isolated, "
                                       "MergedWithPrevious, MergedWithNext or Contiguous");
}

static status read_byte_level(const json_t *c, splitter *p)
{
    p->adds_prefix_space = p->uses_expression = true;
    status s = field_bool(c, "add_prefix_space", &p->adds_prefix_space);
    return s ? s : field_bool(c, "use_regex", &p->uses_expression);
}

/* add_prefix_space is the field's older form. */
static status read_prepend(const json_t *c, split_prepend *out)
{
    static const char *const names[] = {"always", "first", "never"};
    const json_t *value = json_object_get(c, "prepend_scheme");
    bool adds = true;
    int scheme = SPLIT_PREPEND_ALWAYS;
    status s = field_bool(c, "add_prefix_space", &adds);
    if (s)
        return s;
    if (field_is_there(value)) {
        const char *name = json_string_value(value);
        for (scheme = 0; scheme < 3; scheme++) {
            if (name != NULL && strcmp(name, names[scheme]) == 0)
                break;
        }
        if (scheme == 3)
            return status_fail(STATUS_CORRUPT,
                               "\"prepend_scheme\": expected always, first or never");
    }
    *out = adds ? (split_prepend)scheme : SPLIT_PREPEND_NEVER;
    return STATUS_OK;
}

static status read_metaspace(const json_t *c, splitter *p)
{
    p->character = 0x2581;
    p->splits = true;
    status s = field_character(c, "replacement", &p->character);
    if (!s)
        s = read_prepend(c, &p->prepend);
    return s ? s : field_bool(c, "split", &p->splits);
}

static status read_split(const json_t *c, splitter *p)
{
    status s = load_pattern(c, &p->pattern);
    if (!s)
        s = read_behavior(c, &p->behavior);
    return s ? s : field_bool(c, "invert", &p->is_inverted);
}

static status read_digits(const json_t *c, splitter *p)
{
    bool is_individual = false;
    p->properties = UNICODE_NUMERIC;
    status s = field_bool(c, "individual_digits", &is_individual);
    p->behavior = is_individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    return s;
}

static status read_fixed_length(const json_t *c, splitter *p)
{
    p->length_characters = 5;
    status s = field_size(c, "length", &p->length_characters);
    if (!s && p->length_characters == 0)
        return status_fail(STATUS_CORRUPT, "\"length\": expected at least 1");
    return s;
}

static status read_splitter_fields(const json_t *c, const char *type, splitter *p)
{
    p->kind = SPLITTER_PROPERTY;
    p->behavior = SPLIT_REMOVED;
    if (strcmp(type, "BertPreTokenizer") == 0) {
        p->kind = SPLITTER_BERT;
    } else if (strcmp(type, "Whitespace") == 0) {
        p->kind = SPLITTER_WHITESPACE;
    } else if (strcmp(type, "WhitespaceSplit") == 0) {
        p->properties = UNICODE_SPACE;
    } else if (strcmp(type, "ByteLevel") == 0) {
        p->kind = SPLITTER_BYTE_LEVEL;
        return read_byte_level(c, p);
    } else if (strcmp(type, "Metaspace") == 0) {
        p->kind = SPLITTER_METASPACE;
        return read_metaspace(c, p);
    } else if (strcmp(type, "Split") == 0) {
        p->kind = SPLITTER_PATTERN;
        return read_split(c, p);
    } else if (strcmp(type, "Punctuation") == 0) {
        p->properties = UNICODE_PUNCTUATION;
        p->behavior = SPLIT_ISOLATED;
        return read_behavior(c, &p->behavior);
    } else if (strcmp(type, "Digits") == 0) {
        return read_digits(c, p);
    } else if (strcmp(type, "CharDelimiterSplit") == 0) {
        p->kind = SPLITTER_CHARACTER;
        return field_character(c, "delimiter", &p->character);
    } else if (strcmp(type, "FixedLength") == 0) {
        p->kind = SPLITTER_FIXED_LENGTH;
        return read_fixed_length(c, p);
    } else {
        return field_unknown_type("pre-tokenizer", type, SPLITTERS);
    }
    return STATUS_OK;
}

static status read_splitter(const json_t *c, const char *type, void *context)
{
    struct tokenizer *t = context;
    if (t->splitter_count == TOKENIZER_STEPS_MAX)
        return too_many("pre-tokenizers");
    return read_splitter_fields(c, type, t->splitters + t->splitter_count++);
}

status text_load_splitters(const json_t *file, struct tokenizer *t)
{
    const json_t *c = json_object_get(file, "pre_tokenizer");
    status s = field_is_there(c) ? field_each(c, "pretokenizers", read_splitter, t) : STATUS_OK;
    return s ? status_prefix(s, "\"pre_tokenizer\"") : STATUS_OK;
}

static status read_ctc(const json_t *c, decoder *d)
{
    d->kind = DECODER_CTC;
    d->cleans_up = true;
    status s = field_text(c, "pad_token", &d->text, &d->text_bytes);
    if (!s)
        s = field_text(c, "word_delimiter_token", &d->delimiter, &d->delimiter_bytes);
    return s ? s : field_bool(c, "cleanup", &d->cleans_up);
}

static status read_strip(const json_t *c, decoder *d)
{
    d->kind = DECODER_STRIP;
    d->character = ' ';
    status s = field_character(c, "content", &d->character);
    if (!s)
        s = field_size(c, "start", &d->start);
    return s ? s : field_size(c, "stop", &d->stop);
}

static status read_metaspace_decoder(const json_t *c, decoder *d)
{
    split_prepend prepend = SPLIT_PREPEND_ALWAYS;
    d->kind = DECODER_METASPACE;
    d->character = 0x2581;
    status s = field_character(c, "replacement", &d->character);
    if (!s)
        s = read_prepend(c, &prepend);
    d->keeps_first = prepend == SPLIT_PREPEND_NEVER;
    return s;
}

static status read_decoder_fields(const json_t *c, const char *type, decoder *d)
{
    if (strcmp(type, "WordPiece") == 0) {
        d->kind = DECODER_WORDPIECE;
        d->cleans_up = true;
        status s = field_text(c, "prefix", &d->text, &d->text_bytes);
        return s ? s : field_bool(c, "cleanup", &d->cleans_up);
    }
    if (strcmp(type, "BPEDecoder") == 0) {
        d->kind = DECODER_BPE;
        return field_text(c, "suffix", &d->text, &d->text_bytes);
    }
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace_decoder(c, d);
    if (strcmp(type, "CTC") == 0)
        return read_ctc(c, d);
    if (strcmp(type, "Strip") == 0)
        return read_strip(c, d);
    if (strcmp(type, "Replace") == 0) {
        d->kind = DECODER_REPLACE;
        status s = load_pattern(c, &d->pattern);
        return s ? s : field_text(c, "content", &d->text, &d->text_bytes);
    }
    if (strcmp(type, "ByteLevel") == 0)
        d->kind = DECODER_BYTE_LEVEL;
    else if (strcmp(type, "ByteFallback") == 0)
        d->kind = DECODER_BYTE_FALLBACK;
    else if (strcmp(type, "Fuse") == 0)
        d->kind = DECODER_FUSE;
    else
        return field_unknown_type("decoder", type, DECODERS);
    return STATUS_OK;
}

static status read_decoder(const json_t *c, const char *type, void *context)
{
    struct tokenizer *t = context;
    if (t->decoder_count == TOKENIZER_STEPS_MAX)
        return too_many("decoders");
    decoder *d = t->decoders + t->decoder_count++;
    status s = read_decoder_fields(c, type, d);
    if (!s && d->text == NULL)
        s = field_copy("", 0, &d->text);
    if (!s && d->text_bytes > CONTENT_BYTES_MAX)
        return too_long_content(d->text_bytes);
    return s || d->delimiter != NULL ? s : field_copy("", 0, &d->delimiter);
}

status text_load_decoders(const json_t *file, struct tokenizer *t)
{
    const json_t *c = json_object_get(file, "decoder");
    t->has_decoder = field_is_there(c);
    status s = t->has_decoder ? field_each(c, "decoders", read_decoder, t) : STATUS_OK;
    return s ? status_prefix(s, "\"decoder\"") : STATUS_OK;
}
