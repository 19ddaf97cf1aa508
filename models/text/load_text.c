#include "models/text/load_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/text/files.h"
#include "models/text/roles.h"

/* Where a tokenizer may lie, seen from a model's folder: beside the model, in the folder of the
 * first module of sentence-transformers, above the folder of a version or of exported files. */
static const char *const places[] = {"", "/0_Transformer", "/.."};

/* A model may be a file itself. */
static void folder_of(const char *path, char out[PATH_MAX])
{
    struct stat s;
    snprintf(out, PATH_MAX, "%s", path);
    char *slash = strrchr(out, '/');
    if (stat(path, &s) == 0 && S_ISREG(s.st_mode)) {
        if (slash != NULL)
            *slash = '\0';
        else
            strcpy(out, ".");
    }
}

static status find_tokenizer(const char *folder, char found[PATH_MAX], tokenizer **out)
{
    status failure = STATUS_NOT_FOUND;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && failure == STATUS_NOT_FOUND; i++) {
        if (snprintf(found, PATH_MAX, "%s%s", folder, places[i]) < PATH_MAX)
            failure = tokenizer_load(found, out);
    }
    return failure;
}

static status note(model *m, const char *text)
{
    m->text_note = arena_copy_string(&m->memory, text, strlen(text));
    return m->text_note != NULL ? STATUS_OK
                                : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
}

static status note_missing(model *m, const char *folder)
{
    char text[PATH_MAX + 128];
    snprintf(
        text, sizeof text,
        "there is no tokenizer.json (or vocab.txt, or a SentencePiece model, or vocab.json with "
        "merges.txt) in %s",
        folder);
    return note(m, text);
}

/* The file that tokenizer_load() has read. */
static const char *name_file(model *m, const char *folder)
{
    static const char *const names[] = {"tokenizer.json",      "vocab.txt",
                                        "tokenizer.model",     "spiece.model",
                                        "spm.model",           "sentencepiece.bpe.model",
                                        "sentencepiece.model", "vocab.json"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < PATH_MAX &&
            access(path, R_OK) == 0)
            return arena_copy_string(&m->memory, path, strlen(path));
    }
    return folder[0] ? arena_copy_string(&m->memory, folder, strlen(folder)) : NULL;
}

/* As sentence-transformers counts them: of the prompt alone, without a special token behind it. */
static status count_prompts(model_text *t)
{
    tokenizer_scratch *s = tokenizer_scratch_create();
    status failure = s == NULL ? status_fail(STATUS_OUT_OF_MEMORY, "no memory to tokenize") : 0;
    for (int i = 0; i < t->prompt_count && !failure; i++) {
        model_prompt *p = &t->prompts[i];
        tokenizer_tokens found;
        const model_text_input in = {.text = p->text, .text_bytes = p->bytes};
        if (p->bytes == 0)
            continue;
        failure = model_text_encode(t, s, &in, &found);
        if (failure)
            break;
        p->tokens = (int64_t)found.count;
        if (found.sequences[found.count - 1] == TOKENIZER_NO_SEQUENCE)
            p->tokens--;
    }
    tokenizer_scratch_destroy(s);
    return failure;
}

static status read_all(model *m, model_text *t, const char *folder)
{
    text_head head;
    status failure = text_files_read(t, &m->memory, folder, &head);
    if (!failure && t->excludes_prompt)
        failure = count_prompts(t);
    return failure ? failure : text_roles_find(t, m, head);
}

/* Whether an input may hold what a tokenizer gives; a sound's samples are no tokens. */
static bool has_tokens(const model *m)
{
    for (int i = 0; i < m->input_count; i++)
        if ((m->inputs[i].dtype == DTYPE_I64 || m->inputs[i].dtype == DTYPE_I32) &&
            m->inputs[i].sequence_axis == 1)
            return true;
    return false;
}

status model_text_load(model *m, const char *path)
{
    char folder[PATH_MAX], found[PATH_MAX];
    m->text_note = LOAD_TEXT_NO_TOKENS;
    if (m->batching.sequence_max == 0)
        return STATUS_OK;
    model_text *t = arena_allocate_zeroed(&m->memory, 1, sizeof(*t));
    if (t == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    t->tokens_max = m->batching.sequence_max;
    folder_of(path, folder);
    status failure = find_tokenizer(folder, found, &t->tokenizer);
    if (failure == STATUS_NOT_FOUND)
        return has_tokens(m) ? note_missing(m, folder) : STATUS_OK;
    if (!failure)
        failure = read_all(m, t, found);
    if (!failure) {
        t->file = name_file(m, found);
        failure = t->file != NULL ? note(m, "")
                                  : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    }
    if (!failure) {
        m->text = t;
        return STATUS_OK;
    }
    tokenizer_destroy(t->tokenizer);
    return failure == STATUS_OUT_OF_MEMORY ? failure : note(m, status_message());
}

void model_text_dispose(model *m)
{
    if (m->text != NULL)
        tokenizer_destroy(m->text->tokenizer);
    m->text = NULL;
}
