#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file_reader.h"
#include "chance.h"
#include "devices/cpu/evaluate.h"
#include "graph/import.h"
#include "graph/specialise/specialise.h"
#include "tests/support/temporary.h"

/* Hugging Face folders with invalid values in config.json or model.safetensors. */

#define SOURCE PENSTOCK_SOURCE_DIR "/tests/data/hugging_face/"

static const char *const odd_values[] = {
    "null",
    "true",
    "false",
    "-1",
    "0",
    "1",
    "3",
    "5",
    "1.5",
    "1e308",
    "-0.5",
    "1e-12",
    "1000000007",
    "9223372036854775807",
    "-9223372036854775808",
    "\"\"",
    "\"x\"",
    "\"12\"",
    "[]",
    "[1]",
    "{}",
    "{\"a\": [[[[[[1]]]]]]}",
};

static char folder[TEMPORARY_FOLDER_BYTES];

static void begin(const char *name)
{
    char from[300], to[300];
    temporary_make(folder);
    snprintf(from, sizeof from, SOURCE "%s/model.safetensors", name);
    snprintf(to, sizeof to, "%s/model.safetensors", folder);
    cr_assert_eq(symlink(from, to), 0);
}

static json_t *read_config(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, SOURCE "%s/config.json", name);
    json_t *config = json_load_file(path, 0, NULL);
    cr_assert_not_null(config);
    return config;
}

/* Imports the folder and runs its shapes. */
static status import(void)
{
    graph *g = NULL;
    status s = graph_import_hugging_face(folder, NULL, NULL, &g);
    if (s == STATUS_OK)
        s = graph_infer_symbolic(g, NULL, cpu_evaluate_node);
    graph_destroy(g);
    return s;
}

static status import_with(const char *name, const char *key, const char *value)
{
    json_t *config = read_config(name);
    json_object_set_new(config, key, json_loads(value, JSON_DECODE_ANY, NULL));
    char *text = json_dumps(config, JSON_ENCODE_ANY);
    temporary_write_text(folder, "config.json", text);
    free(text);
    json_decref(config);
    return import();
}

/* Any value of a key is accepted, or rejected with the name of the key. */
static void check_keys(const char *name, const char *const *keys)
{
    begin(name);
    for (; *keys != NULL; keys++) {
        int rejected = 0;
        for (size_t i = 0; i < sizeof odd_values / sizeof odd_values[0]; i++) {
            status s = import_with(name, *keys, odd_values[i]);
            rejected += s != STATUS_OK;
            cr_expect(s == STATUS_OK || strstr(status_message(), *keys) != NULL, "%s %s: %s: %s",
                      name, *keys, odd_values[i], status_message());
        }
        cr_expect_geq(rejected, 11, "%s %s: rejected %d times only", name, *keys, rejected);
    }
    temporary_remove(folder);
}

Test(hostile_hugging_face, every_key_of_a_configuration_is_taken_or_named)
{
    static const char *const bert[] = {"model_type",
                                       "hidden_size",
                                       "num_hidden_layers",
                                       "num_attention_heads",
                                       "vocab_size",
                                       "intermediate_size",
                                       "max_position_embeddings",
                                       "type_vocab_size",
                                       "layer_norm_eps",
                                       "hidden_act",
                                       "position_embedding_type",
                                       "is_decoder",
                                       "add_cross_attention",
                                       "architectures",
                                       NULL};
    static const char *const distilbert[] = {"dim",        "n_layers",   "n_heads",
                                             "hidden_dim", "activation", NULL};
    static const char *const roberta[] = {"pad_token_id", "hidden_size", NULL};
    static const char *const mpnet[] = {"relative_attention_num_buckets", NULL};
    check_keys("bert", bert);
    check_keys("distilbert_classes", distilbert);
    check_keys("roberta_classes", roberta);
    check_keys("mpnet", mpnet);
}

