#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "server/access/rights.h"

/* What docs/security.md says of a line "| `GET /path` | right |"; false: it is no such line. */
static bool read_row(const char *line, route *at, access_right *right)
{
    char verb[8], path[100], word[16], end;
    if (sscanf(line, "| `%7[A-Z] %99[^`]` | %15[a-z_] %c", verb, path, word, &end) != 4 ||
        end != '|')
        return false;
    route_parse(path, strlen(path), at);
    route_choose(at, verb, strlen(verb));
    cr_assert_eq(at->verb == ROUTE_POST, strcmp(verb, "POST") == 0, "%s", path);
    *right = strcmp(word, "open") == 0 ? ACCESS_OPEN : access_right_named(word, strlen(word));
    return true;
}

/* The same of "| `SERVICE/METHOD` | right |", a method of gRPC. */
static bool read_method(const char *line, route *at, access_right *right)
{
    char path[100] = "/", word[16], end;
    if (sscanf(line, "| `%98[A-Za-z0-9./]` | %15[a-z_] %c", path + 1, word, &end) != 3 ||
        end != '|')
        return false;
    route_parse(path, strlen(path), at);
    *right = strcmp(word, "open") == 0 ? ACCESS_OPEN : access_right_named(word, strlen(word));
    return *right != 0 && strchr(path + 1, '/') != NULL;
}

/* A new route without an entry in the table, or in the page, fails here. */
Test(rights, every_route_has_the_right_that_the_page_says)
{
    bool is_told[ROUTE_KIND_COUNT] = {[ROUTE_UNKNOWN] = true};
    char line[1000];
    FILE *page = fopen(PENSTOCK_SOURCE_DIR "/docs/security.md", "re");
    cr_assert(page);
    while (fgets(line, sizeof line, page)) {
        route at;
        access_right right;
        bool is_method = read_method(line, &at, &right);
        if (!is_method && !read_row(line, &at, &right))
            continue;
        cr_assert_neq(at.kind, ROUTE_UNKNOWN, "%s", line);
        cr_assert_neq(right, 0, "%s", line);
        cr_assert_eq(access_right_of(at.kind), right, "%s", line);
        cr_assert(is_method || !is_told[at.kind], "twice: %s", line);
        is_told[at.kind] = true;
    }
    fclose(page);
    for (route_kind kind = 0; kind < ROUTE_KIND_COUNT; kind++) {
        cr_assert_neq(access_right_of(kind), 0, "route %d has no right", kind);
        cr_assert(is_told[kind], "docs/security.md says nothing of route %d", kind);
    }
    cr_assert_eq(access_right_of(ROUTE_UNKNOWN), ACCESS_OPEN);
}

Test(rights, names)
{
    cr_assert_eq(access_right_named("infer", 5), ACCESS_INFER);
    cr_assert_eq(access_right_named("read", 4), ACCESS_READ);
    cr_assert_eq(access_right_named("admin", 5), ACCESS_ADMIN);
    cr_assert_eq(access_right_named("shared_memory", 13), ACCESS_SHARED_MEMORY);
    cr_assert_eq(access_right_named("admin", 4), 0);
    cr_assert_eq(access_right_named("open", 4), 0);
}
