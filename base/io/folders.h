#ifndef BASE_IO_FOLDERS_H
#define BASE_IO_FOLDERS_H

#include <sys/types.h>

#include "base/status.h"

/* Makes the folder `path` and those on the way to it, where they are not there, with permissions
 * `mode` less the umask. `path` changes meanwhile, and is as it was afterwards. STATUS_IO: names
 * the one that could not be made. Any thread. */
status folders_make(char *path, mode_t mode) MUST_CHECK;

#endif
