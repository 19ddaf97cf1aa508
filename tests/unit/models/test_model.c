#include <criterion/criterion.h>

#include "models/model.h"

static void on_unused(void *owner, model *m)
{
    *(model **)owner = m;
}

Test(model, the_last_release_hands_it_to_its_owner)
{
    model *unused = NULL, *m = model_create();
    m->references->on_unused = on_unused;
    m->references->owner = &unused;
    model_retain(m);
    model_release(m);
    cr_assert_null(unused, "one reference is left");
    model_release(m);
    cr_assert_eq(unused, m);
    model_destroy(m);
}

Test(model, dims_follow_from_rows_and_length_or_are_unknown)
{
    model *m = model_create();
    int64_t dims[TENSOR_RANK_MAX];
    m->inputs[0] =
        (model_tensor){.rank = 3, .dims = {-1, -1, 5}, .batch_axis = 0, .sequence_axis = 1};
    cr_assert(model_tensor_dims(m, false, 0, 4, 7, dims));
    cr_assert(dims[0] == 4 && dims[1] == 7 && dims[2] == 5);
    m->outputs[0] =
        (model_tensor){.rank = 2, .dims = {-1, -1}, .batch_axis = 0, .sequence_axis = -1};
    cr_assert_not(model_tensor_dims(m, true, 0, 4, 7, dims), "without a graph nobody knows it");
    model_destroy(m);
}
