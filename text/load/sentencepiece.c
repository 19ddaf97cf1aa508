/* SentencePiece's own file (sentencepiece_model.proto): the pieces with their scores, and how text
 * is normalised. */
#include "text/load/sentencepiece.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/load/base64.h"
#include "text/load/fields.h"
#include "text/load/sentencepiece.pb-c.h"
#include "text/load/sentencepiece_family.h"
#include "text/unicode/utf8.h"
#include "text/vocabulary/vocabulary.h"

const char *const sentencepiece_file_names[] = {"tokenizer.model",     "spiece.model",
                                                "spm.model",           "sentencepiece.bpe.model",
                                                "sentencepiece.model", NULL};

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };
enum { MODEL_TYPE_UNIGRAM = 1, MODEL_TYPE_BPE };

#define NUMBERED_BEHIND_MAX 10000
#define SYMBOLS_MAX 16384       /* control and user-defined ones */
#define USER_DEFINED_MARGIN 0.1 /* below as many of the best pieces as it has characters */

typedef struct conversion {
    const Sentencepiece__Model *model;
    Sentencepiece__TrainerSpec trainer; /* the file's, or defaults */
    Sentencepiece__NormalizerSpec normalizer;
    family family;
    const special_files *files;
    family_frame frame;
    double best_score; /* of normal pieces */
    json_t *ids;       /* {"token": id}; owned */
    json_t *scores;    /* [["token", score], ...]; owned */
    json_t *added;     /* owned */
} conversion;

static status check_pieces(conversion *c)
{
    size_t count = c->model->n_pieces;
    if (count == 0)
        return status_fail(STATUS_CORRUPT, "not a SentencePiece model: it has no pieces");
    if (count > VOCABULARY_IDS_MAX)
        return status_fail(STATUS_TOO_LARGE,
                           "the SentencePiece model has %zu pieces; at most %u are supported",
                           count, VOCABULARY_IDS_MAX);
    c->best_score = -1e30;
    for (size_t i = 0; i < count; i++) {
        const Sentencepiece__Piece *p = c->model->pieces[i];
        size_t bytes = p->piece ? strlen(p->piece) : 0;
        if (bytes == 0 || utf8_valid_bytes((const uint8_t *)p->piece, bytes) != bytes)
            return status_fail(STATUS_CORRUPT, "piece %zu of the SentencePiece model is %s", i,
                               bytes == 0 ? "empty" : "not UTF-8");
        if (p->type == TYPE_NORMAL && p->score > c->best_score)
            c->best_score = p->score;
    }
    if (c->trainer.unk_id < 0 || (size_t)c->trainer.unk_id >= count)
        return status_fail(STATUS_CORRUPT,
                           "the SentencePiece model has %zu pieces, and its unknown token is %d",
                           count, c->trainer.unk_id);
    return STATUS_OK;
}

/* Without a class, user-defined symbols of Unigram models are pieces that always win. */
static bool are_user_symbols_pieces(const conversion *c)
{
    return c->family == FAMILY_NONE && c->trainer.model_type == MODEL_TYPE_UNIGRAM;
}

static double score_of(const conversion *c, const Sentencepiece__Piece *p)
{
    if (p->type != TYPE_USER_DEFINED || !are_user_symbols_pieces(c))
        return p->score;
    size_t characters = utf8_count((const uint8_t *)p->piece, strlen(p->piece));
    return (double)characters * c->best_score - USER_DEFINED_MARGIN;
}

static status add_token(conversion *c, const char *text, double score)
{
    size_t id = json_array_size(c->scores);
    if (json_object_set_new(c->ids, text, json_integer((json_int_t)id)) != 0 ||
        json_array_append_new(c->scores, json_pack("[s,f]", text, score)) != 0)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a vocabulary");
    return STATUS_OK;
}

static status add_numbered(conversion *c)
{
    status s = STATUS_OK;
    char name[32];
    if (c->frame.numbered_behind < 0 || c->frame.numbered_behind > NUMBERED_BEHIND_MAX)
        return status_fail(STATUS_CORRUPT, "\"extra_ids\": expected 0 to %d", NUMBERED_BEHIND_MAX);
    for (int i = c->frame.numbered_behind - 1; i >= 0 && !s; i--) {
        snprintf(name, sizeof name, "<extra_id_%d>", i);
        s = add_token(c, name, 0);
        if (!s)
            s = special_add(c->added, name, true, false);
    }
    return s;
}

