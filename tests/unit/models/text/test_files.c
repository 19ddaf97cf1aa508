/* What stands beside a tokenizer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/text/files.h"

static char folder[64];
static model_text t;
static text_head head;
static arena memory;

static void begin(void)
{
    strcpy(folder, "/tmp/penstock-text-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    memset(&t, 0, sizeof t);
    t.tokens_max = 512;
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
    arena_dispose(&memory);
}

TestSuite(text_files, .init = begin, .fini = end);

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    cr_assert(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static status read_all(void)
{
    return text_files_read(&t, &memory, folder, &head);
}

Test(text_files, a_folder_without_them_changes_nothing)
{
    cr_assert_eq(read_all(), STATUS_OK);
    cr_assert(t.tokens_max == 512 && t.prompt_count == 0 && t.label_count == 0);
    cr_assert_eq(head, TEXT_HEAD_NONE);
}

Test(text_files, everything_is_read)
{
    put("config.json", "{\"architectures\": [\"XForTokenClassification\"], "
                       "\"id2label\": {\"1\": \"B-X\", \"0\": \"O\"}}");
    put("config_sentence_transformers.json",
        "{\"prompts\": {\"query\": \"query: \", \"doc\": \"\"}, \"default_prompt_name\": \"doc\", "
        "\"matryoshka_dimensions\": [64, 128]}");
    put("sentence_bert_config.json", "{\"max_seq_length\": 256}");
    put("tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656}");
    cr_assert_eq(read_all(), STATUS_OK, "%s", status_message());
    cr_assert_eq(head, TEXT_HEAD_TOKENS);
    cr_assert(t.label_count == 2 && strcmp(t.labels[1], "B-X") == 0);
    cr_assert_str_eq(model_text_prompt(&t, "query", 5)->text, "query: ");
    cr_assert_null(model_text_prompt(&t, "other", 5));
    cr_assert_str_eq(t.default_prompt->name, "doc");
    cr_assert(t.dimension_count == 2 && t.dimensions[1] == 128);
    cr_assert_eq(t.tokens_max, 256);
}

Test(text_files, what_is_wrong_is_named)
{
    static const struct {
        const char *file, *text, *words;
    } cases[] = {
        {"config.json", "{", "config.json"},
        {"config.json",
         "{\"architectures\": [\"XForTokenClassification\"], \"id2label\": {\"7\": "
         "\"a\"}}",
         "id2label.7"},
        {"config_sentence_transformers.json", "{\"prompts\": {\"q\": 1}}", "prompts.q"},
        {"config_sentence_transformers.json",
         "{\"prompts\": {\"q\": \"\"}, \"default_prompt_name\": \"d\"}", "'d'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("config.json", "{}");
        put(cases[i].file, cases[i].text);
        cr_assert_eq(read_all(), STATUS_CORRUPT, "%s", cases[i].text);
        cr_assert(strstr(status_message(), cases[i].words), "%s", status_message());
        put("config_sentence_transformers.json", "{}");
    }
}
