#include <criterion/criterion.h>
#include <dirent.h>

#include "server/server.h"

static int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* A start that fails leaves nothing behind, so it can be tried again. */
Test(server, a_failed_start_gives_everything_back)
{
    server *s;
    server_options o;
    server_options_default(&o);
    o.loops = 2;
    o.listeners[0].port = 0;
    o.listeners[1] = (server_listener){.host = "256.256.256.256", .port = 1};
    o.listener_count = 2;
    cr_assert_eq(server_start(&o, &s), STATUS_IO);
    int before = open_descriptors();
    for (int i = 0; i < 3; i++)
        cr_assert_eq(server_start(&o, &s), STATUS_IO);
    o.listeners[0].is_tls = true;
    cr_assert_eq(server_start(&o, &s), STATUS_INVALID_ARGUMENT);
    o.access_log = "/nonexistent/log";
    cr_assert_eq(server_start(&o, &s), STATUS_IO);
    cr_assert_eq(open_descriptors(), before);
}
