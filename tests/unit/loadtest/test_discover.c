#include "loadtest/discover.h"

#include <criterion/criterion.h>

Test(discover, paths)
{
    char model[64];
    source_format format;
    cr_expect(discover_path("/v2/models/a/infer", model, sizeof model, &format));
    cr_expect_str_eq(model, "a");
    cr_expect(discover_path("/v2/models/bert/versions/3/infer?x=1", model, sizeof model, &format));
    cr_expect_str_eq(model, "bert");
    cr_expect_eq(format, SOURCE_KSERVE);
    cr_expect(discover_path("/v1/models/half:predict", model, sizeof model, &format));
    cr_expect_str_eq(model, "half");
    cr_expect_eq(format, SOURCE_TENSORFLOW);
    cr_expect_not(discover_path("/v2/models/a", model, sizeof model, &format));
    cr_expect_not(discover_path("/predict", model, sizeof model, &format));
    cr_expect_not(discover_path("/v2/models//infer", model, sizeof model, &format));
}
