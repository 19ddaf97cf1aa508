#include "graph/encoder/encoder.h"
#include "graph/import.h"
#include "tests/support/temporary.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Structure and rejections; test_import_numbers.c compares the results with those of PyTorch. */

#define DATA_FOLDER PENSTOCK_SOURCE_DIR "/tests/data/hugging_face"

static graph *import(const char *name, const char *pooling)
{
    char path[600];
    graph *g = NULL;
    snprintf(path, sizeof path, "%s/%s", DATA_FOLDER, name);
    status s = graph_import_hugging_face(path, pooling, NULL, &g);
    cr_assert_eq(s, STATUS_OK, "%s", status_message());
    return g;
}

Test(import_hugging_face, names_inputs_and_outputs)
{
    static const struct {
        const char *folder, *source, *outputs[2];
        int inputs;
        int64_t sequence_max;
    } cases[] = {
        {"bert", "hugging face bert", {"last_hidden_state", "pooler_output"}, 3, 20},
        {"bert_classes", "hugging face bert", {"logits"}, 3, 20},
        {"bert_answers", "hugging face bert", {"start_logits", "end_logits"}, 3, 20},
        {"roberta_classes", "hugging face roberta", {"logits"}, 2, 18},
        {"xlm_roberta", "hugging face xlm-roberta", {"last_hidden_state", "pooler_output"}, 2, 18},
        {"distilbert_classes", "hugging face distilbert", {"logits"}, 2, 20},
        {"mpnet", "hugging face mpnet", {"last_hidden_state", "pooler_output"}, 2, 168},
        {"electra_classes", "hugging face electra", {"logits"}, 3, 20},
        {"albert", "hugging face albert", {"last_hidden_state", "pooler_output"}, 3, 64},
        {"albert_classes", "hugging face albert", {"logits"}, 3, 64},
        {"sentence",
         "hugging face bert > Pooling (mean) > Normalize",
         {"sentence_embedding"},
         3,
         20},
        {"chain_dense_norm",
         "hugging face bert > Pooling (weightedmean, mean) > Dense (32 to 12, GELU) > LayerNorm > "
         "Normalize > Dense (12 to 7, SiLU) > Dense (7 to 5, Tanh)",
         {"sentence_embedding"},
         3,
         64},
        {"mistral", "hugging face mistral", {"last_hidden_state"}, 2, 64},
        {"deberta_v3", "hugging face deberta-v2", {"last_hidden_state"}, 2, 64},
        {"nomic_bert", "hugging face nomic_bert", {"last_hidden_state"}, 3, 64},
    };
    static const char *const inputs[] = {"input_ids", "attention_mask", "token_type_ids"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graph *g = import(cases[i].folder, NULL);
        cr_assert_str_eq(g->source, cases[i].source);
        cr_assert_eq(g->input_count, cases[i].inputs);
        for (int j = 0; j < g->input_count; j++) {
            const graph_value *v = &g->values[g->inputs[j]];
            cr_assert_str_eq(v->name, inputs[j]);
            cr_assert_eq(v->dtype, DTYPE_I64);
            cr_assert(v->shape.dims[0].batch == 1 && v->shape.dims[1].sequence == 1);
        }
        cr_assert_eq(g->output_count, cases[i].outputs[1] != NULL ? 2 : 1);
        for (int j = 0; j < g->output_count; j++)
            cr_assert_str_eq(g->values[g->outputs[j]].name, cases[i].outputs[j]);
        cr_assert_eq(g->sequence_max, cases[i].sequence_max);
        graph_destroy(g);
    }
}

Test(import_hugging_face, pooling_can_be_chosen)
{
    graph *g = import("sentence", "none");
    cr_assert_str_eq(g->values[g->outputs[0]].name, "last_hidden_state");
    graph_destroy(g);
    static const char *const modes[] = {"mean", "cls", "max", "mean_sqrt_len"};
    for (int i = 0; i < 4; i++) {
        g = import("bert", modes[i]);
        cr_assert_eq(g->output_count, 1);
        cr_assert_str_eq(g->values[g->outputs[0]].name, "sentence_embedding");
        graph_destroy(g);
    }
}

static char folder[TEMPORARY_FOLDER_BYTES];

static void make_folder(void)
{
    temporary_make(folder);
}

static void remove_folder(void)
{
    temporary_remove(folder);
}

TestSuite(import_hugging_face_folder, .init = make_folder, .fini = remove_folder);

static void run(const char *format, const char *a, const char *b)
{
    char command[2000];
    snprintf(command, sizeof command, format, a, b);
    cr_assert_eq(system(command), 0);
}

static void copy_model(const char *name)
{
    char from[600];
    snprintf(from, sizeof from, "%s/%s", DATA_FOLDER, name);
    run("cp -r '%s/.' '%s'", from, folder);
}

