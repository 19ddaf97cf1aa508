#include "base/io/folders.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary.h"

Test(folders, are_made_on_the_way_and_may_be_there)
{
    char root[TEMPORARY_FOLDER_BYTES], path[200], wanted[200];
    struct stat s;
    temporary_make(root);
    snprintf(path, sizeof path, "%s/a/b/c", root);
    strcpy(wanted, path);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(folders_make(path, 0700), STATUS_OK, "%s", status_message());
    cr_assert_str_eq(path, wanted);
    cr_assert(stat(path, &s) == 0 && S_ISDIR(s.st_mode) && (s.st_mode & 0777) == 0700);
    temporary_remove(root);
}

Test(folders, what_cannot_be_made_is_named)
{
    char root[TEMPORARY_FOLDER_BYTES], path[200], wanted[200];
    temporary_make(root);
    snprintf(path, sizeof path, "%s/file/b/c", root);
    strcpy(wanted, path);
    temporary_write_text(root, "file", "");
    cr_assert_eq(folders_make(path, 0700), STATUS_IO);
    cr_assert(strstr(status_message(), "/file/b: "), "%s", status_message());
    cr_assert_str_eq(path, wanted);
    temporary_remove(root);
}
