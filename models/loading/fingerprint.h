#ifndef MODELS_LOADING_FINGERPRINT_H
#define MODELS_LOADING_FINGERPRINT_H

#include <stdint.h>

/* Names the contents of a model's files, as a key for caches: the names and bytes of all files in
 * `folder` (or of the one file that `folder` is), except model.json and hidden files. Never 0.
 * Without memory for the list of files, a number that no cache knows.
 *
 * Reading hundreds of megabytes takes longer than the rest of a start. The hash is therefore kept
 * in `cache_folder` (NULL: it is computed each time), under a key made of each file's size, inode,
 * and times of modification and change. While these agree the files are not read. The kernel sets
 * the time of change at each write, and nobody can set it back. A file that changed in the two
 * seconds before `now_wall_ns` (clock_wall_ns()) is read again at the next start: a second change
 * within one clock tick would go unnoticed. */
uint64_t fingerprint_model(const char *folder, const char *cache_folder, uint64_t now_wall_ns);
/* The same where it is kept in the cache folder; else 0, and no file is read. */
uint64_t fingerprint_recorded(const char *folder, const char *cache_folder, uint64_t now_wall_ns);

#endif
