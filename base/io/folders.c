#include "base/io/folders.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

status folders_make(char *path, mode_t mode)
{
    for (char *slash = path + 1;; slash++) {
        if (*slash != '/' && *slash != 0)
            continue;
        char was = *slash;
        *slash = 0;
        bool failed = mkdir(path, mode) != 0 && errno != EEXIST;
        status s = failed ? status_fail(STATUS_IO, "%s: %m", path) : STATUS_OK;
        *slash = was;
        if (s || was == 0)
            return s;
    }
}
