#include "server/infer/language.h"

#include <stdlib.h>
#include <string.h>

#include "server/infer/admit.h"
#include "server/infer/deadline.h"
#include "server/infer/parse.h"
#include "server/infer/refuse.h"
#include "server/infer/submit.h"
#include "server/infer/tokenize.h"
#include "server/protocol/compress.h"
#include "server/protocol/language/write_language.h"
#include "server/protocol/rows/text_rows.h"
#include "server/request/authorize.h"
#include "server/request/respond.h"
#include "server/request/work.h"

static status fail_ambiguous(int count, bool is_starting)
{
    if (count == 0)
        return status_fail(is_starting ? STATUS_UNAVAILABLE : STATUS_NOT_FOUND,
                           "no model that takes text is ready%s",
                           is_starting ? " yet: models are loading" : "");
    return status_fail(STATUS_NOT_FOUND,
                       "several models take text: name one in the body (\"model\") or the "
                       "path (/models/NAME/...), or set server.default_model");
}

status language_default_model(const request *r, const model **out)
{
    service *s = request_service(r);
    const char *name = s->options->default_model;
    if (name != NULL)
        return repository_find(s->models, name, strlen(name), 0, out);
    const model *ready[MODEL_INDEX_MAX], *found = NULL;
    int count = repository_ready_models(s->models, ready, MODEL_INDEX_MAX), names = 0;
    count = count < MODEL_INDEX_MAX ? count : MODEL_INDEX_MAX;
    for (int i = 0; i < count; i++) {
        if (ready[i]->text == NULL)
            continue;
        if (found == NULL || strcmp(found->name, ready[i]->name) != 0)
            names++;
        if (found == NULL) /* of one name, the highest version comes first */
            found = ready[i];
    }
    if (names == 1)
        model_retain(found);
    for (int i = 0; i < count; i++)
        model_release(ready[i]);
    if (names != 1)
        return fail_ambiguous(names, repository_is_starting(s->models));
    *out = found;
    return STATUS_OK;
}

static status find_model(const request *r, const model **out)
{
    language_request *l = r->language;
    json_string name = l->model;
    if (r->route.name_bytes > 0)
        return request_find_model(r, out);
    if (name.text == NULL && l->dialect == ROUTE_OPENAI)
        return language_fail(l, STATUS_INVALID_ARGUMENT, "missing_required_parameter", "model",
                             "you must provide a model parameter");
    if (name.text == NULL)
        return language_default_model(r, out);
    status failure = repository_find(request_service(r)->models, name.text, name.bytes, 0, out);
    if (failure == STATUS_NOT_FOUND && l->dialect == ROUTE_OPENAI)
        return language_fail(l, failure, "model_not_found", "model",
                             "The model `%.*s` does not exist or you do not have access to it.",
                             (int)(name.bytes < 200 ? name.bytes : 200), name.text);
    return failure;
}

#define COMPRESS_BYTES_MIN 1024

/* /tokenize and /decode, on any thread. */
typedef struct writing {
    request_work work; /* first */
    service *service;
    const language_request *language;
    const model *model;
    budget_account held; /* the helper's */
    content_coding coding;
    text_buffer text;
    char *compressed; /* NULL: it goes uncompressed */
    size_t compressed_bytes;
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
} writing;

static void compress_text(writing *w)
{
    compress_piece piece = {w->text.data, w->text.bytes};
    if (w->coding == CODING_IDENTITY || w->text.is_broken || w->text.bytes < COMPRESS_BYTES_MIN)
        return;
    if (compress_pieces(w->coding, &piece, 1, &w->compressed, &w->compressed_bytes))
        w->compressed = NULL;
}

static void write_tokens(request_work *work)
{
    writing *w = (writing *)work;
    text_scratches *scratches = &w->service->text_scratches;
    tokenizer_scratch *scratch = text_scratches_take(scratches);
    w->result = scratch == NULL ? status_fail(STATUS_OUT_OF_MEMORY, "no memory to tokenize")
                                : language_write_tokens(&w->text, w->language, w->model, scratch,
                                                        &work->cancel, &w->held);
    if (!w->result)
        compress_text(w);
    else
        strncpy(w->error, status_message(), sizeof w->error - 1);
    if (scratch != NULL)
        text_scratches_return(scratches, scratch);
}

static void respond_tokens(request *r, writing *w)
{
    budget_return(&w->held); /* the response counts it */
    if (request_has_ended(r)) {
        free(w->compressed);
    } else if (w->result) {
        respond_status(r, w->result, w->error);
    } else if (w->compressed != NULL) {
        respond_compressed(r, "application/json", w->coding, w->compressed, w->compressed_bytes);
    } else {
        respond_large_json(r, &w->text);
    }
    text_buffer_dispose(&w->text);
    free(w);
}

