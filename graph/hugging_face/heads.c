#include <string.h>

#include "graph/hugging_face/hugging_face.h"

/* The outputs of a folder without sentence-transformers' modules: classes, answers, or the hidden
 * states and, where the weights have one, the pooler's. */

static encoder_output *add_output(hf_builder *b, encoder_pooling pooling, const char *name,
                                  const char **names)
{
    encoder_output *o = &b->e->outputs[b->e->output_count];
    names[b->e->output_count++] = name;
    *o = (encoder_output){.pooling = pooling};
    return o;
}

static void add_dense(encoder_output *o, encoder_linear linear, encoder_head_activation activation)
{
    o->head[o->head_count++] = (encoder_head_layer){.linear = linear, .activation = activation};
}

static encoder_linear square(hf_builder *b, const char *name)
{
    return hf_linear(b, name, -1, b->config->hidden);
}

static const char *pooler_name(hf_builder *b)
{
    return hf_name(b, b->config->family == HF_ALBERT ? "pooler" : "pooler.dense");
}

static void add_pooler(hf_builder *b, encoder_output *o)
{
    add_dense(o, square(b, pooler_name(b)), ENCODER_HEAD_TANH);
}

/* The classifier after what the output has computed so far. */
static void add_classes(hf_builder *b, encoder_output *o, const char *name)
{
    int64_t in =
        o->head_count > 0 ? hf_width(&o->head[o->head_count - 1].linear) : b->config->hidden;
    add_dense(o, hf_linear(b, hf_root_name(b, name), -1, in), ENCODER_HEAD_NONE);
}

/* ModernBERT's head: dense, activation, norm. */
static void add_prediction_head(hf_builder *b, encoder_output *o)
{
    const char *activation = b->config->class_activation;
    add_dense(o, square(b, hf_root_name(b, "head.dense")),
              hf_head_activation(b, "classifier_activation", activation));
    o->head[o->head_count - 1].norm =
        hf_norm(b, hf_root_name(b, "head.norm"), hf_width(&o->head[o->head_count - 1].linear));
}

static void describe_classes(hf_builder *b, const char **names)
{
    encoder_output *o = add_output(b, ENCODER_POOLING_FIRST, "logits", names);
    const char *dense = hf_root_name(b, "classifier.dense");
    switch (b->config->family) {
    case HF_BERT:
    case HF_ALBERT:
    case HF_JINA_BERT:
    case HF_NOMIC_BERT:
    case HF_GTE:
        add_pooler(b, o);
        add_classes(b, o, "classifier");
        break;
    case HF_DECODER:
        o->pooling = ENCODER_POOLING_LAST;
        add_classes(b, o, "score");
        break;
    case HF_DISTILBERT:
        add_dense(o, square(b, hf_root_name(b, "pre_classifier")), ENCODER_HEAD_RELU);
        add_classes(b, o, "classifier");
        break;
    case HF_ELECTRA:
        add_dense(o, square(b, dense), ENCODER_HEAD_GELU);
        add_classes(b, o, "classifier.out_proj");
        break;
    case HF_MODERN_BERT:
        o->pooling = b->config->class_pooling;
        add_prediction_head(b, o);
        add_classes(b, o, "classifier");
        break;
    case HF_DEBERTA:
        add_dense(o, square(b, hf_root_name(b, "pooler.dense")),
                  hf_head_activation(b, "pooler_hidden_act", b->config->class_activation));
        add_classes(b, o, "classifier");
        break;
    case HF_ROBERTA:
    case HF_MPNET:
        add_dense(o, square(b, dense), ENCODER_HEAD_TANH);
        add_classes(b, o, "classifier.out_proj");
        break;
    }
}

/* Extractive question answering: the logits of the start and the end of the answer at each token,
 * [B,S] each. */
static void describe_answers(hf_builder *b, const char **names)
{
    static const char *const outputs[] = {"start_logits", "end_logits"};
    const char *name = hf_root_name(b, "qa_outputs");
    encoder_linear spans = hf_fused(b, name, 2, b->config->hidden);
    for (int i = 0; i < 2; i++) {
        encoder_output *o = add_output(b, ENCODER_POOLING_NONE, outputs[i], names);
        o->is_column = true;
        add_dense(o, hf_linear_rows(b, &spans, hf_root_name(b, outputs[i]), i, 1),
                  ENCODER_HEAD_NONE);
    }
}

void hf_describe_head(hf_builder *b, const char **names)
{
    encoder_output *o;
    switch (b->config->head) {
    case HF_SEQUENCE_CLASSES:
        describe_classes(b, names);
        break;
    case HF_TOKEN_CLASSES:
        o = add_output(b, ENCODER_POOLING_NONE, "logits", names);
        if (b->config->family == HF_MODERN_BERT)
            add_prediction_head(b, o);
        add_classes(b, o, b->config->family == HF_DECODER ? "score" : "classifier");
        break;
    case HF_ANSWER_SPANS:
        describe_answers(b, names);
        break;
    case HF_NO_HEAD:
        add_output(b, ENCODER_POOLING_NONE, "last_hidden_state", names);
        if (hf_has(b, pooler_name(b)))
            add_pooler(b, add_output(b, ENCODER_POOLING_FIRST, "pooler_output", names));
        break;
    }
}
