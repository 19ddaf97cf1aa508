#include "tests/support/temporary.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/folders.h"

static void must(int done, const char *what)
{
    if (done)
        return;
    perror(what);
    abort();
}

void temporary_make(char folder[TEMPORARY_FOLDER_BYTES])
{
    strcpy(folder, "/tmp/penstock-test-XXXXXX");
    must(mkdtemp(folder) != NULL, folder);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void temporary_remove(const char *folder)
{
    must(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, folder);
}

void temporary_write(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    must(folders_make(path, 0777) == STATUS_OK, path);
    *slash = '/';
    FILE *f = fopen(path, "wb");
    must(f != NULL, path);
    must(fwrite(data, 1, bytes, f) == bytes, path);
    must(fclose(f) == 0, path);
}

void temporary_write_text(const char *folder, const char *name, const char *text)
{
    temporary_write(folder, name, text, strlen(text));
}