static void expect_failure(status code, const char *word)
{
    graph *g = NULL;
    status s = graph_import_hugging_face(folder, NULL, NULL, &g);
    cr_assert_eq(s, code, "%s: %s", status_name(s), s ? status_message() : "imported");
    cr_assert(strstr(status_message(), word) != NULL, "'%s' lacks '%s'", status_message(), word);
    cr_assert(strstr(status_message(), folder) != NULL);
}

Test(import_hugging_face_folder, says_what_is_missing_or_not_supported)
{
    expect_failure(STATUS_NOT_FOUND, "config.json");
    copy_model("bert");
    run("sed -i 's/\"model_type\": \"bert\"/\"model_type\": \"gpt2\"/' '%s/config.json'%s", folder,
        "");
    expect_failure(STATUS_UNSUPPORTED, "gpt2");
    copy_model("bert");
    run("sed -i 's/gelu_new/maxout/' '%s/config.json'%s", folder, "");
    expect_failure(STATUS_UNSUPPORTED, "maxout");
    copy_model("bert");
    run("sed -i 's/\"num_attention_heads\": 2/\"num_attention_heads\": 3/' '%s/config.json'%s",
        folder, "");
    expect_failure(STATUS_CORRUPT, "num_attention_heads, 3");
    copy_model("bert");
    run("sed -i 's/\"num_hidden_layers\": 2/\"num_hidden_layers\": 3/' '%s/config.json'%s", folder,
        "");
    expect_failure(STATUS_CORRUPT, "encoder.layer.2.");
    copy_model("bert");
    run("sed -i 's/\"BertModel\"/\"BertForTokenClassification\"/' '%s/config.json'%s", folder, "");
    expect_failure(STATUS_CORRUPT, "architectures");
    copy_model("bert");
    run("echo '{' > '%s/config.json'%s", folder, "");
    expect_failure(STATUS_CORRUPT, "config.json: line");
    copy_model("bert");
    run("rm '%s/model.safetensors'%s", folder, "");
    expect_failure(STATUS_NOT_FOUND, "model.safetensors");
    run("touch '%s/pytorch_model.bin'%s", folder, "");
    expect_failure(STATUS_UNSUPPORTED, "pytorch_model.bin: only safetensors");
    run("printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 9\\n' > "
        "'%s/model.safetensors'%s",
        folder, "");
    expect_failure(STATUS_CORRUPT, "git lfs pull");
    copy_model("bert");
    run("sed -i 's/\"model_type\"/\"quantization_config\": {\"bits\": 4}, &/' '%s/config.json'%s",
        folder, "");
    expect_failure(STATUS_UNSUPPORTED, "quantization_config");
}

static void set_key(const char *file, const char *key, const char *value)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    json_t *json = json_load_file(path, 0, NULL);
    cr_assert_eq(json_object_set_new(json, key, json_loads(value, JSON_DECODE_ANY, NULL)), 0);
    cr_assert_eq(json_dump_file(json, path, 0), 0);
    json_decref(json);
}

