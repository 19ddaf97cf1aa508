/* Which of the model's outputs a task needs. */
#include "server/protocol/language/write_language.h"

static status choose(infer_request *r, int first, int second, const char *what)
{
    if (first < 0)
        return status_fail(STATUS_UNSUPPORTED, "model \"%s\" has no output with %s", r->model->name,
                           what);
    r->outputs[0] = (infer_output){.index = first};
    r->outputs[1] = (infer_output){.index = second};
    r->output_count = second >= 0 ? 2 : 1;
    return STATUS_OK;
}

static status check_dimensions(const infer_request *r)
{
    const model_text *t = r->model->text;
    language_request *l = r->language;
    const model_tensor *out = &r->model->outputs[r->outputs[0].index];
    int64_t width = out->dims[out->rank - 1];
    if (l->dimensions == 0 || l->dimensions == width)
        return STATUS_OK;
    if (l->dimensions < width) {
        for (int i = 0; i < t->dimension_count; i++) {
            if (t->dimensions[i] < 0 || t->dimensions[i] == l->dimensions)
                return STATUS_OK;
        }
    }
    bool is_openai = l->dialect == ROUTE_OPENAI;
    return language_fail(l, STATUS_INVALID_ARGUMENT, is_openai ? "invalid_value" : NULL,
                         "dimensions",
                         "Invalid value for 'dimensions' = %lld: the model's vectors have %lld, "
                         "and %s.",
                         (long long)l->dimensions, (long long)width,
                         t->dimension_count == 0 ? "its files do not say that they may be cut"
                                                 : "its files name other sizes");
}

status language_choose_outputs(infer_request *r)
{
    const model_text *t = r->model->text;
    status failure = STATUS_OK;
    switch (r->language->task) {
    case LANGUAGE_EMBED:
    case LANGUAGE_SIMILARITY:
        failure =
            choose(r, t->sentence >= 0 ? t->sentence : t->tokens, -1, "a vector for each text");
        return failure ? failure : check_dimensions(r);
    case LANGUAGE_EMBED_TOKENS:
        return choose(r, t->tokens, -1, "a vector for each token (\"pooling\": \"none\")");
    case LANGUAGE_EMBED_SPARSE:
        return choose(r, t->words, -1, "a value for each word of the vocabulary");
    case LANGUAGE_RERANK:
        failure = choose(r, t->logits, -1, "a score for each pair");
        if (!failure && r->model->outputs[t->logits].dims[1] != 1)
            return status_fail(STATUS_UNSUPPORTED,
                               "model \"%s\" is no re-ranker: it has more than one class",
                               r->model->name);
        return failure;
    case LANGUAGE_PREDICT:
        if (t->start_logits >= 0 && t->end_logits >= 0)
            return choose(r, t->start_logits, t->end_logits, "");
        return choose(r, t->token_logits >= 0 ? t->token_logits : t->logits, -1,
                      "classes of texts or tokens");
    default:
        return STATUS_OK; /* no device is needed */
    }
}
