#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "models/loading/fingerprint.h"
#include "tests/support/temporary.h"

static char root[TEMPORARY_FOLDER_BYTES];

static void run(const char *format, ...)
{
    char command[9000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    cr_assert_eq(system(command), 0, "%s", command);
}

static void begin(void)
{
    temporary_make(root);
}

static void end(void)
{
    temporary_remove(root);
}

/* Later than the two seconds for which a changed file is not trusted. */
#define LATER_NS UINT64_C(4000000000)

static uint64_t print_after(uint64_t after_ns, const char *folder, const char *cache)
{
    char path[200], cache_path[200];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    snprintf(cache_path, sizeof cache_path, "%s/%s", root, cache ? cache : "");
    return fingerprint_model(path, cache ? cache_path : NULL, clock_wall_ns() + after_ns);
}

static uint64_t recorded_after(uint64_t after_ns, const char *folder, const char *cache)
{
    char path[200], cache_path[200];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    snprintf(cache_path, sizeof cache_path, "%s/%s", root, cache ? cache : "");
    return fingerprint_recorded(path, cache ? cache_path : NULL, clock_wall_ns() + after_ns);
}

static uint64_t print_of(const char *folder, const char *cache)
{
    return print_after(0, folder, cache);
}

Test(fingerprint, names_contents_and_not_places)
{
    begin();
    run("mkdir %s/a && echo one > %s/a/x && echo two > %s/a/y && cp -r %s/a %s/b && echo '{}' > "
        "%s/b/model.json",
        root, root, root, root, root, root);
    uint64_t a = print_of("a", NULL);
    cr_assert_neq(a, 0);
    cr_assert_eq(print_of("b", NULL), a);
    run("mv %s/b/x %s/b/z", root, root);
    cr_assert_neq(print_of("b", NULL), a, "another name");
    run("echo onE > %s/a/x", root);
    cr_assert_neq(print_of("a", NULL), a, "another content of the same size");
    end();
}

Test(fingerprint, is_kept_until_a_file_changes)
{
    begin();
    run("mkdir %s/a && echo one > %s/a/x", root, root);
    uint64_t a = print_of("a", "cache");
    char has_record[200];
    snprintf(has_record, sizeof has_record, "ls %s/cache/*.files > /dev/null 2>&1", root);
    cr_assert_neq(system(has_record), 0, "files that changed just now are not trusted");
    cr_assert_eq(print_after(LATER_NS, "a", "cache"), a);
    cr_assert_eq(system(has_record), 0);
    run("sed -i s/^................/00000000deadbeef/ %s/cache/*.files", root);
    cr_assert_eq(print_after(LATER_NS, "a", "cache"), 0xdeadbeef,
                 "the record is believed, no file is read");
    cr_assert_eq(recorded_after(LATER_NS, "a", "cache"), 0xdeadbeef);
    cr_assert_eq(recorded_after(0, "a", "cache"), 0, "it changed just now");
    cr_assert_eq(recorded_after(LATER_NS, "a", NULL), 0, "no cache, no record: nothing is read");
    run("echo junk > $(ls %s/cache/*.files)", root);
    cr_assert_eq(print_after(LATER_NS, "a", "cache"), a, "a damaged record is not");
    run("touch -r %s/a/x %s/t && echo onE > %s/a/x && touch -r %s/t %s/a/x", root, root, root, root,
        root);
    cr_assert_neq(print_after(LATER_NS, "a", "cache"), a, "the time of change cannot be set back");
    end();
}
