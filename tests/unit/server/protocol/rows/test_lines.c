#include <criterion/criterion.h>
#include <string.h>

#include "server/protocol/rows/lines.h"

static void check(bool is_csv, const char *text, const char *wanted)
{
    char out[1000];
    size_t bytes;
    cr_assert_eq(lines_to_instances(is_csv, text, strlen(text), out, &bytes), STATUS_OK, "%s: %s",
                 text, status_message());
    cr_assert(bytes <= lines_capacity(strlen(text)));
    out[bytes] = 0;
    cr_assert_str_eq(out, wanted);
}

Test(lines, json)
{
    check(false, "[1,2]\n[3,4]\n", "{\"instances\":[[1,2],[3,4]]}");
    check(false, "{\"a\":1}\r\n\r\n  \n{\"a\":2} ", "{\"instances\":[{\"a\":1},{\"a\":2}]}");
    check(false, "", "{\"instances\":[]}");
}

Test(lines, csv)
{
    check(true, "1,2.5\r\n-3,4e2\r\n", "{\"instances\":[[1,2.5],[-3,4e2]]}");
    check(true, "7\n\n8", "{\"instances\":[[7],[8]]}");
    check(true, "\"a, \"\"b\"\" \\\", c d\n", "{\"instances\":[[\"a, \\\"b\\\" \\\\\",\"c d\"]]}");
    check(true, "one text\n\"two, texts\"\n", "{\"instances\":[ \"one text\", \"two, texts\"]}");
    check(true, "a\nb\nc\n", "{\"instances\":[ \"a\", \"b\", \"c\"]}");
}

Test(lines, csv_that_is_none)
{
    static const char *const wrong[] = {"\"a", "\"a\"b", "1,\"a\tb\"", "x\ty"};
    char out[1000];
    size_t bytes = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(lines_to_instances(true, wrong[i], strlen(wrong[i]), out, &bytes),
                     STATUS_INVALID_ARGUMENT, "%s", wrong[i]);
        cr_assert(strstr(status_message(), "CSV line 1") != NULL && bytes == 7);
    }
}

/* What every byte can become at most: all characters that are escaped, each in a row of its own. */
Test(lines, the_room_is_enough)
{
    static const char *const worst[] = {"\\\n", "a\n", "1\n", "a,", "\\,", "\"\"\n", "1,"};
    char text[4000], out[3 * sizeof text + 64];
    for (size_t i = 0; i < sizeof worst / sizeof *worst; i++) {
        size_t n = strlen(worst[i]), bytes = 0, used = 0;
        while (bytes + n < sizeof text) {
            memcpy(text + bytes, worst[i], n);
            bytes += n;
        }
        cr_assert_eq(lines_to_instances(true, text, bytes, out, &used), STATUS_OK);
        cr_assert(used <= lines_capacity(bytes), "%s: %zu of %zu", worst[i], used, bytes);
    }
}
