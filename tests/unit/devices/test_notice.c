#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "devices/notice.h"
#include "tests/support/temporary.h"

Test(notice, says_who_must_go)
{
    static const char *const nobody[] = {"",      " \n",       "NONE", "none\n",
                                         "FALSE", "false\r\n", "0",    "null"};
    for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++)
        cr_expect(!device_notice_tells(nobody[i], "pjrt:0"), "%s", nobody[i]);
    static const char *const all[] = {"TRUE", "TERMINATE_ON_HOST_MAINTENANCE\n",
                                      "MIGRATE_ON_HOST_MAINTENANCE", "1",
                                      "{\"action\": \"terminate\"}"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cr_expect(device_notice_tells(all[i], "pjrt:0"), "%s", all[i]);
}

Test(notice, names_devices)
{
    cr_expect(device_notice_tells("pjrt:1", "pjrt:1"));
    cr_expect(!device_notice_tells("pjrt:1", "pjrt:0"));
    cr_expect(!device_notice_tells("pjrt:1", "pjrt:11"));
    cr_expect(!device_notice_tells("pjrt:11\n", "pjrt:1"));
    cr_expect(device_notice_tells("pjrt:0, pjrt:11\n", "pjrt:11"));
    cr_expect(device_notice_tells("maintenance of pjrt:3", "pjrt:3"));
    cr_expect(!device_notice_tells("maintenance of pjrt:3", "pjrt:2"));
}

Test(notice, a_file_need_not_be_there)
{
    char text[DEVICE_NOTICE_BYTES] = "before";
    cr_assert_eq(device_notice_read("/nowhere/notice", text), STATUS_OK);
    cr_expect_str_eq(text, "");
    cr_expect_eq(device_notice_read("/", text), STATUS_IO);
    cr_expect_eq(device_notice_read("https://host/", text), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(device_notice_read("http:///path", text), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(device_notice_read("http://127.0.0.1:1/", text), STATUS_UNAVAILABLE);
}
