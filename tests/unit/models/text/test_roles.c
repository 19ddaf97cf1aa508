#include <criterion/criterion.h>
#include <string.h>

#include "models/text/roles.h"

static model m;
static model_text t;

static model_tensor of(const char *name, dtype type, int rank, int sequence_axis, int64_t last)
{
    model_tensor x = {.name = name, .dtype = type, .rank = rank, .sequence_axis = sequence_axis};
    for (int i = 0; i < rank; i++)
        x.dims[i] = i == 0 || i == sequence_axis ? -1 : last;
    return x;
}

static void begin(void)
{
    memset(&m, 0, sizeof m);
    memset(&t, 0, sizeof t);
    m.inputs[0] = of("attention_mask", DTYPE_I64, 2, 1, 0);
    m.inputs[1] = of("input_ids", DTYPE_I64, 2, 1, 0);
    m.inputs[1].id_limit = 100;
    m.input_count = 2;
}

static void add_output(model_tensor x)
{
    m.outputs[m.output_count++] = x;
}

TestSuite(roles, .init = begin);

Test(roles, inputs_are_found_by_name)
{
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_NONE), STATUS_OK);
    cr_assert(t.ids == 1 && t.mask == 0 && t.types == -1);
    m.inputs[2] = of("segment_ids", DTYPE_I32, 2, 1, 0);
    m.input_count = 3;
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_NONE), STATUS_OK);
    cr_assert_eq(t.types, 2);
}

Test(roles, an_input_that_no_tokenizer_fills_is_refused_unless_it_is_optional)
{
    m.inputs[2] = of("pixels", DTYPE_F32, 2, -1, 3);
    m.input_count = 3;
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_NONE), STATUS_UNSUPPORTED);
    cr_assert(strstr(status_message(), "pixels"));
    m.inputs[2].is_optional = true;
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_NONE), STATUS_OK);
    m.inputs[1].dtype = DTYPE_F32;
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_NONE), STATUS_UNSUPPORTED);
}

Test(roles, a_sentence_embedding_is_preferred_to_a_pooler)
{
    add_output(of("last_hidden_state", DTYPE_F32, 3, 1, 8));
    add_output(of("pooler_output", DTYPE_F32, 2, -1, 8));
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_NONE), STATUS_OK);
    cr_assert(t.tokens == 0 && t.sentence == -1);
    add_output(of("sentence_embedding", DTYPE_F32, 2, -1, 8));
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_NONE), STATUS_OK);
    cr_assert(t.tokens == 0 && t.sentence == 2);
}

Test(roles, heads_are_told_apart_by_config_and_shape)
{
    add_output(of("logits", DTYPE_F32, 2, -1, 3));
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_SEQUENCE), STATUS_OK);
    cr_assert(t.logits == 0 && t.sentence == -1);
    m.outputs[0] = of("logits", DTYPE_F32, 3, 1, 4);
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_TOKENS), STATUS_OK);
    cr_assert(t.token_logits == 0 && t.logits == -1 && t.tokens == -1);
    m.outputs[0] = of("logits", DTYPE_F32, 3, 1, 100);
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_WORDS), STATUS_OK);
    cr_assert(t.words == 0 && t.tokens == -1 && t.logits == -1);
    m.outputs[0] = of("end_logits", DTYPE_F32, 2, 1, 0);
    add_output(of("start_logits", DTYPE_F32, 2, 1, 0));
    cr_assert_eq(text_roles_find(&t, &m, TEXT_HEAD_ANSWER), STATUS_OK);
    cr_assert(t.end_logits == 0 && t.start_logits == 1);
}