static status add_vocabulary(conversion *c)
{
    status s = STATUS_OK;
    for (int i = 0; i < c->frame.before_count && !s; i++)
        s = add_token(c, c->frame.before[i], i == 4 ? -100 : 0);
    for (size_t i = (size_t)c->frame.dropped; i < c->model->n_pieces && !s; i++)
        s = add_token(c, c->model->pieces[i]->piece, score_of(c, c->model->pieces[i]));
    if (!s && c->frame.behind != NULL)
        s = add_token(c, c->frame.behind, 0);
    return s ? s : add_numbered(c);
}

/* Control symbols are special tokens; user-defined ones are found in the text as it comes. */
static status add_symbols(conversion *c)
{
    status s = family_add_tokens(c->family, c->files, c->added);
    size_t count = 0;
    for (size_t i = 0; i < c->model->n_pieces && !s; i++) {
        const Sentencepiece__Piece *p = c->model->pieces[i];
        bool is_control = p->type == TYPE_CONTROL;
        if ((is_control || p->type == TYPE_USER_DEFINED) && ++count > SYMBOLS_MAX)
            return status_fail(STATUS_TOO_LARGE,
                               "the SentencePiece model has more than %d control and "
                               "user-defined symbols",
                               SYMBOLS_MAX);
        if (is_control || (p->type == TYPE_USER_DEFINED && !are_user_symbols_pieces(c)))
            s = special_add(c->added, p->piece, is_control, false);
    }
    return s;
}

/* Tokens that the vocabulary lacks are numbered behind it, as the loader does. */
static status number_added(conversion *c)
{
    json_int_t next = (json_int_t)json_array_size(c->scores);
    for (size_t i = 0; i < json_array_size(c->added); i++) {
        const char *content =
            json_string_value(json_object_get(json_array_get(c->added, i), "content"));
        if (content != NULL && json_object_get(c->ids, content) == NULL &&
            json_object_set_new(c->ids, content, json_integer(next++)) != 0)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for added tokens");
    }
    return STATUS_OK;
}

/* All ways to join two pieces to a third, in the order of the third's id. NULL: there is no memory.
 */
static json_t *make_merges(const conversion *c)
{
    json_t *merges = json_array();
    bool failed = false;
    for (size_t i = 0; i < json_array_size(c->scores); i++) {
        const char *text = json_string_value(json_array_get(json_array_get(c->scores, i), 0));
        size_t bytes = strlen(text);
        for (size_t at = utf8_length((uint8_t)text[0]); at < bytes;
             at += utf8_length((uint8_t)text[at])) {
            if (json_object_getn(c->ids, text, at) != NULL &&
                json_object_get(c->ids, text + at) != NULL)
                failed |= json_array_append_new(merges,
                                                json_pack("[s#,s]", text, (int)at, text + at)) != 0;
        }
    }
    return field_all_or_nothing(merges, failed);
}

static json_t *make_model(const conversion *c)
{
    bool is_plain = c->family == FAMILY_NONE;
    bool has_bytes = is_plain ? c->trainer.byte_fallback : false;
    if (c->trainer.model_type == MODEL_TYPE_UNIGRAM)
        return json_pack("{s:s,s:O,s:i,s:b}", "type", "Unigram", "vocab", c->scores, "unk_id",
                         c->frame.unknown >= 0 ? c->frame.unknown : c->trainer.unk_id,
                         "byte_fallback", has_bytes);
    json_t *vocab = json_object(), *model;
    bool failed = false;
    for (size_t i = 0; i < json_array_size(c->scores); i++) {
        const char *text = json_string_value(json_array_get(json_array_get(c->scores, i), 0));
        failed |= json_object_set_new(vocab, text, json_integer((json_int_t)i)) != 0;
    }
    model = json_pack("{s:s,s:o,s:o,s:b,s:b}", "type", "BPE", "vocab", vocab, "merges",
                      make_merges(c), "fuse_unk", 1, "byte_fallback", is_plain ? has_bytes : 1);
    if (model != NULL && c->family != FAMILY_LLAMA)
        failed |= json_object_set_new(model, "unk_token",
                                      json_string(c->model->pieces[c->trainer.unk_id]->piece)) != 0;
    return field_all_or_nothing(model, failed);
}