Test(hostile_hugging_face, every_key_of_a_newer_configuration_is_taken_or_named)
{
    static const char *const modern_bert[] = {
        "hidden_size",       "num_hidden_layers", "num_attention_heads", "intermediate_size",
        "layer_types",       "local_attention",   "global_rope_theta",   "rope_parameters",
        "hidden_activation", "norm_eps",          "classifier_pooling",  NULL};
    static const char *const decoder[] = {"hidden_size",
                                          "num_hidden_layers",
                                          "num_attention_heads",
                                          "num_key_value_heads",
                                          "head_dim",
                                          "intermediate_size",
                                          "max_position_embeddings",
                                          "rms_norm_eps",
                                          "rope_theta",
                                          "rope_scaling",
                                          "partial_rotary_factor",
                                          "use_sliding_window",
                                          "is_causal",
                                          NULL};
    static const char *const mistral[] = {"sliding_window", NULL};
    static const char *const nomic_bert[] = {"n_embd",  "n_head",          "n_layer", "n_inner",
                                             "prenorm", "rotary_emb_base", NULL};
    static const char *const jina_bert[] = {"num_attention_heads", "feed_forward_type",
                                            "type_vocab_size", NULL};
    static const char *const deberta[] = {
        "hidden_size",      "num_attention_heads",    "type_vocab_size",
        "position_buckets", "max_relative_positions", "norm_rel_ebd",
        "conv_kernel_size", "pooler_hidden_act",      NULL};
    static const char *const albert[] = {"hidden_size",       "embedding_size",  "hidden_act",
                                         "num_hidden_groups", "inner_group_num", NULL};
    check_keys("modernbert", modern_bert);
    check_keys("qwen3", decoder);
    check_keys("mistral", mistral);
    check_keys("nomic_bert", nomic_bert);
    check_keys("jina_bert", jina_bert);
    check_keys("deberta_v3", deberta);
    check_keys("albert_groups", albert);
}

/* The header in front of the tensors, with one value in it changed. */
static void change_header(uint8_t *data, size_t bytes, chance *c)
{
    uint64_t header_bytes;
    memcpy(&header_bytes, data, 8);
    size_t end = 8 + (size_t)header_bytes < bytes ? 8 + (size_t)header_bytes : bytes;
    static const char marks[] = "0123456789[]{}\":,-eFB16";
    for (uint32_t n = 0; n <= chance_below(c, 3); n++) {
        size_t at = 8 + chance_below(c, (uint32_t)(end - 8));
        bool is_digit = data[at] >= '0' && data[at] <= '9';
        if (is_digit && chance_below(c, 4))
            data[at] = (uint8_t)('0' + chance_below(c, 10));
        else
            data[at] = (uint8_t)marks[chance_below(c, sizeof marks - 1)];
    }
    if (chance_below(c, 10) == 0) {
        int64_t lie = chance_number(c);
        memcpy(data, &lie, 8);
    }
}

static void change_weights(const char *name, long rounds)
{
    char path[300];
    void *data;
    size_t bytes;
    temporary_make(folder);
    json_t *config = read_config(name);
    char *text = json_dumps(config, 0);
    temporary_write_text(folder, "config.json", text);
    free(text);
    json_decref(config);
    snprintf(path, sizeof path, SOURCE "%s/model.safetensors", name);
    cr_assert_eq(file_reader_read_whole(path, 1 << 20, &data, &bytes), STATUS_OK);
    uint8_t *changed = malloc(bytes);
    for (long i = 1; i <= rounds; i++) {
        chance c = {(uint64_t)i * 7919};
        size_t left = chance_below(&c, 8) ? bytes : chance_below(&c, (uint32_t)bytes);
        memcpy(changed, data, bytes);
        if (left > 16)
            change_header(changed, left, &c);
        temporary_write(folder, "model.safetensors", changed, left);
        status s = import();
        cr_assert(s == STATUS_OK || status_message()[0] != 0);
        cr_assert_neq(s, STATUS_INTERNAL, "%s", status_message());
    }
    free(changed);
    free(data);
    temporary_remove(folder);
}

Test(hostile_hugging_face, weights_that_lie_are_rejected_or_harmless)
{
    const char *more = getenv("HOSTILE_ROUNDS");
    long rounds = more != NULL ? 10 * atol(more) : 600;
    change_weights("bert", rounds);
    change_weights("modernbert", rounds / 4);
    change_weights("qwen3", rounds / 4);
    change_weights("gte_new", rounds / 4);
    change_weights("deberta_v3", rounds / 4);
}