static void on_written(request *r)
{
    writing *w = r->waits_for;
    r->waits_for = NULL;
    r->on_cancel = NULL;
    r->reads_body = false;
    respond_tokens(r, w);
}

static void answer_tokens(request *r)
{
    writing *w = calloc(1, sizeof *w);
    if (w == NULL) {
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory to tokenize");
        return;
    }
    w->service = request_service(r);
    w->coding = respond_coding(r);
    budget_lend(&r->connection->held, &w->held);
    w->language = r->language;
    w->model = r->infer.model;
    w->work.run = write_tokens;
    if (!text_rows_are_long(&r->language->texts) || w->service->helpers == NULL) {
        write_tokens(&w->work);
        respond_tokens(r, w);
    } else if (request_offload(r, &w->work, false, on_written)) {
        r->reads_body = true;
    } else {
        budget_return(&w->held);
        free(w);
        respond_status(r, STATUS_UNAVAILABLE, "too many large texts wait to be tokenized");
    }
}

/* What cannot become tokens is the input's fault; the message says which text it is. */
static void blame_input(language_request *l, status failure)
{
    bool is_its_fault = failure == STATUS_INVALID_ARGUMENT || failure == STATUS_TOO_LARGE;
    if (is_its_fault && l->dialect == ROUTE_OPENAI && l->fault.code == NULL)
        strcpy(l->fault.parameter, "input");
}

/* A helper thread has tokenized the texts. */
static void on_tokenized(request *r)
{
    status failure = tokenize_finish(r);
    blame_input(r->language, failure);
    if (!request_has_ended(r))
        infer_submit(r, failure);
}

/* The model is known, and the request has a reference to it. `*is_later`: it is answered, or will
 * be. */
static status begin_inference(request *r, bool *is_later)
{
    uint64_t retry_after_ns = 0;
    const model *m = r->infer.model;
    language_request *l = r->language;
    if (m->text == NULL)
        return status_fail(STATUS_UNSUPPORTED, "model \"%s\" takes no text: %s", m->name,
                           m->text_note);
    status failure = language_choose_outputs(&r->infer);
    if (failure)
        return failure;
    failure = admit_before_parsing(r, m, &retry_after_ns);
    if (failure) {
        *is_later = true;
        refuse_request(r, failure, retry_after_ns);
        return STATUS_OK;
    }
    l->options.ignores_prompt = l->task == LANGUAGE_RERANK || l->task == LANGUAGE_PREDICT;
    if (l->task == LANGUAGE_TOKENIZE || l->task == LANGUAGE_DECODE) {
        *is_later = true;
        answer_tokens(r);
        return STATUS_OK;
    }
    failure = tokenize_request(r, on_tokenized, is_later);
    blame_input(l, failure);
    return failure;
}

/* Before a model is looked for: what a name is refused for says nothing of the model. */
static bool is_allowed(const request *r)
{
    json_string name = r->language->model;
    if (r->route.name_bytes > 0)
        return authorize_model(r, r->route.name, r->route.name_bytes);
    return name.text == NULL || authorize_model(r, name.text, name.bytes);
}

/* The body has been parsed, or `failure` says why not. */
static void go_on(request *r, status failure)
{
    const model *m;
    bool is_later = false;
    if (!failure && !is_allowed(r)) {
        authorize_refuse(r);
        return;
    }
    if (!failure)
        failure = find_model(r, &m);
    if (!failure && !authorize_model(r, m->name, strlen(m->name))) { /* a default one */
        model_release(m);
        authorize_refuse(r);
        return;
    }
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    r->record = record_of_model(request_service(r)->recorder, m);
    infer_request_init(&r->infer, m, INFER_LANGUAGE, &r->one_job, 1);
    r->infer.language = r->language;
    r->holds_model = true;
    r->deadline_ns = infer_deadline_of(r);
    failure = begin_inference(r, &is_later);
    if (!is_later)
        infer_submit(r, failure);
}

/* A helper thread has parsed the body. */
static void on_parsed(request *r)
{
    status failure = parse_finish(r);
    if (!request_has_ended(r))
        go_on(r, failure);
}

void language_handle(request *r)
{
    bool is_later = false;
    r->language = request_loop_acquire_language(r->loop);
    if (r->language == NULL) {
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for a request");
        return;
    }
    status failure = parse_language(r, on_parsed, &is_later);
    if (!is_later)
        go_on(r, failure);
}
