/* Post-processors become templates. */
#include <string.h>

#include "text/load/fields.h"
#include "text/load/load.h"

#define PROCESSORS "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence"

static status add_part(template *p, template_part part)
{
    if (p->part_count == TEMPLATE_PARTS_MAX)
        return status_fail(STATUS_TOO_LARGE, "a template has more than %d parts",
                           TEMPLATE_PARTS_MAX);
    p->parts[p->part_count++] = part;
    p->special_count += part.id_count;
    return STATUS_OK;
}

static status add_id(processor *p, int64_t id)
{
    if (id < 0 || id > UINT32_MAX)
        return status_fail(STATUS_CORRUPT, "%lld is no token id", (long long)id);
    if (p->id_count == TEMPLATE_IDS_MAX)
        return status_fail(STATUS_TOO_LARGE, "templates have more than %d special tokens",
                           TEMPLATE_IDS_MAX);
    p->ids[p->id_count++] = (uint32_t)id;
    return STATUS_OK;
}

static status read_type_id(const json_t *item, template_part *part)
{
    size_t type_id = 0;
    status s = field_size(item, "type_id", &type_id);
    part->type_id = (uint32_t)type_id;
    return s;
}

/* {"SpecialToken": {"id": name, "type_id": n}}, whose ids are in "special_tokens". */
static status read_special(const json_t *c, const json_t *item, processor *p, template_part *part)
{
    const json_t *name = NULL, *tokens = NULL, *token = NULL, *ids = NULL;
    status s = field_required(item, "id", JSON_STRING, &name);
    if (!s)
        s = field_required(c, "special_tokens", JSON_OBJECT, &tokens);
    if (!s)
        s = field_required(tokens, json_string_value(name), JSON_OBJECT, &token);
    if (!s)
        s = field_required(token, "ids", JSON_ARRAY, &ids);
    part->first_id = (uint16_t)p->id_count;
    part->id_count = (uint16_t)json_array_size(ids);
    if (!s && json_array_size(ids) > TEMPLATE_IDS_MAX)
        s = status_fail(STATUS_TOO_LARGE, "\"ids\" has more than %d", TEMPLATE_IDS_MAX);
    for (size_t i = 0; i < json_array_size(ids) && !s; i++) {
        const json_t *id = json_array_get(ids, i);
        s = add_id(p, json_is_integer(id) ? json_integer_value(id) : -1);
    }
    return s ? s : read_type_id(item, part);
}

static status read_sequence(const json_t *item, bool is_pair, template_part *part)
{
    const json_t *name = NULL;
    status s = field_required(item, "id", JSON_STRING, &name);
    if (s)
        return s;
    part->is_sequence = true;
    part->sequence = strcmp(json_string_value(name), "B") == 0;
    if (part->sequence == 1 && !is_pair)
        return status_fail(STATUS_CORRUPT, "the template for one text uses a second");
    return read_type_id(item, part);
}

static status read_template(const json_t *c, const char *name, bool is_pair, processor *p,
                            template *out)
{
    const json_t *list = NULL;
    status s = field_required(c, name, JSON_ARRAY, &list);
    for (size_t i = 0; i < json_array_size(list) && !s; i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *special = json_object_get(item, "SpecialToken");
        const json_t *sequence = json_object_get(item, "Sequence");
        template_part part = {0};
        if (special != NULL)
            s = read_special(c, special, p, &part);
        else if (sequence != NULL)
            s = read_sequence(sequence, is_pair, &part);
        else
            s = status_fail(STATUS_CORRUPT, "expected \"SpecialToken\" or \"Sequence\"");
        if (!s)
            s = add_part(out, part);
        if (s)
            s = status_prefix(s, "\"%s\"[%zu]", name, i);
    }
    return s;
}

/* ["[CLS]", 101] */
static status read_token(const json_t *c, const char *name, processor *p, template_part *part)
{
    const json_t *pair = NULL;
    status s = field_required(c, name, JSON_ARRAY, &pair);
    if (s)
        return s;
    const json_t *id = json_array_get(pair, 1);
    *part = (template_part){.first_id = (uint16_t)p->id_count, .id_count = 1};
    s = add_id(p, json_is_integer(id) ? json_integer_value(id) : -1);
    return s ? status_prefix(s, "\"%s\"", name) : STATUS_OK;
}

/* BERT: [CLS] A [SEP] B [SEP], with B's type 1. RoBERTa: <s> A </s></s> B </s>, with type 0. */
static status read_classic(const json_t *c, bool is_roberta, processor *p)
{
    template_part cls = {0}, sep = {0}, sequence = {.is_sequence = true};
    template_part second = {.is_sequence = true, .sequence = 1, .type_id = is_roberta ? 0 : 1};
    status s = read_token(c, "cls", p, &cls);
    if (!s)
        s = read_token(c, "sep", p, &sep);
    template_part last = sep;
    last.type_id = second.type_id;
    const template_part single[] = {cls, sequence, sep};
    for (size_t i = 0; i < 3 && !s; i++) {
        s = add_part(&p->single, single[i]);
        if (!s)
            s = add_part(&p->pair, single[i]);
    }
    if (!s && is_roberta)
        s = add_part(&p->pair, sep);
    if (!s)
        s = add_part(&p->pair, second);
    return s ? s : add_part(&p->pair, last);
}

static status read_trimming(const json_t *c, processor *p)
{
    bool trims = true, adds = true;
    status s = field_bool(c, "trim_offsets", &trims);
    if (!s)
        s = field_bool(c, "add_prefix_space", &adds);
    if (s || !trims)
        return s;
    if (p->trims_spans)
        return status_fail(STATUS_UNSUPPORTED, "two post-processors with \"trim_offsets\"");
    p->trims_spans = true;
    p->adds_prefix_space = adds;
    return STATUS_OK;
}

static status read_processor(const json_t *c, const char *type, void *context)
{
    processor *p = &((struct tokenizer *)context)->processor;
    if (strcmp(type, "ByteLevel") == 0)
        return read_trimming(c, p);
    bool is_template = strcmp(type, "TemplateProcessing") == 0;
    bool is_roberta = strcmp(type, "RobertaProcessing") == 0;
    if (!is_template && !is_roberta && strcmp(type, "BertProcessing") != 0)
        return field_unknown_type("post-processor", type, PROCESSORS);
    if (p->has_templates)
        return status_fail(STATUS_UNSUPPORTED, "two post-processors that add tokens");
    p->has_templates = true;
    if (is_template) {
        status s = read_template(c, "single", false, p, &p->single);
        return s ? s : read_template(c, "pair", true, p, &p->pair);
    }
    status s = is_roberta ? read_trimming(c, p) : STATUS_OK;
    return s ? s : read_classic(c, is_roberta, p);
}

status text_load_processor(const json_t *file, struct tokenizer *t)
{
    const json_t *c = json_object_get(file, "post_processor");
    status s = field_is_there(c) ? field_each(c, "processors", read_processor, t) : STATUS_OK;
    return s ? status_prefix(s, "\"post_processor\"") : STATUS_OK;
}
