#include "loadtest/workload/metadata.h"

#include <criterion/criterion.h>
#include <string.h>

Test(metadata, broken_metadata_is_refused)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"inputs\":[]}",
        "{\"inputs\":[{}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP31\",\"shape\":[1]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,\"a\"]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,1,1,1,1,1,1,1,1]}]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        metadata m;
        cr_expect_neq(metadata_parse_kserve(&m, wrong[i], strlen(wrong[i])), STATUS_OK, "%s",
                      wrong[i]);
        cr_expect_neq(metadata_parse_tensorflow(&m, wrong[i], strlen(wrong[i])), STATUS_OK);
    }
}

Test(metadata, texts_beside_tokens_are_not_sent)
{
    static const char both[] =
        "{\"inputs\":[{\"name\":\"input_ids\",\"datatype\":\"INT64\",\"shape\":[-1,-1]},"
        "{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[-1]}]}";
    static const char alone[] =
        "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[-1]}]}";
    metadata m;
    cr_assert_eq(metadata_parse_kserve(&m, both, strlen(both)), STATUS_OK);
    cr_assert(m.input_count == 1 && strcmp(m.inputs[0].name, "input_ids") == 0);
    metadata_dispose(&m);
    cr_assert_eq(metadata_parse_kserve(&m, alone, strlen(alone)), STATUS_OK);
    cr_assert_eq(m.input_count, 1);
    metadata_dispose(&m);
}
