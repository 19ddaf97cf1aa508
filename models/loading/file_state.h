#ifndef MODELS_LOADING_FILE_STATE_H
#define MODELS_LOADING_FILE_STATE_H

#include <stdint.h>

/* Says whether files have changed, without reading them: a hash of the names, sizes, inodes, and
 * times of modification and change of all that lies in a folder and the folders in it, four deep;
 * hidden files do not count, links are followed. The kernel sets the time of change at each write,
 * so a file that is written into, replaced, added or removed makes another state. */

/* Of the folder, or of the file that `path` is. 0: there is nothing of that name. */
uint64_t file_state(const char *path);
/* Of one file beside others, added to `state`. A file that is not there makes a state, too. */
uint64_t file_state_add(uint64_t state, const char *folder, const char *name);
uint64_t file_state_add_number(uint64_t state, uint64_t number);

#endif
