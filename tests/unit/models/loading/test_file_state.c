#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/loading/file_state.h"
#include "tests/support/temporary.h"

static char root[TEMPORARY_FOLDER_BYTES];

static void path_of(const char *name, char path[200])
{
    snprintf(path, 200, "%s/%s", root, name);
}

Test(file_state, changes_with_every_file_and_with_nothing_else)
{
    char path[200], other[200];
    temporary_make(root);
    path_of("1", path);
    mkdir(path, 0777);
    temporary_write_text(root, "1/model.onnx", "abc");
    uint64_t before = file_state(root);
    cr_assert_neq(before, 0);
    cr_assert_eq(file_state(root), before);
    temporary_write_text(root, ".hidden", "abc");
    cr_assert_eq(file_state(root), before, "hidden files do not count");

    temporary_write_text(root, "1/more", "abc");
    uint64_t added = file_state(root);
    cr_assert_neq(added, before);
    path_of("1/more", path);
    path_of("1/other", other);
    rename(path, other);
    cr_assert_neq(file_state(root), added, "a name counts");
    unlink(other);
    cr_assert_eq(file_state(root), before);

    /* As long as before, and in place. */
    usleep(20000);
    temporary_write_text(root, "1/model.onnx", "abd");
    cr_assert_neq(file_state(root), before);
    path_of("1/model.onnx", path);
    cr_assert_neq(file_state(path), 0);
    path_of("none", path);
    cr_assert_eq(file_state(path), 0);
    temporary_remove(root);
}

Test(file_state, a_file_beside_others_counts_whether_it_is_there_or_not)
{
    temporary_make(root);
    uint64_t without = file_state_add(1, root, "model.json");
    cr_assert_eq(file_state_add(1, root, "model.json"), without);
    temporary_write_text(root, "model.json", "{}");
    cr_assert_neq(file_state_add(1, root, "model.json"), without);
    cr_assert_neq(file_state_add(2, root, "model.json"), file_state_add(1, root, "model.json"));
    temporary_remove(root);
}
