/* `penstock tokenize`: text to token ids, and back, with a model's tokenizer. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text_buffer.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "text/tokenizer.h"

typedef struct tokenize_options {
    const char *model;
    bool is_json, decodes;
    bool omits_special_tokens, truncates_left;
    int tokens_max;
    const char *strategy;
} tokenize_options;

typedef struct session {
    const tokenize_options *options;
    tokenizer *tokenizer;
    tokenizer_scratch *scratch;
    tokenizer_options encode;
    text_buffer out;
} session;

static void put_numbers(text_buffer *out, const char *name, const uint32_t *numbers, size_t count)
{
    text_buffer_format(out, "\"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        text_buffer_format(out, "%s%u", i ? ", " : "", numbers[i]);
    text_buffer_put(out, "], ");
}

static status put_decoded(session *s, const tokenizer_tokens *tokens)
{
    for (int skips = 0; skips < 2; skips++) {
        text_buffer text = {0};
        status failed = tokenizer_decode(s->tokenizer, tokens->ids, tokens->count, skips, &text);
        json_t *string = failed ? NULL : json_stringn(text_buffer_string(&text), text.bytes);
        char *dump = json_dumps(string, JSON_ENCODE_ANY);
        if (dump != NULL)
            text_buffer_format(&s->out, ", \"%s\": %s", skips ? "text" : "text_with_special", dump);
        free(dump);
        json_decref(string);
        text_buffer_dispose(&text);
        if (failed)
            return failed;
    }
    return STATUS_OK;
}

static status put_tokens(session *s, const tokenizer_tokens *tokens)
{
    text_buffer *out = &s->out;
    text_buffer_put(out, "{");
    put_numbers(out, "ids", tokens->ids, tokens->count);
    put_numbers(out, "type_ids", tokens->type_ids, tokens->count);
    text_buffer_put(out, "\"special_tokens_mask\": [");
    for (size_t i = 0; i < tokens->count; i++)
        text_buffer_format(out, "%s%d", i ? ", " : "",
                           tokens->sequences[i] == TOKENIZER_NO_SEQUENCE);
    text_buffer_put(out, "], \"offsets\": [");
    for (size_t i = 0; i < tokens->count; i++)
        text_buffer_format(out, "%s[%u, %u]", i ? ", " : "", tokens->spans[i].begin,
                           tokens->spans[i].end);
    text_buffer_put(out, "]");
    status failed = s->options->decodes ? put_decoded(s, tokens) : STATUS_OK;
    text_buffer_put(out, "}\n");
    return failed;
}

static status encode(session *s, tokenizer_text first, const tokenizer_text *second)
{
    tokenizer_tokens tokens;
    status failed = tokenizer_encode(s->tokenizer, s->scratch, first, second, &s->encode, &tokens);
    return failed ? failed : put_tokens(s, &tokens);
}

/* A JSON string, or an array of two. */
static status encode_json(session *s, const char *line, size_t bytes)
{
    json_error_t error;
    status failed;
    json_t *value = json_loadb(line, bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    bool is_pair = json_is_array(value) && json_array_size(value) == 2;
    json_t *first = is_pair ? json_array_get(value, 0) : value, *second = json_array_get(value, 1);
    if (value == NULL) {
        failed = status_fail(STATUS_INVALID_ARGUMENT, "not JSON: %s", error.text);
    } else if (!json_is_string(first) || (is_pair && !json_is_string(second))) {
        failed = status_fail(STATUS_INVALID_ARGUMENT, "expected a string or an array of two");
    } else {
        tokenizer_text a = {json_string_value(first), json_string_length(first)};
        tokenizer_text b = {json_string_value(second), json_string_length(second)};
        failed = encode(s, a, is_pair ? &b : NULL);
    }
    json_decref(value);
    return failed;
}

static void put_error(session *s)
{
    json_t *error = json_pack("{s:s}", "error", status_message());
    char *dump = json_dumps(error, 0);
    text_buffer_clear(&s->out);
    text_buffer_format(&s->out, "%s\n", dump ? dump : "{\"error\": \"\"}");
    free(dump);
    json_decref(error);
}

/* One result for each line; returns whether all were tokenized. */
static bool run_lines(session *s)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool is_good = true;
    while ((length = getline(&line, &capacity, stdin)) >= 0) {
        size_t bytes = (size_t)length;
        if (bytes > 0 && line[bytes - 1] == '\n')
            bytes--;
        text_buffer_clear(&s->out);
        status failed = s->options->is_json ? encode_json(s, line, bytes)
                                            : encode(s, (tokenizer_text){line, bytes}, NULL);
        if (failed)
            put_error(s);
        is_good = is_good && !failed;
        fwrite(s->out.data, 1, s->out.bytes, stdout);
    }
    free(line);
    return is_good;
}

static bool set_strategy(session *s, const char *name)
{
    static const char *const names[] = {"longest_first", "only_first", "only_second"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0) {
            s->encode.strategy = (tokenizer_strategy)i;
            return true;
        }
    }
    fprintf(stderr, "penstock tokenize: --strategy is longest_first, only_first or only_second\n");
    return false;
}

static int run(const tokenize_options *o)
{
    session s = {.options = o,
                 .encode = {.omits_special_tokens = o->omits_special_tokens,
                            .tokens_max = (size_t)o->tokens_max,
                            .truncates_left = o->truncates_left}};
    if (!set_strategy(&s, o->strategy))
        return 2;
    if (tokenizer_load(o->model, &s.tokenizer)) {
        fprintf(stderr, "penstock tokenize: %s\n", status_message());
        return 1;
    }
    s.scratch = tokenizer_scratch_create();
    bool is_good = run_lines(&s);
    tokenizer_scratch_destroy(s.scratch);
    tokenizer_destroy(s.tokenizer);
    text_buffer_dispose(&s.out);
    return is_good ? 0 : 1;
}

int command_tokenize(int argc, char **argv)
{
    tokenize_options o = {.strategy = "longest_first"};
    const flag flags[] = {
        flag_required(flag_text("--model", "DIR", "The folder with tokenizer.json.", &o.model)),
        flag_switch("--json",
                    "Each line is a JSON string, or an array of two for a pair; otherwise a line "
                    "is a text.",
                    &o.is_json),
        flag_switch("--decode", "Also print the text of the ids.", &o.decodes),
        flag_integer("--max-tokens", "N", "Truncate to N tokens; default: 0, not at all.",
                     &o.tokens_max, 0, 1 << 24),
        flag_text("--strategy", "NAME",
                  "What is truncated: longest_first (default), only_first, only_second.",
                  &o.strategy),
        flag_switch("--truncate-left", "Truncate at the front.", &o.truncates_left),
        flag_switch("--no-special-tokens", "Add no special tokens.", &o.omits_special_tokens),
    };
    const flags_usage usage = {
        .command = "tokenize",
        .synopsis = "--model DIR [OPTION...]",
        .description = "Reads texts from standard input and prints for each the token ids, type "
                       "ids and character offsets as a JSON object.",
        .flags = flags,
        .count = sizeof flags / sizeof *flags};
    int code = flags_parse(&usage, argc, argv);
    return code != FLAGS_OK ? code : run(&o);
}
