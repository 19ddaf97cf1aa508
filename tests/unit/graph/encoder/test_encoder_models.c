#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/graph/encoder/check.h"

/* Whole models, as the importers deliver them. */

static void check_hugging_face(const char *name)
{
    char path[500];
    snprintf(path, sizeof path, "%s/tests/data/hugging_face/%s", PENSTOCK_SOURCE_DIR, name);
    graph *g = check_import(path);
    check_recognised(g, name, 2e-5, NULL);
    graph_destroy(g);
}

Test(hugging_face, bert)
{
    check_hugging_face("bert");
    check_hugging_face("bert_classes");
    check_hugging_face("bert_answers");
    check_hugging_face("electra_classes");
}

Test(hugging_face, roberta_and_xlm_roberta)
{
    check_hugging_face("roberta_classes");
    check_hugging_face("xlm_roberta");
}

Test(hugging_face, distilbert)
{
    check_hugging_face("distilbert_classes");
}

Test(hugging_face, mpnet)
{
    check_hugging_face("mpnet");
}

Test(hugging_face, sentence_encoder)
{
    check_hugging_face("sentence");
}

/* Lowest-float masks leave a row without real tokens attention to all of its positions alike. */
Test(hugging_face, rows_without_tokens)
{
    static const char *const names[] = {"bert", "sentence", "mpnet"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s/tests/data/hugging_face/%s", PENSTOCK_SOURCE_DIR, names[i]);
        graph *g = check_import(path);
        check_empty_row(g, names[i], 2e-5);
        graph_destroy(g);
    }
}

/* Opens a model of ../shared/models, or skips the test, visibly. */
static graph *open_shared(const char *name)
{
    char path[500];
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(path, sizeof path, "%s/models/models/%s.onnx",
             shared != NULL ? shared : PENSTOCK_SOURCE_DIR "/../shared", name);
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is not there", path);
    return check_import(path);
}

static void check_shared(const char *name, double tolerance)
{
    graph *g = open_shared(name);
    check_recognised(g, name, tolerance, NULL);
    graph_destroy(g);
}

Test(exports, bert_by_the_older_exporter)
{
    check_shared("bert_tiny_legacy", 2e-5);
    check_shared("bert_tiny_cls_legacy", 2e-5);
}

Test(exports, bert_by_the_newer_exporter)
{
    check_shared("bert_tiny_dynamo", 2e-5);
}

Test(exports, distilbert_and_roberta)
{
    check_shared("distilbert_tiny_legacy", 2e-5);
    check_shared("roberta_tiny_legacy", 2e-5);
}

Test(exports, weights_in_half_precision)
{
    check_shared("bert_tiny_bf16_weights", 2e-5);
    /* The graph rounds every step to binary16; the encoder does not. */
    check_shared("bert_tiny_half_legacy", 3e-2);
    check_shared("bert_tiny_fp16", 3e-2);
}

static void reject_shared(const char *name, const char *words)
{
    graph *g = open_shared(name);
    check_rejected(g, words);
    graph_destroy(g);
}

Test(exports, quantised_models_are_left_as_they_are)
{
    reject_shared("bert_tiny_int8_dynamic", "quantised by the model itself");
    reject_shared("bert_tiny_int8_qdq", "quantised by the model itself");
    reject_shared("bert_tiny_int8_qdq_u8s8", "quantised by the model itself");
}

Test(exports, models_of_another_kind)
{
    reject_shared("resnet_tiny", "no input of token ids");
    reject_shared("digits_mlp", "no input of token ids");
}
