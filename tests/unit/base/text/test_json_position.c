#include "base/text/json_position.h"

#include <criterion/criterion.h>
#include <string.h>

Test(json_position, lines_are_those_of_keys_and_elements)
{
    const char *text = "{\n"
                       "  \"a\": [1, \"]},\\\"{\",\n"
                       "    {\"b\":\n"
                       "  2, \"c\" : 3}],\n"
                       "  \"d\": {\"e\": null}\n"
                       "}";
    json_path root = {0}, a = {&root, "a", 0}, a1 = {&a, NULL, 1}, a2 = {&a, NULL, 2},
              b = {&a2, "b", 0}, c = {&a2, "c", 0}, d = {&root, "d", 0}, e = {&d, "e", 0},
              missing = {&a2, "zzz", 0};
    size_t bytes = strlen(text);
    cr_expect_eq(json_position_line(text, bytes, &a), 2);
    cr_expect_eq(json_position_line(text, bytes, &a1), 2);
    cr_expect_eq(json_position_line(text, bytes, &b), 3);
    cr_expect_eq(json_position_line(text, bytes, &c), 4);
    cr_expect_eq(json_position_line(text, bytes, &e), 5);
    cr_expect_eq(json_position_line(text, bytes, &missing), 3);
}
