#include "text/load/sentencepiece_family.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define UNDERLINE "\xE2\x96\x81"

status family_find(const char *tokenizer_class, family *out)
{
    static const struct {
        const char *name;
        family family;
    } classes[] = {{"XLMRobertaTokenizer", FAMILY_XLM_ROBERTA},
                   {"CamembertTokenizer", FAMILY_CAMEMBERT},
                   {"T5Tokenizer", FAMILY_T5},
                   {"AlbertTokenizer", FAMILY_ALBERT},
                   {"DebertaV2Tokenizer", FAMILY_DEBERTA_V2},
                   {"LlamaTokenizer", FAMILY_LLAMA},
                   {"GemmaTokenizer", FAMILY_GEMMA},
                   {"PreTrainedTokenizer", FAMILY_NONE},
                   {"TokenizersBackend", FAMILY_NONE},
                   {"SentencePieceBackend", FAMILY_NONE}};
    size_t length = tokenizer_class ? strlen(tokenizer_class) : 0;
    *out = FAMILY_NONE;
    if (length == 0)
        return STATUS_OK;
    if (length > 4 && strcmp(tokenizer_class + length - 4, "Fast") == 0)
        length -= 4;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) == length &&
            memcmp(classes[i].name, tokenizer_class, length) == 0) {
            *out = classes[i].family;
            return STATUS_OK;
        }
    }
    return status_fail(STATUS_UNSUPPORTED,
                       "the SentencePiece tokenizer \"%.64s\" is not supported without "
                       "tokenizer.json; supported are XLMRobertaTokenizer, CamembertTokenizer, "
                       "T5Tokenizer, AlbertTokenizer, DebertaV2Tokenizer, LlamaTokenizer, "
                       "GemmaTokenizer",
                       tokenizer_class);
}

/* The classes' defaults; NULL: the class does not name the token. */
static const char *default_token(family f, const char *name)
{
    bool is_bracketed = f == FAMILY_ALBERT || f == FAMILY_DEBERTA_V2;
    bool has_mask =
        is_bracketed || f == FAMILY_XLM_ROBERTA || f == FAMILY_CAMEMBERT || f == FAMILY_GEMMA;
    bool has_ends = has_mask && f != FAMILY_GEMMA;
    const struct {
        const char *name, *plain, *bracketed;
        bool is_there;
    } tokens[] = {
        {"bos_token", f == FAMILY_GEMMA ? "<bos>" : "<s>", "[CLS]", f != FAMILY_T5},
        {"eos_token", f == FAMILY_GEMMA ? "<eos>" : "</s>", "[SEP]", true},
        {"unk_token", "<unk>", f == FAMILY_ALBERT ? "<unk>" : "[UNK]", true},
        {"sep_token", "</s>", "[SEP]", has_ends},
        {"pad_token", "<pad>", f == FAMILY_ALBERT ? "<pad>" : "[PAD]", f != FAMILY_LLAMA},
        {"cls_token", "<s>", "[CLS]", has_ends},
        {"mask_token", "<mask>", "[MASK]", has_mask},
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens && f != FAMILY_NONE; i++) {
        if (strcmp(tokens[i].name, name) == 0 && tokens[i].is_there)
            return is_bracketed ? tokens[i].bracketed : tokens[i].plain;
    }
    return NULL;
}

static const char *token(family f, const special_files *files, const char *name)
{
    return special_token(files, name, default_token(f, name));
}

family_frame family_frame_of(family f, const special_files *files)
{
    const char *bos = token(f, files, "bos_token"), *eos = token(f, files, "eos_token");
    const char *pad = token(f, files, "pad_token"), *unk = token(f, files, "unk_token");
    const char *mask = token(f, files, "mask_token");
    const json_t *extra = json_object_get(files->config, "extra_ids");
    switch (f) {
    case FAMILY_XLM_ROBERTA: /* fairseq's order */
        return (family_frame){.before = {bos, pad, eos, unk},
                              .before_count = 4,
                              .dropped = 3,
                              .behind = mask,
                              .unknown = 3};
    case FAMILY_CAMEMBERT:
        return (family_frame){.before = {"<s>NOTUSED", pad, "</s>NOTUSED", unk, "<unk>NOTUSED"},
                              .before_count = 5,
                              .dropped = 1,
                              .behind = mask,
                              .unknown = 3};
    case FAMILY_T5:
        return (family_frame){.numbered_behind =
                                  json_is_integer(extra) ? (int)json_integer_value(extra) : 100,
                              .unknown = -1};
    default:
        return (family_frame){.unknown = -1};
    }
}

