#include "base/tensor.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

Test(tensor, rejects_shapes_that_are_no_memory)
{
    tensor t = {.rank = -7};
    int64_t negative[] = {2, -1}, huge[] = {INT64_MAX, 2}, empty_and_huge[] = {0, INT64_MAX, 4};
    int64_t many[TENSOR_RANK_MAX + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    cr_assert_eq(tensor_set_shape(&t, DTYPE_F32, 2, negative), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(tensor_set_shape(&t, DTYPE_U8, 2, huge), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(tensor_set_shape(&t, DTYPE_F32, 3, empty_and_huge), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(tensor_set_shape(&t, DTYPE_F32, TENSOR_RANK_MAX + 1, many),
                 STATUS_INVALID_ARGUMENT);
    cr_assert_eq(tensor_set_shape(&t, DTYPE_F32, -1, many), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(t.rank, -7, "a failure leaves the tensor untouched");
}

Test(tensor, allocates_zeroed_aligned_memory)
{
    arena a = {0};
    tensor t;
    int64_t dims[] = {3, 5, 7};
    memset(arena_allocate(&a, 5000), 0xff, 5000);
    arena_reset(&a, SIZE_MAX);
    cr_assert_eq(tensor_allocate(&t, &a, DTYPE_F32, 3, dims), STATUS_OK);
    cr_assert_eq(tensor_count(&t), 105);
    cr_assert_eq(tensor_bytes(&t), 420);
    cr_assert_eq((uintptr_t)t.data % 64, 0);
    for (int i = 0; i < 105; i++)
        cr_assert_eq(tensor_get_number(&t, i), 0);
    cr_assert_eq(tensor_allocate(&t, &a, DTYPE_F32, 0, NULL), STATUS_OK);
    cr_assert_eq(tensor_count(&t), 1);
    arena_dispose(&a);
}

Test(tensor, numbers_survive_each_type)
{
    for (int type = 0; type < DTYPE_BYTES; type++) {
        arena a = {0};
        tensor t;
        int64_t dims[] = {4};
        cr_assert_eq(tensor_allocate(&t, &a, (dtype)type, 1, dims), STATUS_OK);
        for (int i = 0; i < 4; i++) {
            double value = type == DTYPE_BOOL ? i % 2 : dtype_is_signed((dtype)type) ? i - 2 : i;
            tensor_set_number(&t, i, value);
            cr_assert_eq(tensor_get_number(&t, i), value, "%s", dtype_name((dtype)type));
            cr_assert_eq(tensor_get_integer(&t, i), (int64_t)value);
        }
        arena_dispose(&a);
    }
}

Test(tensor, compares_and_prints_shapes)
{
    char text[TENSOR_SHAPE_TEXT_BYTES];
    tensor a = {.rank = 2, .dims = {2, 3, 9}}, b = {.rank = 2, .dims = {2, 3, 4}};
    cr_assert(tensor_same_shape(&a, &b), "dims past the rank do not count");
    b.dims[1] = 4;
    cr_assert_not(tensor_same_shape(&a, &b));
    b = (tensor){.rank = 1, .dims = {2}};
    cr_assert_not(tensor_same_shape(&a, &b));
    cr_assert_str_eq(tensor_shape_text(text, 2, a.dims), "[2,3]");
    cr_assert_str_eq(tensor_shape_text(text, 0, NULL), "[]");
    int64_t large[8];
    for (int i = 0; i < 8; i++)
        large[i] = INT64_MIN;
    cr_assert_lt(strlen(tensor_shape_text(text, 8, large)), sizeof text);
}