static json_t *assemble(const conversion *c, const char *charsmap)
{
    family_traits t = {.charsmap = charsmap,
                       .adds_prefix = c->normalizer.add_dummy_prefix,
                       .removes_spaces = c->normalizer.remove_extra_whitespaces,
                       .falls_back_to_bytes = c->trainer.byte_fallback,
                       .splits_at_spaces = c->trainer.split_by_whitespace &&
                                           !c->trainer.treat_whitespace_as_suffix &&
                                           !c->trainer.allow_whitespace_only_pieces};
    return json_pack("{s:O,s:o,s:o,s:o,s:o,s:o}", "added_tokens", c->added, "normalizer",
                     family_normalizer(c->family, c->files, &t), "pre_tokenizer",
                     family_splitter(c->family, c->files, &t), "model", make_model(c),
                     "post_processor", family_processor(c->family, c->files, c->ids), "decoder",
                     family_decoder(c->family, c->files, &t));
}

static status check_type(const conversion *c)
{
    bool is_bpe_class = c->family == FAMILY_LLAMA || c->family == FAMILY_GEMMA;
    int type = c->trainer.model_type;
    if (type != MODEL_TYPE_UNIGRAM && type != MODEL_TYPE_BPE)
        return status_fail(STATUS_UNSUPPORTED,
                           "the SentencePiece model's type %d is not supported; supported are "
                           "Unigram (1) and BPE (2)",
                           type);
    if (c->family != FAMILY_NONE && is_bpe_class != (type == MODEL_TYPE_BPE))
        return status_fail(STATUS_UNSUPPORTED,
                           "the tokenizer's class does not fit a SentencePiece model of type %s",
                           type == MODEL_TYPE_BPE ? "BPE" : "Unigram");
    if (c->trainer.treat_whitespace_as_suffix)
        return status_fail(STATUS_UNSUPPORTED,
                           "a SentencePiece model with spaces behind words is not supported");
    return STATUS_OK;
}

static status convert(conversion *c, json_t **out)
{
    char *charsmap = NULL;
    status s = check_pieces(c);
    if (!s)
        s = check_type(c);
    if (s)
        return s;
    c->frame = family_frame_of(c->family, c->files);
    c->ids = json_object();
    c->scores = json_array();
    c->added = json_array();
    if (c->ids == NULL || c->scores == NULL || c->added == NULL)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a tokenizer");
    if (!s)
        s = add_symbols(c);
    if (!s)
        s = add_vocabulary(c);
    if (!s)
        s = number_added(c);
    if (!s && c->normalizer.precompiled_charsmap.len > 0)
        s = text_base64_encode(c->normalizer.precompiled_charsmap.data,
                               c->normalizer.precompiled_charsmap.len, &charsmap);
    if (!s) {
        *out = assemble(c, charsmap);
        if (*out == NULL)
            s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a tokenizer");
    }
    free(charsmap);
    json_decref(c->ids);
    json_decref(c->scores);
    json_decref(c->added);
    return s;
}

static void *allocate(void *has_failed, size_t bytes)
{
    void *memory = malloc(bytes);
    *(bool *)has_failed |= memory == NULL;
    return memory;
}

static void release(void *has_failed, void *memory)
{
    (void)has_failed;
    free(memory);
}

status sentencepiece_convert(const void *data, size_t bytes, const char *tokenizer_class,
                             const special_files *files, json_t **out)
{
    assert(data != NULL && files != NULL && out != NULL);
    Sentencepiece__TrainerSpec trainer = SENTENCEPIECE__TRAINER_SPEC__INIT;
    Sentencepiece__NormalizerSpec normalizer = SENTENCEPIECE__NORMALIZER_SPEC__INIT;
    bool has_failed = false;
    ProtobufCAllocator allocator = {allocate, release, &has_failed};
    Sentencepiece__Model *m = sentencepiece__model__unpack(&allocator, bytes, data);
    if (m == NULL && has_failed)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a SentencePiece model");
    if (m == NULL)
        return status_fail(STATUS_CORRUPT, "not a SentencePiece model, or truncated");
    conversion c = {.model = m,
                    .trainer = m->trainer_spec ? *m->trainer_spec : trainer,
                    .normalizer = m->normalizer_spec ? *m->normalizer_spec : normalizer,
                    .files = files};
    status s = family_find(tokenizer_class, &c.family);
    if (!s)
        s = convert(&c, out);
    sentencepiece__model__free_unpacked(m, &allocator);
    return s;
}