/* Settings that would change the computation. */
Test(import_hugging_face_folder, rejects_settings_that_it_does_not_compute)
{
    static const struct {
        const char *folder, *file, *key, *value;
    } cases[] = {
        {"bert", "config.json", "position_embedding_type", "\"relative_key\""},
        {"bert", "config.json", "is_decoder", "true"},
        {"modernbert", "config.json", "layer_types", "[\"chunked_attention\"]"},
        {"modernbert", "config.json", "classifier_pooling", "\"max\""},
        {"modernbert", "config.json", "hidden_activation", "\"relu2\""},
        {"qwen3", "config.json", "is_causal", "false"},
        {"qwen3", "config.json", "use_bidirectional_attention", "true"},
        {"mistral", "config.json", "rope_scaling", "{\"type\": \"yarn\", \"factor\": 4.0}"},
        {"llama", "config.json", "partial_rotary_factor", "0.5"},
        {"nomic_bert", "config.json", "prenorm", "true"},
        {"nomic_bert", "config.json", "rotary_emb_fraction", "0.5"},
        {"nomic_bert", "config.json", "rotary_emb_interleaved", "true"},
        {"nomic_bert", "config.json", "rotary_scaling_factor", "2.0"},
        {"nomic_bert", "config.json", "use_rms_norm", "true"},
        {"nomic_bert", "config.json", "activation_function", "\"gelu\""},
        {"gte_new", "config.json", "logn_attention_scale", "true"},
        {"gte_new", "config.json", "layer_norm_type", "\"rms_norm\""},
        {"jina_bert", "config.json", "feed_forward_type", "\"original\""},
        {"deberta_v3", "config.json", "conv_kernel_size", "3"},
        {"deberta_v3", "config.json", "norm_rel_ebd", "\"batch\""},
        {"chain_last_dense", "2_Dense/config.json", "use_residual", "true"},
        {"chain_last_dense", "2_Dense/config.json", "module_input_name", "\"token_embeddings\""},
        {"chain_last_dense", "2_Dense/config.json", "activation_function", "\"torch.nn.ELU\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        copy_model(cases[i].folder);
        set_key(cases[i].file, cases[i].key, cases[i].value);
        expect_failure(STATUS_UNSUPPORTED, "");
        cr_expect(strstr(status_message(), cases[i].key) != NULL ||
                      strstr(status_message(), "activation") != NULL ||
                      strstr(status_message(), "rope") != NULL,
                  "%s %s: '%s'", cases[i].folder, cases[i].key, status_message());
    }
}

static graph *import_copy(void)
{
    graph *g = NULL;
    cr_assert_eq(graph_import_hugging_face(folder, NULL, NULL, &g), STATUS_OK, "%s",
                 status_message());
    return g;
}

/* Three times a group of two layers: transformers takes groups 0, 0 and 1. */
Test(import_hugging_face_folder, layers_of_an_albert_share_weights_by_group)
{
    copy_model("albert_groups");
    graph *g = import_copy();
    const encoder_layer *layers = g->described->layers;
    cr_assert_eq(g->described->layer_count, 6);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++)
            cr_expect_eq(layers[i].query.weight == layers[j].query.weight, i < 4 && i - j == 2,
                         "%d %d", i, j);
    cr_expect_eq(layers[5].activation, ENCODER_GELU);
    graph_destroy(g);
    set_key("config.json", "num_hidden_groups", "1");
    expect_failure(STATUS_CORRUPT, "num_hidden_groups is 1");
    set_key("config.json", "num_hidden_groups", "3");
    expect_failure(STATUS_CORRUPT, "num_hidden_groups is 3");
    copy_model("albert_groups");
    set_key("config.json", "inner_group_num", "1");
    expect_failure(STATUS_CORRUPT, "inner_group_num is 1");
    set_key("config.json", "inner_group_num", "3");
    expect_failure(STATUS_CORRUPT, "inner_group_num is 3");
    set_key("config.json", "inner_group_num", "400");
    expect_failure(STATUS_TOO_LARGE, "inner_group_num 400");
}

Test(import_hugging_face_folder, what_an_albert_does_not_say)
{
    copy_model("albert");
    set_key("config.json", "num_hidden_groups", "null");
    set_key("config.json", "inner_group_num", "null");
    set_key("config.json", "hidden_act", "null");
    graph *g = import_copy();
    cr_expect_eq(g->described->layers[2].activation, ENCODER_GELU_TANH);
    cr_expect_eq(g->described->layers[2].down.weight, g->described->layers[0].down.weight);
    graph_destroy(g);
    set_key("config.json", "embedding_size", "8");
    expect_failure(STATUS_CORRUPT, "embedding_size is 8");
}

Test(import_hugging_face_folder, rejects_poolings_it_does_not_know)
{
    copy_model("sentence");
    run("echo '{\"pooling_mode_attention\": true}' > '%s/1_Pooling/config.json'%s", folder, "");
    expect_failure(STATUS_UNSUPPORTED, "pooling_mode_attention");
    run("echo '{\"pooling_mode\": \"median\"}' > '%s/1_Pooling/config.json'%s", folder, "");
    expect_failure(STATUS_UNSUPPORTED, "median");
    graph *g = NULL;
    run("echo '{\"pooling_mode\": \"max\"}' > '%s/1_Pooling/config.json'%s", folder, "");
    cr_assert_eq(graph_import_hugging_face(folder, NULL, NULL, &g), STATUS_OK);
    graph_destroy(g);
    run("sed -i 's/models.Normalize/models.LSTM/' '%s/modules.json'%s", folder, "");
    expect_failure(STATUS_UNSUPPORTED, "LSTM");
    cr_assert_eq(graph_import_hugging_face(folder, "median", NULL, &g), STATUS_UNSUPPORTED);
}

Test(import_hugging_face_folder, reads_sharded_weights)
{
    copy_model("bert");
    run("mv '%s/model.safetensors' '%s/part-1.safetensors'", folder, folder);
    run("echo '{\"weight_map\":{\"a\":\"part-1.safetensors\",\"b\":\"part-1.safetensors\"}}' > "
        "'%s/model.safetensors.index.json'%s",
        folder, "");
    graph *g = NULL;
    cr_assert_eq(graph_import_hugging_face(folder, NULL, NULL, &g), STATUS_OK, "%s",
                 status_message());
    graph_destroy(g);
    run("echo '{\"weight_map\":{\"a\":\"../part-1.safetensors\"}}' > "
        "'%s/model.safetensors.index.json'%s",
        folder, "");
    expect_failure(STATUS_CORRUPT, "not in a file of this folder");
}
