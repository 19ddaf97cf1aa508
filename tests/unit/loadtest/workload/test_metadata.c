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