static json_t *replace(bool is_regex, const char *pattern, const char *content)
{
    return json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern",
                     is_regex ? "Regex" : "String", pattern, "content", content);
}

static json_t *named(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

static json_t *sequence(const char *members, json_t *list)
{
    return json_pack("{s:s,s:o}", "type", "Sequence", members, list);
}

/* Takes `item`. Where there is no memory, *list is NULL from then on, and so is what is made of it.
 */
static void append(json_t **list, json_t *item)
{
    if (json_array_append_new(*list, item) != 0) {
        json_decref(*list);
        *list = NULL;
    }
}

/* The library looks at grapheme clusters, SentencePiece for the longest match. */
static void add_charsmap(const family_traits *t, bool takes_longest, json_t **list)
{
    if (t->charsmap != NULL)
        append(list, json_pack("{s:s,s:s,s:b}", "type", "Precompiled", "precompiled_charsmap",
                               t->charsmap, "takes_longest", takes_longest));
}

/* What SentencePiece does: spaces at the ends go, several become one, one is put in front. */
static void add_plain(const family_traits *t, json_t **list)
{
    add_charsmap(t, true, list);
    if (t->removes_spaces) {
        append(list, replace(true, "^ +| +$", ""));
        append(list, replace(true, " {2,}", " "));
    }
    if (t->adds_prefix)
        append(list, json_pack("{s:s,s:s}", "type", "Prepend", "prepend", UNDERLINE));
    append(list, replace(false, " ", UNDERLINE));
}

static void add_albert(const special_files *files, const family_traits *t, json_t **list)
{
    append(list, replace(false, "``", "\""));
    append(list, replace(false, "''", "\""));
    if (!special_flag(files, "keep_accents", false)) {
        append(list, named("NFKD"));
        append(list, named("StripAccents"));
    }
    if (special_flag(files, "do_lower_case", true))
        append(list, named("Lowercase"));
    add_charsmap(t, false, list);
}

static void add_deberta(const special_files *files, json_t **list)
{
    if (special_flag(files, "do_lower_case", false))
        append(list, named("Lowercase"));
    append(list, replace(true, "\\s{2,}|[\\n\\r\\t]", " "));
    append(list, named("NFC"));
    append(list, json_pack("{s:s,s:b,s:b}", "type", "Strip", "strip_left", 0, "strip_right", 1));
}

json_t *family_normalizer(family f, const special_files *files, const family_traits *t)
{
    json_t *list = json_array();
    switch (f) {
    case FAMILY_NONE:
        add_plain(t, &list);
        break;
    case FAMILY_ALBERT:
        add_albert(files, t, &list);
        break;
    case FAMILY_DEBERTA_V2:
        add_deberta(files, &list);
        break;
    case FAMILY_LLAMA:
        break;
    case FAMILY_GEMMA:
        append(&list, replace(false, " ", UNDERLINE));
        break;
    default:
        add_charsmap(t, false, &list);
    }
    return sequence("normalizers", list);
}

static const char *prepend_scheme(family f, const special_files *files)
{
    if (f == FAMILY_T5 || special_flag(files, "add_prefix_space", true))
        return f == FAMILY_LLAMA && !special_flag(files, "legacy", false) ? "first" : "always";
    return f == FAMILY_DEBERTA_V2 ? "first" : "never";
}

static json_t *metaspace(const char *scheme, bool splits)
{
    return json_pack("{s:s,s:s,s:s,s:b}", "type", "Metaspace", "replacement", UNDERLINE,
                     "prepend_scheme", scheme, "split", splits);
}

json_t *family_splitter(family f, const special_files *files, const family_traits *t)
{
    if (f == FAMILY_GEMMA)
        return json_pack("{s:s,s:{s:s},s:s}", "type", "Split", "pattern", "String", " ", "behavior",
                         "MergedWithPrevious");
    if (f == FAMILY_NONE)
        return metaspace("never", t->splits_at_spaces);
    json_t *list = json_array();
    if (f == FAMILY_DEBERTA_V2 && special_flag(files, "split_by_punct", false))
        append(&list, json_pack("{s:s,s:s}", "type", "Punctuation", "behavior", "Isolated"));
    if (f != FAMILY_DEBERTA_V2 && f != FAMILY_LLAMA)
        append(&list, named("WhitespaceSplit"));
    append(&list, metaspace(prepend_scheme(f, files), f != FAMILY_LLAMA));
    return sequence("pretokenizers", list);
}

json_t *family_decoder(family f, const special_files *files, const family_traits *t)
{
    bool is_plain = f == FAMILY_NONE || f == FAMILY_LLAMA || f == FAMILY_GEMMA;
    if (!is_plain)
        return metaspace(prepend_scheme(f, files), true);
    json_t *list = json_array();
    append(&list, replace(false, UNDERLINE, " "));
    if (f != FAMILY_NONE || t->falls_back_to_bytes)
        append(&list, named("ByteFallback"));
    append(&list, named("Fuse"));
    bool strips = f == FAMILY_NONE
                      ? t->adds_prefix
                      : f == FAMILY_LLAMA && special_flag(files, "add_prefix_space", true);
    if (strips)
        append(&list, json_pack("{s:s,s:s,s:i,s:i}", "type", "Strip", "content", " ", "start", 1,
                                "stop", 0));
    return sequence("decoders", list);
}

/* {"SpecialToken": {"id": name, "type_id": n}}; "A" and "B" are the texts. */
static json_t *part(const char *name, int type_id)
{
    bool is_text = strcmp(name, "A") == 0 || strcmp(name, "B") == 0;
    return json_pack("{s:{s:s,s:i}}", is_text ? "Sequence" : "SpecialToken", "id", name, "type_id",
                     type_id);
}

/* Tokens before and behind each text, where they are not NULL. */
static json_t *surround(const char *before, const char *behind, int second_type, const json_t *ids)
{
    json_t *single = json_array(), *pair = json_array(), *tokens = json_object();
    const char *const parts[] = {before, "A", behind, before, "B", behind};
    for (int i = 0; i < 6; i++) {
        if (parts[i] == NULL)
            continue;
        int type_id = i < 3 ? 0 : second_type;
        if (i < 3)
            append(&single, part(parts[i], type_id));
        append(&pair, part(parts[i], type_id));
        json_t *id = i % 3 != 1 ? json_object_get(ids, parts[i]) : NULL;
        if (id != NULL &&
            json_object_set_new(tokens, parts[i], json_pack("{s:[O]}", "ids", id)) != 0) {
            json_decref(tokens);
            tokens = NULL;
        }
    }
    return json_pack("{s:s,s:o,s:o,s:o}", "type", "TemplateProcessing", "single", single, "pair",
                     pair, "special_tokens", tokens);
}

/* [CLS] A [SEP] B [SEP], or <s> A </s></s> B </s>. */
static json_t *classic(const char *type, const char *cls, const char *sep, const json_t *ids)
{
    return json_pack("{s:s,s:[s,O],s:[s,O],s:b}", "type", type, "cls", cls,
                     json_object_get(ids, cls), "sep", sep, json_object_get(ids, sep),
                     "trim_offsets", 0);
}

json_t *family_processor(family f, const special_files *files, const json_t *ids)
{
    const char *bos = token(f, files, "bos_token"), *eos = token(f, files, "eos_token");
    switch (f) {
    case FAMILY_XLM_ROBERTA:
    case FAMILY_CAMEMBERT:
        return classic("RobertaProcessing", bos, eos, ids);
    case FAMILY_ALBERT:
    case FAMILY_DEBERTA_V2:
        return classic("BertProcessing", token(f, files, "cls_token"), token(f, files, "sep_token"),
                       ids);
    case FAMILY_T5:
        return surround(NULL, eos, 0, ids);
    default:
        return surround(special_flag(files, "add_bos_token", false) ? bos : NULL,
                        special_flag(files, "add_eos_token", false) ? eos : NULL, 1, ids);
    }
}

status family_add_tokens(family f, const special_files *files, json_t *added)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    status s = special_add_all(files, added);
    for (size_t i = 0; i < sizeof names / sizeof *names && !s; i++) {
        const char *content = token(f, files, names[i]);
        bool is_mask = strcmp(names[i], "mask_token") == 0;
        if (content != NULL)
            s = special_add(added, content, true, is_mask && f == FAMILY_CAMEMBERT);
    }
    return s;
}
